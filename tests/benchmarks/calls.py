"""What every call pays: the check of the guards, the replay, both behind a cache."""

from __future__ import annotations

import torch
from measuring import Case, Result, interleaved

import dynguard_lite as dg

# -- the check of the guards -----------------------------------------------------------------------------


def one(a):
    return [double_if_long(x) for x in (a,)]


def two(a, b):
    return [double_if_long(x) for x in (a, b)]


def eight(a, b, c, d, e, f, g, h):
    return [double_if_long(x) for x in (a, b, c, d, e, f, g, h)]


def double_if_long(x):
    return x * 2 if x.shape[0] > 3 else x


def eight_and_more(a, b, c, d, e, f, g, h):
    """Looks at more than sizes, so that our guards are on more than sizes too, as TorchDynamo's always are."""
    plain = [(x.dtype, x.device, x.requires_grad, x.stride()) for x in (a, b, c, d, e, f, g, h)]
    return [double_if_long(x) for x in (a, b, c, d, e, f, g, h)] if plain else []


#: Ours, and what TorchDynamo is told so that it guards the same of sizes: nothing symbolic; the first dimension
#: fixed while a second call has shown the others to change; all symbolic.
RUNGS = {"whole shape": "whole_tensor", "per dimension": "per_dimension", "symbolic": "symbolic"}


def check(program, n: int, kind: str, quick: bool) -> Result:
    tensors = [torch.randn(4, 3 + i) for i in range(n)]
    t = dg.trace(program, *tensors, analysis=RUNGS[kind])
    wider = tuple(torch.randn(4, 13 + i) for i in range(n))
    options = {"whole shape": {"dynamic": False}, "per dimension": {"also": (wider,)}, "symbolic": {"dynamic": True}}[kind]
    d = dg.dynamo.trace(program, *tensors, **options)
    manager, given = d.entry.guard_manager, dict(zip("abcdefgh", tensors, strict=False))
    assert t.accepts(*tensors) and manager.check(given)
    call = eval(f"lambda t: lambda a{', b' * (n > 1)}{', c, d, e, f, g, h' * (n > 2)}: lambda: t(a{', b' * (n > 1)}"
                f"{', c, d, e, f, g, h' * (n > 2)})")(t.accepts)(*tensors)  # fmt: skip
    return interleaved(call, lambda: manager.check(given), quick)


def checks() -> list[Case]:
    made = []
    for n, program in ((1, one), (2, two), (8, eight)):
        for kind in RUNGS:
            made.append(Case("guard check", f"{n} tensor{'s' * (n > 1)}, {kind}", "TorchDynamo's guard manager", 1.0,
                             lambda quick, a=(program, n, kind): check(*a, quick)))  # fmt: skip
    made.append(Case("guard check", "8 tensors, symbolic; dtype, device, strides, requires_grad too", "TorchDynamo's guard manager", 1.0,
                     lambda quick: check(eight_and_more, 8, "symbolic", quick)))  # fmt: skip
    return made


# -- the replay ------------------------------------------------------------------------------------------


class Chain(torch.nn.Module):
    """`n` cheap operations of five kinds."""

    def __init__(self, n: int):
        super().__init__()
        self.n = n

    def forward(self, x, y):
        steps = (lambda z: z + y, torch.relu, lambda z: z * 0.5, lambda z: z.neg(), lambda z: torch.sub(z, y))
        z = x
        for i in range(self.n):
            z = steps[i % 5](z)
        return z


def replay(n: int, against: str, quick: bool) -> Result:
    x, y = torch.randn(4, 4), torch.randn(4, 4)
    program = Chain(n)
    t = dg.trace(program, x, y)
    assert len(t.graph) == n + 2
    other = torch.fx.symbolic_trace(program) if against == "fx" else straight(n)
    assert torch.equal(t.replay(x, y), other(x, y))
    return interleaved(lambda: t.replay(x, y), lambda: other(x, y), quick)


def straight(n: int):
    """The same program written out, a line for each operation: eager PyTorch without the cost of our loop."""
    lines = ("z = z + y", "z = torch.relu(z)", "z = z * 0.5", "z = z.neg()", "z = torch.sub(z, y)")
    scope = {"torch": torch}
    exec("def program(z, y):\n" + "".join(f"    {lines[i % 5]}\n" for i in range(n)) + "    return z\n", scope)
    return scope["program"]


def replays() -> list[Case]:
    sides = {"fx": ("torch.fx.GraphModule", 1.05), "eager": ("eager", 1.1)}
    return [Case("replay", f"{n:,} ops on 4x4 tensors", name, goal, lambda quick, a=(n, key): replay(*a, quick))
            for n in (10, 100, 1000) for key, (name, goal) in sides.items()]  # fmt: skip


# -- the cache -------------------------------------------------------------------------------------------


def small(x):
    return torch.relu(x * 2 + 1)


def cached(entries: int, which: str, quick: bool) -> Result:
    torch._dynamo.reset()
    inputs = [torch.randn(3 + i, 4) for i in range(entries)]
    ours = dg.compile(small, analysis="static")
    theirs = torch.compile(small, backend="eager", dynamic=False)
    for x in inputs:
        ours(x), theirs(x)
    assert len(ours.traces) == entries
    hit = {"first": inputs[:1], "last": inputs[-1:], "each": inputs}[which]
    result = interleaved(lambda: [ours(x) for x in hit], lambda: [theirs(x) for x in hit], quick)
    torch._dynamo.reset()
    return result


def caches() -> list[Case]:
    made = [(1, "first", "1 entry"), (8, "first", "8 entries, hit first"), (8, "last", "8 entries, hit last"),
            (8, "each", "8 entries, each in turn (8 calls)")]  # fmt: skip
    return [Case("cached call", words, "torch.compile(f, backend='eager')", 1.0, lambda quick, a=(n, which): cached(*a, quick))
            for n, which, words in made]  # fmt: skip


def cases() -> list[Case]:
    return [*checks(), *replays(), *caches()]
