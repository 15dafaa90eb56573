"""Sizes that remember where they came from.

While a program is traced, `x.shape[0]` is a `SymInt`: an int to look at, with an
expression inside. Arithmetic and comparisons build further expressions; a guard appears
only where Python insists on a plain value: `int(n)` and `__index__` (a `range`, a list
index), `bool(n > 3)` (an `if`), and what turns a size into something else (a float, text,
a hash). Both subclass PyTorch's own types, so its argument parser lets them through to
the tracer wherever an int may go.

What becomes of a look is the analysis's business. `Sizes` is what it decides through;
with `symbolic` false (the analysis `per_dimension`), every use of a size specialises.
"""

from __future__ import annotations

import contextlib
import math
import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from .expressions import (
    Bool,
    Expr,
    Space,
    combine,
    floordiv,
    join,
    mod,
    negate,
    number,
    relation,
)


class Sizes:
    """The sizes of one trace. `decide(condition)` and `integer(expression)` are the analysis's: each
    commits the trace to a value, as a guard says, and returns it. `settled(condition)` is what the
    guards so far say, None where they don't; `check(condition)` is what `torch._check` asks for."""

    def __init__(self, symbolic: bool, decide: Callable[[Bool], bool], integer: Callable[[Expr], int],
                 settled: Callable[[Bool], bool | None], check: Callable[[Bool], bool] | None = None,
                 seen: Callable[[], bool] = lambda: False):  # fmt: skip
        self.space, self.symbolic, self._decide, self._integer = Space(), symbolic, decide, integer
        self.settled, self.check, self._seen = settled, check or decide, seen
        self._formulas = 0

    @property
    def seen(self) -> bool:
        """Does the program get to see a text? Then it has to be what eager would show."""
        return not self._formulas and self._seen()

    def integer(self, value: int | SymInt) -> int:
        return self._integer(value.expr) if type(value) is SymInt else value

    def decide(self, condition: Bool | bool) -> bool:
        return condition if isinstance(condition, bool) else self._decide(condition)

    def wrap(self, expr: Expr) -> int | SymInt:
        """What a program gets for an expression: a plain int where that is all it can be."""
        return SymInt(expr, self) if expr.value is None else expr.value

    def condition(self, condition: Bool | bool) -> bool | SymBool:
        return condition if isinstance(condition, bool) else SymBool(condition, self)

    @contextlib.contextmanager
    def in_formula(self) -> Iterator[None]:
        """A shape formula computes expressions, whatever the analysis makes of a program's looks."""
        before, self.symbolic = self.symbolic, True
        self._formulas += 1
        try:
            yield
        finally:
            self.symbolic = before
            self._formulas -= 1


def expr_of(value: Any) -> Expr | None:
    """The expression of an int, a bool, or one of ours; None for anything else."""
    if type(value) is SymInt:
        return value.expr
    if type(value) is SymBool:
        return value.sizes.space.call("int", (value.condition,))
    return number(int(value)) if isinstance(value, int) else None


def _arithmetic(fn: Callable[[Any, Any], Any], build: Callable[[Expr, Expr], Expr] | None) -> tuple[Callable, Callable]:
    """`fn` as the method of the left and of the right operand. Without `build`, or for a float, it specialises."""

    def apply(sizes: Sizes, a: Any, b: Any) -> Any:
        x, y = expr_of(a), expr_of(b)
        if build is not None and sizes.symbolic and x is not None and y is not None:
            return sizes.wrap(build(x, y))
        if not isinstance(a, (int, float, complex)) or not isinstance(b, (int, float, complex)):
            return NotImplemented
        return fn(*(_plain(v) for v in (a, b)))

    return (lambda self, other: apply(self.sizes, self, other)), (lambda self, other: apply(self.sizes, other, self))


def _plain(value: Any) -> Any:
    """The Python value, to which the trace is committed from here on."""
    if type(value) is SymInt:
        return value.sizes.integer(value)
    return bool(value) if type(value) is SymBool else value


def _compare(op: str, fn: Callable[[Any, Any], bool]) -> Callable:
    def method(self: SymInt | SymBool, other: Any) -> Any:
        if isinstance(other, float):
            if not math.isfinite(other):
                return fn(0, other)  # every int compares with it as 0 does
            if not other.is_integer():  # n > 2.5 is n >= 3
                if op in ("==", "!="):
                    return op == "!="
                return getattr(self, _METHODS[{"<": "<=", ">": ">="}.get(op, op)])(
                    math.ceil(other) if op in (">", ">=") else math.floor(other)
                )
            other = int(other)
        y = expr_of(other)
        if y is None:
            return NotImplemented
        if not self.sizes.symbolic:
            return fn(_plain(self), _plain(other))
        return self.sizes.condition(relation(op, expr_of(self), y))

    return method


_METHODS = {"==": "__eq__", "!=": "__ne__", "<": "__lt__", "<=": "__le__", ">": "__gt__", ">=": "__ge__"}


def _power(a: Expr, b: Expr) -> Expr:
    result = number(1)
    for _ in range(b.value):
        result = result * a
    return result


class _Node:
    """What PyTorch's own code finds behind a SymInt or SymBool (a SymNode, there): it may ask for the plain value."""

    def __init__(self, value: Any):
        self._value = value

    def guard_int(self, file: str, line: int) -> int:
        return int(self._value)

    def guard_bool(self, file: str, line: int) -> bool:
        return bool(self._value)

    expect_size = guard_bool

    def expect_true(self, file: str, line: int) -> bool:
        return self._value.sizes.check(self._value.condition)  # torch._check

    def maybe_as_int(self) -> None:
        return None

    is_constant = is_nested_int = is_symbolic = lambda self: False
    is_int = lambda self: type(self._value) is SymInt  # noqa: E731
    is_bool = lambda self: type(self._value) is SymBool  # noqa: E731


class _Symbolic:
    """What SymInt and SymBool share: they stand for a plain value wherever Python asks for one."""

    sizes: Sizes
    node = property(_Node)

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __index__(self) -> int:
        return int(_plain(self))

    __int__ = __trunc__ = __floor__ = __ceil__ = __index__

    def __float__(self) -> float:
        return float(_plain(self))

    def __complex__(self) -> complex:
        return complex(_plain(self))

    def __str__(self) -> str:
        return str(_plain(self))  # text may decide anything: a key, a file name

    def __format__(self, spec: str) -> str:
        return format(_plain(self), spec)

    def __hash__(self) -> int:
        return hash(_plain(self))  # the key of a dict: equal keys must have equal hashes

    def __reduce__(self) -> Any:
        return type(_plain(self)), (_plain(self),)

    def __sym_int__(self) -> Any:
        return self

    def __sym_float__(self) -> float:
        return float(self)

    def __sym_max__(self, other: Any) -> Any:
        return sym_max(self, other)

    def __sym_min__(self, other: Any) -> Any:
        return sym_min(self, other)

    __add__, __radd__ = _arithmetic(operator.add, Expr.__add__)
    __sub__, __rsub__ = _arithmetic(operator.sub, Expr.__sub__)
    __mul__, __rmul__ = _arithmetic(operator.mul, Expr.__mul__)
    __floordiv__, __rfloordiv__ = _arithmetic(operator.floordiv, floordiv)
    __mod__, __rmod__ = _arithmetic(operator.mod, mod)
    __truediv__, __rtruediv__ = _arithmetic(operator.truediv, None)
    __lshift__, __rlshift__ = _arithmetic(operator.lshift, None)
    __rshift__, __rrshift__ = _arithmetic(operator.rshift, None)
    __eq__, __ne__ = _compare("==", operator.eq), _compare("!=", operator.ne)
    __lt__, __le__ = _compare("<", operator.lt), _compare("<=", operator.le)
    __gt__, __ge__ = _compare(">", operator.gt), _compare(">=", operator.ge)

    def __divmod__(self, other: Any) -> tuple:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple:
        return other // self, other % self

    def __neg__(self) -> Any:
        return 0 - self

    def __pos__(self) -> Any:
        return self + 0

    def __pow__(self, other: Any, modulus: Any = None) -> Any:
        if modulus is None and type(other) is int and 0 <= other <= 4 and self.sizes.symbolic:
            return self.sizes.wrap(_power(expr_of(self), number(other)))
        return pow(_plain(self), _plain(other), modulus)

    def __rpow__(self, other: Any) -> Any:
        return pow(other, _plain(self))


def _specialising(name: str) -> Callable:
    fn = getattr(operator, name, None)

    def method(self: Any, *args: Any) -> Any:
        plain = [_plain(a) for a in args]
        return fn(_plain(self), *plain) if fn else getattr(_plain(self), name)(*plain)

    return method


class SymInt(_Symbolic, torch.SymInt):
    """A size while a program is traced: `expr`, an expression over the parameters' sizes, and its `hint`.

    An int in every respect that a program can test; using it as a plain int (`int(n)`,
    `range(n)`, a list index) guards its value.
    """

    __slots__ = ("expr", "sizes")

    def __init__(self, expr: Expr, sizes: Sizes):
        self.expr, self.sizes = expr, sizes

    @property
    def __class__(self) -> type:
        return int  # so that isinstance(n, int) holds, as in eager

    @property
    def hint(self) -> int:
        return self.expr.hint

    def __repr__(self) -> str:
        """In the program a plain int, which is guarded, as all text may decide something; `expr` is there to look at."""
        return repr(_plain(self)) if self.sizes.seen else str(self.expr)

    def __bool__(self) -> bool:
        return bool(self != 0)

    def __abs__(self) -> Any:
        return sym_max(self, -self)

    def __round__(self, digits: int | None = None) -> Any:
        return self if digits is None or digits >= 0 else round(_plain(self), digits)

    __and__, __or__, __xor__ = map(_specialising, ("and_", "or_", "xor"))
    __rand__, __ror__, __rxor__ = map(_specialising, ("__rand__", "__ror__", "__rxor__"))
    __invert__ = _specialising("invert")
    bit_length, as_integer_ratio, conjugate = map(_specialising, ("bit_length", "as_integer_ratio", "conjugate"))
    is_integer = _specialising("is_integer")
    real = numerator = property(lambda self: self)
    imag, denominator = property(lambda self: 0), property(lambda self: 1)


class SymBool(_Symbolic, torch.SymBool):
    """A condition on sizes while a program is traced. `bool(c)`, which an `if` asks for, guards its outcome."""

    __slots__ = ("condition", "sizes")

    def __init__(self, condition: Bool, sizes: Sizes):
        self.condition, self.sizes = condition, sizes

    @property
    def __class__(self) -> type:
        return bool

    @property
    def hint(self) -> bool:
        return self.condition.hint

    def __repr__(self) -> str:
        return repr(_plain(self)) if self.sizes.seen else str(self.condition)

    def __bool__(self) -> bool:
        return self.sizes.decide(self.condition)

    def _joined(self, op: str, other: Any) -> Any:
        if not isinstance(other, bool):
            return getattr(operator, f"{op}_")(_plain(self), _plain(other))
        return self.sizes.condition(combine(op, (self.condition, other.condition if type(other) is SymBool else other)))

    def __and__(self, other: Any) -> Any:
        return self._joined("and", other)

    def __or__(self, other: Any) -> Any:
        return self._joined("or", other)

    __rand__, __ror__ = __and__, __or__

    def __xor__(self, other: Any) -> Any:
        return self != other

    __rxor__ = __xor__

    def __invert__(self) -> int:
        return ~_plain(self)

    def __sym_not__(self) -> Any:
        return self.sizes.condition(negate(self.condition))

    def __sym_ite__(self, then: Any, other: Any) -> Any:
        return then if self else other


def read(size: int | SymInt) -> int | SymInt:
    """A size that the program takes out of a shape."""
    return size if type(size) is int or size.sizes.symbolic else size.sizes.integer(size)


def items(shape: tuple) -> tuple:
    """What a shape holds, without reading it."""
    return tuple(tuple.__iter__(shape))


class Size(tuple):
    """The shape of a traced value, of ints and SymInts; `torch.Size` to `isinstance`, since that class can't be subclassed.

    Two shapes compare as one condition.
    """

    def __new__(cls, sizes: Iterable[int | SymInt] = ()) -> Size:
        return super().__new__(cls, items(sizes) if type(sizes) is Size else sizes)

    @property
    def __class__(self) -> type:
        return torch.Size

    def numel(self) -> int | SymInt:
        return math.prod(self)

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, tuple):
            return NotImplemented
        if len(self) != len(other):
            return False
        pairs = [a == b for a, b in zip(self, other, strict=True)]
        symbolic = [p for p in pairs if type(p) is SymBool]
        if not symbolic or not all(p for p in pairs if type(p) is not SymBool):
            return all(bool(p) for p in pairs if type(p) is not SymBool)
        return bool(symbolic[0].sizes.condition(combine("and", [p.condition for p in symbolic])))

    def __ne__(self, other: object) -> Any:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    def __hash__(self) -> int:
        return hash(tuple(map(int, self)))

    def __getitem__(self, index: Any) -> Any:
        item = super().__getitem__(index)
        return Size(item) if isinstance(index, slice) else read(item)

    def __iter__(self) -> Iterator[Any]:
        return map(read, super().__iter__())

    def __add__(self, other: Any) -> Any:
        return Size(items(self) + items(other)) if isinstance(other, tuple) else NotImplemented

    def __radd__(self, other: Any) -> Any:
        return Size(items(other) + items(self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, times: int) -> Any:
        return Size(items(self) * int(times))

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(repr, items(self)))}])"


class Mask(Size):
    """The shape of a boolean tensor, in a shape formula."""


class _Unbacked:
    """In a formula's result: a size that depends on the inputs' data."""

    def __repr__(self) -> str:
        return "u"


UNBACKED = _Unbacked()


# -- for shape formulas: on ints they compute, on SymInts they build an expression ------------------


def _joining(op: str, plain: Callable[..., int]) -> Callable[..., Any]:
    def joined(*values: Any) -> Any:
        sizes = next((v.sizes for v in values if type(v) in (SymInt, SymBool)), None)
        if sizes is None:
            return plain(*values)
        if not sizes.symbolic:
            return plain(*map(_plain, values))
        return sizes.wrap(join(op, map(expr_of, values)))

    return joined


def _broadcast(*sizes: int) -> int:
    wide = {n for n in sizes if n != 1}
    if len(wide) > 1:
        raise ValueError(f"sizes {sizes} don't broadcast")
    return wide.pop() if wide else 1


#: The size that dimensions of these sizes broadcast to.
broadcast = _joining("broadcast", _broadcast)
sym_max = _joining("max", max)
sym_min = _joining("min", min)


def when(condition: bool | SymBool, size: Any) -> Any:
    """`size` where the condition holds, else 0. No decision, unless the guards so far have taken it."""
    known = condition.sizes.settled(condition.condition) if type(condition) is SymBool else condition
    return size * condition if known is None else size if known else 0


def ceildiv(a: Any, b: Any) -> Any:
    """a / b, rounded up."""
    return -(-a // b)


def scaled(n: Any, factor: float) -> Any:
    """n times a positive number, rounded down, as floats have it."""
    if type(n) is not SymInt or factor == int(factor):
        return int(n * factor) if type(n) is not SymInt else n * int(factor)
    p, q = factor.as_integer_ratio()
    if q <= 2**20:  # a short fraction, like 0.5: exact
        return n * p // q
    return n.sizes.wrap(n.sizes.space.call("scaled", (n.expr, number(p), number(q))))
