"""The real TorchDynamo through this package's types."""

import contextlib
import copy
import io
import warnings

import pytest
import torch
from torch import nn

import dynguard_lite as dg
from dynguard_lite.precision import same


def branch(a, b):
    if a.shape[0] > 3:
        return a + b
    return a * b


def four():
    return torch.randn(4), torch.randn(4)


def test_symbolic_sizes_statuses_and_guards_with_their_lines():
    t = dg.dynamo.trace(branch, *four(), dynamic=True)
    assert t.status == {"a": ("constrained",), "b": ("constrained",)}
    on_sizes = {g.code: g for g in t.guards if g.kind in ("size", "expression")}
    assert {"b.shape[0] == a.shape[0]", "4 <= a.shape[0]"} <= set(on_sizes)
    assert on_sizes["4 <= a.shape[0]"].cause.text == "if a.shape[0] > 3:"
    assert [str(n.op) for n in t.graph] == ["v_dynamic_param", "v_dynamic_param", "v_add"]
    assert len(t.guards) > len(on_sizes)  # types, aliasing, global state: what else it guards


@pytest.mark.parametrize("dynamic", [None, True, False])
def test_accepts_asks_the_guard_manager_itself(dynamic):
    """Oracle: does a call recompile? The frames that torch.compile's own counter counts."""
    t = dg.dynamo.trace(branch, *four(), dynamic=dynamic)
    for n, m in [(4, 4), (5, 5), (9, 9), (2, 2), (5, 1), (1, 5), (1, 1)]:
        a, b = torch.randn(n), torch.randn(m)
        try:
            got = t.replay(a, b)
        except RuntimeError:  # it would recompile
            assert not t.accepts(a, b)
        else:
            assert t.accepts(a, b) and torch.equal(got, branch(a, b))
    assert t.why(*four()) == "" and "a" in t.why(torch.randn(2), torch.randn(2))


def test_automatic_dynamic_after_a_second_shape():
    t = dg.dynamo.trace(branch, *four(), also=((torch.randn(6), torch.randn(6)),))
    assert len(t.entries) == 2 and t.accepts(*four()) and t.accepts(torch.randn(9), torch.randn(9))
    assert t.status == {"a": ("constrained",), "b": ("constrained",)}


def test_modules_and_nested_inputs():
    net = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
    t = dg.dynamo.trace(net, torch.randn(4, 3), dynamic=True)
    assert t.status == {"input": ("constrained", "static")} and t.accepts(torch.randn(7, 3)) and not t.accepts(torch.randn(7, 4))
    assert [n.name for n in t.graph if str(n.op) == "v_constant"] == ["0.weight", "0.bias"]
    nested = dg.dynamo.trace(lambda batch: batch["x"] @ batch["ws"][0], {"x": torch.randn(3, 4), "ws": [torch.randn(4, 5)]}, dynamic=True)
    assert set(nested.status) == {"batch['x']", "batch['ws'][0]"}
    assert nested.accepts({"x": torch.randn(6, 7), "ws": [torch.randn(7, 8)]})

    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(2, 2)

        def forward(self, x, scale=2.0):
            return self.inner(x) * scale

    own = dg.dynamo.trace(Own(), torch.randn(4, 2), dynamic=True)
    assert own.accepts(torch.randn(5, 2)) and not own.accepts(torch.randn(5, 3))
    assert [n.name for n in own.graph if str(n.op) == "v_constant"] == ["inner.weight", "inner.bias"]


def test_marks_are_honoured():
    x = torch.randn(4, 3)
    torch._dynamo.mark_dynamic(x, 0)
    assert dg.dynamo.trace(lambda x: x * 2, x).status["x"][1] == "static"
    assert dg.dynamo.trace(lambda x: x * 2, x).status["x"][0] != "static"
    y = torch.randn(4, 3)
    torch._dynamo.mark_static(y, 1)
    assert dg.dynamo.trace(lambda y: y * 2, y, dynamic=True).status["y"][1] == "static"


def test_a_graph_break_makes_two_graphs_and_gives_its_reason():
    def broken(x):
        y = x * 2
        torch._dynamo.graph_break()
        return y + 1

    t = dg.dynamo.trace(broken, torch.randn(4), dynamic=True)
    assert len(t.graphs) == 2 and len(t.breaks) == 1 and "graph_break" in t.breaks[0]
    assert "graph break" in dg.draw(t).source and torch.equal(t.replay(torch.ones(6)), torch.full((6,), 3.0))


def test_nothing_leaks_into_the_process(capfd):
    compiled = torch.compile(branch, backend="eager")
    compiled(*four())
    before = copy.deepcopy(dict(torch._dynamo.utils.counters))
    settings = {k: getattr(torch._dynamo.config, k) for k in ("recompile_limit", "automatic_dynamic_shapes", "specialize_int")}
    for n in (4, 6, 8):
        dg.dynamo.trace(branch, torch.randn(n), torch.randn(n))
    assert {k: v for k, v in torch._dynamo.utils.counters.items() if v} == {k: v for k, v in before.items() if v}
    assert all(getattr(torch._dynamo.config, k) == v for k, v in settings.items())
    with torch.compiler.set_stance("fail_on_recompile"):
        compiled(*four())  # the caller's own is still compiled ...
        with pytest.raises(RuntimeError):
            compiled(torch.randn(6), torch.randn(6))  # ... for the size that the caller gave it
    quiet = dg.dynamo.trace(lambda x: x.sum() > 0 and x, torch.ones(3))
    assert quiet.breaks
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dg.dynamo.trace(branch, *four(), dynamic=True)
    out, err = capfd.readouterr()
    assert out == "" and err == ""


def test_pictures_use_the_same_colours_and_words():
    t = dg.dynamo.trace(branch, *four(), dynamic=True)
    picture = dg.draw(t, torch.randn(2), torch.randn(2))
    assert "s0 is a.shape[0]" in picture.source and "FAIL" in picture.source and "v_add" in picture.text
    assert dg.draw(t).source == dg.draw(dg.dynamo.trace(branch, *four(), dynamic=True)).source  # no name counts on
    assert "PASS" in dg.draw(t, *four()).source


def test_fx_graphs_and_exported_programs_are_drawn():
    net = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
    exported = torch.export.export(net, (torch.randn(4, 3),), dynamic_shapes=({0: torch.export.Dim("b")},))
    picture = dg.draw(exported)
    assert "0.weight" in picture.source and ">s0<" in picture.source and ">=3<" in picture.source
    plain = torch.fx.symbolic_trace(net)
    assert "v_0" in dg.draw(plain).text or "linear" in dg.draw(plain).text.lower()


def test_measured_on_the_same_grid_with_the_same_yardsticks():
    r = dg.measure(lambda a, b: a * b, *four(), dynamo=True)
    assert [row for row in r if row.startswith("dynamo")] == ["dynamo True", "dynamo False", "dynamo automatic"]
    assert r["dynamo False"].accepted == {((4,), (4,))} and r["dynamo True"].sound
    assert ((4,), (4,)) in r["dynamo True"].accepted and r["dynamo True"].accepted < r["symbolic"].accepted


def test_errors_are_clear(monkeypatch):
    with pytest.raises(TypeError, match="fn must be callable, got int"):
        dg.dynamo.trace(3)
    with pytest.raises(ValueError, match="dynamic must be None, True or False, got 'yes'"):
        dg.dynamo.trace(branch, *four(), dynamic="yes")
    with pytest.raises(dg.TraceError, match="compiled nothing"):
        dg.dynamo.trace(lambda x: x, torch.ones(2))
    monkeypatch.delattr(torch._dynamo.eval_frame, "_debug_get_cache_entry_list")
    with pytest.raises(dg.dynamo.MovedError, match=r"_debug_get_cache_entry_list.*tried: 2\.9\.1, 2\.13\.0"):
        dg.dynamo.trace(branch, *four())


def test_the_programs_own_errors_pass_through():
    def fails(x):
        raise KeyError("mine")

    with pytest.raises((KeyError, dg.TraceError)):
        dg.dynamo.trace(fails, torch.ones(2))
    t = dg.dynamo.trace(lambda a, b: a @ b, torch.randn(2, 3), torch.randn(3, 4), dynamic=True)
    err = io.StringIO()
    with contextlib.redirect_stderr(err), contextlib.suppress(RuntimeError):
        t.replay(torch.randn(2, 3), torch.randn(4, 2))
    assert err.getvalue() == ""
    assert same(t.replay(*(x := (torch.randn(5, 3), torch.randn(3, 6)))), x[0] @ x[1])


def test_a_module_whose_forward_closes_over_a_value_or_calls_its_super():
    scale = torch.full((), 3.0)

    class Base(nn.Module):
        def forward(self, x):
            return x * 2

    class Scaled(Base):
        def forward(self, x):
            return super().forward(x) * scale

    t = dg.dynamo.trace(Scaled(), torch.ones(4), dynamic=True)
    assert t.accepts(torch.ones(7)) and not t.accepts(torch.ones(7, 2)) and t.replay(torch.ones(2)).tolist() == [6, 6]


def test_two_entries_without_a_graph():
    t = dg.dynamo.trace(lambda x: x.tolist(), torch.ones(5), also=((torch.ones(2),),))
    assert (len(t.entries), t.graphs, len(t.graph)) == (2, [], 0)
    assert t.accepts(torch.ones(2)) and t.status == {} and "guards on sizes" in str(t)


def test_a_mark_that_the_program_contradicts_is_a_trace_error_with_the_line():
    x = torch.ones(4)
    torch._dynamo.mark_dynamic(x, 0)
    with pytest.raises(dg.TraceError, match=r"ConstraintViolationError: You marked x.shape\[0\] as dynamic .* constant \(4\)") as refused:
        dg.dynamo.trace(lambda x, y: x + y, x, torch.ones(4))
    assert refused.value.cause.text.startswith("dg.dynamo.trace(lambda x, y: x + y")
