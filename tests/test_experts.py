"""Aggregation of learners: the forecasts of the definition, the bounds, features shared."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import oklnumba as okl
from oklnumba import features, losses, theory
from oklnumba.hot.experts import AGGREGATING, TALLY, expert_forecast, experts_rounds
from oklnumba.hot.features import taylor_block
from oklnumba.hot.jit import DONE
from oklnumba.learners.experts import expert_setting
from oklnumba.learners.learner import Learner
from oklnumba.state import aligned_zeros
from tests import naive_linear

COMPILED = not numba.config.DISABLE_JIT
KINDS = ("aggregating", "average", "hedge")


def data(n=300 if COMPILED else 60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    return X, np.clip(np.sin(3 * X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(n), -1, 1)


def grid():
    features = okl.TaylorFeatures(3, sigma=0.8)
    return [
        okl.PKAWV(features, lam=0.1),
        okl.PKAWV(okl.TaylorFeatures(3, sigma=0.8), lam=10.0),
        okl.WithFeatures(okl.TaylorFeatures(3, sigma=0.8), okl.OGD(0.1)),
        okl.WithFeatures(okl.FourierFeatures(20), okl.AdaptiveFTRL("adagrad")),
        okl.FOGD(okl.FourierFeatures(20), loss="squared", eta=0.3),
        okl.LinearAWV(),
        okl.KernelAWV(okl.Gaussian(0.5)),
    ]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("B", [1.0, 2.5])
def test_forecasts_are_those_of_the_definition(kind, B):
    X, y = data()
    F = np.stack([okl.run(one, X, y).predictions for one in grid()], axis=1)
    run = okl.run(okl.Experts(grid(), B=B, kind=kind), X, y)
    expected = naive_linear.aggregate(F, y, B, kind, lambda f, label: (f - label) ** 2)
    assert_allclose(run.predictions, expected, rtol=1e-9, atol=1e-11)


def aggregated(F, y, B, kind, loss="squared", share=0.0):
    """Return the aggregate's forecasts of given experts."""
    code, setting = expert_setting(kind, B, share, losses.get(loss))
    state = aligned_zeros(F.shape[1]), aligned_zeros(F.shape[1]), np.zeros(TALLY)
    weights, out = aligned_zeros(F.shape[1]), np.empty(len(y))
    played, status = experts_rounds(F, y, code, setting, 0, state, weights, out)
    assert (played, status) == (len(y), DONE)
    return out


values = st.sampled_from([-1.0, -0.999, -0.5, 0.0, 1e-9, 0.3, 0.9, 1.0, 1.5, -7.0])
rounds = st.lists(
    st.tuples(st.lists(values, min_size=5, max_size=5), st.floats(-1, 1), st.integers(1, 6)),
    min_size=1,
    max_size=10,
)


@pytest.mark.parametrize("kind", ["aggregating", "average"])
@settings(max_examples=1000 if COMPILED else 20)
@given(rows=rounds, B=st.sampled_from([1.0, 1e-3, 5.0, 1e6]))
def test_bound_of_the_squared_loss(kind, rows, B):
    F = B * np.array([f for f, _, times in rows for _ in range(times)])
    y = B * np.array([label for _, label, times in rows for _ in range(times)])
    regret = ((y - aggregated(F, y, B, kind)) ** 2).sum() - ((y[:, None] - F) ** 2).sum(0).min()
    assert regret <= theory.experts_bound(5, B, kind) + 1e-9 * B**2 * len(y)


@settings(max_examples=1000 if COMPILED else 20)
@given(rows=rounds, loss=st.sampled_from(["absolute", "hinge", "logistic"]))
def test_bound_of_hedge(rows, loss):
    F = np.clip([f for f, _, times in rows for _ in range(times)], -1, 1)
    y = np.array([label for _, label, times in rows for _ in range(times)])
    found = losses.get(loss)
    y = np.where(y > 0, 1.0, -1.0) if found.classes else y
    of_experts = found.value(F, y[:, None])
    own = found.value(aggregated(F, y, 2.0, "hedge", loss), y)
    assert of_experts.max() <= 2.0
    bound = theory.experts_bound(5, 2.0, "hedge", n=len(y))
    assert own.sum() - of_experts.sum(axis=0).min() <= bound + 1e-9


def test_a_rate_ten_times_too_high_breaks_the_bound():
    """Negative control: labels alternate between two constant experts."""
    n = 400
    F, y = np.tile([-1.0, 1.0], (n, 1)), np.where(np.arange(n) % 2, -1.0, 1.0)
    best = ((y[:, None] - F) ** 2).sum(axis=0).min()
    for times, holds in ((1, True), (10, False)):
        totals, loss = np.zeros(2), 0.0
        for t in range(n):
            weights = np.exp(-times / 8 * (totals - totals.min()))
            loss += (y[t] - weights @ F[t] / weights.sum()) ** 2
            totals += (y[t] - F[t]) ** 2
        assert bool(loss - best <= theory.experts_bound(2, kind="average")) is holds
    own = ((y - aggregated(F, y, 1.0, "average")) ** 2).sum()
    assert own - best <= theory.experts_bound(2, kind="average")


def unclipped(B, weights, row):
    """Return the aggregating rule's formula as the loop has it, but for its last line."""
    low, high = row.min(), row.max()
    from_low = np.log(weights @ np.exp(-(row - low) / B * ((row + low) / B + 2.0) / 2))
    from_high = np.log(weights @ np.exp(-(high - row) / B * (2.0 - (row + high) / B) / 2))
    middle = 0.5 * (low + high) * (1.0 + (low - high) / (2.0 * B))
    return middle + 0.5 * B * (from_high - from_low)


@pytest.mark.parametrize("side", [1.0, -1.0])
@pytest.mark.parametrize("B", [1.0, 0.3, 2.5, 7.0, 1e-150, 1e150])
def test_rounding_never_takes_the_aggregate_beyond_B(B, side):
    """The exact aggregate lies among its experts, and next to B where nearly all weight is at B.

    There it is a sum of rounded terms of the size of B, each with a part of the other expert that
    cancels: some sums land a digit beyond B, as those of the formula do here (the control).
    """
    beyond = 0
    for weight in np.exp([-20.0, -40.0, -80.0, -300.0]):
        weights = np.array([1.0 - weight, weight])
        for other in np.linspace(-B, B, 400, endpoint=False):
            row = side * np.array([B, other])
            forecast = expert_forecast(AGGREGATING, B, weights, row)
            assert abs(forecast) <= B
            assert forecast == pytest.approx(side * B, rel=1e-7)
            beyond += abs(unclipped(B, weights, row)) > B
    assert beyond


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_learners_on_data_keep_the_bound(kind, seed):
    X, y = data(seed=seed)
    B = 1.0 if kind != "hedge" else 4.0
    run = okl.run(okl.Experts(grid(), B=B, kind=kind), X, y)
    best = min(okl.run(one, X, y).losses.sum() for one in grid())
    assert run.losses.sum() - best <= theory.experts_bound(7, B, kind, n=len(X))
    assert run.sizes[-1] == sum(okl.run(one, X, y).sizes[-1] for one in grid())


def test_shared_features_are_computed_once(monkeypatch):
    X, y = data()
    rows = []
    block = taylor_block
    monkeypatch.setattr(okl.Experts, "_advise", lambda *data: None)  # looks at features too
    monkeypatch.setattr(
        features, "taylor_block", lambda A, *rest: (rows.append(len(A)), block(A, *rest))[1]
    )
    lams = (0.1, 1.0, 10.0)
    learners = [okl.PKAWV(okl.TaylorFeatures(2, sigma=0.7), lam=lam) for lam in lams]
    learners.append(okl.WithFeatures(okl.TaylorFeatures(2, sigma=0.7), okl.OGD()))
    together = okl.Experts(learners)
    run = okl.run(together, X, y)
    assert sum(rows) == len(X)
    rows.clear()
    together.predict(X)
    assert sum(rows) == len(X)
    rows.clear()
    other = okl.Experts([*learners, okl.PKAWV(okl.TaylorFeatures(2, sigma=0.71))])
    okl.run(other, X, y)
    assert sum(rows) == 2 * len(X)
    monkeypatch.undo()
    F = np.stack([okl.run(one, X, y).predictions for one in learners], axis=1)
    # Sums over a few experts may round otherwise where their arrays touch in memory.
    assert_allclose(run.predictions, aggregated(F, y, 1.0, "aggregating"), rtol=1e-12, atol=1e-14)


def test_shared_features_never_serve_an_old_block():
    """Blocks may lie at one address, one after the other."""
    X, y = data(500)
    learners = [okl.PKAWV(okl.TaylorFeatures(2), lam=lam) for lam in (0.1, 1.0)]
    one, other = okl.Experts(learners), okl.Experts(learners)
    buffer = np.empty((50, 2))
    for start in range(0, len(X), 50):
        buffer[:] = X[start : start + 50]
        one.partial_fit(buffer, y[start : start + 50])
        assert_array_equal(one.predict(buffer), one.predict(buffer.copy()))
    other.partial_fit(X, y)
    assert_allclose(one.predict(X), other.predict(X), rtol=1e-10)


def test_the_learners_given_are_not_changed_and_may_repeat():
    X, y = data()
    learner = okl.LinearAWV()
    together = okl.Experts([learner, learner])
    run = okl.run(together, X, y)
    assert learner.rounds == 0
    assert_allclose(run.predictions, okl.run(learner, X, y).predictions, rtol=1e-10, atol=1e-12)
    assert_allclose(together.weights, [0.5, 0.5])


def test_the_weights_find_the_best_learner():
    X, y = data()
    together = okl.Experts(grid())
    okl.run(together, X, y)
    found = [okl.run(one, X, y).losses.sum() for one in grid()]
    assert int(np.argmax(together.weights)) == int(np.argmin(found))
    assert together.weights.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("kind", ["aggregating", "average"])
def test_labels_beyond_B_are_refused_and_change_nothing(kind):
    X, y = data(60)
    learner = okl.Experts(grid(), B=1.0, kind=kind).partial_fit(X[:30], y[:30])
    before = learner.predict(X)
    bad = y[30:].copy()
    bad[7] = -1.5
    for call in (
        lambda: learner.partial_fit(X[30:], bad),
        lambda: okl.run(learner, X[30:], bad),
        lambda: okl.run(learner, iter([(X[30:], bad)])),
    ):
        with pytest.raises(ValueError, match=r"y has -1.5 at row 7, outside \[-B, B\]"):
            call()
        assert learner.rounds == 30
        assert_array_equal(learner.predict(X), before)
    with pytest.raises(ValueError, match="raise B"):
        learner.learn_one(X[30], 1.5)
    okl.run(okl.Experts(grid(), B=1.5, kind=kind), X[30:], bad)


def test_what_does_not_go_together_is_refused():
    X, y = data(20)
    hinge = [okl.FOGD(), okl.FOGD(eta=1.0)]
    for learner, named in (
        (okl.Experts([okl.FOGD(), okl.LinearAWV()]), "one loss"),
        (okl.Experts(hinge), "hedge"),
        (okl.Experts([okl.OGD, okl.OGD()]), "learners"),
        (okl.Experts(okl.OGD()), "learners"),
        (okl.Experts([okl.OGD(eta=-1.0)]), "eta"),
    ):
        with pytest.raises(ValueError, match=named):
            learner.partial_fit(X, np.where(y > 0, 1.0, -1.0))
        assert learner.rounds == 0 and learner.size == 0
    run = okl.run(okl.Experts(hinge, kind="hedge"), X, np.where(y > 0, 1.0, -1.0))
    assert run.loss == "hinge" and run.mistakes is not None
    with pytest.raises(ValueError, match="weights"):
        _ = okl.Experts(hinge, kind="hedge").weights


@pytest.mark.skipif(not COMPILED, reason="numpy warns of overflows where compiled code does not")
def test_trouble_of_a_learner_names_it_and_stays():
    X, y = data(60)
    learner = okl.Experts([okl.LinearAWV(), okl.OGD(eta=1e200)])
    with pytest.raises(FloatingPointError, match=r"learner 1: OGD, round \d+"):
        learner.partial_fit(X, y)
    with pytest.raises(FloatingPointError, match="learner 1"):
        learner.predict(X)


def test_nested_experts_save_and_go_on(tmp_path):
    X, y = data(120)
    nested = okl.Experts([okl.Experts(grid()[:3]), okl.Experts(grid()[3:], kind="average")])
    okl.run(nested, X[:70], y[:70])
    nested.save(tmp_path / "a.npz")
    again = okl.load(tmp_path / "a.npz")
    assert isinstance(again, Learner)
    assert_array_equal(
        okl.run(again, X[70:], y[70:]).predictions, okl.run(nested, X[70:], y[70:]).predictions
    )
