"""The best functions in hindsight and the regret against them, by dense solves."""

import re
from fractions import Fraction
from functools import partial
from operator import mul

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse

import oklnumba as okl
from oklnumba import theory
from oklnumba.theory import passes
from tests.checks import refused, troubled
from tests.reference import naive
from tests.streams import KERNEL, SIGNS, K, X, Y


@pytest.mark.parametrize("lam", [1.0, 1e-2])
def test_comparator_is_the_penalised_argmin(lam):
    best = theory.comparator(KERNEL, X, Y, lam)
    a = np.linalg.solve(K + lam * np.eye(60), Y)
    np.testing.assert_allclose(best.predictions, K @ a, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(best.loss, ((Y - K @ a) ** 2).sum(), rtol=1e-9)
    np.testing.assert_allclose(best.norm, np.sqrt(a @ K @ a), rtol=1e-9)


# ---- comparators of every loss ----


@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge"])
def test_norm_ball_comparator(loss):
    y = SIGNS
    best = theory.norm_ball_comparator(KERNEL, X, y, 1.5, loss)
    assert 1.5 * (1 - 1e-5) < best.norm <= 1.5
    a = np.linalg.lstsq(K, best.predictions, rcond=1e-12)[0]
    rng = np.random.default_rng(3)
    for size in (1.0, 1e-1, 1e-2):
        for _ in range(30):
            other = a + size * rng.standard_normal(60) / 8
            other *= min(1.0, 1.5 / np.sqrt(other @ K @ other))
            assert okl.losses.get(loss).value(K @ other, y).sum() > best.loss * (1 - 1e-5)
    wide = theory.norm_ball_comparator(okl.Linear(), [[1.0], [2.0]], [1.0, 1.0], 1e3, loss)
    assert wide.norm <= 1e3
    assert theory.norm_ball_comparator(KERNEL, X, y, 300.0, loss).loss < best.loss


FOURIER = okl.FourierFeatures(30, sigma=0.8, seed=0)  # of full rank


@pytest.mark.parametrize("rank", [pytest.param(0, marks=pytest.mark.slow), 500])
@pytest.mark.parametrize("loss", [one for one in okl.losses.LOSSES if one != "squared"])
def test_the_best_function_for_a_small_lam(loss, rank, monkeypatch):
    monkeypatch.setattr("oklnumba.theory.comparators.LOW_RANK", rank)  # which solver comes first
    classes = okl.losses.get(loss).classes
    for y in (SIGNS, np.sign(X[:, 0])) if classes else (Y, 100.0 * Y, 0.0 * Y):
        for lam, features in ((10.0, None), (1e-2, None), (1e-4, None), (1e-8, FOURIER)):
            best = theory.comparator(KERNEL, X, y, lam, loss, features)
            assert best.loss + lam * best.norm**2 <= best.lower + 1e-6 * (1.0 + best.upper)


@pytest.mark.parametrize("features", [None, FOURIER])
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_the_best_function_for_a_tiny_lam_where_labels_are_separable(loss, features):
    """It is as good as the best one for a larger lam."""
    y = np.sign(X[:, 0])
    larger = theory.comparator(KERNEL, X, y, 1e-7, loss, features)
    for lam in 10.0 ** np.arange(-8, -21, -2):
        best = theory.comparator(KERNEL, X, y, lam, loss, features)
        assert best.lower <= best.upper <= larger.loss + lam * larger.norm**2 + 1e-6


def test_a_norm_ball_that_holds_the_best_of_all_functions():
    """That has the sign of most labels at each of 7 points, each drawn some 100 times."""
    rng = np.random.default_rng(5)
    points, places = rng.normal(size=(7, 2)), rng.integers(0, 7, 700)
    y = np.where(rng.random(700) < rng.random(7)[places], 1.0, -1.0)
    sums = np.bincount(places, y)
    signs, least = np.sign(sums), (np.bincount(places) - np.abs(sums)).sum()
    kernel = okl.Gaussian(1.0)
    assert signs @ np.linalg.solve(kernel(points, points), signs) < 3.0**2
    for radius in (3.0, 5.0):
        best = theory.norm_ball_comparator(kernel, points[places], y, radius)
        assert best.norm <= radius and least <= best.loss <= least + 1e-6 * (1.0 + least)


@pytest.mark.parametrize("landmarks", [2, 60])
def test_comparator_over_features(landmarks):
    features = okl.NystromFeatures(X[:landmarks], KERNEL)
    found = theory.comparator(KERNEL, X, Y, 0.1, features=features)
    exact = theory.comparator(KERNEL, X, Y, 0.1)
    more = found.loss + 0.1 * found.norm**2 - (exact.loss + 0.1 * exact.norm**2)
    assert -1e-9 <= more < 1e-6 if landmarks == 60 else more > 1e-4


def test_a_comparator_that_is_not_proved_is_an_error(monkeypatch):
    monkeypatch.setattr("oklnumba.theory.comparators.GAP", -1.0)  # never near enough
    exact = theory.comparator(KERNEL, X, SIGNS, 0.5, "hinge")
    assert exact.lower <= exact.loss + 0.5 * exact.norm**2 <= exact.upper < exact.lower + 1e-3
    monkeypatch.setattr("oklnumba.theory.hindsight.GAP", -1.0)
    troubled("lower radius=7.0", theory.norm_ball_comparator, KERNEL, X, SIGNS, 7.0)
    monkeypatch.setattr("oklnumba.theory.comparators.MOST_GAP", -1.0)
    with pytest.raises(FloatingPointError, match=r"above the best.*raise lam \(now 0.5\)"):
        theory.comparator(KERNEL, X, SIGNS, 0.5, "hinge")


def test_the_cure_of_a_comparator_in_a_norm_ball_works():
    points, ball = 1e5 * X, partial(theory.norm_ball_comparator, okl.Polynomial(3), y=SIGNS)
    said = r"scale the inputs, X / np.abs\(X\).max\(\), or lower radius=0.5"
    troubled(said, ball, X=points, radius=0.5, loss="squared_hinge")
    assert ball(X=points / np.abs(points).max(), radius=0.5, loss="squared_hinge").norm <= 0.5


# ---- regret curves ----


@pytest.mark.parametrize("lam", [1.0, 1e-2])
def test_regret_curve_is_that_of_dense_comparators(lam):
    run = okl.run(okl.KernelAWV(KERNEL, lam=0.5), X, Y)
    at = [1, 2, 30, 59, 60]
    curve = run.regret(KERNEL, lam, at=at)
    loss = np.cumsum((Y - run.predictions) ** 2)
    last = theory.comparator(KERNEL, X, Y, lam)
    for k, t in enumerate(at):
        best = theory.comparator(KERNEL, X[:t], Y[:t], lam)
        np.testing.assert_allclose(curve.prefix[k], loss[t - 1] - best.loss, atol=1e-9)
        penalised = loss[t - 1] - best.loss - lam * best.norm**2
        np.testing.assert_allclose(curve.prefix_penalised[k], penalised, atol=1e-9)
        final = loss[t - 1] - ((Y - last.predictions)[:t] ** 2).sum()
        np.testing.assert_allclose(curve.final[k], final, atol=1e-9)
        np.testing.assert_allclose(curve.final_penalised[k], final - lam * last.norm**2, atol=1e-9)
    np.testing.assert_allclose(curve.prefix_penalised, run.regret(KERNEL, lam)[np.array(at) - 1])
    np.testing.assert_array_equal(run.regret(KERNEL, lam, at=4).rounds, [15, 30, 45, 60])
    assert run.regret(KERNEL, lam, at=1000).rounds.tolist() == list(range(1, 61))
    for bad in ([0], [61], [3, 3], [2, 1], [], [1.5], 0, "text"):
        refused(r"\bat\b", run.regret, KERNEL, lam, at=bad)


LEARNERS = {
    "hinge": okl.POMDR(KERNEL),
    "logistic": okl.KONS(KERNEL, loss="logistic"),
    "squared_hinge": okl.KONS(KERNEL, loss="squared_hinge"),
    "absolute": okl.FOGD(loss="absolute"),
    "epsilon_insensitive": okl.FOGD(loss="epsilon_insensitive"),
    "huber": okl.FOGD(loss="huber"),
    "quantile(0.9)": okl.KernelOGD(KERNEL, loss="quantile(0.9)"),
}


def least(K, y, lam, loss):
    """Return min_f sum loss + lam |f|^2 by general solvers of SciPy in the primal."""
    rule = okl.losses.get(loss)
    F = naive.gram_features(K)
    if rule.name in ("logistic", "squared_hinge", "huber"):
        value = naive.LOSS_VALUES[loss]
        found = scipy.optimize.minimize(
            lambda w: value(F @ w, y).sum() + lam * w @ w,
            np.zeros(len(y)),
            jac=lambda w: F.T @ naive.LOSS_DERIVATIVES[loss](F @ w, y) + 2 * lam * w,
            method="BFGS",
            options={"gtol": 1e-7},
        )
        return found.fun
    # Kinks: slack variables e >= the loss's two sides, by SciPy's SLSQP.
    n, tube = len(y), 0.1 if loss == "epsilon_insensitive" else 0.0
    sides = [np.diag(y)] if loss == "hinge" else [np.eye(n), -np.eye(n)]
    rights = [np.ones(n)] if loss == "hinge" else [y - tube, -y - tube]
    weights = [0.9, 0.1] if loss == "quantile(0.9)" else [1.0] * len(sides)
    G = np.vstack(
        [np.hstack([w * side @ F, np.eye(n)]) for w, side in zip(weights, sides, strict=True)]
    )
    right = np.concatenate([w * right for w, right in zip(weights, rights, strict=True)])
    found = scipy.optimize.minimize(
        lambda v: lam * v[:n] @ v[:n] + v[n:].sum(),
        np.concatenate([np.zeros(n), np.full(n, 2.0 + np.abs(y).max())]),
        jac=lambda v: np.concatenate([2 * lam * v[:n], np.ones(n)]),
        bounds=[(None, None)] * n + [(0, None)] * n,
        constraints={"type": "ineq", "fun": lambda v: G @ v - right, "jac": lambda v: G},
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-10},
    )
    assert found.success, found.message
    return found.fun


@pytest.mark.parametrize("loss", LEARNERS)
def test_regret_is_in_the_loss_of_the_run(loss):
    n, lam, at = 24, 0.3, [5, 13, 24]
    rule = okl.losses.get(loss)
    y = (SIGNS if rule.classes else Y)[:n]
    run = okl.run(LEARNERS[loss].reset(), X[:n], y)
    assert run.loss == loss
    curve = run.regret(KERNEL, lam, at=at)
    played = np.cumsum(rule.value(run.predictions, y))
    expected = [played[t - 1] - least(K[:t, :t], y[:t], lam, loss) for t in at]
    np.testing.assert_allclose(curve.prefix_penalised, expected, rtol=1e-5, atol=2e-5)
    assert (curve.low <= curve.prefix_penalised).all() and (curve.high >= curve.low).all()
    assert (curve.high - curve.low < 1e-4).all()
    every = theory.regret(run.predictions, KERNEL, X[:n], y, lam, loss)
    np.testing.assert_allclose(every[np.array(at) - 1], expected, rtol=1e-5, atol=2e-5)
    alone = run.regret(KERNEL, lam)
    assert alone.rounds.tolist() == [n] and alone.prefix_penalised == pytest.approx(expected[-1])
    squared = run.regret(KERNEL, lam, loss="squared")
    np.testing.assert_array_equal(squared, theory.regret(run.predictions, KERNEL, X[:n], y, lam))


@pytest.mark.parametrize("loss", ["squared", "hinge"])
def test_one_hindsight_serves_many_runs(loss):
    best = theory.Hindsight(KERNEL, X, SIGNS, 0.5, loss)
    for learner in (okl.POMDR(KERNEL), okl.KernelOGD(KERNEL), okl.FOGD()):
        run = okl.run(learner, X, SIGNS)
        at = [20, 60]
        for got, expected in zip(
            best.regret(run.predictions, at), run.regret(KERNEL, 0.5, at, loss), strict=True
        ):
            np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-6)
    fresh = theory.comparator(KERNEL, X, SIGNS, 0.5, loss)
    np.testing.assert_allclose(best.comparator().predictions, fresh.predictions, atol=1e-3)
    refused("shape", lambda: best.regret(np.zeros(59)))


def test_a_wide_interval_gives_one_warning_and_a_narrow_one_none(recwarn):
    X = np.random.default_rng(0).uniform(-1, 1, (400, 3))
    y = np.sign(np.sin(9 * X[:, 0]) * np.sin(9 * X[:, 1]))
    kernel, poor = okl.Gaussian(0.2), okl.NystromFeatures([[0.0, 0.0, 0.0]], okl.Gaussian(0.2))
    best = theory.Hindsight(kernel, X, y, 0.1, "hinge", features=poor)
    with pytest.warns(
        UserWarning, match=r"after round 400 .* uncertain by \d+ %.*pass more landmarks"
    ):
        found = best.comparator()
    assert found.upper - found.lower > 0.1 * found.upper
    recwarn.clear()
    best.regret(np.zeros(400), at=4)
    theory.Hindsight(kernel, X, y, 0.1, "hinge").comparator()
    assert not recwarn.list


# ---- long streams: a span of landmarks, in passes over blocks ----

N, LAM = 400, 0.3
POINTS = np.random.default_rng(5).uniform(-1, 1, (N, 2))
VALUES = np.sin(4 * POINTS[:, 0]) + np.random.default_rng(6).normal(0, 0.3, N)
RADIAL = [
    okl.Gaussian(0.3),
    okl.Matern(nu=2.5, sigma=0.5),
    okl.Laplacian(8.0, norm=1),
    okl.Metric(okl.Matern(nu=1.5), [1.0, 3.0]),
]


def replay():
    """Play the points in blocks of any size."""
    for part in (slice(0, 1), slice(1, 1), slice(1, 3), slice(3, 150), slice(150, N)):
        yield POINTS[part], VALUES[part]


def textbook(kernel, landmarks, t, lam=LAM):
    """Return P(f) of the best f in the span after t rounds, P(f) - |h|^2 / lam, and min P."""
    K, k, gram = kernel(POINTS[:t]), kernel(POINTS[:t], landmarks), kernel(landmarks)
    y = VALUES[:t]
    c = np.linalg.lstsq(k.T @ k + lam * gram, k.T @ y, rcond=1e-14)[0]
    a, square = y - k @ c, c @ gram @ c
    h = a @ K @ a - 2 * lam * a @ k @ c + lam**2 * square  # |sum a_i k(x_i, .) - lam f|^2
    upper = a @ a + lam * square
    return upper, upper - h / lam, lam * y @ np.linalg.solve(K + lam * np.eye(t), y)


@pytest.mark.parametrize("kernel", RADIAL, ids=repr)
def test_the_interval_of_a_span_is_that_of_the_textbook(kernel):
    landmarks, at = POINTS[::5], [100, 150, N]
    rows = passes.Replay(passes.as_source(replay), False)
    estimates, rule = [], okl.losses.get("squared")
    span = passes.Span(kernel, landmarks, rows, LAM, rule)
    span.solve(at)
    expected = [textbook(kernel, landmarks, t) for t in at]
    for seed in range(15):
        found = span.bound(at, seed)
        for one, (upper, lower, least) in zip(found, expected, strict=True):
            assert one.upper == pytest.approx(upper, rel=1e-7)
            assert one.lower <= lower <= least <= one.upper and one.confidence == 0.999
            assert one.upper - 0.1 * (one.upper - one.lower) > least  # a tenth of it does not
        estimates.append((upper - found[-1].lower) / (upper - lower))
    wasteful = 1.0 + 0.15 * passes.DEVIATIONS
    assert 1.0 < min(estimates) and max(estimates) < wasteful
    a = passes.Span(kernel, landmarks, rows, LAM, rule).solve(at)[-1]
    np.testing.assert_allclose(VALUES - a.predictions, VALUES - found[-1].predictions, atol=1e-6)


@pytest.mark.parametrize("options", [{}, {"landmarks": 1}, {"features": True}], ids=str)
def test_intervals_hold_to_the_last_digit(options):
    """By exact fractions: sums of squares round too, where the span holds the best function."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x, y, lam = rng.integers(1, 9, 40) / 8, rng.standard_normal(40), 10.0 ** rng.integers(6)
        if "features" in options:
            options = {"features": okl.NystromFeatures(x[:1, None], okl.Linear())}
        best = theory.Hindsight(okl.Linear(), x[:, None], y, lam, **options)
        p, at = rng.standard_normal(40) / 10, np.array([1, 2, 5, 40])
        curve, found = best.regret(p, at=at), best.comparator()
        X, Y, P = ([Fraction(v) for v in values] for values in (x, y, p))
        for t, low, high in zip(at, curve.low, curve.high, strict=True):
            product = sum(map(mul, X[:t], Y[:t]))
            least = sum(v * v for v in Y[:t])
            least -= product**2 / (sum(v * v for v in X[:t]) + Fraction(lam))
            played = sum((v - f) ** 2 for v, f in zip(Y[:t], P[:t], strict=True))
            assert low <= played - least <= high
        assert found.lower <= least <= found.upper


@pytest.mark.parametrize("loss", ["squared", "squared_hinge", "hinge", "absolute"])
def test_intervals_of_a_span_and_of_other_losses_hold_to_the_last_digit(loss):
    """By exact fractions, for labels that are all alike: the best f is w x, w where P' is 0."""
    span = okl.NystromFeatures([[1.0]], okl.Linear())
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n, lam = int(rng.integers(2, 40)), float(10.0 ** rng.integers(3, 8))
        x, y = rng.integers(-8, 9, n) / 8, np.ones(n)
        if loss == "squared":
            y, lam = rng.standard_normal(n), float(10.0 ** rng.integers(-8, 8))
        X, Y, lam_ = *([Fraction(v) for v in values] for values in (x, y)), Fraction(lam)
        # Here lam is so large that no forecast reaches the kink.
        product, square = sum(map(mul, X, Y)), sum(v * v for v in X)
        if "squared" in loss:
            least = sum(v * v for v in Y) - product**2 / (square + lam_)
        else:
            least = sum(map(abs, Y)) - product**2 / (4 * lam_)
        best = theory.comparator(okl.Linear(), x[:, None], y, lam, loss, span)
        assert best.lower <= least <= best.upper
        for features in (None, span):
            data = okl.Linear(), x[:, None], y, lam, loss
            best = theory.Hindsight(*data, features=features).comparator()
            assert best.lower <= least <= best.upper


def test_the_interval_holds_where_only_the_longest_frequencies_tell_rows_apart():
    rng = np.random.default_rng(0)
    clusters = rng.standard_normal((5, 2))[rng.integers(0, 5, 300)]
    rows = clusters + 0.01 * rng.standard_normal((300, 2)), np.sign(rng.random(300) - 0.5)
    kernel = okl.Matern(nu=1.5, sigma=3.0)
    exact = theory.Hindsight(kernel, *rows, LAM).comparator()
    assert theory.Hindsight(kernel, *rows, LAM, landmarks=150).comparator().lower < exact.lower


def test_a_stream_is_played_again_for_each_pass():
    kernel = RADIAL[0]
    exact = theory.Hindsight(kernel, POINTS, VALUES, LAM)
    best = theory.Hindsight(kernel, replay, lam=LAM)  # landmarks until it is narrow
    assert best.rounds == N
    run = okl.run(okl.KernelAWV(kernel), POINTS, VALUES)
    truth, found = (one.regret(run.predictions, at=[1, 2, 149, N]) for one in (exact, best))
    assert (found.low <= truth.high).all() and (truth.low <= found.high).all()
    last = best.comparator()
    assert last.upper - last.lower < 1e-3 * last.upper
    np.testing.assert_allclose(last.predictions, exact.comparator().predictions, atol=1e-2)
    arrays = theory.Hindsight(kernel, POINTS, VALUES, LAM, landmarks=60)
    blocks = theory.Hindsight(kernel, list(replay()), lam=LAM, landmarks=60)
    assert arrays.comparator().upper == pytest.approx(blocks.comparator().upper, rel=1e-9)
    assert theory.Hindsight(kernel, POINTS, 0 * VALUES, landmarks=60).comparator()[0] == 0.0
    assert run.regret(kernel, LAM, at=1, data=replay).low == pytest.approx(found.low[-1:])

    def refill():
        X, y = np.empty((50, POINTS.shape[1])), np.empty(50)
        for start in range(0, N, 50):
            X[:], y[:] = POINTS[start : start + 50], VALUES[start : start + 50]
            yield X, y

    assert run.regret(kernel, LAM, at=1, data=refill).low == pytest.approx(found.low[-1:])
    for scale in (1e-8, 1.0, 1e8):
        run, turned = okl.run(okl.KernelAWV(kernel), POINTS, scale * VALUES), scale * VALUES[::-1]
        refused("another label", run.regret, kernel, LAM, data=(POINTS[::-1], turned))
    for labels in (VALUES > 0, np.ma.array(VALUES, mask=POINTS[:, 0] < 0)):
        run = okl.run(okl.KernelAWV(kernel), POINTS, labels, labels="optional")
        found = run.regret(kernel, LAM, at=1, data=lambda: [(POINTS, labels)])  # noqa: B023
        assert found.prefix == pytest.approx(run.regret(kernel, LAM, at=1).prefix, abs=0.1)
    with pytest.raises(ValueError, match="keeps|data"):
        okl.run(okl.KernelAWV(kernel), replay(), record=7).regret(kernel, LAM, data=replay)


@pytest.mark.slow
@pytest.mark.parametrize("loss", LEARNERS)
def test_the_interval_of_a_span_for_other_losses(loss):
    classes = okl.losses.get(loss).classes
    y = np.where(VALUES > 0, 1.0, -1.0) if classes else VALUES
    for kernel in (*RADIAL[:2], okl.Polynomial(2)):
        exact = theory.comparator(kernel, POINTS, y, LAM, loss)
        found = theory.Hindsight(kernel, POINTS, y, LAM, loss, landmarks=150).comparator()
        assert found.lower <= exact.upper and exact.lower <= found.upper
        assert found.upper - found.lower < 0.02 * found.upper
        value = okl.losses.get(loss).value(found.predictions, y).sum() + LAM * found.norm**2
        assert exact.lower <= value == pytest.approx(found.upper, rel=1e-6)


def test_without_frequencies_the_interval_is_certain():
    for kernel in (okl.Linear(), okl.Polynomial(3)):
        exact = theory.comparator(kernel, POINTS, VALUES, LAM)
        found = theory.Hindsight(kernel, POINTS, VALUES, LAM, landmarks=40).comparator()
        assert found.confidence == 1.0 and found.lower <= exact.upper
        assert exact.lower <= found.upper < exact.upper * (1 + 1e-6)
        assert found.upper - found.lower < 1e-3 * found.upper
        poor = theory.Hindsight(kernel, POINTS, VALUES, LAM, landmarks=POINTS[:1])
        with pytest.warns(UserWarning, match="pass more landmarks"):
            found = poor.comparator()
        assert found.lower <= exact.lower and exact.upper <= found.upper


@pytest.mark.parametrize("loss", ["squared", "logistic", "absolute"])
def test_where_the_kernel_is_0_the_best_function_is_0(loss):
    zeros, y = np.zeros((5, 2)), np.array([1.0, -1.0, 1.0, 1.0, -1.0])
    exact = theory.Hindsight(okl.Linear(), zeros, y, LAM, loss).comparator()
    for landmarks in (3, zeros[:1]):
        found = theory.Hindsight(okl.Linear(), zeros, y, LAM, loss, landmarks=landmarks)
        assert found.comparator()[3:5] == pytest.approx(exact[3:5], rel=1e-9)
        assert found.comparator().norm == 0.0


def test_streams_that_cannot_be_played_again_are_refused():
    for bad in (replay(), POINTS, 3):
        refused("a stream that can be played again", theory.Hindsight, KERNEL, bad, lam=1.0)
    refused("the stream has no rows with a label", theory.Hindsight, KERNEL, [], lam=1.0)
    played, parts = replay(), list(replay())
    once = theory.Hindsight(KERNEL, lambda: played, lam=1.0)
    refused("had 400 rows and then 0", once.comparator)
    refused("chunk 0 of the stream must be a pair", theory.Hindsight, KERNEL, lambda: [POINTS])
    spoilt = [*parts[:3], (parts[3][0], np.nan * parts[3][1])]
    refused("nan at row 3;", theory.Hindsight, KERNEL, spoilt, lam=1.0)
    with pytest.raises(ValueError, match="features are for arrays"):
        theory.Hindsight(KERNEL, parts, lam=1.0, features=okl.TaylorFeatures(2))
    refused("landmarks must be", theory.Hindsight, KERNEL, parts, lam=1.0, landmarks=0)
    refused("columns", theory.Hindsight(KERNEL, parts, lam=1.0, landmarks=[[1.0]]).comparator)


def test_long_work_is_announced(monkeypatch, capsys):
    monkeypatch.setattr("oklnumba.theory.passes.LONG", 0.0)
    theory.Hindsight(KERNEL, replay, lam=1.0, landmarks=10).comparator()
    said = capsys.readouterr().err
    assert re.search(r"takes about [\d.]+ min \(400 rows, 10 landmarks\)", said)


@pytest.mark.parametrize("make", [np.array, scipy.sparse.csr_matrix])
def test_inputs_that_changed_since_the_run_are_refused(make):
    rng = np.random.default_rng(0)
    dense = rng.uniform(0.1, 1, (300, 2))
    X, y = make(dense), rng.uniform(-1, 1, 300)
    run = okl.run(okl.LinearAWV(), X, y)
    expected = run.regret(KERNEL, 1.0)
    X *= 2.0
    refused("X has changed since this run", run.regret, KERNEL, 1.0)
    np.testing.assert_array_equal(run.regret(KERNEL, 1.0, data=(make(dense), y)), expected)
