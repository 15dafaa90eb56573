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
# # 1 · The IR: a program as a graph
#
# **The question.** What does the recording of a program look like, and how do you run a recording again, on other inputs?
#
# *Know first:* tensors in PyTorch, classes in Python. *About 35 minutes.*
#
# [← previous](00_start_here.ipynb) · [map](00_start_here.ipynb) · [next →](02_tracer.ipynb)

# %%
import operator
from dataclasses import dataclass

import torch

import dynguard_lite as dg
from dynguard_lite.exercises import nb01

# %% [markdown]
# A compiler doesn't work on your Python text. It works on an **intermediate representation**, an IR: a data structure that says what is to be computed, and nothing else. Ours is about as small as one can be. In this lesson we build it, write programs in it by hand, and run them. (How a Python function *becomes* such a graph is lesson 2.)
#
# ## Operations and nodes
#
# An **op** is a frozen name. There are four: two kinds of parameter, an addition, a multiplication.

# %%
@dataclass(frozen=True)
class Op:
    name: str

    def __repr__(self):
        return self.name


v_dynamic_param, v_static_param = Op("v_dynamic_param"), Op("v_static_param")
v_add, v_mul = Op("v_add"), Op("v_mul")

# %% [markdown]
# A **node** is an op applied to other nodes, its `inputs`. What isn't a node, such as a name, goes into `params`. Nodes are compared by identity: two additions of the same values are two nodes.

# %%
class Node:
    def __init__(self, op, inputs, params):
        self.op, self.inputs, self.params = op, inputs, params


def dynamic(name, size):
    return Node(v_dynamic_param, (), {"name": name, "size": torch.Size(size)})


a, b = dynamic("a", [4]), dynamic("b", [4])
product = Node(v_mul, (a, b), {})

# %% [markdown]
# That is the program `a * b`. `a` and `b` are **parameters**: the tensors that the program will be called with. Each holds the `size` seen when the graph was made, which for a *dynamic* parameter is a note in the margin: any size will do.
#
# The course draws such graphs a lot. `dg.draw` takes anything that has `op`, `inputs` and `params`.

# %%
dg.draw(product)

# %% [markdown]
# Data flows from top to bottom. The row under a parameter's name has one cell for each dimension. Under `v_mul` there is none, because our node doesn't say what size its result has. Who could know? Hold that thought until lesson 5.
#
# And in text, as one expression:

# %%
def show(node):
    name = [f"name={node.params['name']}"] if node.op == v_dynamic_param else []
    return f"{node.op}({', '.join([*map(show, node.inputs), *name])})"


Node.__repr__ = show
print(product)

# %% [markdown]
# ## Running a recording
#
# The graph says *what*. The **interpreter** does it: one Python function for each op, and a walk that computes the inputs first. `env` maps the name of a parameter to a tensor.

# %%
INTERP_RULES = {v_add: operator.add, v_mul: operator.mul}


def interp_node(node, env):
    if node.op == v_dynamic_param:
        return env[node.params["name"]]
    return INTERP_RULES[node.op](*(interp_node(i, env) for i in node.inputs))


torch.manual_seed(0)
four = {"a": torch.randn(4), "b": torch.randn(4)}
print(torch.equal(interp_node(product, four), four["a"] * four["b"]))

# %% [markdown]
# *Predict:* the graph was made with sizes 4 and 4 in its margin. What happens with sizes 5 and 1? With 5 and 3?

# %%
def attempt(node, **sizes):
    env = {name: torch.randn(n) for name, n in sizes.items()}
    try:
        return f"{sizes}: result of size {list(interp_node(node, env).shape)}"
    except (AssertionError, RuntimeError) as error:
        return f"{sizes}: {type(error).__name__}: {str(error)[:60]}"


print(attempt(product, a=5, b=1))
print(attempt(product, a=5, b=3))

# %% [markdown]
# 5 and 1 work: nothing in this IR is specific to a shape, and PyTorch broadcasts as ever. 5 and 3 fail, and that's right too: `a * b` fails there itself. A replay should do what the program would do, errors included.
#
# ### Exercise 1.1 · An op of your own
#
# The IR has no subtraction and no sum. Make ops named `v_sub` (two inputs) and `v_sum` (one input, and a static `dim` in `params`: `Node(v_sum, (x,), {"dim": 0})`). Return `(v_sub, v_sum, my_interp)`, where `my_interp(node, env)` can run graphs of all five ops.

# %% tags=["exercise"]
def my_ops():
    raise NotImplementedError  # v_sub, v_sum, my_interp


# %% tags=["check"]
nb01.more_ops(my_ops, Node, dynamic, v_add, v_mul)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Start from a copy of `interp_node`. Recursive calls have to call *your* function, or the new ops inside a graph aren't known.
#
# </details>
# <details><summary>Hint 2</summary>
#
# A rule may take the static metadata too: `rule(*values, **node.params)`. The rules of `v_add` and `v_mul` get an empty `params` that way.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_ops():
#     v_sub, v_sum = Op("v_sub"), Op("v_sum")
#     rules = {**INTERP_RULES, v_sub: operator.sub, v_sum: torch.sum}
#
#     def my_interp(node, env):
#         if node.op == v_dynamic_param:
#             return env[node.params["name"]]
#         return rules[node.op](*(my_interp(i, env) for i in node.inputs), **node.params)
#
#     return v_sub, v_sum, my_interp
# ```
#
# </details>

# %% [markdown]
# ## A parameter of one size only
#
# Sometimes a recording is right for one size and wrong for others; lesson 2 shows how that comes about. The IR has a second kind of parameter for it, the **static** one: it must have the size in its margin, and the interpreter insists.

# %%
def interp_node(node, env):
    if node.op in (v_dynamic_param, v_static_param):
        tensor, size = env[node.params["name"]], node.params["size"]
        if node.op == v_static_param:
            assert tensor.shape == size, f"static shape mismatch: {tensor.shape} and {size}"
        return tensor
    return INTERP_RULES[node.op](*(interp_node(i, env) for i in node.inputs))


fixed = Node(v_static_param, (), {"name": "a", "size": torch.Size([4])})
total = Node(v_add, (fixed, b), {})
print(attempt(total, a=4, b=1))
print(attempt(total, a=5, b=1))

# %% [markdown]
# That assertion is a **guard**, the first of many: a condition on the inputs under which the recording may be used. In the picture, static is orange, with the size; dynamic is blue.

# %%
dg.draw(total)

# %% [markdown]
# *Predict:* what does `print(total)` show for the static parameter?

# %%
print(total)

# %% [markdown]
# Neither name nor size. Our printing has that slip because the 2022 notebook which this system comes from has it, and we reproduce its outputs exactly. But a listing that hides the one fact that matters is worth mending.
#
# ### Exercise 1.2 · Print what matters
#
# Write `my_show(node)`: like `show`, but a static parameter prints as `v_static_param(name=a, size=[4])`.

# %% tags=["exercise"]
def my_show(node):
    raise NotImplementedError  # a string


# %% tags=["check"]
nb01.shows_static(my_show, Node, dynamic, v_static_param, v_add, v_mul)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Two cases have something to print besides their inputs: dynamic parameters a name, static ones a name and a size.
#
# </details>
# <details><summary>Hint 2</summary>
#
# `list(size)` of a `torch.Size` prints as `[4]`. Call `my_show`, not `show`, for the inputs.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_show(node):
#     parts = [my_show(i) for i in node.inputs]
#     if node.op in (v_dynamic_param, v_static_param):
#         parts.append(f"name={node.params['name']}")
#     if node.op == v_static_param:
#         parts.append(f"size={list(node.params['size'])}")
#     return f"{node.op}({', '.join(parts)})"
# ```
#
# </details>

# %% [markdown]
# ## Sharing: a graph, not a tree
#
# A node may be an input of several others, or twice of the same. Here is `x = x + x`, three times over. It is four nodes.

# %%
def doubled(times):
    x = dynamic("x", [2])
    for _ in range(times):
        x = Node(v_add, (x, x), {})
    return x


dg.draw(doubled(3))

# %% [markdown]
# *Predict:* how long is its printed form? Each line of the picture has two arrows, so from the bottom there are 2 · 2 · 2 ways up, and `show` takes them all.

# %%
print(doubled(3))

# %% [markdown]
# The interpreter walks in the same way: it follows *paths*, and computes a shared node once for each path that leads to it. Let us count how often a rule is called, against the number of nodes there are.

# %%
def counted(times):
    calls = 0

    def add(x, y):
        nonlocal calls
        calls += 1
        return x + y

    INTERP_RULES[v_add] = add
    interp_node(doubled(times), {"x": torch.ones(2)})
    INTERP_RULES[v_add] = operator.add
    return calls


for times in (1, 2, 4, 8, 12):
    print(f"{times:3} additions recorded, {counted(times):5} computed")

# %% [markdown]
# Every sharing doubles the work: 2ⁿ - 1 calls for n nodes. Sixty lines of `x = x + x` are nothing for Python, and would keep this interpreter busy for some thousand years. There is a second limit, on depth:

# %%
x = dynamic("x", [2])
for _ in range(100_000):
    x = Node(v_add, (x, b), {})
try:
    interp_node(x, {"x": torch.ones(2), "b": torch.ones(2)})
except RecursionError as error:
    print(type(error).__name__)

# %% [markdown]
# ## In program order
#
# Both have the same cure. A program computes one thing after another, so keep the nodes in a list, in **program order**: each node comes after its inputs. That makes it a **topological order** of the graph too, and the interpreter is a loop over it that remembers every value.

# %%
def interp_list(nodes, env):
    values = {}
    for node in nodes:
        if node.op in (v_dynamic_param, v_static_param):
            values[node] = env[node.params["name"]]
        else:
            values[node] = INTERP_RULES[node.op](*(values[i] for i in node.inputs))
    return values[nodes[-1]]


print(interp_list([a, b, product], four).shape)

# %% [markdown]
# No recursion, each node once. There is a third gain. In PyTorch an operation may change its input in place (`x.add_(1)`), and then the *order* of operations is part of what a program means. A tree of expressions has no order; a list does. Lesson 2 shows a program where it matters.
#
# When only the last node of a graph is known, its nodes have to be put in order first.
#
# ### Exercise 1.3 · A topological order, without recursion
#
# Write `my_order(node)`: the list of all nodes that `node` is computed from, `node` itself last, each once, each after its inputs. It has to cope with the chain of 100,000 additions above and with `doubled(60)`.

# %% tags=["exercise"]
def my_order(node):
    raise NotImplementedError  # a list of nodes, inputs first


# %% tags=["check"]
nb01.topological_order(my_order, Node, dynamic, v_add)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Depth first with a stack. A node may go into the result once all of its inputs are there.
#
# </details>
# <details><summary>Hint 2</summary>
#
# Look at the top of the stack: if some of its inputs are missing from the result, push those; otherwise pop it and append it, unless it is there already. Keep a set beside the list for the test.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_order(node):
#     order, done, stack = [], set(), [node]
#     while stack:
#         missing = [i for i in stack[-1].inputs if i not in done]
#         if missing:
#             stack.extend(missing)
#         else:
#             node = stack.pop()
#             if node not in done:
#                 done.add(node)
#                 order.append(node)
#     return order
# ```
#
# </details>
#
# ### Exercise 1.4 · Names instead of repetition
#
# The printed form of a shared graph explodes as well. Write `my_listing(nodes)` for a list in program order: a string of one line for each node that isn't a parameter, named `v0`, `v1`, … in order, with its inputs by name: `v0 = v_add(x, x)`, `v1 = v_mul(v0, b)`. Parameters go by their own names.

# %% tags=["exercise"]
def my_listing(nodes):
    raise NotImplementedError  # a string with one line a node


# %% tags=["check"]
nb01.listing(my_listing, Node, dynamic, v_add, v_mul)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Keep a dictionary from node to name, and fill it as you go through the list.
#
# </details>
# <details><summary>Hint 2</summary>
#
# The next number is how many lines there are already. Parameters take none.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_listing(nodes):
#     names, lines = {}, []
#     for node in nodes:
#         if node.op in (v_dynamic_param, v_static_param):
#             names[node] = node.params["name"]
#         else:
#             names[node] = f"v{len(lines)}"
#             lines.append(f"{names[node]} = {node.op}({', '.join(names[i] for i in node.inputs)})")
#     return "\n".join(lines)
# ```
#
# </details>

# %% [markdown]
# ## What isn't there
#
# No `if`, no loop, no call, no Python at all. A recording is one *path* through a program. That is what makes it easy to run, to draw, to analyse and to compile, and it is what makes it wrong wherever the program would have taken another path. The rest of the course is about that sentence.
#
# ## The grown-up version
#
# The package has the same vocabulary, so the same graph can be made from its parts. Does it print and compute the same?

# %%
theirs = dg.Node(dg.Op("v_mul"), (
    dg.Node(dg.Op("v_dynamic_param"), (), {"name": "a", "size": torch.Size([4])}),
    dg.Node(dg.Op("v_dynamic_param"), (), {"name": "b", "size": torch.Size([4])}),
), {})  # fmt: skip
print(theirs.text(short=True) == str(product))
print(torch.equal(dg.interp_node(theirs, four), interp_node(product, four)))

# %%
static = dg.Node(dg.Op("v_static_param"), (), {"name": "a", "size": torch.Size([4])})
try:
    dg.interp_node(static, {"a": torch.randn(5)})
except AssertionError as error:
    print(f"{type(error).__name__}: {error}")

# %% [markdown]
# Same graph, same answer, same refusal. Its walks are loops in a topological order, so depth and sharing are no trouble, and its printed form stops before it explodes:

# %%
add = dg.Op("v_add")
x = dg.Node(dg.Op("v_dynamic_param"), (), {"name": "x", "size": torch.Size([1])})
deep = wide = x
for _ in range(100_000):
    deep = dg.Node(add, (deep, x), {})
for _ in range(60):
    wide = dg.Node(add, (wide, wide), {})
for node in deep, wide:
    print(dg.interp_node(node, {"x": torch.ones(1)}).item(), node.text(limit=40))

# %% [markdown]
# And PyTorch's own? Its graph IR is `torch.fx`. The same program in it, recorded by PyTorch:

# %%
print(torch.fx.symbolic_trace(lambda a, b: a * b).graph)

# %% [markdown]
# A list of nodes in program order, parameters first (FX calls them *placeholders*), each node with the op it calls and its inputs by name: `%mul` is `operator.mul` of `%a` and `%b`. TorchDynamo records into this very class.
#
# ## Summary
#
# - An op is a name; a node is an op applied to nodes; parameters are where tensors come in.
# - The interpreter has one rule for each op. Nothing in the IR depends on sizes, except static parameters, which assert theirs.
# - Walk nodes, not paths: in program order, each once, with a loop.
# - A recording has no `if` and no loop. It is one path.
#
# ## Where this lives in PyTorch
#
# | here | in PyTorch 2.13 |
# | --- | --- |
# | the graph, in program order | `torch.fx.Graph`, its `nodes` |
# | `Node`: `op`, `inputs`, `params` | `torch.fx.Node`: `target`, `args` and `kwargs`; FX's `op` is the kind of call |
# | a parameter | a node with `op == "placeholder"` |
# | the sizes in the margin | `node.meta["val"]` and `node.meta["example_value"]` |
# | `interp_list` | `torch.fx.Interpreter`, its `run_node` |
# | the listing of exercise 1.4 | `Graph.__str__`, and as Python code `GraphModule.code` |
# | walking users instead of inputs | `Node.users` |
# | dropping what nobody uses | `Graph.eliminate_dead_code` |
#
# [← previous](00_start_here.ipynb) · [map](00_start_here.ipynb) · [next →](02_tracer.ipynb)
