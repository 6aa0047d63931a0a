"""Warnings of inputs and labels that do not suit a learner: given once, and no false alarms."""

import re
import warnings

import numpy as np
import pytest

import oklnumba as okl
from oklnumba.core.checks import warn_of_block
from tests.battery import LEARNERS, make, stream

PARTS = {"kernel", "kernels", "features", "learners"}
WITH_KERNELS = [cls for cls in LEARNERS if PARTS & set(make(cls).__signature__.parameters)]


def warnings_of(call):
    """Return the warnings of a call."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    assert all(w.category is UserWarning for w in caught)
    assert all(w.filename == __file__ for w in caught), "they point at the caller"
    return [str(w.message) for w in caught]


def calls(learner, X, y):
    """Return the calls that may warn, each once a fresh learner."""
    fresh = learner.get_params(deep=False)
    yield lambda: okl.run(type(learner)(**fresh), X, y)
    yield lambda: type(learner)(**fresh).partial_fit(X, y)
    yield lambda: okl.run(type(learner)(**fresh), [(X, y)])


# ---- inputs ----


@pytest.mark.parametrize("size", [1e5, 1e150])
@pytest.mark.parametrize("cls", WITH_KERNELS, ids=lambda cls: cls.__name__)
def test_every_learner_with_a_kernel_warns_of_isolated_inputs(cls, size):
    learner = make(cls)
    X, y = stream(learner, 64)
    for call in calls(learner, X, y):
        assert warnings_of(call) == []
    for call in calls(learner, size * X, y):
        (message,) = warnings_of(call)
        assert "scale" in message


@pytest.mark.parametrize(
    "kernel", [okl.Gaussian(), okl.Laplacian(), okl.Laplacian(norm=1), okl.Matern(2.5)], ids=repr
)
def test_the_width_that_is_advised_works(kernel):
    X, y = stream(okl.KernelAWV(kernel), 64)
    losses = []

    def play(kernel, size):
        losses.append(okl.run(okl.KernelAWV(kernel), size * X, y).mean_loss)

    for size, what in ((1e4, "0 between nearly all"), (1e-13, "1 between all")):
        (message,) = warnings_of(lambda: play(kernel, size))  # noqa: B023
        assert message.startswith(f"the kernel is {what} of the first inputs")
        assert "okl.datasets.scale_to(X)" in message
        sigma = float(message.split("take sigma about ")[1].split(",")[0])
        # The median distance of points in a cube of side 2.
        assert 0.5 < sigma / size < (2.0 if kernel.norm == 2 else 3.0)
        cured = type(kernel)(**(kernel.get_params() | {"sigma": sigma}))
        assert warnings_of(lambda: play(cured, size)) == []  # noqa: B023
        assert losses[-1] < losses[-2]
    scaled = okl.datasets.scale_to(1e4 * X)
    assert warnings_of(lambda: okl.KernelAWV(kernel).partial_fit(scaled, y)) == []


@pytest.mark.parametrize("size", [1e-160, 1e150])
def test_no_width_is_advised_that_a_kernel_refuses(size):
    X = size * np.random.default_rng(0).uniform(-1, 1, (100, 2))
    (said,) = warnings_of(lambda: okl.run(okl.KernelAWV(okl.Gaussian(1.0)), X, X[:, 0] / size))
    assert "scale_to" in said and "take sigma" not in said
    assert not warnings_of(
        lambda: okl.run(
            okl.KernelAWV(okl.Gaussian(1.0)), okl.datasets.scale_to(X), np.sign(X[:, 0])
        )
    )


@pytest.mark.parametrize("norm", [1, 2])
def test_wide_inputs_are_measured_in_pieces_and_each_pair_once(norm, monkeypatch):
    X, subtract, measured = np.random.default_rng(0).random((64, 2000)), np.subtract, []

    def count(*args, **keywords):
        differences = subtract(*args, **keywords)
        measured.append(differences[..., 0].size)
        return differences

    expected = [np.linalg.norm(x - z, norm) for i, x in enumerate(X) for z in X[:i]]
    monkeypatch.setattr(np, "subtract", count)
    message = okl.Laplacian(1e-3, norm=norm).advice(X)
    assert f"their median distance {np.median(expected):.3g};" in message
    assert len(measured) > 1 and sum(measured) < 0.6 * 64**2


def test_fourier_and_nystrom_features_warn_as_their_kernel():
    X, y = stream(okl.KernelAWV(okl.Gaussian()), 64)
    for learner in (
        okl.FOGD(loss="squared", eta=1e-3),
        okl.FOGD(okl.FourierFeatures(8), loss="squared", eta=1e-3),
        okl.PKAWV(okl.FourierFeatures(8)),
        okl.PKAWV(okl.NystromFeatures(1e5 * X[:5], okl.Gaussian(1.0))),
        okl.WithFeatures(okl.FourierFeatures(8), okl.LinearAWV()),
    ):
        for call in calls(learner, 1e5 * X, y):
            (message,) = warnings_of(call)
            assert message.startswith("the kernel is 0 between nearly all")


@pytest.mark.parametrize("kernel", [okl.Polynomial(3), okl.Linear()], ids=repr)
def test_other_kernels_warn_where_lam_is_lost(kernel):
    X, y = stream(okl.KernelAWV(kernel), 64)
    assert warnings_of(lambda: okl.KRLS(kernel).partial_fit(1e2 * X, y)) == []
    (message,) = warnings_of(lambda: okl.KRLS(kernel).partial_fit(1e9 * X, y))
    assert "lam = 1 is lost in rounding" in message


def test_ald_says_where_no_point_can_join():
    X, y = stream(okl.KernelAWV(okl.Gaussian()), 64)
    learner = okl.ProsNKONS(okl.Gaussian(), sampler="ald")
    for call in calls(learner, X, y):
        (message,) = warnings_of(call)
        assert message.startswith("mu=1 is at least k(x, x)")
    mu = float(message.split("take mu below ")[1].split(",")[0])
    assert warnings_of(lambda: learner.set_params(mu=0.9 * mu).partial_fit(X, y)) == []
    assert learner.size > 1


def test_one_suitable_kernel_is_enough():
    X, y = stream(okl.BAO2KS([okl.Gaussian()]), 64)
    X *= 1e5
    right, wrong, tiny = okl.Gaussian(1e5), okl.Gaussian(1.0), okl.Gaussian(1e20)
    for kernels, warns in (((wrong, tiny), 1), ((wrong, right), 0), ((right,), 0), ((wrong,), 1)):
        learners = okl.Experts([okl.KernelAWV(kernel) for kernel in kernels])
        for learner in (okl.BAO2KS(list(kernels)), learners):
            assert len(warnings_of(lambda: learner.partial_fit(X, y))) == warns  # noqa: B023
    assert len(warnings_of(lambda: okl.BAO2KS(wrong).partial_fit(X, y))) == 1


def test_several_classes_warn_once():
    X = 1e5 * np.random.default_rng(0).uniform(-1, 1, (64, 2))
    classes = np.arange(64) % 3
    learner = okl.OneVsRest(okl.KernelAWV(okl.Gaussian()), classes=[0, 1, 2])
    assert len(warnings_of(lambda: okl.run(learner, X, classes))) == 1
    assert warnings_of(lambda: okl.run(learner, X, classes)) == []
    for wrapper, y in (
        (learner.reset(), classes),
        (okl.MultiOutput(okl.KernelAWV(okl.Gaussian())), X[:, :2]),
        (okl.OnlineToBatch(okl.KernelAWV(okl.Gaussian())), X[:, 0]),
    ):
        for play in (wrapper.partial_fit, lambda X, y: okl.run(wrapper, X, y)):  # noqa: B023
            assert len(warnings_of(lambda: play(X, y))) == 1  # noqa: B023
            assert warnings_of(lambda: play(X, y)) == []  # noqa: B023
            wrapper.reset()


def test_a_learner_warns_once_and_not_of_few_or_repeated_inputs():
    X, y = stream(okl.KernelAWV(okl.Gaussian()), 64)
    learner = okl.KernelAWV(okl.Gaussian())
    assert len(warnings_of(lambda: learner.partial_fit(1e5 * X, y))) == 1
    assert warnings_of(lambda: learner.partial_fit(1e5 * X, y)) == []
    assert warnings_of(lambda: okl.run(learner, 1e5 * X, y)) == []
    assert len(warnings_of(lambda: okl.run(learner.reset(), 1e5 * X, y))) == 1
    few = okl.KernelAWV(okl.Gaussian())
    assert warnings_of(lambda: few.partial_fit(1e5 * X[:31], y[:31])) == []
    for repeated in (np.repeat(X[:1], 64, axis=0), np.repeat(1e5 * X[:32], 2, axis=0)):
        one = okl.KernelAWV(okl.Gaussian())
        assert warnings_of(lambda: one.partial_fit(repeated, y)) == []  # noqa: B023


def test_a_resumed_checkpoint_does_not_warn_again(tmp_path):
    X, y = stream(okl.KernelAWV(okl.Gaussian()), 64)
    file = tmp_path / "run.npz"
    first, again = (okl.KernelAWV(okl.Gaussian()) for _ in range(2))
    assert len(warnings_of(lambda: okl.run(first, 1e5 * X[:40], y[:40], checkpoint=file))) == 1
    assert warnings_of(lambda: okl.run(again, 1e5 * X, y, checkpoint=file)) == []


# ---- no false alarm ----

# sigma and range of the inputs in the scripts and in the papers' tables (li2023: Tables 2 to 5)
SETTINGS = {
    "magic04": [(0.5, (0, 1)), (4.0, (0, 1)), (2.0, (-1, 1)), (1.0, (-1, 1))],
    "mushrooms": [(2.0, (0, 1)), (0.5, (0, 1)), (1.0, (-1, 1))],
    "casp": [(1.0, (-1, 1)), (1.0, (0, 1)), (0.25, (-1, 1))],
    "w8a": [(4.0, (0, 1)), (64.0, (0, 1))],
    "susy30k": [(4.0, (-1, 1)), (4.0, (0, 1)), (32.0, None)],
}


@pytest.mark.parametrize("name", SETTINGS)
def test_no_data_set_with_the_settings_of_the_papers_warns(name):
    if not okl.datasets.found(name):
        pytest.skip(f"{name} is not here")
    for sigma, scale in SETTINGS[name]:
        data = okl.datasets.load(name, scale=scale)
        kernels = okl.Gaussian(sigma), okl.Laplacian(sigma), okl.Matern(1.5, sigma=sigma)
        learners = *map(okl.KernelAWV, kernels), okl.FOGD(loss="squared", sigma=sigma)
        orders = [np.random.default_rng(seed).permutation(len(data.y))[:64] for seed in range(10)]
        for rows in (*orders, slice(64)):  # some are sorted
            for one in learners:
                assert warnings_of(lambda: one._warn_of_rows(data.X[rows], data.y[rows])) == []  # noqa: B023


def test_sorted_and_drifting_streams_do_not_warn():
    """The first inputs are close to each other there, but not to rounding."""
    grid = np.linspace(-1, 1, 100_000)[:, None]
    learner = okl.KernelAWV(okl.Gaussian(1.0))
    assert warnings_of(lambda: learner._warn_of_rows(grid, grid[:, 0])) == []
    narrow = okl.KernelAWV(okl.Gaussian(0.001))  # fifty neighbours to a width
    shuffled = np.random.default_rng(0).permutation(grid)
    assert warnings_of(lambda: narrow._warn_of_rows(shuffled, grid[:, 0])) == []


# ---- labels ----


def test_a_regressor_on_classes_names_the_classifier():
    X, y = stream(okl.KernelAWV(okl.Gaussian()), 300)
    y = (y > 0.0).astype(int)
    for labels in (y, np.column_stack([y, 1 - y])):
        for call in ("fit", "partial_fit"):
            model = okl.interop.OnlineRegressor(okl.KernelAWV(okl.Gaussian()))
            (message,) = warnings_of(lambda: getattr(model, call)(X, labels))  # noqa: B023
            assert "okl.interop.OnlineClassifier" in message and "OneVsRest" not in message


def test_sorted_classes_are_warned_of_in_the_first_rounds_but_not_if_they_are_few():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (2000, 2)), rng.integers(0, 5, 2000)
    learner, fresh = (okl.OneVsRest(okl.LinearAWV(), range(5)) for _ in range(2))
    (message,) = warnings_of(lambda: okl.run(fresh, X, np.sort(y)))
    assert "shuffle" in message
    assert warnings_of(lambda: okl.run(learner, X, y)) == []
    assert warnings_of(lambda: okl.run(learner, X, np.sort(y))) == []  # not its first rounds
    (message,) = warnings_of(lambda: fresh.reset().partial_fit(X, np.sort(y)))
    assert "shuffle" in message
    assert warnings_of(lambda: fresh.partial_fit(X, np.sort(y))) == []
    short = np.sort(rng.choice([-1.0, 1.0], 40))
    assert warnings_of(lambda: okl.run(okl.LinearAWV(), X[:40], short)) == []


def chunks(y, rows):
    """Return pairs of some inputs and the labels, so many rows each."""
    X = np.random.default_rng(2).uniform(-1, 1, (len(y), 2))
    return [(X[i : i + rows], y[i : i + rows]) for i in range(0, len(y), rows)]


@pytest.mark.parametrize("rows", [1000, 2000])
@pytest.mark.parametrize("blocks", [(1200, 800), (300, 700, 1000), (350, 1300, 350)], ids=repr)
def test_a_block_is_seen_in_the_first_chunk_with_other_labels(blocks, rows):
    ends = np.cumsum(blocks)
    y = np.repeat([1.0, -1.0, 1.0][: len(blocks)], blocks)
    (message,) = warnings_of(lambda: okl.run(okl.LinearAWV(), chunks(y, rows)))
    first, last, seen = (int(text) for text in re.findall(r"\d+", message)[:3])
    assert (y[first : last + 1] == y[first]).all() and 30 < last - first < seen
    assert seen == min(start + rows for start in range(0, 2000, rows) if start + rows > ends[0])


def test_a_block_after_the_first_chunk_is_seen_and_only_once():
    y = np.random.default_rng(0).choice([-1.0, 1.0], 4000)
    y[2450:2750] = y[3000:3900] = 1.0
    y[[2449, 2750]] = -1.0
    (message,) = warnings_of(lambda: okl.run(okl.LinearAWV(), chunks(y, 500)))
    assert message.startswith("rows 2500 to 2749 of 3000 all have the same label")
    learner = okl.LinearAWV()
    assert warnings_of(lambda: okl.run(learner, chunks(y[:2400], 500))) == []
    assert warnings_of(lambda: okl.run(learner, chunks(y[2400:], 500))) == []  # goes on


def test_warnings_of_a_sweep_point_at_its_line():
    X, y = np.linspace(-1, 1, 300)[:, None], np.repeat([1.0, -1.0], 150)
    learners = [okl.FOGD(loss="squared")]
    assert warnings_of(
        lambda: okl.regret_vs_size(learners, X, y, okl.Gaussian(), 1.0, sizes=[4, 8])
    )


ORDERS = "signs", "one in a thousand", "three classes", "numbers", "few numbers", "constant"


@pytest.mark.parametrize("rows", [1, 100, 1000, 2000])
@pytest.mark.parametrize("how", ORDERS)
def test_labels_in_random_order_give_no_warning(how, rows):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        y = {
            "signs": rng.choice([-1.0, 1.0], 5000), "constant": np.ones(5000),
            "one in a thousand": np.where(rng.random(5000) < 0.001, 1.0, -1.0),
            "three classes": rng.choice([1.0, 2.0, 3.0], 5000, p=[0.9, 0.09, 0.01]),
            "numbers": rng.standard_normal(5000), "few numbers": rng.integers(0, 9, 5000) / 2.0,
        }[how]  # fmt: skip
        for i, (_, own) in enumerate(chunks(y, rows)):
            assert not warn_of_block(own, i * rows)
    told = warnings_of(lambda: okl.run(okl.LinearAWV(), chunks(y[:2000], rows)))
    assert all(one.startswith("the labels are 1 and 2") for one in told)  # the first ones
