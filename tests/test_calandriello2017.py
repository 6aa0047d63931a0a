"""The theorems of kons on KORS, KONS and Sketched-KONS: many streams, seeds and competitors."""

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import LinearConstraint, minimize

import oklnumba as okl
from oklnumba import losses, theory
from tests.checks import COMPILED, play_adversary
from tests.reference import naive
from tests.streams import draws, inputs, newton_stream

pytestmark = pytest.mark.slow
SEEDS = 200 if COMPILED else 1
ROUNDS = 150 if COMPILED else 40  # of the streams on which bounds are tested


def spread_out(K, n, alpha=1.0):
    """Order of n points, each the one with the largest leverage after those before it."""
    K, order = K.copy(), []
    for _ in range(n):
        i = int(np.argmax(np.diag(K)))
        order.append(i)
        K -= np.outer(K[:, i], K[:, i]) / (alpha + K[i, i])
    return order


def points(kernel, n=ROUNDS):
    rng = np.random.default_rng(5)
    kinds = ("uniform", "clustered", "repeated", "one point", "sorted")
    found = {kind: inputs(kind, n, 2, rng) for kind in kinds}
    X = found["uniform"]
    found["one point"][:] = np.sqrt(0.5)
    found["spread out"] = X[spread_out(kernel(X[: n // 2]), n)]
    return found | {"two directions": np.repeat(np.eye(2), n // 2, axis=0)}


def play(learner, X, y):
    """Play rounds against labels, or against an adversary: ``y`` is the size of its labels."""
    if np.ndim(y):
        return okl.run(learner, X, y).predictions, y
    return play_adversary(learner, X, y)


def labels(X, C, loss):
    """Labels by name; of size C for the squared loss."""
    rng = np.random.default_rng(6)
    size = C if loss == "squared" else 1.0
    return {
        "noise": size * np.sign(rng.standard_normal(len(X))),
        "rule": size * np.where(X[:, 0] > 0, 1.0, -1.0),
        "alternating": size * np.where(np.arange(len(X)) % 2, -1.0, 1.0),
        "adversary": size,
    }


def competitors(F, y, loss, C, alpha):
    """Functions w with |w.phi_t| <= C: 0, the best with a penalty alpha |w|^2, and some others."""
    value, derivative = naive.LOSS_VALUES[loss], naive.LOSS_DERIVATIVES[loss]
    best = minimize(
        lambda w: value(F @ w, y).sum() + alpha * w @ w,
        np.zeros(F.shape[1]),
        jac=lambda w: F.T @ derivative(F @ w, y) + 2 * alpha * w,
        constraints=LinearConstraint(np.unique(F.round(12), axis=0), -C, C),
        method="SLSQP",
    ).x
    ridge = np.linalg.solve(F.T @ F + 1e-3 * np.eye(F.shape[1]), F.T @ y)
    for w in (best, ridge, -ridge, np.zeros_like(best)):
        yield w * min(1.0, C / max(np.abs(F @ w).max(), 1e-300))


def regrets(learners, X, alpha):
    """Play learners on all labels; yield each, its forecasts, the labels and what competitors w do.

    For each w: its values, the regret against it, and the penalty alpha |w|^2.
    """
    first = learners[0]
    F = naive.gram_features(first.kernel(X))
    F = F[:, np.square(F).sum(axis=0) > 1e-10]
    value = naive.LOSS_VALUES[first.loss]
    for rule in labels(X, first.C, first.loss).values():
        for learner in learners:
            forecasts, y = play(learner.reset(), X, rule)
            assert np.abs(forecasts).max() <= first.C
            if learner is first or not np.ndim(rule):  # an adversary has labels for each learner
                others = list(competitors(F, y, first.loss, first.C, alpha))
            found = []
            for w in others:
                regret = value(forecasts, y).sum() - value(F @ w, y).sum()
                found.append((F @ w, regret, alpha * w @ w))
            yield learner, forecasts, y, found


LINEAR, QUADRATIC, GAUSSIAN = KERNELS = okl.Linear(), okl.Polynomial(2), okl.Gaussian(0.7)


@pytest.mark.parametrize("alpha", [10.0, 1.0, 1e-2])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_lemma_3(kernel, alpha):
    for where, X in points(kernel).items():
        online = theory.online_effective_dimension(kernel, X, alpha)
        log_det = theory.log_det(kernel, X, alpha)
        dimension = theory.effective_dimension(kernel, X, alpha)
        norm = np.linalg.norm(kernel(X), 2)
        assert dimension <= online * (1 + 1e-9), where
        assert online <= log_det * (1 + 1e-9), where
        assert log_det <= dimension * (1 + np.log1p(norm / alpha)) * (1 + 1e-9), where


@pytest.mark.filterwarnings("ignore:the labels are")  # two whole numbers
@pytest.mark.parametrize(
    ("kernel", "loss", "C", "alpha"),
    [(GAUSSIAN, "squared", 1.0, 1.0), (LINEAR, "squared", 2.0, 0.01)]
    + [(QUADRATIC, "logistic", 1.0, 1.0), (LINEAR, "logistic", 3.0, 0.1)]
    + [(QUADRATIC, "squared_hinge", 2.0, 1.0)],
)
def test_regret_bounds(kernel, loss, C, alpha):
    """Proposition 1 with the factor 2 of errata 10, and Theorem 1, against many competitors.

    2 R(w) <= alpha |w|^2 + R_G holds with a sketched inverse as well, whose R_D is <= 0.
    """
    sigma, L = losses.get(loss).curvature(C), losses.get(loss).lipschitz(C)
    exact = okl.KONS(kernel, loss=loss, C=C, alpha=alpha)
    sketched = okl.SketchedKONS(kernel, loss=loss, C=C, alpha=alpha, gamma=0.2)
    for where, X in points(kernel).items():
        log_det = theory.log_det(kernel, X, alpha / (sigma * L**2)) / sigma
        bound = theory.kons_bound(kernel, X, loss, C, alpha)
        assert log_det <= bound
        for learner, _, _, found in regrets([exact, sketched], X, alpha):
            assert learner is sketched or learner.R_G <= log_det
            for _, regret, penalty in found:
                assert 2 * regret <= penalty + learner.R_G + 1e-9, where
                assert learner is sketched or regret <= penalty + bound, where


def test_steps_beyond_the_curvature_exceed_the_bound():
    """Negative control: with eta = 50 sigma in the learner, R_D is needed (Proposition 1).

    And the bound of Theorem 1, with 50 sigma in it too, is exceeded.
    """
    n = 300 if COMPILED else 60
    X, y = np.ones((n, 1)), np.ones(n)
    sigma, L = losses.get("squared").curvature(1.0), losses.get("squared").lipschitz(1.0)
    for factor in (1, 50):
        eta = factor * sigma
        level = 1.0 / (eta * L**2)
        bound = 1.0 + n / (n + level) * (1 + np.log1p(n / level)) / eta  # against w = 1
        if factor == 1:
            assert theory.kons_bound(okl.Linear(), X, norm=1.0) == pytest.approx(bound, rel=1e-9)
        learner = okl.KONS(okl.Linear(), eta=eta)
        forecasts = okl.run(learner, X, y).predictions
        regret = ((forecasts - y) ** 2).sum()
        R_D = (eta - sigma) * ((2 * (forecasts - y) * (forecasts - 1)) ** 2).sum()
        assert (2 * regret <= 1.0 + learner.R_G) == (regret <= bound) == (factor == 1)
        assert 2 * regret <= 1.0 + learner.R_G + R_D


@pytest.mark.parametrize(
    ("kernel", "loss", "C", "alpha", "oracle"),  # each kernel with and without the oracle
    [(LINEAR, "hinge", 1.0, 0.5, False), (QUADRATIC, "hinge", 2.0, 10.0, True)]
    + [(GAUSSIAN, "absolute", 1.0, 0.5, False), (LINEAR, "absolute", 0.3, 0.01, True)]
    + [(QUADRATIC, "epsilon_insensitive", 1.0, 0.5, False), (GAUSSIAN, "logistic", 3.0, 0.1, True)],
)
def test_theorem_1_without_curvature(kernel, loss, C, alpha, oracle):
    """Second case of Theorem 1, eta_t = 1 / (L C sqrt(t)), and the step of the oracle.

    2 R(w) <= alpha |w|^2 + R_G + R_D with both parts as measured, and R(w) <= the bound.
    """
    n, sigma, L = ROUNDS, losses.get(loss).curvature(C), losses.get(loss).lipschitz(C)
    for where, X in points(kernel, n).items():
        dimension = theory.effective_dimension(kernel, X, alpha) if oracle else 1.0
        eta = np.sqrt(dimension / (L**2 * C**2 * np.arange(1, n + 1)))
        first = theory.kons_step(loss, C, dimension) if oracle else None
        bound = theory.kons_bound(kernel, X, loss, C, alpha, steps=eta)
        params = {"loss": loss, "C": C, "alpha": alpha, "eta": first, "schedule": "sqrt"}
        exact = okl.KONS(kernel, **params)
        weighted = okl.SketchedKONS(kernel, **params, gamma=0.2, sampling="weighted")
        for learner, forecasts, y, found in regrets([exact, weighted], X, alpha):
            above = None
            if learner.size == n:  # else the weights do not say which rounds they belong to
                slopes = naive.LOSS_DERIVATIVES[loss](forecasts, y)
                above = learner.A_weights - sigma * slopes**2
            for fit, regret, penalty in found:
                assert learner is weighted or regret <= penalty + bound, where
                if above is not None:
                    R_D = (above * (forecasts - fit) ** 2).sum()
                    assert 2 * regret <= penalty + learner.R_G + R_D + 1e-9, where


@pytest.mark.skipif(not COMPILED, reason="only a long stream exceeds the bound")
def test_without_the_sequence_the_bound_is_exceeded():
    """Negative control: with steps a millionth of theirs, A stays alpha I and w is thrown about."""
    n, alpha = 1500, 0.01
    X, rule = np.ones((n, 1)), labels(np.ones((n, 1)), 1.0, "absolute")["adversary"]
    params = {"loss": "absolute", "alpha": alpha, "schedule": "sqrt"}
    bound, regret = theory.kons_bound(okl.Linear(), X, "absolute", alpha=alpha), {}
    for factor in (1.0, 1e-6):
        learner = okl.KONS(okl.Linear(), eta=factor * theory.kons_step("absolute"), **params)
        forecasts, y = play(learner, X, rule)
        regret[factor] = (np.abs(forecasts - y) - np.abs(y)).sum()  # against f = 0
    assert regret[1.0] <= bound < regret[1e-6]


def test_after_the_stop_a_loss_that_stays_the_same_is_nearly_at_its_least():
    """Section 6: for such a loss a small Newton decrement is a guarantee.

    With R = alpha |w*|^2 + R_G + R_D, |w_t - w*|^2 in the norm of A_{t-1} is at most R, so that
    l(w_t) - l(w*) <= g'(w_t - w*) <= sqrt(stop R / (1 - eta stop)).
    """
    n, pairs = 500, [(1.0, 1e-1), (0.01, 1e-1)]
    if COMPILED:
        n, pairs = 20_000, [*pairs, (0.01, 1e-2), (1.0, 1e-3)]
    for loss, C, target in (("squared", 1.0, 0.4), ("squared", 3.0, -3.0), ("logistic", 1.0, 1.0)):
        X, y = np.ones((n, 1)), np.full(n, target)
        best = target if loss == "squared" else C  # the feasible minimum
        value, sigma = naive.LOSS_VALUES[loss], losses.get(loss).curvature(C)
        for alpha, stop in pairs:
            learner = okl.KONS(okl.Linear(), loss=loss, C=C, alpha=alpha, stop=stop)
            forecasts = okl.run(learner, X, y).predictions
            assert learner.stopped and learner.size < n
            last = forecasts[learner.size - 1]
            R = alpha * best**2 + learner.R_G
            gap = value(last, target) - value(best, target)
            assert gap <= np.sqrt(stop * R / (1 - sigma * stop))


# ---- Corollary 1 and the weighted inverse ----


def oblivious(n, where="uniform"):
    """A stream whose slopes are -1 whatever the forecasts: absolute loss, labels beyond C."""
    X = points(okl.Linear(), n)[where]
    return X, np.full(n, 9.0), {"loss": "absolute", "C": 1.0, "schedule": "sqrt", "alpha": 0.05}


@pytest.mark.parametrize("sampling", ["independent", "weighted"])
def test_only_with_weights_is_the_inverse_unbiased(sampling):
    """E A^w = A (section 6), and E A has p_t in place of 1."""
    n, seeds = (60, 4 * SEEDS) if COMPILED else (20, 30)
    X, y, params = oblivious(n)
    found = np.empty((seeds, n))
    for seed in range(seeds):
        learner = okl.SketchedKONS(
            okl.Linear(), gamma=0.3, beta=0.5, sampling=sampling, seed=seed, **params
        )
        found[seed] = learner.partial_fit(X, y).A_weights
    eta = theory.kons_step("absolute") / np.sqrt(np.arange(1, n + 1))
    error = np.maximum(found.std(axis=0), 1e-9) / np.sqrt(seeds)
    away = (found.mean(axis=0) - eta) / error
    if sampling == "weighted":
        assert np.abs(away).max() < 5.0 and found.max() > eta.max()
    else:
        assert (away < -5.0).mean() > 0.5  # p_t in place of 1


def inverses(how, seeds, **params):
    """Return each seed's A_t, KORS's A_t, sketched A~_t and least p so far, each 50th round."""
    n, alpha = 600, 0.05
    X, y, stream = oblivious(n, "repeated")
    if how == "noise":
        y, stream = labels(X, 1.0, "squared")["noise"], {"alpha": alpha}
    forecasts, weights = np.empty((seeds, n)), np.empty((seeds, n))
    for seed in range(seeds):
        learner = okl.SketchedKONS(okl.Linear(), seed=seed, **params, **stream)
        forecasts[seed] = okl.run(learner, X, y).predictions
        weights[seed] = learner.A_weights
    slopes = naive.LOSS_DERIVATIVES[learner.loss](forecasts, y)
    coins, own = (np.stack([draws([seed, i], n) for seed in range(seeds)], 1) for i in (1, 0))
    own = coins if learner.sampling == "shared" else own
    twin = naive.SketchCoin(2, alpha, learner.beta, learner.eps, learner.gamma, own, coins)
    eta = np.full(n, losses.get("squared").curvature(1.0))
    if how == "oblivious":
        eta = theory.kons_step("absolute") / np.sqrt(np.arange(1, n + 1))
    kors = []
    for t in range(n):
        twin(t, np.sqrt(eta[t]) * slopes[:, t, None] * X[t])
        kors.append(twin.A)
    p = np.array(twin.p)
    inside = (coins < p).T & (slopes != 0.0)
    np.testing.assert_allclose(weights, inside * eta * slopes**2, rtol=1e-12)

    def summed(weights):
        outer = X[:, :, None] * X[:, None, :]
        return alpha * np.eye(2) + np.cumsum(weights[..., None, None] * outer, axis=1)[:, 49::50]

    kors, least = np.swapaxes(kors[49::50], 0, 1), np.minimum.accumulate(p).T[:, 49::50, None, None]
    return summed(eta * slopes**2), kors, summed(weights), least


def below(A, B):
    """Say of each seed whether A_t <= B_t at all rounds."""
    return np.linalg.eigvalsh(B - A).min(axis=(1, 2)) >= -1e-9


@pytest.mark.skipif(not COMPILED, reason="beta of the theory keeps all of a short stream")
@pytest.mark.parametrize("how", ["oblivious", "noise"])
def test_corollary_1(how):
    """With a shared coin (1 - eps) p A_t <= p A_t^I <= A~_t, but for a share delta of the seeds."""
    eps, delta, seeds = 0.9, 0.1, SEEDS // 4
    beta = 3 * np.log(600 / delta) / eps**2
    A, kors, sketched, p = inverses(how, seeds, beta=beta, eps=eps, gamma=0.3, sampling="shared")
    assert (p[:, -1] < 1.0).all() and below(p * kors, sketched).all()
    assert np.count_nonzero(~below((1 - eps) * A, kors)) <= delta * seeds


@pytest.mark.skipif(not COMPILED, reason="on a short stream two coins do not fail either")
@pytest.mark.parametrize("how", ["oblivious", "noise"])
def test_corollary_1_needs_the_shared_coin(how):
    """Its second part is certain with a shared coin, with any beta, and not with two."""
    for sampling in ("shared", "independent"):
        _, kors, sketched, p = inverses(how, SEEDS // 10, beta=1.0, gamma=0.1, sampling=sampling)
        assert below(p * kors, sketched).all() == (sampling == "shared")


def test_bounds_are_their_formulas():
    X, _ = newton_stream()
    kernel, alpha, norm = okl.Gaussian(0.7), 0.3, 2.0
    K = naive.gaussian(X, X, 0.7)
    values = np.linalg.eigvalsh(K)
    sigma, L, C = 1 / 32, 8.0, 2.0  # squared loss, C = 2
    dimension = (values / (values + alpha / (sigma * L**2))).sum()
    kons = dimension * (1 + np.log1p(sigma * L**2 * np.trace(K) / alpha)) / sigma
    found = theory.kons_bound(kernel, X, "squared", C=C, alpha=alpha, norm=norm)
    np.testing.assert_allclose(found, alpha * norm**2 + kons, rtol=1e-9)
    divisors = (0.1, 2.0, 0.01, 0.1), (0.01, 2.0, 0.1, 0.2), (0.01, 99.0, 0.1, 1.0)
    for gamma, beta, tau, divisor in divisors:
        found = theory.sketched_kons_bound(
            kernel, X, gamma, "squared", C=C, alpha=alpha, beta=beta, tau_min=tau, norm=norm
        )
        np.testing.assert_allclose(found, alpha * norm**2 + kons / divisor, rtol=1e-9)
    hinge = 1 / (C * np.sqrt(np.arange(1, 301)))  # steps of the hinge loss, whose L is 1
    for loss, L, eta in (("hinge", 1.0, None), ("squared", 8.0, np.linspace(2.0, 0.5, 300))):
        D = L * np.sqrt(hinge if eta is None else eta)
        rescaled = np.linalg.slogdet(np.eye(300) + D[:, None] * K * D / alpha)[1]
        excess = D**2 - L**2 * losses.get(loss).curvature(C)
        free = alpha * norm**2 + L**2 * rescaled / (D**2).min() + 4 * C**2 * excess.sum()
        found = theory.kons_bound(kernel, X, loss, C=C, alpha=alpha, norm=norm, steps=eta)
        np.testing.assert_allclose(found, free, rtol=1e-9)
    assert theory.kons_step("squared", C, dimension=9.0) == pytest.approx(3 / (8 * C))
    online = theory.online_effective_dimension(kernel, X, alpha)
    found = theory.kors_size_bound(kernel, X, alpha=alpha, beta=2.0, eps=0.5)
    np.testing.assert_allclose(found, 3 * 3.0 * 2.0 * online, rtol=1e-9)


def ratios(F, sampler, alpha, eps):
    """Eigenvalues of A_t^-1/2 A_t^I A_t^-1/2 at each 50th round, and tau estimated over exact."""
    n, D = F.shape
    outer = F[:, :, None] * F[:, None, :]
    weights = np.zeros(n)
    weights[sampler.indices_] = 1 / sampler.probabilities_
    A = alpha * np.eye(D) + np.cumsum(outer, axis=0)
    sketch = alpha * np.eye(D) + np.cumsum(weights[:, None, None] * outer, axis=0)
    before = np.concatenate([alpha * np.eye(D)[None], sketch[:-1]])
    columns = F[:, :, None]
    exact = (columns * np.linalg.solve(A, columns)).sum(axis=(1, 2))
    estimate = (1 + eps) * (columns * np.linalg.solve(before + outer, columns)).sum(axis=(1, 2))
    inverse = np.linalg.inv(np.linalg.cholesky(A[49::50]))
    spectrum = np.linalg.eigvalsh(inverse @ sketch[49::50] @ inverse.transpose(0, 2, 1))
    return spectrum, estimate, exact


@pytest.mark.parametrize(
    ("where", "eps"),
    [("one point", 0.5)]
    + [(where, 0.9) for where in ("uniform", "clustered", "repeated", "two directions")],
)  # fmt: skip
def test_theorem_2(where, eps):
    """KORS over 200 seeds: accurate, small, and estimates between tau and rho tau."""
    n, alpha, delta, kernel = 450, 1.0, 0.1, okl.Polynomial(1)  # a constant and two coordinates
    X = points(kernel, n)[where]
    F = naive.polynomial_features(X, 1)
    beta, rho = 3 * np.log(n / delta) / eps**2, (1 + eps) / (1 - eps)
    bound = theory.kors_size_bound(kernel, X, alpha, beta, eps)
    inaccurate = too_large = out_of_range = thinned = 0
    for seed in range(SEEDS):
        sampler = okl.KORS(kernel, alpha=alpha, beta=beta, eps=eps, seed=seed).partial_fit(X)
        spectrum, estimate, exact = ratios(F, sampler, alpha, eps)
        kept = np.minimum(beta * estimate, 1)[sampler.indices_]
        np.testing.assert_allclose(sampler.probabilities_, kept, rtol=1e-8)
        inaccurate += spectrum.min() < 1 - eps or spectrum.max() > 1 + eps
        too_large += sampler.size > min(bound, 3 * np.minimum(beta * estimate, 1).sum())
        out_of_range += (estimate < exact).any() or (estimate > rho * exact).any()
        thinned += sampler.size < 0.9 * n
    assert thinned == SEEDS  # or there is nothing to see
    allowed = delta * SEEDS + 3 * np.sqrt(delta * (1 - delta) * SEEDS)
    assert max(inaccurate, too_large, out_of_range) <= allowed


@pytest.mark.parametrize("coins", [100, 1000, 100_000])
@pytest.mark.parametrize("d", [5, 10, 30])
def test_proposition_6_as_printed_is_exceeded(d, coins):
    """Errata 64. Of all coins with sum p = d equal ones have the heaviest tail (Hoeffding 1956)."""
    tail = stats.binom.sf(3 * d - 1, coins, d / coins)
    assert (tail > np.exp(-2.0 * d)) == (coins >= 10 * d)
    assert tail <= np.exp(-(3.0 * np.log(3.0) - 2.0) * d)


def test_kors_without_its_weights_is_not_accurate():
    """Negative control for the test above."""
    X, eps = np.full((600, 2), 0.7), 0.5
    sampler = okl.KORS(okl.Linear(), alpha=1.0, beta=12.0, eps=eps).partial_fit(X)
    assert np.abs(ratios(X, sampler, 1.0, eps)[0] - 1).max() < eps
    sampler.probabilities_ = np.ones(sampler.size)
    assert np.abs(ratios(X, sampler, 1.0, eps)[0] - 1).max() > eps


@pytest.mark.skipif(not COMPILED, reason="beta of the theory keeps all of a short stream")
@pytest.mark.parametrize(
    ("where", "how", "gamma"), [("one point", "alternating", 0.3), ("repeated", "noise", 0.05)]
)
def test_theorem_3(where, how, gamma):
    """Sketched-KONS over 40 seeds with the theory's beta: its R_G, and so its regret."""
    n, alpha, eps, delta, kernel = 800, 0.1, 0.5, 0.1, okl.Linear()
    X = points(kernel, n)[where]
    y = labels(X, 1.0, "squared")[how]
    beta = 3 * np.log(n / delta) / eps**2
    bound = theory.sketched_kons_bound(kernel, X, gamma, alpha=alpha, beta=beta)
    exact = okl.KONS(kernel, alpha=alpha).partial_fit(X, y).R_G
    best = list(competitors(X, y, "squared", 1.0, alpha))
    failures = 0
    for seed in range(40):
        learner = okl.SketchedKONS(kernel, alpha=alpha, gamma=gamma, beta=beta, eps=eps, seed=seed)
        run = okl.run(learner, X, y)
        assert learner.sketch_size < 0.9 * n and learner.R_G > exact
        regret = max(run.losses.sum() - ((X @ w - y) ** 2).sum() - alpha * w @ w for w in best)
        failures += max(learner.R_G, regret) > bound
    assert failures <= 40 * delta


@pytest.mark.filterwarnings("ignore:the labels are")  # two whole numbers
@pytest.mark.filterwarnings("ignore:the kernel is 0 between nearly all")
@pytest.mark.parametrize("n", [40, 400])
def test_theorem_3_as_printed_is_exceeded(n):
    """Errata 65. Orthogonal points: all forecasts are 0, each tau is 1/3, and coins have p = 1."""
    y, norm = np.where(np.arange(n) % 2, -1.0, 1.0), np.sqrt(n) / 2  # of f = y / 2
    eps, delta, gamma = 0.1, 0.1, 0.01
    params = {"alpha": 1.0, "beta": 3 * np.log(n / delta) / eps**2}
    learner = okl.SketchedKONS(okl.Linear(), gamma=gamma, eps=eps, **params)
    regret = okl.run(learner, np.eye(n), y).losses.sum() - n / 4
    given = {"tau_min": 1 / 3, "norm": norm}
    bound = theory.sketched_kons_bound(okl.Linear(), np.eye(n), gamma, **params, **given)
    printed = norm**2 + (bound - norm**2) / (params["beta"] / 3)
    assert learner.sketch_size == n
    assert 2 * printed < regret == pytest.approx(0.75 * n) and regret <= bound


@pytest.mark.filterwarnings("ignore:the labels are")  # two whole numbers
@pytest.mark.parametrize("C", [1.0, 3.0])
def test_one_point_with_alternating_labels(C):
    """Section 6 of kons: R_D = 0 and R_G = O(log n); the gradient is 2 C, not C (errata 14)."""
    n = 2000 if COMPILED else 200
    X, y = np.full((n, 1), 1.0), C * np.where(np.arange(n) % 2, -1.0, 1.0)
    learner = okl.KONS(okl.Linear(), C=C)
    forecasts = okl.run(learner, X, y).predictions
    sigma, g = 1 / (8 * C**2), 2 * (forecasts - y)
    R_G = (g**2 / (1 + sigma * np.cumsum(g**2))).sum()
    np.testing.assert_allclose(learner.R_G, R_G, rtol=1e-9)
    regret = ((forecasts - y) ** 2).sum() - n * C**2  # the best in hindsight is 0
    assert 0 < 2 * regret <= learner.R_G <= np.log1p(16 * C**2 * sigma * n) / sigma
    assert learner.R_G <= theory.kons_bound(okl.Linear(), X, C=C)
    if COMPILED and C == 1.0:
        np.testing.assert_allclose(learner.R_G, 51.84, atol=0.01)
        assert learner.R_G > (1 / (1 + sigma * np.arange(1, n + 1))).sum()  # as printed
