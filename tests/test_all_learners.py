"""One battery for every exported learner: a new class joins when it is exported."""

import itertools
import json

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import oklnumba as okl
from tests import battery
from tests.battery import CERTIFIED, by_hand, contents, every_learner, make, plain, rounds, stream
from tests.checks import COMPILED


@every_learner
def test_before_any_data_every_forecast_is_zero(cls, tmp_path):
    learner = make(cls)
    fresh = contents(learner)
    for width in (1, 3):  # nothing is remembered of inputs that were only looked at
        X = np.ones((5, width))
        assert learner.predict_one(X[0]) == 0.0 and isinstance(learner.predict_one(X[0]), float)
        assert_array_equal(learner.predict(X), np.zeros(5))
        assert (learner.rounds, learner.size) == (0, 0)
    assert contents(learner) == fresh
    run, _ = plain(cls)
    assert run.predictions[0] == 0.0


@pytest.mark.parametrize(("case", "name"), battery.ON_HARD_STREAMS)
@battery.far_from_the_origin
def test_hard_streams_give_finite_forecasts_in_bulk_and_by_hand(case, name):
    learner, other = make(case), make(case)
    n = 140 if isinstance(learner, okl.SelfTuning) else 100 if COMPILED else 40
    X, y = battery.hard_stream(name, learner, n)
    run = okl.run(learner, X, y)
    assert run.finished and run.rounds == n == learner.rounds
    assert np.isfinite(run.predictions).all() and np.isfinite(run.losses).all()
    assert np.isfinite(learner.predict(X)).all()
    if name != "close":  # whether one point lies in the span of others is decided by rounding there
        forecasts, sizes = by_hand(other, X, y)
        # Rounding the kernel's values costs n eps / lam, in blocks or single rounds.
        rounding = n * 2e-16 / (getattr(learner, "lam", None) or 1.0)
        assert_allclose(forecasts, run.predictions, rtol=1e-9, atol=max(1e-12, rounding))
        assert_array_equal(sizes, run.sizes)


@every_learner
@pytest.mark.filterwarnings("ignore:the kernel is 1")
@pytest.mark.parametrize(("scale", "unit"), [(1e-200, 1.0), (1.0, 1e-200), (1e-160, 1e-160)])
def test_nothing_depends_on_the_errors_of_numpy_that_a_user_set(cls, scale, unit):
    X, y = stream(make(cls), 80)
    X, y = scale * X, y if make(cls)._loss().classes else unit * y
    found = []
    for how in ("ignore", "raise"):
        with np.errstate(under=how):
            try:
                run, other = okl.run(make(cls), X, y), make(cls).partial_fit(X[:40], y[:40])
                by_hand(other, X[40:], y[40:])
                found.append([run.predictions, other.predict(X), repr(run), other.health()])
            except (ValueError, FloatingPointError) as error:  # ours: the labels, or the state
                found.append([str(error)])
    calm, strict = found
    assert "encountered in" not in str(strict[0])
    for one, same in zip(calm[:2], strict[:2], strict=True):
        assert_array_equal(one, same)


@every_learner
def test_inputs_are_neither_changed_nor_kept(cls):
    learner, twin = make(cls), make(cls)
    X, y = stream(learner, 80)
    expected = okl.run(twin, X.copy(), y.copy())
    twin.partial_fit(X.copy(), y.copy())
    twin.learn_one(X[0].copy(), y[0])

    def given_away(call):
        """Let a call have copies, look at them, then spoil them."""
        A, b = X.copy(), y.copy()
        result = call(A, b)
        assert_array_equal(A, X)
        assert_array_equal(b, y)
        A[:], b[:] = -7.0, -7.0
        return result

    run = given_away(lambda A, b: okl.run(learner, A, b))
    assert_array_equal(run.predictions, expected.predictions)
    given_away(lambda A, b: learner.partial_fit(A, b))
    given_away(lambda A, b: learner.learn_one(A[0], b[0]))
    forecasts = given_away(lambda A, b: learner.predict(A))
    assert_array_equal(forecasts, twin.predict(X))
    one = given_away(lambda A, b: learner.predict_one(A[3]))
    assert one == twin.predict_one(X[3])
    assert contents(learner) == contents(twin)


@battery.every_state
def test_a_forecast_never_depends_on_its_own_or_a_later_label(case):
    n = rounds(case)
    run, _ = plain(case, n)
    X, y = stream(make(case), n)
    cuts = [t for t in (0, 1, 2, 63, 64, 255, 256, 511, 512, n - 1) if t < n]
    for t in cuts:
        end = min(n, 256 * ((t + 50) // 256 + 1))  # whole blocks: BLAS has the bits of a block
        other = y[:end].copy()
        other[t:] = -other[t:]
        changed = okl.run(make(case), X[:end], other)
        assert_array_equal(changed.predictions[: t + 1], run.predictions[: t + 1], err_msg=f"{t}")
        assert_array_equal(changed.sizes[:t], run.sizes[:t], err_msg=f"{t}")
        if t < n - 50:
            assert (changed.predictions[t + 1 :] != run.predictions[t + 1 : end]).any()


# Whose last digits depend on where their stream is cut: they take blocks by BLAS (okl.run says so).
BY_BLOCKS = okl.KernelAWV, okl.KONS, okl.OnlineNewtonStep, okl.ExpConcaveFTRL, okl.Experts
# Whose forecasts without a round are sums over atoms, or, at a new atom, over fewer columns.
BY_COEFFICIENTS = okl.FrequentKONS, okl.SketchedKONS, okl.ProsNKONS


def assert_same_forecasts(learner, got, expected):
    if isinstance(getattr(learner, "learner", learner), BY_BLOCKS + BY_COEFFICIENTS):
        return assert_allclose(got, expected, rtol=1e-9, atol=1e-12)
    return assert_array_equal(got, expected)


@battery.every_variant
def test_a_run_is_the_loop_written_by_hand(case):
    run, _ = plain(case, rounds(case))
    learner = make(case)
    forecasts, sizes = by_hand(learner, *stream(learner, rounds(case)))
    assert_same_forecasts(learner, forecasts, run.predictions)
    assert_array_equal(sizes, run.sizes)


@battery.every_variant
def test_whether_a_row_has_a_label_changes_no_forecast_up_to_it(case):
    learner = make(case)
    X, y = stream(learner, 160)
    expected = okl.run(learner, X, y, labels="optional").predictions
    for t in (2, 63, 64, 100):
        gap = np.where(np.arange(160) == t, np.nan, y)
        found = okl.run(make(case), X, gap, labels="optional").predictions
        assert_same_forecasts(learner, found[: t + 1], expected[: t + 1])


@battery.every_variant
def test_run_over_chunks(case):
    n, cuts = 160, [1, 2, 70, 71, 159]
    expected, state = plain(case, n)
    learner = make(case)
    X, y = (np.split(part, cuts) for part in stream(learner, n))
    run = okl.run(learner, zip(X, y, strict=True))
    assert run.finished and learner.rounds == n
    assert isinstance(learner, BY_BLOCKS) or contents(learner) == state
    battery.assert_close_run(run, expected)
    assert_array_equal(run.mistakes, expected.mistakes)
    assert_allclose(run.losses, expected.losses, rtol=1e-8, atol=1e-12)


SEEDED = [cls for cls in battery.LEARNERS if "seed" in cls.__signature__.parameters]


@pytest.mark.parametrize("cls", SEEDED, ids=lambda cls: cls.__name__)
def test_another_seed_gives_another_state(cls):
    """That the same seed gives the same run and state is in test_saving.py, where it is reset."""
    other = make(cls, seed=12345)
    okl.run(other, *stream(other))
    states = [(json.loads(meta).get("state"), a) for meta, a in (plain(cls)[1], contents(other))]
    assert states[0] != states[1]


@pytest.mark.parametrize("case", CERTIFIED)
@pytest.mark.parametrize("name", ["random", *battery.HARD])
@battery.far_from_the_origin
def test_regret_is_below_its_bound_at_every_round(case, name):
    n = 300 if COMPILED else 60
    learner = make(case)
    X, y = stream(learner, n, seed=3) if name == "random" else battery.hard_stream(name, learner, n)
    run = okl.run(learner, X, y)
    discount = getattr(learner, "discount", 1.0)
    sums = itertools.accumulate((y - run.predictions) ** 2, lambda s, loss: discount * s + loss)
    assert_allclose(run.certificate.loss, list(sums), rtol=1e-10)
    assert_array_equal(run.certificate.regret, run.certificate.loss - run.certificate.comparator)
    assert np.isfinite(run.certificate.comparator).all()
    assert (run.certificate.comparator >= -1e-9).all()
    assert (run.certificate.regret <= run.certificate.bound + 1e-9).all()


def test_the_battery_would_see_a_learner_that_is_wrong():
    """Negative controls: learners with one fault each, and the check that must fail for it."""

    class Peeks(okl.FOGD):
        def _play(self, X, y, trace):
            super()._play(X, y, trace)
            trace.predictions[:] += 1e-12 * y

    class Counts(okl.FOGD):
        def _play(self, X, y, trace):
            super()._play(X, y, trace)
            self._state.w[:] *= 1 - 1e-6  # once a call: depends on how the stream is cut

    for wrong, check in (
        (Peeks, test_a_forecast_never_depends_on_its_own_or_a_later_label),
        (Counts, test_a_run_is_the_loop_written_by_hand),
        (Counts, test_run_over_chunks),
    ):
        check(okl.FOGD)
        with pytest.raises(AssertionError):
            check(wrong)
