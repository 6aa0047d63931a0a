"""Learners on one dictionary in ``Experts``: seen once, with the bits that each has alone."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from numpy.testing import assert_array_equal

import oklnumba as okl
from oklnumba.core import state
from oklnumba.core.state import NoRoom
from oklnumba.learners import experts, nystrom_awv
from oklnumba.learners.base.sharing import MOST_ROWS, dictionary_groups

COMPILED = not numba.config.DISABLE_JIT
N = 400 if COMPILED else 60


def data():
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (N, 2))
    return X, np.sin(3 * X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(N)


def nystrom(lam=1.0, **params):
    return okl.NystromAWV(okl.Gaussian(0.5), lam=lam, **({"mu": 0.1} | params))


def members():
    """Return learners on three dictionaries, of which two are full in the end, and others."""
    full = {"max_size": 9, "discount": 0.98}
    return [
        nystrom(0.1),
        nystrom(2.0, max_size=7, sampler=0.5, mu=1.0),
        nystrom(1.0, **full),
        nystrom(1.0, forecaster="ridge"),
        nystrom(1.0),
        nystrom(10.0, **full),
        okl.PKAWV(okl.TaylorFeatures(2)),
        nystrom(0.1, **full),
        nystrom(1.0, seed=1),
        nystrom(1.0, mu=0.2),
        nystrom(0.1, forecaster="ridge"),
        nystrom(1.0, max_size=7, sampler=0.5, mu=1.0),
    ]


def found():
    """Return the groups of members() whose coins fall alike."""
    return [[0, 3, 4, 10], [1, 11], [2, 5, 7]]


def test_one_dictionary_is_found_and_kept_once():
    together = okl.Experts(members(), B=None).partial_fit(*data())
    assert dictionary_groups(members()) == found() == together._dictionaries
    for lead, *others in found():
        one = together._experts[lead]
        for i in others:
            for name in nystrom_awv.DICTIONARY:
                assert vars(together._experts[i])[f"_{name}"] is vars(one)[f"_{name}"]
    factors = {id(one._U) for one in together._experts}
    assert len(factors) == len(members()) - 2  # of two lams there are both forecasters


def test_a_dictionary_sees_each_round_once(monkeypatch):
    seen = []
    rows = nystrom_awv.nystrom_rows

    def counted(*arguments):
        count, status = rows(*arguments)
        seen.append(count)
        return count, status

    monkeypatch.setattr(nystrom_awv, "nystrom_rows", counted)
    grid = [nystrom(lam, forecaster=f) for lam in (0.01, 0.1, 1.0) for f in ("awv", "ridge")]
    okl.Experts(grid, B=None).partial_fit(*data())
    assert sum(seen) == N


@pytest.mark.parametrize("sizes", [(N,), (7, N - 7), (1, 30, 3, N - 34)])
def test_learners_on_one_dictionary_have_the_bits_they_have_alone(sizes, monkeypatch, tmp_path):
    X, y = data()
    played = []
    rounds = experts.experts_rounds
    monkeypatch.setattr(
        experts, "experts_rounds", lambda F, *a: (played.append(F), rounds(F, *a))[1]
    )
    together, start = okl.Experts(members(), B=None), 0
    for n in sizes:
        stop = start + n
        together.predict(X[:5])
        if n == 1:
            together.learn_one(X[start], y[start])
        else:
            together.partial_fit(X[start:stop], y[start:stop])
        together.save(tmp_path / "part.npz")
        together = okl.load(tmp_path / "part.npz")
        start = stop
    F = np.concatenate(played)
    for i, one in enumerate(members()):
        run = okl.run(one, X, y)
        assert_array_equal(F[:, i], run.predictions, err_msg=f"learner {i}")
        own = together._experts[i]
        assert_array_equal(own.predict(X[:40]), one.predict(X[:40]))
        assert_array_equal(own._totals, one._totals)
        assert own.size == one.size and own.rounds == one.rounds == N
        assert own.health() == one.health()


def test_linear_learners_take_long_blocks_of_the_same_inputs(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (2500 if COMPILED else 60, 3))
    y = X @ [1.0, -1.0, 0.5] + 0.1 * rng.standard_normal(len(X))
    played = []
    rounds = experts.experts_rounds
    monkeypatch.setattr(
        experts, "experts_rounds", lambda F, *a: (played.append(F), rounds(F, *a))[1]
    )
    grid = [okl.LinearRidge(0.5), okl.LinearAWV(0.5), okl.LinearAWV(2.0, discount=0.99)]
    together = okl.Experts(grid, B=None).partial_fit(X, y)
    assert len({id(shared) for shared in together._shared}) == 1
    assert len(played[0]) == min(MOST_ROWS, len(X))
    F = np.concatenate(played)
    for i, one in enumerate(grid):
        assert_array_equal(F[:, i], okl.run(one, X, y).predictions)
        assert_array_equal(together._experts[i]._totals, one._totals)


@pytest.mark.parametrize("k", range(1, 12))
def test_no_room_for_one_leaves_all_as_they_were(k, monkeypatch):
    """The k-th allocation of a growth fails: that of the dictionary or of any factor."""
    X, y = data()
    grid = [nystrom(lam, mu=0.01) for lam in (0.1, 1.0, 10.0)]
    together, twin = (okl.Experts(grid, B=None).partial_fit(X[:20], y[:20]) for _ in range(2))
    left = [k]
    allocate = state.aligned_zeros

    def failing(*shape):
        left[0] -= 1
        if left[0] == 0:
            raise MemoryError("none left")
        return allocate(*shape)

    with monkeypatch.context() as patch:
        patch.setattr(state, "aligned_zeros", failing)
        patch.setattr(nystrom_awv, "aligned_zeros", failing)
        with pytest.raises(NoRoom, match="intact"):
            together.partial_fit(X[20:], y[20:])
    assert together.rounds == 20
    assert_array_equal(together.predict(X), twin.predict(X))
    together.learn_one(X[20], y[20])
    assert_array_equal(
        okl.run(together, X[21:], y[21:]).predictions, okl.run(twin, X[20:], y[20:]).predictions[1:]
    )


@pytest.mark.skipif(not COMPILED, reason="numpy warns of overflows where compiled code does not")
@pytest.mark.parametrize("of", ["dictionary", "factor"])
def test_trouble_names_the_round_that_it_has_alone(of):
    X, y = data()
    X, y = X[:60].copy(), y[:60].copy()
    if of == "dictionary":
        X[30] = 1e200
    else:
        y[20:50] = 1.7e308
    kernel = okl.Polynomial(2)
    grid = [okl.NystromAWV(kernel, lam=lam, forecaster="ridge") for lam in (0.1, 1.0)]
    one, together = grid[0], okl.Experts(grid, kind="mlpoly").partial_fit(X[:9], y[:9])
    with pytest.raises(FloatingPointError) as alone:
        one.partial_fit(X[:9], y[:9]).partial_fit(X[9:], y[9:])
    for _ in range(2):
        with pytest.raises(FloatingPointError) as error:
            together.partial_fit(X[9:], y[9:])
        assert str(error.value) == f"learner 0: {alone.value}"
