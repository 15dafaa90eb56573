"""Checks for the exercises of lesson 1, the IR."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch

from . import Wrong, exercise, expect


@exercise
def more_ops(answer: Callable[[], tuple], node: Callable, dynamic: Callable, v_add: Any, v_mul: Any) -> None:
    """`answer()` is v_sub, v_sum and an interpreter of all five ops."""
    got = answer()
    expect(isinstance(got, tuple) and len(got) == 3 and callable(got[2]), "the form of the answer", "two ops and a function", repr(got),
           "return v_sub, v_sum, my_interp")  # fmt: skip
    v_sub, v_sum, interp = got
    named = str(v_sub) == "v_sub" and str(v_sum) == "v_sum"
    expect(named, "the names of the ops", "v_sub and v_sum", f"{v_sub} and {v_sum}", 'Op("v_sub")')
    a, b = dynamic("a", [3, 2]), dynamic("b", [3, 2])
    x, y = torch.randn(3, 2), torch.randn(3, 2)
    first = node(v_sum, (a,), {"dim": 0})
    cases = {
        "a - b": (node(v_sub, (a, b), {}), x - y),
        "a.sum(0)": (first, x.sum(0)),
        "a.sum(1)": (node(v_sum, (a,), {"dim": 1}), x.sum(1)),
        "a - a.sum(0)": (node(v_sub, (a, first), {}), x - x.sum(0)),
        "(a + b) * b": (node(v_mul, (node(v_add, (a, b), {}), b), {}), (x + y) * y),
    }
    for given, (graph, expected) in cases.items():
        result = interp(graph, {"a": x, "b": y})
        right = isinstance(result, torch.Tensor) and result.shape == expected.shape and torch.allclose(result, expected)
        expect(right, given, _short(expected), _short(result), "Which input comes first, and does the sum get its dim?")


def _short(value: Any) -> str:
    return f"a tensor of size {list(value.shape)} with sum {value.sum():.3f}" if isinstance(value, torch.Tensor) else repr(value)


@exercise
def shows_static(answer: Callable[[Any], str], node: Callable, dynamic: Callable, v_static_param: Any, v_add: Any, v_mul: Any) -> None:
    """`answer(node)` prints static parameters with name and size, all else as before."""
    s = node(v_static_param, (), {"name": "w", "size": torch.Size([2, 3])})
    a = dynamic("a", [4])
    scalar = node(v_static_param, (), {"name": "c", "size": torch.Size([])})
    cases = {
        "a static parameter w of size [2, 3]": (s, "v_static_param(name=w, size=[2, 3])"),
        "a dynamic parameter a": (a, "v_dynamic_param(name=a)"),
        "w * a": (node(v_mul, (s, a), {}), "v_mul(v_static_param(name=w, size=[2, 3]), v_dynamic_param(name=a))"),
        "a + (w * c), c of rank 0": (node(v_add, (a, node(v_mul, (s, scalar), {})), {}),
                                     "v_add(v_dynamic_param(name=a), v_mul(v_static_param(name=w, size=[2, 3]), "
                                     "v_static_param(name=c, size=[])))"),
    }  # fmt: skip
    for given, (graph, expected) in cases.items():
        got = answer(graph)
        expect(got == expected, given, expected, repr(got), "Compare letter by letter: list(size) prints with brackets.")


@exercise
def topological_order(answer: Callable[[Any], list], node: Callable, dynamic: Callable, v_add: Any) -> None:
    """`answer(node)`: all nodes that it is computed from, each once, inputs first, without recursion."""
    a, b = dynamic("a", [1]), dynamic("b", [1])
    both = node(v_add, (a, b), {})
    cases = {"a parameter": a, "a + b": both, "(a + b) + a": node(v_add, (both, a), {}), "(a + b) + (a + b)": node(v_add, (both, both), {})}
    for seed in range(30):
        rng = random.Random(seed)
        nodes = [a, b]
        for _ in range(rng.randrange(1, 12)):
            nodes.append(node(v_add, (rng.choice(nodes), rng.choice(nodes)), {}))
        cases[f"a random graph (seed {seed})"] = nodes[-1]
    wide, deep = a, a
    for _ in range(60):
        wide = node(v_add, (wide, wide), {})
    for _ in range(100_000):
        deep = node(v_add, (deep, b), {})
    for given, root in {**cases, "100,000 additions in a chain": deep, "60 times x = x + x": wide}.items():
        _in_order(given, answer, root)


def _in_order(given: str, answer: Callable, root: Any) -> None:
    if given == "60 times x = x + x":
        root, counter = _counted(root)
    else:
        counter = None
    try:
        got = answer(root)
    except RecursionError:
        raise Wrong(f"for {given}: expected a list, got RecursionError.\nUse a loop and a stack of your own.") from None
    except _TooOften:
        raise Wrong(f"for {given}: expected about 61 looks at nodes, got more than {counter.limit:,}.\n"
                    "You follow paths: remember which nodes you have had.") from None  # fmt: skip
    expect(isinstance(got, list), given, "a list of nodes", f"a {type(got).__name__}", "Does your function return its list?")
    expect(len(set(map(id, got))) == len(got), given, "each node once", "a node twice", "Test before you append.")
    expect(bool(got) and got[-1] is root, given, "the node itself last", "another node last", "Append a node after its inputs.")
    seen: set[int] = set()
    for n in got:
        expect(all(id(i) in seen for i in n.inputs), given, "each node after its inputs", "a node before one of its inputs",
               "A node may be appended only when all its inputs are in the list.")  # fmt: skip
        seen.add(id(n))


class _TooOften(Exception):
    pass


class _Counter:
    limit = 10_000

    def __init__(self) -> None:
        self.looks = 0

    def look(self) -> None:
        self.looks += 1
        if self.looks > self.limit:
            raise _TooOften


def _counted(root: Any) -> tuple[Any, _Counter]:
    """The same chain of sharings with nodes that count how often their inputs are looked at."""
    counter = _Counter()

    class Counted:
        def __init__(self, op: Any, inputs: tuple, params: dict):
            self.op, self._inputs, self.params = op, inputs, params

        @property
        def inputs(self) -> tuple:
            counter.look()
            return self._inputs

    chain = [root]
    while chain[-1].inputs:
        chain.append(chain[-1].inputs[0])
    copy = Counted(chain[-1].op, (), chain[-1].params)
    for n in reversed(chain[:-1]):
        copy = Counted(n.op, (copy, copy), {})
    return copy, counter


@exercise
def listing(answer: Callable[[list], str], node: Callable, dynamic: Callable, v_add: Any, v_mul: Any) -> None:
    """`answer(nodes)`: one line a node that is no parameter, named v0, v1, ... with inputs by name."""
    x, b = dynamic("x", [1]), dynamic("b", [1])
    twice = node(v_add, (x, x), {})
    times = node(v_mul, (twice, b), {})
    last = node(v_add, (times, twice), {})
    cases = {
        "[x, x + x]": ([x, twice], "v0 = v_add(x, x)"),
        "[x, x + x, b, (x + x) * b]: a parameter in between": ([x, twice, b, times], "v0 = v_add(x, x)\nv1 = v_mul(v0, b)"),
        "a shared v0": ([b, x, twice, times, last], "v0 = v_add(x, x)\nv1 = v_mul(v0, b)\nv2 = v_add(v1, v0)"),
    }
    for given, (nodes, expected) in cases.items():
        got = answer(list(nodes))
        expect(got == expected, given, repr(expected), repr(got), "Parameters take no number; no newline at the end.")
