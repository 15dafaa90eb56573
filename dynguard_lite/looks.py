"""What a torch call shows the program: which functions look at metadata, and which sizes depend on data.

Everything that is not listed here and returns no tensor is taken for a look at data,
and refused: a new PyTorch function is unknown before it is silently wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

_ATTRIBUTES = {
    "size": "shape size numel nelement __len__ nbytes is_same_size",
    "rank": "ndim dim ndimension dim_order",
    "dtype": "dtype is_floating_point is_complex is_signed element_size itemsize type is_quantized result_type",
    "device": "device is_cuda is_cpu is_meta is_mps is_xpu is_xla is_mtia is_maia is_hpu is_ipu is_vulkan "
    "is_ort get_device",
    "requires_grad": "requires_grad is_leaf grad_fn retains_grad is_inference",
    "layout": "layout is_sparse is_sparse_csr is_mkldnn",
    "nesting": "is_nested",
    "conjugation": "is_conj is_neg",
    "strides": "stride is_contiguous storage_offset has_names names _is_view is_pinned is_shared",
}


def _spellings(name: str) -> list[Callable]:
    """The function as a method, as a property and in the `torch` namespace, as torch functions are dispatched."""
    found = [getattr(torch, name, None)]
    attribute = getattr(torch.Tensor, name, None)
    found.append(attribute if callable(attribute) else getattr(attribute, "__get__", None))
    return [f for f in found if callable(f) and not isinstance(f, type)]


#: torch function -> the kind of metadata that it looks at
LOOKS: dict[Callable, str] = {
    f: kind for kind, names in _ATTRIBUTES.items() for name in names.split() for f in _spellings(name)
}

#: Functions whose number of results follows from a size: `a, b = x.split(2)`.
COUNT_FROM_SIZE = set("unbind split chunk tensor_split hsplit vsplit dsplit unsafe_split unsafe_chunk "
                      "align_tensors __iter__".split())  # fmt: skip
#: Functions whose result's rank may follow from sizes.
RANK_FROM_SIZE = set("squeeze squeeze_ squeeze_copy cov corrcoef linalg_lstsq".split())
#: Functions whose result's sizes follow from data.
_DATA_DEPENDENT = set("nonzero argwhere unique unique_consecutive masked_select bincount _pack_padded_sequence "
                      "_pad_packed_sequence linalg_lstsq to_sparse to_sparse_coo coalesce "
                      "histogram_bin_edges".split())  # fmt: skip
#: Functions that take sizes or bounds as numbers: a tensor given for one is data that decides a size.
_FACTORIES = set("arange range zeros ones empty rand randn randint full eye linspace logspace view reshape expand narrow "
                 "repeat tile resize_ unflatten new_zeros new_ones new_empty new_full split chunk topk one_hot tensor_split "
                 "hamming_window hann_window blackman_window bartlett_window kaiser_window".split())  # fmt: skip
#: Where such a function takes a tensor as a value too, the names and positions of the value.
_VALUES = {"full": ("fill_value", 1), "new_full": ("fill_value", 2)}


def look_kind(func: Callable, args: tuple) -> str | None:
    """Which kind of metadata the call looks at; None where it is an operation."""
    kind = LOOKS.get(func)
    return None if func is torch.Tensor.type and len(args) > 1 else kind  # x.type(torch.int8) converts


def function_name(fn: Callable) -> str:
    """`add` for torch.add, Tensor.add and Tensor.__add__; `T` for the property; `split_` ends in-place names."""
    name = getattr(fn, "__name__", type(fn).__name__)
    owner = getattr(fn, "__self__", None)
    if name in ("__get__", "__set__"):  # a property: the descriptor knows the name
        target = getattr(owner, "__name__", None) or getattr(getattr(owner, "fget", None), "__name__", "property")
        return target if name == "__get__" else f"set_{target}"
    if name == "apply" and isinstance(owner, type):  # a torch.autograd.Function of the reader's
        return owner.__name__
    return name.split(".")[0]  # an overload of a custom operator: `doubled.default`


def is_data_dependent(name: str, args: tuple, kwargs: dict) -> bool:
    """Do the sizes of this call's result follow from its inputs' data?"""
    if name in _DATA_DEPENDENT:
        return True
    if name == "where":
        return len(args) + len(kwargs) == 1
    if name == "__getitem__":
        return any(_data_index(i) for i in (args[1] if isinstance(args[1], tuple) else (args[1],)))
    if name == "repeat_interleave":  # without output_size, the sum of the repeats
        repeats = kwargs.get("repeats", args[1] if len(args) > 1 else args[0])
        return _is_tensor(repeats) and kwargs.get("output_size") is None
    if name == "one_hot":
        return kwargs.get("num_classes", args[1] if len(args) > 1 else -1) == -1
    if name in _FACTORIES:
        value_name, value_at = _VALUES.get(name, ("", -1))
        first = 0 if name in _FACTORY_ONLY else 1  # a method's first argument is its own tensor
        rest = [a for i, a in enumerate(args) if i >= first and i != value_at]
        rest += [v for k, v in kwargs.items() if k not in (value_name, "out", "input", "self")]
        return any(_is_tensor(p) for a in rest for p in (a if isinstance(a, (tuple, list)) else (a,)))
    return False


_FACTORY_ONLY = set("arange range zeros ones empty rand randn randint full eye linspace logspace "
                    "hamming_window hann_window blackman_window bartlett_window kaiser_window".split())  # fmt: skip


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def _data_index(index: Any) -> bool:
    if isinstance(index, slice):
        return any(_is_tensor(part) for part in (index.start, index.stop, index.step))
    if isinstance(index, list):
        return any(isinstance(i, bool) or (_is_tensor(i) and i.dtype == torch.bool) for i in index)
    return _is_tensor(index) and index.dtype in (torch.bool, torch.uint8)


def mutates(name: str, kwargs: dict) -> bool:
    """Does the call change an argument in place? By PyTorch's naming rule, `out=` and `inplace=True`."""
    underscore = name.endswith("_") and not name.endswith("__")
    operator = name.startswith("__i") and name not in _NOT_IN_PLACE
    return underscore or operator or name.startswith("set_") or kwargs.get("out") is not None or kwargs.get("inplace") is True


_NOT_IN_PLACE = {"__invert__", "__index__", "__int__", "__iter__", "__init__"}
