"""Guards: the conditions under which a trace may stand for the program."""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

import torch

from .errors import GuardFailure
from .expressions import broadcast
from .source import Cause, without_addresses
from .tree import paths


@dataclass(frozen=True)
class Guard:
    """One condition on the inputs or on the ambient state.

    `code` is a Python expression over the program's arguments (`a.shape[0] == 4`);
    `subject` is the part of it whose value a failure reports (`a.shape[0]`) and
    `expected` the text of what that value has to be. `cause` is the reader's line that
    forced the guard and `why` says in words how. `params` names the parameters that the
    guard is about, `dims` which of their dimensions, as `(parameter, dimension)` (None: all of them).
    `saved` holds objects that `code` can't spell.
    """

    code: str
    kind: str
    subject: str
    expected: str
    cause: Cause
    why: str
    params: tuple[str, ...] = ()
    dims: tuple[tuple[str, int], ...] | None = None
    saved: dict[str, Any] = field(default_factory=dict, compare=False)

    def __str__(self) -> str:
        return self.code

    def holds(self, env: dict[str, Any]) -> bool:
        """Does the guard accept these arguments? An expression that raises doesn't."""
        try:
            return bool(self._eval(self.code, env))
        except Exception:
            return False

    def got(self, env: dict[str, Any]) -> str:
        """The subject's value for these arguments, as text."""
        try:
            return without_addresses(repr(self._eval(self.subject, env)))
        except Exception as error:
            return f"{type(error).__name__}: {error}"

    def _eval(self, code: str, env: dict[str, Any]) -> Any:
        return eval(_compiled(code, "eval"), {**_HELPERS, **self.saved, **env})

    def message(self, env: dict[str, Any]) -> str:
        """Expected and got, in lines; a whole shape begins as the original system's assertion does."""
        got = self.got(env)
        head = f"static shape mismatch: {got} and {self.expected}\n  " if self.kind == "shape" else ""
        return f"{head}guard failed: {self.code}\n    expected {self.expected}, got {got}\n    because of {self.cause}"


#: What a guard reads of an argument; `torch.bool` and the like are the module's, whatever an argument is called.
_OF_A_TENSOR = {
    name for name in dir(torch.Tensor)
    if not isinstance(getattr(torch, name, None), (type, torch.dtype, torch.layout, torch.memory_format))
}  # fmt: skip


class _Apart(ast.NodeTransformer):
    """Tells the functions that a guard calls (`type(x)`, `torch.device(...)`) from arguments of the same name.

    No guard calls an argument, and none looks up in an argument what only the torch module has.
    """

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name):
            node.func.id = f"_call_{node.func.id}"
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        name = node.value
        if isinstance(name, ast.Name) and name.id == "torch" and node.attr not in _OF_A_TENSOR:
            name.id = "_torch"
        return node


def _compiled(source: str, mode: str) -> CodeType:
    return compile(ast.fix_missing_locations(_Apart().visit(ast.parse(source, mode=mode))), "<guards>", mode)


_HELPERS = {f"_call_{name}": f for name, f in vars(builtins).items() if callable(f)}
_HELPERS |= {"_torch": torch, "_call__paths": paths, "_call_broadcast": broadcast}


def equal(subject: str, value: Any, kind: str, cause: Cause, why: str, params: tuple[str, ...] = (),
          dims: tuple[tuple[str, int], ...] | None = None) -> Guard:  # fmt: skip
    """The guard `subject == value`, for a value that Python can write down exactly or that is kept."""
    saved: dict[str, Any] = {}
    if value is None or isinstance(value, bool):
        code, expected = f"{subject} is {value}", repr(value)
    elif type(value) is complex or (type(value) is float and (value == 0 or not math.isfinite(value))):
        code, expected = f"repr({subject}) == {repr(value)!r}", repr(value)  # nan, infinity, and the sign of zero
    elif kind == "constant" and type(value) in (int, float):
        code, expected = f"{subject} == {value!r} and type({subject}).__name__ == {type(value).__name__!r}", repr(value)
    elif isinstance(value, torch.Size):
        code, expected = f"{subject} == {tuple(value)!r}", repr(value)
    elif type(value) in (int, float, str, bytes) or isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        code, expected = f"{subject} == {value!r}", repr(value)
    elif isinstance(value, torch.device):
        code, expected = f"{subject} == torch.{value!r}", repr(value)
    elif type(value) is tuple and all(isinstance(v, int) for v in value):
        code, expected = f"{subject} == {value!r}", repr(value)
    else:
        name = "_saved_" + "".join(c if c.isalnum() else "_" for c in subject)
        saved[name] = value
        code, expected = f"({subject} is {name} or {subject} == {name})", f"the same {type(value).__name__}"
    return Guard(code, kind, subject, expected, cause, why, params, dims, saved)


def structure(path: str, value: Any, cause: Cause, variadic: bool = False) -> Guard:
    """The guard that a container of arguments is built as it was while tracing.

    `variadic`: it is the program's own `*args`, whose type can't differ.
    """
    if isinstance(value, dict):
        subject, expected = f"list({path})", list(value)
    elif variadic:
        subject, expected = f"len({path})", len(value)
    elif isinstance(value, (list, tuple)):
        subject, expected = f"(type({path}).__name__, len({path}))", (type(value).__name__, len(value))
    else:
        subject, expected = f"(type({path}).__name__, _paths({path}))", (type(value).__name__, paths(value))
    return Guard(f"{subject} == {expected!r}", "structure", subject, repr(expected), cause,
                 "the structure of an argument")


class Guards:
    """The guards of one trace, in the order they were recorded; compiled to one function.

    `signature` is the program's; `tensors` names the parameters that have to be tensors, and
    `hidden` are guards that sizes take for granted (a rank, the dtype of an index): what
    every trace needs and no listing repeats.
    """

    def __init__(self, guards: Iterable[Guard], signature: inspect.Signature, tensors: dict[str, Cause],
                 hidden: Iterable[Guard] = ()):  # fmt: skip
        self._guards = tuple(guards)
        types = (
            Guard(f"isinstance({n}, torch.Tensor)", "type", f"type({n}).__name__", "a tensor", cause,
                  f"{n} was a tensor while tracing", (n,))
            for n, cause in tensors.items()
        )  # fmt: skip
        listed = {g.code for g in self._guards}
        self._first = (*types, *(g for g in hidden if g.code not in listed))
        self.signature = signature
        self.names = tuple(tensors)
        # structure first: what follows may index into it
        self._ordered = [*(g for g in self._guards if g.kind == "structure"), *self._first,
                         *(g for g in self._guards if g.kind != "structure")]  # fmt: skip

    @functools.cached_property
    def _check(self) -> Callable[..., Any]:
        return self._compile(self._conditions)

    @property
    def _conditions(self) -> str:
        lines = "\n        and ".join(f"({g.code})" for g in self._ordered) or "True"
        return f"(\n        {lines}\n    )"

    @property
    def code(self) -> str:
        """The Python source of the function that checks a call."""
        return self._source(self._conditions)[0]

    @functools.cached_property
    def tensors(self) -> Callable[..., tuple]:
        """The tensors of a call, in the order of `names`."""
        return self._compile(f"({''.join(n + ', ' for n in self.names)})")

    @functools.cached_property
    def bind(self) -> Callable[..., dict[str, Any]]:
        """The arguments of a call by name, as Python binds them for the program."""
        return self._compile("locals()")

    def _compile(self, body: str) -> Callable:
        source, scope = self._source(body)
        exec(_compiled(source, "exec"), scope)
        return scope["check"]

    def _source(self, body: str) -> tuple[str, dict[str, Any]]:
        """A function of the program's own signature, and the names it uses: Python binds the arguments, as for the program."""
        scope = dict(_HELPERS)
        for g in self._ordered:
            scope |= g.saved
        parameters = []
        for p in self.signature.parameters.values():
            default = p.default
            if default is not p.empty:
                scope[f"_default_{p.name}"] = default
                default = _Source(f"_default_{p.name}")
            parameters.append(p.replace(default=default, annotation=p.empty))
        header = inspect.Signature(parameters)
        return f"def check{header}:\n    return {body}", scope

    def __iter__(self) -> Iterator[Guard]:
        return iter(self._guards)

    def __len__(self) -> int:
        return len(self._guards)

    def __repr__(self) -> str:
        return f"Guards({[g.code for g in self._guards]})"

    def accept(self, *args: Any, **kwargs: Any) -> bool:
        """True where every guard holds. TypeError where Python itself couldn't bind the arguments."""
        self.bind(*args, **kwargs)
        try:
            return bool(self._check(*args, **kwargs))
        except (AttributeError, TypeError, ValueError, LookupError, RuntimeError):
            return False  # the inputs lack what a guard looks at

    def failing(self, *args: Any, **kwargs: Any) -> list[Guard]:
        """The guards that refuse, in order. What a mismatch of structure or type makes meaningless is left out."""
        env = self.bind(*args, **kwargs)
        failed = [g for g in self._ordered if g.kind == "structure" and not g.holds(env)]
        if failed:
            return failed
        failed = [g for g in self._first if not g.holds(env)]
        wrong = {n for g in failed for n in g.params}
        rest = (g for g in self._guards if g.kind != "structure" and not wrong.intersection(g.params))
        return failed + [g for g in rest if not g.holds(env)]

    def leaves(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """The tensors of a call, by parameter name: `{"batch['ids']": tensor(...)}`."""
        return dict(zip(self.names, self.tensors(*args, **kwargs), strict=True))

    def require(self, *args: Any, **kwargs: Any) -> None:
        """Raise GuardFailure, naming each guard that refuses, expected and got."""
        if not self.accept(*args, **kwargs):
            env = self.bind(*args, **kwargs)
            failed = self.failing(*args, **kwargs)
            raise GuardFailure("\n".join(g.message(env) for g in failed), tuple(failed))


class _Source:
    """Stands for a default value in a printed signature."""

    def __init__(self, text: str):
        self.text = text

    def __repr__(self) -> str:
        return self.text
