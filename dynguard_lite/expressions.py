"""The expression language of sizes: what a size is, as a formula over the sizes of the parameters.

An `Expr` is a polynomial with integer coefficients over *atoms*. An atom is the size of a
parameter (`a.shape[0]`) or an operation that no polynomial can say (`//`, `%`, `min`,
`max`, `broadcast`, a condition used as a number). Polynomials have one form only, so
`2 * (n + 1)` and `n + n + 2` are equal without a prover, and most simplification is
plain arithmetic. A `Bool` compares two of them, or joins comparisons by `and` / `or`.

Every expression carries its hint: its value for the inputs seen while tracing.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from typing import Any

#: The longest expression, in atoms, that is worth a guard of its own.
LONGEST = 200


def broadcast(*sizes: int) -> int:
    """The size that dimensions of these sizes broadcast to, where they do."""
    return next((n for n in sizes if n != 1), 1)


_COMPUTE: dict[str, Callable[..., int]] = {
    "//": operator.floordiv, "%": operator.mod, "min": min, "max": max, "broadcast": broadcast, "int": int,
    "scaled": lambda n, p, q: int(n * (p / q))}  # fmt: skip
RELATIONS: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}  # fmt: skip
OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
MIRRORED = {"==": "==", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


LEAVES = ("size", "unbacked")


class Atom:
    """A size of a parameter (`op` is "size"), an operation on expressions, "unknown": a size that
    some op without a formula computes from its arguments, or "unbacked": one that depends on data.
    Compared by identity: `Space` makes each once."""

    __slots__ = ("args", "hint", "index", "known", "op", "space", "weight")

    def __init__(self, space: Space, op: str, args: tuple, hint: int):
        self.space, self.op, self.args, self.hint = space, op, args, hint
        self.index = len(space.atoms)
        space.atoms.append(self)
        parts = [] if op in LEAVES else [e for a in args for e in expressions(a)]
        self.known = op != "unknown" and all(e.known for e in parts)
        self.weight = 1 + sum(e.weight for e in parts)  # of the expression written out as a tree


class Space:
    """The atoms of one trace, in order: an atom comes after all that it is made of."""

    def __init__(self) -> None:
        self.atoms: list[Atom] = []
        self._made: dict[tuple, Atom] = {}

    def size(self, parameter: str, dim: int, hint: int) -> Expr:
        """The size of a dimension of a parameter, a symbol of the language."""
        return self._make("size", (parameter, dim), (parameter, dim), lambda: hint)

    def unknown(self, sources: Iterable[Expr], hint: int) -> Expr:
        """A size that follows from `sources` in a way that no formula tells."""
        return Expr({(Atom(self, "unknown", tuple(sources), hint),): 1})

    def unbacked(self, node: str, dim: int, hint: int) -> Expr:
        """The size of a dimension of a node's result that depends on data: known once the node is computed."""
        return self._make("unbacked", (node, dim), (node, dim), lambda: hint)

    def call(self, op: str, args: tuple) -> Expr:
        """The operation `op` on expressions (or on a Bool, for "int")."""
        key = tuple(a.key for a in args)
        # the order of arguments that doesn't matter doesn't make another atom
        key = frozenset(key) if op in ("min", "max", "broadcast") else key
        return self._make(op, args, key, lambda: _COMPUTE[op](*(a.hint for a in args)))

    def _make(self, op: str, args: tuple, key: Any, hint: Callable[[], int]) -> Expr:
        atom = self._made.get((op, key))
        if atom is None:
            atom = self._made[op, key] = Atom(self, op, args, hint())
        return Expr({(atom,): 1})


class Expr:
    """A polynomial: `terms` maps a product of atoms, in order, to its coefficient; `()` is the constant's."""

    __slots__ = ("hint", "key", "terms")

    def __init__(self, terms: dict[tuple[Atom, ...], int]):
        self.terms = {m: c for m, c in terms.items() if c}
        self.hint = sum(c * math.prod(a.hint for a in m) for m, c in self.terms.items())
        self.key = frozenset(self.terms.items())

    @property
    def value(self) -> int | None:
        """The number, if it is one whatever the sizes are."""
        return self.hint if not self.terms or (len(self.terms) == 1 and () in self.terms) else None

    @property
    def constant(self) -> int:
        return self.terms.get((), 0)

    @property
    def known(self) -> bool:
        """Can it be computed from the parameters' sizes alone?"""
        return all(a.known for m in self.terms for a in m)

    @property
    def weight(self) -> int:
        return sum(a.weight for m in self.terms for a in m)

    @property
    def space(self) -> Space:
        return next(a.space for m in self.terms for a in m)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expr) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __add__(self, other: Expr) -> Expr:
        terms = dict(self.terms)
        for m, c in other.terms.items():
            terms[m] = terms.get(m, 0) + c
        return Expr(terms)

    def __neg__(self) -> Expr:
        return Expr({m: -c for m, c in self.terms.items()})

    def __sub__(self, other: Expr) -> Expr:
        return self + -other

    def __mul__(self, other: Expr) -> Expr:
        terms: dict[tuple[Atom, ...], int] = {}
        for m, c in self.terms.items():
            for n, d in other.terms.items():
                product = tuple(sorted(m + n, key=lambda a: a.index))
                terms[product] = terms.get(product, 0) + c * d
        return Expr(terms)

    def __str__(self) -> str:
        return text(self)

    __repr__ = __str__


def number(n: int) -> Expr:
    return Expr({(): n})


def floordiv(a: Expr, b: Expr) -> Expr:
    """a // b. What divides without a rest is divided (`4*n // 2` is `2*n`); a zero divisor raises where it is reached."""
    if a.value is not None and b.value is not None:
        return number(a.value // b.value)
    if b.value is not None and b.value > 0:  # (4*n + m + 9) // 4 is n + 2 + (m + 1) // 4
        whole = Expr({m: c // b.value for m, c in a.terms.items() if m == () or c % b.value == 0})
        rest = a - whole * b
        if rest.value is not None:
            return whole
        common = math.gcd(b.value, *(c for m, c in rest.terms.items() if m))  # (2*n + 1) // 4 is n // 2
        rest, b = Expr({m: c // common for m, c in rest.terms.items()}), number(b.value // common)
        return whole + (rest if b.value == 1 else rest.space.call("//", (rest, b)))
    a, b = _reduced(a, b)
    if b.value is not None and b.value > 0:
        return floordiv(a, b)
    exact = _divide(a, b)
    return exact if exact is not None else (a + b).space.call("//", (a, b)) if a != -b else number(-1)


def _reduced(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """a and b without the factors that they share: `n*m // (2*n)` is `m // 2` (with n zero, eager raises)."""
    if len(b.terms) != 1 or not a.terms:
        return a, b
    for atom in next(iter(b.terms)):
        if all(atom in m for m in a.terms):
            a, b = _without(a, atom), _without(b, atom)
    return a, b


def _without(e: Expr, atom: Atom) -> Expr:
    return Expr({m[: (i := m.index(atom))] + m[i + 1 :]: c for m, c in e.terms.items()})


def _divide(a: Expr, b: Expr) -> Expr | None:
    """a / b where b is one product and divides each term of a: `n*m // n` is m (with n zero, eager raises)."""
    if len(b.terms) != 1:
        return number(1) if a == b else None
    ((atoms, factor),) = b.terms.items()
    terms = {}
    for m, c in a.terms.items():
        rest = list(m)
        for atom in atoms:
            if atom not in rest:
                return None
            rest.remove(atom)
        if c % factor:
            return None
        terms[tuple(rest)] = c // factor
    return Expr(terms)


def mod(a: Expr, b: Expr) -> Expr:
    if a.value is not None and b.value is not None:
        return number(a.value % b.value)
    if b.value is not None and b.value > 0:
        a = Expr({m: c % b.value for m, c in a.terms.items()})
        return number(a.value % b.value) if a.value is not None else a.space.call("%", (a, b))
    return number(0) if _divide(a, b) is not None else next(e for e in (a, b) if e.value is None).space.call("%", (a, b))


def join(op: str, parts: Iterable[Expr]) -> Expr:
    """`min`, `max` or `broadcast` of the parts: flattened, each part once, numbers taken together."""
    flat: dict[Expr, None] = {}
    numbers: list[int] = []
    for part in parts:
        inner = _single(part)
        for p in inner.args if inner is not None and inner.op == op else (part,):
            if p.value is None:
                flat.setdefault(p)
            else:
                numbers.append(p.value)
    if numbers:
        n = _COMPUTE[op](*numbers, numbers[0])
        if not flat or (op == "broadcast" and n != 1):
            return number(n)  # the others are n or 1, or it doesn't broadcast
        if op != "broadcast":
            flat.setdefault(number(n))
    if op != "broadcast":
        for p in tuple(flat):
            if any(p is not q and (at_most(q, p) if op == "min" else at_most(p, q)) for q in flat):
                del flat[p]
    args = tuple(flat)
    return args[0] if len(args) == 1 else next(e for e in args if e.value is None).space.call(op, args)


def at_most(a: Expr, b: Expr) -> bool:
    """Is a <= b whatever the sizes are, as far as that is easily seen?"""
    if low(b - a) >= 0:
        return True
    for e, each, other in ((a, "max", b), (b, "min", a)):
        atom = _single(e)
        if atom is not None and atom.op in ("min", "max"):
            pairs = [(p, other) if e is a else (other, p) for p in atom.args]
            if (all if atom.op == each else any)(at_most(x, y) for x, y in pairs):
                return True
    return False


def _single(e: Expr) -> Atom | None:
    """The atom that the expression is, if it is one."""
    ((m, c),) = e.terms.items() if len(e.terms) == 1 else (((), 0),)
    return m[0] if c == 1 and len(m) == 1 else None


def low(e: Expr) -> float:
    """A lower bound, from sizes being at least 0."""
    return ranges(e)[0]


class Bool:
    """A condition on sizes: a relation of two expressions, or `and` / `or` of conditions."""

    __slots__ = ("args", "hint", "key", "op")

    def __init__(self, op: str, args: tuple):
        self.op, self.args = op, args
        if op in RELATIONS:
            self.hint = RELATIONS[op](args[0].hint, args[1].hint)
            self.key: Any = (op, (args[0] - args[1]).key)
        else:
            self.hint = (all if op == "and" else any)(a.hint for a in args)
            self.key = (op, frozenset(a.key for a in args))

    @property
    def known(self) -> bool:
        return all(e.known for e in expressions(self))

    @property
    def weight(self) -> int:
        return sum(e.weight for e in expressions(self))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bool) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __str__(self) -> str:
        if self.op in RELATIONS:
            return f"{text(self.args[0])} {self.op} {text(self.args[1])}"
        parts = (f"({a})" if a.op == "or" and self.op == "and" else str(a) for a in self.args)
        return f" {self.op} ".join(parts)

    __repr__ = __str__


def relation(op: str, a: Expr, b: Expr) -> Bool | bool:
    """`a op b`; a plain bool where no size could make a difference."""
    difference = (a - b).value
    return Bool(op, (a, b)) if difference is None else RELATIONS[op](difference, 0)


def combine(op: str, parts: Iterable[Bool | bool]) -> Bool | bool:
    """`and` / `or` of conditions, flattened, without those that are settled."""
    flat: dict[Bool, None] = {}
    for part in parts:
        if isinstance(part, bool):
            if part == (op == "or"):
                return part
        else:
            flat.update(dict.fromkeys(part.args if part.op == op else (part,)))
    args = tuple(flat)
    return (op == "and") if not args else args[0] if len(args) == 1 else Bool(op, args)


def negate(b: Bool | bool) -> Bool | bool:
    if isinstance(b, bool):
        return not b
    if b.op in RELATIONS:
        return Bool(OPPOSITE[b.op], b.args)
    return Bool("or" if b.op == "and" else "and", tuple(negate(a) for a in b.args))


class Shape(tuple):
    """A shape with expressions in it, as a graph keeps it: a replay makes a torch.Size of it."""


def expressions(value: Expr | Bool) -> list[Expr]:
    """The expressions that a condition compares; of an expression, itself."""
    if isinstance(value, Expr):
        return [value]
    return [e for a in value.args for e in expressions(a)]


def atoms(*values: Expr | Bool) -> list[Atom]:
    """All atoms that the values are made of, each after its own parts."""
    found: set[Atom] = set()
    todo = [a for v in values for e in expressions(v) for m in e.terms for a in m]
    while todo:
        atom = todo.pop()
        if atom not in found:
            found.add(atom)
            if atom.op not in LEAVES:
                todo.extend(a for v in atom.args for e in expressions(v) for m in e.terms for a in m)
    return sorted(found, key=lambda a: a.index)


def symbols(*values: Expr | Bool) -> list[tuple[str, int]]:
    """The (parameter, dimension) pairs that the values follow from."""
    return [atom.args for atom in atoms(*values) if atom.op == "size"]


def unbacked(*values: Expr | Bool) -> list[Atom]:
    """The sizes that depend on data among what the values follow from."""
    return [atom for atom in atoms(*values) if atom.op == "unbacked"]


class Evaluation:
    """Computes expressions for given sizes of the parameters (and of nodes, once computed); each atom once."""

    def __init__(self, shapes: Callable[[str], tuple[int, ...]]):
        self._shapes = shapes
        self._values: dict[Atom, int] = {}

    def __call__(self, value: Expr | Bool) -> int | bool:
        for atom in atoms(value):
            if atom not in self._values:
                if atom.op in LEAVES:
                    name, dim = atom.args
                    self._values[atom] = self._shapes(name)[dim]
                else:
                    self._values[atom] = _COMPUTE[atom.op](*map(self._of, atom.args))
        return self._of(value)

    def _of(self, value: Expr | Bool) -> int | bool:
        if isinstance(value, Expr):
            return sum(c * math.prod(self._values[a] for a in m) for m, c in value.terms.items())
        if value.op in RELATIONS:
            return RELATIONS[value.op](self._of(value.args[0]), self._of(value.args[1]))
        return (all if value.op == "and" else any)(map(self._of, value.args))


# -- text ------------------------------------------------------------------------------------------


def text(e: Expr, tight: bool = False) -> str:
    """As Python writes it; `tight`: in parentheses where an operator beside it could bind closer."""
    if e.weight > LONGEST:
        return f"<a size of {len(atoms(e))} operations>"
    if not e.terms:
        return "0"
    parts: list[str] = []
    for m, c in sorted(e.terms.items(), key=lambda term: (term[1] < 0, not term[0])):  # n - 3, but 2 - n
        factors = [_atom_text(a, tight or c < 0 or abs(c) > 1 or len(m) > 1) for a in m]
        factors = factors if abs(c) == 1 and m else [str(abs(c)), *factors]
        sign = ("-" if c < 0 else "") if not parts else (" - " if c < 0 else " + ")
        parts.append(sign + "*".join(factors))
    joined = "".join(parts)
    alone = len(e.terms) == 1 and (e.value is not None or (list(e.terms.values()) == [1] and len(next(iter(e.terms))) == 1))
    return f"({joined})" if tight and not alone else joined


def _atom_text(atom: Atom, tight: bool) -> str:
    if atom.op == "size":
        name, dim = atom.args
        return f"{name}.shape[{dim}]"
    if atom.op == "unbacked":
        return f"u{[a for a in atom.space.atoms if a.op == 'unbacked'].index(atom)}"
    if atom.op in ("//", "%"):
        a, b = atom.args
        negated = len(a.terms) == 1 and -1 in a.terms.values()  # -n // 2 is (-n) // 2
        joined = f"{text(a, tight=not negated)} {atom.op} {text(b, tight=True)}"
        return f"({joined})" if tight else joined
    if atom.op == "int":
        return f"({atom.args[0]})"
    if atom.op == "scaled":
        n, p, q = atom.args
        return f"int({text(n, tight=True)}*{p.hint / q.hint})"
    return f"{atom.op}({', '.join(map(text, atom.args))})"


# -- ranges ----------------------------------------------------------------------------------------

Range = tuple[float, float]


def ranges(e: Expr, fact: Callable[[Any], Range | None] = lambda key: None) -> Range:
    """Bounds of the value: from sizes being at least 0, and from `fact(key)`, bounds of the expression with that key."""
    known: dict[Atom, Range] = {}
    for atom in atoms(e):
        inner = [_bounds(a, known) for a in atom.args if isinstance(a, Expr)] if atom.op not in (*LEAVES, "unknown") else []
        lower, upper = _of_atom(atom, inner)
        more = fact(Expr({(atom,): 1}).key) or (lower, upper)
        known[atom] = max(lower, more[0]), min(upper, more[1])
    return _bounds(e, known)


def _bounds(e: Expr, known: dict[Atom, Range]) -> Range:
    lower: float = 0
    upper: float = 0
    for m, c in e.terms.items():
        a, b = 1, 1
        for atom in m:
            ends = [_times(x, y) for x in (a, b) for y in known[atom]]
            a, b = min(ends), max(ends)
        a, b = (_times(c, a), _times(c, b)) if c > 0 else (_times(c, b), _times(c, a))
        lower, upper = lower + a, upper + b
    return lower, upper


def _times(a: float, b: float) -> float:
    return 0 if a == 0 or b == 0 else a * b  # infinity times zero is zero here: the factor is a size


def _of_atom(atom: Atom, inner: list[Range]) -> Range:
    if atom.op in (*LEAVES, "unknown"):
        return 0, math.inf
    if atom.op == "int":
        return 0, 1
    if atom.op == "scaled":
        return (0 if inner[0][0] >= 0 else -math.inf), math.inf
    if atom.op in ("min", "max"):
        pick = min if atom.op == "min" else max
        return pick(a for a, _ in inner), pick(b for _, b in inner)
    if atom.op == "broadcast":  # it is one of them, and it is 1 only if all are
        return min(a for a, _ in inner), max(b for _, b in inner)
    (a, b), (c, d) = inner
    if not (c == d and c > 0):
        return -math.inf, math.inf
    if atom.op == "%":
        return 0, c - 1
    return (a if math.isinf(a) else a // c), (b if math.isinf(b) else b // c)
