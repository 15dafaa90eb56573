"""`measure` against counts that can be made by hand."""

import contextlib
import itertools
import math

import pytest
import torch

import dynguard_lite as dg
from dynguard_lite.precision import OUTCOMES, path_of


def branch(a, b):
    return a + b if a.shape[0] == 4 else a * b


def test_the_counts_of_a_branch():
    r = dg.measure(branch, torch.randn(4), torch.randn(4))
    pairs = {((n,), (m,)) for n in range(6) for m in range(6) if n == m or 1 in (n, m)}  # those that broadcast
    assert r.runs == pairs and len(pairs) == 16 and r.total == 36
    valid = {((4,), (4,)), ((4,), (1,))}
    for analysis in dg.ANALYSES:
        assert r[analysis].path_valid == valid
    assert r["blind"].accepted == pairs
    # a sum where the program multiplies: the same by chance only where there is nothing in it
    assert r["blind"].unsound == pairs - valid - {((0,), (0,)), ((0,), (1,)), ((1,), (0,))} and not r["blind"].sound
    assert r["static"].accepted == {((4,), (4,))} and r["static"].precision == 0.5
    for analysis in ("whole_tensor", "per_dimension", "symbolic"):
        assert r[analysis].accepted == valid and r[analysis].precision == 1 and r[analysis].sound


def test_ints_that_come_from_sizes_dont_make_another_path():
    r = dg.measure(lambda x: x.view(x.shape[0] * 2, -1) + x.shape[1], torch.randn(4, 2))
    fits = {((n, m),) for n in range(1, 6) for m in range(6) if m % 2 == 0}
    assert r["symbolic"].path_valid == r["symbolic"].accepted == fits and r["symbolic"].precision == 1
    assert r["per_dimension"].precision == 1 / 15 and r["per_dimension"].accepted == {((4, 2),)}
    assert ((3, 2),) in r["blind"].unsound and ((4, 2),) not in r["blind"].unsound


def unrolled(a, b):
    for _ in range(a.shape[0] % 3):
        a = a * 2
    return a + b if b.shape[0] > 2 else a - b


@pytest.mark.parametrize("fn", [branch, unrolled, lambda a, b: (a + b).reshape(-1, 2).sum(0) if len(a) != len(b) else a * len(b),
                                lambda a, b: a + float(b.shape[0])])  # fmt: skip
def test_what_is_path_valid_is_what_tracing_anew_at_each_point_says(fn):
    given = torch.randn(4), torch.randn(4)
    path, valid = path_of(dg.trace(fn, *given).graph), set()
    for n, m in itertools.product(range(6), repeat=2):
        with contextlib.suppress(RuntimeError):
            if path_of(dg.trace(fn, torch.randn(n), torch.randn(m)).graph) == path:
                valid.add(((n,), (m,)))
    assert dg.measure(fn, *given)["blind"].path_valid == valid and valid


def test_a_constant_that_differs_makes_another_path():
    r = dg.measure(lambda x: x * int(x.shape[0]), torch.randn(3), sizes=range(5))
    assert r["symbolic"].path_valid == {((3,),)} == r["symbolic"].accepted


def test_chosen_dimensions_keyword_arguments_and_nested_inputs():
    r = dg.measure(lambda batch, scale: batch["ids"].float() * scale[0], {"ids": torch.tensor([[1, 2], [3, 4]])},
                   scale=[torch.ones(2)], sizes={"batch['ids'].shape[0]": [0, 1, 7]})  # fmt: skip
    assert r["symbolic"].accepted == {((n, 2), (2,)) for n in (0, 1, 7)} and r.total == 3


def test_in_place_operations_work_on_clones_and_are_compared():
    x = torch.zeros(3)
    r = dg.measure(lambda x: x.add_(1)[: x.shape[0] - 1].sum(), x, sizes=range(4))
    assert x.tolist() == [0.0] * 3 and all(r[a].sound for a in dg.ANALYSES[1:]) and len(r["symbolic"].accepted) == 4


def test_random_operations_are_the_same_in_program_and_replay():
    state = torch.get_rng_state()
    r = dg.measure(lambda x: torch.dropout(x, 0.5, True) + torch.rand(x.shape[0]), torch.ones(3), sizes=range(4))
    assert all(r[a].sound for a in dg.ANALYSES[1:]) and torch.equal(torch.get_rng_state(), state)


def test_the_accepted_sets_of_a_ladder_program_are_nested():
    def program(a, b):
        c = a @ b
        return c * 2 if c.shape[0] > 2 else c

    r = dg.measure(program, torch.randn(3, 2), torch.randn(2, 3), sizes=range(5))
    chain = [r[a].accepted for a in dg.ANALYSES[1:]] + [r["symbolic"].path_valid]
    assert all(x <= y for x, y in itertools.pairwise(chain))
    assert [len(s) for s in chain] == [1, 1, 25, 50, 50]


def test_tables_and_pictures_say_what_was_measured():
    r = dg.measure(branch, torch.randn(4), torch.randn(4))
    assert "of 36 shapes, it runs on 16" in repr(r)
    row = next(row for row in r.table().rows if row[0] == "blind")
    assert row[1:5] == ("16", "11", "2", "100%") and "<table>" in r._repr_html_()
    figure = r.plot()
    assert [a.get_title() for a in figure.axes] == list(dg.ANALYSES)
    assert {t.get_text().split(" (")[0] for t in figure.legends[0].get_texts()} == {words for words, *_ in OUTCOMES}
    blind = figure.axes[0].images[0].get_array()
    assert blind[4][4] == 0 and blind[5][5] == 2 and blind[0][5] == 4  # rows are a, columns b
    one = dg.measure(lambda x: x.sum(), torch.ones(2)).plot()
    assert one.axes[0].images[0].get_array().shape == (1, 6)
    assert dg.measure(lambda: torch.ones(2))["symbolic"].precision == 1


def test_the_progress_bar_is_off_where_outputs_are_compared(monkeypatch):
    """A notebook's bar, too: in a kernel, tqdm.auto is the one that draws with widgets."""
    from tqdm.notebook import tqdm

    off = []

    def bar(*args, **kwargs):
        made = tqdm(*args, **kwargs)
        off.append(made.disable)  # now: one that has ended is always off
        return made

    monkeypatch.setattr("dynguard_lite.precision.tqdm", bar)
    for value in ("1", ""):
        monkeypatch.setenv("TQDM_DISABLE", value)
        dg.measure(branch, torch.randn(4), torch.randn(4), sizes=[4], analyses=["static"])
    assert off == [True, False]


@pytest.mark.parametrize(("arguments", "words"), [
    ({"sizes": {"c.shape[0]": [1]}}, r"sizes names 'c.shape\[0\]'; the dimensions are a.shape\[0\], b.shape\[0\]"),
    ({"sizes": []}, "a grid of 0 shapes"),
    ({"sizes": range(1000)}, "a grid of 1,000,000 shapes"),
    ({"analyses": ["fast"]}, "got 'fast'"),
])  # fmt: skip
def test_bad_arguments_are_named(arguments, words):
    with pytest.raises(ValueError, match=words):
        dg.measure(branch, torch.randn(4), torch.randn(4), **arguments)
    r = dg.measure(branch, torch.randn(4), torch.randn(4), sizes=[4], analyses=["static"])
    with pytest.raises(KeyError, match="there are static"):
        r["symbolic"]
    with pytest.raises(ValueError, match="x must be one of"):
        r.plot(x="z")
    assert math.isnan(dg.measure(branch, torch.randn(4), torch.randn(4), sizes=[2], analyses=["static"])["static"].precision)
