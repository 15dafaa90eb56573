"""Nested values: arguments, results and outputs, walked by how Python would reach each leaf.

Lists, tuples (named ones too), dicts, slices and dataclasses are walked here; any other
class that the program registered with PyTorch's pytree goes through that registry.
"""

from __future__ import annotations

import copy
import dataclasses
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree  # the registry has no public name (torch 2.9 - 2.13)

from .expressions import Shape

_DICTS = (dict, OrderedDict, defaultdict)
_WHOLE = (torch.Size, Shape)


def children(value: Any) -> list[tuple[str, Any]] | None:
    """`[(accessor, child)]` of a container, or None for a leaf.

    An accessor is Python source that follows the container's own: `[1]`, `['ids']`, `.mask`.
    """
    kind = type(value)
    if kind in (list, tuple):
        return [(f"[{i}]", v) for i, v in enumerate(value)]
    if kind in _DICTS:
        return [(f"[{k!r}]", v) for k, v in value.items()]
    if kind is torch.Size and any(type(n) is not int for n in value):  # it may hold SymInts
        return [(f"[{i}]", v) for i, v in enumerate(value)]
    if kind in _WHOLE or isinstance(value, (torch.Tensor, torch.nn.Module, type, str)) or callable(value):
        return None
    if kind is slice:
        return [(".start", value.start), (".stop", value.stop), (".step", value.step)]
    if isinstance(value, tuple):
        return [(f"[{i}]", v) for i, v in enumerate(tuple.__iter__(value))]
    if dataclasses.is_dataclass(value):
        return [(f".{f.name}", getattr(value, f.name)) for f in dataclasses.fields(value) if hasattr(value, f.name)]
    if kind in _pytree.SUPPORTED_NODES:
        paths, _ = _pytree.tree_flatten_with_path(value, is_leaf=lambda v: v is not value)
        return [(_pytree.keystr(path), v) for path, v in paths]
    return None


def rebuild(value: Any, new: list[Any]) -> Any:
    """A container like `value` that holds the children `new`."""
    kind = type(value)
    if kind in (list, tuple):
        return kind(new)
    if kind in _DICTS:
        result = copy.copy(value)
        result.update(zip(value, new, strict=True))
        return result
    if kind is slice:
        return slice(*new)
    if isinstance(value, tuple):  # named tuples take their fields one by one, PyTorch's return types as one
        return kind(*new) if hasattr(kind, "_fields") else kind(new)
    if dataclasses.is_dataclass(value):
        result = copy.copy(value)
        names = [f.name for f in dataclasses.fields(value) if hasattr(value, f.name)]
        for name, item in zip(names, new, strict=True):
            object.__setattr__(result, name, item)  # works for frozen ones too
        return result
    _, spec = _pytree.tree_flatten(value, is_leaf=lambda v: v is not value)
    return _pytree.tree_unflatten(new, spec)


def map_tree(fn: Callable[[Any], Any], value: Any, kind: type | tuple[type, ...]) -> Any:
    """`value` with `fn(leaf)` in place of each leaf of type `kind`; the rest as it is."""
    if isinstance(value, kind):
        return fn(value)
    parts = children(value)
    if not parts:
        return value
    new = [map_tree(fn, v, kind) for _, v in parts]
    # an untouched container is kept, so that a program which compares by identity isn't misled
    return value if all(a is b for a, (_, b) in zip(new, parts, strict=True)) else rebuild(value, new)


def leaves(value: Any) -> list[Any]:
    """All leaves, in order."""
    parts = children(value)
    return [value] if parts is None else [leaf for _, part in parts for leaf in leaves(part)]


def paths(value: Any) -> list[str]:
    """The accessors of a container's children."""
    return [accessor for accessor, _ in children(value) or ()]


def map_paths(leaf: Callable[[str, Any], Any], container: Callable[[str, Any], None], value: Any, path: str) -> Any:
    """As `map_tree` over every leaf, which is told its path too; `container(path, value)` sees the rest first."""
    parts = children(value)
    if parts is None:
        return leaf(path, value)
    container(path, value)
    return rebuild(value, [map_paths(leaf, container, v, path + accessor) for accessor, v in parts])
