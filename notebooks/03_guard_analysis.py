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
# # 3 · Guard analysis: which looks commit us to what
#
# **The question.** A program looked at a size while it was traced, and took a branch. Which inputs may still use the trace?
#
# *Know first:* lessons 1 (nodes, `interp_node`) and 2 (`Variable`, why a branch vanishes from a trace). *About 45 minutes.*
#
# [← previous](02_tracer.ipynb) · [map](00_start_here.ipynb) · [next →](04_precision_limits.ipynb)

# %%
import itertools
import operator
from dataclasses import dataclass

import torch
from IPython.display import display

import dynguard_lite as dg
from dynguard_lite.exercises import nb03

# %% [markdown]
# Lesson 2 ended badly. The program asked `if a.size()[0] == 4`, the trace kept the branch taken and forgot the question. What is missing is a **guard**: a condition on the inputs under which the trace may stand for the program. **Guard analysis** is the rule that decides, from what a program looked at, which guards its trace needs.
#
# First, the small system as lessons 1 and 2 left it. A **parameter** of the trace is **dynamic** (any size will do) or **static** (it must have the size seen while tracing).

# %%
@dataclass(frozen=True)
class Op:
    name: str

    def __repr__(self):
        return self.name


v_dynamic_param, v_static_param = Op("v_dynamic_param"), Op("v_static_param")
v_add, v_mul = Op("v_add"), Op("v_mul")
INTERP_RULES = {v_add: operator.add, v_mul: operator.mul}


class Node:
    def __init__(self, op, inputs, params):
        self.op, self.inputs, self.params = op, inputs, params

    def __repr__(self):
        name = [f"name={self.params['name']}"] if self.op == v_dynamic_param else []
        return f"{self.op}({', '.join(map(str, [*self.inputs, *name]))})"


# %%
def interp_node(node, env):
    if node.op in (v_dynamic_param, v_static_param):
        tensor, size = env[node.params["name"]], node.params["size"]
        if node.op == v_static_param:
            assert tensor.shape == size, f"static shape mismatch: {tensor.shape} and {size}"
        return tensor
    return INTERP_RULES[node.op](*(interp_node(i, env) for i in node.inputs))


class Variable:
    def __init__(self, tensor, node):
        self.tensor, self.node = tensor, node

    @staticmethod
    def param(tensor, name):
        return Variable(tensor, Node(v_dynamic_param, (), {"name": name, "size": tensor.shape}))

    def __mul__(self, other):
        return Variable(self.tensor * other.tensor, Node(v_mul, (self.node, other.node), {}))

    def __add__(self, other):
        return Variable(self.tensor + other.tensor, Node(v_add, (self.node, other.node), {}))


# %% [markdown]
# ## Whose size is it?
#
# Every size in a program comes from the inputs in the end. So when a program looks at the size of some value, the inputs to blame are those which that value was computed from: walk the edges backwards until you stand on parameters.

# %%
def input_sources(node):
    """The dynamic parameters that a node is computed from."""
    if node.op == v_dynamic_param:
        return {node}
    return set().union(*(input_sources(i) for i in node.inputs))


def names(nodes):
    return sorted(n.params["name"] for n in nodes)


torch.manual_seed(0)
a, b, c = (Variable.param(torch.randn(4), name) for name in "abc")
d = a * b
e = d + c
print("d comes from", names(input_sources(d.node)))
print("e comes from", names(input_sources(e.node)))

# %% [markdown]
# Now the rule. `.size()` is an explicit use of a size: from here on the program may do anything with the number, and a tracer that sees torch calls only would never know. So it assumes the worst. **Every parameter the value came from turns static**; to fix a parameter to the size seen is to **specialise** on it. The program gets the real size, and goes on.

# %%
def size(self):
    for parameter in input_sources(self.node):
        parameter.op = v_static_param
    return self.tensor.size()


Variable.size = size

# %% [markdown]
# Five lines, and that is the whole analysis. The rest of this lesson finds out what it does.
#
# ## A look at an input
#
# `a` and `b` have size 4, so the program adds. *Predict:* which parameters are static in the trace of `r`?

# %%
def program_2(a, b):
    if a.size()[0] == 4:
        return a + b
    return a * b


r = program_2(Variable.param(torch.randn(4), "a"), Variable.param(torch.randn(4), "b"))
print(r.node)
dg.draw(r.node)


# %% [markdown]
# Only `a`: its size was looked at, `b`'s never was.
#
# The printed form has a blemish that we keep, because it is how the first version of this system (a 2022 teaching notebook) printed: a static parameter shows neither name nor size. The picture does.
#
# *Predict:* which of these three pairs of sizes will the trace take?

# %%
def attempt(node, **sizes):
    env = {name: torch.randn(n) for name, n in sizes.items()}
    try:
        return f"{sizes}: works, result {list(interp_node(node, env).shape)}"
    except AssertionError as error:
        return f"{sizes}: {type(error).__name__}: {error}"


print(attempt(r.node, a=4, b=4))
print(attempt(r.node, a=4, b=1))
print(attempt(r.node, a=5, b=1))

# %% [markdown]
# The last is the pair that lesson 2's trace answered wrongly, without a word. Now it's refused: the program would have multiplied there, and the trace can only add.
#
# ## A look at something in between
#
# *Predict:* this program looks at the size of `c`, which is no input at all. What turns static?

# %%
def program_3(a, b):
    c = a + b
    if c.size()[0] == 1:
        return a + c
    return a * c


r = program_3(Variable.param(torch.randn(1), "a"), Variable.param(torch.randn(1), "b"))
print(r.node)
dg.draw(r.node)

# %%
print(attempt(r.node, a=1, b=1))
print(attempt(r.node, a=1, b=5))

# %% [markdown]
# Both. The size was read on an intermediate value, both inputs flow into it, and either could have made it something other than 1. (The 2022 text says at this point that both inputs become *dynamic*. A slip: its printed IR says `v_static_param` twice, and so does the refusal.)
#
# One detail: `c` was recorded *before* the look. *Predict:* do nodes recorded before a look notice it?

# %%
a, b = Variable.param(torch.randn(4), "a"), Variable.param(torch.randn(4), "b")
early = a * b
print("before:", early.node)
a.size()
print("after: ", early.node)

# %% [markdown]
# They do: nodes are shared, and the parameter itself changed. A guard belongs to the trace, not to a place in it. Four programs to try your eye on; all run on inputs of size 4.

# %%
def f(a, b, c):
    d = a * b
    return d + c if a.size()[0] == 4 else d * c


def g(a, b, c):
    d = a * b
    e = d + c
    return e if d.size()[0] == 4 else c


def h(a, b, c):
    d = a * b + c
    n = d.size()[0]
    return a * a


def k(a, b, c):
    for _ in range(b.size()[0]):
        a = a + c
    return a


# %% [markdown]
# ### Exercise 3.1 · Who turns static?
#
# For each of `f`, `g`, `h`, `k` above: which parameters turn static? Return `{f: {...}, g: {...}, ...}` with sets of names. Decide by eye before you run anything.

# %% tags=["exercise"]
def my_static():
    raise NotImplementedError  # {f: {"a", ...}, g: ..., h: ..., k: ...}


# %% tags=["check"]
nb03.static_parameters(my_static)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Find the value whose `.size()` is called. What happens to other values is of no interest.
#
# </details>
# <details><summary>Hint 2</summary>
#
# Does it matter whether the number is used, or whether the parameter is part of the result? Read the five lines of `size` again.
#
# </details>
# <details><summary>Solution</summary>
#
# `h` never uses `n`, and `k` returns a value that `b` doesn't flow into. The look alone commits the trace.
#
# ```python
# def my_static():
#     return {f: {"a"}, g: {"a", "b"}, h: {"a", "b", "c"}, k: {"b"}}
# ```
#
# </details>
#
# ### Exercise 3.2 · A walk that survives large graphs
#
# Our `input_sources` is recursive and follows every *path*, as the 2022 version did. A chain of 100,000 operations exceeds Python's recursion limit, and with `x = x + x` the number of paths doubles at every step. Write it with a loop that visits each *node* once.

# %% tags=["exercise"]
def my_sources(node):
    raise NotImplementedError  # the set of dynamic parameters that node is computed from


# %% tags=["check"]
nb03.linear_sources(my_sources)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Keep a list of nodes still to visit. Take one off, deal with it, put its inputs on.
#
# </details>
# <details><summary>Hint 2</summary>
#
# A node may be reached by many paths. Remember the nodes you have put on the list, and never put one on twice.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_sources(node):
#     found, seen, todo = set(), {node}, [node]
#     while todo:
#         node = todo.pop()
#         if node.op == v_dynamic_param:
#             found.add(node)
#         for i in node.inputs:
#             if i not in seen:
#                 seen.add(i)
#                 todo.append(i)
#     return found
# ```
#
# </details>

# %% [markdown]
# ## Guards + trace = what gets cached
#
# Tracing is slow, and in real life a compiler runs after it. The point of guards is to do that once and use the result often. So what goes into the cache is a pair: the guards, and the trace that is valid where they hold. That pair is a **cache entry**.

# %%
def analyse(program, env):
    """Run the program once: a cache entry, made of guards {name: size} and a trace."""
    params = {name: Variable.param(tensor, name) for name, tensor in env.items()}
    result = program(**params)
    static = [p.node for p in params.values() if p.node.op == v_static_param]
    return {n.params["name"]: n.params["size"] for n in static}, result.node


def hold(guards, env):
    return all(env[name].shape == size for name, size in guards.items())


# %% [markdown]
# A call tries the entries in turn. If the guards of none hold, the program is analysed again: that is a **recompile**, and the cache grows by an entry.

# %%
def call(program, env, cache):
    for guards, node in cache:
        if hold(guards, env):
            return "hit", interp_node(node, env)
    cache.append(analyse(program, env))
    return "recompile", interp_node(cache[-1][1], env)


# %% [markdown]
# *Predict:* eight calls of `program_2`. How many recompiles? How many *different* traces will the cache hold?

# %%
cache = []
for n, m in [(4, 4), (4, 1), (5, 5), (5, 1), (4, 4), (6, 1), (7, 7), (5, 5)]:
    env = {"a": torch.randn(n), "b": torch.randn(m)}
    verdict, result = call(program_2, env, cache)
    right = torch.equal(result, program_2(**env))
    print(f"a={n} b={m}  {verdict:9}  {'right' if right else 'WRONG'}  {len(cache)} entries")

# %%
for guards, node in cache:
    print({name: list(size) for name, size in guards.items()}, str(node).split("(")[0])

# %% [markdown]
# Every answer is right, and there were four recompiles. But only two different things were recorded: one entry adds, and three multiply, for sizes 5, 6 and 7. The program has two paths; the cache will grow an entry for every size it ever meets. TorchDynamo gives up on a function after 8 entries (`torch._dynamo.config.recompile_limit`) and runs it uncompiled from then on, so this is a cost that people meet.
#
# ## The grown-up version: `dg.trace`
#
# The package traces ordinary functions on ordinary tensors and any torch call in them. Its analysis `"whole_tensor"` is the rule you just built. Guards are Python expressions over the arguments, and each knows the line of your program that caused it.

# %%
t = dg.trace(program_2, torch.randn(4), torch.randn(4), analysis="whole_tensor")
print(t)

# %% [markdown]
# The trace as a whole: what each dimension is, the **graph** (its nodes in program order), and the guards. You can ask a trace whether it accepts inputs, which guards refuse them, or just call it: it checks, then replays.

# %%
a5, b1 = torch.randn(5), torch.randn(1)
print(t.accepts(torch.randn(4), b1), t.accepts(a5, b1))
print([guard.code for guard in t.failing(a5, b1)])
try:
    t(a5, b1)
except dg.GuardFailure as error:
    print(f"{type(error).__name__}: {error}")

# %% [markdown]
# `dg.explore` is a cache like `call` above, with a slider for each size. Every move is a call; the picture marks what refuses it in red. *Predict:* from 4 and 4, take `b` to 1, then `a` to 5, 6 and 7. How many recompiles?

# %%
dg.explore(program_2, torch.randn(4), torch.randn(4), analysis="whole_tensor")

# %%
display(dg.draw(t, torch.randn(4), b1))  # the same without sliders: one call that passes, and one that fails
display(dg.draw(t, a5, b1))

# %% [markdown]
# *Predict:* for `program_3`, how many guards, and caused by which lines?

# %%
t3 = dg.trace(program_3, torch.randn(1), torch.randn(1), analysis="whole_tensor")
t3.explain()

# %% [markdown]
# Two guards, one line: `v2` is what the tracer calls the value of `a + b`. The table says who was looked at and why each input is held responsible, which is what you want to know when your own model recompiles.
#
# ## Looks at other things than sizes
#
# The small system guards sizes and nothing else. That's a hole: a program can just as well branch on the **rank** (the number of dimensions), on the dtype, on `requires_grad`, or on **ambient state** that is no argument at all, such as whether grad mode is on. *Predict:* the guards of this one. Is there one on the size?

# %%
def looks_around(x, w):
    if x.dim() == 1:
        x = x * 2
    if w.dtype == torch.float32:
        x = x + w
    if w.requires_grad and torch.is_grad_enabled():
        x = x.sum()
    return x


x, w = torch.randn(4), torch.randn(4, requires_grad=True)
t = dg.trace(looks_around, x, w, analysis="whole_tensor")
t.explain()

# %% [markdown]
# Four looks, four guards, and none on a size: nobody asked for one. The last guard can refuse a call with the very same arguments.

# %%
def refused_by(*args):
    return [guard.code for guard in t.failing(*args)] or "accepted"


print("other sizes: ", refused_by(torch.randn(9), torch.randn(9, requires_grad=True)))
print("rank 2:      ", refused_by(torch.randn(4, 4), w))
print("float64:     ", refused_by(x, w.detach().double().requires_grad_()))
print("detached:    ", refused_by(x, w.detach()))
with torch.no_grad():
    print("no_grad mode:", refused_by(x, w))


# %% [markdown]
# (TorchDynamo is less patient: it guards rank, dtype, device and `requires_grad` of *every* tensor input, looked at or not.)
#
# ### Exercise 3.3 · Fewer guards, same verdicts
#
# A guard check runs before every call, so it should be short. Guards come as triples `(parameter, subject, value)`, where the subject is `"shape"`, `"dim()"` or `"shape[0]"`, `"shape[1]"`, … Write `my_minimal(guards)`: drop repetitions (the first stays) and every guard that another single guard of the list implies; keep the order. All of them held for the same inputs, so none contradict each other.

# %% tags=["exercise"]
def my_minimal(guards):
    raise NotImplementedError  # a list of triples, e.g. [("a", "shape", (4, 2)), ("b", "dim()", 1)]


# %% tags=["check"]
nb03.minimal_guards(my_minimal)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# `dict.fromkeys(guards)` drops repetitions and keeps the order.
#
# </details>
# <details><summary>Hint 2</summary>
#
# The whole shape implies the rank and each of its sizes, but only those of the *same* parameter. Does `shape[1] == 2` imply `dim() == 2`? It implies that there are *at least* two dimensions.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_minimal(guards):
#     whole = {name for name, subject, _ in guards if subject == "shape"}
#     return [g for g in dict.fromkeys(guards) if g[1] == "shape" or g[0] not in whole]
# ```
#
# </details>
#
# ### Exercise 3.4 · Refused for nothing
#
# Trace `program_2` on two inputs of size 5. Find sizes `(size of a, size of b)` that this trace refuses, although the program runs there and would do exactly what was recorded.

# %% tags=["exercise"]
def my_refusal():
    raise NotImplementedError  # two ints: the size of a, the size of b


# %% tags=["check"]
nb03.refused_for_nothing(my_refusal)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Which branch did the program take at size 5? For which other sizes does it take the same?
#
# </details>
# <details><summary>Hint 2</summary>
#
# The program has to run, too: the two sizes must broadcast (be equal, or one of them 1).
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_refusal():
#     return 6, 6
# ```
#
# </details>

# %% [markdown]
# ## Do both systems agree?
#
# Same printed IR, and the same verdict on all 36 pairs of sizes from 0 to 5, for the three programs of the 2022 notebook (the first just multiplies).

# %%
def program_1(a, b):
    return a * b


for program, n in (program_1, 4), (program_2, 4), (program_3, 1):
    env = {"a": torch.randn(n), "b": torch.randn(n)}
    guards, node = analyse(program, env)
    trace = dg.trace(program, **env, analysis="whole_tensor")
    pairs = [{"a": torch.randn(i), "b": torch.randn(j)} for i, j in itertools.product(range(6), repeat=2)]
    verdicts = [(hold(guards, env), trace.accepts(**env)) for env in pairs]
    print(trace.graph.output.text(short=True))
    print("  same IR:", trace.graph.output.text(short=True) == str(node), end=", ")
    print(f"same verdict on {sum(x == y for x, y in verdicts)} of 36, accepted {sum(x for x, _ in verdicts)}")

# %% [markdown]
# What the package adds to the rule: names and sizes in print, causes, the guards that aren't about sizes, any torch call, operations replayed in program order, and walks that are loops. And a branch on a tensor's *data* (`if x.sum() > 0`), which the small system would record in silence, is refused while tracing, since no guard on metadata can cover it.
#
# ## Summary
#
# - A guard is a condition under which a trace may stand for the program. Guard analysis turns looks into guards.
# - The original rule: a look at a size turns static every parameter that the value came from, wherever the look happens and whatever becomes of the number.
# - A cache entry is guards plus trace. A call that no entry accepts is a recompile.
# - Rank, dtype, `requires_grad` and ambient state are looked at like sizes, and need guards like sizes.
# - The rule never lets a wrong answer through here, but it refuses a lot. How much? That is lesson 4.
#
# ## Where this lives in PyTorch
#
# | here | in PyTorch 2.13 |
# | --- | --- |
# | `Guard`, its `cause` | `torch._guards.Guard`, its `user_stack` |
# | a guard on a tensor's rank, dtype, device, `requires_grad` | `GuardBuilder.TENSOR_MATCH` in `torch/_dynamo/guards.py` |
# | guards on sizes | `GuardBuilder.SHAPE_ENV`, made by `ShapeEnv.produce_guards` |
# | guards on ambient state | `GuardBuilder.GRAD_MODE`, `DEFAULT_DEVICE`, `GLOBAL_STATE` |
# | the check of all guards | `CheckFunctionManager`, `GuardManagerWrapper` in `torch/_dynamo/guards.py` |
# | a cache entry, guards + trace | `torch._dynamo.types.CacheEntry`: `guard_manager` and `code` |
# | `input_sources`, in spirit | `torch._guards.Source`: where a value came from |
# | watching recompiles happen | `TORCH_LOGS="recompiles"`, `TORCH_LOGS="guards"` |
#
# [← previous](02_tracer.ipynb) · [map](00_start_here.ipynb) · [next →](04_precision_limits.ipynb)
