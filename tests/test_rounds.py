"""What is kept of rounds: what is left out comes back, to the bit, and memory is as promised."""

from __future__ import annotations

import copy
import pickle
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import oklnumba as okl
from oklnumba import losses
from oklnumba.protocol.rounds import STEPS, Rounds, sizes_of
from tests.compiled import COMPILED

ALL = [losses.get(name) for name in losses.LOSSES]


def rows_of(loss, n, seed, labels="signs"):
    """Return what a run keeps of n rounds, with forecasts of both zeros among them."""
    rng = np.random.default_rng(seed)
    predictions = rng.standard_normal(n) * 10.0 ** rng.integers(-300, 3, n)
    predictions[rng.random(n) < 0.2] = 0.0
    predictions[rng.random(n) < 0.2] *= -0.0
    y = np.sign(rng.standard_normal(n)) if labels == "signs" else rng.standard_normal(n)
    part = {"predictions": predictions, "losses": loss.value(predictions, y)}
    part["sizes"] = np.cumsum(rng.random(n) < 0.1)
    return part | ({"mistakes": y * predictions <= 0.0} if labels == "signs" else {})


def cut(part, cuts):
    for first, stop in zip(cuts[:-1], cuts[1:], strict=True):
        yield {name: a[first:stop] for name, a in part.items()}


def assert_same_rows(found, expected):
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        assert_array_equal(found[name], values, err_msg=name)
        assert np.asarray(found[name]).dtype.kind == values.dtype.kind


@pytest.mark.parametrize("loss", ALL, ids=lambda one: one.name)
@pytest.mark.parametrize("expected", [0, 100, 400])
def test_losses_and_sizes_come_back_to_the_bit(loss, expected):
    part = rows_of(loss, 400, seed=1)
    rounds = Rounds(loss)
    rounds.expected = expected
    for block in cut(part, [0, 1, 2, 60, 61, 250, 400]):
        rounds.add(block)
    assert "losses" not in rounds.short() and "sizes" not in rounds.short()
    assert_same_rows(rounds.full(), part)
    for first in (0, 1, 59, 333, 399):
        assert_same_rows(rounds.full(first), {name: a[first:] for name, a in part.items()})


@pytest.mark.parametrize("signs", [0, 7, 100])
def test_losses_are_kept_from_the_first_label_on_that_no_mistake_tells(signs):
    """Those of the rounds before, too, whose mistakes then are gone."""
    loss = losses.get("squared")
    first, rest = rows_of(loss, signs, 2), rows_of(loss, 90, 3, labels="real")
    rest["sizes"] = rest["sizes"] + 1000
    rounds = Rounds(loss)
    for block in (first, *cut(rest, [0, 50, 90])):
        if len(block["sizes"]):
            rounds.add(block)
    expected = {name: np.concatenate([first[name], rest[name]]) for name in rest}
    assert_same_rows(rounds.full(), expected)


def test_losses_that_do_not_follow_are_kept():
    loss = losses.get("hinge")
    part = rows_of(loss, 50, 4)
    part["losses"] = part["losses"] + 1e-15
    rounds = Rounds(loss)
    rounds.add(part)
    assert_same_rows(rounds.full(), part)


def test_classes_of_any_length():
    part = {
        "predictions": np.array(["a", "bb"]), "mistakes": np.array([True, False]),
        "losses": np.array([1.0, 0.0]), "sizes": np.array([1, 1]),
    }  # fmt: skip
    longer = part | {"predictions": np.array(["cccc", "dd"])}
    rounds = Rounds("0 or 1")
    rounds.add(part), rounds.add(longer)
    assert rounds.full()["predictions"].tolist() == ["a", "bb", "cccc", "dd"]


@pytest.mark.parametrize("sizes", [[5] * 9, [1, 1, 2, 2, 2, 3, 9, 9, 9], list(range(9))])
def test_sizes_of_any_stretch(sizes):
    sizes = np.array(sizes)
    rounds = Rounds(losses.get("squared"))
    rounds.add({"sizes": sizes, "predictions": np.zeros(9), "losses": np.zeros(9)})
    steps = [rounds.short()[name] for name in STEPS]
    assert len(steps[0]) == 1 + np.count_nonzero(np.diff(sizes))
    for first in range(9):
        for stop in range(first + 1, 10):
            assert_array_equal(sizes_of(*steps, first, stop), sizes[first:stop])


@pytest.mark.parametrize("loss", ALL, ids=lambda one: one.name)
@pytest.mark.parametrize("signs", [0, 7, 100])
def test_labels_at_hand_tell_the_losses_too(loss, signs):
    first, rest = rows_of(loss, signs, 2), rows_of(loss, 90, 3)
    labels = np.random.default_rng(4).standard_normal(signs + 90)
    labels[:signs] = np.where((first["predictions"] > 0.0) != first["mistakes"], 1.0, -1.0)
    rest["losses"] = loss.value(rest["predictions"], labels[signs:])
    del rest["mistakes"]
    rest["sizes"] = rest["sizes"] + 1000
    rounds = Rounds(loss)
    rounds.labels = labels
    for block in (first, *cut(rest, [0, 50, 90])):
        if len(block["sizes"]):
            rounds.add(block)
    assert rounds.short().keys() == {"predictions", *STEPS}
    expected = {name: np.concatenate([first[name], rest[name]]) for name in rest}
    assert_same_rows(rounds.full(), expected)


def test_a_run_says_so_if_labels_have_changed_before_its_losses_were_made():
    X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    y = X[:, 0] * X[:, 1]
    run, kept = okl.run(okl.OGD(), X, y), okl.run(okl.OGD(), X, y.copy())
    before = okl.run(okl.OGD(), X, y)
    assert_array_equal(before.losses, kept.losses)
    X[0] = 9.0  # the losses do not ask for it
    assert_array_equal(run._losses(), kept.losses)
    y[150] += 1e-12
    with pytest.raises(ValueError, match="y has changed since the run.*y.copy()"):
        _ = run.losses
    with pytest.raises(ValueError, match="y has changed since the run"):
        _ = run.mean_loss
    assert_array_equal(before.losses, kept.losses)


def test_losses_of_real_labels_are_made_once_for_their_mean(monkeypatch):
    X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    y = X[:, 0] * X[:, 1]
    made, labels = [], okl.Run._labels
    monkeypatch.setattr(okl.Run, "_labels", lambda self: made.append(self) or labels(self))
    run, other = okl.run(okl.OGD(), X, y), okl.run(okl.OGD(), X, y)
    means = [run.mean_loss, run.mean_loss]
    assert "mean squared loss" in repr(run) and made == [run]
    assert "losses" not in vars(run)  # nothing is held but the mean
    assert means == [run.losses.mean()] * 2 and made == [run, run]
    made.clear()
    assert other.losses.mean() == other.mean_loss == means[0] and made == [other]
    assert_array_equal(other._rows()["losses"], other.without_data().losses)
    y[:] = 0.0
    assert other.mean_loss == run.mean_loss == means[0] and made == [other]


def test_a_run_that_was_saved_or_copied_needs_no_labels(tmp_path):
    X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    y = X[:, 0] * X[:, 1]
    run = okl.run(okl.OGD(), X, y)
    copies = pickle.loads(pickle.dumps(run)), copy.deepcopy(run), run.without_data()
    assert copies[-1]._data is None
    run.save(tmp_path / "run.npz")
    loaded, losses_then = okl.Run.load(tmp_path / "run.npz"), run.losses.copy()
    y[:] = 0.0
    for other in (*copies, loaded):
        assert_array_equal(other.losses, losses_then)


def test_rounds_of_a_run_that_was_stopped_or_came_in_chunks_have_the_same_losses(tmp_path):
    X = np.random.default_rng(0).uniform(-1, 1, (400, 2))
    y = X[:, 0] * X[:, 1]
    whole = okl.run(okl.OGD(), X, y)
    chunks = okl.run(okl.OGD(), [(X[:130], y[:130]), (X[130:], y[130:])])
    path = tmp_path / "run.npz"
    okl.run(okl.OGD(), X[:300], y[:300], checkpoint=path)
    resumed = okl.run(okl.OGD(), X, y, checkpoint=path)
    y[:] = 0.0  # what came in chunks, or from a file, needs it no more
    for other in (chunks, resumed, okl.Run.load(path)):
        assert_array_equal(other.losses, (whole.predictions - X[:, 0] * X[:, 1]) ** 2)


@pytest.mark.parametrize("labels, most", [("signs", 9.0), ("real", 8.0)])
def test_a_run_keeps_nine_bytes_a_round(labels, most, tmp_path):
    """Eight where labels are real; and at its peak it has no more than a block beside."""
    n = 300_000 if COMPILED else 3000
    X = np.random.default_rng(5).uniform(-1, 1, (n, 2))
    y = np.sign(X[:, 0]) if labels == "signs" else X[:, 0].copy()
    okl.run(okl.OGD(0.1), X[:100], y[:100])
    tracemalloc.start()
    try:
        run = okl.run(okl.OGD(0.1), X, y)
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(a.nbytes for a in run._arrays.values()) <= most * n + 2000
    if COMPILED:
        assert kept < (most + 0.3) * n and peak < (most + 3.0) * n
    assert_array_equal(run.losses, (run.predictions - y) ** 2)
    assert_array_equal(run.sizes, np.full(n, 2))
    assert_array_equal(run.recorded, np.arange(1, n + 1))
    assert run.mean_loss == run.losses.mean()
    if labels == "signs":
        run.save(tmp_path / "run.npz")
        other = okl.Run.load(tmp_path / "run.npz")
        for name in ("predictions", "losses", "sizes", "mistakes", "recorded"):
            assert_array_equal(getattr(other, name), getattr(run, name), err_msg=name)
