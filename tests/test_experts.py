"""Aggregation of learners: the forecasts of the definition, the bounds, features shared."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import oklnumba as okl
from oklnumba import losses, theory
from oklnumba.components import features
from oklnumba.core import guard
from oklnumba.core.arrays import aligned_zeros
from oklnumba.hot import experts as loops
from oklnumba.hot.experts import AGGREGATING, PEAK, POTENTIAL, expert_forecast
from oklnumba.hot.primitives.features import taylor_block
from oklnumba.hot.primitives.jit import DONE
from oklnumba.learners import experts
from tests.battery import contents
from tests.checks import COMPILED, arrays, refused, troubled
from tests.reference import naive_linear
from tests.streams import smooth

KINDS = ("aggregating", "average", "hedge", "mlpoly")


def data(n=300 if COMPILED else 60):
    X, y = smooth(n, d=2)
    return X, np.clip(y, -1, 1)


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


SETTINGS = [  # kind, B, share
    *((kind, B, 0.0) for kind in ("aggregating", "average") for B in (1.0, 2.5, None)),
    *((kind, B, 0.05) for kind in ("aggregating", "average") for B in (1.0, None)),
    *(("hedge", B, share) for B, share in ((1.0, 0.0), (2.5, 0.0), (4.0, 0.01))),
]


@pytest.mark.parametrize(("kind", "B", "share"), SETTINGS)
def test_forecasts_are_those_of_the_definition(kind, B, share):
    X, y = data()
    F = np.stack([okl.run(one, X, y).predictions for one in grid()], axis=1)
    run = okl.run(okl.Experts(grid(), B=B, kind=kind, share=share), X, y)
    expected = naive_linear.aggregate(F, y, B, kind, lambda f, label: (f - label) ** 2, share)
    assert_allclose(run.predictions, expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("loss", ["squared", "hinge", "logistic"])
def test_mlpoly_is_that_of_the_definition(loss):
    X, y = data()
    learners, found = grid(), losses.get(loss)
    if found.classes:
        y = np.where(y > 0.0, 1.0, -1.0)
        learners = [okl.OGD(eta, loss=loss) for eta in (0.01, 0.1, 1.0)]
    F = np.stack([okl.run(one, X, y).predictions for one in learners], axis=1)
    together = okl.Experts(learners, kind="mlpoly")
    run = okl.run(together, X, y)
    assert_allclose(run.predictions, naive_linear.mlpoly(F, y, found.derivative), rtol=1e-7)
    regrets = run.losses.sum() - found.value(F, y[:, None]).sum(axis=0)
    bounds = theory.mlpoly_bound(F, run.predictions, y, loss)
    assert (regrets <= bounds).all()
    held = arrays(together)
    own = np.sqrt((held["tally"][PEAK] + held["squares"]) * held["tally"][POTENTIAL])
    assert_allclose(own, bounds, rtol=1e-9)


def aggregated(F, y, B, kind, loss="squared", share=0.0):
    """Return the aggregate's forecasts of given experts."""
    B = experts.loops.LEARNED if B is None else float(B)
    rule = loops.Aggregation(experts.KINDS[kind], losses.get(loss).code, B, share)
    totals, squares, weights = (aligned_zeros(F.shape[1]) for _ in range(3))
    out = loops.Aggregates(np.empty(len(y)), np.empty(len(y)))
    state = loops.ExpertsState(totals, squares, np.zeros(loops.TALLY))
    assert loops.experts_rounds(F, y, True, rule, 0, state, weights, out) == (len(y), DONE)
    return out.forecasts


values = st.sampled_from([-1.0, -0.999, -0.5, 0.0, 1e-9, 0.3, 0.9, 1.0, 1.5, -7.0])
rounds = st.lists(
    st.tuples(st.lists(values, min_size=5, max_size=5), st.floats(-1, 1), st.integers(1, 6)),
    min_size=1,
    max_size=10,
)


@pytest.mark.slow
@settings(max_examples=200 if COMPILED else 20)
@given(
    rows=rounds,
    B=st.sampled_from([1.0, 1e-3, 5.0, 1e6]),
    share=st.sampled_from([0.0, 0.0, 1e-6, 0.01, 0.1, 0.7]),
)
def test_bound_of_the_squared_loss_against_an_expert_and_sequences_of_them(rows, B, share):
    F = B * np.array([f for f, _, times in rows for _ in range(times)])
    y = B * np.array([label for _, label, times in rows for _ in range(times)])
    switches = range(min(5, len(y)) if share else 1)
    for kind, most in (("aggregating", B), ("average", B), ("hedge", 4.0 * B * B)):
        shown = F.clip(-B, B) if kind == "hedge" else F
        own = ((y - aggregated(shown, y, most, kind, share=share)) ** 2).sum()
        for k in switches:
            least = naive_linear.best_sequence((y[:, None] - shown) ** 2, k)
            bound = theory.fixed_share_bound(5, len(y), k, share, B=most, kind=kind)
            assert own - least <= bound + 1e-9 * B**2 * len(y)


@settings(max_examples=250 if COMPILED else 20)
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


# ---- streams whose labels grow, whose best expert changes, or whose labels have no bound ----

jumps = st.lists(
    st.tuples(
        st.lists(values, min_size=4, max_size=4), st.floats(-1, 1),
        st.sampled_from([1e-3, 0.1, 1.0, 10.0, 1e4]), st.integers(1, 5),
    ),
    min_size=1, max_size=12,
)  # fmt: skip


def stream_of(rows):
    """Return forecasts and labels of rounds, each with a scale and repeated."""
    F = np.array([scale * np.array(f) for f, _, scale, times in rows for _ in range(times)])
    y = np.array([scale * label for _, label, scale, times in rows for _ in range(times)])
    return F, y


@settings(max_examples=120 if COMPILED else 20)
@given(rows=jumps, sorted_by_size=st.booleans(), share=st.sampled_from([0.0, 0.01, 0.3]))
def test_bound_where_labels_grow(rows, sorted_by_size, share):
    if sorted_by_size:
        rows = sorted(rows, key=lambda row: row[2])
    F, y = stream_of(rows)
    switches = range(min(3, len(y)) if share else 1)
    best = [naive_linear.best_sequence((y[:, None] - F) ** 2, k) for k in switches]
    for kind in ("aggregating", "average"):
        regret = ((y - aggregated(F, y, None, kind, share=share)) ** 2).sum()
        for k in switches:
            bound = theory.fixed_share_bound(4, len(y), k, share, B=None, kind=kind, y=y)
            assert regret - best[k] <= bound + 1e-9 * (regret + bound)
            assert share or bound == pytest.approx(theory.experts_bound(4, None, kind, y=y))


@settings(max_examples=120 if COMPILED else 20)
@given(rows=jumps, loss=st.sampled_from(["squared", "absolute", "hinge", "logistic"]))
def test_bound_of_mlpoly(rows, loss):
    F, y = stream_of(rows)
    found = losses.get(loss)
    y = np.where(y > 0, 1.0, -1.0) if found.classes else y
    forecasts = aggregated(F, y, None, "mlpoly", loss)
    regrets = found.value(forecasts, y).sum() - found.value(F, y[:, None]).sum(axis=0)
    bounds = theory.mlpoly_bound(F, forecasts, y, loss)
    scale = np.abs(found.value(F, y[:, None])).sum()
    assert (regrets <= bounds + 1e-9 * scale).all()
    assert (theory.mlpoly_bound(F[:1], forecasts[:1], y[:1], loss) <= bounds + 1e-9).all()


@pytest.mark.parametrize("scale", [1e-90, 1e60, 1e120])
def test_the_bound_of_mlpoly_has_the_unit_of_the_losses(scale):
    """Losses of 1e-180 are doubles as others are, but not their squares."""
    F, y = np.array([[0.0, 1.0]] * 3), np.array([1.0, 0.0, 1.0])
    forecasts = aggregated(F, y, None, "mlpoly")
    bounds = theory.mlpoly_bound(F, forecasts, y)
    found = theory.mlpoly_bound(scale * F, scale * forecasts, scale * y)
    assert_allclose(found / scale**2, bounds, rtol=1e-9)


@pytest.mark.parametrize("kind", ["aggregating", "average"])
@pytest.mark.parametrize("B", [1e-150, 1e-157])
def test_the_bound_where_the_rate_has_reached_its_largest(kind, B):
    """Weights hardly move where B^2 is below the floor of the rate; the bound says so."""
    n = 40
    F, y = np.tile([B, -B], (n, 1)), np.full(n, -B)
    forecasts = aggregated(F, y, B, kind)
    regret = np.sum(((forecasts - y) / 1e-150) ** 2) * 1e-300
    assert regret <= theory.experts_bound(2, B, kind)
    assert regret <= theory.fixed_share_bound(2, n, 0, 0.0, B=B, kind=kind)
    switches = theory.experts_bound(2, None, kind, y=y) - theory.experts_bound(1, None, kind, y=y)
    assert switches == pytest.approx(theory.experts_bound(2, B, kind), abs=1e-310)


def blocks(n, length):
    """Return two constant experts, and labels that are one's, then the other's, in turn."""
    return np.tile([-1.0, 1.0], (n, 1)), np.where(np.arange(n) // length % 2, 1.0, -1.0)


def test_half_of_each_bound_is_exceeded_somewhere():
    """Controls: none of the bounds is so loose that nothing could break it."""

    def squares(forecasts, y):
        return ((y - forecasts) ** 2).sum()

    F, y = blocks(200, 200)
    assert squares(aggregated(F, y, 1.0, "aggregating"), y) > theory.experts_bound(2) / 2
    # the first label, which nothing tells the size of, and each much larger one after it
    y = 10.0 ** np.arange(8)
    regret = squares(aggregated(y[:, None], y, None, "aggregating"), y)
    assert regret > 0.5 * theory.experts_bound(1, B=None, y=y)
    F, y = blocks(400, 40)
    bound = theory.fixed_share_bound(2, 400, 9, 0.02)
    assert bound / 2 < squares(aggregated(F, y, 1.0, "aggregating", share=0.02), y) <= bound
    assert squares(aggregated(F, y, 1.0, "aggregating"), y) > bound  # without a share
    F, y = blocks(100, 100)
    p = aggregated(F, y, None, "mlpoly", "absolute")
    assert np.abs(y - p).sum() > 0.5 * theory.mlpoly_bound(F, p, y, "absolute")[0]


@pytest.mark.parametrize("B", [1.0, None])
def test_an_expert_comes_back_from_any_loss(B):
    """After 100,000 rounds of the greatest loss its weight is e^-200000, but for the share."""
    n = 100_000 if COMPILED else 500
    F, y = np.tile([-1.0, 1.0], (n + 50, 1)), np.ones(n + 50)
    y[n:] = -1.0
    for share, rounds_lost in ((0.001, 10), (0.0, 50)):
        loss = (y - aggregated(F, y, B, "aggregating", share=share)) ** 2
        assert (loss[n : n + rounds_lost - 1] > 0.1).any()
        assert (loss[n + rounds_lost :] < 0.01).all()
        assert np.isfinite(loss).all()
    assert loss[n:].min() > 3.9  # without a share it does not


@pytest.mark.parametrize("kind", KINDS)
def test_a_million_rounds_and_outliers_leave_finite_weights(kind):
    n = 1_000_000 if COMPILED else 1000
    rng = np.random.default_rng(3)
    y = rng.standard_normal(n) / np.maximum(rng.random(n), 1e-6)  # heavy tails
    F = np.column_stack([y - 0.1, 1e6 * np.ones(n), np.zeros(n)])
    B = 1e14 if kind == "hedge" else None
    share = 0.0 if kind == "mlpoly" else 1e-4
    forecasts = aggregated(F, y, B, kind, share=share)
    assert np.isfinite(forecasts).all()
    regret = ((y - forecasts) ** 2 - 0.1**2).sum()
    if kind == "mlpoly":
        assert regret < 3 * (y**2).max()
    else:
        assert regret <= theory.fixed_share_bound(3, n, 0, share, B=B, kind=kind, y=y)


@pytest.mark.parametrize(("kind", "B", "share"), [*SETTINGS, ("mlpoly", 1.0, 0.0)])
def test_a_forecast_is_the_next_round_s_however_a_stream_is_cut(kind, B, share):
    X, y = data(80)
    learners = [okl.OGD(eta) for eta in (0.01, 0.1, 1.0)]
    whole, together = (okl.Experts(learners, B=B, kind=kind, share=share) for _ in range(2))
    expected = okl.run(whole, X, y).predictions
    assert together.predict_one(X[0]) == 0.0
    for rows in np.split(np.arange(80), [1, 2, 50, 51]):
        ahead = together.predict_one(X[rows[0]])
        run = okl.run(together, X[rows], y[rows])
        assert_array_equal(run.predictions, expected[rows])
        assert run.predictions[0] == pytest.approx(ahead, rel=1e-10, abs=1e-12)
        assert together.weights.sum() == pytest.approx(1.0)
        assert (together.weights >= share / 3).all()
    assert_array_equal(together.weights, whole.weights)


def test_before_the_first_label_that_is_not_0_the_forecast_is():
    X, y = data(40)
    y[:20] = 0.0
    run = okl.run(okl.Experts([okl.FOGD(loss="squared")] * 2, B=None, share=0.1), X, y)
    F = np.ones((40, 2))
    assert (aggregated(F, y, None, "aggregating", share=0.1)[:21] == 0.0).all()
    assert (np.abs(run.predictions) <= np.maximum.accumulate(np.append(0.0, abs(y)))[:-1]).all()


@pytest.mark.parametrize("scale", [1e-170, 1e-100, 1.0, 1e70])
@pytest.mark.parametrize("kind", ["aggregating", "average", "mlpoly"])
def test_the_scale_of_the_labels_is_no_matter(kind, scale):
    """Down to where squares are no numbers any more, and there nothing breaks."""
    X, y = data()
    F = np.stack([y + 0.3, np.sin(9 * X[:, 0]), -y], axis=1)
    of_one = aggregated(F, y, None, kind)
    forecasts = aggregated(scale * F, scale * y, None, kind) / scale
    if scale > 1e-150 and not (kind == "mlpoly" and scale < 1e-50):
        assert_allclose(forecasts, of_one, rtol=1e-6, atol=1e-8)
    assert (np.abs(forecasts) <= 1.4).all()


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


def test_shared_features_are_computed_once(monkeypatch):
    X, y = data()
    rows = []
    block = taylor_block
    monkeypatch.setattr(okl.Experts, "_warn_of_rows", lambda *data: None)  # looks at features too
    monkeypatch.setattr(
        features, "taylor_block", lambda A, *rest: (rows.append(len(A)), block(A, *rest))[1]
    )
    lams = (0.1, 1.0, 10.0)
    learners = [okl.PKAWV(okl.TaylorFeatures(2, sigma=0.7), lam=lam) for lam in lams]
    learners.append(okl.WithFeatures(okl.TaylorFeatures(2, sigma=0.7), okl.LinearAWV()))
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


@pytest.mark.parametrize("kind", ["aggregating", "average"])
def test_labels_beyond_B_are_refused_and_change_nothing(kind):
    X, y = data(60)
    learner = okl.Experts(grid(), B=1.0, kind=kind).partial_fit(X[:30], y[:30])
    before, bad = contents(learner), y[30:].copy()
    bad[7] = -1.5
    for call, message in (
        (lambda: learner.partial_fit(X[30:], bad), r"y has -1.5 at row 7, outside \[-B, B\]"),
        (lambda: okl.run(learner, X[30:], bad), r"y has -1.5 at row 7, outside \[-B, B\]"),
        (lambda: okl.run(learner, iter([(X[30:], bad)])), "y has -1.5 at row 7"),
        (lambda: learner.learn_one(X[30], 1.5), "raise B"),
    ):
        refused(message, call)
        assert contents(learner) == before
    okl.run(okl.Experts(grid(), B=1.5, kind=kind), X[30:], bad)


def test_weights_need_a_round_and_a_loss_is_that_of_the_learners():
    X, y = data(20)
    hinge = [okl.FOGD(), okl.FOGD(eta=1.0)]
    run = okl.run(okl.Experts(hinge, kind="hedge"), X, np.where(y > 0, 1.0, -1.0))
    assert run.loss == "hinge" and run.mistakes is not None
    refused("weights", lambda: okl.Experts(hinge, kind="hedge").weights)


# ---- threads ----


def twins():
    """Return learners of which some differ in the forecaster only, or in nothing."""
    kernel, features = okl.Gaussian(0.5), okl.TaylorFeatures(2, sigma=0.7)
    return [
        okl.PKAWV(features, lam=0.1),
        okl.NystromAWV(kernel, mu=0.1, forecaster="ridge"),
        okl.LinearAWV(0.5),
        okl.PKAWV(okl.TaylorFeatures(2, sigma=0.7), lam=0.1, forecaster="ridge"),
        okl.NystromAWV(kernel, mu=0.1),
        okl.NystromAWV(kernel, mu=0.1, max_size=9),
        okl.LinearRidge(0.5, discount=0.9),
        okl.LinearAWV(0.5),
        okl.NystromAWV(kernel, mu=0.1, discount=0.98),
        okl.KernelAWV(kernel),
    ]


def test_every_learner_has_the_bits_it_has_alone(monkeypatch, tmp_path):
    """Also where blocks, single rounds and a file are between.

    Alone FOGD makes the features inside its loop, of each length of a block.
    """
    X, y = data(1100 if COMPILED else 60)
    played = []
    rounds = experts.loops.experts_rounds

    def note(F, y, learns, *rest):
        played.extend([F] if learns else [])
        return rounds(F, y, learns, *rest)

    monkeypatch.setattr(experts.loops, "experts_rounds", note)
    fourier = okl.FourierFeatures(37, sigma=0.7, seed=3)
    learners = twins()[:-1]  # BLAS, the last one, has the bits of its blocks
    learners += [okl.FOGD(fourier, loss="squared", eta=eta) for eta in (0.01, 0.3)]
    learners.append(okl.FOGD(loss="squared", n_frequencies=37, sigma=0.7, seed=3))  # the same map
    learners.append(okl.WithFeatures(okl.FourierFeatures(37, sigma=0.7, seed=3), okl.OGD()))
    together = okl.Experts(learners)
    half = len(X) // 2
    for rows in np.split(np.arange(half), [7, 9, 20]):
        together.partial_fit(X[rows], y[rows])
    together.predict(X[:5])
    together.learn_one(X[half], y[half])
    together.save(tmp_path / "half.npz")
    together = okl.load(tmp_path / "half.npz")
    together.partial_fit(X[half + 1 :], y[half + 1 :])
    F, held = np.concatenate(played), arrays(together)
    for i, one in enumerate(learners):
        run = okl.run(one, X, y)
        assert_array_equal(F[:, i], run.predictions, err_msg=repr(one))
        for name, values in arrays(one).items():  # digits of what keeps counts
            if name not in ("meta", "digest"):
                assert_array_equal(held[f"expert{i}_{name}"], values, err_msg=repr(one))


@pytest.mark.parametrize("cores", [1, 2, 4])
def test_threads_leave_the_bits(cores, monkeypatch):
    X, y = data(300 if COMPILED else 60)
    monkeypatch.setattr(guard, "get_pool", cache(guard.get_pool.__wrapped__))
    monkeypatch.setattr(guard, "count_cores", lambda: 1)
    serial = okl.Experts([*twins(), *grid()], share=0.01)
    expected = okl.run(serial, X, y)
    monkeypatch.setattr(guard, "count_cores", lambda: cores)
    learner = okl.Experts([*twins(), *grid()], share=0.01)
    run = okl.run(learner, X, y)
    assert_array_equal(run.predictions, expected.predictions)
    assert_array_equal(run.sizes, expected.sizes)
    assert_array_equal(learner.predict(X[:40]), serial.predict(X[:40]))
    nested = okl.Experts([okl.Experts(twins(), share=0.01), okl.Experts(grid())])
    again = okl.run(nested, X, y).predictions
    monkeypatch.setattr(guard, "count_cores", lambda: 1)
    assert_array_equal(again, okl.run(nested.reset(), X, y).predictions)


@pytest.mark.skipif(not COMPILED, reason="numpy warns of overflows where compiled code does not")
@pytest.mark.parametrize("cores", [1, 3])
def test_trouble_in_a_thread_names_the_learner(cores, monkeypatch):
    monkeypatch.setattr(guard, "get_pool", cache(guard.get_pool.__wrapped__))
    monkeypatch.setattr(guard, "count_cores", lambda: cores)
    X, y = data(60)
    X[41] = 1e200
    learner = okl.Experts([okl.FOGD(loss="squared"), okl.LinearRidge(), okl.LinearAWV()])
    for call in (learner.partial_fit, learner.partial_fit):
        troubled("learner [12]: Linear", call, X, y)
    troubled("learner [12]: Linear", learner.predict, X)
    X, y = data(60)
    assert learner.reset().partial_fit(X, y).rounds == 60
