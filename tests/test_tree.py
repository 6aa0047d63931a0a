"""Tree: the definition with replays from scratch, its certificate, any cut, files, wrong input."""

import copy
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import oklnumba as okl
from oklnumba.interop import OnlineClassifier
from oklnumba.learners.base.contents import copy_with_columns
from oklnumba.learners.tree import group_by_leaf
from tests import test_all_learners as battery
from tests import test_saving as saving
from tests.battery import HARD, assert_same_proofs, assert_same_run, far_from_the_origin
from tests.checks import COMPILED, arrays, play_adversary, raises, troubled
from tests.streams import inputs

N = 300 if COMPILED else 120
KERNEL = okl.Gaussian(0.5)
NYSTROM = okl.NystromAWV(KERNEL, lam=0.1, max_size=10)


# ---- the definition ----


class NaiveTree:
    """One row at a time; each leaf is its rows, and its learner has learned them in order."""

    def __init__(self, learner, leaf_rows, max_leaves):
        self.learner, self.leaf_rows, self.max_leaves = learner, leaf_rows, max_leaves
        self.leaves, self.splits = {"": (copy.deepcopy(learner), [])}, {}
        self.X, self.y = [], []

    def leaf(self, x):
        path = ""
        while path in self.splits:
            column, threshold = self.splits[path]
            path += "R" if x[column] > threshold else "L"
        return path

    def predict_one(self, x):
        return self.leaves[self.leaf(x)][0].predict_one(x)

    def learn_one(self, x, y):
        self.X.append(x)
        self.y.append(y)
        learner, rows = self.leaves[path := self.leaf(x)]
        learner.learn_one(x, y)
        rows.append(len(self.y) - 1)
        early = len(self.y) <= self.leaf_rows * self.max_leaves
        if early and len(self.leaves) < self.max_leaves and len(rows) % self.leaf_rows == 0:
            self.split(path, rows)

    def split(self, path, rows):
        X = np.array(self.X)[rows]
        medians = [sorted(column)[(len(rows) - 1) // 2] for column in X.T]
        spreads = [np.mean([abs(v - m) for v in x]) for x, m in zip(X.T, medians, strict=True)]
        if not any(spreads):
            return
        column = int(np.argmax(spreads))
        threshold = medians[column]
        if not (X[:, column] > threshold).any():
            threshold = max(v for v in X[:, column] if v < threshold)
        del self.leaves[path]
        self.splits[path] = column, threshold
        for side in "LR":
            mine = [t for t in rows if (self.X[t][column] > threshold) == (side == "R")]
            learner = copy.deepcopy(self.learner)
            for t in mine:
                learner.learn_one(self.X[t], self.y[t])
            self.leaves[path + side] = learner, mine


def stream(name, n=N, seed=0):
    rng = np.random.default_rng(seed)
    kind = name if name in ("sorted", "repeated", "clustered", "wild") else "uniform"
    X = inputs(kind, n, 3, rng) * [1.0, 2.0, 0.5]
    if name == "equal":
        X[: n // 10] = 0.25
    elif name == "few values":
        X = np.round(X)
    y = np.where(X[:, 1] > 0.2, np.sin(3 * X[:, 0]), X[:, 2]) + 0.1 * rng.standard_normal(n)
    return X, np.clip(y, -10, 10)


STREAMS = "shuffled", "sorted", "repeated", "clustered", "wild", "equal", "few values"


def count_leaves(tree):
    return len({name.split("_")[0] for name in arrays(tree) if name.startswith("leaf")})


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("learner", [NYSTROM, okl.LinearAWV(), okl.KRLS(KERNEL)], ids=type)
@far_from_the_origin
def test_it_is_the_definition(name, learner):
    X, y = stream(name)
    for leaf_rows, max_leaves in ((N // 20, 8), (N // 8, 64)):
        tree = okl.Tree(learner, leaf_rows=leaf_rows, max_leaves=max_leaves)
        naive = NaiveTree(learner, leaf_rows, max_leaves)
        run = okl.run(tree, X, y)
        expected = np.empty(N)
        sizes = np.empty(N)
        for t in range(N):
            expected[t] = naive.predict_one(X[t])
            naive.learn_one(X[t], y[t])
            sizes[t] = sum(one.size for one, _ in naive.leaves.values())
        assert_allclose(run.predictions, expected, rtol=1e-9, atol=1e-11)
        assert_array_equal(run.sizes, sizes)
        assert 1 < count_leaves(tree) == len(naive.leaves) <= max_leaves
        assert_allclose(tree.predict(X), [naive.predict_one(x) for x in X], rtol=1e-9, atol=1e-11)


def test_equal_rows_are_never_split_and_memory_is_bounded():
    tree = okl.Tree(okl.LinearAWV(), leaf_rows=10, max_leaves=8)
    X, y = np.full((100, 3), 0.5), np.ones(100)
    run = okl.run(tree, X[:79], y[:79])
    assert count_leaves(tree) == 1 and len(arrays(tree)["inputs"]) >= 79
    assert_array_equal(run.predictions, okl.run(okl.LinearAWV(), X[:79], y[:79]).predictions)
    tree.partial_fit(X[79:81], y[79:81])
    assert len(arrays(tree)["inputs"]) == 0  # leaf_rows * max_leaves rounds are over
    tree.partial_fit(*stream("shuffled", 100))
    assert count_leaves(tree) == 1


@pytest.mark.parametrize("learner", [NYSTROM, okl.SelfTuning(), okl.KernelAWV(KERNEL)], ids=type)
def test_before_the_first_split_it_is_the_learner_to_the_bit(learner):
    X, y = stream("shuffled")
    run = okl.run(okl.Tree(learner), X, y)
    expected = okl.run(copy.deepcopy(learner), X, y)
    expected.learner = run.learner
    assert_same_run(run, expected)


# ---- the certificate ----


def best(X, y, lam):
    """Return min_f sum (y - f)^2 + lam |f|^2, and log det(K / lam + I), by dense algebra."""
    A = KERNEL(X) / lam + np.eye(len(y))
    return y @ np.linalg.solve(A, y), np.linalg.slogdet(A)[1]


@pytest.mark.parametrize("name", STREAMS)
def test_the_certificate_is_that_of_the_best_functions_of_the_leaves(name):
    X, y = stream(name, 200)
    lam, rounds = 0.5, (30, 90, 200)
    tree = okl.Tree(okl.KernelAWV(KERNEL, lam=lam), leaf_rows=30, max_leaves=7)
    start, losses = 0, np.empty(0)
    for stop in rounds:
        run = okl.run(tree, X[start:stop], y[start:stop])
        proof, start, losses = run.certificate, stop, np.append(losses, run.losses)
        groups = group_by_leaf(X[:stop], tree._splits).values()
        comparator, bound, replayed = 0.0, 0.0, 0.0
        for rows in groups:
            least, log_det = best(X[rows], y[rows], lam)
            comparator += least
            bound += np.square(y[rows]).max() * log_det
            again = okl.run(okl.KernelAWV(KERNEL, lam=lam), X[rows], y[rows])
            replayed += again.losses.sum()
        assert_allclose(proof.loss[-1], losses.sum(), rtol=1e-12)
        assert_allclose(proof.comparator[-1], comparator, rtol=1e-9, atol=1e-9)
        assert proof.bound[-1] <= bound + losses.sum() - replayed + 1e-9
        assert (proof.regret <= proof.bound + 1e-9).all()


@pytest.mark.parametrize("learner", [okl.KernelAWV(KERNEL, lam=3.0), NYSTROM], ids=type)
@pytest.mark.filterwarnings("ignore:the kernel is 0")
def test_the_bound_holds_against_an_adversary_and_half_of_it_does_not(learner):
    X = stream("shuffled", 200)[0]
    _, y = play_adversary(okl.Tree(learner, leaf_rows=25), X)
    proof = okl.run(okl.Tree(learner, leaf_rows=25), X, y).certificate
    assert "leaves" in proof.space
    assert (proof.regret <= proof.bound + 1e-9).all()
    if isinstance(learner, okl.KernelAWV):
        far = 100.0 * X  # no row tells of another
        proof = okl.run(okl.Tree(learner, leaf_rows=25), far, y).certificate
        assert (proof.regret <= proof.bound + 1e-9).all()
        assert proof.regret[-1] > 0.5 * proof.bound[-1]


def test_what_was_lost_before_a_split_is_part_of_the_bound():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.choice([-1.0, 1.0], 400), rng.uniform(-0.1, 0.1, 400)])
    y = X[:, 0].copy()
    learner = okl.KernelAWV(okl.Gaussian(1e3), lam=0.1)  # without a split it knows no difference
    first = okl.run(okl.Tree(learner, leaf_rows=200, max_leaves=2), X[:200], y[:200])
    tree = okl.Tree(learner, leaf_rows=200, max_leaves=2)
    proof = okl.run(tree, X, y).certificate
    own = sum(
        okl.run(learner.reset(), X[X[:, 0] == side], y[X[:, 0] == side]).certificate.bound[-1]
        for side in (-1.0, 1.0)
    )
    assert first.losses.sum() > 100 and proof.loss[-1] - first.losses.sum() < 1.0
    assert proof.regret[-1] <= proof.bound[-1] + 1e-9
    assert proof.regret[-1] > 2 * own  # control: without it the bound would not hold


def test_the_fit_of_an_estimator_ends_with_a_restart_in_each_leaf():
    X = np.random.default_rng(0).normal(size=(200, 3))
    tree = okl.Tree(okl.SelfTuning())
    model = okl.interop.OnlineRegressor(tree, shuffle=False).fit(X, X[:, 0])
    (leaf,) = model.learner_._leaves.values()
    assert leaf._restarts.last == 200


def test_which_learners_have_a_certificate():
    X, y = stream("shuffled", 100)
    for learner, certified in (
        (okl.OGD(), False),
        (okl.LinearAWV(discount=0.9), False),
        (okl.Standardized(okl.LinearAWV(discount=0.9)), False),
        (okl.LinearAWV(), True),
        (okl.SelfTuning(), True),
    ):
        proof = okl.run(okl.Tree(learner, leaf_rows=40), X, y).certificate
        assert (proof is not None) == certified
        if certified:
            assert proof.space.startswith("4 leaves") and proof.member is None
            assert (proof.regret <= proof.bound + 1e-9).all()
            if proof.guaranteed is not None:
                assert (proof.loss <= proof.guaranteed + 1e-9).all()
    ridge = okl.run(okl.Tree(okl.LinearRidge(), leaf_rows=40), X, y).certificate
    np.testing.assert_allclose(ridge.bound, ridge.regret)


@pytest.mark.filterwarnings("error")
def test_labels_whose_squares_overflow_end_no_run():
    X, y = stream("shuffled", 100)
    tree = okl.Tree(okl.LinearAWV(), leaf_rows=20).partial_fit(X, 1e160 * y)
    assert count_leaves(tree) > 4 and np.isfinite(tree.predict(X)).all()


# ---- the battery, with splits ----


CASES = {
    "OGD": partial(okl.Tree, okl.OGD(0.1), leaf_rows=20),
    "NystromAWV": partial(okl.Tree, NYSTROM, leaf_rows=20, max_leaves=5),
    "KernelAWV": partial(okl.Tree, okl.KernelAWV(KERNEL), leaf_rows=16),
    "SelfTuning": partial(okl.Tree, okl.SelfTuning(budget=20), leaf_rows=50, max_leaves=3),
    "within": lambda: okl.Standardized(okl.Tree(NYSTROM, leaf_rows=25)),
}


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=name, marks=[pytest.mark.slow] * (name == "SelfTuning"))
        for name, case in CASES.items()
    ],
)
@pytest.mark.parametrize("name", ["random", *HARD])
@far_from_the_origin
def test_hard_streams(case, name):
    if name != "random":
        battery.test_hard_streams_give_finite_forecasts_in_bulk_and_by_hand(case, name)
    if case()._traits.certificate_rows:
        battery.test_regret_is_below_its_bound_at_every_round(case, name)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_causality_cuts_files_and_data_that_is_given_away(case, tmp_path):
    battery.test_a_forecast_never_depends_on_its_own_or_a_later_label(case)
    battery.test_inputs_are_neither_changed_nor_kept(case)
    battery.test_before_any_data_every_forecast_is_zero(case, None)
    battery.test_a_run_is_the_loop_written_by_hand(case)
    battery.test_run_over_chunks(case)
    saving.test_save_load_and_copies_go_on_bit_for_bit(case, 70, tmp_path)
    saving.test_reset_goes_back_to_no_data(case)


# ---- several outputs, estimators, river, other wrappers ----


@pytest.mark.parametrize("learner", [NYSTROM, okl.LinearRidge(), okl.OGD(0.1)], ids=type)
def test_several_outputs_are_so_many_trees(learner):
    X, y = stream("shuffled", 300)
    Y = np.column_stack([y, np.sin(X[:, 0]), -y])
    several = okl.MultiOutput(okl.Tree(learner, leaf_rows=40))
    run = okl.run(several, X, Y)
    assert len(several.learners_) == (1 if learner._traits.outputs_at_once else 3)
    for k in range(3):
        one = okl.run(okl.Tree(learner, leaf_rows=40), X, Y[:, k])
        assert_array_equal(run.predictions[:, k], one.predictions)
        if one.certificate is not None:
            assert_same_proofs(run.certificate, one.certificate, (slice(None), k))


def test_a_copy_before_the_first_row_has_the_size_of_the_tree():
    X, y = stream("shuffled", 3)
    model = okl.Horizon(okl.Tree(okl.LinearRidge())).partial_fit(X, y)  # whose rows wait
    assert copy.deepcopy(model).size == model.size == 0


def test_classes_and_columns_that_come_later():
    X, y = stream("shuffled", 300)
    classes = np.digitize(y, [-0.3, 0.3])
    model = OnlineClassifier(okl.Tree(NYSTROM, leaf_rows=40))
    model.partial_fit(X[:100], np.minimum(classes[:100], 1)).partial_fit(X[100:], classes[100:])
    known = OnlineClassifier(okl.Tree(NYSTROM, leaf_rows=40))
    known.partial_fit(X[:100], np.minimum(classes[:100], 1), classes=[0, 1, 2])
    known.partial_fit(X[100:], classes[100:])
    assert_allclose(model.decision_function(X), known.decision_function(X), rtol=1e-9)
    narrow = okl.Tree(NYSTROM, leaf_rows=40).partial_fit(X[:150, :2], y[:150])
    wide = okl.Tree(NYSTROM, leaf_rows=40).partial_fit(X[:150] * [1, 1, 0], y[:150])
    more = copy_with_columns(narrow, 3)
    assert_array_equal(okl.run(more, X, y).predictions, okl.run(wide, X, y).predictions)


# ---- trouble and wrong input ----


@pytest.mark.parametrize("error", [FloatingPointError, KeyboardInterrupt])
def test_trouble_in_a_leaf_refuses_until_reset(error, monkeypatch):
    X, y = stream("shuffled", 200)
    tree = okl.Tree(okl.OGD(0.1), leaf_rows=30).partial_fit(X[:100], y[:100])
    play, left = okl.OGD._play, [2]

    def interrupted(self, *data):
        left[0] -= 1
        if not left[0]:
            raise error("here")
        play(self, *data)

    monkeypatch.setattr(okl.OGD, "_play", interrupted)
    raises(error, "here", tree.partial_fit, X[100:], y[100:])
    monkeypatch.undo()
    for call in (tree.predict_one, lambda x: tree.learn_one(x, 1.0), lambda x: tree.health()):
        with pytest.raises((FloatingPointError, RuntimeError)):
            call(X[0])
    assert okl.run(tree.reset(), X, y).rounds == 200


def test_numerical_trouble_names_the_leaf():
    X, y = stream("shuffled", 200)
    tree = okl.Tree(okl.OGD(0.1), leaf_rows=30).partial_fit(X[:100], y[:100])
    with pytest.raises(FloatingPointError, match=r"leaf \d, counting its rounds: OGD, round \d"):
        for _ in range(5):
            tree.partial_fit(X * 1e120, y)
    troubled("reset", tree.predict, X)
