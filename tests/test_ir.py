"""The graph and its walks: what they print, and that their cost grows with nodes, not with paths."""

import time

import pytest
import torch

import dynguard_lite as dg
from dynguard_lite.ir import ancestors


def parameter(name="a", size=4):
    return dg.Node(dg.Op("v_dynamic_param"), params={"name": name, "size": torch.Size([size])})


def plus(a, b):
    return dg.Node(dg.Op("v_add"), (a, b))


def chain(x, length):
    """`length` operations, each with a node of its own, all on the last one."""
    for _ in range(length):
        x = x + 1.0
    return x


def test_ancestors_come_inputs_first_and_once():
    a, b = parameter("a"), parameter("b")
    c = plus(a, b)
    d = plus(c, a)
    assert ancestors(d) == [a, b, c, d]
    assert ancestors(a) == [a]
    assert ancestors(d, c, b) == [a, b, c, d]
    assert dg.Graph.of(d).nodes == [a, b, c, d] and dg.Graph.of(d).output is d


def test_input_sources_are_parameters_each_once():
    a, b, unused = parameter("a"), parameter("b"), parameter("unused")
    plus(unused, a)  # a use of `a` elsewhere is no way to reach `unused`
    assert dg.input_sources(plus(plus(a, b), a)) == [a, b]
    assert dg.input_sources(a) == [a]


def test_the_listing_is_a_program():
    def fn(x, w):
        y = torch.cat([x, w], dim=0)
        return {"all": y[:, 1:], "sum": y.sum(-1, keepdim=True)}

    lines = str(dg.trace(fn, torch.randn(2, 3), torch.randn(1, 3)).graph).splitlines()
    assert lines == [
        "x = v_dynamic_param(name=x)",
        "w = v_dynamic_param(name=w)",
        "v2 = v_cat([x, w], dim=0)",
        "v3 = v_getitem(v2, (:, 1:))",
        "v4 = v_sum(v2, -1, keepdim=True)",
        "return {'all': v3, 'sum': v4}",
    ]


def test_a_long_listing_shows_both_ends_and_says_how_much_is_left_out():
    graph = dg.trace(lambda x: chain(x, 1000), torch.zeros(1)).graph
    lines = graph.text(limit=10).splitlines()
    assert lines[0] == "x = v_dynamic_param(name=x)" and lines[-2].startswith("v1000 = v_add(v999")
    assert lines[5] == "... 991 more nodes ..." and len(lines) == 12
    assert len(graph.text(limit=2000).splitlines()) == 1002


def test_a_nested_text_is_cut_at_the_limit():
    x = parameter()
    for _ in range(60):
        x = plus(x, x)  # 2**60 leaves
    text = x.text(limit=500)
    assert 500 < len(text) < 600 and text.endswith("...") and text.startswith("v_add(v_add(v_add(")
    assert str(plus(parameter("a"), parameter("b"))) == "v_add(v_dynamic_param(name=a), v_dynamic_param(name=b))"


def test_values_print_without_addresses():
    node = dg.Node(dg.Op("v_map"), (parameter(),), {"f": lambda v: v, "o": object(), "dtype": torch.int8})
    assert str(node) == "v_map(v_dynamic_param(name=a), f=<lambda>, o=<object object>, dtype=torch.int8)"


# ---- deep and shared graphs ------------------------------------------------------------------


def test_a_chain_of_100_000_operations():
    def fn(x):
        y = chain(x, 100_000)
        return y if y.shape[0] == 2 else x

    t = dg.trace(fn, torch.zeros(2))
    assert len(t.graph) == 100_001 and t.status == {"x": ("static",)}
    assert torch.equal(t(torch.ones(2)), torch.full((2,), 100_001.0))
    assert len(str(t)) < 20_000 and len(str(t.graph.output)) < 3_000
    assert [n.name for n in dg.input_sources(t.graph.output)] == ["x"]
    assert torch.equal(dg.interp_node(t.graph.output, {"x": torch.ones(2)}), torch.full((2,), 100_001.0))


def test_a_value_shared_60_times():
    def fn(x):
        for _ in range(60):
            x = x + x
        return x if x.shape == (2,) else x * 0

    t = dg.trace(fn, torch.ones(2))
    assert len(t.graph) == 61
    assert torch.equal(t(torch.ones(2)), torch.full((2,), 2.0**60))
    assert torch.equal(dg.interp_node(t.graph.output, {"x": torch.ones(2)}), torch.full((2,), 2.0**60))
    assert len(str(t.graph.output)) < 3_000


def test_a_graph_built_by_hand_may_be_as_deep():
    x = dg.Variable.param(torch.ones(1), "x")
    y = chain(x, 20_000)
    assert y.size() == (1,) and str(x.node) == "v_static_param(name=x, size=[1])"
    assert dg.interp_node(y.node, {"x": torch.zeros(1)}).item() == 20_000


@pytest.mark.parametrize("read_each", [False, True], ids=["a chain", "a size read after each op"])
def test_ten_times_the_nodes_costs_about_ten_times_the_time(read_each):
    """A quadratic walk would cost a hundred times; thirty leaves room for a noisy machine."""

    def fn(x, n):
        for _ in range(n):
            x = x + 1.0
            if read_each:
                _ = x.shape
        return x

    def cost(n):
        start = time.process_time()
        t = dg.trace(fn, torch.zeros(1), n)
        str(t), t.status, t.replay(torch.zeros(1), n), dg.input_sources(t.graph.output)
        return time.process_time() - start

    cost(100)
    ratio = min(cost(20_000) for _ in range(2)) / min(cost(2_000) for _ in range(3))
    assert ratio < 30, ratio


# ---- the interpreter -------------------------------------------------------------------------


def test_intermediate_values_are_freed_after_their_last_use():
    alive, most = 0, 0

    class Counted(torch.Tensor):
        def __del__(self):
            nonlocal alive
            alive -= 1

    def step(x):
        nonlocal alive, most
        alive += 1
        most = max(most, alive)
        return (x.as_subclass(torch.Tensor) + 1).as_subclass(Counted)

    node = parameter("x")
    for _ in range(50):
        node = dg.Node(dg.Op("v_step", step), (node,))
    dg.interp_node(node, {"x": torch.zeros(1)})
    assert most <= 3, most


def test_what_is_missing_is_named():
    node = plus(parameter("a"), parameter("b"))
    with pytest.raises(KeyError, match="no tensor for the parameter 'b'; it has 'a'"):
        dg.interp_node(node, {"a": torch.ones(1)})
    with pytest.raises(KeyError, match="no way to compute v_unheard_of"):
        dg.interp_node(dg.Node(dg.Op("v_unheard_of"), (node,)), {"a": torch.ones(1), "b": torch.ones(1)})
