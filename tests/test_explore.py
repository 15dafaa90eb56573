"""Sliders: what a move comes to in words, counts and picture, against the program run eagerly."""

import builtins
import importlib
import sys
import xml.etree.ElementTree as ET

import ipywidgets
import pytest
import torch
from torch import nn

import dynguard_lite as dg
from dynguard_lite.precision import same

SVG = "{http://www.w3.org/2000/svg}"


def program(a, b):
    return a + b if a.shape[0] == 4 else a * b


def product(A, B):
    C = A @ B
    return C * 2 if C.shape[0] > 2 else C + 1


def move(widget, **sizes):
    for name, n in sizes.items():
        widget.sliders[f"{name}.shape[0]"].value = n
    return widget.outcome


def picture(widget):
    page = widget.picture.value
    return ET.fromstring(page[page.index("<svg") : page.index("</svg>") + 6])


def guards(widget):
    """(entry, verdict, guard) of each row of the table under the picture."""
    page = widget.picture.value
    rows = ET.fromstring(page[page.index("<table") :]).iter("tr")
    return [("".join(row[0].itertext()), "".join(row[1].itertext()), "".join(row[2].itertext())) for row in rows if row[0].tag == "td"]


def controls(widget):
    return [widget, *(c for child in getattr(widget, "children", ()) for c in controls(child))]


def test_a_labelled_slider_for_each_dimension_and_a_choice_of_analysis():
    def fn(batch, *rest, scale):
        return batch["ids"] * scale + rest[0]

    w = dg.explore(fn, {"ids": torch.ones(2, 3)}, torch.ones(3), scale=torch.ones(20, 1, 1))
    sliders = [c for c in controls(w) if isinstance(c, ipywidgets.IntSlider)]
    names = ["batch['ids'].shape[0]", "batch['ids'].shape[1]", "rest[0].shape[0]", "scale.shape[0]", "scale.shape[1]", "scale.shape[2]"]
    assert [s.description for s in sliders] == names and [s.value for s in sliders] == [2, 3, 3, 20, 1, 1]
    assert {s.min for s in sliders} == {0} and [s.max for s in sliders] == [12, 12, 12, 20, 12, 12]
    (choice,) = [c for c in controls(w) if isinstance(c, ipywidgets.Dropdown)]
    assert choice.description == "analysis" and choice.options == dg.ANALYSES and choice.value == "symbolic"
    assert all(c.description for c in controls(w) if isinstance(c, (ipywidgets.IntSlider, ipywidgets.Dropdown, ipywidgets.Button)))


def test_replayed_recompiled_and_where_eager_itself_raises():
    w = dg.explore(program, torch.randn(4), torch.randn(1))
    assert w.outcome.startswith("traced") and "recompiles so far: 0;" in w.counts
    assert move(w, b=4) == "replayed: entry 0 accepts, and answers as eager does"
    assert "PASS" in w.picture.value and "FAIL" not in w.picture.value
    assert move(w, b=1).startswith("replayed") and "replays: 2" in w.counts
    assert move(w, a=5) == "recompiled: entry 0 refuses; entry 1 is new" and "recompiles so far: 1;" in w.counts
    assert guards(w) == [("0", "FAIL", "a.shape[0] == 4"), ("1", "PASS", "a.shape[0] != 4")]
    assert "a.shape[0] == 4" in ET.tostring(picture(w), "unicode")  # the entry that refused is drawn
    assert move(w, b=3).startswith("no answer: eager itself raises RuntimeError: The size of tensor a (5) must match")
    assert "so does the replay of entry 1" in w.outcome
    assert move(w, a=4).endswith("so does the replay of entry 0") and "recompiles so far: 1;" in w.counts
    assert all(part in w.picture.value for part in (w.outcome, w.counts))  # what is said is shown


def test_blind_answers_wrongly_and_shows_both_answers():
    w = dg.explore(program, torch.ones(5), torch.ones(1), analysis="blind")
    assert move(w, a=6).startswith("replayed") and guards(w) == [("0", "PASS", "no guards: any input is accepted")]
    assert move(w, a=4).startswith("wrong answer: entry 0 accepts, but its replay gives [") and "eager [" in w.outcome

    def strict(x):
        assert x.shape[0] > 2, "too short"
        return x * 2

    w = dg.explore(strict, torch.ones(3), analysis="blind")
    assert move(w, x=1) == "wrong answer: eager itself raises AssertionError: too short; the replay of entry 0 answers"


@pytest.mark.parametrize("analysis", dg.ANALYSES)
def test_every_outcome_is_what_eager_and_the_guards_say(analysis):
    """Pairs of four sizes: the oracle is a list of traces, kept by hand."""
    w = dg.explore(program, torch.randn(3), torch.randn(3), analysis=analysis)
    entries = [dg.trace(program, torch.randn(3), torch.randn(3), analysis=analysis)]
    seen = set()
    for name, n in [("ab"[i % 2], n) for i, n in enumerate((1, 1, 4, 4, 3, 1, 1, 3, 4, 0, 0, 4))]:
        slider = w.sliders[f"{name}.shape[0]"]
        if slider.value == n:
            continue
        slider.value = n
        a, b = (torch.randn(s.value) for s in w.sliders.values())
        taker = next((t for t in entries if t.accepts(a, b)), None)
        try:
            expected = program(a, b)
        except RuntimeError:
            word = "no answer"
        else:
            if taker is None:
                word = "recompiled"
                entries.append(dg.trace(program, a, b, analysis=analysis))
            else:
                word = "replayed" if same(expected, taker.replay(a, b)) else "wrong answer"
        assert w.outcome.startswith(f"{word}: ") and f"recompiles so far: {len(entries) - 1};" in w.counts
        seen.add(word)
    assert seen == {"replayed", "no answer", "wrong answer" if analysis == "blind" else "recompiled"}


def test_another_analysis_begins_with_an_empty_cache():
    w = dg.explore(product, torch.randn(3, 4), torch.randn(4, 5))
    w.sliders["A.shape[0]"].value = 2
    assert "recompiles so far: 1;" in w.counts
    w.choice.value = "static"
    assert w.outcome.startswith("traced") and "recompiles so far: 0;" in w.counts and "analysis static" in w.picture.value
    assert [g[2] for g in guards(w)] == ["A.shape == (2, 4)", "B.shape == (4, 5)"]
    w.sliders["B.shape[1]"].value = 6
    assert w.outcome.startswith("recompiled") and ("0", "FAIL", "B.shape == (4, 5)") in guards(w)
    w.again.click()
    assert w.outcome.startswith("traced") and len(w.compiled.traces) == 1


def test_past_the_limit_of_the_cache_it_says_so():
    w = dg.explore(product, torch.randn(3, 4), torch.randn(4, 1), analysis="static")
    for n in range(2, 9):
        move(w, B=4)
        w.sliders["B.shape[1]"].value = n
    assert "recompiles so far: 7;" in w.counts
    w.sliders["B.shape[1]"].value = 9
    assert w.outcome.startswith("run eagerly: none of 8 entries accepts") and w.counts.endswith("run eagerly: 1")


def test_the_picture_is_inline_named_described_and_has_tooltips():
    w = dg.explore(product, torch.randn(3, 4), torch.randn(4, 5))
    w.sliders["A.shape[0]"].value = 2
    svg = picture(w)
    assert svg.get("role") == "img" and svg[0].tag == f"{SVG}title" and svg[1].tag == f"{SVG}desc"
    sizes = "A.shape[0] = 2, A.shape[1] = 4, B.shape[0] = 4, B.shape[1] = 5"
    assert svg[0].text == svg.get("aria-label") == f"Entry 0 of product, analysis symbolic, at {sizes}"
    assert "v2 = v_matmul(A, B)" in svg[1].text and "FAIL" in svg[1].text
    tips = [e.text for e in svg.iter(f"{SVG}title")][1:]
    line = "C = A @ B"
    (tip,) = [t for t in tips if t.startswith("v2 = ")]
    assert tip.splitlines()[1] == "sizes: A.shape[0], B.shape[1]" and tip.endswith(line) and "test_explore.py:" in tip
    assert any(t.startswith("FAIL  A.shape[0] > 2") and "return C * 2 if" in t for t in tips)  # the guards under the graph
    assert not any((t.startswith("n") and t[1:].isdigit()) or "->" in t for t in tips)  # Graphviz's own names
    assert " id=" not in w.picture.value  # two pictures on a page


def test_names_from_a_program_cannot_end_the_markup():
    w = dg.explore(lambda batch: batch["<b>&\"'"] + 1 if batch["<b>&\"'"].shape[0] == 2 else batch["<b>&\"'"], {"<b>&\"'": torch.ones(2)})
    next(iter(w.sliders.values())).value = 3
    assert "<b>&\"" in picture(w).get("aria-label") and ("0", "FAIL") in [g[:2] for g in guards(w)]


def test_modules_and_the_readers_own_tensors():
    model, x = nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.5)), torch.zeros(2, 4)
    w = dg.explore(model, x)
    assert move(w, input=0).startswith("replayed") and move(w, input=7).startswith("replayed")
    w.sliders["input.shape[1]"].value = 5
    assert "eager itself raises RuntimeError: mat1 and mat2" in w.outcome
    added = torch.zeros(3)
    w = dg.explore(lambda x: x.add_(1), added)
    assert move(w, x=4).startswith("replayed") and added.tolist() == [0.0] * 3


def test_a_program_that_is_refused_at_some_sizes_says_why():
    def fn(x):
        return x * 2 if x.shape[0] != 3 or x.sum() > 0 else x

    w = dg.explore(fn, torch.ones(4))
    assert move(w, x=3).startswith("not traced: ") and "x.sum() > 0" in w.outcome and w.compiled.stats.traces == 1


def test_the_text_of_it_is_the_same_in_every_run():
    one, two = (dg.explore(program, torch.randn(4), torch.randn(4))._repr_mimebundle_() for _ in range(2))
    assert one["text/plain"] == two["text/plain"] and "a.shape[0] = 4 (0 to 12)" in one["text/plain"]
    assert "application/vnd.jupyter.widget-view+json" in one


def test_without_ipywidgets_the_message_says_what_to_install(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "ipywidgets":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    monkeypatch.delitem(sys.modules, "dynguard_lite.explore", raising=False)
    module = importlib.import_module("dynguard_lite.explore")
    with pytest.raises(ImportError, match="pip install 'ipywidgets"):
        module.explore(program, torch.ones(1), torch.ones(1))
    monkeypatch.delitem(sys.modules, "dynguard_lite.explore")


def test_without_a_program_that_draws_the_text_stands_in(monkeypatch, tmp_path):
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    w = dg.explore(program, torch.ones(4), torch.ones(4))
    assert "v_add(a, b)" in w.picture.value and "pip install graphviz" in w.picture.value and "<svg" not in w.picture.value


@pytest.mark.parametrize(("arguments", "error", "words"), [
    ((3,), TypeError, "explore: fn must be callable, got int"),
    ((lambda n: n, 3), ValueError, "none of the arguments of <lambda> is a tensor"),
    ((lambda x: x, torch.tensor(1.0)), ValueError, "every tensor given to <lambda> has rank 0"),
    ((lambda x: x if x.sum() > 0 else -x, torch.ones(2)), dg.DataDependentError, "x.sum"),
    ((lambda x: x.view(7), torch.ones(2)), RuntimeError, "shape .* is invalid"),
])  # fmt: skip
def test_what_cannot_be_explored_is_refused(arguments, error, words):
    with pytest.raises(error, match=words):
        dg.explore(*arguments)
    with pytest.raises(ValueError, match=r"analysis must be one of blind, .*; got 'none'"):
        dg.explore(program, torch.ones(1), torch.ones(1), analysis="none")
