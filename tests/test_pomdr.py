"""POMD and POMDR against the textbook, and what the paper proves of them."""

import math

import numba
import numpy as np
import pytest

import oklnumba as okl
from oklnumba.hot.linalg import grow_inverse
from oklnumba.theory.li2023 import _eigenvalue_bounds
from tests import naive, naive_expansions

N = 300 if not numba.config.DISABLE_JIT else 100
KERNELS = [
    (okl.Gaussian(1.0), naive.gaussian),
    (okl.Laplacian(0.7), lambda X, Z: naive.laplacian(X, Z, 0.7)),
    (okl.Polynomial(2, 0.5, 0.5), lambda X, Z: naive.polynomial(X, Z, 2, 0.5, 0.5)),
    (okl.Linear(), naive.linear),
]


def stream(n=N, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    return X, np.sign(np.sin(3 * X[:, 0]) * X[:, 1] + 0.3 * rng.standard_normal(n))


def assert_close(found, expected, rtol=1e-9):
    expected = np.asarray(expected)
    np.testing.assert_allclose(found, expected, rtol=0, atol=rtol * np.abs(expected).max())


def textbook(k, X, y, learner):
    """Return the textbook run of a learner with these hyper-parameters."""
    T = learner.horizon
    budget = getattr(learner, "budget", np.inf)
    rate_scale = getattr(learner, "rate_scale", 1.0)

    def rounds(t):
        return T or max(t, 2)

    def switch_size(t):
        if isinstance(learner, okl.POMD):
            return np.inf
        return learner.switch_size or min(math.ceil(15 * math.log(rounds(t))), budget - 1)

    def ald(t):
        return learner.ald_scale * rounds(t) ** -learner.zeta

    return naive_expansions.pomdr(
        k(X, X), y, learner.radius, learner.hints, ald, switch_size, budget, T, rate_scale
    )


LEARNERS = {
    "POMDR": lambda k: okl.POMDR(k, radius=5.0, switch_size=15, budget=30, horizon=N, zeta=0.9),
    "POMDR, by the rounds": lambda k: okl.POMDR(k, budget=60),
    "POMDR, few hints": lambda k: okl.POMDR(k, hints=1, switch_size=8, budget=10, rate_scale=1.0),
    "OMDR": lambda k: okl.POMDR(k, radius=2.0, switch_size=1, budget=20, horizon=N),
    "POMDR, t-bar = T": lambda k: okl.POMDR(k, switch_size=5, budget=20, horizon=7, ald_scale=0.1),
    "POMD": lambda k: okl.POMD(k, radius=5.0, horizon=N, zeta=0.6),
    "POMD, anytime": lambda k: okl.POMD(k, zeta=0.5),
}


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize(("kernel", "k"), KERNELS, ids=[repr(kernel) for kernel, _ in KERNELS])
def test_pomdr_equals_the_textbook(kernel, k, name):
    X, y = stream()
    learner = LEARNERS[name](kernel)
    run = okl.run(learner, X, y)
    forecasts, supports, norms, deltas, _ = textbook(k, X, y, learner)
    assert_close(run.predictions, forecasts)
    np.testing.assert_array_equal(run.sizes, [len(S) for S in supports])
    np.testing.assert_array_equal(learner.atoms, X[supports[-1]])
    assert_close(learner.norm, norms[-1])
    assert_close(learner.diary.alignment, deltas.sum())
    assert learner.diary.size == len(supports[-1])


def test_the_norm_is_maintained_and_never_exceeds_the_radius():
    X, y = stream()
    for name, make in LEARNERS.items():
        learner = make(okl.Gaussian(1.0))
        norms = textbook(naive.gaussian, X, y, learner)[2]
        found, own = [], []
        for x, label in zip(X, y, strict=True):
            learner.learn_one(x, label)
            found.append(learner.norm)
            a, atoms = learner.coefficients, learner.atoms
            own.append(math.sqrt(max(a @ naive.gaussian(atoms, atoms) @ a, 0.0)))
        assert_close(found, norms)
        assert_close(found, own)
        assert max(found) <= learner.radius * (1 + 1e-12), name
    assert max(found) > 0


def test_the_printed_norm_update_would_be_wrong():
    """Errata 26, a negative control: with lambda |grad|^2 for lambda^2 |grad|^2 the norm is off."""
    learner = okl.POMDR(okl.Gaussian(1.0), radius=1.0).learn_one([0.0], 1.0)
    rate = 1.0 / math.sqrt(3.0)
    assert learner.norm == pytest.approx(rate) and abs(learner.norm - math.sqrt(rate)) > 0.1


@pytest.mark.parametrize("zeta", [0.5, 1.0, 1.5])
def test_the_product_of_ald_residuals_is_the_determinant(zeta):
    X, y = stream()
    learner = okl.POMD(okl.Gaussian(1.0), zeta=zeta, horizon=N).partial_fit(X, y)
    residuals = textbook(naive.gaussian, X, y, learner)[4]
    pivots = np.diag(learner._R)[: learner.size] ** 2
    assert_close(np.log(pivots), np.log(residuals), rtol=1e-6)
    sign, log_det = np.linalg.slogdet(naive.gaussian(learner.atoms, learner.atoms))
    assert sign == 1.0 and np.log(pivots).sum() == pytest.approx(log_det, rel=1e-7)
    assert (pivots[1:] > N ** (-2 * zeta)).all()


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="far too long without the JIT")
def test_the_factor_keeps_its_digits_where_a_grown_inverse_loses_them():
    X, y = stream(600)
    learner = okl.POMD(okl.Gaussian(1.0), zeta=1.3, horizon=600).partial_fit(X, y)
    m = learner.size
    K = naive.gaussian(learner.atoms, learner.atoms)
    R = np.triu(learner._R[:m, :m])
    assert m > 80
    np.testing.assert_allclose(R.T @ R, K, rtol=0, atol=1e-13)
    P, v = np.zeros((m, m)), np.zeros(m)
    for j in range(m):
        grow_inverse(P, K[:, j].copy(), v, K[j, j], j)
    assert np.abs(P @ K - np.eye(m)).max() > 1e-6


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="too few rounds for removals")
def test_the_diary():
    X, y = stream()
    learner = okl.POMDR(okl.Gaussian(1.0), switch_size=15, budget=30, horizon=N)
    assert learner.diary == (None, 0, 0.0, 0, 0)
    supports = textbook(naive.gaussian, X, y, learner)[1]
    sizes = np.array([len(S) for S in supports])
    learner.partial_fit(X, y)
    diary = learner.diary
    assert diary.switch_round == int(np.argmax(sizes == 15)) + 2
    assert diary.removals == int((np.diff(sizes) < 0).sum()) > 3
    narrow = okl.POMDR(okl.Gaussian(4.0), horizon=N).partial_fit(X, y)
    assert narrow.diary.switch_round is None and narrow.diary.projections > 50
    assert narrow.diary.removals == 0


def test_pomdr_is_pomd_until_it_switches():
    X, y = stream()
    pomd = okl.run(okl.POMD(okl.Gaussian(1.0), horizon=N), X, y)
    learner = okl.POMDR(okl.Gaussian(1.0), horizon=N, zeta=1.0, ald_scale=1.0, switch_size=40)
    pomdr = okl.run(learner, X, y)
    switch = learner.diary.switch_round
    assert switch is not None and switch > 40
    np.testing.assert_array_equal(pomdr.predictions[:switch], pomd.predictions[:switch])
    assert (pomdr.sizes[: switch - 1] == pomd.sizes[: switch - 1]).all()


def test_a_t_bar_of_the_horizon_leaves_that_round_to_pomd_after_a_save_too(tmp_path):
    """Errata 31. 64 atoms are in the buffers then, which must grow, factor and all."""
    X, _ = stream(N if not numba.config.DISABLE_JIT else 80)
    y = np.random.default_rng(3).choice([-1.0, 1.0], len(X))
    parameters = {"radius": 0.01, "switch_size": 64, "budget": 100, "ald_scale": 0.0}
    learner = okl.POMDR(okl.Gaussian(0.3), horizon=65, **parameters)
    learner.partial_fit(X[:64], y[:64])
    assert (learner.size, learner.diary.switch_round) == (64, 65)
    learner.save(tmp_path / "learner.npz")
    again = okl.load(tmp_path / "learner.npz")
    forecasts, supports, _, _, residuals = textbook(
        lambda A, B: naive.gaussian(A, B, 0.3), X, y, learner
    )
    for one in (learner, again):
        assert_close(okl.run(one, X[64:], y[64:]).predictions, forecasts[64:])
        assert one.size == len(supports[-1]) and len(residuals) == 65
    np.testing.assert_array_equal(again.predict(X), learner.predict(X))


# ---- errors ----


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: okl.POMDR(okl.Gaussian(), budget=1), "budget must be an integer >= 2"),
        (lambda: okl.POMDR(okl.Gaussian(), budget=21), "budget must be even"),
        (lambda: okl.POMDR(okl.Gaussian(), switch_size=20, budget=20), "switch_size.* budget = 20"),
        (lambda: okl.POMDR(okl.Polynomial(2, coef0=-1.0)), "coef0"),
        (lambda: okl.BOGD(okl.Gaussian(), budget=1), "budget must be an integer >= 2"),
        (lambda: okl.KernelOGD(okl.Gaussian(), budget=1), "budget must be an integer >= 2"),
        (lambda: okl.KernelOGD(okl.Gaussian(), eta=0.5, lam=2.0), "lam must be less than"),
        (lambda: okl.Projectron(okl.Gaussian(), budget=1), "budget must be an integer >= 2"),
        (lambda: okl.NOGD(okl.Gaussian(), budget=10, rank=11), "rank must be at most budget = 10"),
        (lambda: okl.NOGD(okl.Gaussian(), budget=1), "budget must be an integer >= 2"),
        (lambda: okl.SkeGD(okl.Gaussian(), budget=50), "columns must be at most budget = 50"),
        (lambda: okl.SkeGD(okl.Gaussian(), sketch=301), "sketch must be a multiple of blocks = 4"),
        (lambda: okl.SkeGD(okl.Gaussian(), rank=61), "rank must be at most sketch and columns"),
        (lambda: okl.BAO2KS([okl.Gaussian()], budget=1), "budget must be an integer >= 2"),
        (lambda: okl.BAO2KS([]), "kernels"),
        (lambda: okl.BAO2KS([okl.Gaussian(), 3]), "kernels"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_changes(make, message):
    learner = make()
    X, y = stream(20)
    with pytest.raises(ValueError, match=message):
        learner.partial_fit(X, y)
    assert learner.rounds == 0 and vars(learner) == learner.get_params(deep=False)


@pytest.mark.parametrize("cls", [okl.POMDR, okl.POMD, okl.Projectron, okl.KernelOGD, okl.BOGD])
def test_labels_that_are_not_signs_are_refused_and_the_learner_stays(cls):
    X, y = stream(40)
    learner, twin = (cls(okl.Gaussian()).partial_fit(X, y) for _ in range(2))
    for bad in (0.0, 2.0, 0.5):
        labels = y.copy()
        labels[7] = bad
        with pytest.raises(ValueError, match=rf"y has {bad:g} at row 7.*-1 and \+1"):
            learner.partial_fit(X, labels)
    np.testing.assert_array_equal(learner.predict(X), twin.predict(X))
    assert learner.rounds == 40


# ---- bounds ----


def best_in_ball(K, y, radius, steps=3000):
    """Return the hinge loss of a good function with |f| <= radius: averaged subgradient steps."""
    c, mean = np.zeros(len(y)), np.zeros(len(y))
    best = float(len(y))  # f = 0
    for step in range(1, steps + 1):
        g = np.where(y * (K @ c) < 1, -y, 0.0)
        c = c - radius / math.sqrt(step * max(g @ K @ g, 1e-300)) * g
        c = c * min(1.0, radius / max(math.sqrt(max(c @ K @ c, 0.0)), 1e-300))
        mean += (c - mean) / step
        if step % 50 == 0:
            best = min(best, *(np.maximum(1 - y * (K @ f), 0).sum() for f in (c, mean)))
    return best


def play_adversary(learner, X):
    """Play labels that contradict each forecast; return labels and hinge losses."""
    y, total = np.empty(len(X)), []
    for t, x in enumerate(X):
        forecast = learner.predict_one(x)
        y[t] = -1.0 if forecast > 0 else 1.0
        total.append(max(1 - y[t] * forecast, 0.0))
        learner.learn_one(x, y[t])
    return y, np.array(total)


STREAMS = ["random", "noise", "adversary", "adversary on few points", "alternating"]


def play(name, learner, n):
    """Return inputs, labels and hinge losses of a learner on a stream."""
    X, y = stream(n, seed=4)
    if name == "noise":
        y = np.random.default_rng(5).choice([-1.0, 1.0], n)
    if name == "adversary on few points":
        X = X[np.arange(n) % 3]
    if name == "alternating":
        X, y = np.repeat(X[:1], n, axis=0), np.where(np.arange(n) % 2, 1.0, -1.0)
    if "adversary" in name:
        return X, *play_adversary(learner, X)
    return X, y, okl.run(learner, X, y).losses


@pytest.mark.parametrize("radius", [1.0, 5.0, 25.0])
@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("switch_size", [None, 1])
def test_corollary_1_holds(name, radius, switch_size):
    learner = okl.POMD(okl.Gaussian(1.0), radius=radius, horizon=N)
    budget = None
    if switch_size is not None:
        budget = 20
        learner = okl.POMDR(
            okl.Gaussian(1.0), radius, switch_size=1, budget=budget, horizon=N, zeta=1.0,
            ald_scale=1.0, rate_scale=1.0,
        )  # fmt: skip
    X, y, hinge = play(name, learner, N)
    regret = hinge.sum() - best_in_ball(naive.gaussian(X, X), y, radius)
    assert regret <= okl.theory.pomdr_bound(okl.Gaussian(1.0), X, y, radius, budget)
    diary = learner.diary
    data_bound = 3 * radius * math.sqrt(diary.alignment) + 9 * radius  # Theorem 2
    if diary.removals:
        data_bound += 3 * radius * math.sqrt(2 * N * diary.alignment / budget)
    assert regret <= data_bound
    alignment = okl.theory.kernel_alignment(okl.Gaussian(1.0), X, y)
    assert diary.alignment <= 4 * alignment + 7  # Lemma 4


def test_corollary_1_needs_3_D_in_the_rate():
    """Errata 28: the printed 3 for 3 D fails on this stream; the largest k(x, x) so far does not.

    The stream's first D is 0.01, so that a rate with a fixed 3 steps far too little or too far.
    """
    X, y = np.array([[0.1], [math.sqrt(1000)], [math.sqrt(1000)]]), np.array([1.0, 1.0, -1.0])
    learner = okl.POMD(okl.Linear(), radius=1.0, hints=1, horizon=3)
    regret = okl.run(learner, X, y).losses.sum() - 3.0  # against f = 0
    assert regret <= okl.theory.pomdr_bound(okl.Linear(), X, y, 1.0)
    printed = []  # the literal algorithm: forecasts with the rate U / sqrt(3 + sum delta)
    w, total, hint = 0.0, 0.0, 0.0
    for x, label in zip(X[:, 0], y, strict=True):
        rate = 1.0 / math.sqrt(3 + total)
        forecast = (w - rate * hint) * x
        printed.append(max(1 - label * forecast, 0.0))
        g = -label * x if label * forecast < 1 else 0.0
        total += max(g * g - 2 * g * hint, 0.0) if g else 0.0
        w = float(np.clip(w - rate * g, -1.0, 1.0))
        hint = -label * x
    assert sum(printed) - 3.0 > 500 > 173


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_the_classical_bound_of_gradient_descent_holds(name, loss):
    radius = 3.0
    eta = radius / math.sqrt(N)
    learner = okl.KernelOGD(okl.Gaussian(1.0), loss, eta=eta, radius=radius)
    X, y, hinge = play(name, learner, N)
    if loss == "hinge":
        regret = hinge.sum() - best_in_ball(naive.gaussian(X, X), y, radius)
        assert regret <= radius * math.sqrt(N)  # U^2 / (2 eta) + eta T / 2
        slopes = np.count_nonzero(hinge > 0)
        assert regret <= radius**2 / (2 * eta) + eta / 2 * slopes
    else:
        run = okl.run(learner.reset(), X, y)
        value = okl.losses.get("logistic")
        slopes = np.array([value.derivative(f, v) for f, v in zip(run.predictions, y, strict=True)])
        for scale in (0.0, 0.5, 1.0):  # against f = 0 and functions of the ball
            a = scale * y
            K = naive.gaussian(X, X)
            f = K @ a * min(1.0, radius / max(math.sqrt(a @ K @ a), 1e-300))
            bound = radius**2 / (2 * eta) + eta / 2 * (slopes**2).sum()
            assert run.losses.sum() - value.value(f, y).sum() <= bound


def test_the_bound_of_fogd_in_the_space_of_its_features():
    X, y = stream(N, seed=6)
    features = okl.FourierFeatures(40, 1.0, seed=2)
    F = features.transform(X)
    for eta in (0.01, 0.1, 1.0):
        run = okl.run(okl.FOGD(features, eta=eta), X, y)
        for w in (np.zeros(80), F.T @ y / 20, np.linalg.lstsq(F, y, rcond=None)[0]):
            regret = run.losses.sum() - np.maximum(1 - y * (F @ w), 0.0).sum()
            assert regret <= w @ w / (2 * eta) + eta / 2 * np.count_nonzero(run.losses)


DATA = {
    "uniform": lambda rng: rng.uniform(-1, 1, (N, 2)),
    "clusters": lambda rng: rng.integers(0, 4, (N, 2)) + 0.01 * rng.standard_normal((N, 2)),
    "wide": lambda rng: rng.standard_normal((N, 8)),
}


@pytest.mark.parametrize("kernel", [okl.Gaussian(0.7), okl.Laplacian(1.0), okl.Polynomial(3)])
@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("zeta", [0.5, 1.0])
def test_theorem_1_bounds_the_dictionary(kernel, name, zeta):
    rng = np.random.default_rng(0)
    X = DATA[name](rng)
    y = rng.choice([-1.0, 1.0], N)
    learner = okl.POMD(kernel, radius=1.0, zeta=zeta, horizon=N).partial_fit(X, y)
    # The learner's D is the largest k(x, x) so far: at least that of the first point.
    alpha = float(kernel.diag(X[:1])[0]) * N ** (-2 * zeta)
    bound = okl.theory.ald_budget_bound(kernel, X, alpha)
    assert learner.size <= bound.size <= min(bound.exponential, bound.polynomial) + 1e-9
    values = np.linalg.eigvalsh(kernel(X))[::-1]
    values = values[: bound.size - 1][values[: bound.size - 1] > 1e-12 * values[0]]
    i = np.arange(1, len(values) + 1)
    log_R = 0.5 * bound.exponential * np.log(1 / bound.r) + np.log(alpha)
    assert (np.log(values) <= log_R + i * np.log(bound.r) + 1e-6).all()
    log_R = bound.p * np.log((bound.polynomial - 1) / np.e) + np.log(alpha)
    assert (np.log(values) <= log_R - bound.p * np.log(i) + 1e-6).all()


def test_small_eigenvalues_are_not_lost_in_the_rounding_of_large_ones():
    """Against extended precision: the Gaussian kernel on a line, T eigenvalues from 30 to 0."""
    X = np.linspace(-1, 1, 40)[:, None]
    found = _eigenvalue_bounds(okl.Gaussian(1.0)(X))
    # K = F F' with F of the Taylor series, whose columns fall fast: graded, so that the singular
    # values of its QR factor keep their digits.
    k = np.arange(30)
    scale = np.array([1 / math.sqrt(math.factorial(j)) for j in k])
    F = np.exp(-(X**2) / 2) * X**k * scale
    exact = np.linalg.svd(np.linalg.qr(F)[1], compute_uv=False) ** 2
    floor = 40 * np.finfo(float).eps
    assert (found[:30] >= exact * (1 - 1e-9)).all()
    assert (found[:30] <= exact * 1.01 + 2 * floor).all()
    assert found[-1] <= 2 * floor


def test_theorem_1_bounds_krls_too():
    X = DATA["uniform"](np.random.default_rng(1))
    for threshold in (0.1, 1e-3, 1e-5):
        learner = okl.KRLS(okl.Gaussian(0.5), threshold).partial_fit(X, X[:, 0])
        assert learner.size <= okl.theory.ald_budget_bound(okl.Gaussian(0.5), X, threshold).size
