"""``health``: conditions of NumPy, and digits against sixty-digit arithmetic."""

import math
import warnings
from decimal import Decimal, localcontext

import numpy as np
import pytest

import oklnumba as okl
from oklnumba.core.health import FEWEST_DIGITS, UNIT, Health
from oklnumba.core.params import clone
from oklnumba.core.state import INTERRUPTED
from oklnumba.hot.primitives.dictionary import NUGGET
from tests.battery import contents, every_learner, make, stream
from tests.checks import COMPILED, raises, troubled
from tests.reference import naive
from tests.streams import inputs
from tests.test_nesting import WRAPPERS

KERNEL = okl.Gaussian(1.0)
N = 300 if COMPILED else 50


def health(learner, warns="error"):
    """Return the health of a learner that must warn of nothing; "ignore": or of anything."""
    with warnings.catch_warnings():
        warnings.simplefilter(warns)
        return learner.health()


# ---- the condition ----


def of_exact_ridge(learner, X):
    return KERNEL(X) + learner.lam * np.eye(len(X))


def of_features(learner, X):
    Z = learner.features.transform(X)
    return Z.T @ Z + learner.lam * np.eye(Z.shape[1])


def of_inputs(learner, X):
    return X.T @ X + learner.lam * np.eye(X.shape[1])


def of_dictionary(learner, X):
    return KERNEL(learner.atoms) + NUGGET * np.eye(learner.size)


MATRICES = [
    (okl.KernelRidge(KERNEL, lam=1.0), of_exact_ridge),
    (okl.KernelRidge(KERNEL, lam=1e-6), of_exact_ridge),
    (okl.KernelAWV(KERNEL, lam=1e-3), of_exact_ridge),
    (okl.PKAWV(okl.TaylorFeatures(3), lam=1e-4), of_features),
    (okl.PKAWV(okl.FourierFeatures(20, seed=1), lam=1.0), of_features),
    (okl.LinearAWV(lam=0.1), of_inputs),
    (okl.LinearRidge(lam=1e-5), of_inputs),
    (okl.Projectron(KERNEL), of_dictionary),
    (okl.POMD(KERNEL), of_dictionary),
]


@pytest.mark.parametrize("learner, matrix", MATRICES, ids=lambda one: getattr(one, "__name__", ""))
def test_the_condition_is_that_of_numpy(learner, matrix):
    X, y = stream(learner, N)
    learner = clone(learner).partial_fit(X, y)
    truth = np.linalg.cond(matrix(learner, X))
    assert truth / 9 <= health(learner, "ignore").condition <= truth * (1 + 1e-4)


def test_learners_that_solve_nothing_have_the_condition_1():
    for cls in (okl.OGD, okl.FOGD, okl.KernelOGD):
        found = health(make(cls).partial_fit(*stream(make(cls))))
        assert (found.condition, found.weakest) == (1.0, "")
        assert found.digits == pytest.approx(-math.log10(UNIT))


# ---- the digits ----


def decimals(values):
    return [Decimal(float(v)) for v in np.ravel(values)]


def off(learner, X, y, new, rows):
    """Return how far forecasts are from ridge regression in sixty digits, in units of max |y|.

    rows : makes the features of Decimal inputs, or None for the Gaussian kernel of width 1.
    """
    with localcontext() as context:
        context.prec = 60
        xs, ys, news = decimals(X), decimals(y), decimals(new)
        lam = Decimal(learner.lam)
        if rows is None:
            gram = [[(-((a - b) ** 2) / 2).exp() for b in xs] for a in xs]
            targets, points = ys, [[(-((a - b) ** 2) / 2).exp() for b in xs] for a in news]
        else:
            Z, points = [rows(a) for a in xs], [rows(a) for a in news]
            columns = list(zip(*Z, strict=True))
            gram = [[sum(map(Decimal.__mul__, u, v)) for v in columns] for u in columns]
            targets = [sum(map(Decimal.__mul__, u, ys)) for u in columns]
        for i, row in enumerate(gram):
            row[i] += lam
        solution = naive.decimal_solve(gram, targets)
        truth = [float(sum(map(Decimal.__mul__, point, solution))) for point in points]
    return np.abs(learner.predict(new) - truth).max() / np.abs(y).max()


def taylor(x):
    """Return the Taylor features of degree 7 of the Gaussian kernel of width 1, at a Decimal."""
    head = (-x * x / 2).exp()
    return [head * x**k / Decimal(math.factorial(k)).sqrt() for k in range(8)]


def points(kind, n, rng):
    return (
        inputs(kind, n, 1, rng) if kind != "walk" else 0.01 * rng.standard_normal((n, 1)).cumsum(0)
    )


every_stream = pytest.mark.parametrize("kind", ["uniform", "clustered", "repeated", "walk"])


@every_stream
def test_digits_of_kernel_ridge_are_those_of_its_forecasts(kind):
    """Never more than there are, and at most two fewer, from lam = 1e-2 to 1e-14."""
    rng = np.random.default_rng(1)
    X = points(kind, 36, rng)
    X, new = X[:30], X[30:]
    y = np.sin(3 * X[:, 0]) + 0.1 * rng.standard_normal(30)
    warned = []
    for lam in 10.0 ** -np.arange(2, 15, 2):
        learner = okl.KernelRidge(KERNEL, lam=float(lam)).partial_fit(X, y)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            digits = learner.health().digits
        error = off(learner, X, y, new, None)
        assert 10 ** (-digits - 2.0) <= error <= 10**-digits, lam
        warned.append(bool(told))
        assert not (error > 1e-6 and not told)  # no alarm is missed, and
        assert not (error < 1e-8 and told)  # none is false
    assert warned == sorted(warned) and 0 < sum(warned) < len(warned)


@every_stream
def test_forecasts_on_features_are_as_good_as_their_digits_say(kind):
    rng = np.random.default_rng(2)
    X = points(kind, 60, rng)
    X, new = X[:50], X[50:]
    y = np.sin(3 * X[:, 0]) + 0.1 * rng.standard_normal(50)
    for lam in 10.0 ** -np.arange(2, 15, 3):
        learner = okl.PKAWV(okl.TaylorFeatures(7), lam=float(lam), forecaster="ridge")
        digits = health(learner.partial_fit(X, y), "ignore").digits
        assert off(learner, X, y, new, taylor) <= 10**-digits, lam


def test_the_scale_of_labels_is_no_matter_and_the_warning_says_what_to_change():
    X, y = stream(okl.KernelRidge(KERNEL), N)
    found = [
        health(okl.KernelRidge(KERNEL, lam=1e-7).partial_fit(X, scale * y), "ignore").digits
        for scale in (1e-30, 1.0, 1e30)
    ]
    assert np.ptp(found) < 1e-6
    learner = okl.KernelRidge(KERNEL, lam=1e-13).partial_fit(X, y)
    with pytest.warns(UserWarning, match=rf"after {N} rounds \(K \+ lam I: .*; raise lam") as told:
        learner.health()
    assert told[0].filename == __file__


# ---- what holds for all learners ----


@pytest.mark.slow
@every_learner
def test_nothing_changes(cls):
    asked, other = make(cls), make(cls)
    X, y = stream(asked)
    half = len(X) // 2
    for learner in (asked, other):
        okl.run(learner, X[:half], y[:half])
    found = [(repr(asked), asked._repr_html_(), health(asked))[-1] for _ in range(2)]
    assert found[0] == found[1] and found[0].rounds == half
    runs = [okl.run(learner, X[half:], y[half:]) for learner in (asked, other)]
    np.testing.assert_array_equal(runs[0].predictions, runs[1].predictions)
    assert contents(asked) == contents(other)
    assert FEWEST_DIGITS < health(asked).digits <= 16.0


@every_learner
def test_before_any_data_there_is_nothing_to_say(cls):
    learner = make(cls)
    assert health(learner) == Health(0)
    learner._fault = FloatingPointError("beyond double precision")
    troubled("beyond double precision", learner.health)


WITHIN = [
    (okl.Experts([okl.PKAWV(okl.TaylorFeatures(2), lam=lam) for lam in (1.0, 0.1)]), "learner"),
    (okl.Tree(okl.LinearAWV(), leaf_rows=20), "leaf"),
    (okl.OneVsRest(okl.KernelAWV(KERNEL), [-1, 1]), ""),
    (okl.OneVsRest(okl.KRLS(KERNEL), [-1, 1]), "class"),
    (okl.MultiOutput(okl.PKAWV(okl.TaylorFeatures(2))), ""),
    (okl.MultiOutput(okl.KRLS(KERNEL)), "output"),
    (okl.OnlineToBatch(okl.PKAWV(okl.TaylorFeatures(2))), ""),
]


@pytest.mark.parametrize("learner, member", WITHIN, ids=lambda one: type(one).__name__)
def test_learners_around_others_have_the_worst_of_them(learner, member):
    assert health(learner).digits is None
    X, y = stream(okl.OGD(), N)
    labels = np.sign(y)
    if isinstance(learner, okl.MultiOutput):
        labels = np.column_stack([y, -y])
    elif not isinstance(learner, okl.OneVsRest):
        labels = y
    learner.partial_fit(X, labels)
    found = health(learner)
    assert found.rounds == N and found.condition > 1.0 and found.weakest.startswith(member)
    assert f"rounds={N}, condition=" in repr(found)
    learner._fault = INTERRUPTED
    raises(RuntimeError, "was interrupted", learner.health)


# ---- how well it forecasts, and whether that changed ----


def drifting(n, at):
    """Return a stream whose function changes at a round."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, 2))
    return X, np.where(np.arange(n) < at, X[:, 0], X[:, 1]) + 0.1 * rng.standard_normal(n)


@pytest.mark.parametrize("pieces", [[4000], [1, 64, 135, 300, 1500, 1, 1999]])
def test_the_losses_of_a_monitored_learner_are_those_of_a_run_in_any_pieces(pieces):
    X, y = drifting(4000, 2100)
    X[3950], y[3990] = 5.0, 1e9
    learner, start = okl.Monitored(okl.LinearRidge()), 0
    for n in pieces:
        learner.partial_fit(X[start : start + n], y[start : start + n])
        start += n
    run = okl.run(okl.LinearRidge(), X, y)
    found, plain = learner.health(), okl.LinearRidge().partial_fit(X, y).health()
    assert found[:4] == plain[:4] and found.alarm == 2400
    assert found == okl.Monitored(okl.LinearRidge()).partial_fit(X, y).health()
    assert found.recent_loss == pytest.approx(run.losses[-300:].mean())
    assert found.loss_before == pytest.approx(run.losses[:-300].mean())
    low, high = (f.accumulate(X[:-1])[-300:] for f in (np.minimum, np.maximum))
    beyond = ((X[-300:] < low) | (X[-300:] > high)).any(axis=1)
    assert found.out_of_range == beyond.mean() and found.outliers == 1 / 300


def test_alarms_come_soon_after_a_drift_and_hardly_ever_without():
    """Losses that are noise alone: 6,000 comparisons make 0.2 alarms in the mean."""
    alarms = 0
    for seed in range(20):
        y = np.random.default_rng(seed).standard_cauchy(9000)
        learner = okl.Monitored(okl.OGD(eta=1e-12), recent=30)
        alarms += learner.partial_fit(np.ones((9000, 1)), y).health().alarm is not None
    assert alarms <= 2
    for at in (1000, 1500, 2017):
        X, y = drifting(3000, at)
        alarm = okl.Monitored(okl.LinearRidge(), recent=200).partial_fit(X, y).health().alarm
        assert alarm is not None and at < alarm <= at + 400


def test_only_a_monitored_learner_shows_its_losses():
    assert "recent_loss" not in repr(okl.OGD().learn_one([1.0], 1.0).health())
    shown = repr(okl.Monitored(okl.OGD()).learn_one([1.0], 1.0).health())
    assert "recent_loss=1" in shown and "alarm=None" in shown


SHOW = "Standardized", "Lags", "Horizon", "Intervals", "MultiOutput", "OneVsRest", "OnlineToBatch"


@pytest.mark.parametrize("name", SHOW)
def test_a_learner_around_a_monitored_one_shows_its_losses(name):
    X, y = drifting(900, 450)
    y = {"OneVsRest": np.sign(y), "MultiOutput": np.column_stack([X[:, 1], y])}.get(name, y)
    learner = WRAPPERS[name](okl.Monitored(okl.LinearRidge(), recent=100))
    assert learner.health().recent_loss is None
    run = okl.run(learner, X, y)
    assert learner.health().recent_loss > 0.0
    if name in SHOW[:4]:
        assert learner.health().recent_loss == pytest.approx(run.losses[-100:].mean(), rel=0.05)
