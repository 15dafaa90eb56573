"""Diagrams: what the cells say, what is marked, what happens where nothing can draw."""

import itertools
import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ET

import pytest
import torch
from torch import nn

import dynguard_lite as dg
from dynguard_lite import draw as draw_function
from dynguard_lite.picture import PALETTE


def branch(a, b):
    if a.size()[0] == 4:
        return a + b
    return a * b


@pytest.fixture
def trace():
    return dg.trace(branch, torch.randn(4), torch.randn(4), analysis="whole_tensor")


def words(drawing):
    """The texts in the picture, which has to be well-formed XML."""
    return [e.text for e in ET.fromstring(drawing.svg).iter() if e.tag.endswith("}text") and e.text]


def fill_of(drawing, wanted):
    """The colour of the smallest filled polygon that a text lies in."""
    root = ET.fromstring(drawing.svg)
    text = next(e for e in root.iter() if e.tag.endswith("}text") and e.text == wanted)
    x, y = float(text.get("x")), float(text.get("y"))
    around = []
    for polygon in root.iter():
        if polygon.tag.endswith("}polygon") and polygon.get("fill") != "none":
            points = [tuple(map(float, p.split(","))) for p in polygon.get("points").split()]
            (x0, x1), (y0, y1) = ((min(v), max(v)) for v in zip(*points, strict=True))
            if x0 <= x <= x1 and y0 <= y <= y1:
                around.append(((x1 - x0) * (y1 - y0), polygon.get("fill")))
    return min(around)[1]


def test_each_dimension_is_worded_and_coloured_by_its_status(trace):
    picture = dg.draw(trace)
    said = {"a: v_static_param", "=4", "b: v_dynamic_param", "any (seen 4)", "v2: v_add", "seen 4", "returned"}
    assert said <= set(words(picture))
    assert fill_of(picture, "=4") == PALETTE["static"] and fill_of(picture, "any (seen 4)") == PALETTE["dynamic"]


def test_the_legend_names_what_occurs_and_nothing_else(trace):
    assert any(w.startswith("static:") for w in words(dg.draw(trace)))
    free = dg.trace(lambda a: a * 2, torch.randn(4), analysis="whole_tensor")
    assert not any(w.startswith("static:") for w in words(dg.draw(free)))


def test_failing_guards_are_marked_with_expected_and_got(trace):
    refused = dg.draw(trace, torch.randn(5), torch.randn(1))
    assert "FAIL" in words(refused) and "expected torch.Size([4]), got torch.Size([5])" in words(refused)
    assert fill_of(refused, "a: v_static_param") == PALETTE["fail"] and "got torch.Size([5])" in refused.text
    accepted = dg.draw(trace, torch.randn(4), b=torch.randn(1))
    assert any(w.startswith("PASS") for w in words(accepted)) and "FAIL" not in accepted.source + accepted.text


def test_symbols_expressions_and_the_dimension_that_fails():
    def product(A, B):
        C = A @ B
        if C.shape[0] > 2 and B.shape[1] == 5:
            C = C.view(C.shape[0] * C.shape[1])
        return C

    t = dg.trace(product, torch.randn(3, 4), torch.randn(4, 5))
    picture = dg.draw(t)
    said = words(picture)
    assert {"s0 > 2", "s1", "s2", "=5", "s0*s3", "given s0*s3, returned", "dotted arrow: a size, not a tensor"} <= set(said)
    assert "s0 is A.shape[0], s1 is A.shape[1], s2 is B.shape[0], s3 is B.shape[1]" in said
    assert fill_of(picture, "s0 > 2") == PALETTE["constrained"] and fill_of(picture, "s1") == PALETTE["dynamic"]
    assert picture.source.count("[style=dotted]") == 2 and "  v2: s0 > 2, =5" in picture.text.splitlines()
    refused = dg.draw(t, torch.randn(2, 4), torch.randn(4, 5))
    assert fill_of(refused, "s0 > 2 FAIL, got 2") == PALETTE["fail"] and fill_of(refused, "=5") == PALETTE["static"]
    whole = dg.draw(dg.trace(product, torch.randn(3, 4), torch.randn(4, 5), analysis="whole_tensor"), torch.randn(3, 7), torch.randn(7, 5))
    assert {"=3", "=4 FAIL, got 7"} <= set(words(whole))


def test_the_bound_of_an_expression_stands_in_its_cell():
    def join(a, b):
        c = torch.cat([a, b])
        return c * 2 if c.shape[0] > 5 else c

    said = words(dg.draw(dg.trace(join, torch.randn(4), torch.randn(3))))
    assert {"s0", "s1", "s0 + s1 > 5"} <= set(said)
    assert {"=4", "=3", "=7"} <= set(words(dg.draw(dg.trace(join, torch.randn(4), torch.randn(3), analysis="per_dimension"))))


def test_a_change_of_the_ambient_state_is_marked():
    def fn(x):
        with torch.no_grad():
            y = x * 2
        return y

    said = words(dg.draw(dg.trace(fn, torch.randn(2))))
    assert "from here: no grad, torch.float32" in said and not any(w.startswith("static:") for w in said)


def test_borders_are_dashed_where_the_value_is_dynamic(trace):
    source = dg.draw(trace).source.splitlines()
    lines = {line.split("<b>")[1].split("</b>")[0]: line for line in source if "<b>" in line}
    assert 'style="dashed"' in lines["v2: v_add"] and 'style="dashed"' not in lines["a: v_static_param"]


def test_marks_and_edge_cases():
    def fn(x, s, unused):
        x.add_(s)
        return x + x

    picture = dg.draw(dg.trace(fn, torch.randn(2, 0), torch.tensor(1.0), torch.randn(1), analysis="whole_tensor"))
    assert {"in place", "rank 0", "any (seen 0)"} <= set(words(picture))
    assert picture.source.count("n3 -> n4") == 2  # x + x uses it twice


def test_weights_are_grey_and_named_as_in_the_module():
    picture = dg.draw(dg.trace(nn.Sequential(nn.Linear(3, 2)), torch.randn(4, 3), analysis="whole_tensor"))
    assert "0.weight: v_constant" in words(picture) and any(w.startswith("constant:") for w in words(picture))


def test_nodes_of_the_readers_own():
    class Mine:
        def __init__(self, op, inputs=(), **params):
            self.op, self.inputs, self.params = op, inputs, params

    a, b = (Mine("v_dynamic_param", name=n, size=torch.Size([4])) for n in "ab")
    picture = dg.draw(Mine("v_add", (a, b)))
    assert {"a: v_dynamic_param", "any (seen 4)", "v2: v_add"} <= set(words(picture))
    assert "v2 = v_add(a, b)" in picture.text and "0x" not in picture.text


def test_large_graphs_are_folded_and_say_so():
    def chain(x):
        for _ in range(1000):
            x = x + 1
        return x

    start = time.perf_counter()
    picture = dg.draw(dg.trace(chain, torch.zeros(1), analysis="whole_tensor"))
    assert "1,001 nodes, folded in program order" in words(picture) and time.perf_counter() - start < 30
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0)
    encoder = nn.TransformerEncoder(layer, 8, enable_nested_tensor=False).train()
    folded = dg.draw(dg.trace(encoder, torch.randn(2, 3, 8), analysis="whole_tensor"))
    assert any("folded by module" in w for w in words(folded)) and "layers.3" in words(folded)


def test_the_same_picture_in_every_process():
    code = """
import torch, dynguard_lite as dg
print(dg.draw(dg.trace(lambda a, b: {'x': a @ b, 'y': [a]}, torch.ones(2, 2), torch.ones(2, 2))).svg)
"""
    runs = set()
    for seed in "12":
        env = {**os.environ, "PYTHONHASHSEED": seed}
        runs.add(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, env=env).stdout)
    assert len(runs) == 1


def luminance(colour):
    """Relative luminance by WCAG's formula, 0 (black) to 1."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_text_is_readable_on_every_fill():
    """Contrast of black text at least 4.5 : 1; and black is what a picture's text is."""
    for colour in PALETTE.values():
        assert (luminance(colour) + 0.05) / (luminance("#000000") + 0.05) >= 4.5
    texts = [e for e in ET.fromstring(dg.draw(dg.trace(branch, torch.ones(4), torch.ones(4)), torch.ones(5), torch.ones(4)).svg).iter()
             if e.tag.endswith("}text")]  # fmt: skip
    assert texts and all(e.get("fill") == "#000000" for e in texts)


def test_statuses_differ_in_greyscale():
    """By 5 or more of CIE lightness (0 to 100), where 2 can just be seen side by side."""
    lightness = {status: 116 * luminance(colour) ** (1 / 3) - 16 for status, colour in PALETTE.items()}
    statuses = sorted(lightness[s] for s in ("dynamic", "constrained", "static", "constant", "data", "plain"))
    assert min(b - a for a, b in itertools.pairwise(statuses)) >= 5
    assert abs(lightness["pass"] - lightness["fail"]) >= 15


def test_without_a_program_that_draws_the_text_stands_in(trace, monkeypatch, tmp_path):
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    bundle = dg.draw(trace)._repr_mimebundle_()
    assert set(bundle) == {"text/plain"} and "pip install graphviz graphviz-pure" in bundle["text/plain"]
    with pytest.raises(RuntimeError, match="pip install"):
        _ = dg.draw(trace).svg


def test_saving(trace, tmp_path):
    for suffix, start in ((".svg", b"<?xml"), (".png", b"\x89PNG"), (".dot", b"digraph")):
        assert dg.draw(trace).save(tmp_path / f"x{suffix}").read_bytes().startswith(start)
    with pytest.raises(ValueError, match=r"path must end in .*'x\.pdf'"):
        dg.draw(trace).save("x.pdf")


def test_bad_arguments_are_named(trace):
    with pytest.raises(TypeError, match=r"x must be a Trace.*got int"):
        draw_function(3)
    with pytest.raises(ValueError, match="direction must be 'TB' or 'LR', got 'up'"):
        dg.draw(trace, direction="up")
    with pytest.raises(TypeError, match="inputs are for a Trace"):
        dg.draw(trace.graph, torch.randn(4))
