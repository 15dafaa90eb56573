"""`per_dimension` and `symbolic`: which guards a program's looks at sizes leave, and what stays an expression."""

import copy
import itertools
import json
import math
import warnings

import pytest
import torch
from torch import nn

import dynguard_lite as dg
from dynguard_lite.formulas import registry
from dynguard_lite.precision import same


def guards(fn, *args, analysis="symbolic"):
    return [g.code for g in dg.trace(fn, *args, analysis=analysis).guards]


def matrices():
    return torch.randn(3, 4), torch.randn(4, 5)


def reads(dim):
    def program(A, B):
        C = A @ B
        return C * 2 if C.shape[dim] == (3, 5)[dim] else C

    return program


@pytest.mark.parametrize("analysis", ["per_dimension", "symbolic"])
def test_a_dimension_of_a_product_comes_from_one_dimension_of_one_matrix(analysis):
    assert guards(reads(0), *matrices(), analysis=analysis) == ["A.shape[0] == 3"]
    assert guards(reads(1), *matrices(), analysis=analysis) == ["B.shape[1] == 5"]
    t = dg.trace(reads(0), *matrices(), analysis=analysis)
    assert t.status == {"A": ("static", "dynamic"), "B": ("dynamic", "dynamic")}
    assert t.accepts(torch.randn(3, 7), torch.randn(7, 2)) and not t.accepts(torch.randn(2, 4), torch.randn(4, 5))
    assert "C.shape[dim] ==" in t.guards._guards[0].cause.text


def test_per_dimension_turns_a_dimension_static_by_the_very_look():
    def looks(A, B):
        C = A @ B
        C.shape[0]
        return C

    assert guards(looks, *matrices(), analysis="per_dimension") == ["A.shape[0] == 3"]
    assert guards(looks, *matrices()) == []  # symbolic: nothing was decided
    assert guards(lambda A, B: (A @ B).size(-1), *matrices(), analysis="per_dimension") == ["B.shape[1] == 5"]
    assert guards(lambda A, B: (A @ B).shape[1:], *matrices(), analysis="per_dimension") == ["B.shape[1] == 5"]


def test_an_expression_passed_on_is_computed_again_at_replay():
    def program(x):
        return x.view(x.shape[0] * 2, -1), torch.zeros(x.shape[0], 3), x * x.shape[1], x.shape, x.numel() // 2

    t = dg.trace(program, torch.randn(4, 6))
    assert list(t.guards) == [] and t.output[3:] == (torch.Size([4, 6]), 12)
    for shape in [(6, 2), (1, 8), (3, 0), (4, 6)]:
        x = torch.randn(shape)
        assert same(t(x), program(x)) and type(t(x)[3]) is torch.Size
    assert "v_view(x, 2*x.shape[0], -1)" in str(t.graph)


def test_a_replay_uses_the_sizes_on_entry_and_leaves_resized_inputs_alone():
    def program(x):
        n = x.shape[0]
        x.unsqueeze_(0)
        return torch.zeros(n), x.shape[0], x.shape[1]

    t = dg.trace(program, torch.randn(4))
    assert list(t.guards) == [] and same(t(torch.randn(6)), program(torch.randn(6)))


#: Python with a size: what is exact without a guard.
SYMBOLIC = {
    "arithmetic on either side": lambda n, m: (n + 1, 1 + n, n - m, 7 - n, 2 * n, n * m, -n, +n, abs(n - 9), n**2),
    "division": lambda n, m: (n // 2, n % 3, (n * m) // 2, divmod(n + 1, 2), -(-n // 2)),
    "sum and prod": lambda n, m: (sum([n, m, 2]), math.prod([n, m])),
    "sym_max": lambda n, m: (torch.sym_max(n, m), torch.sym_min(n, 3), torch.sym_sum([n, m, 1])),
    "copies and containers": lambda n, m: (copy.copy(n), copy.deepcopy({"n": [n, m]}), (n, *(m,))),
    "an int in every test": lambda n, m: (isinstance(n, int), hasattr(n, "bit_length"), n == 2.5, n < math.inf, n is None),
    "broadcast_shapes": lambda n, m: torch.broadcast_shapes((n, 1), (1, m)),
    "rounding up": lambda n, m: (math.floor(n + 1) if False else n + 1, round(n)),
}
#: What becomes a plain value: sound, at the price of a guard.
SPECIALISING = {
    "int": lambda n, m: int(n) + m,
    "range": lambda n, m: list(range(n)),
    "a list index": lambda n, m: list(range(20))[n],
    "list times size": lambda n, m: [0] * n,
    "float division": lambda n, m: n / 4,
    "math": lambda n, m: (math.sqrt(n), math.log2(n + 1), math.gcd(n, m), math.ceil(n / 2)),
    "f-strings": lambda n, m: len(f"{n:03d} {m}"),
    "text": lambda n, m: len(str(n) + repr(int(m))),
    "text of a list": lambda n, m: int(f"{[n, m]}" == "[4, 3]") + int(repr(n) == "4") + int(f"{(n, m)!r}" == "(4, 3)"),
    "a dict key": lambda n, m: {n: 1, 4: 2}.get(4, 0),
    "a set": lambda n, m: len({n, m, 3}),
    "max": lambda n, m: (max(n, m), min(n, 3)),
    "sorted": lambda n, m: sorted([n, 3, m]),
    "bits": lambda n, m: (n & 1, n | m, n ^ 3, n << 1, 8 >> n, ~n, int(n).bit_length()),
    "in": lambda n, m: (n in (2, 4), 3 in [n, m]),
    "chained": lambda n, m: 2 < n <= m,
    "not, and, or": lambda n, m: (not n, n and m, (n > 2) & (m > 2) and 1, (n > 3) | (m == 2) and 1),
    "bool of a comparison": lambda n, m: (bool(n > m), int(n == m), (n < m) + 1),
    "a tuple's comparison": lambda n, m: ((n, m) == (4, 3), (n, 3) < (m, 4)),
    "json": lambda n, m: len(json.dumps([int(n)])),
    "pow": lambda n, m: (2**n, n**m, pow(n, 2, 5)),
    "complex and float": lambda n, m: (float(n), complex(m)),
}


@pytest.mark.parametrize("analysis", ["per_dimension", "symbolic"])
@pytest.mark.parametrize("name", [*SYMBOLIC, *SPECIALISING])
def test_python_with_a_size_is_exact_or_guarded(name, analysis):
    fn = {**SYMBOLIC, **SPECIALISING}[name]

    def program(x):
        return fn(x.shape[0], x.shape[1])

    t = dg.trace(program, torch.randn(4, 3), analysis=analysis)
    accepted = 0
    for n, m in itertools.product(range(7), repeat=2):
        x = torch.randn(n, m)
        if t.accepts(x):
            accepted += 1
            assert same(t(x), program(x)), (n, m)
    assert accepted == (49 if name in SYMBOLIC and analysis == "symbolic" else accepted) and accepted >= 1
    if name in SPECIALISING:
        assert accepted < 49


@pytest.mark.parametrize("analysis", ["per_dimension", "symbolic"])
def test_the_text_of_a_shape_is_a_look_at_all_of_it(analysis):
    for text in (str, repr, "{}".format, lambda s: f"{s}", lambda s: f"{list(s)}"):
        t = dg.trace(lambda x, text=text: x * 2 if "6, 3]" in text(x.shape) else x, torch.randn(6, 3), analysis=analysis)
        assert torch.equal(t.replay(torch.ones(6, 3)), torch.full((6, 3), 2.0))
        assert t.accepts(torch.ones(6, 3)) and not t.accepts(torch.ones(6, 2)) and not t.accepts(torch.ones(5, 3))


def test_a_comparison_guards_its_own_outcome():
    def program(a, b):
        c = torch.cat([a, b])
        if c.shape[0] > 5 and a.shape[0] != b.shape[0]:
            return c * 2
        return c

    assert guards(program, torch.randn(4), torch.randn(3)) == ["a.shape[0] + b.shape[0] > 5", "a.shape[0] != b.shape[0]"] or \
        guards(program, torch.randn(4), torch.randn(3)) == ["a.shape[0] + b.shape[0] > 5", "a.shape[0] - b.shape[0] != 0"]  # fmt: skip
    assert guards(program, torch.randn(2), torch.randn(3)) == ["a.shape[0] + b.shape[0] <= 5"]
    t = dg.trace(program, torch.randn(4), torch.randn(3))
    assert t.status == {"a": ("constrained",), "b": ("constrained",)}


def test_implied_and_duplicate_guards_are_dropped():
    def program(x):
        n = x.shape[0]
        assert n > 3 and n > 3 and n >= 2 and n <= 8 and n != 20 and 2 * n >= 8
        return x

    assert guards(program, torch.randn(5)) == ["3 < x.shape[0] <= 8"]

    def pinned(x):
        assert x.shape[0] == 5 and x.shape[0] > 3 and x.shape[0] * 2 != 7
        return x

    assert guards(pinned, torch.randn(5)) == ["x.shape[0] == 5"]
    assert guards(lambda x: x if x.shape[0] >= 5 and x.shape[0] <= 5 else -x, torch.randn(5)) == ["x.shape[0] == 5"]
    def always(x):
        n = x.shape[0]
        return x if torch.sym_max(n, 0) == n and 8 * n >= 2 * n else -x

    assert guards(always, torch.randn(5)) == []


def test_broadcasting_is_no_branch():
    t = dg.trace(lambda a, b: torch.zeros((a + b).shape[0]), torch.randn(4), torch.randn(4))
    assert list(t.guards) == []
    assert [t(torch.randn(n), torch.randn(m)).shape[0] for n, m in [(1, 5), (5, 1), (3, 3), (1, 0)]] == [5, 5, 3, 0]
    assert guards(lambda a, b: a if (a + b).shape[0] == 4 else b, torch.randn(4), torch.randn(4)) == [
        "broadcast(a.shape[0], b.shape[0]) == 4"]  # fmt: skip
    same_shape = dg.trace(lambda a, b: a if a.shape == b.shape else b, torch.randn(4, 2), torch.randn(4, 3))
    assert [g.code for g in same_shape.guards] == ["a.shape[0] != b.shape[0] or a.shape[1] != b.shape[1]"]


def test_a_rank_that_depends_on_sizes_guards_which_sizes_are_one():
    assert guards(lambda x: x.squeeze().dim(), torch.randn(1, 3)) == ["x.dim() == 2", "x.shape[0] == 1", "x.shape[1] != 1"]


def test_ranks_and_an_index_dtype_are_taken_for_granted_but_checked():
    t = dg.trace(lambda x, i: x[i].shape[0], torch.randn(4), torch.tensor([0, 1]))
    assert list(t.guards) == [] and t(torch.randn(9), torch.tensor([1, 2, 3])) == 3
    assert [g.code for g in t.failing(torch.randn(4, 2), torch.tensor([0, 1]))] == ["x.dim() == 1"]
    assert [g.code for g in t.failing(torch.randn(2), torch.tensor([True, False]))] == ["i.dtype == torch.int64"]
    with pytest.raises(dg.GuardFailure, match="expected 1, got 2"):
        t(torch.randn(4, 2), torch.tensor([0]))


def test_strides_pin_what_they_follow_from():
    for analysis in ("per_dimension", "symbolic"):
        t = dg.trace(lambda x: x.t().stride(), torch.randn(2, 3), analysis=analysis)
        assert t.accepts(torch.randn(2, 3)) and not t.accepts(torch.randn(2, 4)) and not t.accepts(torch.randn(3, 2).t())


def test_torch_check_is_a_guard_and_its_failure_is_the_programs():
    def program(x):
        torch._check(x.shape[0] > 2, lambda: "too short")
        return x

    assert guards(program, torch.randn(4)) == ["x.shape[0] > 2"]
    with pytest.raises(RuntimeError, match="too short"):
        dg.trace(program, torch.randn(1))


def test_an_op_without_a_formula_is_conservative():
    def program(x, y):
        z = torch.cov(x) if False else torch.linalg.eigvals(x @ y)
        return z if z.shape[0] == 3 else -z

    for analysis in ("per_dimension", "symbolic"):
        t = dg.trace(program, torch.randn(3, 4), torch.randn(4, 3), analysis=analysis)
        assert set(t.status["x"]) == {"static", "dynamic"} or t.status["x"] == ("static", "static")
        assert t.accepts(torch.randn(3, 4), torch.randn(4, 3)) and not t.accepts(torch.randn(2, 4), torch.randn(4, 2))


@pytest.fixture
def own_formulas(monkeypatch):
    monkeypatch.setattr(registry, "_by_name", dict(registry._by_name))
    monkeypatch.setattr(registry, "_by_function", dict(registry._by_function))


@torch.library.custom_op("dynguard_lite_tests::doubled", mutates_args=())
def doubled(x: torch.Tensor) -> torch.Tensor:
    return torch.cat([x, x])


def test_readers_add_a_formula_and_override_ours(own_formulas):
    def program(x):
        y = doubled(x)
        return y * 2 if y.shape[0] > 4 else y

    assert guards(program, torch.randn(3, 2)) == ["x.shape[0] == 3", "x.shape[1] == 2"]
    calls = []

    @dg.formula(doubled)
    def formula(x):
        calls.append(x)
        return (2 * x[0], *x[1:])

    assert guards(program, torch.randn(3, 2)) == ["x.shape[0] > 2"] and len(calls) == 1

    @dg.formula("relu")
    def wrong(input):
        return (input[0] + 1, *input[1:])

    with pytest.warns(UserWarning, match="the shape formula of v_relu is wrong.*it says.*PyTorch"):
        assert guards(lambda x: x if x.relu().shape[0] > 2 else -x, torch.randn(3, 2)) == ["x.shape[0] == 3", "x.shape[1] == 2"]

    @dg.formula("relu")
    def raises(input):
        raise KeyError("oops")

    with pytest.warns(UserWarning, match="it raised KeyError"):
        assert guards(lambda x: x if x.relu().shape[0] > 2 else -x, torch.randn(3)) == ["x.shape[0] == 3"]
    with pytest.raises(TypeError, match="name the torch functions"):
        dg.formula()


def test_a_formula_runs_when_a_size_is_looked_at_and_once(own_formulas):
    calls = []

    @dg.formula("relu")
    def formula(input):
        calls.append(input)
        return input

    def program(x):
        y = x.relu()
        for _ in range(3):
            y = y + y.shape[0] * y.shape[1]
        return y

    dg.trace(lambda x: x.relu() * 2, torch.randn(3, 2))
    assert calls == []
    dg.trace(program, torch.randn(3, 2))
    assert len(calls) == 1


def test_modules_stay_dynamic_in_batch_and_length():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    x = torch.randn(2, 5, 8)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        t = dg.trace(layer, x)
        for shape in [(3, 7, 8), (1, 1, 8), (2, 5, 8)]:
            y = torch.randn(shape)
            assert t.accepts(y) and torch.allclose(t(y), layer(y), atol=1e-6)
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(1))
    assert [g for g in guards(net, torch.randn(2, 3, 9, 9)) if "shape" in g] == []
    t = dg.trace(lambda x: net(x).shape, torch.randn(2, 3, 9, 9))
    assert t(torch.randn(5, 3, 12, 7)) == net(torch.randn(5, 3, 12, 7)).shape


def test_one_hundred_thousand_looks_are_one_pass():
    def program(x):
        for _ in range(2000):
            x = x + x.shape[0]
        return x

    t = dg.trace(program, torch.randn(3))
    assert list(t.guards) == [] and torch.equal(t(torch.zeros(5)), program(torch.zeros(5)))

    def deep(x):
        for _ in range(20_000):
            x = x + 1
        return x.reshape(x.shape[0], -1)

    assert dg.trace(deep, torch.randn(3)).accepts(torch.randn(7))
