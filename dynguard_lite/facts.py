"""What a trace has committed itself to about sizes: conditions, kept as few and as simple as they go.

A comparison of sizes is a bound on one linear combination of them: `2*n > 6` bounds n.
All bounds on the same combination are kept as one interval and a set of excluded values;
what follows from the rest is dropped; two bounds print as one range, `4 < n <= 8`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from .expressions import MIRRORED, RELATIONS, Bool, Expr, Range, expressions, number, ranges, symbols, unbacked
from .guards import Guard
from .source import Cause

Reason = tuple[Cause, str]


@dataclass
class Interval:
    """Integers that `linear`, an expression without a constant, may be: `lo` to `hi`, without `excluded`."""

    linear: Expr
    lo: float = -math.inf
    hi: float = math.inf
    excluded: dict[int, Reason] = field(default_factory=dict)
    reasons: dict[str, Reason] = field(default_factory=dict)  # of "lo" and "hi"
    strict: set[str] = field(default_factory=set)  # ends that the program wrote with < or >

    def meet(self, other: Interval, reason: Reason) -> None:
        """Keep what both allow; a bound that is no tighter keeps its first reason."""
        for end, tighter in (("lo", other.lo > self.lo), ("hi", other.hi < self.hi)):
            if tighter:
                setattr(self, end, getattr(other, end))
                self.reasons.pop(end, None)
                self.reasons[end] = reason  # last, as the latest
                self.strict = (self.strict - {end}) | (other.strict & {end})
        for n in other.excluded:
            self.excluded.setdefault(n, reason)
        while self.lo in self.excluded:
            self.reasons["lo"] = self.excluded.pop(self.lo)
            self.lo, self.strict = self.lo + 1, self.strict | {"lo"}
        while self.hi in self.excluded:
            self.reasons["hi"] = self.excluded.pop(self.hi)
            self.hi, self.strict = self.hi - 1, self.strict | {"hi"}
        self.excluded = {n: r for n, r in self.excluded.items() if self.lo < n < self.hi}


def interval(condition: Bool) -> Interval:
    """The interval that a relation allows: `6 < 2*n` is n from 4 up."""
    difference = condition.args[0] - condition.args[1]
    factors = [c for m, c in difference.terms.items() if m]
    factor = math.gcd(*factors) * (1 if factors[0] > 0 else -1)
    linear = Expr({m: c // factor for m, c in difference.terms.items() if m})
    op = MIRRORED[condition.op] if factor < 0 else condition.op
    # linear * |factor| op bound
    factor, bound = abs(factor), -difference.constant * (1 if factor > 0 else -1)
    whole = bound % factor == 0
    if op == "==":
        return Interval(linear, bound // factor, bound // factor) if whole else Interval(linear, 1, 0)
    if op == "!=":
        return Interval(linear, excluded={bound // factor: ()} if whole else {})  # type: ignore[dict-item]
    if op in (">", ">="):
        lo = bound // factor + 1 if op == ">" or not whole else bound // factor
        return Interval(linear, lo=lo, strict={"lo"} if op == ">" else set())
    hi = -(-bound // factor) - 1 if op == "<" or not whole else bound // factor
    return Interval(linear, hi=hi, strict={"hi"} if op == "<" else set())


class Facts:
    """The conditions so far. `settled` tells what follows from them; `add` takes one more."""

    def __init__(self) -> None:
        self._intervals: dict[Any, Interval] = {}
        self._others: dict[Bool, Reason] = {}  # and / or

    def settled(self, condition: Bool) -> bool | None:
        """True or False where the facts decide the condition, else None."""
        if condition.op in ("and", "or"):
            if condition in self._others:
                return True
            parts = [self.settled(a) for a in condition.args]
            decisive = condition.op == "or"
            return decisive if decisive in parts else None if None in parts else not decisive
        asked = interval(condition)
        known = self._intervals.get(asked.linear.key, asked)
        excluded = known.excluded if known is not asked else {}
        lo, hi = ranges(asked.linear, self._bounds)
        if known is not asked:
            lo, hi = max(lo, known.lo), min(hi, known.hi)
        while lo in excluded:
            lo += 1
        while hi in excluded:
            hi -= 1
        if lo > hi:
            return None  # the facts contradict each other where eager would raise anyway
        if asked.lo <= lo and hi <= asked.hi and all(n in excluded or not lo <= n <= hi for n in asked.excluded):
            return True
        if hi < asked.lo or asked.hi < lo or (lo == hi and lo in asked.excluded):
            return False
        return False if asked.lo == asked.hi and asked.lo in excluded else None

    def _bounds(self, key: Any) -> Range | None:
        found = self._intervals.get(key)
        return found and (found.lo, found.hi)

    def add(self, condition: Bool, reason: Reason) -> None:
        """`condition` holds, because of `reason`."""
        if condition.op == "and":
            for part in condition.args:
                self.add(part, reason)
        elif condition.op == "or":
            self._others.setdefault(condition, reason)
        else:
            found = interval(condition)
            self._intervals.setdefault(found.linear.key, Interval(found.linear)).meet(found, reason)

    def _parts(self) -> list[Part]:
        parts: list[Part] = []
        for i in self._intervals.values():
            if unbacked(i.linear):
                continue  # a runtime check says it
            if i.lo == i.hi:
                parts.append(Part(_relation(i.linear, "==", int(i.lo)), list(i.reasons.values())[-1], i.linear))
                continue
            if "lo" in i.reasons:
                strict = "lo" in i.strict
                bound = _relation(i.linear, ">" if strict else ">=", int(i.lo) - strict)
                parts.append(Part(bound, i.reasons["lo"], i.linear))
            if "hi" in i.reasons:
                strict = "hi" in i.strict
                bound = _relation(i.linear, "<" if strict else "<=", int(i.hi) + strict)
                parts.append(Part(bound, i.reasons["hi"], i.linear))
            parts += [Part(_relation(i.linear, "!=", n), reason, i.linear) for n, reason in i.excluded.items()]
        return parts + [Part(c, reason) for c, reason in self._others.items() if not unbacked(c)]

    def guards(self) -> list[Guard]:
        """The guards that say all this, without those that follow from the others."""
        kept = self._parts()
        for part in list(kept) if len(kept) <= _MANY else ():
            rest = Facts()
            for other in kept:
                if other is not part:
                    rest.add(other.condition, other.reason)
            if rest.settled(part.condition):
                kept.remove(part)
        guards, used = [], set()
        for i, part in enumerate(kept):
            pair = next((q for q in kept[i + 1 :] if _makes_a_range(part, q)), None)
            if i not in used:
                guards.append(_guard(part, pair))
            if pair is not None:
                used.add(kept.index(pair))
        return guards


@dataclass(frozen=True)
class Part:
    """One condition of the facts; `linear` is what a relation bounds."""

    condition: Bool
    reason: Reason
    linear: Expr | None = None


_MANY = 100  # more guards than these are left as they are: finding what follows from what costs their square


def _relation(linear: Expr, op: str, bound: int) -> Bool:
    """`linear op bound` without a minus sign: terms with a negative coefficient go to the other side."""
    left = Expr({m: c for m, c in linear.terms.items() if c > 0})
    right = left - linear
    return Bool(op, (left + number(max(-bound, 0)), right + number(max(bound, 0))))


def _makes_a_range(a: Part, b: Part) -> bool:
    bounds = {a.condition.op[0], b.condition.op[0]} == {"<", ">"}
    return bounds and a.linear == b.linear and a.condition.args[1].value is not None and b.condition.args[1].value is not None


def _guard(part: Part, upper: Part | None) -> Guard:
    condition, (cause, why) = part.condition, part.reason
    dims = tuple(symbols(condition))
    params = tuple(dict.fromkeys(name for name, _ in dims))
    code, kind = str(condition), "expression"
    if condition.op not in RELATIONS:
        subject, expected = f"({', '.join(dict.fromkeys(str(e) for e in expressions(condition)))},)", code
    else:
        left, right = condition.args
        subject, expected = str(left), str(right) if condition.op == "==" else f"{condition.op} {right}"
        if right.value is None:
            subject, expected = f"({left}, {right})", code
        elif condition.op == "==" and len(dims) == 1 and left == left.space.size(*dims[0], left.hint):
            kind = "size"
    if upper is not None:
        code = f"{condition.args[1]} {MIRRORED[condition.op]} {condition.args[0]} {upper.condition.op} {upper.condition.args[1]}"
        expected = code
    return Guard(code, kind, subject, expected, cause, why, params, dims)
