"""What a run says beside its mistake rate, against scikit-learn's metrics and plain counts."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn import metrics

import oklnumba as okl
from oklnumba.protocol.class_scores import compute_auc

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (400, 2))
RARE = np.where(X.sum(axis=1) + 0.2 * RNG.standard_normal(400) > 1.2, 1.0, -1.0)
NAMES = ["few", "many", "some"]
THREE = np.array(NAMES)[np.digitize(X[:, 0], [-0.8, 0.4])]


def check_rules(scores, y):
    values, counts = np.unique(y, return_counts=True)
    commonest = values[counts.argmax()]
    assert scores.commonest == pytest.approx(np.mean(y != commonest))
    assert scores.last_label == pytest.approx(np.mean(np.append(True, y[1:] != y[:-1])))


@pytest.mark.parametrize("y", [RARE, np.sort(RARE), -RARE], ids=["rare", "sorted", "frequent"])
@pytest.mark.parametrize("learner", [okl.KernelAWV(okl.Gaussian(1.0)), okl.FOGD(loss="logistic")])
def test_two_classes(learner, y):
    run = okl.run(learner.reset(), X, y)
    scores, f = run.class_scores, run.predictions
    check_rules(scores, y)
    assert scores.mistake_rate == run.mistake_rate
    guess = np.where(f == 0.0, -y, np.sign(f))  # a forecast of 0 is a mistake
    assert scores.balanced_accuracy == pytest.approx(metrics.balanced_accuracy_score(y, guess))
    assert scores.auc == pytest.approx(metrics.roc_auc_score(y, f))
    p = 1.0 / (1.0 + np.exp(-f)) if run.loss == "logistic" else 0.5 + 0.5 * f
    least = 1.0 / (np.maximum(np.arange(400), 1) + 2.0)
    p = np.clip(p, least, 1.0 - least) if run.loss == "squared" else p
    log_loss = metrics.log_loss(y, p)
    assert scores.log_loss == pytest.approx(log_loss, rel=1e-6 if run.loss == "squared" else 0.02)
    for text in (repr(run), run._repr_html_()):
        assert scores.rules in text and str(scores) in text and "AUC" in text


def test_a_run_whose_learner_says_no_probabilities():
    assert okl.run(okl.FOGD(loss="hinge"), X, RARE).class_scores.log_loss is None
    # what a run records does not change what forecasts mean
    recorded = okl.run(okl.KernelAWV(okl.Gaussian(1.0)), X, RARE, loss="hinge").class_scores
    assert recorded == okl.run(okl.KernelAWV(okl.Gaussian(1.0)), X, RARE).class_scores


def test_several_classes():
    run = okl.run(okl.OneVsRest(okl.LinearAWV(), classes=NAMES), X, THREE)
    scores = run.class_scores
    check_rules(scores, THREE)
    expected = metrics.balanced_accuracy_score(THREE, run.predictions)
    assert scores.balanced_accuracy == pytest.approx(expected) and scores.auc is None
    never = okl.run(okl.OneVsRest(okl.LinearAWV(), classes=[*NAMES, "never"]), X, THREE)
    assert never.class_scores.balanced_accuracy == pytest.approx(expected, abs=0.05)
    assert 0.0 < scores.log_loss < np.log(3)


def test_ties_and_a_single_class():
    labels, scores = RNG.integers(0, 2, 300), RNG.integers(0, 5, 300).astype(float)
    assert compute_auc(labels, scores) == pytest.approx(metrics.roc_auc_score(labels, scores))
    alone = okl.run(okl.LinearAWV(), X[:5], np.ones(5)).class_scores
    assert (alone.commonest, alone.last_label, alone.auc) == (0.0, 0.2, None)


def test_when_there_are_none(tmp_path):
    assert okl.run(okl.LinearAWV(), X, X[:, 0]).class_scores is None
    assert okl.run(okl.LinearAWV(), X, RARE, record=7).class_scores is None
    both = np.stack([RARE, -RARE], axis=1)
    assert okl.run(okl.MultiOutput(okl.LinearAWV()), X, both).class_scores is None
    # real labels that come after -1 and +1
    mixed = [(X[:9], RARE[:9]), (X[9:], X[9:, 0])]
    assert okl.run(okl.LinearAWV(), mixed).class_scores is None


def test_missing_labels_files_and_checkpoints(tmp_path):
    gaps = np.where(np.arange(400) % 3 == 0, np.nan, RARE)
    run = okl.run(okl.LinearAWV(), X, gaps, labels="optional")
    there = ~np.isnan(gaps)
    check_rules(run.class_scores, RARE[there])
    auc = metrics.roc_auc_score(RARE[there], run.predictions[there])
    assert run.class_scores.auc == pytest.approx(auc)
    run.save(tmp_path / "run.npz")
    assert okl.Run.load(tmp_path / "run.npz").class_scores == run.class_scores
    path = tmp_path / "half.npz"
    okl.run(okl.LinearAWV(), X[:150], RARE[:150], checkpoint=path)
    whole = okl.run(okl.LinearAWV(), X, RARE, checkpoint=path)
    assert whole.class_scores == okl.run(okl.LinearAWV(), X, RARE).class_scores
    assert_allclose(whole.class_scores.mistake_rate, whole.mistake_rate)
