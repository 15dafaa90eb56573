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
# # 4 · The limits of precision: how much is refused for nothing?
#
# **The question.** Guards can be wrong in two directions. How do we measure each?
#
# *Know first:* lesson 3 (guards, the `whole_tensor` rule, recompiles). *About 50 minutes.*
#
# [← previous](03_guard_analysis.ipynb) · [map](00_start_here.ipynb) · [next →](05_shape_formulas.ipynb)

# %%
import itertools
import time

import torch
from IPython.display import display

import dynguard_lite as dg
from dynguard_lite.exercises import nb04

torch.manual_seed(0)
RULES = ("blind", "static", "whole_tensor")

# %% [markdown]
# From here on we use the package. It has several rules for what a look at a size commits a trace to; it calls them **analyses**. Three of them, from the most trusting to the most anxious:
#
# | analysis | a size that is looked at … |
# | --- | --- |
# | `blind` | commits the trace to nothing, as in lesson 2 (and in `torch.jit.trace`) |
# | `whole_tensor` | turns every parameter behind it static: the rule of lesson 3 |
# | `static` | doesn't matter: every parameter is static from the start |
#
# ## Too little
#
# The program that has followed us through the course, with `blind`. *Predict:* what do trace and program answer at sizes 5 and 1?

# %%
def program(a, b):
    if a.shape[0] == 4:
        return a + b
    return a * b


blind = dg.trace(program, torch.randn(4), torch.randn(4), analysis="blind")
a, b = torch.full((5,), 3.0), torch.tensor([2.0])
print("trace:  ", blind(a, b).tolist())
print("program:", program(a, b).tolist())

# %% [markdown]
# Wrong, and no error: the shapes fit, the numbers don't. A recording is wrong without a word wherever the program would have taken another path. Guards that let such inputs through are **unsound**.
#
# ## Too much
#
# Now `whole_tensor`, on a program with a milder question.

# %%
def milder(a, b):
    if a.shape[0] > 3:
        return a + b
    return a * b


whole = dg.trace(milder, torch.randn(4), torch.randn(4), analysis="whole_tensor")
print("refused by:", [g.code for g in whole.failing(a, b)])
print("what it would answer:", whole.replay(a, b).tolist(), "   the program:", milder(a, b).tolist())

# %%
dg.draw(whole, a, b)

# %% [markdown]
# Refused, and `replay`, which skips the check, shows that the refused answer was right. `a` has 5 elements, 5 is more than 3, the program adds, the trace adds. Guards that refuse such inputs are **imprecise**. Nothing goes wrong; the program is traced and compiled once more, for nothing.
#
# Both faults can be met by hand. With `blind`, set `b` to 1 and move `a`: where is the answer wrong? Then choose `whole_tensor` and do it again: how many recompiles?

# %%
dg.explore(milder, torch.randn(4), torch.randn(4), analysis="blind")

# %%
display(dg.draw(whole, torch.randn(4), b))  # the same without sliders: one call that passes, and one that fails
display(dg.draw(whole, torch.randn(2), b))

# %% [markdown]
# The second is refused rightly: with two rows the program multiplies.
#
# ## Saying it exactly
#
# For a given program and a trace of it, take any shapes of its inputs.
#
# - Guards are **sound** if, wherever they accept and the program itself runs, the replay gives the program's answer.
# - Shapes are **path-valid** if the program runs there and a *fresh* trace would record the same path: the same operations, wired in the same way, with the same constants. (Numbers that are sizes, such as the 5 of `zeros(5)`, may differ.)
# - **Precision** is the share of the path-valid shapes that the guards accept.
#
# Both can be measured by brute force: try all shapes up to some size. Sizes 0 and 1 have to be among them. They broadcast, they make sums empty and products trivial; that is where guards go wrong most often.
#
# First, the path of a trace: which operations, and what feeds them.

# %%
def path(trace):
    names = ["parameter" if node.is_parameter else node.op.name for node in trace.graph]
    return [(name, [i.index for i in node.inputs]) for name, node in zip(names, trace.graph)]


def fresh(fn, *shapes):
    """The path of a new trace at these shapes; None where the program fails."""
    try:
        return path(dg.trace(fn, *(torch.randn(s) for s in shapes), analysis="blind"))
    except RuntimeError:
        return None


print(path(blind))
print(fresh(program, 5, 1))
print(fresh(program, 5, 3))

# %% [markdown]
# Then the verdict on one shape. There are five cases, and one of them is a fault.

# %%
def verdict(fn, trace, *shapes):
    inputs = [torch.randn(s) for s in shapes]
    recorded = fresh(fn, *shapes)
    if recorded is None:
        return "the program fails"
    if not trace.accepts(*inputs):
        return "refused though valid" if recorded == path(trace) else "refused"
    right = torch.equal(trace.replay(*inputs), fn(*inputs))
    return "accepted and right" if right else "accepted and WRONG"


for shapes in (4, 1), (5, 1), (5, 5), (5, 3):
    print(shapes, [verdict(program, dg.trace(program, torch.randn(4), torch.randn(4), analysis=r), *shapes) for r in RULES])

# %% [markdown]
# *Predict,* for `milder` traced at 4 and 4, and all 36 pairs of sizes from 0 to 5: how many pairs does the program run on? How many of those are path-valid?

# %%
def tally(fn, rule, n=4):
    trace = dg.trace(fn, torch.randn(n), torch.randn(n), analysis=rule)
    counts = {}
    for shapes in itertools.product(range(6), repeat=2):
        v = verdict(fn, trace, *shapes)
        counts[v] = counts.get(v, 0) + 1
    return dict(sorted(counts.items()))


for rule in RULES:
    print(f"{rule:12}", tally(milder, rule))

# %% [markdown]
# It runs on 16 pairs: those that broadcast. On 4 of them it adds. `blind` accepts all 16, some of them wrongly. `static` accepts one of the four valid ones, `whole_tensor` two. (Where a product and a sum happen to agree, as on empty tensors, the wrong path gives the right answer. Luck is counted as right; it is not counted as valid.)
#
# The package has this loop ready: `dg.measure`.

# %%
r = dg.measure(milder, torch.randn(4), torch.randn(4), analyses=RULES)
r

# %% tags=["nbval-ignore-output"]
r.plot()

# %% [markdown]
# Blue is what we want, orange is refused for nothing, red is wrong. `static` and `whole_tensor` have no red, and a lot of orange.
#
# ### Exercise 4.1 · Wrong without a word
#
# This program was traced with `blind` on a tensor of size 6. Find a size where the trace runs and answers wrongly.

# %%
def halves(x):
    if x.shape[0] % 2 == 0:
        return x[::2] - x[1::2]
    return x - x.mean()


halves_trace = dg.trace(halves, torch.randn(6), analysis="blind")


# %% tags=["exercise"]
def my_wrong_size():
    raise NotImplementedError  # an int


# %% tags=["check"]
nb04.wrong_size(my_wrong_size, halves, halves_trace)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Where does the program take the other path?
#
# </details>
# <details><summary>Hint 2</summary>
#
# The trace has to run there too. For an odd size, `x[::2]` is one longer than `x[1::2]`. When do two such sizes go together all the same?
#
# </details>
# <details><summary>Solution</summary>
#
# With 3 elements, `x[::2]` has two and `x[1::2]` has one, which broadcasts.
#
# ```python
# def my_wrong_size():
#     return 3
# ```
#
# </details>
#
# ### Exercise 4.2 · Refused for nothing
#
# `total` below was traced with `whole_tensor` at sizes 4 and 3. Find sizes of `a` and `b` that it refuses although the path is the same.

# %%
def total(a, b):
    both = torch.cat([a, b])
    return both * 2 if both.shape[0] > 5 else both


total_trace = dg.trace(total, torch.randn(4), torch.randn(3), analysis="whole_tensor")


# %% tags=["exercise"]
def my_refused():
    raise NotImplementedError  # two ints: the size of a, the size of b


# %% tags=["check"]
nb04.refused(my_refused, total, total_trace)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Which looks happen, and which inputs flow into what is looked at? So which pairs are accepted?
#
# </details>
# <details><summary>Hint 2</summary>
#
# Any other pair with the same answer to the question will do.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_refused():
#     return 3, 4
# ```
#
# </details>
#
# ### Exercise 4.3 · The two numbers
#
# Write the two measures, for sets of shapes. `my_measures(accepted, valid, right)` gets the shapes that the guards accept, those that are path-valid, and those where the replay gives the program's answer; the program runs on all of them. Return `(sound, precision)`: a bool and a number from 0 to 1. If no shape is valid, precision is 1: nothing was refused for nothing.

# %% tags=["exercise"]
def my_measures(accepted, valid, right):
    raise NotImplementedError  # (sound, precision)


# %% tags=["check"]
nb04.measures(my_measures)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Sets have `<=` (is a subset of), `&` (both) and `len`.
#
# </details>
# <details><summary>Hint 2</summary>
#
# A shape that is accepted by luck, without being valid, must not count for precision.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_measures(accepted, valid, right):
#     return accepted <= right, len(accepted & valid) / len(valid) if valid else 1.0
# ```
#
# </details>

# %% [markdown]
# ## The case that started it
#
# A product of matrices, and a look at how many rows the result has. *Predict:* which of the four sizes does the question depend on? Which does `whole_tensor` guard?

# %%
def rows(A, B):
    C = A @ B
    if C.shape[0] == 3:
        return C + 1
    return C


t = dg.trace(rows, torch.randn(3, 4), torch.randn(4, 5), analysis="whole_tensor")
dg.draw(t)

# %% [markdown]
# Both matrices are static as a whole, though three of the four sizes can't make any difference: the rows of `C` are the rows of `A`. How much does that cost? All shapes of two matrices with sizes from 0 to 5 are 6⁴.

# %%
r = dg.measure(rows, torch.randn(3, 4), torch.randn(4, 5), analyses=RULES)
r

# %% [markdown]
# One of 36. For a model that sees batches of all sizes, that is a recompile for each. And it isn't the look's fault; a look at `A.shape[0]` alone would be treated a little better, since then `B` stays out of it. It is that the rule doesn't know what a product of matrices does to sizes.
#
# ## What a recompile costs, and how many there are
#
# A cache keeps a trace for each set of guards (lesson 3). Here is a stream of sixteen calls, and how many traces each rule needs for it. *Predict* the order of the three.

# %%
def entries(fn, rule, stream):
    compiled = dg.compile(fn, analysis=rule, recompile_limit=100)
    wrong = sum(not torch.equal(compiled(*call), fn(*call)) for call in stream)
    return compiled.stats.traces, wrong


stream = [(torch.randn(n, 4), torch.randn(4, m)) for n, m in itertools.product((3, 1, 3, 2), (5, 2, 5, 7))]
for rule in RULES:
    traces, wrong = entries(rows, rule, stream)
    print(f"{rule:12} {traces:2} traces for {len(stream)} calls, {wrong} answers wrong")
print("different paths among them:", len({str(fresh(rows, a.shape, b.shape)) for a, b in stream}))

# %% [markdown]
# Two traces would do: one for three rows, one for any other number. `blind` makes do with one, and pays in wrong answers. The others pay in traces, and `static` is no more careful than `whole_tensor` here: both pin everything.
#
# ## An analysis must be fast, too
#
# The walk back from a value to the parameters has to happen for each look. In the small system it follows paths, and their number doubles with each sharing. Count the nodes that it visits:

# %%
def visits(node):
    """How many nodes the recursive walk of lesson 3 steps on."""
    return 1 + sum(visits(i) for i in node.inputs)


def shared(n):
    def program(x):
        for _ in range(n):
            x = x + x.neg()
        return x

    return dg.trace(program, torch.ones(1), analysis="blind").graph


for n in (1, 4, 8, 12):
    graph = shared(n)
    print(f"{len(graph):2} nodes, the recursive walk takes {visits(graph.output):5} steps, a walk with a memory {len(graph):2}")

# %% tags=["nbval-ignore-output"]
for n in (8, 12, 16):
    graph = shared(n)
    start = time.perf_counter()
    visits(graph.output)
    middle = time.perf_counter()
    dg.input_sources(graph.output)
    end = time.perf_counter()
    print(f"n = {n}: recursive {1e3 * (middle - start):8.2f} ms, linear {1e3 * (end - middle):.3f} ms")

# %% [markdown]
# Four more sharings, sixteen times the time. `dg.input_sources` visits each node once, whatever leads to it, so a graph of 60 sharings is no trouble. Precision would be worth little if finding the guards took longer than recompiling.
#
# ## What a shape formula would know
#
# Ask a person which sizes matter in `rows`, and they will answer with a formula: *an (m, k) matrix times a (k, n) matrix is (m, n).* Let us write it down, with words in place of numbers.

# %%
def matmul_shape(A, B):
    (m, _), (_, n) = A, B
    return m, n


print(matmul_shape((3, 4), (4, 5)))
print(matmul_shape(("A.shape[0]", "A.shape[1]"), ("B.shape[0]", "B.shape[1]")))

# %% [markdown]
# One function. On numbers it computes the size; on names it says *where each size comes from*. A look at `C.shape[0]` then needs a guard on `A.shape[0]`, and on nothing else. The original notebook ends with that thought, and a call to action: shape formulas that carry dynamic sizes through operators, in Python, for as many of them as possible.
#
# ### Exercise 4.4 · Formulas with origins
#
# Write `my_shapes()`, a dictionary of three formulas, to be used on tuples of anything (numbers or names). `"linear"`: a weight of shape (out, in) applied to `x` of shape (batch, in); arguments `x, weight`. `"transpose"`: of a matrix. `"outer"`: of two vectors.

# %% tags=["exercise"]
def my_shapes():
    raise NotImplementedError  # {"linear": lambda x, weight: ..., "transpose": ..., "outer": ...}


# %% tags=["check"]
nb04.origins(my_shapes)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# `torch.nn.functional.linear(x, w)` is `x @ w.T`.
#
# </details>
# <details><summary>Hint 2</summary>
#
# A vector's shape is a tuple of one. Both the batch and the number of outputs are somewhere in the arguments: pick them.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_shapes():
#     return {
#         "linear": lambda x, weight: (x[0], weight[0]),
#         "transpose": lambda x: (x[1], x[0]),
#         "outer": lambda x, y: (x[0], y[0]),
#     }
# ```
#
# </details>

# %% [markdown]
# ## A word on history
#
# The proposal from which all this began (pytorch/torchdynamo, issue 38) was a little kinder than our rule: there, a parameter turned static only when a size went into an operation that was *not* PyTorch's. `torch.zeros(x.shape[0])` passes a size on to PyTorch, and would not have counted. Ours, like the 2022 notebook's, counts every look. Lesson 6 gets that back, and more.
#
# ## Summary
#
# - Sound: accepted means right. Precise: valid means accepted. Both can be measured on a grid of shapes, 0 and 1 included.
# - `blind` is unsound; `static` and `whole_tensor` are sound and refuse most of what is valid.
# - What is refused for nothing is paid in recompiles.
# - `whole_tensor` loses precision because it doesn't know which sizes flow where. Shape formulas do.
#
# ## Where this lives in PyTorch
#
# | here | in PyTorch 2.13 |
# | --- | --- |
# | `blind` | `torch.jit.trace`, which warns of such branches (`torch.jit.TracerWarning`) |
# | `static` | `torch.compile(dynamic=False)`; `torch._dynamo.config.assume_static_by_default` |
# | a second shape makes the dimension dynamic | `torch._dynamo.config.automatic_dynamic_shapes` |
# | the limit on cache entries | `torch._dynamo.config.recompile_limit` |
# | a precise status, by hand | `torch._dynamo.mark_dynamic`, `torch._dynamo.mark_static` |
# | what keeps track of sizes instead | `torch.fx.experimental.symbolic_shapes.ShapeEnv` |
# | shape formulas | meta kernels (`torch._meta_registrations`), run on `FakeTensor`s |
#
# [← previous](03_guard_analysis.ipynb) · [map](00_start_here.ipynb) · [next →](05_shape_formulas.ipynb)
