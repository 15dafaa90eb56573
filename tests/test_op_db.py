"""The tracer against PyTorch's own list of operators.

`op_db` knows every public operator and how to make samples for it. For each entry that
runs on the CPU: trace the operator on a sample, replay on the same sample and on fresh
values of the same shapes; both have to equal eager, in values and in structure. What is
left out is listed in `LEFT_OUT`, each with its reason, and may be 3 % at most.
"""

import copy
import itertools
import warnings

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db

import dynguard_lite as dg
from dynguard_lite.tree import leaves, map_tree

SAMPLES = 20

_MEMORY = "returns uninitialised memory: two eager runs differ"
_DATA = "returns a Python value computed from data, which is refused by design (tested in test_tracer.py)"
LEFT_OUT = {
    "empty": _MEMORY,
    "empty_like": _MEMORY,
    "empty_permuted": _MEMORY,
    "empty_strided": _MEMORY,
    "new_empty": _MEMORY,
    "new_empty_strided": _MEMORY,
    "allclose": _DATA,
    "equal": _DATA,
    "item": _DATA,
}


def entry_id(op):
    return f"{op.name}.{op.variant_test_name}".rstrip(".")


ON_CPU = [op for op in op_db if op.dtypes and "jiterator" not in op.name]  # those compile CUDA code
TESTED = [op for op in ON_CPU if entry_id(op) not in LEFT_OUT]


def samples(op, limit=SAMPLES):
    dtype = torch.float32 if torch.float32 in op.dtypes else sorted(op.dtypes, key=str)[0]
    torch.manual_seed(0)
    for sample in itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=False), limit):
        yield (sample.input, *sample.args), sample.kwargs


def program(op):
    return lambda *args, **kwargs: op.op(*args, **kwargs)


def clones(value):
    """Copies of the tensors in `value`, which keep their strides and the storage behind a view."""
    return map_tree(lambda t: copy.deepcopy(t) if t.layout == torch.strided else t.clone(), value, torch.Tensor)


def fresh(value):
    """Other values of the same shapes: each tensor's own in reverse, so that indices stay in range."""

    def reverse(t):
        if t.layout != torch.strided or t.is_quantized or t.numel() < 2:
            return clones(t)
        flat = t.flatten()
        flat = flat.view(torch.uint8).flip(0).view(t.dtype) if t.element_size() == 1 else flat.flip(0)
        return clones(t).copy_(flat.reshape(t.shape))

    return map_tree(reverse, value, torch.Tensor)


def assert_same(got, want):
    assert type(got) is type(want)
    assert len(leaves(got)) == len(leaves(want))
    for x, y in zip(leaves(got), leaves(want), strict=True):
        if isinstance(y, torch.Tensor):
            assert type(x) is torch.Tensor
            assert x.layout == y.layout and x.requires_grad == y.requires_grad
            torch.testing.assert_close(x, y, equal_nan=True)  # BLAS rounds by memory alignment, so not bit by bit
        else:
            assert repr(x) == repr(y)


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # op_db's deprecated spellings
        yield


@pytest.mark.parametrize("op", TESTED, ids=entry_id)
def test_replay_equals_eager(op):
    fn = program(op)
    for args, kwargs in samples(op):
        want = fn(*clones(args), **clones(kwargs))
        try:
            t = dg.trace(fn, *clones(args), **clones(kwargs))
        except dg.DataDependentError as error:
            assert "number of pieces" in str(error) and op.name == "tensor_split"  # a tensor says how many
            continue
        assert_same(t.output, want)
        assert_same(t(*clones(args), **clones(kwargs)), want)
        args, kwargs = fresh(args), fresh(kwargs)
        try:
            want = fn(*clones(args), **clones(kwargs))
        except RuntimeError:
            continue  # the reversed values are outside the operator's domain (a matrix that must be definite)
        assert_same(t.replay(*args, **kwargs), want)


IN_PLACE = [op for op in TESTED if op.inplace_variant is not None]


@pytest.mark.parametrize("op", IN_PLACE, ids=entry_id)
def test_in_place_variant_changes_what_eager_changes(op):
    def fn(x, *args, **kwargs):
        before = x + 0
        result = op.inplace_variant(x, *args, **kwargs)
        return before, result, x

    for args, kwargs in samples(op, 5):
        try:
            eager = clones(args)
            torch.manual_seed(0)  # some fill their input with random numbers
            want = fn(*eager, **clones(kwargs))
        except (RuntimeError, TypeError):
            continue  # in-place can't broadcast or promote its own input
        t = dg.trace(fn, *clones(args), **clones(kwargs))
        inputs = clones(args)
        torch.manual_seed(0)
        assert_same(t.replay(*inputs, **clones(kwargs)), want)
        assert_same(inputs, eager)
        assert any(n.mutates for n in t.graph)


def shown(op):
    """What a program can see of an operator's result without looking at a size: how many tensors, of which rank."""
    return lambda *args, **kwargs: [x.dim() for x in leaves(op.op(*args, **kwargs)) if isinstance(x, torch.Tensor)]


@pytest.mark.parametrize("op", TESTED, ids=entry_id)
def test_structure_and_rank_are_guarded_where_sizes_decide_them(op):
    """`x.split(2)` has as many results as a size says, `x.squeeze()` a rank: a program that sees them is guarded."""
    fn, all_samples = shown(op), list(samples(op, 40))
    for args, kwargs in all_samples[:6]:
        try:
            t = dg.trace(fn, *clones(args), **clones(kwargs))
        except (dg.UnbackedSizeError, dg.DataDependentError):
            continue
        for other, other_kwargs in all_samples:
            try:
                accepted = t.accepts(*clones(other), **clones(other_kwargs))
            except TypeError:
                continue  # another number of arguments
            if accepted:
                assert t.replay(*clones(other), **clones(other_kwargs)) == fn(*clones(other), **clones(other_kwargs))


@pytest.mark.parametrize("op", TESTED, ids=entry_id)
def test_sizes_that_follow_from_data_are_refused(op):
    """Same shapes, other data: where that changes a result's sizes, a program that looks at them is refused."""

    def fn(*args, **kwargs):
        return [x.shape for x in leaves(op.op(*args, **kwargs)) if isinstance(x, torch.Tensor)]

    for args, kwargs in samples(op, 10):
        others = [(fresh(args), fresh(kwargs)), (map_tree(torch.zeros_like, args, torch.Tensor), clones(kwargs))]
        try:
            t = dg.trace(fn, *clones(args), **clones(kwargs))
        except (dg.UnbackedSizeError, dg.DataDependentError):
            continue
        for other, other_kwargs in others:
            try:
                want = fn(*clones(other), **clones(other_kwargs))
            except (RuntimeError, ValueError, IndexError):
                continue
            if t.accepts(*other, **other_kwargs):
                assert t.replay(*other, **other_kwargs) == want


def test_at_least_97_percent_of_the_cpu_entries_are_tested():
    assert set(LEFT_OUT) <= {entry_id(op) for op in ON_CPU}
    assert len(TESTED) >= 0.97 * len(ON_CPU)
