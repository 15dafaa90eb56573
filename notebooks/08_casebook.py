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
# # 8 · Casebook: from a symptom to the line
#
# **The question.** A program recompiles, specialises or is refused: which of its lines does it, and what helps?
#
# *Know first:* lesson 6 (symbolic guards) and lesson 7 (TorchDynamo's). *About 60 minutes.*
#
# Twenty cases that people brought to public issue trackers, rewritten as small programs of our own; after each, where it was reported. Look up a symptom, or read on: they are grouped by cause.
#
# | symptom | cases |
# | --- | --- |
# | recompiles at every size, every batch | [3](#Python-asks-for-a-number), [10, 11](#Python-asks-for-a-number), [14](#A-branch-on-a-size) |
# | recompiles at every step, with the same shapes | [16](#Python-asks-for-a-number) |
# | recompiles once, at 1; works except for batch 1 | [5, 6, 7](#Sizes-0-and-1) |
# | `ConstraintViolationError`; specialised although marked dynamic; "inferred to be a constant" | [1, 2, 12](#Sizes-that-must-agree) |
# | refused although it would be right | [4, 8, 19](#Shapes-taken-apart-and-put-together), [7, 13](#Sizes-0-and-1) |
# | two graphs where one would do | [9, 14](#A-branch-on-a-size), [15](#Sizes-that-must-agree) |
# | compiling is refused, or breaks the graph | [17, 18](#Sizes-that-come-from-data) |
# | a wrong answer without any error | `blind`, in any case whose row says so |
# | I want an error if anything specialises | [20](#Make-it-fail) |
#
# For each case: the picture of its symbolic trace, which names the line behind each guard; then what every rung and TorchDynamo accept on a grid of shapes. (`dynamo True` and `False` are values of `torch.compile`'s `dynamic`; `automatic` has seen a second, larger size, and so has two entries.) A TorchDynamo row lists the guards of its last entry. `compilations` counts TorchDynamo's cache entries after a stream of calls.
#
# What is said of TorchDynamo was seen on 2.13; the tables are computed live.
#
# [← previous](07_beside_torchdynamo.ipynb) · [map](00_start_here.ipynb)

# %%
import torch
import torch.nn.functional as F
from IPython.display import display
from torch import nn, randn
from torch._dynamo import mark_dynamic

import dynguard_lite as dg
from dynguard_lite.exercises import nb08

# %%
torch.manual_seed(0)


def case(program, *inputs, sizes):
    display(dg.draw(dg.trace(program, *inputs)))
    display(dg.measure(program, *inputs, sizes=sizes, dynamo=True))


def compilations(program, *calls):
    return len(dg.dynamo.trace(program, *calls[0], also=calls[1:]).entries)


def refused(trace, program, *inputs):
    try:
        trace(program, *inputs)
    except dg.TraceError as error:
        print(error)


# %% [markdown]
# ## Sizes that must agree
#
# ### 1 · One of two is marked (pytorch 102814)
#
# A residual sum. The batch of `x` alone was marked dynamic. *Predict* what becomes of the mark.


# %%
def residual(x, y):
    return torch.relu(x + y)


case(residual, randn(4, 16), randn(4, 16), sizes={"x.shape[0]": range(6), "y.shape[0]": range(6)})

x, y = randn(4, 16), randn(4, 16)
mark_dynamic(x, 0)
refused(dg.dynamo.trace, residual, x, y)
mark_dynamic(y, 0)
print("both marked:", dg.dynamo.trace(residual, x, y).accepts(randn(7, 16), randn(7, 16)))

# %% [markdown]
# `y`'s batch is the plain number 4. The sum makes both sizes one symbol, so `x`'s is 4 too, against the mark. Marked together, both stay free. In our traces a sum unifies nothing: broadcasting is no branch (lesson 6).
#
# ### 2 · The other one is a constant (pytorch 145587)
#
# *Predict:* which batches can go with a table of four rows?

# %%
table = randn(4, 10)


def plus_table(x):
    return x + table


case(plus_table, randn(4, 10), sizes={"x.shape[0]": range(6)})
x = randn(4, 10)
mark_dynamic(x, 0)
refused(dg.dynamo.trace, plus_table, x)

# %% [markdown]
# The surprise of the report is right: only 4 and 1 go with 4 rows. If other batches are meant, the table is what's wrong: `x + table[: x.shape[0]]`. If not, `maybe_mark_dynamic` asks without insisting.
#
# ### 12 · A constant, split off and written back (pytorch 141251)


# %%
def write_back(x):
    _, tail = x.split([200, x.shape[0] - 200])
    out = torch.zeros(256, 8)
    out[200:] = tail
    return out


def by_its_size(x):
    out = torch.zeros(x.shape[0], 8)
    out[200:] = x[200:]
    return out


case(write_back, randn(256, 8), sizes={"x.shape[0]": (200, 201, 255, 256, 257)})
x = randn(256, 8)
mark_dynamic(x, 0)
refused(dg.dynamo.trace, write_back, x)
print("by its size:", dg.dynamo.trace(by_its_size, x).accepts(randn(300, 8)), [g.code for g in dg.trace(by_its_size, x).guards])

# %% [markdown]
# `out[200:]` has 56 rows, so `tail` must (a single row would broadcast). The remedy: the size itself, not the constant that it happens to be.
#
# ### 15 · A cached mask and a square test (pytorch 121504)
#
# *Predict* the guard; and what does the batch of 1 at trace time do to TorchDynamo's?


# %%
class Causal(nn.Module):
    def __init__(self):
        super().__init__()
        self.mask = torch.ones(8, 8).tril().bool()

    def forward(self, scores):
        if scores.size(2) == scores.size(3):
            n = scores.size(2)
            scores = scores.masked_fill(~self.mask[:n, :n], -1e9)
        return scores.softmax(-1)


case(Causal(), randn(1, 2, 6, 6), sizes={f"scores.shape[{d}]": (1, 2, 5, 6) for d in (0, 2, 3)})

# %% [markdown]
# Squares with squares: one equality, no number. Two graphs are due here, since the paths differ. TorchDynamo's pinned batch is the next-but-one group's subject: warm up with a batch of 2.
#
# ## Python asks for a number
#
# ### 3 · A loop over the first dimension (pytorch 105279)
#
# An RNN by hand. *Predict* how many compilations lengths 1 to 8 take.


# %%
def unrolled(steps):
    h, out = torch.zeros(steps.shape[1], 3), []
    for i in range(steps.shape[0]):
        h = torch.tanh(steps[i] + h)
        out.append(h)
    return torch.stack(out)


case(unrolled, randn(4, 2, 3), sizes={"steps.shape[0]": range(6), "steps.shape[1]": range(1, 4)})

# %% [markdown]
# The unrolled graph *is* the length: these guards refuse nothing that they could take. So offer fewer lengths: **bucket** them, padded up to a multiple of 4. (Or hoist the loop: compile the step, and loop outside.)


# %%
def step(x, h):
    return torch.tanh(x + h)


def bucketed(steps):
    return F.pad(steps, (0, 0, 0, 0, 0, -steps.shape[0] % 4))  # before the compiled program


lengths = [randn(n, 2, 3) for n in range(1, 9)]
print("as it is:", compilations(unrolled, *[(x,) for x in lengths]))
print("bucketed:", compilations(unrolled, *[(bucketed(x),) for x in lengths]))
print("hoisted: ", compilations(step, *[(x[i], randn(2, 3)) for x in lengths for i in range(len(x))]))
print("same:", all(torch.equal(unrolled(bucketed(x))[: len(x)], unrolled(x)) for x in lengths))

# %% [markdown]
# ### Exercise 8.1 · Buckets that double
#
# A multiple of 4 still makes a graph for each four lengths. Write `my_bucket(steps)`, which pads the first dimension with zeros so that lengths 1 to 64 make at most seven graphs, and no length more than doubles.


# %% tags=["exercise"]
def my_bucket(steps):
    raise NotImplementedError


# %% tags=["check"]
nb08.buckets(my_bucket, unrolled)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Which seven lengths serve every length up to 64, if none may more than double?
#
# </details>
# <details><summary>Hint 2</summary>
#
# The next power of two of n is `1 << (n - 1).bit_length()`.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_bucket(steps):
#     n = steps.shape[0]
#     return F.pad(steps, (0, 0, 0, 0, 0, (1 << (n - 1).bit_length()) - n))
# ```
#
# </details>
#
# ### 10, 11 · How many pieces? (pytorch 139936, 134663)
#
# `chunk(4)` at lengths 8, 12, 16; `chunk(3)` of three. *Predict:* does `chunk(4)` always give four pieces?


# %%
def quarters(x):
    first, _, _, last = x.chunk(4)
    return first.sum() + last.sum()


def thirds(x):
    return [piece * 2 for piece in x.chunk(3)]


case(quarters, randn(8), sizes={"x.shape[0]": range(17)})
case(thirds, randn(3), sizes={"x.shape[0]": range(10)})


def even(x):
    return [piece * 2 for piece in x.tensor_split(3)]


print("guards:", [g.code for g in dg.trace(even, randn(3)).guards])
for program in thirds, even:
    print(program.__name__, "compiles", compilations(program, *[(randn(n),) for n in (3, 6, 9, 12, 15)]), "times")

# %% [markdown]
# Of 9, `chunk(4)` makes three pieces of 3. Python unpacks, so the *count* is fixed: a condition on its formula, not the size. At 3, TorchDynamo also fixes the last piece's length, which is 1: hence 3 alone. Where a fixed number is meant, `tensor_split` always gives it.
#
# ### 16 · A counter in the module (tt-xla 3688)
#
# Every step has the same shapes. *Predict* the compilations in six steps.


# %%
class Cache(nn.Module):
    def __init__(self):
        super().__init__()
        self.step = 0

    def forward(self, x):
        self.step += 1
        return x * 2 if self.step < 100 else x


refused(dg.trace, Cache(), randn(4))
print("a number: compilations:", compilations(Cache(), *[(randn(4),)] * 6))


class Counted(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("step", torch.zeros((), dtype=torch.long))

    def forward(self, x):
        self.step.add_(1)
        return torch.where(self.step < 100, x * 2, x)


print("a tensor: compilations:", compilations(Counted(), *[(randn(4),)] * 6))
dg.draw(dg.trace(Counted(), randn(4)))

# %% [markdown]
# A new number at each call, compared, so guarded: six entries for six steps. No rung of ours traces it at all: a replay would not count. A tensor counts without Python looking: one entry.
#
# ## Sizes 0 and 1
#
# ### 5, 6 · Fine from a batch of 2 up (pytorch 160271, vllm 38933)
#
# Both were warmed up with a batch of 1. *Predict* which batches `dynamo True` then takes.


# %%
def gram(x):
    return x.transpose(1, 2) @ x


def agree(x):
    return (x == x[:1]).sum(0)


case(gram, randn(1, 4, 8), sizes={"x.shape[0]": range(5)})
case(agree, randn(1, 5), sizes={"x.shape[0]": range(5)})

# %% [markdown]
# 0/1 specialisation: a batch of 1 is a constant. (Even if it weren't: the stride of a size-1 dimension says nothing of the others.) Warm up with 2, and 1 costs one entry more. `mark_unbacked` keeps even 1 symbolic, but what would have been a guard is a **runtime assert** then, which fails instead of compiling again:

# %%
for program, shape in (gram, (4, 8)), (agree, (5,)):
    at_one, at_two = ([(randn(n, *shape),) for n in order] for order in ((1, 2, 3, 1, 4), (2, 3, 4, 1, 5)))
    x = randn(1, *shape)
    torch._dynamo.decorators.mark_unbacked(x, 0)
    unbacked = dg.dynamo.trace(program, x)
    try:
        outcome = "right at 3" if torch.equal(unbacked(at_two[1][0]), program(at_two[1][0])) else "wrong at 3"
    except RuntimeError as error:
        outcome = str(error).partition(" on node")[0]
    print(f"{program.__name__}: from 1: {compilations(program, *at_one)}, from 2: {compilations(program, *at_two)}; unbacked: {outcome}")

# %% [markdown]
# ### 7, 13 · Refused for nothing? (pytorch 181097, 106067)
#
# Rows minus a row; and an input that nobody uses, of size 0. *Predict* what TorchDynamo says to one-element rows.


# %%
def rows_minus(x, y):
    return x.view(5, -1) - y


def ignores(unused, x):
    return x * 2


case(rows_minus, randn(20), randn(4), sizes={"x.shape[0]": range(0, 31, 5), "y.shape[0]": range(5)})
case(ignores, randn(0), randn(2), sizes=range(4))

# %% [markdown]
# One element a row (`x.shape[0] // 5 != 1`) might broadcast otherwise, which a kernel must know. One entry more is the price; where rows and `y` always agree, `mark_unbacked` on both says so. The unused input was guarded when that was reported; on 2.13 its size isn't.
#
# ### Exercise 8.2 · The line at fault
#
# `mystery` compiles anew at some of its calls. For each of the symptoms below, which line does it? Return a dict from symptom to the line's text, without indentation. Answer before you trace.


# %%
def mystery(x, y):
    rows, columns = x.shape
    z = x + y
    w = z.reshape(rows * columns)
    parts = [p.sum() for p in z.split(2)]
    if columns > 4:
        w = w * columns
    return w.sum() + sum(parts) / rows


for what, shapes in {"rows": [(6, 3), (7, 3), (8, 3)], "columns": [(6, 3), (6, 4), (6, 5)]}.items():
    print(f"{what} change:", [dg.trace(mystery, randn(6, 3), randn(3)).accepts(randn(s), randn(s[1])) for s in shapes])


# %% tags=["exercise"]
def my_lines():
    raise NotImplementedError  # {"rows": "...", "columns": "..."}


# %% tags=["check"]
nb08.lines_at_fault(my_lines, mystery)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# `z + y` broadcasts, `reshape` and `*` take sizes as they are. Which lines does Python itself decide something by?
#
# </details>
# <details><summary>Hint 2</summary>
#
# A list has as many elements as there are pieces.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_lines():
#     return {"rows": "parts = [p.sum() for p in z.split(2)]", "columns": "if columns > 4:"}
# ```
#
# </details>
#
# ## A branch on a size
#
# ### 9 · Pad to at least 16 (pytorch 149635)
#
# *Predict:* one graph, or two?


# %%
def pad_to_16(x):
    out = torch.zeros(max(x.shape[0], 16))
    out[: x.shape[0]] = x
    return out


def without_a_branch(x):
    out = torch.zeros(torch.sym_max(x.shape[0], 16))
    out[: x.shape[0]] = x
    return out


case(pad_to_16, randn(15), sizes={"x.shape[0]": range(20)})
print("torch.sym_max:", [g.code for g in dg.trace(without_a_branch, randn(15)).guards])

# %% [markdown]
# Python's `max` compares: ours splits at 16, and `torch.sym_max` doesn't. TorchDynamo, which reads bytecode, has meanwhile learnt to take `max` for an expression: on 2.13 the report no longer holds, and its one entry goes beyond our path.
#
# ### 14 · Pad to a multiple of 8 (pytorch 150403)


# %%
def padded_mask(x):
    seq = x.shape[1]
    extra = 8 - seq % 8 if seq % 8 else 0
    return F.pad(x, (0, extra))


def by_formula(x):
    return F.pad(x, (0, -x.shape[1] % 8))


case(padded_mask, randn(2, 8), sizes={"x.shape[0]": range(4), "x.shape[1]": range(0, 17)})
for program in padded_mask, by_formula:
    calls = [(randn(2, n),) for n in (8, 9, 10, 16, 17)]
    print(program.__name__, "compiles", compilations(program, *calls), "times;", len(dg.trace(program, randn(2, 8)).guards), "guards of ours")

# %% [markdown]
# `if seq % 8` asks; `-seq % 8` computes, and is 0 by itself where nothing is lacking.
#
# ### Exercise 8.3 · Two compilations
#
# TorchDynamo compiles `weighted` at every batch. Rewrite it: the same results, and at most two compilations for batches 2 to 8.


# %%
def weighted(x):
    n = x.shape[0]
    weights = torch.tensor([1 / n if i < n // 2 else 2 / n for i in range(n)])
    return (x * weights[:, None]).sum(0)


print("compilations:", compilations(weighted, *[(randn(n, 3),) for n in range(2, 9)]))


# %% tags=["exercise"]
def my_weighted(x):
    raise NotImplementedError


# %% tags=["check"]
nb08.two_compilations(my_weighted, weighted)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# `range(n)` unrolls. `torch.arange(n)` is an operation.
#
# </details>
# <details><summary>Hint 2</summary>
#
# `torch.where(condition, 1.0, 2.0)` chooses for all rows at once.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_weighted(x):
#     n = x.shape[0]
#     weights = torch.where(torch.arange(n) < n // 2, 1.0, 2.0) / n
#     return (x * weights[:, None]).sum(0)
# ```
#
# </details>
#
# ## Shapes taken apart and put together
#
# ### 4, 19 · Heads (pytorch 110322, executorch 1379)
#
# Attention splits a width into heads; with an encoder, two lengths meet in a mask. *Predict* our guards.


# %%
def attend(x):
    batch, seq, width = x.shape
    q = x.view(batch, seq, 4, width // 4).transpose(1, 2)
    return F.scaled_dot_product_attention(q, q, q).transpose(1, 2).reshape(batch, seq, width)


def cross(target, source):
    (b, t, d), s = target.shape, source.shape[1]
    q = target.reshape(b, t, 4, d // 4).transpose(1, 2)
    k = source.reshape(b, s, 4, d // 4).transpose(1, 2)
    return (q @ k.transpose(2, 3) + torch.zeros(b, 1, t, s)).softmax(-1) @ k


case(attend, randn(2, 5, 8), sizes={"x.shape[0]": range(4), "x.shape[1]": range(1, 6)})
case(cross, randn(2, 3, 8), randn(2, 4, 8), sizes={f"{x}.shape[{d}]": (1, 2, 4) for x in ("target", "source") for d in (0, 1)})

# %% [markdown]
# None: sizes only travel. TorchDynamo's rows lack 0 and 1, no more. What `per_dimension` pins shows why expressions are worth it. Both reports were refused by older versions; where yours does, write `-1` for *one* size and let the rest be expressions.
#
# ### 8 · Flatten, then a layer of fixed width (pytorch 151094)

# %%
layer = nn.Linear(20, 2)


def classify(t):
    return layer(t.reshape(t.shape[0], -1))


def classify_flat(t):
    return layer(t.flatten(1))


case(classify, randn(3, 4, 5), sizes={"t.shape[0]": range(5), "t.shape[1]": (2, 4, 5), "t.shape[2]": (4, 5, 10)})
print([g.code for g in dg.dynamo.trace(classify_flat, randn(3, 4, 5), dynamic=True).guards if g.kind == "expression" and "20" in g.code])

# %% [markdown]
# That the rest is 20 is the layer's demand: a precondition, so no guard of ours. TorchDynamo guards the product. Where a version pins the batch instead, by dividing, `flatten(1)` never mentions it.
#
# ## Sizes that come from data
#
# ### 17, 18 · `.item()` as a size (quack 150, pytorch 153174)


# %%
def padded_batch(x, lengths):
    return x[:, : lengths.max().item()]


def by_number(a, b):
    u = a.item()
    torch._check(u > 0)
    torch._check(b.shape[0] % u == 0)
    return b.view(-1, u)


lengths, x, a, b = torch.tensor([1, 3, 2, 3]), randn(4, 6), torch.tensor([6]), randn(18)
refused(dg.trace, padded_batch, x, lengths)
refused(dg.trace, by_number, a, b)
print("TorchDynamo breaks:", dg.dynamo.trace(padded_batch, x, lengths).breaks)

# %% [markdown]
# No shape tells what `.item()` gives: every rung of ours refuses, TorchDynamo breaks the graph. Asked to capture scalars it goes on, with an unbacked `u0`, and `torch._check` states what no guard can: as runtime asserts in the graph.

# %%
with torch._dynamo.config.patch(capture_scalar_outputs=True):
    t = dg.dynamo.trace(by_number, a, b)
print([str(node.op) for node in t.graph], t.breaks)
print(t(torch.tensor([9]), b).shape)


def cut(x, longest: int):
    return x[:, :longest]


def masked(x, lengths):
    return x * (torch.arange(x.shape[1]) < lengths[:, None])


print("as an argument:", compilations(cut, *[(x, n) for n in (3, 4, 5, 2)]))
print("as a mask:     ", [g.code for g in dg.trace(masked, x, lengths).guards])
dg.draw(dg.trace(masked, x, lengths))

# %% [markdown]
# The remedies without it: pass the number in (an int argument that changes becomes symbolic in TorchDynamo), bucket it, or keep the size and mask the data.
#
# ## Make it fail
#
# ### 20 · No silent specialisation (vllm 27432)
#
# The wish: an error if any dimension that should be dynamic was specialised. `t.status` has the answer, for our traces and for TorchDynamo's.

# %%
for t in dg.trace(unrolled, randn(4, 2, 3)), dg.dynamo.trace(unrolled, randn(4, 2, 3), dynamic=True):
    print(t.status, [str(g.cause) for g in t.guards if g.code == "steps.shape[0] == 4"])

# %% [markdown]
# ### Exercise 8.4 · All dynamic, or name the guard
#
# `my_check(t)` returns `"all dynamic"` if no dimension of the trace `t` is static; else a list of `(dimension, line)`, such as `("x.shape[0]", "for i in range(n):")`, the text of the line that its guard names, in the order of `t.guards`. (A guard's `kind` is `"size"` or `"shape"` where it pins; `dims` holds pairs of name and number.)


# %% tags=["exercise"]
def my_check(t):
    raise NotImplementedError


# %% tags=["check"]
nb08.all_dynamic(my_check)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# `static` pins whole shapes, in one guard: `dims` then has several pairs.
#
# </details>
# <details><summary>Hint 2</summary>
#
# `[(f"{name}.shape[{d}]", ...) for g in t.guards ... for name, d in g.dims]`
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_check(t):
#     pins = [g for g in t.guards if g.kind in ("size", "shape")]
#     return [(f"{name}.shape[{d}]", g.cause.text) for g in pins for name, d in g.dims] or "all dynamic"
# ```
#
# </details>
#
# ## Bring your own
#
# Put a function or module of yours here, and inputs. The cells below do the same for some common shapes of model, without their pictures.


# %%
class Yours(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))

    def forward(self, batch):
        x = batch["x"] / batch["scale"]
        return self.body(x) if x.shape[0] > 1 else self.body(x).squeeze(0)


t = dg.trace(Yours().eval(), {"x": randn(4, 8), "scale": randn(4, 1)})
display(t.explain(), dg.draw(t))


# %%
class Masked(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        mask = torch.ones(n, n).tril().bool()
        return F.scaled_dot_product_attention(x, x, x, attn_mask=mask)


class Cells(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(3, 5)

    def forward(self, steps):
        state = None
        for x in steps.unbind(0):
            state = self.cell(x, state)
        return state[0]


mlp = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
cnn = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(16, 2))
encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2, enable_nested_tensor=False)

# %%
brought = {
    "MLP": (mlp, (4, 8), (7, 8)),
    "CNN": (cnn, (2, 3, 9, 9), (5, 3, 12, 10)),
    "encoder": (encoder, (2, 5, 8), (3, 7, 8)),
    "LSTM cells": (Cells(), (4, 2, 3), (4, 6, 3)),
    "masked": (Masked(), (2, 5, 8), (3, 7, 8)),
}
for name, (module, seen, other) in brought.items():
    t, real = dg.trace(module.eval(), randn(seen)), dg.dynamo.trace(module, randn(seen), dynamic=True)
    print(f"{name:10} {next(iter(t.status.values()))}  at {other}: {t.accepts(randn(other))}, TorchDynamo: {real.accepts(randn(other))}")

# %% [markdown]
# The CNN was traced on a square: duck shaping makes height and width one symbol, so TorchDynamo compiles 12 by 10 anew.
#
# ## Summary
#
# - Sizes unify where they must agree: mark all of them, or use the size in place of a constant that equals it.
# - `range`, a list's length, a counter: Python needed a number. Make it an operation, a tensor, or one of few buckets.
# - 0 and 1 are TorchDynamo's special sizes: warm up with 2.
# - A branch asks; a formula computes.
# - Data-dependent sizes: pass them in, or mask.
# - Read the guard, then the line it names. `t.status` makes silence loud.
#
# ## Where this lives in PyTorch
#
# | here | in PyTorch 2.13 |
# | --- | --- |
# | marks | `torch._dynamo.mark_dynamic`, `maybe_mark_dynamic`, `mark_static`, `decorators.mark_unbacked` |
# | refused marks | `torch.fx.experimental.symbolic_shapes.ConstraintViolationError` |
# | `compilations` | `TORCH_LOGS="recompiles"`; `torch.compiler.set_stance("fail_on_recompile")` makes each an error |
# | an int of a module kept symbolic | `torch._dynamo.config.allow_unspec_int_on_nn_module` |
# | `.item()` kept in the graph | `torch._dynamo.config.capture_scalar_outputs` |
# | a statement about an unbacked size | `torch._check` |
#
# That was the last lesson. Take [the package](https://github.com/dynguard-lite/dynguard_lite) to a program of yours; when it recompiles, you know where to look.
#
# [← previous](07_beside_torchdynamo.ipynb) · [map](00_start_here.ipynb)
