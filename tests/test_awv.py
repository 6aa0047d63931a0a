"""The AWV family against the textbook, and the theory against its runs."""

import numba
import numpy as np
import pytest

import oklnumba as okl
from tests import naive

KERNELS = [
    (okl.Gaussian(0.8), lambda X, Z: naive.gaussian(X, Z, 0.8)),
    (okl.Laplacian(0.7), lambda X, Z: naive.laplacian(X, Z, 0.7)),
    (okl.Matern(0.5, 0.9), lambda X, Z: naive.matern(X, Z, 0.5, 0.9)),
    (okl.Matern(1.5, 0.9), lambda X, Z: naive.matern(X, Z, 1.5, 0.9)),
    (okl.Matern(2.5, 0.9), lambda X, Z: naive.matern(X, Z, 2.5, 0.9)),
    (okl.Polynomial(3, 0.5, 1.0), lambda X, Z: naive.polynomial(X, Z, 3, 0.5, 1.0)),
    (okl.Linear(), naive.linear),
]
KERNEL_IDS = [repr(kernel) for kernel, _ in KERNELS]
LAMS = [1.0, 1e-3]


def stream(n=200, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    return X, np.sin(3 * X[:, 0]) * X[:, -1] + 0.1 * rng.standard_normal(n)


def assert_close(found, expected, rtol=1e-9):
    """Relative to the largest forecast: forecasts themselves pass through zero."""
    np.testing.assert_allclose(found, expected, rtol=0, atol=rtol * np.abs(expected).max())


# ---- forecasts are those of the definition ----


@pytest.mark.parametrize("lam", LAMS)
@pytest.mark.parametrize(("kernel", "k"), KERNELS, ids=KERNEL_IDS)
@pytest.mark.parametrize("awv", [True, False])
def test_exact_kernel_learners_equal_the_dense_argmin(kernel, k, lam, awv):
    X, y = stream()
    learner = (okl.KernelAWV if awv else okl.KernelRidge)(kernel, lam)
    expected = naive.kernel_forecasts(k(X, X), y, lam, awv)
    assert_close(okl.run(learner, X, y).predictions, expected)


@pytest.mark.parametrize("lam", LAMS)
@pytest.mark.parametrize("forecaster", ["awv", "ridge"])
@pytest.mark.parametrize("kind", ["taylor", "fourier", "nystrom"])
def test_pkawv_equals_the_dense_argmin(kind, forecaster, lam):
    X, y = stream()
    features = {
        "taylor": okl.TaylorFeatures(3, 0.8, center=[0.1, 0.0, -0.2]),
        "fourier": okl.FourierFeatures(15, 0.8, seed=3),
        "nystrom": okl.NystromFeatures(X[:12], okl.Laplacian(0.9)),
    }[kind]
    F = features.transform(X)
    if kind == "taylor":  # the basis too from its definition
        F = naive.taylor(X, 3, 0.8, np.array([0.1, 0.0, -0.2]))
    expected = naive.feature_forecasts(F, y, lam, forecaster == "awv")
    assert_close(okl.run(okl.PKAWV(features, lam, forecaster), X, y).predictions, expected)


@pytest.mark.parametrize("lam", [1.0, 1e-3, 1e-6, 1e-9, 1e-12])
def test_small_lam_costs_no_digits(lam):
    """The factor is updated, not the inverse: a dense solve in double precision is worse."""
    X, y = stream(n=120, d=2)
    F = naive.taylor(X, 4, 1.0).astype(np.longdouble)
    exact = np.empty(len(y))
    for t in range(len(y)):
        A = lam * np.eye(F.shape[1]) + F[: t + 1].T @ F[: t + 1]
        exact[t] = F[t] @ naive.longdouble_solve(A, F[:t].T @ y[:t])
    found = okl.run(okl.PKAWV(okl.TaylorFeatures(4, 1.0), lam), X, y).predictions
    assert_close(found, exact, rtol=1e-12)


@pytest.mark.parametrize("lam", LAMS)
@pytest.mark.parametrize("forecaster", ["awv", "ridge"])
@pytest.mark.parametrize(("kernel", "k"), KERNELS, ids=KERNEL_IDS)
def test_nystrom_awv_equals_the_dense_argmin(kernel, k, forecaster, lam):
    X, y = stream()
    mu = 0.5
    sampler = okl.KORS(kernel, alpha=mu, seed=4).partial_fit(X)
    learner = okl.NystromAWV(kernel, lam, mu=mu, forecaster=forecaster, seed=4)
    run = okl.run(learner, X, y)
    expected = naive.nystrom_forecasts(k, X, y, lam, list(sampler.indices_), forecaster == "awv")
    assert_close(run.predictions, expected.astype(float))
    np.testing.assert_array_equal(
        run.sizes, np.searchsorted(sampler.indices_, np.arange(len(X)), side="right")
    )


@pytest.mark.parametrize("lam", LAMS)
@pytest.mark.parametrize("spread", [0.2, 0.1, 0.05, 0.02, 0.01])
def test_nystrom_awv_on_ill_conditioned_dictionaries(spread, lam):
    """Clusters: the dictionary's kernel matrix has a condition number up to 1e15.

    Rounding the kernel's values to double precision moves the exact forecasts themselves; the
    learner may be off by a few times that, and by no more than 1e-8 where that is nothing.
    """
    rng = np.random.default_rng(1)
    centres = rng.uniform(-1, 1, (5, 2))
    X = centres[rng.integers(0, 5, 150)] + spread * rng.standard_normal((150, 2))
    y = np.sin(3 * X[:, 0]) + 0.1 * rng.standard_normal(150)
    kernel = okl.Gaussian(1.0)
    sampler = okl.KORS(kernel, seed=0).partial_fit(X)
    assert np.linalg.cond(kernel(sampler.landmarks_)) > 1e10

    def rounded(A, B):
        return naive.gaussian(A, B).astype(float).astype(np.longdouble)

    found = okl.run(okl.NystromAWV(kernel, lam, seed=0), X, y).predictions
    kept = list(sampler.indices_)
    exact = naive.nystrom_forecasts(naive.gaussian, X, y, lam, kept, True)
    moved = np.abs(naive.nystrom_forecasts(rounded, X, y, lam, kept, True) - exact).max()
    assert np.abs(found - exact).max() <= 1e-8 + 3 * moved
    if lam == 1.0:
        assert_close(found, exact.astype(float), rtol=1e-10)


def test_null_directions_count_in_kors_and_not_in_the_span():
    """The same point for ever: KORS keeps several copies, whose span is one direction."""
    X, y = np.full((300, 2), 0.5), np.ones(300)
    learner = okl.NystromAWV(okl.Gaussian(1.0), seed=0)
    run = okl.run(learner, X, y)
    assert learner.size > 1
    t = np.arange(300)
    np.testing.assert_allclose(run.predictions, t / (t + 2.0), rtol=1e-12)


# ---- KORS ----


@pytest.mark.parametrize(("kernel", "k"), KERNELS, ids=KERNEL_IDS)
def test_kors_equals_its_definition(kernel, k):
    X, _ = stream(n=150)
    sampler = okl.KORS(kernel, alpha=0.5, beta=1.3, eps=0.4, seed=7).partial_fit(X)
    rng = np.random.default_rng(7)
    coins = np.array([rng.random() for _ in range(150)])
    kept, probabilities = naive.kors(k, X, coins, 0.5, 1.3, 0.4)
    np.testing.assert_array_equal(sampler.indices_, kept)
    np.testing.assert_allclose(sampler.probabilities_, probabilities[kept], rtol=1e-8)
    np.testing.assert_array_equal(sampler.landmarks_, X[kept])


def test_known_inputs_is_pkawv_on_the_span_of_a_kors_dictionary():
    X, y = stream()
    kernel = okl.Gaussian(1.0)
    run = okl.run(okl.PKAWV.known_inputs(kernel, X, lam=0.1, mu=0.3, seed=2), X, y)
    atoms = okl.KORS(kernel, alpha=0.3, seed=2).partial_fit(X).landmarks_
    K = naive.gaussian(X, atoms)
    values, vectors = np.linalg.eigh(naive.gaussian(atoms, atoms))
    F = K @ vectors / np.sqrt(values)
    assert_close(run.predictions, naive.feature_forecasts(F, y, 0.1, True), rtol=1e-8)


# ---- limits ----


def test_pkawv_with_every_point_in_the_dictionary_is_kernel_awv():
    X, y = stream(n=100)
    kernel = okl.Laplacian(1.0)
    exact = okl.run(okl.KernelAWV(kernel, 0.1), X, y).predictions
    fixed = okl.run(okl.PKAWV(okl.NystromFeatures(X, kernel), 0.1), X, y).predictions
    assert_close(fixed, exact)
    growing = okl.run(okl.NystromAWV(kernel, 0.1, beta=1e9), X, y)
    assert growing.sizes[-1] == 100
    assert_close(growing.predictions, exact)


def test_taylor_pkawv_tends_to_kernel_awv():
    X, y = stream(n=150, d=2)
    exact = okl.run(okl.KernelAWV(okl.Gaussian(1.0), 0.5), X, y).predictions
    gaps = [
        np.abs(okl.run(okl.PKAWV(okl.TaylorFeatures(M, 1.0), 0.5), X, y).predictions - exact).max()
        for M in (2, 5, 8, 11, 14)
    ]
    assert all(after < before / 5 for before, after in zip(gaps, gaps[1:], strict=False))
    assert gaps[-1] < 1e-6


def test_max_size_stops_the_dictionary_and_frees_the_past():
    X, y = stream(n=600)
    learner = okl.NystromAWV(okl.Gaussian(0.5), max_size=20, seed=1)
    run = okl.run(learner, X, y)
    free = okl.run(okl.NystromAWV(okl.Gaussian(0.5), seed=1), X, y)
    assert free.sizes[-1] > 20 == run.sizes[-1] == learner.size
    full = int(np.argmax(run.sizes == 20))
    np.testing.assert_array_equal(run.predictions[: full + 1], free.predictions[: full + 1])
    assert sum(v.nbytes for v in vars(learner).values() if isinstance(v, np.ndarray)) < 100_000


# ---- exactness of the bulk calls ----


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="bitwise equality is that of compiled code")
@pytest.mark.filterwarnings("ignore:the Taylor basis")
@pytest.mark.parametrize("degree", [0, 1, 2, 4])
def test_pkawv_in_any_cut_gives_the_same_bits(degree):
    X, y = stream(n=700)
    features = okl.TaylorFeatures(degree, 1.0)
    whole = okl.run(okl.PKAWV(features), X, y).predictions
    learner = okl.PKAWV(features)
    loop = []
    for x, label in zip(X, y, strict=True):
        loop.append(okl.run(learner, x[None], [label]).predictions[0])
    np.testing.assert_array_equal(whole, loop)


def test_kernel_awv_blocks_equal_single_rounds_across_block_edges():
    X, y = stream(n=700)
    kernel = okl.Gaussian(1.0)
    whole = okl.KernelAWV(kernel, 1e-3).partial_fit(X, y)
    parts = okl.KernelAWV(kernel, 1e-3)
    for cut in np.split(np.arange(700), [1, 255, 256, 258, 511, 690, 691]):
        parts.partial_fit(X[cut], y[cut])
    probe = stream(n=20, seed=9)[0]
    assert_close(parts.predict(probe), whole.predict(probe))
    assert_close(np.array([parts.predict_one(x) for x in probe]), whole.predict(probe))


# ---- the certificate, and the theorems as tests ----


def streams(n=150, d=2):
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, (n, d))
    y = np.sign(rng.standard_normal(n))
    order = np.argsort(X[:, 0])
    alternating = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    return {
        "random": (X, y),
        "sorted": (X[order], np.sin(4 * X[order, 0])),
        "repeated": (X[rng.integers(0, 6, n)], y),
        "one point, alternating": (np.full((n, d), 0.3), alternating),
        "grid, alternating": (np.linspace(-1, 1, n * d).reshape(n, d), alternating),
        "growing labels": (X, y * np.linspace(0.01, 10, n)),
    }


STREAMS = streams()


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("lam", [1.0, 1e-2])
def test_kernel_awv_certificate_is_exact_and_proposition_1_holds(name, lam):
    X, y = STREAMS[name]
    kernel = okl.Gaussian(0.7)
    run = okl.run(okl.KernelAWV(kernel, lam), X, y)
    K = naive.gaussian(X, X, 0.7)
    expected = [naive.penalised_comparator(K[:t, :t], y[:t], lam) for t in range(1, len(y) + 1)]
    certificate = run.certificate
    np.testing.assert_allclose(certificate.comparator, expected, rtol=1e-9)
    np.testing.assert_allclose(certificate.loss, np.cumsum((y - run.predictions) ** 2), rtol=1e-12)
    np.testing.assert_allclose(certificate.regret, run.regret(kernel, lam), rtol=1e-9, atol=1e-9)
    B = np.maximum.accumulate(np.abs(y))
    dets = [np.linalg.slogdet(K[:t, :t] / lam + np.eye(t))[1] for t in range(1, len(y) + 1)]
    np.testing.assert_allclose(certificate.bound, B**2 * dets, rtol=1e-9)
    assert (certificate.regret <= certificate.bound).all()
    last = okl.theory.awv_bound(kernel, X, lam, B[-1])
    np.testing.assert_allclose(certificate.bound[-1], last, rtol=1e-9)


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("degree", [1, 3, 6])
def test_pkawv_certificate_is_exact_and_theorem_3_holds(name, degree):
    X, y = STREAMS[name]
    lam, features = 0.5, okl.TaylorFeatures(degree, 0.7)
    run = okl.run(okl.PKAWV(features, lam), X, y)
    F = naive.taylor(X, degree, 0.7)
    G = F @ F.T
    expected = [naive.penalised_comparator(G[:t, :t], y[:t], lam) for t in range(1, len(y) + 1)]
    np.testing.assert_allclose(run.certificate.comparator, expected, rtol=1e-9)
    assert (run.certificate.regret <= run.certificate.bound).all()
    kernel = okl.Gaussian(0.7)
    regret = run.regret(kernel, lam)  # now against the whole RKHS
    bound = okl.theory.pkawv_bound(kernel, features, X, lam, np.abs(y).max())
    assert regret[-1] <= bound


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("lam", [1.0, 1e-2])
def test_nystrom_certificate_is_exact_in_its_changing_space(name, lam):
    X, y = STREAMS[name]
    kernel = okl.Laplacian(0.7)
    run = okl.run(okl.NystromAWV(kernel, lam, mu=0.1, seed=3), X, y)
    kept = okl.KORS(kernel, alpha=0.1, seed=3).partial_fit(X).indices_
    expected = []
    for t in range(1, len(y) + 1):
        atoms = np.unique(X[kept[kept < t]], axis=0)
        values, vectors = np.linalg.eigh(naive.laplacian(atoms, atoms, 0.7))
        F = naive.laplacian(X[:t], atoms, 0.7) @ vectors / np.sqrt(values)
        expected.append(naive.penalised_comparator(F @ F.T, y[:t], lam))
    np.testing.assert_allclose(run.certificate.comparator, expected, rtol=1e-9)


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("lam", [1.0, 1e-2])
@pytest.mark.parametrize("mu", [1.0, 0.01])
def test_nystrom_regret_stays_under_its_bound(name, lam, mu):
    X, y = STREAMS[name]
    run = okl.run(okl.NystromAWV(okl.Gaussian(0.7), lam, mu=mu, seed=3), X, y)
    assert (run.certificate.regret <= run.certificate.bound + 1e-9).all()


def test_ridge_has_no_bound_and_breaks_the_one_of_awv():
    """Negative control: the artificial point (x_t, 0) is what the bound rests on."""
    n = 60
    y = 50.0 * np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    X = np.linspace(0, 1, n)[:, None]
    kernel, lam = okl.Gaussian(1.0), 1e-4
    awv = okl.run(okl.KernelAWV(kernel, lam), X, y).certificate
    ridge = okl.run(okl.KernelRidge(kernel, lam), X, y).certificate
    np.testing.assert_allclose(ridge.comparator, awv.comparator, rtol=1e-12)
    assert np.isnan(ridge.bound).all()
    assert (awv.regret <= awv.bound).all()
    assert (ridge.regret > awv.bound).any()


def test_certificate_goes_on_from_the_rounds_before_the_run():
    X, y = stream(n=90)
    learner = okl.PKAWV(okl.TaylorFeatures(2, 1.0))
    whole = okl.run(okl.PKAWV(okl.TaylorFeatures(2, 1.0)), X, y).certificate
    learner.partial_fit(X[:50], y[:50])
    rest = okl.run(learner, X[50:], y[50:]).certificate
    for a, b in zip(whole, rest, strict=True):
        np.testing.assert_array_equal(a[50:], b)


# ---- trouble ----


@pytest.mark.parametrize(
    "learner",
    [
        okl.KernelAWV(okl.Gaussian(1.0), lam=1e-300),
        okl.KernelAWV(okl.Polynomial(4), lam=1.0),
        okl.PKAWV(okl.TaylorFeatures(2), lam=1.0),
        okl.NystromAWV(okl.Polynomial(4), lam=1.0),
    ],
    ids=repr,
)
def test_numerical_trouble_names_the_round_and_what_to_change(learner):
    X = np.array([[1.0], [1.0], [1.0]]) * (1e90 if "Polynomial" in repr(learner) else 1.0)
    y = np.array([1.0, 1e308, 1e308])
    with (
        np.errstate(all="ignore"),
        pytest.raises(FloatingPointError, match=r"round \d.*raise lam.*reset"),
    ):
        learner.partial_fit(np.concatenate([X, X]), np.concatenate([y, -y * 1.7]))
    with pytest.raises(FloatingPointError, match="reset"):
        learner.predict_one([1.0])
    learner.reset()
    if "1e-300" not in repr(learner):
        assert np.isfinite(learner.learn_one([0.5], 1.0).predict_one([0.5]))


def test_low_captured_share_is_said_by_run():
    X = np.full((10, 3), 9.0)
    with pytest.warns(UserWarning, match="centre the basis"):
        okl.run(okl.PKAWV(okl.TaylorFeatures(2, 1.0)), X, np.ones(10))
