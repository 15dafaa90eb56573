"""A graph's Python source against the interpreter, the readable reference."""

import traceback

import pytest
import torch
from hypothesis import given
from programs import programs
from test_soundness import CHECKED, outcome, settings

import dynguard_lite as dg
from dynguard_lite.interpreter import run_graph
from dynguard_lite.precision import same


@settings(CHECKED, max_examples=300, derandomize=True)
@given(programs())
def test_source_and_interpreter_agree_on_random_programs(program):
    try:
        t = dg.trace(program, *program.inputs())
    except dg.UnbackedSizeError:
        return
    a, b = program.inputs(), program.inputs()
    assert same(outcome(t.replay, a), (run_graph(t.graph, t.guards.leaves(*b)), b))


def test_the_source_reads_like_the_program():
    t = dg.trace(lambda x, w: torch.relu(x @ w + 1).view(x.shape[0] * 2, -1), torch.randn(4, 4), torch.randn(4, 6))
    lines = t.code.splitlines()
    assert lines[0] == "def replay(v0, v1):" and "# x.shape[0]" in lines[1] and "_view" in t.code and "(s0*2)" in t.code
    assert "return v5" in lines[-1] and "del v4" in t.code  # dropped after its last use


def test_values_are_dropped_after_their_last_use():
    alive = []

    class Probe(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            alive.append(sum(r() is not None for r in refs))
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return g

    refs = []

    def fn(x):
        for _ in range(6):
            x = Probe.apply(x)
        return x

    import weakref

    t = dg.trace(fn, torch.ones(3))
    original = t._source.scope
    name = next(n for n in original if n.startswith("_Probe"))
    probe = original[name]

    def watched(x):
        made = probe(x)
        refs.append(weakref.ref(made))
        return made

    original[name] = watched
    alive.clear()
    t.replay(torch.ones(3))
    assert max(alive) <= 1  # of all results so far, at most the argument is alive


@pytest.mark.parametrize("value", [{"a": [1, (2.5, None)], "b": slice(1, -1)}, float("nan"), float("-inf"), -3, 1j, "quo'te", True, ...])
def test_constants_of_every_kind_arrive_as_they_were(value):
    seen = []

    class Take(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, given):
            seen.append(given)
            return x.clone()

    t = dg.trace(lambda x: Take.apply(x, value), torch.ones(2))
    t.replay(torch.ones(2))
    assert repr(seen[0]) == repr(seen[1]) and type(seen[1]) is type(value)


def test_an_error_in_a_replay_shows_the_line_of_the_source():
    t = dg.trace(lambda a, b: a @ b, torch.randn(2, 3), torch.randn(3, 2))
    with pytest.raises(RuntimeError) as caught:
        t.replay(torch.randn(2, 3), torch.randn(4, 2))
    text = "".join(traceback.format_exception(caught.value))
    assert "<replay of <lambda>>" in text and "v2 =" in text


def test_very_long_graphs_are_interpreted():
    def chain(x):
        for _ in range(21_000):
            x = x + 1
        return x

    t = dg.trace(chain, torch.zeros(1))
    assert t.replay(torch.zeros(2)).tolist() == [21_000.0] * 2 and "_source" not in vars(t)
