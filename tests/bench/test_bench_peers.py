"""Peers that are installed with the tests agree with NumPy; the others say that they are absent."""

from __future__ import annotations

import numpy as np
import optree
import pytest

from fusec.bench.peers import peers
from fusec.bench.peers.peers import AbsentPeer, Peer
from fusec.bench.programs import black_scholes, program


def test_with_numpy_swaps_the_module_in_helpers_too():
    seen = []

    class Spy:
        def __getattr__(self, name):
            seen.append(name)
            return getattr(np, name)

    swapped = peers.with_numpy(black_scholes.normal_cdf, Spy())
    assert np.array_equal(swapped(np.ones(2)), black_scholes.normal_cdf(np.ones(2)))
    assert "where" in seen


def test_with_numpy_can_wrap_and_replace():
    wrapped = []
    swapped = peers.with_numpy(black_scholes.black_scholes, np, lambda f: wrapped.append(f) or f,
                               normal_cdf=lambda x: x * 0.0)
    args = program("black_scholes").make_args(10, "float64", 0)
    assert (swapped(*args)[2] == 0.0).all() and len(wrapped) >= 3


def test_a_failing_peer_reports_its_error():
    def bad(x):
        raise RuntimeError("no backend\nmore")
    outcome = Peer("p", "p 1", bad).try_out((np.ones(3),), [np.ones(3)])
    assert outcome.note == "RuntimeError: no backend" and outcome.timing is None


@pytest.mark.parametrize(("result", "note"), [
    (np.ones(3), ""), (np.full(3, 1.1), "gives other values"), (np.ones(4), "gives shape"),
    ((np.ones(3), np.ones(3)), "gives 2 results"),
])
def test_results_are_compared(result, note):
    outcome = Peer("p", "p 1", lambda x: result).try_out((np.ones(3),), [np.ones(3)])
    assert outcome.note.startswith(note) and bool(outcome.note) == bool(note)


def test_peers_that_are_not_installed_are_absent(monkeypatch):
    monkeypatch.setattr(peers, "installed", lambda name: False)
    found = peers.for_program(program("eos"))
    assert set(found) == set(peers.NAMES)
    assert all(isinstance(p, AbsentPeer) for p in found.values())
    assert found["jax"].try_out((), []).note == "not installed"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("name", "peer"), [
    ("eos", "numexpr"), ("tone_map", "numexpr"), ("black_scholes", "numexpr"), ("eos", "numba"),
    ("hdiff", "numba"), ("softmax", "numba"), ("mandelbrot", "numba"),
])
def test_installed_peers_agree(name, peer, dtype):
    if not peers.installed(peer):
        found = peers.for_program(program(name))[peer]
        assert isinstance(found, AbsentPeer)
        return
    entry = program(name)
    args = entry.make_args(1000, dtype, 0)
    want = optree.tree_leaves(entry.function(*args))
    outcome = peers.for_program(entry)[peer].try_out(args, want)
    assert outcome.note == "" and outcome.version.startswith(peer)
    assert outcome.error_ulp < 64
