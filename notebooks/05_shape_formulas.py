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
# # 5 · Shape formulas: sizes that remember where they came from
#
# **The question.** How can a guard name only the sizes that matter?
#
# *Know first:* lesson 4 (sound, path-valid, precision; `whole_tensor` makes both matrices of a product static). *About 55 minutes.*
#
# [← previous](04_precision_limits.ipynb) · [map](00_start_here.ipynb) · [next →](06_symbolic_guards.ipynb)

# %%
import inspect
import warnings

import torch

import dynguard_lite as dg
from dynguard_lite import analyses
from dynguard_lite.exercises import nb05

torch.manual_seed(0)


def guards(fn, *args, analysis="per_dimension"):
    return [g.code for g in dg.trace(fn, *args, analysis=analysis).guards]


# %% [markdown]
# Lesson 4 ended with a product of matrices whose rows were looked at, and both matrices turned static. What was missing is knowledge of *sizes*: which of them flow into the rows of `A @ B`?
#
# ## A formula, run on ints
#
# A **shape formula** says what an operation does to sizes. It is an ordinary Python function, with the operation's own arguments, in which each tensor is replaced by its shape.

# %%
def matmul(A, B):
    (m, _), (_, n) = A, B
    return m, n


a, b = torch.randn(3, 2), torch.randn(2, 4)
print(matmul(a.shape, b.shape), tuple((a @ b).shape))

# %% [markdown]
# On ints it computes a size, so it can be held against PyTorch on as many shapes as you like. That's how the package's formulas are tested: on every sample of every operator in PyTorch's own list, 28,000 calls.
#
# ## The same formula, run on symbols
#
# Now give it sizes that aren't numbers. The package has such a thing, the **SymInt**: a size that carries an expression, and its value as a hint. Inside a program that is traced, shapes are made of them.

# %%
seen = []


def program(A, B):
    C = A @ B
    seen.extend([*A.shape, *B.shape])
    return C


t = dg.trace(program, a, b, analysis="symbolic")
m, k, k2, n = seen
print([size.expr for size in seen])
print([size.expr for size in matmul((m, k), (k2, n))])
print((m * n + 1).expr, "is", (m * n + 1).hint, "here")

# %% [markdown]
# Nothing about the function changed. On SymInts it builds an expression, and the expression says *where the size comes from*: the rows are `A.shape[0]`, the columns `B.shape[1]`. The inner sizes are in neither.
#
# ## The same formula, as dependencies
#
# That's all an analysis needs. Here is `per_dimension`, whole:

# %%
print(inspect.getsource(analyses.PerDimension))

# %% [markdown]
# When the program reads a size, `symbols` finds the dimensions of parameters that its expression is made of, and those get **pinned**: guarded to the size seen. *Predict* the guards for a look at the rows, and for a look at the columns.

# %%
def rows(A, B):
    C = A @ B
    return C + 1 if C.shape[0] == 3 else C


def columns(A, B):
    C = A @ B
    return C + 1 if C.shape[1] == 4 else C


print(guards(rows, a, b))
print(guards(columns, a, b))

# %%
t = dg.trace(rows, a, b, analysis="per_dimension")
dg.draw(t)

# %% [markdown]
# One cell is orange, out of four. The others have names of their own, `s1` to `s3`, and you can follow them: the product has `s0` rows, which is pinned, and `s3` columns. With inputs that are refused:

# %%
dg.draw(t, torch.randn(1, 3), torch.randn(3, 4))

# %% [markdown]
# *Predict:* of the shapes with sizes 0 to 4, the program runs on 125. How many will it accept now?

# %%
r = dg.measure(rows, a, b, sizes=range(5), analyses=("whole_tensor", "per_dimension"))
r

# %% [markdown]
# From one to all. (Inner sizes that don't match are no guard's business: there `A @ B` fails in the program, and a replay fails in the same way. What an operation demands for itself is a **precondition**, not a guard.)
#
# ### Exercise 5.1 · matmul, in full
#
# `torch.matmul` takes more than matrices. A vector on the left has no rows, a vector on the right no columns; what comes before the last two dimensions are batches, which broadcast. Write `my_matmul(A, B)` on shapes (tuples) of any rank from 1 up. `batches(x, y)` broadcasts two tuples of sizes for you, symbols included.

# %%
from dynguard_lite.formulas.pointwise import broadcast_shapes as batches

print(batches((5, 1), (3,)), torch.matmul(torch.randn(5, 1, 2, 3), torch.randn(3, 3, 4)).shape)


# %% tags=["exercise"]
def my_matmul(A, B):
    raise NotImplementedError  # a tuple of sizes


# %% tags=["check"]
nb05.matmul_formula(my_matmul)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Turn a vector into a matrix first, (1, n) or (n, 1), and drop the extra dimension at the end.
#
# </details>
# <details><summary>Hint 2</summary>
#
# The batches are `A[:-2]` and `B[:-2]`; the rows `A[-2]` if there are any, the columns `B[-1]` if there are any.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_matmul(A, B):
#     rows = A[-2:-1] if len(A) > 1 else ()
#     columns = B[-1:] if len(B) > 1 else ()
#     return (*batches(A[:-2], B[:-2]), *rows, *columns)
# ```
#
# </details>

# %% [markdown]
# ## Broadcasting, without a decision
#
# The size of `a + b` is the one of the two that isn't 1. Written with an `if`, the formula would *decide* something: it would ask whether `a.shape[0]` is 1, and the answer would have to be guarded. So broadcasting is an operator of the size language, like `+`:

# %%
def added(a, b):
    c = a + b
    return c * 2 if c.shape[0] > 3 else c


x, y = torch.randn(4), torch.randn(4)
t = dg.trace(added, x, y, analysis="symbolic")
print([g.code for g in t.guards])
print("sizes 1 and 9:", t.accepts(torch.randn(1), torch.randn(9)), "  2 and 1:", t.accepts(torch.randn(2), torch.randn(1)))

# %% [markdown]
# (`"symbolic"` is the next lesson's analysis, which guards expressions. `per_dimension` pins both sizes here, since both flow in.) Sizes of 1 need no special treatment, and nothing was decided about them. Some more operators and what their formulas build:

# %%
def look(x, y):
    pieces = {
        "cat": torch.cat([x, y]),
        "flatten": x.flatten(),
        "reshape": x.reshape(2, -1),
        "every other": x[::2],
        "all but 2": x[2:],
        "conv1d": torch.nn.functional.conv1d(x[None], torch.ones(1, 4, 3), stride=2)[0],
        "sum": x.sum(1),
    }
    for name, z in pieces.items():
        print(f"{name:12} {[str(getattr(size, 'expr', size)) for size in z.shape]}")
    return x


guards(look, torch.randn(4, 8), torch.randn(3, 8), analysis="symbolic")

# %% [markdown]
# A concatenation is a sum; `-1` is a division; a step of 2 is a division that rounds up, which Python spells `-(-n // 2)`. And the list of guards at the end is empty: formulas compute, they don't commit.
#
# ### Exercise 5.2 · cat and conv1d
#
# Write two formulas on shapes. `"cat"`: `tensors` is a list of shapes, joined at `dim` (from 0 up). `"conv1d"`: `input` is (batch, in, n), `weight` is (out, in, kernel); `stride` and `padding` are ints. How many windows of `kernel` fit into n, with `padding` on both sides?

# %% tags=["exercise"]
def my_formulas():
    raise NotImplementedError  # {"cat": lambda tensors, dim=0: ..., "conv1d": lambda input, weight, stride=1, padding=0: ...}


# %% tags=["check"]
nb05.cat_and_conv(my_formulas)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# `cat`: all sizes are the first shape's, but for `dim`, where the sizes add up.
#
# </details>
# <details><summary>Hint 2</summary>
#
# The first window ends at `kernel`, each further one `stride` later, and the end is at `n + 2 * padding`.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_formulas():
#     def cat(tensors, dim=0):
#         first = tensors[0]
#         return (*first[:dim], sum(s[dim] for s in tensors), *first[dim + 1 :])
#
#     def conv1d(input, weight, stride=1, padding=0):
#         return (input[0], weight[0], (input[2] + 2 * padding - weight[2]) // stride + 1)
#
#     return {"cat": cat, "conv1d": conv1d}
# ```
#
# </details>

# %% [markdown]
# ## An operator without a formula
#
# Nobody can know all operators; here is one of our own, with `torch.library.custom_op`. *Predict* what `per_dimension` does with a look at the size of its result.

# %%
@torch.library.custom_op("course::doubled", mutates_args=())
def doubled(x: torch.Tensor) -> torch.Tensor:
    return torch.cat([x, x])


def uses_it(x):
    y = doubled(x)
    return y * 2 if y.shape[0] == 6 else y


print(guards(uses_it, torch.randn(3, 2)))

# %% [markdown]
# The worst is assumed: *every size of every input flows into every size of the result.* That's the old rule, `whole_tensor`, for this one operator. Sound, and imprecise. One decorator mends it:

# %%
@dg.formula(doubled)
def doubled_shape(x):
    return (2 * x[0], *x[1:])


print(guards(uses_it, torch.randn(3, 2)))
print(guards(uses_it, torch.randn(3, 2), analysis="symbolic"))

# %% [markdown]
# The package's own formulas are registered in the same way, and a later one replaces an earlier one. What if a formula is wrong? Whenever one runs, its result is compared with the real size:

# %%
@dg.formula(doubled)
def mistaken(x):
    return (x[0] + 2, *x[1:])


with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    print(guards(uses_it, torch.randn(3, 2)))
print(caught[0].message)
_ = dg.formula(doubled)(doubled_shape)

# %% [markdown]
# A warning, and the conservative rule. (A mistake that agrees by chance at the traced size can't be noticed there: `x[0] + 2` would pass at size 2. So formulas need tests at many shapes.)
#
# ### Exercise 5.3 · An operator of your own
#
# `pairs` below takes a vector and returns all n² sums of two elements, as a matrix. Write its formula, so that a look at its first size guards an expression in `x.shape[0]` only.

# %%
@torch.library.custom_op("course::pairs", mutates_args=())
def pairs(x: torch.Tensor, times: int) -> torch.Tensor:
    return (x[:, None] + x[None, :]).repeat(times, 1)


# %% tags=["exercise"]
def my_pairs_shape(x, times):
    raise NotImplementedError  # a tuple of sizes


# %% tags=["check"]
nb05.own_operator(my_pairs_shape, pairs)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# The matrix is n by n; `repeat(times, 1)` stacks it.
#
# </details>
# <details><summary>Hint 2</summary>
#
# A number among the arguments is handed to the formula as it is.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_pairs_shape(x, times):
#     return times * x[0], x[0]
# ```
#
# </details>

# %% [markdown]
# ## When a formula runs
#
# Sizes are computed *when they are looked at*, once for each value, not for each operation. A program that never looks has no size guards at all.

# %%
calls = []


@dg.formula(doubled)
def counted(x):
    calls.append(x)
    return (2 * x[0], *x[1:])


def never(x):
    return doubled(x) + 1


def often(x):
    y = doubled(x)
    return y * y.shape[0] + y.shape[1] * y.shape[0]


for fn in never, often:
    calls.clear()
    dg.trace(fn, torch.randn(3, 2), analysis="symbolic")
    print(fn.__name__, len(calls))

# %% [markdown]
# ## How many operators have one?
#
# The original notebook's call to action was to write such formulas for as many operators as possible. PyTorch has its own shape functions in Python (`torch.jit`), for about sixty. The package counts itself against PyTorch's list of operators, family by family; `python3 -m dynguard_lite coverage` prints the full table.

# %% tags=["nbval-ignore-output"]
from dynguard_lite._coverage import report

table = report(samples=1, progress=False)  # one sample of each entry; the command takes four
table

# %% tags=["nbval-ignore-output"]
import matplotlib.pyplot as plt

rows_ = [(family, int(n), int(jit)) for family, n, jit in table.rows if jit.isdigit() and family != "all"]
figure, axis = plt.subplots(figsize=(6, 2.6), layout="constrained")
axis.barh([f for f, _, _ in rows_], [n for _, n, _ in rows_], color="#56B4E9", label="with a formula here")
axis.barh([f for f, _, _ in rows_], [n for _, _, n in rows_], color="#E69F00", height=0.4, label="with one in torch.jit")
axis.invert_yaxis()
axis.set_xlabel("torch functions that op_db calls")
axis.legend(frameon=False)
plt.close(figure)
figure

# %% [markdown]
# ### Exercise 5.4 · The rule itself
#
# Write the heart of `per_dimension`. `my_pins(expression, sizes)` gets the text of a size's expression, such as `"A.shape[0] + 2*B.shape[1]"`, and the sizes seen, `{"A": (3, 4), "B": (4, 5)}`. Return the guards, as a sorted list of strings like `"A.shape[0] == 3"`.

# %% tags=["exercise"]
def my_pins(expression, sizes):
    raise NotImplementedError  # a sorted list of guards


# %% tags=["check"]
nb05.pins(my_pins)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# `re.findall(r"(\w+)\.shape\[(\d+)\]", expression)` finds all pairs of a name and a dimension.
#
# </details>
# <details><summary>Hint 2</summary>
#
# A size may occur twice in an expression; its guard is needed once.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# import re
#
# def my_pins(expression, sizes):
#     found = set(re.findall(r"(\w+)\.shape\[(\d+)\]", expression))
#     return sorted(f"{name}.shape[{d}] == {sizes[name][int(d)]}" for name, d in found)
# ```
#
# </details>

# %% [markdown]
# ## The ladder so far, measured
#
# Three programs, all the rules we have. *Predict* where `per_dimension` gains, and where it doesn't.

# %%
def joined(a, b):
    c = torch.cat([a, b])
    return c * 2 if c.shape[0] > 5 else c


LADDER = ("static", "whole_tensor", "per_dimension")
print(dg.measure(rows, a, b, sizes=range(5), analyses=LADDER))
print(dg.measure(added, x, y, analyses=LADDER))
print(dg.measure(joined, x, torch.randn(3), analyses=LADDER))

# %% tags=["nbval-ignore-output"]
dg.measure(rows, a, b, sizes={"A.shape[0]": range(5), "B.shape[1]": range(5)}, analyses=LADDER).plot()

# %% [markdown]
# It gains where sizes flow apart, as in a product. It gains nothing on `joined`: the program asks `> 5`, and all it takes from the expression `a.shape[0] + b.shape[0]` is the list of sizes to pin. 4 + 3 would do as well as 3 + 4, or 6 + 6. To see that, the guard would have to keep the *expression*. That is lesson 6.
#
# ## Summary
#
# - A shape formula is an ordinary function on shapes. On ints it computes, on SymInts it builds an expression, and the expression's symbols are what `per_dimension` pins.
# - Broadcasting is an operator of the size language, so that a formula need not decide.
# - Without a formula, an operator is conservative; with a wrong one too, and a warning.
# - Preconditions are not guards.
#
# ## Where this lives in PyTorch
#
# | here | in PyTorch 2.13 |
# | --- | --- |
# | a shape formula | a meta kernel: `torch._meta_registrations`, `torch._refs`, run on `FakeTensor`s |
# | a formula of your own operator | `torch.library.register_fake` |
# | formulas in plain Python, on lists of ints | `torch.jit._shape_functions` |
# | `SymInt`, its expression and hint | `torch.SymInt`, its `node.expr` and `node.hint` |
# | the symbols of an expression | `sympy`'s `free_symbols` |
# | where a symbol came from | `ShapeEnv.var_to_sources` |
# | broadcasting, with a decision | `torch._prims_common`, `torch._refs._broadcast_shapes` |
#
# [← previous](04_precision_limits.ipynb) · [map](00_start_here.ipynb) · [next →](06_symbolic_guards.ipynb)
