"""What a trace accepts: what the program looked at is guarded, and what it did not look at isn't."""

import collections
import dataclasses
import math

import pytest
import torch
from torch import nn

import dynguard_lite as dg

X = torch.randn(3, 4)
ALL = dg.ANALYSES


def codes(t):
    return [g.code for g in t.guards]


def test_a_program_that_looks_at_nothing_has_no_guard():
    t = dg.trace(lambda a, b: a * b, torch.randn(4), torch.randn(4), analysis="whole_tensor")
    assert list(t.guards) == [] and len(t.guards) == 0
    assert t.status == {"a": ("dynamic",), "b": ("dynamic",)}
    assert t.accepts(torch.randn(5), torch.randn(1)) and t.accepts(torch.randn(2, 7), torch.randn(7))


METADATA = {
    "dtype": (lambda x: x * 2 if x.dtype == torch.float32 else x, X.double(), X.double().sum()),
    "dtype of a result": (lambda x: x * 2 if (x + 1).dtype == torch.float32 else x, X.double(), X.int()),
    "is_floating_point": (lambda x: x * 2 if x.is_floating_point() else x, X.int(), X.bool()),
    "rank": (lambda x: x.sum(-1) if x.dim() == 2 else x, X[0], X[None]),
    "ndim of a result": (lambda x: x.sum(-1) if (x * 2).ndim == 2 else x, X[0], X[None]),
    "requires_grad": (lambda x: x.detach() if not x.requires_grad else x * 2, X.clone().requires_grad_(), None),
    "requires_grad of a result": (lambda x: x.detach() if not (x * 2).requires_grad else x * 3,
                                  X.clone().requires_grad_(), None),
    "contiguity": (lambda x: x * 2 if x.is_contiguous() else x, torch.randn(4, 3).T, None),
    "contiguity of a result": (lambda x: x * 2 if x.T.is_contiguous() else x, torch.randn(4, 3).T, None),
    "stride": (lambda x: x * x.stride(0), torch.randn(4, 3).T, None),
    "device": (lambda x: x * 2 if x.device.type == "cpu" else x, torch.empty(3, 4, device="meta"), None),
    "is_sparse": (lambda x: x.to_dense() if x.is_sparse else x * 2, X.to_sparse(), None),
    "a gradient": (lambda x: x * 2 if x.grad is None else x, "with grad", None),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", METADATA)
def test_metadata_that_a_program_looks_at_is_guarded(name):
    fn, other, third = METADATA[name]
    t = dg.trace(fn, X)
    assert t.accepts(torch.randn(3, 4)), t.failing(torch.randn(3, 4))
    if isinstance(other, str):
        other = X.clone().requires_grad_()
        other.sum().backward()
    assert not t.accepts(other)
    assert third is None or not t.accepts(third)
    assert all(g.cause.file == __file__ and "lambda" in g.cause.text for g in t.guards)


def test_metadata_that_a_program_does_not_look_at_is_not_guarded():
    t = dg.trace(lambda x: x * 2, X)
    for other in (X.double(), X.int(), X[0], X.clone().requires_grad_(), torch.randn(4, 3).T):
        assert t.accepts(other) and torch.equal(t(other), other * 2) and t(other).dtype == (other * 2).dtype


def test_the_rank_of_a_squeeze_follows_from_sizes():
    t = dg.trace(lambda x: x * 2 if x.squeeze().dim() == 1 else x, torch.randn(1, 3))
    assert t.accepts(torch.randn(1, 3)) and not t.accepts(torch.randn(2, 3))


@pytest.mark.parametrize("analysis", dg.ANALYSES[1:])
@pytest.mark.parametrize("split", [lambda x: x.split(2), lambda x: torch.chunk(x, 2), iter, torch.Tensor.unbind,
                                   lambda x: x.split([1, x.shape[0] - 1]) if x.shape[0] > 1 else (x,)])  # fmt: skip
def test_the_number_of_pieces_follows_from_sizes(split, analysis):
    def count(n):
        return len(list(split(torch.randn(n))))

    t = dg.trace(lambda x: next(iter(split(x))), torch.randn(4), analysis=analysis)
    for n in range(1, 9):
        accepted = t.accepts(torch.randn(n))
        assert not accepted or count(n) == count(4)
        assert accepted or count(n) != count(4) or analysis != "symbolic"


AMBIENT = {
    "grad mode looked at": (lambda x: x * 2 if torch.is_grad_enabled() else x, torch.no_grad),
    "grad mode set": (lambda x: (_no_grad_inside(x), x * 2), torch.no_grad),
    "autocast looked at": (lambda x: x if torch.is_autocast_enabled("cpu") else x * 2, lambda: torch.autocast("cpu")),
    "autocast set": (lambda x: _autocast_inside(x) + x @ x.T, lambda: torch.autocast("cpu")),
    "inference mode": (lambda x: x if torch.is_inference_mode_enabled() else x * 2, torch.inference_mode),
    "default dtype": (lambda x: x.to(torch.get_default_dtype()), lambda: _default_dtype(torch.float64)),
}


def _no_grad_inside(x):
    with torch.no_grad():
        return x + 1


def _autocast_inside(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return (x @ x.T).float()


class _default_dtype:
    def __init__(self, dtype):
        self.dtype = dtype

    def __enter__(self):
        self.before = torch.get_default_dtype()
        torch.set_default_dtype(self.dtype)

    def __exit__(self, *exc):
        torch.set_default_dtype(self.before)


@pytest.mark.parametrize("name", AMBIENT)
def test_ambient_state_that_decides_a_result_is_guarded(name):
    fn, state = AMBIENT[name]
    t = dg.trace(fn, X)
    assert t.accepts(X) and {g.kind for g in t.guards} == {"ambient"}
    with state():
        assert not t.accepts(X)
        inside = dg.trace(fn, X)
        assert inside.accepts(X)
    assert not inside.accepts(X)


def test_ambient_state_that_nobody_looks_at_reaches_the_replay():
    t = dg.trace(lambda x: torch.zeros(2) + (x @ x.T).sum(), X)
    assert not list(t.guards)
    with torch.autocast("cpu"):
        assert t(X).dtype == (torch.zeros(2) + (X @ X.T).sum()).dtype
    with _default_dtype(torch.float64):
        assert t(X).dtype == torch.float64


NAN = float("nan")


@pytest.mark.parametrize("analysis", ALL)
@pytest.mark.parametrize(
    "value, others",
    [
        (3, [4, 3.0, True, "3", None, torch.tensor(3)]),
        (True, [1, False, 1.0]),
        (0.0, [-0.0, 0, 1e-9]),
        (NAN, [0.0, math.inf]),
        (-math.inf, [math.inf]),
        ("sum", ["mean", b"sum"]),
        (None, [0, False]),
        (torch.float32, [torch.float64]),
        (torch.device("cpu"), ["cpu", torch.device("meta")]),
        (2 + 0j, [2]),
        (slice(1, None), [slice(1, 2), slice(0, None)]),
        ([1, 2], [[1], (1, 2), [1, 3]]),
        ((), [[], (1,)]),
        ({"a": 1}, [{"a": 2}, {"b": 1}, {"a": 1, "b": 2}]),
        (range(3), [range(4)]),
        (nn.ReLU, [nn.GELU]),
        (math.sin, [math.cos]),
    ],
)
def test_arguments_that_are_no_tensors_are_guarded_by_equality_and_type(value, others, analysis):
    t = dg.trace(lambda x, c: x * 2, X, value, analysis=analysis)
    assert t.accepts(X, value)
    for other in others:
        assert not t.accepts(X, other), other
        assert t.failing(X, other)
        with pytest.raises(dg.GuardFailure):
            t(X, other)


def test_structure_is_guarded():
    point = dataclasses.make_dataclass("Point", ["x", "y"])
    t = dg.trace(lambda d: d["a"][0] + d["p"].x, {"a": [X, X], "p": point(X, 1)})
    good = {"a": [X, X], "p": point(X, 1)}
    assert t.accepts(good) and not t.failing(good)
    for bad in (
        {"a": [X], "p": point(X, 1)},
        {"a": (X, X), "p": point(X, 1)},
        {"a": [X, X, X], "p": point(X, 1)},
        {"a": [X, 1], "p": point(X, 1)},
        {"a": [X, X], "p": point(X, 2)},
        {"a": [X, X], "p": X},
        {"a": [X, X]},
        {"p": point(X, 1), "a": [X, X]},
        [X],
        X,
        None,
    ):
        assert not t.accepts(bad), bad
        assert t.failing(bad)


def test_arguments_that_python_could_not_bind_are_a_type_error_as_for_the_program():
    t = dg.trace(lambda x, *, by=1: x * by, X)
    for call in (t, t.accepts, t.failing, t.replay):
        with pytest.raises(TypeError):
            call()
        with pytest.raises(TypeError):
            call(X, 2)
        with pytest.raises(TypeError):
            call(X, to=2)
    assert t.accepts(x=X, by=1) and not t.accepts(x=X, by=2)


@pytest.mark.parametrize("name", "torch math isinstance locals type _paths check list len repr".split())
def test_an_argument_may_have_any_name(name):
    fn = eval(f"lambda {name}, n: {name}['a'] + {name}['a'].shape[0]")
    t = dg.trace(fn, {"a": X}, 2.0, analysis="whole_tensor")
    assert t.accepts({"a": X}, 2.0) and not t.accepts({"a": X[:1]}, 2.0) and not t.accepts({"a": X}, 3.0)
    assert torch.equal(t({"a": X}, 2.0), X + 3)


def test_a_guard_is_python_and_names_its_cause():
    def fn(a, b):
        if a.shape[0] == 3:
            return a + b
        return a - b

    t = dg.trace(fn, X, X, analysis="whole_tensor")
    (guard,) = t.guards
    assert guard.code == "a.shape == (3, 4)" == str(guard)
    assert eval(guard.code, {"a": X}) is True and eval(guard.code, {"a": X.T}) is False
    assert guard.cause.file == __file__ and guard.cause.text == "if a.shape[0] == 3:"
    assert guard.cause.line == fn.__code__.co_firstlineno + 1
    assert str(guard.cause) == f"test_guards.py:{guard.cause.line}: if a.shape[0] == 3:"


def test_the_same_condition_is_guarded_once_with_its_first_cause():
    def fn(a):
        n = a.shape[0]
        m = a.size(1)
        return a * (n + m)

    (guard,) = dg.trace(fn, X, analysis="whole_tensor").guards
    assert guard.cause.text == "n = a.shape[0]"


def test_a_failure_names_each_guard_expected_and_got():
    t = dg.trace(lambda a, b, scale: a.shape + b.shape, X, X.T, 2, analysis="whole_tensor")
    with pytest.raises(dg.GuardFailure) as refused:
        t(X[:2], X, 5)
    message = str(refused.value)
    assert [g.code for g in refused.value.failing] == [g.code for g in t.failing(X[:2], X, 5)]
    assert len(refused.value.failing) == 3
    for words in ("a.shape == (3, 4)", "torch.Size([2, 4])", "b.shape == (4, 3)", "scale == 2", "expected 2, got 5"):
        assert words in message
    assert message.count("test_guards.py") == 3


def test_a_tensor_argument_has_to_be_a_tensor():
    t = dg.trace(lambda a, b: a * b, X, X)
    assert not t.accepts(X, 3)
    assert [g.code for g in t.failing(X, 3)] == ["isinstance(b, torch.Tensor)"]
    with pytest.raises(dg.GuardFailure, match="expected a tensor, got 'int'"):
        t(X, 3)


def test_static_guards_every_parameter_and_blind_none():
    args = (X, torch.randn(4))
    static = dg.trace(lambda a, b: a * b, *args, analysis="static")
    assert codes(static) == ["a.shape == (3, 4)", "b.shape == (4,)"]
    assert set(static.status.values()) == {("static", "static"), ("static",)}
    assert all(g.cause.file == __file__ for g in static.guards)
    blind = dg.trace(lambda a, b: a * b.shape[0] if a.dtype == torch.float32 else a, *args, analysis="blind")
    assert codes(blind) == [] and blind.accepts(X.double(), X)


def programs():
    def rows(a, b):
        return a + b if a.shape[0] == 2 else a * b

    def product(a, b):
        c = a * b
        return c.sum(0) if c.shape[-1] > 1 else c.sum(1)

    def loop(a, b):
        for i in range(len(b)):
            a = a + i
        return a * b.numel()

    def ranks(a, b):
        c = (a * b).squeeze()
        return c.sum(0) if c.dim() == 2 else c * 2

    return [rows, product, loop, ranks]


@pytest.mark.parametrize("fn", programs(), ids=lambda f: f.__name__)
@pytest.mark.parametrize("analysis", ["static", "whole_tensor", "blind"])
def test_sound_on_a_grid(fn, analysis):
    """Wherever the guards accept and eager runs, replay equals eager; `blind` is caught out by the same test."""
    sizes = range(4)
    shapes = [(p, q) for p in sizes for q in sizes]
    wrong = collections.Counter()
    for traced in [((2, 3), (2, 3)), ((1, 3), (2, 1)), ((1, 1), (1, 1)), ((0, 2), (1, 2))]:
        t = dg.trace(fn, *map(torch.ones, traced), analysis=analysis)
        for a in shapes:
            for b in shapes:
                args = torch.full(a, 2.0), torch.full(b, 3.0)
                try:
                    want = fn(*args)
                except (RuntimeError, IndexError):
                    continue
                if t.accepts(*args):
                    try:
                        got = t.replay(*args)
                    except (RuntimeError, IndexError):
                        got = None
                    wrong[got is None or not torch.equal(got, want)] += 1
    assert wrong[False] > 0
    assert (wrong[True] > 0) == (analysis == "blind")


@pytest.mark.parametrize("dtype", [torch.bool, torch.bfloat16, torch.float16, torch.int8, torch.complex64], ids=str)
def test_every_dtype_can_be_guarded(dtype):
    """torch.bool and torch.bfloat16 are names of Tensor methods too."""
    x = torch.ones(2, dtype=dtype)
    t = dg.trace(lambda x: x + x if x.dtype == dtype else x, x, analysis="whole_tensor")
    assert [g.code for g in t.guards] == [f"x.dtype == {dtype}"]
    assert t.accepts(x) and not t.accepts(torch.ones(2, dtype=torch.float64)) and not t.failing(x)


def test_the_check_is_shown_as_the_function_that_runs():
    def program(x, scale=2.0):
        return x * scale if x.shape[0] > 3 else x

    t = dg.trace(program, torch.ones(4))
    scope = {"torch": torch, "_default_scale": 2.0}
    exec(t.guards.code, scope)
    for n in range(6):
        assert scope["check"](torch.ones(n)) == t.accepts(torch.ones(n)) == (n > 3)
    assert not scope["check"](torch.ones(4), 3.0)
