"""What version 0.1.0 saved still loads, and goes on as it did then: see saved_0_1_0/README.md."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import oklnumba as okl
from tests.battery import LEARNERS, contents

SAVED = Path(__file__).parent / "saved_0_1_0"
LATER = {"SelfTuning", "GrowingPKAWV", "Standardized"}  # names of learners that 0.1.0 did not have
PLAYED = 60

with np.load(SAVED / "expected.npz") as file:
    EXPECTED = dict(file)
every_file = pytest.mark.parametrize("name", EXPECTED)


def stream(learner, n=100):
    """Return the rounds that were played then; not the battery's, which may change."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, 3))
    y = np.sin(3 * X[:, 0]) * X[:, 1] + 0.3 * X[:, 2] + 0.2 * rng.standard_normal(n)
    return X, np.where(y > 0.0, 1.0, -1.0) if learner._loss().classes else np.clip(y, -1.0, 1.0)


def assert_as_then(got, expected):
    assert_allclose(got, expected, rtol=1e-9, atol=1e-12)


def numbers(path):
    """Return the floating-point arrays of a file in an order of their own.

    Arrays may have other names since, counts have more entries or are saved where there were none,
    zeros that nothing used are gone, and learners of several outputs have an axis for them; but no
    number has changed.
    """
    with np.load(path, allow_pickle=False) as file:
        found = [a for a in file.values() if a.dtype.kind == "f" and a.any()]
        return sorted((a.squeeze().shape, a.tobytes()) for a in found)


def test_every_learner_has_a_file_and_every_file_a_test():
    names = {cls.__name__ for cls in LEARNERS}
    assert names - LATER == {name.split("-")[0] for name in EXPECTED}
    assert names >= LATER
    others = {"expected", "checkpoint-NystromAWV", "OneVsRest", "run-PKAWV"}
    assert {path.stem for path in SAVED.glob("*.npz")} == set(EXPECTED) | others


@every_file
def test_a_learner_goes_on_as_it_did(name):
    learner = okl.load(SAVED / f"{name}.npz")
    assert type(learner).__name__ == name.split("-")[0]
    assert learner.rounds == PLAYED
    X, y = stream(learner)
    assert_as_then(okl.run(learner, X[PLAYED:], y[PLAYED:]).predictions, EXPECTED[name])
    assert learner.rounds == len(X)


@every_file
def test_its_state_is_that_of_a_learner_that_plays_today(name):
    saved = okl.load(SAVED / f"{name}.npz")
    X, y = stream(saved)
    today = saved.__class__(**saved.get_params(deep=False)).partial_fit(X[:PLAYED], y[:PLAYED])
    assert today.size == saved.size
    assert_as_then(today.predict(X), saved.predict(X))


@every_file
def test_saved_again_it_is_the_same(name, tmp_path):
    learner = okl.load(SAVED / f"{name}.npz")
    learner.save(tmp_path / "again.npz")
    assert contents(okl.load(tmp_path / "again.npz")) == contents(learner)
    assert numbers(tmp_path / "again.npz") == numbers(SAVED / f"{name}.npz")


def test_a_checkpoint_is_resumed(tmp_path):
    file = tmp_path / "checkpoint.npz"
    shutil.copy(SAVED / "checkpoint-NystromAWV.npz", file)
    resumed, whole = (okl.NystromAWV(okl.Gaussian(1.0), mu=0.1) for _ in range(2))
    X, y = stream(whole)
    run, expected = okl.run(resumed, X, y, checkpoint=file), okl.run(whole, X, y)
    assert run.rounds == resumed.rounds == len(X) and run.finished
    with np.load(SAVED / "checkpoint-NystromAWV.npz") as old:
        assert_array_equal(run.predictions[:PLAYED], old["run_predictions"])
    for part in ("predictions", "losses"):
        assert_as_then(getattr(run, part), getattr(expected, part))
    for got, then in zip(run.certificate[:4], expected.certificate[:4], strict=True):
        assert_allclose(got, then, rtol=1e-8, atol=1e-10)
    assert_array_equal(run.sizes, expected.sizes)
    assert_as_then(resumed.predict(X), whole.predict(X))


def test_one_against_the_rest_goes_on(tmp_path):
    many = okl.load(SAVED / "OneVsRest.npz")
    many.save(tmp_path / "again.npz")
    assert numbers(tmp_path / "again.npz") == numbers(SAVED / "OneVsRest.npz")
    X, _ = stream(okl.OGD())
    labels = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.3, 0.3])]
    assert list(many.classes) == ["a", "b", "c"]
    for learner in (many, okl.load(tmp_path / "again.npz")):
        run = learner.run(X[PLAYED:], labels[PLAYED:])
        assert_as_then(run.scores, np.load(SAVED / "OneVsRest-scores.npy"))


def test_a_run_loads(tmp_path):
    old = okl.Run.load(SAVED / "run-PKAWV.npz")
    learner = okl.PKAWV(okl.TaylorFeatures(2))
    run = okl.run(learner, *stream(learner))
    assert (old.rounds, old.finished) == (run.rounds, run.finished)
    assert run.learner.startswith(old.learner.removesuffix(")"))  # it has a discount since
    for part in ("predictions", "losses"):
        assert_as_then(getattr(old, part), getattr(run, part))
    for got, today in zip(old.certificate[:4], run.certificate[:4], strict=True):
        assert_allclose(got, today, rtol=1e-8, atol=1e-10)
    assert_array_equal(old.sizes, run.sizes)
    old.save(tmp_path / "again.npz")
    assert numbers(tmp_path / "again.npz") == numbers(SAVED / "run-PKAWV.npz")


def test_a_learner_that_went_on_otherwise_would_be_seen():
    X, y = stream(okl.OGD())
    for name in ("KernelAWV", "NystromAWV", "Experts", "POMDR"):
        learner = okl.load(SAVED / f"{name}.npz")
        y = stream(learner)[1]
        learner.learn_one(X[0], -y[0])  # one round too many
        with pytest.raises(AssertionError):
            assert_as_then(okl.run(learner, X[PLAYED:], y[PLAYED:]).predictions, EXPECTED[name])
