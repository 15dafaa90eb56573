# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 6 · Symbolic guards: keep the expression, guard the comparison
#
# **The question.** Can a trace stay valid for every size that takes the same path?
#
# *Know first:* lesson 5 (shape formulas, `per_dimension`, a size that carries an expression). *About 55 minutes.*
#
# [← previous](05_shape_formulas.ipynb) · [map](00_start_here.ipynb) · [next →](07_beside_torchdynamo.ipynb)

# %%
import itertools
import math
import warnings

import matplotlib.pyplot as plt
import torch
from IPython.display import display

import dynguard_lite as dg
from dynguard_lite.exercises import nb06

torch.manual_seed(0)


def guards(fn, *args, analysis="symbolic"):
    return [g.code for g in dg.trace(fn, *args, analysis=analysis).guards]


# %% [markdown]
# ## Where `per_dimension` stops
#
# Lesson 5 found *which* dimension a look depends on, then pinned it to the number seen. *Predict:* which sizes does its trace of this program accept? Which sizes take the same path?


# %%
def wide(x):
    if x.shape[0] > 3:
        return x * 2
    return x


for analysis in ("per_dimension", "symbolic"):
    t = dg.trace(wide, torch.randn(5), analysis=analysis)
    print(f"{analysis:13}", [g.code for g in t.guards], [n for n in range(10) if t.accepts(torch.randn(n))])

# %% [markdown]
# The program never needed to know that the size is 5. It asked one question, and the trace depends on the answer only. So under `symbolic` **the comparison is the guard**, with the outcome it had. All such guards together say which path the program took; elsewhere they are called the **path condition**.
#
# ## A size that looks like an int
#
# For that, `x.shape[0]` must keep its expression while the program computes with it. It is a **SymInt**: an expression, and a **hint**, its value for the inputs seen.


# %%
def inspected(x):
    n = x.shape[0]
    print(isinstance(n, int), "|", n.expr, "|", n.hint)
    print((2 * n + 1).expr, "|", (100 - n).expr, "|", ((n + n) // 4).expr, "|", (n > 3).condition)
    print([size.expr for size in torch.cat([x, x]).shape], "|", x.numel().expr)
    return x


guards(inspected, torch.randn(5, 3))

# %% [markdown]
# To `isinstance` it's an int, from either side of an operator too. The attribute `expr` is for your eyes. After all this the list of guards is empty: arithmetic commits us to nothing, and `n > 3` is a question that nobody has asked yet.
#
# It's asked when Python insists on a plain value. *Predict,* for each program below (`n` stands for `x.shape[0]`): no guard, a comparison, or `== 5`?

# %%
looks = {
    "x * n": lambda x: x * x.shape[0],
    "x * int(n)": lambda x: x * int(x.shape[0]),
    "range(n)": lambda x: [x + i for i in range(x.shape[0])],
    "list[n]": lambda x: [x, x, x, x, x, x * 2][x.shape[0]],
    "if n > 3": lambda x: x * 2 if x.shape[0] > 3 else x,
    "if n": lambda x: x * 2 if x.shape[0] else x,
    "f-string": lambda x: {"5 rows": x}[f"{x.shape[0]} rows"],
    "dict[n]": lambda x: {5: x}[x.shape[0]],
    "1 / n": lambda x: x * (1 / x.shape[0]),
    "sqrt(n)": lambda x: x * math.sqrt(x.shape[0]),
    "x / n": lambda x: x / x.shape[0],
    "len(x)": lambda x: x * len(x),
}
for what, program in looks.items():
    print(f"{what:10}", guards(program, torch.randn(5)))

# %% [markdown]
# `int()`, and `__index__`, by which `range` and a list ask, need the number: they pin. So do text, the hash of a dict's key, and a float, whose rounding no expression of ours describes. `len(x)` pins because Python demands a true int from `len`; `x.shape[0]` is the same size without that. An `if` calls `bool()`, and needs only the answer.
#
# `x * n` and `x / n` pass the size to PyTorch, and need nothing.
#
# ## A size passed on
#
# What does the trace hold, then, where the program passed a size? *Predict* before you look: `zeros(5, 3)`?


# %%
def passing(x):
    pairs = x.view(x.shape[0] * 2, -1)
    rest = torch.zeros(x.shape[0], 3)
    return pairs, rest + x.shape[1], x.shape


t = dg.trace(passing, torch.randn(5, 4), analysis="symbolic")
print(t.graph, "\nguards:", len(t.guards))
dg.draw(t)

# %% [markdown]
# The expression itself. The dotted edges lead from a parameter to where its size is used. A replay evaluates them on the shapes at hand; sizes that the program returns are computed in the same way.

# %%
x = torch.randn(7, 2)
pairs, rest, shape = t(x)
print(pairs.shape, rest.shape, rest[0].tolist(), shape)
print("as the program:", all(map(torch.equal, (pairs, rest), passing(x)[:2])), shape == passing(x)[2])


# %% [markdown]
# ## Few guards
#
# Guards are checked at every call, so what follows from the others should go. A helper asks questions about one size, 6. *Predict* each line.


# %%
def after(*questions):
    return guards(lambda x: [bool(ask(x.shape[0])) for ask in questions], torch.randn(6))


print(after(lambda n: n == 6, lambda n: n > 3, lambda n: n == 6))
print(after(lambda n: n > 2, lambda n: n > 4, lambda n: 2 * n < 30))
print(after(lambda n: n > 4, lambda n: n <= 8, lambda n: n != 9))
print(after(lambda n: n < 6))
print(after(lambda n: n >= 6, lambda n: n <= 6))
print(after(lambda n: n >= 0, lambda n: n + 1 > n, lambda n: 4 * n % 2 == 0))

# %% [markdown]
# An equality implies the rest, a repeated question included. Of several lower bounds the tightest stays, and two bounds print as one range. A question answered *no* becomes the opposite guard. Two bounds can leave one value, which is then an equality. A **tautology**, true of every size, never gets there.
#
# `facts.py` does this. For each linear combination of sizes it keeps an interval and the values cut out of it. Before a comparison becomes a guard it asks whether that is settled. (It is no theorem prover: from `a <= b` and `b <= c` it doesn't see `a <= c`. A guard too many costs time, never a wrong answer.)

# %%
from dynguard_lite.expressions import Space, number, relation
from dynguard_lite.facts import Facts

n, facts = Space().size("x", 0, 6), Facts()
for op, bound in (">", 3), ("<=", 8), ("!=", 8), (">", 1), ("==", 2), ("==", 7):
    question = relation(op, n, number(bound))
    answer = facts.settled(question)
    if answer is None:
        facts.add(question, (None, "asked here"))
    print(f"{question!s:17} settled: {answer!s:5}  facts: {[g.code for g in facts.guards()]}")


# %%
def f(x):
    return x.view(x.shape[0] * x.shape[1]) * x.shape[1]


def g(x):
    return x * 2 if x.shape[0] > 3 and x.shape[1] > 5 else x


def h(x):
    if x.shape[1] > 8:
        return x[:, :8] * 2
    for i in range(x.shape[1]):
        x = x + i
    return x


def k(x):
    y = torch.cat([x, x])
    return y * 2 if y.shape[0] >= 10 else y


# %% [markdown]
# ### Exercise 6.1 · Predict the guards
#
# `f`, `g`, `h`, `k` are traced with `symbolic` on an `x` of shape (6, 3). Give the guards of each, as a list of strings such as `"x.shape[0] > 3"`, none that others imply. Any spelling that accepts the same shapes is right.


# %% tags=["exercise"]
def my_guards():
    raise NotImplementedError  # {f: [...], g: [...], h: [...], k: [...]}


# %% tags=["check"]
nb06.predicted_guards(my_guards)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Which lines make Python insist on a plain value? What was the answer, at (6, 3)?
#
# </details>
# <details><summary>Hint 2</summary>
#
# In `g`, the second question is answered *no*. In `k`, `y.shape[0]` is `2*x.shape[0]`.
#
# </details>
# <details><summary>Solution</summary>
#
# The tracer writes the guard of `k` as `x.shape[0] >= 5`.
#
# ```python
# def my_guards():
#     return {
#         f: [],
#         g: ["x.shape[0] > 3", "x.shape[1] <= 5"],
#         h: ["x.shape[1] == 3"],
#         k: ["2*x.shape[0] >= 10"],
#     }
# ```
#
# </details>
#
# ### Exercise 6.2 · The shortest list
#
# `my_shortest(bounds)` gets bounds `(op, number)` on one size, with `op` one of `== != < <= > >=`; some size (an int from 0 up) meets all of them. Return a shortest list of such pairs that allows exactly the same sizes.


# %% tags=["exercise"]
def my_shortest(bounds):
    raise NotImplementedError  # e.g. [(">", 3), (">=", 2), ("<=", 8)] -> [(">", 3), ("<=", 8)]


# %% tags=["check"]
nb06.shortest_bounds(my_shortest)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Turn each bound into an interval `lo` to `hi` (inclusive) or a value cut out, and intersect. Sizes start at `lo = 0`.
#
# </details>
# <details><summary>Hint 2</summary>
#
# A value cut out at an end of the interval moves the end, perhaps several times. What remains: an equality, or at most two ends and the holes between.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_shortest(bounds):
#     lo, hi, holes = 0, math.inf, set()
#     for op, n in bounds:
#         if op in (">", ">=", "=="):
#             lo = max(lo, n + (op == ">"))
#         if op in ("<", "<=", "=="):
#             hi = min(hi, n - (op == "<"))
#         if op == "!=":
#             holes.add(n)
#     while lo in holes:
#         lo += 1
#     while hi in holes:
#         hi -= 1
#     if lo == hi:
#         return [("==", lo)]
#     ends = [(">=", lo)] * (lo > 0) + [("<=", hi)] * (hi < math.inf)
#     return ends + [("!=", n) for n in sorted(holes) if lo < n < hi]
# ```
#
# </details>
#
# ## Three ways to insist on a size
#
# An `assert` is a branch like any other. `torch._check` states what must hold. And many operations have demands of their own.


# %%
def asserts(x):
    assert x.shape[0] > 3
    return x * 2


def checks(x):
    positive = x[x > 0]
    torch._check(positive.shape[0] > 3)
    return positive.sum()


def demands(x):
    return x + torch.ones(4)


for program in asserts, checks, demands:
    t, few = dg.trace(program, torch.ones(4), analysis="symbolic"), torch.ones(2)
    print(f"{program.__name__}: guards {[g.code for g in t.guards]}, accepts 2 elements: {t.accepts(few)}")
    try:
        print("  trace:", t(few))
    except (dg.GuardFailure, RuntimeError) as error:
        print(f"  trace: {type(error).__name__}: {str(error).splitlines()[0]}")

# %% [markdown]
# | | decided | recorded as | where it fails, a cache … |
# | --- | --- | --- | --- |
# | **guard** (`if`, `assert`, `raise`; `_check` on an input's size) | before the replay | a condition on inputs | traces anew, and meets what eager raises |
# | **runtime assert** (`_check` on a size that depends on data) | during the replay | a node of the graph | passes on the error |
# | **precondition** of an op | by the op itself | nothing | passes on the error |
#
# A precondition needs no guard: replay raises what eager raises.
#
# ## Broadcasting is no branch
#
# `c = a + b` has the size of `a`, or of `b` if `a`'s is 1. That looks like a branch; it need not be one. *Predict* the guard, and whether the trace takes a `b` of size 1. Then find, with the sliders, a recompile; is there a second one?


# %%
def joined(a, b):
    c = a + b
    if c.shape[0] > 3:
        return c * 2
    return c


for program in torch.add, joined:
    t = dg.trace(program, torch.randn(4), torch.randn(4), analysis="symbolic")
    print([g.code for g in t.guards], t.accepts(torch.randn(9), torch.randn(1)))

# %%
dg.explore(joined, torch.randn(4), torch.randn(4))

# %%
display(dg.draw(t, torch.randn(9), torch.randn(1)))  # the same without sliders: one call that passes, and one that fails
display(dg.draw(t, torch.randn(3), torch.randn(1)))

# %% [markdown]
# In our language of sizes `broadcast` is an operator, like `+`, and a guard is about its result. The sum alone (`torch.add`) has no guard at all; both traces, made at 4 and 4, take 9 and 1.
#
# TorchDynamo's symbolic sizes work otherwise, by default, in two ways. **0/1 specialisation**: a size that is 0 or 1 at trace time is made static, and every other symbol is taken to be at least 2. **Duck shaping**: sizes that are equal at trace time get the same symbol, and a guard that they stay equal. So broadcasting is settled while tracing. That buys fewer symbols, and simpler kernels: none has to work both where a dimension is broadcast and where it isn't. It costs recompiles at 0 and 1, and where two sizes were equal by chance.
#
# ## Two shapes, one condition


# %%
def alike(a, b):
    return a + b if a.shape == b.shape else a * b


for shape in (4, 3), (1, 3):
    print(shape, guards(alike, torch.randn(4, 3), torch.randn(shape)))

# %% [markdown]
# Equal: two equalities, and no number. Unequal: *some* size differs, which is one disjunction. A guard that said which one would refuse for nothing.
#
# ### Exercise 6.3 · Make the broadcast guard hold
#
# Which pairs (size of `a`, size of `b`), each from 0 to 5, does the trace of `joined` above accept, of those on which `joined` runs? Return the set of pairs.


# %% tags=["exercise"]
def my_pairs():
    raise NotImplementedError  # {(4, 4), ...}


# %% tags=["check"]
nb06.broadcast_pairs(my_pairs)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# The result must have 4 or 5 elements. In which ways can it?
#
# </details>
# <details><summary>Hint 2</summary>
#
# For each of the two results: both sizes, or one of them and a 1, in either order.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_pairs():
#     return {pair for n in (4, 5) for pair in ((n, n), (n, 1), (1, n))}
# ```
#
# </details>
#
# ## One program, three pictures
#
# *Predict* for each analysis which of the five dimensions are static.


# %%
def head(x, w, b):
    y = x @ w
    if y.shape[0] > 3:
        y = y * y.shape[1]
    return y + b


inputs = torch.randn(4, 2), torch.randn(2, 3), torch.randn(3)
for analysis in ("whole_tensor", "per_dimension", "symbolic"):
    display(dg.draw(dg.trace(head, *inputs, analysis=analysis)))

# %% [markdown]
# Four, two, none: only `x.shape[0]` is constrained (yellow), and `w.shape[1]` travels to `v4` as an expression (dotted).
#
# ## What the cache makes of it
#
# `dg.compile` keeps traces as cache entries. A stream of 16 calls: 4 numbers of rows, 2 inner sizes, 2 sizes of `b`. *Predict* the number of entries for each analysis.

# %%
stream = [(torch.randn(n, i), torch.randn(i, 3), torch.randn(m))
          for n, i, m in itertools.product((4, 6, 2, 8), (2, 5), (3, 1))]  # fmt: skip
growth = {}
for analysis in dg.ANALYSES:
    compiled, growth[analysis], wrong = dg.compile(head, analysis=analysis, recompile_limit=100), [], 0
    for call in stream:
        wrong += not torch.allclose(compiled(*call), head(*call))
        growth[analysis].append(len(compiled.traces))
    print(f"{analysis:14} {len(compiled.traces):2} entries, {compiled.stats.hits:2} hits, {wrong} answers wrong")
compiled.why()

# %% tags=["nbval-ignore-output"]
figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
for (analysis, counts), style in zip(growth.items(), (":", "-", "--", "-.", "-"), strict=True):
    axes.step(range(1, 17), counts, style, where="mid", lw=2.5 if analysis == "symbolic" else 1.5)
    axes.annotate(analysis, (16.5, counts[-1]), va="center")
axes.set(xlabel="calls", ylabel="cache entries", xlim=(0.5, 20), xticks=range(2, 17, 2), yticks=range(0, 17, 4))
plt.show()

# %% [markdown]
# `static` needs one for each shape. The next ones stop counting `b`, then the inner size, then the number of rows. Two entries are as few as can be, since there are two paths. `why()` is about the last, `symbolic`, and tells what made its second entry.
#
# Real caches have a limit. Past it, calls that no entry accepts run **eagerly**, without any trace, after one warning.

# %%
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    limited = dg.compile(head, analysis="static", recompile_limit=8)
    for call in stream:
        limited(*call)
print(limited.stats, "warnings:", len(caught))
print(caught[0].message)


# %% [markdown]
# ### Exercise 6.4 · Exactly three entries
#
# `dg.compile(h, analysis="symbolic")`, with `h` from exercise 6.1, is called on tensors of shape (2, n). Give a stream of six *different* n (a list) after which its cache holds exactly three entries.


# %% tags=["exercise"]
def my_stream():
    raise NotImplementedError  # six different ints


# %% tags=["check"]
nb06.three_entries(my_stream, h)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Which sizes can share an entry?
#
# </details>
# <details><summary>Hint 2</summary>
#
# All sizes above 8 share one. Up to 8, `range` pins the size.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_stream():
#     return [1, 2, 9, 10, 11, 12]
# ```
#
# </details>
#
# ## Sound, and how precise?
#
# The measures of lesson 4, on grids of shapes with sizes from 0 up. Each cell of the table: how many shapes are accepted.

# %%
cases = {
    "wide": dg.measure(wide, torch.randn(5), sizes=range(10)),
    "joined": dg.measure(joined, torch.randn(4), torch.randn(4), sizes=range(7)),
    "alike": dg.measure(alike, torch.randn(3, 2), torch.randn(1, 2), sizes=range(4)),
    "head": dg.measure(head, *inputs, sizes={"x.shape[0]": range(7), "b.shape[0]": range(5)}),
}
print(" " * 7, "path-valid", *(f"{a:>13}" for a in dg.ANALYSES))
for name, r in cases.items():
    cells = (f"{len(r[a].accepted)}" + f" ({len(r[a].unsound)} wrong)" * (not r[a].sound) for a in dg.ANALYSES)
    print(f"{name:7} {len(r['blind'].path_valid):10}", *(f"{cell:>13}" for cell in cells))

# %% tags=["nbval-ignore-output"]
cases["joined"].plot()

# %%
for lower, upper in itertools.pairwise(dg.ANALYSES[1:]):
    print(f"{lower} within {upper}:", all(r[lower].accepted <= r[upper].accepted for r in cases.values()))

# %% [markdown]
# Each analysis accepts what the one before it accepts, and here `symbolic` all that is valid; none but `blind` answers wrongly.
#
# Four programs prove little. `tests/test_soundness.py` attacks instead: it makes up 2,000 random programs (arithmetic, matrix products, views, slices, writes in place, branches on sizes), traces each under every analysis, and tries each trace on up to 16 other lists of shapes. It fails on a wrong answer, on accepted sets that aren't nested, and where `symbolic` refuses a path-valid shape, unless Python's `max` or an operator without a formula forced it. The same attack on `blind` has to find faults, or it would show nothing.
#
# ## The limits that remain


# %%
def loop(x):
    for i in range(x.shape[0]):
        x = x + i
    return x


def twice(x):
    if x.shape[0] > 3:
        return x * 2
    return x * 2


def python_max(x):
    return torch.zeros(max(x.shape[0], x.shape[1]))


def torch_max(x):
    return torch.zeros(torch.sym_max(x.shape[0], x.shape[1]))


def rank(x):
    return x.squeeze() * 2 if x.squeeze().dim() == 2 else x


for program in loop, twice, python_max, torch_max, rank:
    r = dg.measure(program, torch.randn(5, 3), sizes={"x.shape[0]": range(8)}, analyses=("symbolic",))["symbolic"]
    print(f"{program.__name__:10}  precision {r.precision:4.0%}  {r.guards}")

# %% [markdown]
# - `loop`: the graph holds five additions, so `range` pins 5. For another size the graph is another: no precision is lost, and there are as many entries as sizes.
# - `twice`: both branches record the same. A guard keeps the question; that its answer made no difference would take comparing traces.
# - `python_max`: Python's `max` compares, and so picks a side. `torch.sym_max` builds an expression.
# - `rank`: `squeeze` drops dimensions of size 1, so a look at the rank asks of each size whether it is 1.
#
# One limit is of another kind. *Predict* what guard this needs:


# %%
def data(x):
    return x * 2 if x[x > 0].shape[0] > 2 else x


try:
    dg.trace(data, torch.randn(5), analysis="symbolic")
except dg.UnbackedSizeError as error:
    print(f"{type(error).__name__}: {error}")

# %% [markdown]
# None on shapes would do. A size that depends on data is **unbacked** (`u0`): no shape of an input stands behind it. It may be passed on, returned or checked, but the program can't decide by it.


# %%
def padded(x, y):
    _label = f"{x.shape[0]} and {y.shape[0]} rows"  # for a log
    rows = max(x.shape[0], y.shape[0])
    out = torch.zeros(int(rows), x.shape[1])
    out[: x.shape[0]] += x
    out[: y.shape[0]] += y
    return out / float(x.shape[0] + y.shape[0])


print(guards(padded, torch.randn(4, 3), torch.randn(2, 3)))

# %% [markdown]
# ### Exercise 6.5 · Stop specialising
#
# Rewrite `padded` so that it returns the same, and its trace at shapes (4, 3) and (2, 3) accepts every pair of shapes on which it runs. (The label may go.)


# %% tags=["exercise"]
def my_padded(x, y):
    raise NotImplementedError


# %% tags=["check"]
nb06.stops_specialising(my_padded)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Look at your guards: `dg.trace(my_padded, torch.randn(4, 3), torch.randn(2, 3)).explain()`. Each names its line.
#
# </details>
# <details><summary>Hint 2</summary>
#
# There are four: text, `max`, `int`, `float`. PyTorch takes a size wherever it takes an int, and divides a tensor by one.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_padded(x, y):
#     out = torch.zeros(torch.sym_max(x.shape[0], y.shape[0]), x.shape[1])
#     out[: x.shape[0]] += x
#     out[: y.shape[0]] += y
#     return out / (x.shape[0] + y.shape[0])
# ```
#
# </details>
#
# ## Guards are paid at every call
#
# A trace compiles its guards to one Python function: these conditions, joined by `and`, after the check that each argument is a tensor with the rank that the conditions take for granted. *Predict* for `head` which analysis checks most.

# %%
for analysis in dg.ANALYSES:
    print(f"{analysis:14}", guards(head, *inputs, analysis=analysis))

t = dg.trace(head, *inputs)
print(t.guards.code)
print(t.code)

# %% [markdown]
# A more precise guard isn't a longer one: here the opposite. The first function is what a call runs before the replay, cheap conditions only; the second is the replay, the graph as Python, which frees each value after its last use. Lesson 7 measures what a check costs.
#
# ## Summary
#
# - Under `symbolic` a size stays an expression. A comparison guards its outcome; only what needs a plain value pins.
# - Sizes passed to operations, or returned, are expressions in the graph, evaluated at replay.
# - Conditions on the same combination of sizes are kept as one interval; what is implied goes.
# - With broadcasting as an operator, neither 0/1 specialisation nor equal symbols are needed for sound guards; TorchDynamo has them for other gains.
# - What remains: a loop over a size is unrolled, an entry for each size; a branch without a difference, or a Python function that insists on a number, refuses for nothing; a decision on a size that depends on data can't be traced.
#
# ## Where this lives in PyTorch
#
# | here | in PyTorch 2.13 |
# | --- | --- |
# | `SymInt`, its `expr` and `hint` | `torch.SymInt`, whose `node` is a `torch.fx.experimental.sym_node.SymNode` |
# | `int(n)`, `bool(n > 3)` | `SymNode.guard_int`, `SymNode.guard_bool`; `guard_int`, `guard_bool` in `torch.fx.experimental.symbolic_shapes` |
# | `decide` | `ShapeEnv.evaluate_expr` |
# | `Facts`: pinned values, intervals | `ShapeEnv.replacements`, `ShapeEnv.var_to_range` of `torch.utils._sympy.value_ranges.ValueRanges` |
# | guards as code | `ShapeEnv.produce_guards` |
# | `torch._check`: a guard, or at run time | `SymNode.expect_true`; `ShapeEnv.deferred_runtime_asserts` |
# | `UnbackedSizeError` | `GuardOnDataDependentSymNode` in `torch.fx.experimental.symbolic_shapes` |
# | duck shaping, 0/1 specialisation | `DimDynamic.DUCK`, `ShapeEnv.duck_shape`; `ShapeEnv.specialize_zero_one` |
# | symbolic from the first call | `torch.compile(dynamic=True)`, `torch._dynamo.mark_dynamic`; else `torch._dynamo.config.assume_static_by_default` |
# | int arguments are constants | `torch._dynamo.config.specialize_int` |
# | a maximum without a branch | `torch.sym_max` |
#
# [← previous](05_shape_formulas.ipynb) · [map](00_start_here.ipynb) · [next →](07_beside_torchdynamo.ipynb)
