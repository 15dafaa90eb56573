"""Guards and traces as a cache."""

import threading
import warnings

import pytest
import torch
from torch import nn

import dynguard_lite as dg


def program(a, b):
    return a + b if a.shape[0] == 4 else a * b


def test_the_first_entry_that_accepts_runs_and_a_miss_traces_again():
    f = dg.compile(program, analysis="symbolic")
    for n, m in [(4, 4), (4, 1), (5, 5), (7, 1), (4, 4), (1, 6)]:
        a, b = torch.randn(n), torch.randn(m)
        assert torch.equal(f(a, b), program(a, b))
    assert (f.stats.traces, f.stats.hits, f.stats.eager) == (2, 4, 0)
    assert [[g.code for g in t.guards] for t in f.traces] == [["a.shape[0] == 4"], ["a.shape[0] != 4"]]


@pytest.mark.parametrize(
    ("analysis", "traces"), [("blind", 1), ("static", 6), ("whole_tensor", 3), ("per_dimension", 3), ("symbolic", 2)]
)
def test_each_analysis_recompiles_as_often_as_its_guards_refuse(analysis, traces):
    f = dg.compile(program, analysis=analysis)
    for n, m in [(4, 4), (4, 1), (5, 5), (5, 1), (6, 6), (6, 1), (4, 4)]:
        f(torch.randn(n), torch.randn(m))
    assert f.stats.traces == len(f.traces) == traces and f.stats.hits == 7 - traces


def test_past_the_limit_it_runs_eagerly_and_says_so_once():
    f = dg.compile(program, analysis="static", recompile_limit=2)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for n in range(2, 8):
            a = torch.randn(n)
            assert torch.equal(f(a, a), program(a, a))
    assert f.stats.traces == 2 and f.stats.eager == 4 and len(seen) == 1
    assert "a.shape == (3,)" in str(seen[0].message) and seen[0].filename == __file__
    last = [row for row in f.why().rows if row[0].startswith("ran eagerly")]
    assert last[0][1:5] == ("0", "a.shape == (2,)", "torch.Size([2])", "torch.Size([7])") and {r[1] for r in last} == {"0", "1"}


def test_why_names_the_guard_of_each_entry_that_refused():
    f = dg.compile(lambda x: x * 2 if x.shape[0] > 3 else x, analysis="symbolic")
    assert str(f.why()) == "no call was refused by an entry of the cache"
    f(torch.randn(5))
    f(torch.randn(2))
    ((call, entry, guard, expected, got, cause),) = f.why().rows
    assert (call, entry, guard, expected, got) == ("traced, entry 1", "0", "x.shape[0] > 3", "> 3", "2")
    assert "x.shape[0] > 3" in cause and "x.shape[0] &gt; 3" in f.why()._repr_html_()


def test_an_exception_of_the_program_leaves_the_cache_as_it_was():
    def fails(x):
        assert x.shape[0] > 2, "too short"
        return x * 2

    f = dg.compile(fails)
    f(torch.randn(3))
    before = f.traces, f.stats.traces, f.why().rows
    with pytest.raises(AssertionError, match="too short"):
        f(torch.randn(1))
    assert (f.traces, f.stats.traces, f.why().rows) == before and torch.equal(f(torch.ones(4)), torch.full((4,), 2.0))
    with pytest.raises(dg.DataDependentError):
        dg.compile(lambda x: x if x.sum() > 0 else -x)(torch.randn(3))
    with pytest.raises(TypeError, match="missing"):
        f()


def test_in_place_operations_reach_the_callers_tensors_once():
    f = dg.compile(lambda x: x.add_(1))
    x = torch.zeros(3)
    assert f(x) is x and f(x) is x and x.tolist() == [2.0] * 3 and f.stats.hits == 1


def test_modules_keywords_and_names():
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU())
    f = dg.compile(model)
    for rows in (1, 2, 0):
        x = torch.randn(rows, 4)
        assert torch.equal(f(x), model(x))
    assert f.stats.traces == 1
    model.eval()
    f(torch.randn(2, 4))
    assert f.stats.traces == 2  # the mode is guarded
    g = dg.compile(program)
    assert g.__name__ == "program" and torch.equal(g(b=torch.ones(4), a=torch.ones(4)), torch.full((4,), 2.0))


def test_a_compiled_function_in_a_traced_one_is_part_of_it():
    inner = dg.compile(lambda x: x + 1)
    t = dg.trace(lambda x: inner(x) * 2, torch.ones(2))
    assert len(t.graph) == 3 and inner.stats.traces == 0 and t(torch.ones(3)).tolist() == [4.0] * 3


def test_threads_share_the_cache():
    f = dg.compile(program)
    wrong, start = [], threading.Barrier(8)

    def run(seed):
        start.wait()
        for n in range(1, 9):
            a = torch.full((n,), float(seed))
            if not torch.equal(f(a, a), program(a, a)):
                wrong.append((seed, n))

    threads = [threading.Thread(target=run, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong and f.stats.traces == 2 and f.stats.hits == 62


@pytest.mark.parametrize(("arguments", "error", "words"), [
    ({"fn": 3}, TypeError, "fn must be callable, got int"),
    ({"fn": abs, "analysis": "none"}, ValueError, "analysis must be one of blind, .*; got 'none'"),
    ({"fn": abs, "recompile_limit": 0}, ValueError, "recompile_limit must be an int of at least 1, got 0"),
])  # fmt: skip
def test_bad_arguments_are_named(arguments, error, words):
    with pytest.raises(error, match=words):
        dg.compile(**arguments)
