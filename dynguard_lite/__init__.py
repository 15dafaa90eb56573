"""dynguard_lite: how TorchDynamo's guards and dynamic shapes work, in a system small enough to read.

Public names load on first use, so that importing the package alone costs no torch.
"""

from __future__ import annotations

import importlib
import sys
import types

__version__ = "0.1.0"

_MODULES = {
    "ir": ("Op", "Node", "Graph", "input_sources"),
    "interpreter": ("INTERP_RULES", "interp_node"),
    "tracer": ("Variable",),
    "traces": ("trace", "Trace"),
    "compiled": ("compile",),
    "precision": ("measure",),
    "formulas": ("formula",),
    "analyses": ("ANALYSES",),
    "guards": ("Guard",),
    "errors": ("TraceError", "DataDependentError", "UnbackedSizeError", "OutputError", "GuardFailure"),
    "draw": ("draw",),
    "picture": ("Drawing",),
    "explore": ("explore",),
    "exercises.progress": ("progress",),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}
__all__ = sorted([*_HOME, "dynamo"])


def __getattr__(name: str) -> object:
    if name == "dynamo":  # a module is the public name: dg.dynamo.trace
        return importlib.import_module(".dynamo", __name__)
    if name not in _HOME:
        raise AttributeError(f"module 'dynguard_lite' has no attribute {name!r}; it has {', '.join(__all__)}")
    value = getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


class _Package(types.ModuleType):
    """Importing the submodule `draw` would bind it over the public function `draw`: the function stays."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOME and isinstance(value, types.ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
