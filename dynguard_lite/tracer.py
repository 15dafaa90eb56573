"""Record what a program does with tensors, while it runs on real ones.

A traced value is a `Variable`: a tensor subclass that holds the real tensor and the node
which computed it. PyTorch hands every call that sees one to `__torch_function__`; while
`trace` runs, a `TorchFunctionMode` catches the calls that see none too (`torch.zeros(3)`,
a product of two weights). So there is no list of supported operations.

Why a subclass: PyTorch's C code believes `isinstance(x, torch.Tensor)`, and reads memory
that a look-alike doesn't have (`torch.arange(x)` crashes the process). The subclass is an
empty tensor on the meta device, so that code which bypasses dispatch fails, and loudly.
"""

from __future__ import annotations

import functools
import math
import operator
from collections import defaultdict
from collections.abc import Callable
from types import CodeType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from . import ambient, watch
from .analyses import RUNGS
from .errors import DataDependentError, TraceError, UnbackedSizeError
from .expressions import LONGEST, Bool, Expr, Shape, number, relation, symbols, unbacked
from .facts import Facts
from .formulas import views
from .guards import Guard, equal
from .ir import Graph, Node, Op, input_sources, v_constant, v_dynamic_param, v_static_param
from .looks import COUNT_FROM_SIZE, RANK_FROM_SIZE, function_name, is_data_dependent, look_kind, mutates
from .shapes import Shapes
from .sizes import Size, Sizes, SymBool, SymInt, items
from .source import Cause, here
from .tree import children, leaves, map_tree, rebuild


def _placeholders() -> dict[tuple[bool, bool], torch.Tensor]:
    """What a Variable is to C code, by (rank is 0, dtype is integral). PyTorch's argument parser lets a tensor
    of rank 0 stand for a number (`torch.arange(n)`), and looks at no more than this before it dispatches."""
    shapes = {True: (), False: (0,)}
    dtypes = {True: torch.int64, False: torch.float32}
    return {(r, i): torch.empty(shapes[r], dtype=dtypes[i], device="meta") for r in shapes for i in dtypes}


_PLACEHOLDERS = _placeholders()
_INTEGRAL = {torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64}


class Variable(torch.Tensor):
    """A traced value: the real `tensor` and the `node` that computed it.

    Made by `trace`, or by hand as in the original: `Variable.param(tensor, "a")` is a
    dynamic parameter; operations on it compute and record, and `.size()` (any look at a
    size) turns every parameter it came from static.
    """

    tensor: torch.Tensor
    node: Node
    tracer: Tracer

    def __new__(cls, tensor: torch.Tensor, node: Node, tracer: Tracer | None = None) -> Variable:
        self = _PLACEHOLDERS[tensor.dim() == 0, tensor.dtype in _INTEGRAL].as_subclass(cls)
        self.tensor, self.node, self.tracer = tensor, node, tracer or BY_HAND
        return self

    def __init__(self, *args: Any):
        """Nothing is left to do, and `torch.Tensor`'s own would not know the arguments."""

    @staticmethod
    def param(tensor: torch.Tensor, name: str) -> Variable:
        """A dynamic parameter of a graph that is built by hand. TypeError for anything but a tensor and a name."""
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"Variable.param: tensor must be a torch.Tensor, got {type(tensor).__name__}")
        if not isinstance(name, str):
            raise TypeError(f"Variable.param: name must be a str, got {type(name).__name__}")
        return Variable(tensor, parameter(tensor, name))

    @classmethod
    def __torch_function__(cls, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        return BY_HAND.call(func, args, kwargs or {})  # inside `trace`, the tracer's mode comes first


def parameter(tensor: torch.Tensor, name: str) -> Node:
    node = Node(v_dynamic_param, params={"name": name, "size": tensor.shape})
    node.dtype = tensor.dtype
    return node


class Tracer(TorchFunctionMode):
    """Records calls into `graph`, and what they commit us to into `guards`.

    Without a graph, nodes stand alone and parameters turn static with no guard: the
    original system, where a program is built by hand from `Variable.param`.
    `names` gives the names of tensors and modules that the program holds itself, by
    identity; `start` is where the program is defined, `stop` the code that runs it.
    """

    def __init__(self, rung: str, graph: Graph | None = None, names: dict[int, str] | None = None,
                 start: Cause | None = None, stop: CodeType | None = None):  # fmt: skip
        super().__init__()
        self.analysis = RUNGS[rung]
        self.graph, self.names, self.start, self.stop = graph, names or {}, start, stop
        self.guards: dict[str, Guard] = {}
        self.hidden: dict[str, Guard] = {}  # what every trace needs and no listing repeats: ranks, an index's dtype
        self.facts = Facts()
        self.sizes = self.shapes = None
        if self.analysis.remembers:
            self.sizes = Sizes(self.analysis.symbolic, self._decide, self._integer, self.facts.settled, self._check,
                               lambda: watch.current() is self)  # fmt: skip
            self.shapes = Shapes(self.sizes)
        self.seen: dict[str, set[Node]] = defaultdict(set)  # nodes that a walk of each kind has visited
        self.tensors: dict[Node, torch.Tensor] = {}  # of parameters
        self._size_of: dict[str, torch.Size] = {}
        self.without_grad: dict[Node, bool] = {}  # of leaves: there was no gradient when the trace began
        self.constants: dict[int, Node] = {}
        self.running: list[torch.nn.Module] = []
        self.called: dict[torch.nn.Module, None] = {}
        self.swallowed: tuple[Exception, Cause] | None = None  # the last error that an operation raised
        self.state = self.entry_state = ambient.read()
        self.finished = False  # the program has returned
        self.closed = False  # so has the tracer: the guards are what they are

    def parameter(self, name: str, tensor: torch.Tensor) -> Variable:
        node = self.graph.append(parameter(tensor, name))
        node.cause = self.start
        self.tensors[node] = tensor
        self._size_of[name] = tensor.shape
        if tensor.is_leaf:
            self.without_grad[node] = tensor.grad is None
        self.analysis.begin(self, node)
        return Variable(tensor, node, self)

    def here(self) -> Cause:
        return here(self.stop) or self.start

    # -- calls -------------------------------------------------------------------------------

    def __torch_function__(self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        return self.call(func, args, kwargs or {})

    def call(self, func: Callable, args: tuple, kwargs: dict) -> Any:
        """Compute one torch call on the real tensors; tell the analysis, or record it."""
        values: list[torch.Tensor] = []

        def real(value: Any) -> Any:
            if isinstance(value, torch.Tensor):
                values.append(value)
                return self._real(value)
            return hint(value)

        name = function_name(func)
        kind = look_kind(func, args)
        if name.startswith("sym_"):  # PyTorch's functions on sizes take ours as they are
            return sum(leaves(args)) if name == "sym_sum" else func(*args, **kwargs)
        if kind is not None or not self.analysis.symbolic:
            args, kwargs = map_tree(_commit, (args, kwargs), SIZES)
        real_args, real_kwargs = map_tree(real, (args, kwargs), (torch.Tensor, *SIZES))
        if kind is not None:
            result = self._run(func, real_args, real_kwargs)
            if kind == "size" and self.sizes is not None and (node := self._traced(values[0])) is not None:
                return self._sizes_of(node, name, values, args[1:], kwargs, result)
            return self._look(kind, name, values, result, exact=len(args) == 1 and not kwargs)
        if name == "__iter__":
            self._run(func, real_args, real_kwargs)  # rank 0 raises
            return iter(self.call(torch.Tensor.unbind, args, kwargs))
        self._note_ambient()
        result = self._run(func, real_args, real_kwargs)
        if name in _QUIET:
            return result
        if name == "grad" and values:
            self._gradient_read(values[0], result)
        parts = [leaf for leaf in leaves(result) if leaf is not None]
        if not any(isinstance(leaf, torch.Tensor) for leaf in parts):
            if not values and name not in _EFFECTS:
                map_tree(_commit, (args, kwargs), SIZES)
                return result  # a setting, a dtype: no tensor is involved
            if parts and values:
                self._refuse_data(name, parts[0])
        self._learn_structure(name, values, args, kwargs)
        node = self._record(func, name, args, kwargs, values, result)
        node.data_sized = is_data_dependent(name, real_args, real_kwargs)
        node.unbacked |= node.data_sized
        if node.mutates and (result is None or name == "__setitem__"):
            self._rebind(args[0], node)
            return None
        return self._wrap(result, node, {id(self._real(v)): v for v in values} if node.mutates else {})

    def _run(self, func: Callable, args: tuple, kwargs: dict) -> Any:
        try:
            with watch.paused():
                return func(*args, **kwargs)
        except (RuntimeError, ValueError, IndexError) as error:
            self.swallowed = (error, self.here())
            raise

    def _learn_structure(self, name: str, values: list[torch.Tensor], args: tuple, kwargs: dict) -> None:
        """A program sees how many results `x.split(2)` has: that is a look at a size. And which dtype an index has
        decides whether it selects by place or by data."""
        if name == "tensor_split" and any(self._real(v).dim() == 0 for v in values[1:]):
            raise DataDependentError("the number of pieces depends on a tensor's data", "give it as an int", self.here())
        if name in COUNT_FROM_SIZE:
            traced = [node for v in values if (node := self._traced(v)) is not None]
            for node in traced:
                if self.sizes is None:
                    self._size_read(node, name)
                else:
                    self.shape_of(node)
            if self.sizes is not None and traced:
                given, named = self.shapes.arguments(*self.parts(args, kwargs))
                with self.sizes.in_formula():
                    count = views.pieces(name, *given, **named)
                if count is not None:
                    self.sizes.integer(count)
        if name in ("__getitem__", "__setitem__") and self.analysis.guards_looks:
            for index in leaves(args[1]):
                for source in input_sources(index.node, self.seen["index"]) if type(index) is Variable else ():
                    self._guard_metadata("dtype", source, index.node, self.hidden)

    def _record(self, func: Callable, name: str, args: tuple, kwargs: dict, values: list, result: Any) -> Node:
        node_args, node_kwargs = self.parts(args, kwargs)
        changes = mutates(name, kwargs)
        setter = changes and result is None
        node = Node(_op(functools.partial(_then_first, func) if setter else func, name, changes),
                    dict.fromkeys(map(self._node, values)), kwargs, args=node_args, kwargs=node_kwargs)  # fmt: skip
        node.mutates = changes
        node.unbacked = any(i.unbacked for i in node.inputs)
        node.rank_varies = name in RANK_FROM_SIZE or any(i.rank_varies for i in node.inputs)
        return self._append(node)

    def _append(self, node: Node) -> Node:
        if self.graph is not None:
            node.cause = self.here()
            if self.running:
                node.scope = self.names.get(id(self.running[-1]), type(self.running[-1]).__name__)
            self.graph.append(node)
        return node

    # -- values and nodes ----------------------------------------------------------------------

    def _wrap(self, value: Any, node: Node, mutated: dict[int, torch.Tensor]) -> Any:
        """A result as the program gets it: each tensor a Variable, each part of a structure with a node of its own.

        `mutated`: the real inputs of an in-place operation, by identity. It returns its
        input, so the program gets back the very value that it passed.
        """
        if isinstance(value, torch.Tensor):
            if id(value) in mutated:
                return self._rebind(mutated[id(value)], node)
            node.shape, node.dtype = value.shape, value.dtype
            node.unbacked = node.unbacked and value.dim() > 0  # no size, so none that depends on data
            return Variable(value, node, self)
        parts = children(value)
        if parts is None:
            return value
        new = []
        for key, (_, part) in zip(value if isinstance(value, dict) else range(len(parts)), parts, strict=True):
            if part is not None:
                item = Node(Op("v_getitem", operator.getitem), (node,), args=(node, key), kwargs={})
                item.unbacked, item.data_sized, item.rank_varies = node.unbacked, node.data_sized, node.rank_varies
                part = self._wrap(part, self._append(item), mutated)
            new.append(part)
        return rebuild(value, new)

    def _rebind(self, value: torch.Tensor, node: Node) -> torch.Tensor:
        """`node` changed `value` in place: later uses of it come after `node`."""
        real = self._real(value)
        node.shape, node.dtype = real.shape, real.dtype
        if type(value) is Variable:
            value.node = node
        else:
            self.constants[id(value)] = node
        return value

    def _real(self, value: torch.Tensor) -> torch.Tensor:
        if type(value) is not Variable:
            return value
        if value.tracer is not self:
            if not value.tracer.finished:
                raise self._bypassed()
            raise TraceError(
                "a traced value is used outside the trace that made it",
                "return it from the program: what a program stores (in an attribute, a global, a list of the "
                "caller's) it stores only while it is traced", self.here())  # fmt: skip
        return value.tensor

    def _bypassed(self) -> TraceError:
        return TraceError("code that bypasses PyTorch's dispatch to Python computed with a traced value",
                          "leave torch.func transforms, torch.compile and legacy constructors (torch.FloatTensor) "
                          "out of the traced program", self.here())  # fmt: skip

    def _node(self, value: torch.Tensor) -> Node:
        if type(value) is Variable:
            return value.node
        node = self.constants.get(id(value))
        if node is None:
            if value.is_meta and value.shape in ((), (0,)):
                raise self._bypassed()
            name = self.names.get(id(value), f"const_{len(self.constants)}")
            node = self.constants[id(value)] = Node(v_constant, params={"name": name, "value": value}, kwargs={})
            node.shape, node.dtype = value.shape, value.dtype
            self._append(node)
        return node

    def _traced(self, value: torch.Tensor) -> Node | None:
        """The node of a traced value, or of a constant that the program has changed."""
        node = value.node if type(value) is Variable else self.constants.get(id(value))
        return None if node is not None and node.op == v_constant else node

    def parts(self, *values: Any) -> Any:
        """Arguments or outputs as the graph keeps them: nodes in place of tensors, expressions in place of sizes."""
        return map_tree(self._part, values, (torch.Tensor, *SIZES))

    def _part(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self._node(value)
        if not self.analysis.symbolic:
            return _commit(value)
        if type(value) is Size:
            return Shape(map(self._part, items(value)))
        inside = value.condition if type(value) is SymBool else value.expr if type(value) is SymInt else None
        return value if inside is None else inside if inside.known else _commit(value)

    # -- sizes -----------------------------------------------------------------------------------

    def shape_of(self, node: Node) -> Any:
        """The shape of a node's value, by the formulas. It follows from the ranks of all parameters behind it, too."""
        for source in input_sources(node, self.seen["shape"]):
            self._guard_metadata("rank", source, node, self.hidden)
        return self.shapes.of(node)

    def _sizes_of(self, node: Node, name: str, values: list, args: tuple, kwargs: dict, result: Any) -> Any:
        """What a program gets that looks at sizes, under an analysis that remembers where they come from."""
        shape = self.shape_of(node)
        if name in ("shape", "size"):
            dim = args[0] if args else kwargs.get("dim")
            return shape if dim is None else shape[dim]
        if name == "__len__":
            return shape[0]
        if name in ("numel", "nelement"):
            return math.prod(shape)
        for other in filter(None, map(self._traced, values)):
            list(map(int, self.shape_of(other)))
        self._look("dtype", name, values, result, exact=False)  # nbytes
        return result

    def pin(self, pairs: list[tuple[str, int]], why: str) -> None:
        """Guard the sizes of these dimensions of parameters."""
        for name, dim in pairs:
            n = self._size_of[name][dim]
            self.fact(relation("==", self.sizes.space.size(name, dim, n), number(n)), why)

    def fact(self, condition: Bool, why: str) -> None:
        """Guard a condition that holds, unless it follows from what is guarded already."""
        if self.graph is not None and not self.closed and not self.facts.settled(condition):
            if (node := self.shapes.computing) is not None:
                why = f"the shape of {node.name} ({node.op}) depends on it"
            self.facts.add(condition, (self.here(), why))

    def _check(self, condition: Bool) -> bool:
        """`torch._check`: a guard, or, on a size that depends on data, a check when the replay gets there."""
        if not unbacked(condition) or not condition.hint:
            return self._decide(condition) if not unbacked(condition) else False
        node = Node(Op("v_check", _require), args=(condition, str(condition)), kwargs={})
        node.mutates = True
        self._append(node)
        self.facts.add(condition, (self.here(), "torch._check"))
        return True

    def _refuse_decision(self, value: Expr | Bool) -> None:
        if unbacked(value) and not self.closed:
            raise UnbackedSizeError(
                f"the program decides on a size that depends on data: {value}",
                "keep it inside tensor operations and sizes, state what you know with torch._check, choose an operation "
                "whose size doesn't depend on data (a mask instead of a selection), or pass the size in as an argument",
                self.here())  # fmt: skip

    def _decide(self, condition: Bool) -> bool:
        if (settled := self.facts.settled(condition)) is not None and settled == condition.hint:
            return condition.hint
        self._refuse_decision(condition)
        if not condition.known or condition.weight > LONGEST:
            self.pin(symbols(condition), "a condition that no formula tells follows from it")
        else:
            self.analysis.decide(self, condition)
        return condition.hint

    def _integer(self, expr: Expr) -> int:
        self._refuse_decision(expr)
        if not expr.known or expr.weight > LONGEST:
            self.pin(symbols(expr), "a size that no formula tells follows from it")
        else:
            self.analysis.integer(self, expr)
        return expr.hint

    # -- looks -----------------------------------------------------------------------------------

    def _look(self, kind: str, name: str, values: list[torch.Tensor], result: Any, exact: bool) -> Any:
        """The program reads `result`, metadata of `values`; `exact`: by an attribute or a method without arguments."""
        for value in values:
            if type(value) is Variable and kind == "size":
                self._size_read(value.node, name)
            elif type(value) is Variable and self.analysis.guards_looks:
                self._metadata_read(kind, value.node, name, result if exact else None)
        return result

    def _size_read(self, node: Node, name: str) -> None:
        """Something follows from the sizes of `node`, in a way that isn't told apart by dimension."""
        self._refuse_unbacked(node, name)
        if self.sizes is None:
            self.analysis.size_read(self, node)
            return
        sources = input_sources(node)
        self.pin([(s.name, d) for s in sources for d in range(len(s.params["size"]))], _why("strides", node, node))

    def _refuse_unbacked(self, node: Node, name: str) -> None:
        if node.unbacked:
            raise UnbackedSizeError(
                f"the program looks at a size that depends on data (`{name}` of {node.name or 'a value'}, {node.op})",
                "keep the size inside tensor operations, choose one whose size doesn't depend on data (a mask "
                "instead of a selection), or pass the size in as an argument", self.here())  # fmt: skip

    def make_static(self, parameter: Node, read: Node | None) -> None:
        """Guard the parameter's whole shape, since the program read the size of `read` (None: on entry)."""
        parameter.op = v_static_param
        if self.graph is not None:
            why = _why("size", parameter, read) if read else "this analysis guards every size from the start"
            cause = self.here() if read else self.start
            name = parameter.name
            size = parameter.params["size"]
            self.guard(equal(f"{name}.shape", size, "shape", cause, why, (name,), tuple((name, d) for d in range(len(size)))))

    def _metadata_read(self, kind: str, node: Node, name: str, result: Any) -> None:
        if node in self.tensors and isinstance(result, _WRITABLE):  # of a parameter, the very look is guarded
            call = "()" if callable(getattr(torch.Tensor, name)) else ""
            why = _why(kind, node, node)
            self.guard(equal(f"{node.name}.{name}{call}", result, kind, self.here(), why, (node.name,)))
            return
        sources = input_sources(node, self.seen[kind])
        if kind == "requires_grad" and self.graph is not None:
            sources = self.graph.parameters  # writing through a view reaches past the sources
            self.look_ambient("grad", "whether a result requires grad was looked at")
        for source in sources:
            self._guard_metadata(kind, source, node)
        if kind == "rank" and node.rank_varies and self.sizes is not None:
            self.shape_of(node)  # a formula decides which sizes of a squeeze are 1
        elif kind == "strides" or (kind == "rank" and node.rank_varies):
            self._size_read(node, name)  # strides, and the rank of a squeeze, follow from sizes
        if kind == "dtype":  # type promotion asks for the category, whether the rank is 0, and the defaults
            for source in input_sources(node, self.seen["rank"]):
                self._guard_metadata("rank", source, node)
            self.look_ambient("default_dtype", "a dtype that type promotion computed was looked at")
            self.look_ambient("autocast", "a dtype that autocast may decide was looked at")

    def _gradient_read(self, value: torch.Tensor, result: torch.Tensor | None) -> None:
        """Whether a parameter has a gradient decides what the program does, unless the program itself changed it."""
        node = value.node if type(value) is Variable else None
        if node in self.without_grad and self.without_grad[node] == (result is None) and self.analysis.guards_looks:
            subject, why = f"({node.name}.grad is None)", "its gradient was looked at"
            self.guard(equal(subject, result is None, "gradient", self.here(), why, (node.name,)))

    def _guard_metadata(self, kind: str, source: Node, read: Node, hidden: dict[str, Guard] | None = None) -> None:
        """Guard what a parameter is, since `read` was looked at; `hidden`: among the guards that aren't listed."""
        tensor = self.tensors.get(source)
        for attribute in _CANONICAL[kind] if tensor is not None else ():
            if tensor.layout != torch.strided and attribute != "layout" and kind == "strides":
                continue  # a sparse tensor has no strides
            name = attribute.removesuffix("()")
            value = getattr(tensor, name)
            value = value() if attribute.endswith("()") else value
            why = _why(kind, source, read)
            guard = equal(f"{source.name}.{attribute}", value, kind, self.here(), why, (source.name,))
            if hidden is None:
                self.guard(guard)
            else:
                hidden.setdefault(guard.code, guard)

    def guard(self, guard: Guard) -> None:
        """Keep a guard; of the same condition, the first cause."""
        if self.graph is not None:
            self.guards.setdefault(guard.code, guard)

    def _refuse_data(self, name: str, value: Any) -> None:
        plain = name.strip("_")
        if plain == "bool":
            raise DataDependentError(
                "the program branches on a tensor's data", "compute both sides and choose with torch.where, or take "
                "the decision outside the traced program", self.here())  # fmt: skip
        raise DataDependentError(
            f"`{plain}` turns a tensor's data into a Python value ({type(value).__name__})",
            "stay with tensor operations (a tensor of rank 0 works where a number does), or pass the value in as an "
            "argument, which is guarded", self.here())  # fmt: skip

    # -- ambient state, modules ------------------------------------------------------------------

    def _note_ambient(self) -> None:
        """Record a change of the ambient state since the last operation, as a node in program order."""
        if self.graph is None or (state := ambient.read()) == self.state:
            return
        for part in ambient.Ambient._fields:
            if getattr(state, part) != getattr(self.state, part):
                self.look_ambient(part, "the program changes it, then sets it back to this")
        self.state = state
        node = Node(ambient.v_ambient, args=(state,), kwargs={})
        node.mutates = True
        self._append(node)

    def look_ambient(self, part: str, why: str) -> None:
        if self.analysis.guards_looks:
            for subject, value in ambient.guarded(part, self.entry_state):
                self.guard(equal(subject, value, "ambient", self.here(), why))

    def enter_module(self, module: torch.nn.Module) -> None:
        self.running.append(module)
        self.called.setdefault(module)

    def leave_module(self, module: torch.nn.Module) -> None:
        while self.running and self.running.pop() is not module:
            pass  # a module whose forward raised left no sign


SIZES = (torch.SymInt, torch.SymBool, Size)


def hint(value: Any) -> Any:
    """The plain value that a size, a condition on sizes or a shape has while tracing."""
    if type(value) is Size:
        return torch.Size(map(hint, items(value)))
    return value.hint if type(value) in (SymInt, SymBool) else value


def _commit(value: Any) -> Any:
    """The same, with a guard that makes it so."""
    if type(value) is Size:
        return torch.Size(map(int, items(value)))
    return int(value) if type(value) is SymInt else bool(value) if type(value) is SymBool else value


_QUIET = {"__repr__", "__str__", "__format__", "__dir__"}  # printing a value while tracing decides nothing
_EFFECTS = {"manual_seed", "set_rng_state"}
_WRITABLE = (bool, int, str, tuple, torch.dtype, torch.device, torch.layout)
_CANONICAL = {
    "rank": ("dim()",),
    "dtype": ("dtype",),
    "device": ("device",),
    "requires_grad": ("requires_grad",),
    "layout": ("layout",),
    "nesting": ("is_nested",),
    "conjugation": ("is_conj()", "is_neg()"),
    "strides": ("layout", "stride()", "storage_offset()"),
}
_PLAIN = {"radd": "add", "rmul": "mul", "truediv": "div", "rtruediv": "rdiv", "itruediv": "idiv"}


def _op(fn: Callable, name: str, changes: bool) -> Op:
    """`v_matmul` for torch.matmul, Tensor.matmul and `@`. A reflected operator keeps its r unless it commutes."""
    if name.startswith("__"):
        name = _PLAIN.get(name.strip("_"), name.strip("_"))
        name = f"{name[1:]}_" if changes and name.startswith("i") else name
    return Op(f"v_{name}", fn)


def _require(holds: bool, condition: str) -> None:
    if not holds:
        raise RuntimeError(f"a check of the program failed: {condition}")


def _then_first(fn: Callable, *args: Any, **kwargs: Any) -> Any:
    """Call a setter, which returns nothing, and hand on what it changed, as in-place operations do."""
    fn(*args, **kwargs)
    return args[0]


def _why(kind: str, parameter: Node, read: Node) -> str:
    if read is parameter:
        return f"its {kind} was looked at"
    return f"the {kind} of {read.name} ({read.op}) was looked at, and {parameter.name} flows into it"


#: Records the nodes of programs that are built by hand, with the original's rule.
BY_HAND = Tracer("whole_tensor")
