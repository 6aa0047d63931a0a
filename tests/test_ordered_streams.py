"""Dictionaries on ordered streams, as time series are: nearly coincident atoms cost no digits."""

import itertools

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import oklnumba as okl
from oklnumba.hot.primitives.dictionary import NUGGET
from tests.checks import arrays
from tests.reference import naive, naive_expansions

pytestmark = pytest.mark.slow


def streams(n=160):
    rng = np.random.default_rng(8)
    line, angle = np.linspace(-1, 1, n)[:, None], np.linspace(0, 6 * np.pi, n)
    spiral = np.stack([angle * np.cos(angle), angle * np.sin(angle)], axis=1) / 20
    clusters = np.repeat(rng.uniform(-1, 1, (n // 20, 3)), 20, axis=0)
    found = {
        "sorted": line,
        "clustered": clusters + 1e-4 * rng.standard_normal(clusters.shape),
        "repeated": np.repeat(rng.uniform(-1, 1, (n // 8, 3)), 8, axis=0),
        "random walk": np.cumsum(0.02 * rng.standard_normal((n, 3)), axis=0),
    }
    found = {name: (X, np.sin(3 * X[:, 0])) for name, X in found.items()}
    for name, frequency in (("lagged", 0.05), ("slowly lagged", 0.01)):
        series = np.sin(frequency * np.arange(n + 4))
        found[name] = sliding_window_view(series[:-1], 4).copy(), series[4:]
    return found | {"spiral": (spiral, np.sign(np.sin(angle)))}


STREAMS = streams()
every_stream = pytest.mark.parametrize("name", STREAMS)
SIGMA = 0.5
KERNEL = okl.Gaussian(SIGMA)
LEVELS = (1.0, 1e-3, 1e-6)


def every_stream_with(others):
    """Each stream with each level, and each level with one of the others after the other."""
    turns = itertools.product(enumerate(STREAMS), enumerate(LEVELS))
    return [(name, level, others[(i + j) % len(others)]) for (i, name), (j, level) in turns]


def signs(y):
    return np.where(y > 0, 1.0, -1.0)


def exact_features(X, atoms, rounded=False):
    """Return R^-T k(atoms, x) for each row of X in extended precision, with nuggets in R'R.

    ``rounded``: of the kernel's values rounded to double precision.
    """
    X, atoms = X.astype(np.longdouble), atoms.astype(np.longdouble)
    K, F = naive.gaussian(atoms, atoms, SIGMA), naive.gaussian(atoms, X, SIGMA)
    if rounded:
        K, F = (A.astype(float).astype(np.longdouble) for A in (K, F))
    L = naive.longdouble_cholesky(K + NUGGET * np.eye(len(atoms)))
    for j in range(len(L)):
        F[j] = (F[j] - L[j, :j] @ F[:j]) / L[j, j]
    return F.T


def exact_and_moved(twin, X, atoms, *rest):
    """Return the forecasts of a twin on exact features, and of the kernel's values rounded."""
    return (twin(exact_features(X, atoms, rounded), *rest) for rounded in (False, True))


def exact_distances(X, atoms):
    """Return the squared distance of k(x, .) to the span of atoms, with the nuggets, for each x."""
    return 1.0 + NUGGET - (exact_features(X, atoms) ** 2).sum(axis=1)


def some_rounds(n):
    """Return the rounds for which the twins below solve: the first ones, each fifth, the last."""
    return np.r_[1:10, 10 : n - 1 : 5, n - 1]


def nystrom_twin(F, y, lam, kept):
    """Forecasts of Nystrom-AWV: features are nested, so that one factor has those of all rounds."""
    y = y.astype(np.longdouble)
    A = lam * np.eye(len(kept), dtype=np.longdouble)
    b = np.zeros(len(kept), dtype=np.longdouble)
    out = []
    for t, z in enumerate(F):
        A += np.outer(z, z)
        if t in some_rounds(len(y)):
            m = np.searchsorted(kept, t, side="right")
            out.append(z[:m] @ naive.longdouble_solve(A[:m, :m], b[:m]))
        b += y[t] * z
    return np.array(out)


def without_future(F, kept):
    """Set the parts of each round in the directions of later atoms to 0."""
    later = np.arange(F.shape[1]) >= np.searchsorted(kept, np.arange(len(F)), side="right")[:, None]
    return np.where(later, 0.0, F)


def newton_twin(F, y, alpha, C, kept, restart, share=0.5):
    """Forecasts of CON-KONS, or of Pros-N-KONS: the Newton step from 0 for each new atom.

    ``share`` of the curvature is used; all of it by KONS.
    """
    F, y = without_future(F, kept), y.astype(np.longdouble)
    cuts = kept[1:] if restart else []
    eta = share * okl.losses.get("squared").curvature(C)
    parts = zip(np.split(F, cuts), np.split(y, cuts), strict=True)
    derivative = naive.LOSS_DERIVATIVES["squared"]
    steps = [naive.newton_steps(f, part, derivative, C, alpha, eta) for f, part in parts]
    return np.concatenate([step.forecasts for step in steps])


def krls_twin(F, y, kept):
    """Forecasts of least squares over the rounds before."""
    F, y = without_future(F, kept), y.astype(np.longdouble)
    out = []
    for t in some_rounds(len(y)):
        past = F[:t, : np.searchsorted(kept, t - 1, side="right")]
        w = naive.longdouble_solve(past.T @ past, past.T @ y[:t])
        out.append(F[t, : len(w)] @ w)
    return np.array(out)


@pytest.mark.parametrize(("name", "lam", "mu"), every_stream_with(LEVELS))
def test_nystrom_awv_equals_its_twin(name, lam, mu):
    """To three times what rounding does to the factor, and 1e-9 / lam for null directions.

    An entry of the factor is a kernel value after up to m subtractions, each rounded: what rounding
    the values alone does, times the sqrt(m) of errors that add up at random.
    """
    X, y = (part[:90] for part in STREAMS[name])
    kept = okl.KORS(KERNEL, alpha=mu, seed=2).partial_fit(X).indices_
    run = okl.run(okl.NystromAWV(KERNEL, lam=lam, mu=mu, seed=2), X, y)
    exact, moved = exact_and_moved(nystrom_twin, X, X[kept], y, lam, kept)
    allowed = 1e-9 / lam + 3.0 * np.sqrt(len(kept)) * np.abs(moved - exact).max()
    assert np.abs(run.predictions[some_rounds(len(y))] - exact).max() <= allowed


@pytest.mark.parametrize(("name", "alpha", "restart"), every_stream_with((False, True)))
def test_pros_n_kons_equals_its_twin(name, alpha, restart):
    """To what rounding the kernel's values does, and what null directions may."""
    X, y = (part[:64] for part in STREAMS[name])
    mu, C = 1e-3, 1.0
    kept = okl.KORS(KERNEL, alpha=mu, seed=2).partial_fit(X).indices_
    learner = okl.ProsNKONS(KERNEL, C=C, alpha=alpha, mu=mu, restart=restart, seed=2)
    run = okl.run(learner, X, y)
    exact, moved = exact_and_moved(newton_twin, X, X[kept], y, alpha, C, kept, restart)
    allowed = min(1e-6 / alpha, 2e-3) + 3.0 * np.abs(moved - exact).max()
    assert np.abs(run.predictions - exact).max() <= allowed


@every_stream
@pytest.mark.parametrize("alpha", [1.0, 1e-3, 1e-6])
def test_kons_and_sketched_kons_equal_their_twin(name, alpha):
    """To a hundred times what rounding the kernel's values does, and 1e-11 / alpha."""
    X, y = (part[:45] for part in STREAMS[name])
    exact, moved = exact_and_moved(newton_twin, X, X, y, alpha, 1.0, np.zeros(45), False, 1.0)
    allowed = 1e-11 / alpha + 100.0 * np.abs(moved - exact).max()
    for learner in (
        okl.KONS(KERNEL, alpha=alpha),
        okl.SketchedKONS(KERNEL, alpha=alpha, gamma=1.0),
    ):
        assert np.abs(okl.run(learner, X, y).predictions - exact).max() <= allowed


@every_stream
@pytest.mark.parametrize("threshold", [0.1, 1e-2, 1e-4])
def test_krls_equals_least_squares(name, threshold):
    """To ten times what rounding the kernel's values does: nothing regularises."""
    X, y = STREAMS[name]
    learner = okl.KRLS(KERNEL, threshold=threshold**2)
    run = okl.run(learner, X, y)
    kept = np.flatnonzero(np.diff(run.sizes, prepend=0))
    exact, moved = exact_and_moved(krls_twin, X, X[kept], y, kept)
    allowed = 1e-9 + 10.0 * np.abs(moved - exact).max()
    assert np.abs(run.predictions[some_rounds(len(y))] - exact).max() <= allowed


def hinge_twins(K, y):
    """Learners of the hinge loss with dictionaries, and their dense versions' forecasts."""
    slope, n = naive_expansions.hinge_slope, len(y)
    skegd = okl.SkeGD(KERNEL, eta=0.1, budget=30, sketch=20, columns=10, blocks=2, rank=8, seed=1)

    def sketched():  # after the run
        columns, row = arrays(skegd)["sampled"], skegd._sketch_row
        return naive_expansions.skegd(K, y, slope, 0.1, 30, 8, columns, row)

    def optimistic():
        pomd = okl.POMD(KERNEL)
        ald, never = (lambda t: n**-0.5), (lambda t: np.inf)
        return naive_expansions.pomdr(K, y, pomd.radius, pomd.hints, ald, never, np.inf, n)

    return {
        "Projectron++": (
            okl.Projectron(KERNEL, threshold=0.1, aggressive=True),
            lambda: naive_expansions.projectron(K, y, 0.1, aggressive=True),
        ),
        "POMD": (okl.POMD(KERNEL, horizon=n, zeta=0.5), optimistic),
        "NOGD": (
            okl.NOGD(KERNEL, eta=0.1, budget=30, rank=10),
            lambda: naive_expansions.nogd(K, y, slope, 0.1, 30, 10),
        ),
        "SkeGD": (skegd, sketched),
    }


@every_stream
@pytest.mark.parametrize("kind", hinge_twins(np.eye(2), np.ones(2)))
def test_learners_of_the_hinge_loss_equal_their_dense_versions(kind, name):
    X, y = STREAMS[name]
    learner, dense = hinge_twins(naive.gaussian(X, X, SIGMA), signs(y))[kind]
    run = okl.run(learner, X, signs(y))
    np.testing.assert_allclose(run.predictions, dense()[0], rtol=0, atol=1e-8)


FACTORED = {
    "ALD": lambda threshold: okl.ALD(KERNEL, threshold=threshold),
    "KRLS": lambda threshold: okl.KRLS(KERNEL, threshold=threshold**2),
    "Projectron++": lambda threshold: okl.Projectron(KERNEL, threshold=threshold, aggressive=True),
    "POMD": lambda threshold: okl.POMD(KERNEL, horizon=160, zeta=-np.log(threshold) / np.log(160)),
}


@every_stream
@pytest.mark.parametrize("threshold", [0.1, 1e-2, 1e-4])
@pytest.mark.parametrize("kind", FACTORED)
def test_distances_to_a_dictionary_keep_their_digits(kind, threshold, name):
    X, y = STREAMS[name]
    learner = FACTORED[kind](threshold).partial_fit(X, signs(y))
    atoms = learner.landmarks_ if kind == "ALD" else learner.atoms
    exact = exact_distances(X, atoms)
    if kind != "ALD":  # a sampler has no file
        R = np.triu(arrays(learner)["R"])
        found = 1.0 + NUGGET - (np.linalg.solve(R.T, KERNEL(atoms, X)) ** 2).sum(axis=0)
        np.testing.assert_allclose(found, exact.astype(float), rtol=0, atol=1e-9)
    if kind in ("ALD", "KRLS"):  # which look at every point
        assert exact.max() <= threshold**2 + 1e-9
        before = [exact_distances(atoms[m : m + 1], atoms[:m])[0] for m in range(1, len(atoms))]
        assert min(before) >= threshold**2 - 1e-9
