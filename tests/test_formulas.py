"""Shape formulas, on plain ints, against the shapes that eager PyTorch gives."""

import warnings

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.testing._internal.common_methods_invocations import op_db

from dynguard_lite.formulas import apply, find, formula
from dynguard_lite.looks import function_name, is_data_dependent
from dynguard_lite.tree import map_tree

#: A few of each family that issue 3 names; every float32 sample of each.
NAMES = """add mul where clamp nn.functional.gelu softmax sum mean amax var norm argmax topk sort cumsum max
matmul mm bmm mv nn.functional.linear nn.functional.conv1d nn.functional.conv2d nn.functional.max_pool2d
nn.functional.avg_pool2d nn.functional.adaptive_avg_pool2d nn.functional.layer_norm nn.functional.batch_norm
nn.functional.embedding nn.functional.scaled_dot_product_attention nn.functional.pad nn.functional.interpolate
view reshape flatten unflatten permute transpose squeeze unsqueeze expand repeat narrow movedim diagonal __getitem__
cat stack hstack vstack split chunk tensor_split unbind index_select gather arange zeros full eye linspace""".split()


class Calls(TorchFunctionMode):
    """The outermost torch call of each op: function, arguments, result."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        self.seen.append((func, args, kwargs or {}, result))
        return result


def shape(tensor):
    return torch.Size(tensor.shape)


@pytest.mark.parametrize("name", NAMES)
def test_a_formula_gives_the_shape_that_eager_gives(name):
    entries = [op for op in op_db if op.name == name and torch.float32 in op.dtypes]
    compared = 0
    for op in entries:
        for sample in op.sample_inputs("cpu", torch.float32):
            with warnings.catch_warnings(), Calls() as calls:
                warnings.simplefilter("ignore")
                op.op(sample.input, *sample.args, **sample.kwargs)
            for func, args, kwargs, result in calls.seen:
                rule = find(func, function_name(func))
                if is_data_dependent(function_name(func), args, kwargs):
                    continue  # a mask: no formula tells how many elements it selects
                if rule is None or not isinstance(result, (torch.Tensor, tuple, list)):
                    continue
                expected = map_tree(shape, result, torch.Tensor)
                got = apply(rule, *map_tree(shape, (args, kwargs), torch.Tensor))
                if got is None:
                    continue
                assert _plain(got) == _plain(expected), (func, map_tree(shape, (args, kwargs), torch.Tensor))
                compared += 1
    assert compared, "no sample reached the formula"


def _plain(value):
    return tuple(map(_plain, value)) if isinstance(value, (tuple, list)) else value


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
