"""Recording any torch call: what a replay computes is what eager computes."""

import contextlib
import copy
import dataclasses
import functools
from collections import namedtuple

import numpy as np
import pytest
import torch
from torch import nn

import dynguard_lite as dg
from dynguard_lite.tree import leaves, map_tree


def copies(value):
    return map_tree(lambda t: t.detach().clone().requires_grad_(t.requires_grad), value, torch.Tensor)


def same(got, want):
    got, want = leaves(got), leaves(want)
    return len(got) == len(want) and all(
        torch.equal(a, b) and a.dtype == b.dtype and a.requires_grad == b.requires_grad
        if isinstance(b, torch.Tensor)
        else type(a) is type(b) and a == b
        for a, b in zip(got, want, strict=True)
    )


def check(fn, *args, **kwargs):
    """Trace, then replay on other values of the same shapes: outputs and changed inputs equal eager's."""
    t = dg.trace(fn, *copies(args), **copies(kwargs))
    other = map_tree(lambda t: t * 2 if t.is_floating_point() else t, (copies(args), copies(kwargs)), torch.Tensor)
    other = copies(other)
    eager = copies(other)
    torch.manual_seed(1)
    want = fn(*eager[0], **eager[1])
    torch.manual_seed(1)
    got = t(*other[0], **other[1])
    assert same(got, want), (got, want)
    assert same(other, eager), "in-place changes of the inputs"
    return t


X = torch.arange(12.0).reshape(3, 4) - 5
WEIGHT = torch.arange(4.0)
Pair = namedtuple("Pair", "left right")


@dataclasses.dataclass(frozen=True)
class Batch:
    ids: torch.Tensor
    scale: int = 2


def store_through_views(x):
    x = x.clone()
    x[0] = 1
    x[:, 1] *= 2
    x += 1
    row = x[0]
    row.add_(1)
    torch.add(x, x, out=x)
    nn.functional.relu(x, inplace=True)
    return x, row


def change_input(x):
    x.add_(1)
    x[0, 0] = 7
    x.T.mul_(2)


def flip_shape_in_place(x):
    x = x.clone()
    x.t_().unsqueeze_(0)
    return x @ x.mT


def seeded(x):
    torch.manual_seed(3)
    return x + torch.rand(3, 4)


def without_grad(x):
    y = x * 2
    with torch.no_grad():
        z = y * 3
    return z, z + y


def with_autocast(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ x.T
    return y, x @ x.T


class Fivefold(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 5


PROGRAMS = {
    "properties": lambda x: (x.T, x.mT, x.H, x.real, x.data, x.abs().neg()),
    "operators": lambda x: (x + 1, 2 - x, 2 / (x + 9), 2.0**x, 2 // (x + 9), x % 2, -x, abs(x), x @ x.T, x > 1, x == x),
    "logic": lambda x: (~(x > 0), (x > 0) & (x < 1), True | (x > 0), (x > 0) ^ True),
    "indexing": lambda x: (x[0], x[:, 1:], x[..., None], x[[0, 1]], x[torch.tensor([0, 2])], x[x.argmax() // 4]),
    "several results": lambda x: (x.max(dim=1), x.max(dim=1).values, torch.topk(x, 2), x.split(2), x.unbind(1)),
    "iteration": lambda x: sum(row * 2 for row in x),
    "factories": lambda x: torch.zeros(x.shape[0], 4) + torch.arange(4) + torch.ones_like(x) + torch.eye(4)[0],
    "a closure": lambda x: x * WEIGHT + WEIGHT * 2,
    "random numbers": lambda x: x + torch.rand(3, 4) + torch.rand_like(x) + nn.functional.dropout(x),
    "a seed": seeded,
    "views": store_through_views,
    "a changed input": change_input,
    "a changed shape": flip_shape_in_place,
    "no_grad": without_grad,
    "autocast": with_autocast,
    "an autograd function": lambda x: Fivefold.apply(x) + 1,
    "tensors as numbers": lambda x: torch.arange(x.argmax()) + x[: x.argmin() + 1].sum(),
    "a tensor of tensors": lambda x: torch.tensor([x[0, 0], x[0, 1], 3.0]),
    "isinstance": lambda x: x * 2 if isinstance(x, torch.Tensor) and torch.is_tensor(x) else None,
    "nested outputs": lambda x: {"a": (x, [x.shape, 3, None, 2.5]), "b": Pair(x, x + 1), "c": Batch(x)},
    "an input returned": lambda x: x,
    "a constant returned": lambda x: WEIGHT,
    "printing": lambda x: (f"{x}", x * 2)[1],
    "identity": lambda x: x + 1 if x.contiguous() is not None and x.mul_(1) is x else x,
    "einsum": lambda x: torch.einsum("ij,kj->ik", x, x),
    "deepcopy": lambda x: copy.deepcopy(x) + 1,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    check(PROGRAMS[name], X)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (0, 3), (1, 0, 2)])
def test_sizes_0_and_1_and_rank_0(shape):
    t = check(lambda x: (x * 2, x.sum(), torch.stack([x, x]), x.unsqueeze(0)), torch.randn(shape))
    assert len(t.status["x"]) == len(shape)


def test_gradients_flow_through_a_replay():
    x = X.clone().requires_grad_()
    t = dg.trace(lambda x: Fivefold.apply(x).sum() + (x * x).sum(), x)
    t(x).backward()
    assert torch.equal(x.grad, 5 + 2 * x.detach())


@pytest.mark.parametrize(
    "fn, args, kwargs, parameters",
    [
        (lambda batch: batch["ids"] * batch["n"] + batch["more"][0], ({"ids": X, "n": 3, "more": [X]},), {},
         ["batch['ids']", "batch['more'][0]"]),
        (lambda b: b.ids * b.scale, (Batch(X),), {}, ["b.ids"]),
        (lambda p: p.left + p.right, (Pair(X, X),), {}, ["p[0]", "p[1]"]),
        (lambda *xs: torch.cat(xs), (X, X), {}, ["xs[0]", "xs[1]"]),
        (lambda x, *, by=1.0, **rest: x * by + rest["z"], (X,), {"by": 2.0, "z": X}, ["x", "rest['z']"]),
        (lambda a, b: a.clone().add_(b), (X, X), {}, ["a", "b"]),
        (lambda a, unused: a * 2, (X, X), {}, ["a", "unused"]),
        (torch.add, (X, X), {"alpha": 2}, ["arg0", "arg1"]),
        (functools.partial(torch.sum, dim=1), (X,), {}, None),
        (lambda xs, f: [f(x) for x in xs], ((X, [X]), lambda x: x), {}, ["xs[0]", "xs[1][0]"]),
    ],
)  # fmt: skip
def test_arguments_are_named_as_python_reaches_them(fn, args, kwargs, parameters):
    t = check(fn, *args, **kwargs)
    assert parameters is None or [p.name for p in t.graph.parameters] == parameters


def test_a_registered_pytree_class_is_nested_input():
    class Box:
        def __init__(self, inside):
            self.inside = inside

    torch.utils._pytree.register_pytree_node(
        Box, lambda b: ([b.inside], None), lambda c, _: Box(c[0]),
        flatten_with_keys_fn=lambda b: ([(torch.utils._pytree.GetAttrKey("inside"), b.inside)], None),
    )  # fmt: skip
    t = dg.trace(lambda b: b.inside * 2, Box(X))
    assert list(t.status) == ["b.inside"] and torch.equal(t(Box(X + 1)), (X + 1) * 2)


MODULES = {
    "mlp": (nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 2)), [torch.randn(3, 4)]),
    "cnn": (nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(1),
                          nn.Flatten(), nn.Linear(4, 2)), [torch.randn(2, 3, 8, 8)]),
    "lstm": (nn.LSTM(4, 5, batch_first=True), [torch.randn(2, 3, 4)]),
    "gru cell": (nn.GRUCell(4, 5), [torch.randn(2, 4)]),
    "attention": (nn.MultiheadAttention(8, 2, batch_first=True), [torch.randn(2, 3, 8)] * 3),
    "encoder": (nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 9, batch_first=True), 2), [torch.randn(2, 3, 8)]),
    "transformer": (nn.Transformer(8, 2, 1, 1, 16, batch_first=True), [torch.randn(2, 3, 8), torch.randn(2, 5, 8)]),
    "embedding bag": (nn.EmbeddingBag(10, 3), [torch.randint(0, 10, (2, 3))]),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("training", [False, True])
def test_modules(name, training):
    module, args = MODULES[name]
    module.train(training)
    check(module, *args)


def test_weights_are_constants_named_as_in_the_module():
    module = nn.Sequential(nn.Linear(4, 5), nn.Sequential(nn.Linear(5, 2)))
    t = dg.trace(module, torch.randn(3, 4))
    constants = [n.name for n in t.graph if n.op.name == "v_constant"]
    assert constants == ["0.weight", "0.bias", "1.0.weight", "1.0.bias"]
    assert [n.scope for n in t.graph if n.op.name == "v_linear"] == ["0", "1.0"]
    closed = dg.trace(lambda x: module(x) * WEIGHT[:2], torch.randn(3, 4))
    constants = {n.name for n in closed.graph if n.op.name == "v_constant"}
    assert constants >= {"module.0.weight", "module.1.0.bias", "WEIGHT"}
    with torch.no_grad():
        module[0].weight.zero_()
    x = torch.randn(2, 4)
    assert torch.equal(t(x), module(x))  # a weight is read at replay, not copied


def test_a_module_traced_for_training_is_refused_for_evaluation():
    module = nn.Sequential(nn.Linear(4, 4), nn.Dropout())
    t = dg.trace(module, torch.randn(2, 4))
    assert t.accepts(torch.randn(2, 4))
    module.eval()
    assert not t.accepts(torch.randn(2, 4))


# -- what guards can't cover ---------------------------------------------------------------------


def branch_on_data(x):
    if x.sum() > 0:  # the line to be named
        return x
    return x * 2


REFUSED = {
    "a branch": (branch_on_data, dg.DataDependentError, "torch.where"),
    "item": (lambda x: x * x.sum().item(), dg.DataDependentError, "item"),
    "float": (lambda x: x * float(x[0, 0]), dg.DataDependentError, "float"),
    "int": (lambda x: x * int(x[0, 0]), dg.DataDependentError, "int"),
    "index": (lambda x: [1, 2, 3][x.argmin()], dg.DataDependentError, "index"),
    "tolist": (lambda x: x.tolist(), dg.DataDependentError, "tolist"),
    "numpy": (lambda x: torch.from_numpy(x.numpy()), dg.DataDependentError, "numpy"),
    "a numpy function": (lambda x: np.sin(x), dg.DataDependentError, "array"),
    "equal": (lambda x: x if torch.equal(x, x) else -x, dg.DataDependentError, "equal"),
    "in": (lambda x: x if 1 in x else -x, dg.DataDependentError, "contains"),
    "a weight's data": (lambda x: x * WEIGHT.max().item(), dg.DataDependentError, "item"),
    "a weight itself": (lambda x: x if WEIGHT[0] == 0 else -x, dg.DataDependentError, "torch.where"),
    "while": (lambda x: [x for _ in iter(lambda: bool(x.sum() > 0), True)], dg.DataDependentError, "torch.where"),
    "size of nonzero": (lambda x: x if x.nonzero().shape[0] > 1 else -x, dg.UnbackedSizeError, "mask"),
    "size of a selection": (lambda x: len(x[x > 0] * 2), dg.UnbackedSizeError, "mask"),
    "size of unique": (lambda x: [x] * x.unique().numel(), dg.UnbackedSizeError, "mask"),
    "size by data": (lambda x: torch.arange(x.argmax()).shape == (1,), dg.UnbackedSizeError, "mask"),
    "a loop over rows by data": (lambda x: list(x[x[:, 0] > 0]), dg.UnbackedSizeError, "mask"),
    "a string": (lambda x: "text", dg.OutputError, "str"),
    "a dtype": (lambda x: {"a": [x, x.dtype]}, dg.OutputError, "result['a'][1]"),
    "a generator": (lambda x: (r for r in [x]), dg.OutputError, "generator"),
    "a function transform": (lambda x: torch.func.vmap(torch.sin)(x), dg.TraceError, "torch.func"),
    "a bypass": (lambda x: torch.Tensor(x), dg.TraceError, "bypass"),
    "a state left": (lambda x: torch.set_default_dtype(torch.float64), dg.TraceError, "with"),
    "a generator state": (lambda x: x + torch.seed(), dg.TraceError, "manual_seed"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_the_line_and_what_to_do(name):
    fn, kind, words = REFUSED[name]
    try:
        with pytest.raises(dg.TraceError) as refused:
            dg.trace(fn, X)
    finally:
        torch.set_default_dtype(torch.float32)
    error = refused.value
    assert type(error) is kind
    assert words in str(error) and "instead:" in str(error)
    assert error.cause.file == __file__ and error.cause.text in str(error)


def test_the_line_named_is_the_line_of_the_branch():
    with pytest.raises(dg.DataDependentError) as refused:
        dg.trace(branch_on_data, X)
    assert refused.value.cause.text == "if x.sum() > 0:  # the line to be named"
    assert refused.value.cause.line == branch_on_data.__code__.co_firstlineno + 1


def test_an_error_that_the_program_catches_is_a_decision_on_shapes():
    def fn(x):
        try:
            return x + torch.zeros(7)
        except RuntimeError:
            return x * 2

    with pytest.raises(dg.TraceError, match="caught an error"):
        dg.trace(fn, X)


def test_the_programs_own_errors_pass_through():
    def fn(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        dg.trace(fn, X)
    with pytest.raises(RuntimeError, match="must match the size"):
        dg.trace(lambda x: x + torch.zeros(7), X)
    assert torch.is_grad_enabled.__name__ == "is_grad_enabled" and not hasattr(torch.is_grad_enabled, "__wrapped__")


def test_values_that_outlive_the_trace_are_refused():
    kept = []
    dg.trace(lambda x: kept.append(x * 2), X)
    with pytest.raises(dg.TraceError, match="outside the trace"):
        kept[0] + 1
    with pytest.raises(dg.TraceError, match="outside the trace"):
        dg.trace(lambda x: x + kept[0], X)


def test_a_trace_inside_a_trace_is_refused_and_leaves_nothing_behind():
    with pytest.raises(dg.TraceError, match="another trace"):
        dg.trace(lambda x: dg.trace(lambda y: y, x), X)
    check(lambda x: x * 2, X)


def test_nothing_of_the_tracing_is_left_in_torch():
    names = [n for n in dir(torch) if callable(getattr(torch, n))]
    before = {n: getattr(torch, n) for n in names}
    apply = torch.autograd.Function.__dict__["apply"]
    for fn in (lambda x: x * 2, branch_on_data):
        with contextlib.suppress(dg.TraceError):
            dg.trace(fn, X)
    assert all(getattr(torch, n) is before[n] for n in names)
    assert torch.autograd.Function.__dict__["apply"] is apply
    module = nn.Linear(4, 4)
    module(X)
    assert not nn.modules.module._has_any_global_hook()


def test_threads_trace_side_by_side():
    from concurrent.futures import ThreadPoolExecutor

    def one(i):
        t = dg.trace(lambda x: (x * i).sum(0) if torch.is_grad_enabled() else x, X)
        return torch.equal(t(X), (X * i).sum(0))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(one, range(40)))


def test_bad_arguments_are_named():
    with pytest.raises(TypeError, match="fn must be callable, got int"):
        dg.trace(3, X)
    with pytest.raises(ValueError, match=r"analysis must be one of .*whole_tensor.*'whole'"):
        dg.trace(lambda x: x, X, analysis="whole")
    with pytest.raises(TypeError, match="missing a required argument"):
        dg.trace(lambda x, y: x, X)


def test_a_module_that_remembers_something_for_its_next_call_is_refused():
    class Remembers(nn.Module):
        def __init__(self, change):
            super().__init__()
            self.steps, self.mask, self.change = 0, None, change
            self.register_buffer("count", torch.zeros(()))
            self.same = "same"

        def forward(self, x):
            self.change(self, x)
            return x * 2

    def counts(m, x):
        m.steps += 1

    def caches(m, x):
        m.mask = torch.ones_like(x)

    def replaces(m, x):
        m.count = m.count + 1

    def keeps_a_size(m, x):
        m.rows = x.shape[0]

    for change, name in (counts, "steps"), (caches, "mask"), (replaces, "count"), (keeps_a_size, "rows"):
        module = Remembers(change)
        with pytest.raises(dg.TraceError, match=f"Remembers.{name} is assigned while the module runs") as refused:
            dg.trace(module, torch.ones(3))
        assert refused.value.cause.text.startswith(f"m.{name} ")
        assert (module.steps, module.mask, module.count.item()) == (0, None, 0) and not hasattr(module, "rows")

    def in_place(m, x):
        m.count.add_(1)
        m.same = "same"

    module = Remembers(in_place)
    t = dg.trace(module, torch.ones(3))
    t(torch.ones(5)), t(torch.ones(2))
    assert module.count == 3
    old = nn.utils.spectral_norm(nn.Linear(3, 2).eval())  # PyTorch's own hook assigns what it has just computed
    assert torch.equal(dg.trace(old, torch.ones(4, 3))(torch.ones(5, 3)), old(torch.ones(5, 3)))

    def builds(x):
        inner = Remembers(in_place)
        inner.later = 3
        return inner(x)

    assert dg.trace(builds, torch.ones(3))(torch.ones(4)).tolist() == [2, 2, 2, 2]
