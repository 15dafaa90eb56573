"""Shape formulas against eager PyTorch, on every sample of every entry of PyTorch's own list of operators."""

import itertools
import random
import warnings
from collections import Counter, defaultdict

import pytest
import torch
from test_op_db import ON_CPU, clones, entry_id
from torch.overrides import TorchFunctionMode

import dynguard_lite as dg
from dynguard_lite import _coverage
from dynguard_lite.formulas import apply, find, formula
from dynguard_lite.looks import function_name, is_data_dependent, look_kind
from dynguard_lite.precision import _Program, same
from dynguard_lite.sizes import UNBACKED, Mask
from dynguard_lite.tree import map_tree


def shape(tensor):
    return Mask(tensor.shape) if tensor.dtype in (torch.bool, torch.uint8) else torch.Size(tensor.shape)


class Calls(TorchFunctionMode):
    """The outermost torch calls of a program: function, shapes of the arguments, shapes of the result."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        before = map_tree(shape, (args, kwargs), torch.Tensor)
        depends = is_data_dependent(function_name(func), args, kwargs)
        result = func(*args, **kwargs)
        if isinstance(result, (torch.Tensor, tuple, list)) and look_kind(func, args) is None:
            self.seen.append((func, *before, depends, map_tree(lambda t: torch.Size(t.shape), result, torch.Tensor)))
        return result


def all_samples(op):
    dtype = torch.float32 if torch.float32 in op.dtypes else sorted(op.dtypes, key=str)[0]
    torch.manual_seed(0)
    for sample in op.sample_inputs("cpu", dtype):
        yield (sample.input, *sample.args), sample.kwargs


def plain(value):
    return tuple(map(plain, value)) if isinstance(value, (tuple, list)) else value


def agree(got, want):
    """Equal sizes; where a formula says that data decides, any size."""
    if isinstance(want, tuple) and isinstance(got, tuple):
        return len(got) == len(want) and all(map(agree, got, want))
    return got is UNBACKED or got == want


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # op_db's deprecated spellings
        warnings.filterwarnings("error", message="the shape formula")
        yield


@pytest.mark.parametrize("op", ON_CPU, ids=entry_id)
def test_a_formula_gives_the_shape_that_eager_gives(op):
    for args, kwargs in all_samples(op):
        with Calls() as calls:
            op.op(*args, **kwargs)
        for func, given, named, depends, want in calls.seen:
            rule = find(func, function_name(func))
            got = apply(rule, given, named) if rule is not None else None
            if got is not None and not (depends and "UNBACKED" not in repr(got) and not agree(plain(got), plain(want))):
                assert agree(plain(got), plain(want)), (func, given, named)


def test_at_least_540_functions_have_a_formula():
    names = _coverage.exercised()
    without = {name for name, functions in names.items() if _coverage.family(functions, name) is None}
    assert len(names) - len(without) >= 540
    assert without <= {*_coverage.BY_NATURE, "_chunk_cat"} | {n for n in without if n.startswith("_")}


# -- what becomes of a trace at other shapes -----------------------------------------------------------

#: Entries that crash the process in eager PyTorch 2.13 (not raise) at sizes that don't fit together.
CRASHES = {"lu_unpack", "_batch_norm_with_update", "native_batch_norm", "_native_batch_norm_legit", "nn.functional.embedding_bag",
           "_segment_reduce", "linalg.lstsq"}  # fmt: skip
#: Where a size decides a number of results, a rank, or which branch Python takes: these may refuse what is valid.
DECIDES = {
    "chunk", "unsafe_chunk", "split", "unsafe_split", "unbind", "unbind_copy", "tensor_split", "hsplit", "vsplit", "dsplit",
    "array_split", "squeeze", "squeeze_copy", "cov", "corrcoef", "addmv", "nn.functional.pixel_unshuffle",
    "nn.functional.scaled_dot_product_attention", "gradient", "svd_lowrank", "pca_lowrank", "linalg.solve", "linalg.solve_ex",
    "_chunk_cat", "where", "combinations",
}  # fmt: skip


def structure(args, kwargs):
    return repr(map_tree(lambda t: (t.dim(), t.dtype), (args, kwargs), torch.Tensor))


def other_points(shapes, rng, count=7):
    """Shapes with 0, 1, odd and large sizes: equal sizes moved together, one size moved, one dimension moved."""
    sizes = sorted({n for shape in shapes for n in shape}) or [0]
    for _ in range(count):
        move, chosen, to = rng.random(), rng.choice(sizes), rng.choice((0, 1, 2, 3, 5, 7, 10, 33))
        moved = {n: rng.choice((0, 1, 2, 3, 5, 7, 10, 33)) if rng.random() < 0.5 else n for n in sizes}
        new = [[moved[n] if move < 0.45 else to if n == chosen and move < 0.8 else n for n in shape] for shape in shapes]
        if move >= 0.8 and any(shapes):
            one = rng.choice([s for s in new if s])
            one[rng.randrange(len(one))] = to
        yield tuple(map(tuple, new))


#: Family of formulas -> of the other shapes at which its operators run: how many, and how many the guards accept.
SHARE = defaultdict(Counter)


def family(op, args, kwargs):
    with Calls() as calls:
        op.op(*clones(args), **clones(kwargs))
    func = calls.seen[-1][0] if calls.seen else op.op
    return _coverage.family({func}, function_name(func)) or "no formula"


@pytest.mark.parametrize("op", [op for op in ON_CPU if op.name not in CRASHES], ids=entry_id)
def test_sizes_are_right_at_every_shape_that_the_guards_accept(op):
    def sizes(*args, **kwargs):
        return map_tree(lambda t: t.shape, op.op(*args, **kwargs), torch.Tensor)

    groups = {}
    for args, kwargs in all_samples(op):
        groups.setdefault(structure(args, kwargs), []).append((args, kwargs))
    rng, valid, refused = random.Random(0), 0, []
    counts = SHARE[family(op, *next(iter(groups.values()))[0])]
    for (args, kwargs), *others in itertools.islice(groups.values(), 15):
        try:
            t = dg.trace(sizes, *clones(args), **clones(kwargs))
        except dg.DataDependentError:
            continue  # item, equal, allclose
        except RuntimeError as error:
            assert op.name == "as_strided" and "out of bounds" in str(error)  # a clone lacks the storage behind a view
            continue
        program = _Program(sizes, args, kwargs)
        varied = [program.arguments(point) for point in other_points(program.shapes, rng)]
        for given, named in [*others[:3], *varied]:
            try:
                want = sizes(*clones(given), **clones(named))
            except Exception:  # eager refuses this shape, in one of many ways
                continue
            valid += 1
            counts["valid"] += 1
            if t.accepts(*given, **named):
                assert same(t.replay(*clones(given), **clones(named)), want), (args, given, list(t.guards))
                counts["accepted"] += 1
            else:
                refused.append([g.code for g in t.failing(*given, **named)])
    assert not refused or op.name in DECIDES or op.name.startswith("masked."), f"{len(refused)} of {valid}: {refused[:3]}"


def test_the_guards_of_each_family_accept_most_other_shapes():
    """`pytest tests/test_formulas.py -n 0 -rP` shows the shares, which the README states."""
    if sum(c["valid"] for c in SHARE.values()) < 30_000:
        pytest.skip("counts what the tests above found; run all of them in one process")
    for name, counts in sorted(SHARE.items()):
        print(f"{name:12} {counts['accepted']:6} of {counts['valid']:6}  {counts['accepted'] / max(1, counts['valid']):.1%}")
    assert all(c["accepted"] >= 0.9 * c["valid"] for name, c in SHARE.items() if name != "no formula"), SHARE


def test_a_reader_adds_a_formula_and_overrides_ours():
    def twice(x):
        return torch.cat([x, x])

    assert find(twice, "twice") is None

    @formula(twice)
    def rule(x):
        return (x[0] * 2, *x[1:])

    assert apply(find(twice, "twice"), (torch.Size([3, 4]),), {}) == (6, 4)
    with pytest.raises(TypeError, match="a target must be a function or a name, got int"):
        formula(3)(rule)
