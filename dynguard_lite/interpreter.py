"""Run a recorded graph on tensors: the readable reference for what a trace means."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

import torch

from . import ambient
from .errors import GuardFailure
from .expressions import Bool, Evaluation, Expr, Shape
from .ir import Graph, Node, Op, ancestors, v_constant, v_dynamic_param, v_static_param
from .tree import map_tree

v_add, v_mul = Op("v_add", operator.add), Op("v_mul", operator.mul)

#: How to compute an op that has no function of its own. A reader's own op is added here.
INTERP_RULES: dict[Op, Callable] = {v_add: operator.add, v_mul: operator.mul}


#: What stands in a node's arguments for values that a replay computes.
PARTS = (Node, Expr, Bool, Shape)


def interp_node(node: Node, env: dict[str, Any]) -> Any:
    """The value of `node`, where `env` maps a parameter's name to its tensor.

    Raises GuardFailure (an AssertionError) for a static parameter of another size, and
    KeyError for a parameter that `env` doesn't name or an op that has no rule.
    """
    return run(ancestors(node), node, env)


def run_graph(graph: Graph, env: dict[str, Any]) -> Any:
    """The program's outputs: every node in program order, so that in-place operations
    on real tensors mean what they mean in the program."""
    return run(graph.nodes, graph.output, env, check_static=False)


def run(nodes: Iterable[Node], output: Any, env: dict[str, Any], check_static: bool = True) -> Any:
    """Compute `nodes` in order and return `output` with values in place of nodes.

    A value is dropped after its last use, as Python would drop it. Sizes in the arguments
    are those that the parameters had on entry: the program may resize them.
    """
    shapes = {name: value.shape for name, value in env.items() if isinstance(value, torch.Tensor)}
    evaluate = Evaluation(shapes.__getitem__)

    def value_of(part: Any) -> Any:
        if isinstance(part, Node):
            return values[part]
        return torch.Size(map(value_of, part)) if isinstance(part, Shape) else part if isinstance(part, int) else evaluate(part)

    nodes = list(nodes)
    last_use = {i: n for n in nodes for i in n.inputs}
    kept: set[Node] = set()
    map_tree(kept.add, output, Node)
    values: dict[Node, Any] = {}
    with ambient.Replay() as state:
        for node in nodes:
            if node.op == v_dynamic_param or node.op == v_static_param:
                value = _parameter(node.params["name"], env)
                if check_static and node.op == v_static_param and value.shape != node.params["size"]:
                    raise GuardFailure(f"static shape mismatch: {value.shape} and {node.params['size']}")
            elif node.op == v_constant:
                value = node.params["value"]
            elif node.op == ambient.v_ambient:
                value = state.enter(*node.args)
            else:
                args, kwargs = map_tree(value_of, (node.args, node.kwargs), PARTS)
                value = (node.op.fn or _rule(node.op))(*args, **kwargs)
            values[node] = value
            if getattr(node, "data_sized", False) and isinstance(value, torch.Tensor):
                shapes[node.name] = value.shape
            for i in node.inputs:
                if last_use[i] is node and i not in kept:
                    values.pop(i, None)
        return map_tree(value_of, output, PARTS)


def _parameter(name: str, env: dict[str, Any]) -> Any:
    if name not in env:
        raise KeyError(f"env has no tensor for the parameter {name!r}; it has {', '.join(map(repr, env)) or 'none'}")
    return env[name]


def _rule(op: Op) -> Callable:
    if op not in INTERP_RULES:
        raise KeyError(f"no way to compute {op}: write Op({op.name!r}, function), or add a rule to INTERP_RULES")
    return INTERP_RULES[op]
