"""Checks for the exercises of lesson 2, the tracer."""

from __future__ import annotations

import ast
import contextlib
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import torch

import dynguard_lite as dg

from . import Wrong, exercise, expect


@exercise
def printed_traces(answer: Callable[[], dict[Callable, str]]) -> None:
    """`answer()` predicts what the traces of p, q and s print: {p: "v_mul(a, b)", ...}."""
    predicted = answer()
    expect(isinstance(predicted, dict) and all(map(callable, predicted)), "the form of the answer",
           "a dict whose keys are the functions themselves", repr(predicted), "Write {p: ..., q: ...}, no quotes "
           "around p and q.")  # fmt: skip
    missing = {"p", "q", "s"} - {program.__name__ for program in predicted}
    expect(not missing, "the three programs", "a text for each", f"nothing for {', '.join(sorted(missing))}",
           "The task names three.")  # fmt: skip
    for program, text in predicted.items():
        expect(isinstance(text, str), program.__name__, "a text", repr(text), 'Write "v_mul(a, b)", with quotes.')
        trace = dg.trace(program, torch.randn(4), torch.randn(4), analysis="blind")
        expected = _parsed(trace.graph.output.text(short=True))
        try:
            got = _parsed(text)
        except SyntaxError:
            raise Wrong(f"for {program.__name__}: expected an expression such as v_mul(a, b), got {text}.\nDo the "
                        "parentheses match? Are there commas between the inputs?") from None  # fmt: skip
        difference = _difference(expected, got, "the result")
        if difference:
            raise Wrong(f"for {program.__name__}: {difference}.\nStart at the return, and put in place of each name "
                        "what was computed for it at that moment. Python's own steps leave nothing.",
                        {"yours": dg.draw(_as_node(got)), "the trace": dg.draw(_as_node(expected))})  # fmt: skip


def _parsed(text: str) -> ast.expr:
    return ast.parse(re.sub(r"v_dynamic_param\(name=(\w+)\)", r"\1", text.strip()), mode="eval").body


def _as_node(expression: ast.expr, made: dict[str, dg.Node] | None = None) -> dg.Node:
    """The graph that an expression spells; what is spelled twice is one node."""
    made = {} if made is None else made
    text = ast.unparse(expression)
    if text not in made:
        called = isinstance(expression, ast.Call)
        inputs = [_as_node(arg, made) for arg in expression.args] if called else []
        op = dg.Op(ast.unparse(expression.func) if called else "v_dynamic_param")
        made[text] = dg.Node(op, inputs, params={} if called else {"name": text})
    return made[text]


def _difference(expected: ast.expr, got: ast.expr, where: str) -> str:
    """The outermost place where two expressions differ, in words; empty where they don't."""
    if isinstance(expected, ast.Name) or not isinstance(got, ast.Call):
        same = isinstance(got, ast.Name) and ast.dump(expected) == ast.dump(got)
        return "" if same else f"expected {_head(expected)} as {where}, got {_head(got)}"
    if _head(expected) != _head(got):
        return f"expected {_head(expected)} as {where}, got {_head(got)}"
    if len(expected.args) != len(got.args):
        return f"expected {len(expected.args)} inputs of {where}, got {len(got.args)}"
    for place, a, b in zip(("first", "second"), expected.args, got.args, strict=False):
        if difference := _difference(a, b, f"the {place} input of {where}"):
            return difference
    return ""


def _head(expression: ast.expr) -> str:
    if isinstance(expression, ast.Call):
        return f"a {ast.unparse(expression.func)}"
    if isinstance(expression, ast.Name) and len(expression.id) == 1:
        return f"the parameter {expression.id}"
    return ast.unparse(expression)


# -- operators -----------------------------------------------------------------------------------------


@exercise
def subtraction(answer: type) -> None:
    """`answer` has `__sub__` and `__rsub__`, which the check lends to the notebook's Variable."""
    for name in ("__sub__", "__rsub__"):
        expect(callable(getattr(answer, name, None)), "the class", f"a method {name}", "none",
               "Python looks both up by exactly these names.")  # fmt: skip
    home = answer.__sub__.__globals__
    variable = home["Variable"]
    methods = {name: getattr(answer, name) for name in ("__sub__", "__rsub__")}
    cases = ["a - b", "b - a", "a - a", "a - 1", "(a - b) * b"]
    cases += ["1 - a", "2 - a * b", "(2 - a) - (b - 3)", "1 - (1 - a)"]
    cases += [_random_expression(random.Random(seed)) for seed in range(40)]
    with _lent(variable, methods):
        for i, text in enumerate(cases):
            _check_expression(text, variable, home["interp_node"], done=i > 0)


def _check_expression(text: str, variable: Any, interp_node: Callable, done: bool) -> None:
    tensors = {"a": torch.tensor([1.0, 2.0, 4.0]), "b": torch.tensor([3.0, 8.0, 5.0])}
    variables = {name: variable.param(tensor, name) for name, tensor in tensors.items()}
    try:
        result = eval(text, variables)
    except NotImplementedError:
        if not done:
            raise
        raise Wrong(f"for {text}: expected a Variable, got NotImplementedError.\n__sub__ works; the reflected "
                    "__rsub__ is still to write.") from None  # fmt: skip
    except Exception as error:
        raise Wrong(f"for {text}: expected a Variable, got {type(error).__name__}: {error}.\n`other` may be a "
                    "Variable or a number, for either method.") from None  # fmt: skip
    expect(isinstance(result, variable), text, "a Variable", f"a {type(result).__name__}",
           "Return a Variable, so that the program can go on with it.")  # fmt: skip
    wanted = eval(text, dict(tensors))
    given = f"{text} with a = {tensors['a'].tolist()}, b = {tensors['b'].tolist()}"
    _same(given, wanted, result.tensor, "Which of the two is subtracted from which?")
    env = {"a": torch.tensor([2.0, 9.0, 4.0, 7.0, 1.0]), "b": torch.tensor([6.0, 3.0, 8.0, 5.0, 0.5])}
    try:
        replayed = interp_node(result.node, env)
    except Exception as error:
        raise Wrong(f"for {text}, replayed: expected a tensor, got {type(error).__name__}: {error}.\nThe inputs of a "
                    "node are nodes, and a new Op needs a rule in INTERP_RULES.") from None  # fmt: skip
    wanted = eval(text, dict(env))
    _same(f"{text}, replayed on inputs of size 5", wanted, replayed,
          "The tensor is right, its node isn't: is the node made from the nodes of both sides, in order?")  # fmt: skip


def _random_expression(rng: random.Random, depth: int = 3) -> str:
    """Variables and numbers under `-` and `*`, at least one operand of each a Variable's expression."""
    if depth == 0 or rng.random() < 0.15:
        return rng.choice("ab")
    left = _random_expression(rng, depth - 1)
    right = rng.choice(["2", "3", _random_expression(rng, depth - 1)])
    left, right = rng.choice([(left, right), (right, left)])
    return f"({left} {rng.choice('--*')} {right})"


@contextlib.contextmanager
def _lent(owner: type, methods: dict[str, Any]) -> Iterator[None]:
    """`owner` has these methods for as long as this lasts."""
    before = {name: vars(owner)[name] for name in methods if name in vars(owner)}
    try:
        for name, method in methods.items():
            setattr(owner, name, method)
        yield
    finally:
        for name in methods:
            if name in before:
                setattr(owner, name, before[name])
            elif name in vars(owner):
                delattr(owner, name)


def _same(given: str, wanted: torch.Tensor, got: Any, thought: str) -> None:
    expect(isinstance(got, torch.Tensor), given, "a tensor", f"a {type(got).__name__}", thought)
    same = got.shape == wanted.shape and torch.allclose(got.float(), wanted.float(), equal_nan=True)
    expect(same, given, _numbers(wanted), _numbers(got), thought)


def _numbers(tensor: torch.Tensor) -> str:
    return str([round(x, 3) for x in tensor.flatten().tolist()])


# -- any torch call ------------------------------------------------------------------------------------

_PIECES = [
    "r = a + b",
    "r = torch.cat([a, b]).sum(dim=0)",
    "r = b * a.size()[0]",
    "r = b.view(a.size())",
    "left, right = a.split(2); r = right * left",
    "values, order = torch.sort(a); r = values + b[order]",
    "var, mean = torch.var_mean(a); r = (b - mean) / var",
    "top, where = a.topk(k=2); r = top - b[where]",
    "r = torch.cat(a.chunk(2)[::-1]) * b",
    "r = torch.stack(torch.unbind(a)[::-1])",
    "r = b * len(a.tolist())",
]
_STEPS = [
    "left, right = {p}.chunk(2); {n} = torch.cat((right, left))",
    "{n}, order = torch.sort({p}, descending=True)",
    "values, order = {p}.sort(); {n} = {q}[order]",
    "{n} = torch.stack({p}.unbind()[::-1])",
    "{n} = {p} * {q}",
]


@exercise
def records_pieces(answer: Callable[[Callable, tuple, dict], Any]) -> None:
    """`answer(func, args, kwargs)` computes and records one torch call, each tensor of its result with a node."""
    home = answer.__globals__
    value = home["TensorVariable"]

    def dispatch(cls: type, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        return answer(func, args, kwargs or {})

    with _lent(value, {"__torch_function__": classmethod(dispatch)}):
        for text in [*_PIECES, *(_random_program(random.Random(seed)) for seed in range(20))]:
            _check_program(text, value, home["param"], home["evaluate"])


def _check_program(text: str, value: type, param: Callable, evaluate: Callable) -> None:
    env = {"a": torch.tensor([3.0, 1.0, 4.0, 2.0]), "b": torch.tensor([0.5, 7.0, 6.0, 9.0])}
    try:
        result = _run(text, {name: param(tensor, name) for name, tensor in env.items()})
    except NotImplementedError:
        raise
    except Exception as error:
        raise Wrong(f"for {text}: expected a traced result, got {type(error).__name__}: {error}.\nWhat does func "
                    "return here: a tensor, a tuple of tensors, or numbers?") from None  # fmt: skip
    expect(isinstance(result, value), text, "a TensorVariable", f"a {type(result).__name__}",
           "Somewhere a piece came back untraced, and the trace ends there.")  # fmt: skip
    given = f"{text} while tracing, a = {env['a'].tolist()}, b = {env['b'].tolist()}"
    _same(given, _run(text, env), result.tensor, "Compute on the real tensors, and keep the pieces in order.")
    fresh = {"a": torch.tensor([5.0, 8.0, 6.0, 7.0]), "b": torch.tensor([2.0, 1.0, 3.0, 4.0])}
    given = f"{text} replayed, a = {fresh['a'].tolist()}, b = {fresh['b'].tolist()}"
    try:
        replayed = evaluate(result.node, fresh)
    except Exception as error:
        raise Wrong(f"for {given}: expected a tensor, got {type(error).__name__}: {error}.\nThe call's node stands for "
                    "the whole tuple; each piece needs a node that takes it out.") from None  # fmt: skip
    _same(given, _run(text, fresh), replayed, "Does each piece's node take that piece, or is a piece a constant of the "
          "trace?")  # fmt: skip


def _run(text: str, names: dict[str, Any]) -> Any:
    scope = {"torch": torch, **names}
    exec(text, scope)
    return scope["r"]


def _random_program(rng: random.Random) -> str:
    names, steps = ["a", "b"], []
    for i in range(3):
        steps.append(rng.choice(_STEPS).format(p=rng.choice(names), q=rng.choice(names), n=f"x{i}"))
        names.append(f"x{i}")
    return "; ".join([*steps, "r = x2 + x1"])


# -- what is lost --------------------------------------------------------------------------------------


def _even_average(x: torch.Tensor) -> torch.Tensor:
    if x.shape[0] % 2 == 1:
        x = torch.cat([x, torch.zeros(1)])
    return x.sum() / x.shape[0]


@exercise
def right_and_wrong(answer: Callable[[], tuple[int, int]]) -> None:
    """`answer()`: sizes at which a blind trace of even_average at size 4 is right, and is wrong (larger, even)."""
    sizes = answer()
    form = isinstance(sizes, (tuple, list)) and len(sizes) == 2 and all(type(n) is int and n >= 0 for n in sizes)
    expect(form, "the form of the answer", "two sizes, such as (7, 10)", repr(sizes), "Return (right, wrong).")
    right, wrong = sizes
    expect(right != 4, "the first size", "one other than 4", "4", "At the traced size a trace is right, of course.")
    expect(wrong > 4 and wrong % 2 == 0, "the second size", "an even one larger than 4", str(wrong),
           "The program takes the branch that was traced there. Is that enough?")  # fmt: skip
    trace = dg.trace(_even_average, torch.randn(4), analysis="blind")
    for size, expected in (right, "right"), (wrong, "wrong"):
        got = "right"
        for seed in range(20):
            x = torch.randn(size, generator=torch.Generator().manual_seed(seed))
            program, replayed = _even_average(x), trace.replay(x)
            if not torch.allclose(program, replayed):
                got = f"wrong (the program answers {program.item():.3f}, the replay {replayed.item():.3f})"
                break
        expect(got.startswith(expected), f"size {size}", f"a replay that is {expected}", f"one that is {got}",
               "The trace sums what it gets and divides by a constant. By what does the program divide?")  # fmt: skip
