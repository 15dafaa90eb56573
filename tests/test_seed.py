"""The system this package grew from: its three programs print, accept and refuse as they did."""

import re

import pytest
import torch

import dynguard_lite as dg


@pytest.fixture
def param():
    torch.manual_seed(0)
    return lambda size, name: dg.Variable.param(torch.randn(size), name)


def original(node):
    """The original's spelling: a static parameter is printed without its name and size."""
    return re.sub(r"v_static_param\([^)]*\)", "v_static_param()", str(node))


def inputs(a, b):
    return {"a": torch.randn(a), "b": torch.randn(b)}


def test_program_1_has_nothing_specific_to_a_shape(param):
    a, b = param(4, "a"), param(4, "b")
    r = a * b
    assert str(r.node) == "v_mul(v_dynamic_param(name=a), v_dynamic_param(name=b))"
    assert str(r.node) == r.node.text(short=True)
    env = inputs(5, 1)
    assert torch.equal(dg.interp_node(r.node, env), env["a"] * env["b"])
    assert torch.equal(r.tensor, a.tensor * b.tensor)


def test_program_2_turns_the_parameter_static_whose_size_it_reads(param):
    a, b = param(4, "a"), param(4, "b")
    r = a + b if a.size()[0] == 4 else a * b
    assert r.node.text(short=True) == "v_add(v_static_param(), v_dynamic_param(name=b))"
    assert str(r.node) == "v_add(v_static_param(name=a, size=[4]), v_dynamic_param(name=b))"
    assert original(r.node) == r.node.text(short=True)
    env = inputs(4, 4)
    assert torch.equal(dg.interp_node(r.node, env), env["a"] + env["b"])
    with pytest.raises(AssertionError) as refused:
        dg.interp_node(r.node, inputs(5, 1))
    assert isinstance(refused.value, dg.GuardFailure)
    assert str(refused.value) == "static shape mismatch: torch.Size([5]) and torch.Size([4])"


def test_program_3_turns_both_static_since_the_size_was_read_on_an_intermediate(param):
    a, b = param(1, "a"), param(1, "b")
    c = a + b
    r = a + c if c.size()[0] == 1 else a * c
    assert r.node.text(short=True) == "v_add(v_static_param(), v_add(v_static_param(), v_static_param()))"
    with pytest.raises(AssertionError, match=re.escape("torch.Size([5]) and torch.Size([1])")):
        dg.interp_node(r.node, inputs(1, 5))


def test_every_look_at_a_size_counts(param):
    looks = [lambda x: x.shape, lambda x: x.size(0), len, lambda x: x.numel(), list, lambda x: torch.numel(x)]
    for look in looks:
        a = param(4, "a")
        look(a + 1)
        assert a.node.op == dg.Op("v_static_param")
    a = param(4, "a")
    _ = (a + 1).dim(), a.dtype, a.mul(2), a.sum()
    assert a.node.op == dg.Op("v_dynamic_param")


def test_the_same_programs_traced_accept_and_refuse_the_same():
    def program_2(a, b):
        return a + b if a.size()[0] == 4 else a * b

    def program_3(a, b):
        c = a + b
        return a + c if c.size()[0] == 1 else a * c

    t = dg.trace(program_2, torch.randn(4), torch.randn(4), analysis="whole_tensor")
    assert t.graph.output.text(short=True) == "v_add(v_static_param(), v_dynamic_param(name=b))"
    assert t.status == {"a": ("static",), "b": ("dynamic",)}
    assert t.accepts(torch.randn(4), torch.randn(1)) and not t.accepts(torch.randn(5), torch.randn(1))
    with pytest.raises(dg.GuardFailure, match=re.escape("static shape mismatch: torch.Size([5]) and torch.Size([4])")):
        t(torch.randn(5), torch.randn(1))
    t = dg.trace(program_3, torch.randn(1), torch.randn(1), analysis="whole_tensor")
    assert t.graph.output.text(short=True) == "v_add(v_static_param(), v_add(v_static_param(), v_static_param()))"
    assert t.status == {"a": ("static",), "b": ("static",)}


def test_a_reader_builds_nodes_and_rules_of_their_own(monkeypatch):
    a = dg.Node(dg.Op("v_dynamic_param"), [], {"name": "a"})
    double = dg.Op("v_double")
    node = dg.Node(dg.Op("v_add"), [a, dg.Node(double, [a], {})], {})
    assert str(node) == "v_add(v_dynamic_param(name=a), v_double(v_dynamic_param(name=a)))"
    assert dg.input_sources(node) == [a]
    with pytest.raises(KeyError):
        dg.interp_node(node, {"a": torch.ones(2)})
    monkeypatch.setitem(dg.INTERP_RULES, double, lambda x: 2 * x)
    assert torch.equal(dg.interp_node(node, {"a": torch.ones(2)}), torch.full((2,), 3.0))


def test_ops_are_compared_by_name_and_nodes_by_identity():
    assert dg.Op("v_add") == dg.Op("v_add", torch.add) and repr(dg.Op("v_add")) == "v_add"
    with pytest.raises(AttributeError):
        dg.Op("v_add").name = "v_mul"
    a = dg.Node(dg.Op("v_dynamic_param"), [], {"name": "a"})
    assert a != dg.Node(dg.Op("v_dynamic_param"), [], {"name": "a"})


@pytest.mark.parametrize(("tensor", "name", "words"), [([1], "a", "tensor must be"), (torch.ones(1), 3, "name must be")])
def test_param_names_the_bad_argument(tensor, name, words):
    with pytest.raises(TypeError, match=words):
        dg.Variable.param(tensor, name)
