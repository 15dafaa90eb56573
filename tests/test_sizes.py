"""Sizes that remember where they came from: arithmetic, comparisons, what specialises, which guards are left."""

import copy
import itertools
import math
import operator

import pytest
import torch

from dynguard_lite.expressions import Evaluation, negate, number, relation
from dynguard_lite.facts import Facts
from dynguard_lite.sizes import Size, Sizes, SymInt, broadcast, ceildiv, expr_of, sym_max, sym_min


class Tracing:
    """The part of a tracer that sizes need: it keeps each decision as a fact."""

    def __init__(self, **hints):
        self.facts = Facts()
        self.sizes = Sizes(True, self.decide, self.integer, self.facts.settled)
        for name, hint in hints.items():
            setattr(self, name, self.sizes.wrap(self.sizes.space.size(name, 0, hint)))

    def decide(self, condition):
        settled = self.facts.settled(condition)
        if settled is None:
            self.facts.add(condition if condition.hint else negate(condition), (None, "compared"))
        else:
            assert settled == condition.hint
        return condition.hint

    def integer(self, expr):
        self.decide(relation("==", expr, number(expr.hint)))
        return expr.hint

    @property
    def guards(self):
        return [g.code for g in self.facts.guards()]


ARITHMETIC = {
    "linear": lambda a, b: 2 * (a + 1) - b,
    "product": lambda a, b: (a + b) * (a - b),
    "floordiv": lambda a, b: (4 * a + b + 9) // 4,
    "mod": lambda a, b: (5 * a - b + 7) % 4,
    "ceildiv": lambda a, b: ceildiv(a * b, 3),
    "by a size": lambda a, b: (a * b + 7) // (b + 1) + a % (b + 2),
    "min and max": lambda a, b: sym_max(sym_min(a, b, 3), 1) + sym_max(a, 0),
    "power": lambda a, b: a**2 + (-b) ** 3,
    "reflected": lambda a, b: 7 - a + 20 // (b + 1) + 9 % (a + 1),
}


@pytest.mark.parametrize("name", ARITHMETIC)
def test_an_expression_computes_what_python_computes_for_every_size(name):
    fn = ARITHMETIC[name]
    t = Tracing(a=5, b=3)
    n = fn(t.a, t.b)
    assert n.hint == fn(5, 3) and t.guards == []
    for a, b in itertools.product(range(8), repeat=2):
        shapes = {"a": (a,), "b": (b,)}
        assert Evaluation(shapes.__getitem__)(n.expr) == fn(a, b)
        # its text is Python
        env = {k: torch.empty(v) for k, v in shapes.items()}
        assert eval(repr(n), {**env, "max": max, "min": min}) == fn(a, b), repr(n)


def test_expressions_have_one_form():
    t = Tracing(a=6, b=3)
    assert 2 * (t.a + 1) - t.a - t.a == 2 and type(2 * (t.a + 1) - t.a - t.a) is int
    assert repr(t.a * t.b // t.b) == "a.shape[0]" and repr(-(-t.a // 2)) == "-(-a.shape[0] // 2)"
    assert repr(broadcast(t.a, 1)) == "a.shape[0]" and broadcast(t.a, 4) == 4
    assert repr(broadcast(t.a, broadcast(t.b, t.a))) == repr(broadcast(t.a, t.b))
    assert t.guards == []


def test_a_comparison_is_a_guard_with_its_own_outcome():
    t = Tracing(a=6, b=3)
    assert t.a > 3 and not t.b == 4 and t.a * 2 >= t.b
    assert t.guards == ["a.shape[0] > 3", "b.shape[0] != 4", "2*a.shape[0] >= b.shape[0]"]


def test_implied_duplicate_and_tautological_conditions_leave_no_guard():
    t = Tracing(a=5)
    assert t.a > 3 and t.a > 3 and t.a >= 0 and 8 * t.a >= 2 * t.a and t.a != 100 and t.a <= 8
    assert t.guards == ["3 < a.shape[0] <= 8"]
    assert t.a == 5 and t.a > 1 and t.a // 2 == 2
    assert t.guards == ["a.shape[0] == 5"]


def test_two_bounds_can_pin_a_size():
    t = Tracing(a=4)
    assert t.a >= 4 and t.a <= 4
    (guard,) = t.facts.guards()
    assert guard.code == "a.shape[0] == 4" and guard.kind == "size" and guard.dims == (("a", 0),)


@pytest.mark.parametrize("ops", list(itertools.product(["==", "!=", "<", "<=", ">", ">="], repeat=2)), ids=" ".join)
def test_guards_hold_exactly_where_the_decisions_come_out_the_same(ops):
    """Brute force over sizes and bounds: what is dropped must follow from what is kept."""
    fns = {"==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
    for (p, q), hint in itertools.product(itertools.product(range(4), repeat=2), range(4)):
        program = lambda n: (fns[ops[0]](2 * n, p), fns[ops[1]](n, q))  # noqa: E731
        t = Tracing(n=hint)
        outcome = tuple(map(bool, program(t.n)))
        for n in range(7):
            held = all(eval(g, {"n": torch.empty(n)}) for g in t.guards)
            assert held == (program(n) == outcome), (p, q, hint, n, t.guards)


SPECIALISING = {
    "int": int, "float": float, "index": lambda n: [10, 20, 30, 40, 50, 60, 70][n], "range": lambda n: list(range(n)),
    "text": lambda n: f"{n}", "str": str, "hash": hash, "key": lambda n: {6: 1}[n], "true division": lambda n: n / 4,
    "sqrt": math.sqrt, "times a float": lambda n: n * 0.5, "list": lambda n: [0] * n, "bits": lambda n: n & 3,
    "shift": lambda n: n << 1, "power of": lambda n: 2**n, "round to tens": lambda n: round(n, -1),
}  # fmt: skip


@pytest.mark.parametrize("name", SPECIALISING)
def test_what_turns_a_size_into_a_plain_value_guards_it(name):
    t = Tracing(a=6)
    assert SPECIALISING[name](t.a) == SPECIALISING[name](6)
    assert t.guards == ["a.shape[0] == 6"]


def test_what_a_program_may_do_with_an_int_it_may_do_with_a_size():
    t = Tracing(a=6, b=3)
    assert isinstance(t.a, int) and isinstance(t.a, torch.SymInt) and copy.deepcopy(t.a) is t.a
    assert repr(math.prod((t.a, t.b))) == "a.shape[0]*b.shape[0]" and repr(sum((t.a, t.b))) == "a.shape[0] + b.shape[0]"
    assert divmod(t.a, 4)[0].hint == 1 and t.a is not None and not t.a == None and t.a < math.inf  # noqa: E711
    assert repr(torch.sym_max(t.a, t.b)) == "max(a.shape[0], b.shape[0])" and type(round(t.a)) is SymInt
    assert t.guards == []
    assert t.a > 2.5 and t.a == 6.0
    assert t.guards == ["a.shape[0] == 6"]


def test_shapes_compare_as_one_condition():
    t = Tracing(a=6, b=3)
    shape = Size((t.a, t.b, 2))
    assert isinstance(shape, torch.Size) and repr(shape.numel()) == "2*a.shape[0]*b.shape[0]"
    assert shape[:2] == (t.a, t.b) and len((1, *shape)) == 4 and isinstance(Size((1, 2)), torch.Size) and t.guards == []
    assert shape != (6, 4, 2)
    assert t.guards == ["a.shape[0] != 6 or b.shape[0] != 4"]
    assert shape == (6, 3, 2) and t.guards == ["a.shape[0] == 6", "b.shape[0] == 3"]


def test_expr_of_takes_what_stands_for_an_int():
    t = Tracing(a=6)
    assert expr_of(True) == number(1) and expr_of(2.0) is None and expr_of(t.a > 3).hint == 1
