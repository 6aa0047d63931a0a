"""What a run records of any learner, and its regret."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import oklnumba as okl
from tests.battery import N, every_learner, make, plain, stream


@every_learner
def test_what_a_run_records(cls):
    run, _ = plain(cls)
    learner = make(cls)
    X, y = stream(learner)
    loss = learner._loss()
    assert run.loss == loss.name and run.finished and run.rounds == N
    assert_allclose(run.losses, loss.value(run.predictions, y), rtol=1e-14)
    assert run.mean_loss == pytest.approx(run.losses.mean(), rel=1e-14)
    assert run.sizes.dtype.kind == "i" and (run.sizes >= 0).all() and run.seconds > 0.0
    assert run.checkpoints[-1] == N and (np.diff(run.checkpoints) > 0).all()
    assert (np.diff(run.checkpoint_seconds) >= 0.0).all()
    assert run.checkpoint_seconds[-1] == run.seconds
    if loss.classes:
        assert_array_equal(run.mistakes, y * run.predictions <= 0.0)
        assert run.mistake_rate == run.mistakes.mean() and bool(run.mistakes[0])
    else:
        assert run.mistakes is None and run.mistake_rate is None
    shown = repr(run)
    assert "\n" not in shown and cls.__name__ in shown and str(N) in shown
    other = okl.run(make(cls), X, y, loss="absolute")
    assert_array_equal(other.predictions, run.predictions)
    assert_allclose(other.losses, abs(y - run.predictions), rtol=1e-14)


@every_learner
def test_regret_of_a_run_over_arrays(cls):
    learner = make(cls)
    X, y = stream(learner, 60)
    run = okl.run(learner, X, y)
    kernel, lam = okl.Gaussian(1.0), 0.5
    found, last = run.regret(kernel, lam), run.regret(kernel, lam, at=[60])
    value = last.prefix_penalised[-1]
    if run.loss == "squared":
        assert_array_equal(found, okl.theory.regret(run.predictions, kernel, X, y, lam))
        assert found[-1] == pytest.approx(value, rel=1e-9)
    else:
        assert_array_equal(found.prefix_penalised, last.prefix_penalised)
    best = okl.theory.comparator(kernel, X, y, lam, run.loss)
    expected = run.losses.sum() - best.loss - lam * best.norm**2
    assert value == pytest.approx(expected, rel=1e-9)
    squared = run.regret(kernel, lam, loss="squared")
    K = kernel(X)
    coefficients = np.linalg.solve(K + lam * np.eye(60), y)
    best = ((y - K @ coefficients) ** 2).sum() + lam * coefficients @ K @ coefficients
    assert squared[-1] == pytest.approx(((y - run.predictions) ** 2).sum() - best, rel=1e-9)


def test_run_wants_a_learner():
    for learner in (None, okl.Gaussian(), okl.KernelAWV, "KernelAWV"):
        with pytest.raises(ValueError, match="learner"):
            okl.run(learner, [[0.0]], [1.0])
