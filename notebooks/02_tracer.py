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
# # 2 · The tracer: recording a program while it runs
#
# **The question.** How does an ordinary Python function become a graph, and what gets lost on the way?
#
# *Know first:* lesson 1 (nodes, parameters, `interp_node`). *About 40 minutes.*
#
# [← previous](01_ir.ipynb) · [map](00_start_here.ipynb) · [next →](03_guard_analysis.ipynb)

# %%
import operator
import warnings
from dataclasses import dataclass

import torch

import dynguard_lite as dg
from dynguard_lite.exercises import nb02

# %% [markdown]
# In lesson 1 you built graphs by hand. From now on a program builds them: it runs on values that compute *and* write down what they computed. That is the whole idea of a tracer, and also the reason for its blind spots.
#
# First, the small system as lesson 1 left it (static parameters have to wait for lesson 3).

# %%
@dataclass(frozen=True)
class Op:
    name: str

    def __repr__(self):
        return self.name


v_dynamic_param, v_add, v_mul = Op("v_dynamic_param"), Op("v_add"), Op("v_mul")
INTERP_RULES = {v_add: operator.add, v_mul: operator.mul}


class Node:
    def __init__(self, op, inputs, params):
        self.op, self.inputs, self.params = op, inputs, params

    def __repr__(self):
        name = [f"name={self.params['name']}"] if "name" in self.params else []
        return f"{self.op}({', '.join(map(str, [*self.inputs, *name]))})"


def interp_node(node, env):
    if node.op == v_dynamic_param:
        return env[node.params["name"]]
    return INTERP_RULES[node.op](*(interp_node(i, env) for i in node.inputs))


# %% [markdown]
# ## A value that takes notes
#
# Python lets a class say what `*` and `+` mean. A `Variable` is a real tensor together with the node that computed it; its operators do the work twice, once on tensors and once on nodes.

# %%
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
# An ordinary function, which knows nothing of all this. To **trace** it is to run it once on such values; the graph that it leaves is its trace. *Predict:* what is printed? Will the trace run on sizes 5 and 1?

# %%
def program_1(a, b):
    return a * b


torch.manual_seed(0)
a, b = Variable.param(torch.randn(4), "a"), Variable.param(torch.randn(4), "b")
r = program_1(a, b)
print(r.node)
env = {"a": torch.randn(5), "b": torch.randn(1)}
print("sizes 5 and 1, as the program:", torch.equal(interp_node(r.node, env), program_1(**env)))
dg.draw(r.node)

# %% [markdown]
# It runs, and it's right: nothing in it is about a size. The real tensors are there so that the program gets a true answer to whatever it asks of them.
#
# ## What Python does stays in Python
#
# The values see operators applied to *them*. Everything else that the program does (a loop, an `if`, a call, an object, a `print`) is done by Python, and leaves no trace. *Predict:* how many `v_add` and `v_mul` nodes, and what does a replay print?

# %%
class Layer:
    def __init__(self, plus):
        self.plus = plus

    def __call__(self, x, y):
        return x + y if self.plus else x * y


def stack(a, b, depth=3):
    for i in range(depth):
        print("python: layer", i)
        a = Layer(plus=i == 1)(a, b)
    return a


r = stack(a, b)
print(r.node)
print("replay:", list(interp_node(r.node, env).shape))
dg.draw(r.node)

# %% [markdown]
# Three nodes. The loop is unrolled, each `if` has become the branch taken, `Layer` and `print` are gone. This is what a compiler wants: a straight line of tensor operations. It is also an assumption: the trace holds for `depth=3` and for no other, and nothing in it says so.
#
# ### Exercise 2.1 · Read the program, write the trace
#
# What does `print(r.node)` show for `p`, `q` and `s`? Return `{p: "...", q: "...", s: "..."}`; you may write `a` for `v_dynamic_param(name=a)`. By eye first.

# %%
def p(a, b):
    for c, double in ((a * a, True), (a * b, False)):
        r = c + c if double else c + a
    return r


def q(a, b):
    c = a + b
    d = c
    c = c * a
    return d + c


def s(a, b, n=2):
    return a if n == 0 else s(a * b, a, n - 1)


# %% tags=["exercise"]
def my_traces():
    raise NotImplementedError  # {p: "v_mul(a, v_add(a, b))", q: ..., s: ...}


# %% tags=["check"]
nb02.printed_traces(my_traces)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Names of the program don't matter, only what they stand for at that moment. Start at the `return`, and put in place of each name what was computed for it.
#
# </details>
# <details><summary>Hint 2</summary>
#
# A node knows its inputs. Does the result's node have any way to know of `a * a`? And in the second call of `s`, what are `a` and `b`?
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_traces():
#     return {
#         p: "v_add(v_mul(a, b), a)",
#         q: "v_add(v_add(a, b), v_mul(v_add(a, b), a))",
#         s: "v_mul(v_mul(a, b), a)",
#     }
# ```
#
# </details>
#
# ## Numbers, and operators that Python looks up elsewhere
#
# *Predict:* which of `a * 2` and `2 * a` works?

# %%
for attempt in (lambda: a * 2, lambda: 2 * a):
    try:
        attempt()
    except (AttributeError, TypeError) as error:
        print(f"{type(error).__name__}: {error}")

# %% [markdown]
# Neither, for different reasons. In `a * 2` our own `__mul__` is called, and expects a `Variable`. In `2 * a` Python asks `int` first, which declines, and then the right operand for a **reflected** operator, `__rmul__`, which we don't have.
#
# A number becomes a node without inputs, a **constant** of the trace, and both are mended.

# %%
v_constant = Op("v_constant")


def interp_node(node, env):
    if node.op == v_dynamic_param:
        return env[node.params["name"]]
    if node.op == v_constant:
        return node.params["value"]
    return INTERP_RULES[node.op](*(interp_node(i, env) for i in node.inputs))


def lift(value):
    """A Variable stays what it is; anything else becomes one, a constant."""
    if isinstance(value, Variable):
        return value
    return Variable(value, Node(v_constant, (), {"name": str(value), "value": value}))


def mul(self, other):
    other = lift(other)
    return Variable(self.tensor * other.tensor, Node(v_mul, (self.node, other.node), {}))


Variable.__mul__ = mul
Variable.__rmul__ = lambda self, other: lift(other) * self

# %%
r = 2 * a * b
print(r.node)
print(torch.equal(interp_node(r.node, env), 2 * env["a"] * env["b"]))
dg.draw(r.node)


# %% [markdown]
# ### Exercise 2.2 · Subtraction, from both sides
#
# Write the two methods, so that `a - b`, `a - 1` and `1 - a` compute and record; the check lends them to `Variable`. A new `Op` needs a rule in `INTERP_RULES`; you can also do without one.

# %% tags=["exercise"]
class MySubtraction:
    def __sub__(self, other):
        raise NotImplementedError

    def __rsub__(self, other):
        raise NotImplementedError


# %% tags=["check"]
nb02.subtraction(MySubtraction)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# In `1 - a` Python calls `a.__rsub__(1)`. Which of the two is subtracted?
#
# </details>
# <details><summary>Hint 2</summary>
#
# `lift(other)` is a Variable, whatever `other` was. For `__sub__`, look at `mul` above, and at what `a + (-1) * b` is.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# v_sub = Op("v_sub")
# INTERP_RULES[v_sub] = operator.sub
#
#
# class MySubtraction:
#     def __sub__(self, other):
#         other = lift(other)
#         return Variable(self.tensor - other.tensor, Node(v_sub, (self.node, other.node), {}))
#
#     def __rsub__(self, other):
#         return lift(other) - self
# ```
#
# </details>
#
# ## Any torch call
#
# One method for each operator, two with the reflected ones; and then the functions. PyTorch lists well over a thousand that can be overridden (`torch.overrides.get_overridable_functions()`), and `torch.relu(a)` is a TypeError: it wants a Tensor, not a Variable.
#
# But before they compute, these functions ask. Where an argument's class has a method `__torch_function__`, PyTorch calls that, with the function, its `args` and its `kwargs`, and returns what it returns. One method is enough.
#
# A node for any call keeps the function and the arguments as the program gave them, with nodes in place of traced values. So it needs no rule to be computed, and constants need no node: they are just there. Traced values may sit inside a list (`torch.cat([a, b])`); `swap` finds them.

# %%
def swap(value, kind, fn):
    """`value` with `fn(x)` in place of each x of that kind, in lists, tuples and dicts too."""
    if isinstance(value, kind):
        return fn(value)
    if isinstance(value, (list, tuple)):
        return type(value)(swap(v, kind, fn) for v in value)
    if isinstance(value, dict):
        return {k: swap(v, kind, fn) for k, v in value.items()}
    return value


class Call(Node):
    def __init__(self, func, args, kwargs):
        self.func, inputs = func, []
        self.call = swap((args, kwargs), TensorVariable, lambda v: v.node)
        swap(self.call, Node, inputs.append)
        super().__init__(Op(f"v_{func.__name__}"), inputs, {})

    def __repr__(self):
        args, kwargs = self.call
        words = [*map(repr, args), *(f"{k}={v!r}" for k, v in kwargs.items())]
        return f"{self.op}({', '.join(words)})"


# %% [markdown]
# Now the value. As a subclass of `torch.Tensor` it has all of a tensor's methods and operators, and each of them asks too. `record` does for every function what `__mul__` did for one: compute on the real tensors, make a node. (It also keeps a list of the calls, `tape`, for which we have no use yet.)

# %%
tape = []


def record(func, args, kwargs):
    real_args, real_kwargs = swap((args, kwargs), TensorVariable, lambda v: v.tensor)
    result = func(*real_args, **real_kwargs)
    if isinstance(result, torch.Tensor):
        tape.append(Call(func, args, kwargs))
        return TensorVariable.of(result, tape[-1])
    return result  # a size, a number, a bool: Python's business


class TensorVariable(torch.Tensor):
    @staticmethod
    def of(tensor, node):
        self = tensor.as_subclass(TensorVariable)
        self.tensor, self.node = tensor, node
        return self

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return record(func, args, kwargs or {})


# %% [markdown]
# To run such a graph: compute a node's inputs, as they are needed, then call its function. *Predict:* which nodes, and where does the 2 go?

# %%
def param(tensor, name):
    return TensorVariable.of(tensor, Node(v_dynamic_param, (), {"name": name, "size": tensor.shape}))


def evaluate(node, env):
    if node.op == v_dynamic_param:
        return env[node.params["name"]]
    args, kwargs = swap(node.call, Node, lambda i: evaluate(i, env))
    return node.func(*args, **kwargs)


def joined(a, b):
    return torch.cat([a, 2 * b.relu()]).sum(dim=0)


r = joined(param(torch.randn(4), "a"), param(torch.randn(4), "b"))
print(r.node)
print("sizes 5 and 1, as the program:", torch.equal(evaluate(r.node, env), joined(**env)))
dg.draw(r.node)

# %% [markdown]
# No list of operations anywhere: `record` learns of a function when the program calls it. The 2 sits in the call's arguments; PyTorch had turned `2 * x` into `x * 2` before it asked, so we don't need `__rmul__` either.
#
# ### Exercise 2.3 · Results that come in pieces
#
# `left, right = a.split(2)`: the result is a tuple, `record` hands it on as it is, and what follows is computed on plain tensors, unseen. Write a `my_record` that traces the pieces too: each a `TensorVariable` whose node takes its piece from the call's.

# %% tags=["exercise"]
def my_record(func, args, kwargs):
    raise NotImplementedError  # the result of func, with a TensorVariable for each tensor in it


# %% tags=["check"]
nb02.records_pieces(my_record)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# `Call(func, args, kwargs)` is a node whose value is the whole tuple. Taking piece 1 out of it is a call too: `operator.getitem(whole, 1)`.
#
# </details>
# <details><summary>Hint 2</summary>
#
# A `torch.Size` is a tuple as well, and `tolist()` returns a list. Their members are numbers, and stay numbers.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def my_record(func, args, kwargs):
#     result = record(func, args, kwargs)
#     if not isinstance(result, (list, tuple)):
#         return result
#     whole = Call(func, args, kwargs)
#     return tuple(
#         TensorVariable.of(part, Call(operator.getitem, (whole, i), {})) if isinstance(part, torch.Tensor) else part
#         for i, part in enumerate(result)
#     )
# ```
#
# </details>
#
# ## What a graph evaluated by need forgets
#
# *Predict:* for `x` all ones, what does the program answer, and what does its graph?

# %%
def in_place(x):
    y = x * 2
    y.add_(10)  # changes y; nobody uses what it returns
    return y + 1


r = in_place(param(torch.ones(3), "x"))
ones = torch.ones(3)
print("program:", in_place(ones).tolist())
print("graph:  ", evaluate(r.node, {"x": ones}).tolist())
dg.draw(r.node)

# %% [markdown]
# A wrong answer, without a word. `add_` was recorded, but its node is nobody's input, so evaluation by need never gets there. The picture shows it: an **in-place** operation acts by changing its input, and a graph of values has no edge for that.
#
# What the program has and the graph lacks is *order*. The list has it: `tape` holds the calls as they came. So that is the trace, and a replay computes all of it.

# %%
def trace(program, **tensors):
    """Run the program once: the calls in program order, and the node of the result."""
    tape.clear()
    result = program(**{name: param(tensor, name) for name, tensor in tensors.items()})
    return list(tape), result.node


def replay(traced, **env):
    calls, output = traced
    values = {}
    for node in calls:
        args, kwargs = swap(node.call, Node, lambda i: values[i] if i in values else env[i.params["name"]])
        values[node] = node.func(*args, **kwargs)
    return values[output]


traced = trace(in_place, x=ones)
print(*traced[0], sep="\n")
print("replay:", replay(traced, x=ones).tolist())

# %% [markdown]
# Right: on real tensors in the old order, in-place operations mean what they meant, and views that share memory do too. An `fx.Graph` is such a list for the same reason, and clean-up must respect it: in torch 2.13, `symbolic_trace(in_place)` followed by `graph.eliminate_dead_code()` and `recompile()` drops the `add_`, and answers 3 again.
#
# (`y[0] = 10` still slips through our fingers: it returns `None`, and `record` keeps calls that return a tensor. The package keeps it.)
#
# ## Calls that see no traced value
#
# *Predict:* `x` has five ones; the trace was made with four.

# %%
def total(x):
    t = torch.zeros(1)
    t += x.sum()
    return t


traced = trace(total, x=torch.ones(4))
print("program:", total(torch.ones(5)).item())
for _ in range(2):
    print("replay: ", replay(traced, x=torch.ones(5)).item())

# %% [markdown]
# Wrong, and differently each time. `torch.zeros` is a **factory function**: no argument is traced, so nobody was asked. The tensor that it made while tracing became a constant, and each replay adds to that same tensor.
#
# There is someone else to ask: a `TorchFunctionMode` is told of all these calls while it is active, traced arguments or none.

# %%
class Recorder(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return record(func, args, kwargs or {})


def trace(program, **tensors):
    """Run the program once: the calls in program order, and the node of the result."""
    variables = {name: param(tensor, name) for name, tensor in tensors.items()}
    tape.clear()
    with Recorder():
        result = program(**variables)
    return list(tape), result.node


traced = trace(total, x=torch.ones(4))
print(*traced[0], sep="\n")
for _ in range(2):
    print("replay:", replay(traced, x=torch.ones(5)).item())


# %% [markdown]
# ## What is lost: questions
#
# In sixty lines, a tracer with no list of operations. Now to what it can't record. *Predict:* the next program is traced at sizes 4 and 4; what does the trace answer at 5 and 1, and what the program?

# %%
def program_2(a, b):
    if a.size()[0] == 4:
        return a + b
    return a * b


five, one = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0]), torch.tensor([10.0])
traced = trace(program_2, a=torch.ones(4), b=torch.ones(4))
print("trace:  ", traced[0])
print("replay: ", replay(traced, a=five, b=one).tolist())
print("program:", program_2(five, one).tolist())


# %% [markdown]
# The trace adds where the program multiplies. `a.size()` returned plain ints, Python compared one with 4 and took a branch; the tracer saw none of that. The branch was the answer to a question about the inputs; the trace keeps the answer and forgets the question.
#
# The question may also be about data.

# %%
def shifted(x):
    if x.sum() > 0:
        return x + 1
    return x * 2


traced = trace(shifted, x=ones)
print(*traced[0], sep="\n")
print("replay: ", replay(traced, x=-ones).tolist())
print("program:", shifted(-ones).tolist())

# %% [markdown]
# Here the question is on the tape, `v_gt`, and a replay computes it again, for nobody. It became a Python bool in `__bool__`, a call that returns no tensor. The inputs have the same size this time, so no condition on sizes can save this trace.
#
# ### Exercise 2.4 · Right here, wrong there
#
# `even_average` is traced at size 4, as `program_2` was. Find a size other than 4 at which the replay is right whatever the data, and a *larger even* one at which it is wrong. Return `(right, wrong)`.

# %%
def even_average(x):
    if x.shape[0] % 2 == 1:
        x = torch.cat([x, torch.zeros(1)])
    return x.sum() / x.shape[0]


# %% tags=["exercise"]
def my_sizes():
    raise NotImplementedError  # two ints


# %% tags=["check"]
nb02.right_and_wrong(my_sizes)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Write down the two calls in the trace. What is the second one's second argument?
#
# </details>
# <details><summary>Hint 2</summary>
#
# The trace sums whatever it gets and divides by 4. For which sizes does the program divide by 4? Do zeros change a sum?
#
# </details>
# <details><summary>Solution</summary>
#
# At size 3 the program takes the other branch, and still computes what the trace does. At size 6 it takes the same branch, and computes something else: the 4 is a constant of the trace. Same branch and same answer are two different things.
#
# ```python
# def my_sizes():
#     return 3, 6
# ```
#
# </details>
#
# ## What PyTorch's own tracers do
#
# `torch.jit.trace` runs on real tensors, as we do; `torch.fx.symbolic_trace` runs on values without a tensor (`Proxy`). *Predict:* what can each make of the `if` in `program_2`?

# %%
with warnings.catch_warnings(record=True, action="always") as caught:
    jit = torch.jit.trace(program_2, (torch.ones(4), torch.ones(4)))
print("jit.trace answers", jit(five, one).tolist())
print("after a TracerWarning:", any(issubclass(w.category, torch.jit.TracerWarning) for w in caught))
try:
    torch.fx.symbolic_trace(program_2)
except torch.fx.proxy.TraceError as error:
    print("symbolic_trace refuses:", error)

# %% [markdown]
# Our wrong answer, with a warning; and a refusal, since the size of a `Proxy` is a `Proxy` again, and so is whether that equals 4. **TorchDynamo** does neither. It doesn't run the function but reads its *bytecode*, the instructions that Python itself would follow, with stand-ins for the tensors. Our tracer sits inside the values and sees only what reaches them. TorchDynamo stands where Python stands, so it sees the `if`, which is a jump instruction: a jump on a size it takes, and notes the condition, a **guard**; at a jump on data it ends the graph, lets Python decide, and begins another (a **graph break**). The price is an interpreter for Python, written in Python.
#
# ## The grown-up version: `dg.trace`
#
# The package's tracer is the one you built: a tensor subclass, `__torch_function__`, a mode, calls in program order. (One difference: its traced tensors are empty on the outside, so that C code which doesn't ask fails instead of computing unseen.) With `analysis="blind"` it adds no guard, whatever a program asks of a tensor. *Predict:* do they agree?

# %%
for program, names in (program_1, "ab"), (program_2, "ab"), (joined, "ab"), (total, "x"), (in_place, "x"):
    tensors = {name: torch.ones(4) for name in names}
    calls, output = trace(program, **tensors)
    t = dg.trace(program, **tensors, analysis="blind")
    same_text = t.graph.output.text(short=True) == str(output)
    same_calls = [str(n.op) for n in t.graph if not n.is_parameter] == [str(call.op) for call in calls]
    print(f"{program.__name__:10} same text: {same_text}, same calls in order: {same_calls}")
dg.draw(dg.trace(in_place, torch.ones(3), analysis="blind"))

# %% [markdown]
# They do, but for the text of `in_place`: in the package, later uses of `y` come after `add_`, so that the graph has the edge which we missed. And what can't be traced rightly is refused, with the line to blame.

# %%
try:
    dg.trace(shifted, torch.ones(3), analysis="blind")
except dg.DataDependentError as error:
    print(f"{type(error).__name__}: {error}")

# %% [markdown]
# A program may run modules. Tensors that it holds itself, such as their weights, are constants.

# %%
model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))


def classify(x):
    return model(x)


dg.draw(dg.trace(classify, torch.randn(5, 3), analysis="blind"))

# %% [markdown]
# The one guard says that the modules must still be in training mode: dropout, for one, depends on it. Inputs may be nested, and a parameter is called what Python would write to reach it.

# %%
def embed(batch, depth=2):
    for _ in range(depth):
        batch = {**batch, "ids": batch["ids"] * batch["mask"]}
    return batch["ids"]


batch = {"ids": torch.randn(4), "mask": torch.ones(4)}
print(dg.trace(embed, batch, analysis="blind"))

# %% [markdown]
# And here is `depth`, on which our own trace of `stack` kept silent: an argument that isn't a tensor gets a guard, and the trace is valid for `depth=2` only.
#
# ## Summary
#
# - A tracer runs the program on values that compute and take notes. Tensor calls become nodes; loops, branches, calls and objects are Python's, and vanish.
# - One protocol, `__torch_function__`, catches every torch call on traced values, and a `TorchFunctionMode` those on none.
# - Order matters as soon as something is changed in place: keep a list, in program order.
# - What the program *asked* (a size, a value, a flag) is lost, and with it the knowledge of where the trace is valid. The answers are then wrong without a word.
#
# What's missing is a guard. That is lesson 3.
#
# ## Where this lives in PyTorch
#
# | here | in PyTorch 2.13 |
# | --- | --- |
# | `Variable`, a value with a node | `torch.fx.Proxy`; in TorchDynamo `torch._dynamo.variables.TensorVariable`, which holds a `proxy` |
# | operators, plain and reflected | `magic_methods`, `reflectable_magic_methods` in `torch.fx.graph`, set on `Proxy` |
# | `__torch_function__`, a mode | `torch.overrides`: `TorchFunctionMode`, `get_overridable_functions` |
# | `trace`, `Call`, the tape | `torch.fx.symbolic_trace`, `torch.fx.Tracer`, `torch.fx.Node`, `torch.fx.Graph` |
# | the same, one level down (aten calls, after autograd) | `make_fx` in `torch.fx.experimental.proxy_tensor`, by `__torch_dispatch__`; of `program_2` it too keeps the addition only, and doesn't warn |
# | a trace of real tensors that only warns | `torch.jit.trace` (deprecated), `torch.jit.TracerWarning` |
# | running the program | `torch._dynamo.symbolic_convert.InstructionTranslator`, one method per bytecode instruction |
# | an `if`, seen | `generic_jump` in `torch/_dynamo/symbolic_convert.py` |
# | the graph as it grows | `torch._dynamo.output_graph.OutputGraph` |
#
# [← previous](01_ir.ipynb) · [map](00_start_here.ipynb) · [next →](03_guard_analysis.ipynb)
