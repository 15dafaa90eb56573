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
# # Guards and dynamic shapes, from the ground up
#
# A compiler that records one run of your program would like to use the recording again: tracing and compiling are slow. But the recording came from inputs of *particular sizes*. May it be run again on others? Who decides, and what does that decision cost?
#
# PyTorch's TorchDynamo answers with **guards**: conditions on the inputs under which the recording, the **trace**, may stand for the program. Guard too little and answers are wrong. Guard too much and it recompiles for ever. This course builds the smallest system that shows both, and measures them.
#
# *About 10 minutes.* No knowledge of compilers is needed; you should have written a few lines of PyTorch.

# %%
import importlib.util
import sys

import torch

import dynguard_lite as dg

# %% [markdown]
# ## One example
#
# This program looks at a size, and goes one of two ways.

# %%
torch.manual_seed(0)


def program(a, b):
    if a.shape[0] == 4:
        return a + b
    return a * b


# %% [markdown]
# Trace it with inputs of size 4, the simplest way: record what it does with tensors, and no guards at all. That is the **analysis** (the rule that decides the guards) called `"blind"`.

# %%
blind = dg.trace(program, torch.ones(4), torch.ones(4), analysis="blind")
print(blind)

# %% [markdown]
# The `if` is gone: only the branch that was taken was recorded. *Predict:* what does this trace answer for inputs of size 5, and what does the program answer?

# %%
five, one = torch.full((5,), 3.0), torch.ones(1)
print("trace:  ", blind(five, one).tolist())
print("program:", program(five, one).tolist())

# %% [markdown]
# A wrong answer, without a word. Now with guards. The analysis `"symbolic"` guards just what the program asked:

# %%
guarded = dg.trace(program, torch.ones(4), torch.ones(4), analysis="symbolic")
try:
    guarded(five, one)
except dg.GuardFailure as error:
    print(error)

# %%
dg.draw(guarded, five, one)

# %% [markdown]
# ## How to read the pictures
#
# Data flows from top to bottom. A box is one recorded operation; the row under its name has one cell per dimension.
#
# | colour and words | meaning |
# | --- | --- |
# | blue, `s0`, dashed border | **dynamic**: any size will do; `s0` is its name. The first lessons, which have no names for sizes yet, write `any (seen 4)` |
# | yellow, `s0 > 3` | **constrained**: a guard bounds it |
# | orange, `=4`, solid border | **static**: this size only |
# | grey | a constant that the program holds itself, such as a weight |
# | red, `FAIL` | a guard that refuses the inputs you gave to `draw` |
#
# The list under the graph names each guard and the line of the program that caused it.
#
# ## How to read the lessons
#
# *Predict* before you run a cell; then run it (Shift-Enter) and read on. Change a cell and run it again: nothing can break, and Kernel / Restart takes you back. Exercises have a cell to fill in and a check under it, which says `not attempted yet`, `not yet` with a reason, or `correct`.
#
# ## The lessons
#
# | lesson | question | minutes |
# | --- | --- | --- |
# | [1 · The IR](01_ir.ipynb) | What does the recording of a program look like, and how is it run again? | 35 |
# | [2 · The tracer](02_tracer.ipynb) | How does a Python function become a graph, and what gets lost on the way? | 40 |
# | [3 · Guard analysis](03_guard_analysis.ipynb) | Which looks at a size commit us to what? | 45 |
# | [4 · The limits of precision](04_precision_limits.ipynb) | How much is answered wrongly, how much refused for nothing? | 50 |
# | [5 · Shape formulas](05_shape_formulas.ipynb) | How can a guard name only the sizes that matter? | 55 |
# | [6 · Symbolic guards](06_symbolic_guards.ipynb) | Can a trace stay valid for every size that takes the same path? | 55 |
# | [7 · Beside TorchDynamo](07_beside_torchdynamo.ipynb) | What does the real one guard on the same programs, and why? | 60 |
# | [8 · Casebook](08_casebook.ipynb) | Which line makes a program recompile, and what cures it? | 60 |
#
# Lessons 1 to 3 build a small system in their cells, in a few dozen lines; from lesson 4 on, the package `dynguard_lite` takes over, which is the same system grown up.
#
# ## Words
#
# | word | meaning | in PyTorch 2.13 |
# | --- | --- | --- |
# | trace | the recorded operations of one run, and their guards | a compiled frame's code and guards |
# | graph, node, op | what was recorded: ops applied to the results of others | `torch.fx.Graph`, `torch.fx.Node` |
# | parameter (of a trace) | a tensor that the program was called with | a `placeholder` node |
# | guard | a condition under which the trace may stand for the program | `torch._guards.Guard` |
# | static, dynamic dimension | guarded to one size; free | `torch._dynamo.mark_static`, `mark_dynamic` |
# | constrained dimension | bounded by a guard, not fixed | a symbol with a value range |
# | sound, precise | guards accept nothing wrongly; they accept all that is valid | the same words |
# | specialise | fix a size to the value seen | the same word |
# | hint | the value seen while tracing | the same word |
# | rank | the number of dimensions | `Tensor.dim()` |
# | SymInt, symbolic shape | a size that is an expression over the inputs' sizes | `torch.SymInt` |
# | shape formula | how an operation's result size follows from its inputs' | a meta kernel |
# | backed, unbacked size | known from the inputs' sizes; known only once data is | the same words |
# | 0/1 specialisation, duck shaping | a size of 0 or 1 is fixed; equal sizes are taken for one symbol | `DimDynamic.DUCK` |
# | broadcasting | how sizes 1 and n go together | the same word |
# | cache entry | guards and a trace, kept for later calls | `torch._dynamo.types.CacheEntry` |
# | recompile | no entry accepts the inputs: trace again | `TORCH_LOGS="recompiles"` |
# | automatic dynamic | a size that differed between calls is a symbol from then on | `torch._dynamo.config.automatic_dynamic_shapes` |
# | graph break | where recording stops, Python runs, and recording starts again | `TORCH_LOGS="graph_breaks"` |
# | precondition, runtime assert | what an operation demands of its inputs; what a trace checks as it runs | `torch._check` |
#
# ## Is everything here?

# %%
def check(what, there, advice):
    print(f"{'ok     ' if there else 'MISSING'} {what}{'' if there else ': ' + advice}")


version = tuple(map(int, torch.__version__.split("+")[0].split(".")[:2]))
draws = "image/svg+xml" in dg.draw(guarded)._repr_mimebundle_()
check("Python 3.11 or newer", sys.version_info >= (3, 11), "python.org has it")
check("torch 2.9 or newer", version >= (2, 9), "pip install -r requirements.txt")
check("tqdm", importlib.util.find_spec("tqdm"), "pip install tqdm")
check("matplotlib", importlib.util.find_spec("matplotlib"), "pip install matplotlib")
check("a program that draws", draws, "pip install graphviz graphviz-pure")
