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
# # 7 · Beside TorchDynamo: the same programs, the real guards
#
# **The question.** What does TorchDynamo guard on the programs of this course, and why does it guard more than we do?
#
# *Know first:* lesson 6 (symbolic guards, the cache). *About 60 minutes.*
#
# TorchDynamo is the front end of `torch.compile`: it reads the bytecode of a Python function, records a graph for a code generator, and keeps both under guards. `dg.dynamo.trace` lets it do that with a backend that generates no code, and shows its graph, guards and statuses in our pictures. What is said of it here was seen on PyTorch 2.13; all figures are computed live.
#
# [← previous](06_symbolic_guards.ipynb) · [map](00_start_here.ipynb) · [next →](08_casebook.ipynb)

# %%
import statistics
import time

import torch
from IPython.display import display
from torch import randn
from torch._dynamo import mark_dynamic, mark_static

import dynguard_lite as dg
from dynguard_lite.exercises import nb07


def on_sizes(trace):
    return [g.code for g in trace.guards if g.kind in ("size", "expression")]


# %% [markdown]
# ## One product
#
# Two vectors of 4 elements. *Predict* our guards, and those of TorchDynamo with `dynamic=True`, which asks for symbolic sizes from the first call on.


# %%
def product(a, b):
    return a * b


ours = dg.trace(product, randn(4), randn(4))
theirs = dg.dynamo.trace(product, randn(4), randn(4), dynamic=True)
display(dg.draw(ours))
display(dg.draw(theirs))

# %% [markdown]
# The graphs are the same. Ours has no guard. Theirs has two on sizes: both are equal, and at least 2. The table says why, in TorchDynamo's own words where it gives any.

# %%
theirs.explain()

# %% [markdown]
# - `b.shape[0] == a.shape[0]` is **duck shaping**: what is equal at trace time gets one symbol.
# - `2 <= a.shape[0]` is the other side of **0/1 specialisation**: a symbol stands for a size that is neither 0 nor 1.
#
# Each reason can be tried. *Predict* what is guarded when the sizes differ at trace time: first 4 and 1, then 4 and (5, 4).

# %%
for shape in (1,), (5, 4):
    t = dg.dynamo.trace(product, randn(4), randn(shape), dynamic=True)
    print(shape, on_sizes(t))

# %% [markdown]
# A size of 1 is pinned: there a kernel reads one element again and again, which is another kernel. In the second, `a`'s 4 meets `b`'s 4 and both become one symbol.
#
# The last guard is one on a **stride**, the step in memory from a row to the next. That it equals the row's length says that the rows of `b` follow each other without gaps.

# %%
def double(x):
    return x * 2


layouts = {"rows": randn(5, 3), "transposed": randn(3, 5).T, "every second row": randn(10, 3)[::2]}
for name, x in layouts.items():
    t = dg.dynamo.trace(double, x, dynamic=True)
    print(f"{name:16} takes {[other for other, y in layouts.items() if t.accepts(y)]}")
print("ours takes      ", [other for other, y in layouts.items() if dg.trace(double, randn(4, 3)).accepts(y)])

# %% [markdown]
# A code generator writes loops over memory, so the layout is part of what it compiles. Our trace replays PyTorch's own operations, which look at strides themselves. That is why we can do with fewer guards; it is no merit of our analysis.
#
# ### Exercise 7.1 · What does it take?
#
# Which pairs (size of `a`, size of `b`), each from 0 to 5, does `theirs`, the trace of `product` above, accept? Return the set of pairs.


# %% tags=["exercise"]
def my_pairs():
    raise NotImplementedError  # {(4, 4), ...}


# %% tags=["check"]
nb07.accepted_pairs(my_pairs, product)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Both guards must hold.
#
# </details>
# <details><summary>Hint 2</summary>
#
# Equal sizes, none of them 0 or 1.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_pairs():
#     return {(n, n) for n in range(2, 6)}
# ```
#
# </details>
#
# ## The ladder beside it
#
# Programs that you know, on all shapes with sizes from 0 to 5. `dynamo True` and `False` are values of `torch.compile`'s `dynamic`; `automatic` is its default, after a second call with other sizes. *Predict* for each program who accepts more, `symbolic` or `dynamo True`.


# %%
def question(a, b):
    if a.shape[0] == 4:
        return a + b
    return a * b


def rows(a, b):
    c = a @ b
    if c.shape[0] > 3:
        return c * 2
    return c


def joined(a, b):
    c = torch.cat([a, b])
    return c * 2 if c.shape[0] > 5 else c


def loop(x):
    for i in range(x.shape[0]):
        x = x + i
    return x


# %%
ladder = {product: ((4,), (4,)), question: ((4,), (4,)), rows: ((4, 3), (3, 5)), joined: ((4,), (3,)), loop: ((4, 2),)}
grids = {program: dg.measure(program, *map(randn, shapes), dynamo=True) for program, shapes in ladder.items()}
rungs = ("static", "whole_tensor", "symbolic", "dynamo False", "dynamo True", "dynamo automatic")
print(f"{'':10}{'path-valid':>12}", *(f"{rung:>17}" for rung in rungs))
for program, r in grids.items():
    counts = (f"{len(r[rung].accepted & r[rung].path_valid):>17}" for rung in rungs)
    print(f"{program.__name__:10}{len(r['symbolic'].path_valid):12}", *counts)
print("wrong answers:", sum(len(r[rung].unsound) for r in grids.values() for rung in rungs))

# %% [markdown]
# No row but `blind` (not shown) answers wrongly. `dynamo False` is our `static`. `dynamo True` lies between: it has the comparison of the program as we have it, and gives up sizes 0 and 1, and shapes that were equal by chance.

# %%
for program, r in grids.items():
    print(f"{program.__name__:10}", on_sizes(dg.dynamo.trace(program, *map(randn, ladder[program]), dynamic=True)))
    print(f"{'':10}", list(r["symbolic"].guards))

# %% [markdown]
# Read `question`: TorchDynamo pins *both* sizes. `a.shape[0] == 4` turns the symbol into the number 4, and duck shaping had given `b` the same symbol. Our guard is about `a` alone, so a `b` of size 1 is fine.
#
# In `loop` both pin the length: the unrolled graph *is* the length.

# %% tags=["nbval-ignore-output"]
grids[joined].plot()

# %% [markdown]
# ## Its own words for a refusal
#
# `why` asks TorchDynamo's guards for the one that refuses. *Predict* which of these four calls our trace of `product` refuses.

# %%
a, x = randn(4), randn(4)
calls = {
    "one tensor twice": (x, x),
    "float64": (randn(4).double(), a),
    "rank 2": (randn(4, 1), a),
    "requires grad": (randn(4, requires_grad=True), a),
}
for name, call in calls.items():
    print(f"{name:16} ours {'accepts' if ours.accepts(*call) else 'refuses'}; TorchDynamo: {theirs.why(*call)}")

# %% [markdown]
# None. The program never looks at any of that, and a replay of PyTorch's operations answers rightly whatever it is. For generated code all of it matters: a dtype is a type in the kernel's source, and a kernel that writes to one argument while it reads another must know that they don't overlap.
#
# What it guards besides sizes, by kind:

# %%
kinds = {g.kind for g in theirs.guards}
for kind, what in {
    "tensor": "class, dtype, device, requires_grad, rank, layout of each tensor",
    "no_tensor_aliasing": "no two arguments are one tensor",
    "global_state": "grad mode, autocast, deterministic algorithms, ...",
    "default_device": "where factory functions put tensors",
}.items():
    print(f"{kind:19} {'guarded' if kind in kinds else 'not guarded'}: {what}")
with torch.no_grad():
    print(theirs.why(randn(4), randn(4)))

# %% [markdown]
# ## Automatic dynamic
#
# By default nothing is symbolic at first. When a call fails a guard on a size, that dimension becomes a symbol in the next entry. *Predict* the number of entries after each call of this stream.

# %%
stream = [(randn(n, 3), randn(3, m)) for n, m in ((4, 5), (4, 5), (6, 5), (8, 5), (7, 9), (9, 2), (2, 5), (1, 5))]
for stop in range(1, len(stream) + 1):
    t = dg.dynamo.trace(rows, *stream[0], also=stream[1:stop])
    print([tuple(x.shape) for x in stream[stop - 1]], len(t.entries))

# %% [markdown]
# The first entry is all static. Rows that differ make rows a symbol; columns that differ later make another entry. 2 rows answer the question otherwise, which no symbol can help; a size of 1 is always an entry of its own.
#
# The same stream, for each policy:

# %%
for analysis in dg.ANALYSES[1:]:
    compiled = dg.compile(rows, analysis=analysis, recompile_limit=100)
    for call in stream:
        compiled(*call)
    print(f"{analysis:14} {len(compiled.traces)} entries")
for dynamic in False, None, True:
    t = dg.dynamo.trace(rows, *stream[0], also=stream[1:], dynamic=dynamic)
    print(f"dynamic={dynamic!s:6} {len(t.entries)} entries")

# %% [markdown]
# An entry of ours costs a recording; one of TorchDynamo's costs a compilation, often seconds. What it buys is speed within an entry.
#
# ### Exercise 7.2 · Stop the recompiles
#
# `centred` subtracts from each row the mean of all rows. TorchDynamo compiles it anew for every number of rows. Rewrite it so that it returns the same, and so that tensors of 4, 5, 6, 7, 8 rows make two entries at most.


# %%
def centred(x):
    total = torch.zeros(3)
    for i in range(x.shape[0]):
        total = total + x[i]
    return x - total / x.shape[0]


print(len(dg.dynamo.trace(centred, randn(4, 3), also=tuple((randn(n, 3),) for n in (5, 6, 7, 8))).entries), "entries")


# %% tags=["exercise"]
def my_centred(x):
    raise NotImplementedError


# %% tags=["check"]
nb07.stops_recompiling(my_centred, centred)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Which line needs the very number of rows?
#
# </details>
# <details><summary>Hint 2</summary>
#
# PyTorch adds rows without a loop: `sum(0)`.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_centred(x):
#     return x - x.sum(0) / x.shape[0]
# ```
#
# </details>
#
# ## Marks
#
# A reader of one's own program knows which sizes will change. `mark_dynamic` says so for one dimension of a tensor, before the first call; `mark_static` says the opposite.

# %%
def accepted_rows(mark):
    x = randn(4, 3)
    mark(x)
    t = dg.dynamo.trace(double, x)
    return on_sizes(t), [n for n in range(12) if t.accepts(randn(n, 3))]


print("unmarked         ", *accepted_rows(lambda x: None))
print("mark_dynamic     ", *accepted_rows(lambda x: mark_dynamic(x, 0)))
print("mark_dynamic, max", *accepted_rows(lambda x: mark_dynamic(x, 0, min=2, max=8)))
print("mark_static      ", *accepted_rows(lambda x: mark_static(x, 0)))

# %% [markdown]
# Still not 0 and 1. A mark is a promise, too: if the program then needs the number, TorchDynamo refuses to compile, and names the line.

# %%
x = randn(4, 2)
mark_dynamic(x, 0)
try:
    dg.dynamo.trace(loop, x)
except dg.TraceError as error:
    print(error)


# %% [markdown]
# ### Exercise 7.3 · Mark what varies
#
# Return two tensors of shape (4, 16), marked so that TorchDynamo's first entry for `product` takes every batch from 2 up, of both tensors alike, and columns of 16 only.


# %% tags=["exercise"]
def my_inputs():
    raise NotImplementedError  # two tensors


# %% tags=["check"]
nb07.marked_inputs(my_inputs, product)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# The product makes both batches one symbol. If one of them is a plain number, what is the symbol?
#
# </details>
# <details><summary>Hint 2</summary>
#
# Mark dimension 0 of each; what is not marked stays static in a first entry.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_inputs():
#     a, b = randn(4, 16), randn(4, 16)
#     mark_dynamic(a, 0)
#     mark_dynamic(b, 0)
#     return a, b
# ```
#
# </details>
#
# ## Graph breaks
#
# A branch on data can't be guarded by shapes. Ours refuses such a program. TorchDynamo ends the graph there, lets Python decide, and begins another graph: a **graph break**. *Predict* how many graphs.


# %%
def data(x):
    y = x * 2
    if y.sum() > 0:
        return y + 1
    return y


t = dg.dynamo.trace(data, torch.ones(4), dynamic=True)
print(len(t.graphs), "graphs; breaks:", len(t.breaks))
dg.draw(t)

# %% [markdown]
# The second graph has guards of its own, checked when Python gets there. `torch.export` doesn't break: it captures the whole program or refuses. Its result can be drawn, too; a dimension that may vary has to be named.

# %%
layer = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU())
batch = torch.export.Dim("batch")
dg.draw(torch.export.export(layer, (randn(4, 3),), dynamic_shapes=({0: batch},)))

# %% [markdown]
# ## Reading its logs
#
# Our pictures show what TorchDynamo logs. Set an environment variable, run a program of yours, and look for these words:
#
# | `TORCH_LOGS=` | shows | here |
# | --- | --- | --- |
# | `guards` | the tree of guards, each with the line that caused it | `theirs.explain(everything=True)` |
# | `recompiles` | for each recompile, the guards that failed | `theirs.why(...)`, `f.why()` |
# | `dynamic` | each symbol as it is made, each comparison as it is asked | the yellow cells, `g.cause` |
# | `graph_breaks` | where and why a graph ended | `t.breaks` |
#
# In `L['a'].size()[0]`, `L` are the function's local names: our `a.shape[0]`. A symbol such as `s77` is named by a counter; we call it `s0`.
#
# ## By hand
#
# Move `a` and `b`: which guard refuses, ours or, in your head, theirs?

# %%
dg.explore(joined, randn(4), randn(3))

# %%
t = dg.trace(joined, randn(4), randn(3))
display(dg.draw(t, randn(1), randn(5)))  # the same without sliders: one call that passes, and one that fails
display(dg.draw(t, randn(1), randn(2)))

# %% [markdown]
# ## What guards cost
#
# Guards are paid at every call. How long does a check take? Medians, in microseconds, on the machine that runs this:

# %% tags=["nbval-ignore-output"]
def median(check, *call):
    seconds = []
    for _ in range(2000):
        start = time.perf_counter()
        check(*call)
        seconds.append(time.perf_counter() - start)
    return 1e6 * statistics.median(seconds)


call = randn(4), randn(4)
manager, given = theirs.entry.guard_manager, dict(zip("ab", call))
print(f"ours {median(ours.accepts, *call):.2f}, TorchDynamo's {median(manager.check, given):.2f}, "
      f"the product itself {median(product, *call):.2f}")  # fmt: skip

# %% [markdown]
# Theirs checks more, in C++; ours checks less, in Python.
#
# ## What we simplified
#
# | we … | TorchDynamo … |
# | --- | --- |
# | run the program once, on real tensors | interprets its bytecode with fake tensors, and needs no data |
# | refuse what leaves the tensors (`.item()`, a branch on data) | breaks the graph, or makes an unbacked symbol |
# | lose other side effects of Python | replays them after the graph |
# | replay PyTorch's operations | generates kernels, which need dtype, layout, aliasing |
# | guard ambient state that a program looks at | guards all of it, always |
# | keep broadcasting as an operator | settles it while tracing, by 0/1 specialisation |
# | never unify sizes | gives equal sizes one symbol |
# | keep linear facts and intervals | reasons with SymPy |
# | treat int arguments as constants | makes an int that changes a symbol |
# | write shape formulas by hand | runs meta kernels, for every operator |
# | know forward only | traces the backward pass with it |
#
# ## Summary
#
# - On these programs our guards accept whatever TorchDynamo's accept, and neither answers wrongly.
# - It guards more because it generates code: layout, dtype, aliasing, sizes 0 and 1, equal sizes.
# - By default sizes become symbols one by one, as they change; a mark spares those entries, and is a promise.
# - Where tracing can't go on, it breaks the graph; export refuses.
#
# ## Where this lives in PyTorch
#
# | here | in PyTorch 2.13 |
# | --- | --- |
# | `dg.dynamo.trace` | `torch._dynamo.optimize` with a backend that captures |
# | `.accepts`, `.why` | `check`, `check_verbose` of a cache entry's `guard_manager` |
# | guards on sizes | `ShapeEnv.produce_guards` |
# | guards on the rest | `torch._dynamo.guards.GuardBuilder` |
# | automatic dynamic | `torch._dynamo.pgo` |
# | duck shaping switched off | `torch.fx.experimental._config.use_duck_shape` |
#
# [← previous](06_symbolic_guards.ipynb) · [map](00_start_here.ipynb) · [next →](08_casebook.ipynb)
