"""What a trace tells: status, explanation, listing, output."""

import subprocess
import sys

import pytest
import torch

import dynguard_lite as dg


def branch(a, b):
    c = a * 2
    if c.shape[0] == 4:
        return c + b
    return c * b


A, B = torch.arange(4.0), torch.ones(1)


def test_status_per_dimension():
    def fn(x, y, s):
        return x.sum() * s + y if y.shape[0] > 1 else x

    t = dg.trace(fn, torch.randn(2, 3), torch.randn(4), torch.tensor(1.0), analysis="whole_tensor")
    assert t.status == {"x": ("dynamic", "dynamic"), "y": ("static",), "s": ()}
    assert dg.trace(fn, torch.randn(2, 3), torch.randn(4), torch.tensor(1.0), analysis="static").status == {
        "x": ("static", "static"), "y": ("static",), "s": ()}  # fmt: skip


def test_explain_names_guard_line_and_reason():
    t = dg.trace(branch, A, B, analysis="whole_tensor")
    (row,) = t.explain().rows
    assert row[0] == "a.shape == (4,)"
    assert row[1].startswith("test_traces.py:") and row[1].endswith("if c.shape[0] == 4:")
    assert row[2] == "the size of v2 (v_mul) was looked at, and a flows into it"
    text, html = str(t.explain()), t.explain()._repr_html_()
    for part in row:
        assert part in text and part.replace(">", "&gt;") in html
    assert text.splitlines()[0].split() == ["guard", "caused", "by", "why"]


def test_explain_escapes_html():
    t = dg.trace(lambda x, s: x * 2, A, "<b>&")
    assert "<b>" not in t.explain()._repr_html_() and "&lt;b&gt;&amp;" in t.explain()._repr_html_()


def test_explain_without_guards_says_so():
    t = dg.trace(lambda a, b: a * b, A, B, analysis="whole_tensor")
    assert str(t.explain()).startswith("no guards") and "no guards" in t.explain()._repr_html_()


def test_the_listing_shows_statuses_graph_and_guards():
    t = dg.trace(branch, A, B, analysis="whole_tensor")
    lines = [line.split("    #")[0] for line in str(t).splitlines()]
    assert lines == [
        "trace of branch, analysis whole_tensor",
        "  a: static",
        "  b: dynamic",
        "graph",
        "  a = v_static_param(name=a, size=[4])",
        "  b = v_dynamic_param(name=b)",
        "  v2 = v_mul(a, 2)",
        "  v3 = v_add(v2, b)",
        "  return v3",
        "guards",
        "  a.shape == (4,)",
    ]
    assert repr(t) == "<Trace of branch: 4 nodes, 1 guards, whole_tensor>"


def test_output_is_what_the_program_returned_as_plain_values():
    t = dg.trace(lambda x: {"y": [x * 2, 3], "none": None}, A)
    assert type(t.output["y"][0]) is torch.Tensor and torch.equal(t.output["y"][0], A * 2)
    assert t.output["y"][1] == 3 and t.output["none"] is None


def test_replay_does_not_check_and_a_call_does():
    t = dg.trace(branch, A, B, analysis="whole_tensor")
    five = torch.ones(5)
    assert torch.equal(t.replay(five, B), five * 2 + B)  # the branch taken while tracing, right or not
    with pytest.raises(dg.GuardFailure, match=r"static shape mismatch: torch.Size\(\[5\]\) and torch.Size\(\[4\]\)"):
        t(five, B)
    assert torch.equal(t(b=B, a=A), A * 2 + B)


def test_importing_the_package_costs_no_torch():
    code = "import sys, dynguard_lite as dg; dg.__all__, dir(dg); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_names_load_on_first_use_and_unknown_ones_are_refused():
    for name in dg.__all__:
        assert getattr(dg, name) is not None and name in dir(dg)
    with pytest.raises(AttributeError, match="no attribute 'trase'"):
        dg.trase  # noqa: B018
