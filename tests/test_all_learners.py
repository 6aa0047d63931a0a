"""One battery for every exported learner: a new class joins when it is exported."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import oklnumba as okl
from tests.battery import (
    HARD,
    HOLDERS,
    LEARNERS,
    N,
    assert_close_run,
    assert_same_run,
    by_hand,
    contents,
    every_learner,
    every_variant,
    far_from_the_origin,
    hard_stream,
    make,
    plain,
    stream,
)
from tests.compiled import COMPILED


def test_there_are_learners_and_the_battery_can_make_them():
    assert len(LEARNERS) >= 5
    for cls in LEARNERS:
        assert make(cls).rounds == 0


# ---- forecasts ----


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


@every_variant
@pytest.mark.parametrize("name", HARD)
@far_from_the_origin
def test_hard_streams_give_finite_forecasts_in_bulk_and_by_hand(case, name):
    n = 200 if COMPILED else 40
    learner, other = make(case), make(case)
    X, y = hard_stream(name, learner, n)
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


@every_variant
def test_growth_through_doublings_of_the_buffers(case):
    n = 700 if COMPILED else 100
    bulk, mixed = make(case), make(case)
    X, y = stream(bulk, n, seed=1)
    X = 2 * X  # more of the kernel's space, so that dictionaries double too
    bulk.partial_fit(X, y)
    parts = [by_hand(mixed, X[: n // 3], y[: n // 3])[0]]
    parts.append(mixed.predict(X[n // 3 : n // 3 + 1]))
    mixed.partial_fit(X[n // 3 : n - 50], y[n // 3 : n - 50])
    forecasts, sizes = by_hand(mixed, X[n - 50 :], y[n - 50 :])
    assert mixed.rounds == bulk.rounds == n and mixed.size == bulk.size == sizes[-1]
    assert_allclose(mixed.predict(X), bulk.predict(X), rtol=1e-9, atol=1e-12)
    again = make(case)
    whole = okl.run(again.partial_fit(X[: n - 50], y[: n - 50]), X[n - 50 :], y[n - 50 :])
    assert_allclose(forecasts, whole.predictions, rtol=1e-9, atol=1e-12)
    assert np.isfinite(np.concatenate(parts)).all()


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


@every_variant
@pytest.mark.parametrize("n", [1, 2, 40, 300 if COMPILED else 60])
def test_forecasts_change_nothing(case, n, tmp_path):
    learner = make(case)
    X, y = stream(learner, n + 50, seed=2)
    learner.partial_fit(X[:n], y[:n])
    before = contents(learner)
    first = learner.predict(X)
    assert_array_equal(learner.predict(X), first)
    ones = [learner.predict_one(x) for x in X]
    assert_array_equal([learner.predict_one(x) for x in X], ones)
    assert_allclose(ones, first, rtol=1e-9, atol=1e-12)
    assert_array_equal(learner.predict(X), first)
    assert contents(learner) == before


@every_variant
def test_a_run_with_forecasts_in_between_is_bitwise_the_run_without(case):
    n = 150 if COMPILED else 50
    quiet, asked = make(case), make(case)
    X, y = stream(quiet, n)
    for t in range(n):
        quiet.learn_one(X[t], y[t])
        asked.predict_one(X[t])
        asked.predict(X[t : t + 20])
        asked.learn_one(X[t], y[t])
        asked.predict_one(X[0])
        assert (asked.size, asked.rounds) == (quiet.size, quiet.rounds)
    assert contents(asked) == contents(quiet)
    quiet.partial_fit(X, y)
    asked.predict(X)
    asked.partial_fit(X, y)
    assert contents(asked) == contents(quiet)
    assert_array_equal(asked.predict(X), quiet.predict(X))


@every_variant
def test_a_forecast_never_depends_on_its_own_or_a_later_label(case):
    run, _ = plain(case)
    learner = make(case)
    X, y = stream(learner)
    cuts = [t for t in (0, 1, 2, 3, 63, 64, 65, 255, 256, 257, 511, 512, 513, N - 1) if t < N]
    for t in cuts:
        other = y.copy()
        other[t:] = -other[t:]
        changed = okl.run(make(case), X, other)
        assert_array_equal(changed.predictions[: t + 1], run.predictions[: t + 1], err_msg=f"{t}")
        assert_array_equal(changed.sizes[:t], run.sizes[:t], err_msg=f"{t}")
        if t < N - 50:
            assert (changed.predictions[t + 1 :] != run.predictions[t + 1 :]).any()


# ---- the same however it is cut, and whatever holds the data ----


@every_variant
def test_a_run_is_the_loop_written_by_hand(case):
    run, _ = plain(case)
    learner = make(case)
    forecasts, sizes = by_hand(learner, *stream(learner))
    assert_allclose(forecasts, run.predictions, rtol=1e-9, atol=1e-12)
    assert_array_equal(sizes, run.sizes)


PIECES = st.lists(
    st.tuples(st.integers(1, 130), st.sampled_from(["run", "chunks", "hand", "fit"])),
    min_size=1,
    max_size=8,
)


@every_variant
@settings(max_examples=15 if COMPILED else 3)
@given(pieces=PIECES)
def test_any_cut_of_the_stream_gives_the_same_run(case, pieces):
    run, _ = plain(case)
    learner = make(case)
    X, y = stream(learner)
    forecasts, start = [], 0
    for rows, how in [*pieces, (N, "run")]:
        A, b = X[start : start + rows], y[start : start + rows]
        start += len(A)
        if len(A) == 0:
            break
        if how == "run":
            forecasts.append(okl.run(learner, A, b).predictions)
        elif how == "chunks":
            halves = np.array_split(np.arange(len(A)), 2 if len(A) > 1 else 1)
            forecasts.append(okl.run(learner, ((A[i], b[i]) for i in halves)).predictions)
        elif how == "hand":
            forecasts.append(by_hand(learner, A, b)[0])
        else:
            learner.partial_fit(A, b)
            forecasts.append(run.predictions[start - len(A) : start])  # not shown: skip
        assert learner.rounds == start and learner.size == run.sizes[start - 1]
    assert_allclose(np.concatenate(forecasts), run.predictions, rtol=1e-9, atol=1e-12)


def one_row_chunks(X, y):
    return ((X[i : i + 1], y[i : i + 1]) for i in range(len(X)))


def uneven_chunks(X, y):
    cuts = [1, 2, 70, 71, len(X) - 1]
    return zip(np.split(X, cuts), np.split(y, cuts), strict=True)


def paired_lists(X, y):
    return [(X[:20].tolist(), y[:20].tolist()), (X[20:].tolist(), y[20:].tolist())]


@every_variant
@pytest.mark.parametrize("chunks", [one_row_chunks, uneven_chunks, paired_lists])
def test_run_over_chunks(case, chunks):
    n = 160
    expected, _ = plain(case, n)
    learner = make(case)
    run = okl.run(learner, chunks(*stream(learner, n)))
    assert run.finished and learner.rounds == n
    assert_close_run(run, expected)
    assert_array_equal(run.mistakes, expected.mistakes)
    assert_allclose(run.losses, expected.losses, rtol=1e-8, atol=1e-12)


@every_learner
@pytest.mark.parametrize("holder", HOLDERS)
def test_whatever_holds_the_data_the_run_is_bitwise_the_same(cls, holder, tmp_path):
    n = 90
    expected, after = plain(cls, n)
    X, y = stream(make(cls), n)
    A, b = (HOLDERS[holder](a, tmp_path / f"{i}.npy") for i, a in enumerate((X, y)))
    learner = make(cls)
    assert_same_run(okl.run(learner, A, b), expected)
    assert contents(learner) == after
    fitted, twin = make(cls).partial_fit(A, b), make(cls).partial_fit(X, y)
    assert contents(fitted) == contents(twin)
    assert_array_equal(fitted.predict(A), twin.predict(X))
    assert fitted.predict_one(A[1]) == twin.predict_one(X[1])
    fitted.learn_one(A[2], b[2])
    twin.learn_one(X[2], y[2])
    assert contents(fitted) == contents(twin)


@every_learner
@far_from_the_origin
def test_single_precision_and_integers_are_read_as_doubles(cls):
    X, y = stream(make(cls), 90)
    small = X.astype(np.float32), y.astype(np.float32)
    whole = np.round(5 * X).astype(np.int64), np.where(y > 0, 1, -1)
    for A, b in (small, whole):
        got = okl.run(make(cls), 0.1 * A if A is whole[0] else A, b)
        expected = okl.run(make(cls), *(a.astype(float) for a in (A, b))) if A is small[0] else None
        if expected is None:
            expected = okl.run(make(cls), 0.1 * A.astype(float), b.astype(float))
        assert_same_run(got, expected)
    integers, doubles = make(cls).partial_fit(*whole), make(cls)
    doubles.partial_fit(*(a.astype(float) for a in whole))
    assert contents(integers) == contents(doubles)


@every_learner
def test_the_same_seed_gives_the_same_run_and_another_seed_another_state(cls):
    run, after = plain(cls)
    again = make(cls)
    assert_same_run(okl.run(again, *stream(again)), run)
    assert contents(again) == after
    if "seed" in again.__signature__.parameters:
        other = make(cls, seed=12345)
        okl.run(other, *stream(other))
        state, arrays = contents(other)
        assert (json.loads(state).get("state"), arrays) != (
            json.loads(after[0]).get("state"),
            after[1],
        )


# ---- certificates ----


@every_variant
@pytest.mark.parametrize("name", ["random", *HARD])
@far_from_the_origin
def test_regret_is_below_its_bound_at_every_round(case, name):
    n = 300 if COMPILED else 60
    learner = make(case)
    X, y = stream(learner, n, seed=3) if name == "random" else hard_stream(name, learner, n)
    run = okl.run(learner, X, y)
    if run.certificate is None:
        return
    discount = getattr(learner, "discount", 1.0)
    sums = itertools.accumulate((y - run.predictions) ** 2, lambda s, loss: discount * s + loss)
    assert_allclose(run.certificate.loss, list(sums), rtol=1e-10)
    assert_array_equal(run.certificate.regret, run.certificate.loss - run.certificate.comparator)
    assert np.isfinite(run.certificate.comparator).all()
    assert (run.certificate.comparator >= -1e-9).all()
    if np.isnan(run.certificate.bound).any():
        assert np.isnan(run.certificate.bound).all()
        return
    assert (run.certificate.regret <= run.certificate.bound + 1e-9).all()


# ---- controls ----


def test_the_battery_would_see_a_learner_that_is_wrong():
    """Negative controls: learners with one fault each, and the check that must fail for it."""

    class Peeks(okl.FOGD):
        def _play(self, X, y, trace):
            super()._play(X, y, trace)
            trace.predictions[:] += 1e-12 * y

    class Remembers(okl.FOGD):
        def _forecast(self, X):
            self._w[0] += 1e-12
            return super()._forecast(X)

    class Counts(okl.FOGD):
        def _play(self, X, y, trace):
            super()._play(X, y, trace)
            self._w *= 1 - 1e-6  # once a call: depends on how the stream is cut

    for wrong, check in (
        (Peeks, test_a_forecast_never_depends_on_its_own_or_a_later_label),
        (Remembers, test_a_run_with_forecasts_in_between_is_bitwise_the_run_without),
        (Counts, test_a_run_is_the_loop_written_by_hand),
        (Counts, test_run_over_chunks),
    ):
        arguments = {"chunks": uneven_chunks} if check is test_run_over_chunks else {}
        check(okl.FOGD, **arguments)
        with pytest.raises(AssertionError):
            check(wrong, **arguments)
    assert math.isfinite(plain(okl.FOGD)[0].mean_loss)
