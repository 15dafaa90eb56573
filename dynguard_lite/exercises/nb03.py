"""Checks for the exercises of lesson 3, guard analysis."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

import torch

import dynguard_lite as dg

from . import Wrong, exercise, expect

Triple = tuple[str, str, Any]


@exercise
def static_parameters(answer: Callable[[], dict[Callable, set[str]]]) -> None:
    """`answer()` predicts, for the programs f, g, h and k, which parameters turn static: {f: {"a"}, ...}."""
    predicted = answer()
    expect(isinstance(predicted, dict) and all(map(callable, predicted)), "the form of the answer",
           "a dict whose keys are the functions themselves", repr(predicted), "Write {f: {...}, ...}, no quotes.")  # fmt: skip
    missing = {"f", "g", "h", "k"} - {program.__name__ for program in predicted}
    expect(not missing, "the four programs", "a set for each", f"nothing for {', '.join(sorted(missing))}",
           "The empty set is set().")  # fmt: skip
    for program, names in predicted.items():
        status = dg.trace(program, *(torch.randn(4) for _ in range(3)), analysis="whole_tensor").status
        static = {name for name, dims in status.items() if "static" in dims}
        expect(isinstance(names, (set, frozenset)), program.__name__, "a set of names", repr(names), 'Write {"a"}.')
        # What the tracer found is not told: the next thought is worth more than the solution.
        for name in sorted(set(names) - static):
            raise Wrong(f"for {program.__name__}: {name} stays dynamic, got static.\nWalk back from the value whose "
                        f"size is looked at: does any edge lead to {name}?")  # fmt: skip
        for name in sorted(static - set(names)):
            raise Wrong(f"for {program.__name__}: {name} turns static, got dynamic.\nFind the value whose size is "
                        f"looked at and walk back to {name}. What becomes of the number doesn't count.")  # fmt: skip


@exercise
def linear_sources(answer: Callable[[Any], Iterable[Any]]) -> None:
    """`answer(node)` is the set of dynamic parameters that node is computed from, each node visited once."""
    make = _Builder(answer)
    a, b, s = make.parameter("a"), make.parameter("b"), make.parameter("s", dynamic=False)
    unused = make.add(a, make.parameter("unused"))
    both = make.add(a, b)
    cases = {
        "a parameter alone": (a, "a"),
        "a * b": (both, "a b"),
        "(a * b) * a, where a is reached twice": (make.add(both, a), "a b"),
        "a + s, where s is static already": (make.add(a, s), "a"),
        "b * b, in a graph that holds other nodes too": (make.add(b, b), "b"),
    }
    for given, (node, names) in cases.items():
        _same_sources(given, answer(node), names.split())
    assert unused.inputs
    for seed in range(20):
        rng = random.Random(seed)
        nodes = [make.parameter(name, dynamic=rng.random() < 0.7) for name in "abcdef"]
        for _ in range(8):
            nodes.append(make.add(*rng.choices(nodes, k=2)))
        _same_sources(f"{nodes[-1]}", answer(nodes[-1]), _names(_reference(nodes[-1], make.dynamic)))
    x = a
    for _ in range(60):
        x = make.add(x, x)
    _same_sources("60 times x = x + x", _within(make, 61, "60 times x = x + x", lambda: answer(x)), ["a"])
    x = a
    for _ in range(100_000):
        x = make.add(x, b)
    given = "a chain of 100,000 operations"
    try:
        found = _within(make, 100_002, given, lambda: answer(x))
    except RecursionError:
        raise Wrong(f"for {given}: expected a and b, got RecursionError.\nThe function still calls itself: keep "
                    "the nodes to visit in a list of your own.") from None  # fmt: skip
    _same_sources(given, found, ["a", "b"])


def _within(make: _Builder, nodes: int, given: str, call: Callable[[], Any]) -> Any:
    """The result of a walk that may look at each node's inputs a few times, not once per path."""
    make.count, make.budget = 0, 10 * nodes
    try:
        return call()
    except _TooMany:
        raise Wrong(f"for {given}: expected about {nodes:,} looks at a node's inputs, got more than {make.budget:,}."
                    "\nA node that was seen before is walked again: remember which you have seen.") from None  # fmt: skip
    finally:
        make.budget = None


class _TooMany(BaseException):
    """The walk visits more nodes than there are; no `except Exception` of the answer's may swallow that."""


class _Builder:
    """Builds graphs of the notebook's own Node and ops, so that an answer may compare ops in any way it likes.

    While `budget` is a number, each look at a node's `inputs` is counted, and one too many ends the walk.
    """

    def __init__(self, answer: Callable):
        home = answer.__globals__
        self.count, self.budget = 0, None
        self.dynamic, self.static, self.op = home["v_dynamic_param"], home["v_static_param"], home["v_add"]
        made, base = self, home["Node"]

        class Counted(base):
            def __getattribute__(self, name: str) -> Any:
                if name == "inputs" and made.budget is not None:
                    made.count += 1
                    if made.count > made.budget:
                        raise _TooMany
                return super().__getattribute__(name)

        self.node = Counted

    def parameter(self, name: str, dynamic: bool = True) -> Any:
        return self.node(self.dynamic if dynamic else self.static, (), {"name": name, "size": torch.Size([4])})

    def add(self, *inputs: Any) -> Any:
        return self.node(self.op, inputs, {})


def _reference(node: Any, dynamic: Any) -> list[Any]:
    seen, todo = {node: None}, [node]
    for node in todo:
        fresh = [i for i in node.inputs if i not in seen]
        seen |= dict.fromkeys(fresh)
        todo += dict.fromkeys(fresh)
    return [n for n in seen if n.op == dynamic]


def _names(nodes: Iterable[Any]) -> list[str]:
    return sorted(n.params["name"] for n in nodes)


def _same_sources(given: str, found: Any, names: list[str]) -> None:
    expect(isinstance(found, Iterable), given, "a set of nodes", repr(found), "Does your function return what it found?")
    found = list(found)
    expect(all(hasattr(n, "op") for n in found), given, "the nodes themselves", repr(found),
           "Return the parameters' nodes, not their names.")  # fmt: skip
    wrong = [n for n in found if n.op.name != "v_dynamic_param"]
    expect(not wrong, given, "dynamic parameters only", f"a {wrong[0].op.name}" if wrong else "",
           "Nodes in between aren't sources, and a static parameter has nothing left to turn.")  # fmt: skip
    expect(_names(found) == sorted(names), given, f"the parameters {sorted(names)}", f"{_names(found)}",
           "Every dynamic parameter that the node is computed from, once.")  # fmt: skip


@exercise
def minimal_guards(answer: Callable[[list[Triple]], list[Triple]]) -> None:
    """`answer(guards)`: without repetitions, and without guards that another single guard of the list implies."""
    shape, rank, first = ("a", "shape", (4, 2)), ("a", "dim()", 2), ("a", "shape[0]", 4)
    cases: list[list[Triple]] = [
        [],
        [first, first],
        [rank, shape, first],
        [first, rank, ("a", "shape[1]", 2)],
        [shape, ("b", "shape[0]", 4), ("b", "dim()", 2)],
        [("b", "shape", ()), ("b", "dim()", 0), first],
    ]
    cases += [_random_guards(random.Random(seed)) for seed in range(200)]
    for guards in cases:
        before = list(guards)
        got = answer(guards)
        given = f"{before}"
        expect(guards == before, given, "the list that was passed, unchanged", f"{guards}", "Build a new list.")
        expect(isinstance(got, list), given, "a list", f"a {type(got).__name__}", "Order matters: the first cause stays.")
        expected = _minimal(guards)
        for guard in before:
            expect(guard not in expected or guard in got, given, f"{guard} to stay", f"{got}",
                   "No other single guard of the list implies it: find inputs that only this one refuses.")  # fmt: skip
            expect(guard in expected or guard not in got, given, f"{guard} to go", f"{got}",
                   "Another guard of the list implies it.")  # fmt: skip
        expect(len(got) == len(set(got)), given, "each guard once", f"{got}", "There is a repetition.")
        expect(got == expected, given, f"{expected}", f"{got}", "The guards are right, their order isn't.")


def _random_guards(rng: random.Random) -> list[Triple]:
    guards: list[Triple] = []
    for name in "ab":
        sizes = tuple(rng.randrange(5) for _ in range(rng.randrange(4)))
        guards += [(name, "shape", sizes), (name, "dim()", len(sizes))]
        guards += [(name, f"shape[{d}]", n) for d, n in enumerate(sizes)]
    return rng.choices(guards, k=rng.randrange(1, 7))


def _minimal(guards: list[Triple]) -> list[Triple]:
    kept: list[Triple] = []
    for guard in guards:
        implied = guard[1] != "shape" and any(g[0] == guard[0] and g[1] == "shape" for g in guards)
        if not implied and guard not in kept:
            kept.append(guard)
    return kept


def _program_2(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a + b if a.size()[0] == 4 else a * b


@exercise
def refused_for_nothing(answer: Callable[[], tuple[int, int]]) -> None:
    """`answer()`: sizes of a and b that a trace of program_2 at (5, 5) refuses, though the program would do the same."""
    sizes = answer()
    form = isinstance(sizes, (tuple, list)) and len(sizes) == 2 and all(type(n) is int and n >= 0 for n in sizes)
    expect(form, "the form of the answer", "two sizes, such as (5, 5)", repr(sizes), "Return the size of a, the size of b.")
    a, b = (torch.randn(n) for n in sizes)
    given = f"a of size {sizes[0]} and b of size {sizes[1]}"
    trace = dg.trace(_program_2, torch.randn(5), torch.randn(5), analysis="whole_tensor")
    expect(not trace.accepts(a, b), given, "a refusal", "the trace accepts",
           f"It has one guard, {next(iter(trace.guards))}.")  # fmt: skip
    try:
        fresh = dg.trace(_program_2, a, b, analysis="whole_tensor")
    except RuntimeError as error:
        raise Wrong(f"for {given}: expected that the program runs there, got {type(error).__name__}: {error}.\n"
                    "The sizes must broadcast: be equal, or one of them 1.") from None  # fmt: skip
    recorded, wanted = fresh.graph.output.op, trace.graph.output.op
    expect(recorded == wanted, given, f"that the program does what was recorded, {wanted}", f"it does {recorded}",
           "That refusal was necessary. Where does the program take the same branch as at size 5?")  # fmt: skip
