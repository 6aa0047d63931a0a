"""Streams that hypothesis draws, greedy ones among them, and the bounds that are tested on them.

``python -m tests.bounds [STREAMS]`` prints the tightest ratios of regret and bound that it sees on
so many streams of each kind: the table of figures/bounds.md.
"""

import functools
import sys
import warnings
from math import comb, log

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import oklnumba as okl
from oklnumba import adversary, losses, theory
from tests.checks import COMPILED
from tests.streams import inputs, labels

LONGEST = 80 if COMPILED else 14
GREEDY_ROUNDS = 20 if COMPILED else 5
MOST_FEATURES = 500 if COMPILED else 60  # of the degree that Theorem 4 asks for
ROUNDING = 1e-9
DELTA = 1e-4  # chance that Theorem 6 may fail on a stream
KINDS = ("uniform", "clustered", "repeated", "sorted", "greedy")
STREAMS = 25 if COMPILED else 2  # of each kind
KERNELS = {
    "gaussian": okl.Gaussian,
    "laplacian": okl.Laplacian,
    "matern": lambda width: okl.Matern(1.5, sigma=width),
    "linear": lambda width: okl.Linear(),
    "polynomial": lambda width: okl.Polynomial(2),
}
VICTIMS = {
    "Kernel-AWV": lambda kernel, lam, d, seed: okl.KernelAWV(kernel, lam=lam),
    "PKAWV": lambda kernel, lam, d, seed: okl.PKAWV(fixed_features(kernel, d, seed), lam=lam),
    "Nystrom-AWV": lambda kernel, lam, d, seed: okl.NystromAWV(kernel, lam=lam, mu=lam, seed=seed),
    "KONS": lambda kernel, lam, d, seed: okl.KONS(kernel, alpha=lam),
    "Sketched-KONS": lambda kernel, lam, d, seed: okl.SketchedKONS(kernel, alpha=lam, gamma=1.0),
}


def fixed_features(kernel, d, seed):
    """Return Taylor features of any degree and centre, or Nystrom features for other kernels."""
    rng = np.random.default_rng(seed)
    if isinstance(kernel, okl.Gaussian):
        center = None if rng.random() < 0.5 else rng.uniform(-0.5, 0.5, d)
        return okl.TaylorFeatures(int(rng.integers(0, 7)), sigma=kernel.sigma, center=center)
    return okl.NystromFeatures(rng.uniform(-1, 1, (int(rng.integers(1, 20)), d)), kernel)


class Stream:
    """A stream, and the kernel and regularisation that the algorithms have on it."""

    def __init__(self, X, y, kernel, lam, largest, seed):
        self.X, self.y, self.kernel, self.lam = X, y, kernel, lam
        self.largest, self.seed = largest, seed  # the label C of KONS's class
        self.n = len(y)
        self.B = np.abs(y).max()
        self.K = kernel(X)
        self.L = np.linalg.cholesky(self.K + lam * np.eye(self.n))
        # log det(I + K_t / lam) and min_f sum (y - f)^2 + lam |f|^2 of every prefix t
        self.log_dets = np.cumsum(2 * np.log(np.diag(self.L)) - log(lam))
        self.best = lam * np.cumsum(np.linalg.solve(self.L, y) ** 2)

    def regret(self, predictions):
        """Return the regret after every round, against the best penalised function so far."""
        return np.cumsum((self.y - predictions) ** 2) - self.best


@st.composite
def streams(draw, kind):
    name = draw(st.sampled_from([*KERNELS, "gaussian", "gaussian"]))  # Theorem 4 is about these
    kernel = KERNELS[name](draw(st.sampled_from([0.3, 1.0, 2.0])))
    lam = 10.0 ** draw(st.integers(-2, 1))
    d, seed = draw(st.integers(1, 3)), draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    if kind == "greedy":
        n = draw(st.integers(min(5, GREEDY_ROUNDS), GREEDY_ROUNDS))
        victim = VICTIMS[draw(st.sampled_from(sorted(VICTIMS)))](kernel, lam, d, seed)
        game = adversary.greedy(victim, kernel, n, d, lam, restarts=1, seed=seed)
        return Stream(game.X, game.y, kernel, lam, 1.0, seed)
    n = draw(st.integers(10, LONGEST))
    X = inputs(kind, n, d, rng)
    how = draw(st.sampled_from(["coins", "alternating", "constant", "function"]))
    largest = draw(st.sampled_from([0.1, 1.0, 5.0]))
    y = largest * labels(how, X, rng)
    if kind == "sorted":
        X, y = adversary.sorted_by(X, y, draw(st.integers(-1, d - 1)))
    return Stream(X, y, kernel, lam, largest, seed)


# ---- one function for each bound: what was measured, and its bound, at one or all rounds ----


def proposition_1(s):
    """Kernel-AWV at every round, with the largest label so far."""
    predictions = okl.run(okl.KernelAWV(s.kernel, lam=s.lam), s.X, s.y).predictions
    bounds = np.maximum.accumulate(np.abs(s.y)) ** 2 * s.log_dets
    np.testing.assert_allclose(theory.awv_bound(s.kernel, s.X, s.lam, s.B), bounds[-1], rtol=1e-7)
    return s.regret(predictions), bounds


def kernel_certificate(s):
    """Kernel-AWV by a dense solve, under the bound that its run shows: the tighter one."""
    run = okl.run(okl.KernelAWV(s.kernel, lam=s.lam), s.X, s.y)
    largest = np.maximum.accumulate(np.abs(s.y)) ** 2 * s.log_dets
    assert (run.certificate.bound <= largest * (1 + ROUNDING) + ROUNDING).all()
    return s.regret(run.predictions), run.certificate.bound


def run_pkawv(s, features):
    with warnings.catch_warnings(action="ignore"):  # of features that hold little of the kernel
        return okl.run(okl.PKAWV(features, lam=s.lam), s.X, s.y)


def pkawv_certificate(s):
    """PKAWV against the best function of its features by a dense solve, at the last round."""
    features = fixed_features(s.kernel, s.X.shape[1], s.seed)
    run = run_pkawv(s, features)
    Z = features.transform(s.X)
    A = Z.T @ Z + s.lam * np.eye(Z.shape[1])
    b = Z.T @ s.y
    return run.losses.sum() - (s.y @ s.y - b @ np.linalg.solve(A, b)), run.certificate.bound[-1]


def theorem_3_landmarks(s):
    """PKAWV on some of the stream's own points."""
    rng = np.random.default_rng(s.seed)
    kept = rng.permutation(s.n)[: rng.integers(1, s.n + 1)]
    return theorem_3(s, okl.NystromFeatures(s.X[kept], s.kernel))


def theorem_3(s, features):
    regret = s.regret(run_pkawv(s, features).predictions)
    at = sorted({1, s.n // 3, s.n})
    bounds = [
        theory.pkawv_bound(s.kernel, features, s.X[:t], s.lam, np.abs(s.y[:t]).max()) for t in at
    ]
    return regret[np.array(at) - 1], np.array(bounds)


def theorem_4(s):
    """PKAWV on Taylor features of the degree that the theorem asks for."""
    if not isinstance(s.kernel, okl.Gaussian):
        return None
    radius = np.sqrt((s.X**2).sum(axis=1).max())
    degree = theory.taylor_degree(s.n, s.lam, radius, s.kernel.sigma)
    if comb(s.X.shape[1] + degree, degree) > MOST_FEATURES:
        return None
    features = okl.TaylorFeatures(degree, sigma=s.kernel.sigma)
    predictions = run_pkawv(s, features).predictions
    return s.regret(predictions)[-1], theory.taylor_bound(features, s.X, s.lam, s.B)


def run_nystrom(s, mu=1.0, beta=1.0):
    """Return a run of Nystrom-AWV with a multiple of lam as mu."""
    learner = okl.NystromAWV(s.kernel, lam=s.lam, mu=mu * s.lam, beta=beta, seed=s.seed)
    return okl.run(learner, s.X, s.y)


def nystrom_certificate(s):
    """Nystrom-AWV against the best function of its own space, at every round."""
    run = run_nystrom(s)
    return run.certificate.regret, run.certificate.bound


def theorem_6(s):
    """Nystrom-AWV with the beta of Proposition 5."""
    mu = 10.0 ** -(s.seed % 4)
    run = run_nystrom(s, mu, beta=12 * log(s.n / DELTA))
    bound = theory.nystrom_bound(s.kernel, s.X, s.lam, mu * s.lam, int(run.sizes[-1]), s.B)
    return s.regret(run.predictions)[-1], bound


def theorem_6_measured(s):
    """Nystrom-AWV with the beta of practice and the largest |(I - P_t) C_t^1/2|^2 of the run as mu.

    Then the theorem is deterministic, wherever this mu is at most lam.
    """
    run = run_nystrom(s, 1 / 3)
    mu, size = largest_gap(s.K, run.sizes), int(run.sizes[-1])
    if mu > s.lam or size == 0:
        return None
    bound = theory.nystrom_bound(s.kernel, s.X, s.lam, max(mu, 1e-12 * s.lam), size, s.B)
    return s.regret(run.predictions)[-1], bound


def proposition_5_size(s):
    """The dictionary of Proposition 5's beta, at the mu of Theorem 6."""
    found = theory.nystrom_size_bound(s.kernel, s.X, s.lam, DELTA)
    sampler = okl.KORS(s.kernel, alpha=s.lam, beta=found.beta, seed=s.seed).partial_fit(s.X)
    return sampler.size, found.size


def proposition_5_accuracy(s):
    """What that dictionary leaves of the kernel, |(I - P_t) C_t^1/2|^2, at its worst round."""
    beta = theory.nystrom_size_bound(s.kernel, s.X, s.lam, DELTA).beta
    return largest_gap(s.K, run_nystrom(s, beta=beta).sizes), s.lam


def theorem_9(s):
    """Nystrom-AWV on the dictionary that it happens to have."""
    run = run_nystrom(s)
    return s.regret(run.predictions)[-1], theory.growing_bound(s.kernel, s.X, s.y, s.lam, run.sizes)


def theorem_9_uniform(s):
    """AWV on a dictionary that grows by uniform sampling, by dense projections."""
    sampler = okl.UniformSampling(s.kernel, probability=0.3, seed=s.seed).partial_fit(s.X)
    sizes = np.searchsorted(sampler.indices_, np.arange(s.n), side="right")
    predictions = np.zeros(s.n)
    for t in np.flatnonzero(sizes):
        if t in sampler.indices_:
            features = okl.NystromFeatures(s.X[sampler.indices_[: sizes[t]]], s.kernel)
            Z = features.transform(s.X)
        A = Z[: t + 1].T @ Z[: t + 1] + s.lam * np.eye(Z.shape[1])
        predictions[t] = Z[t] @ np.linalg.solve(A, Z[:t].T @ s.y[:t])
    return s.regret(predictions)[-1], theory.growing_bound(s.kernel, s.X, s.y, s.lam, sizes)


def gaussian_dimension(s):
    """The effective dimension itself, for any inputs in the ball."""
    if not isinstance(s.kernel, okl.Gaussian):
        return None
    radius = np.sqrt((s.X**2).sum(axis=1).max())
    measured = theory.effective_dimension(s.kernel, s.X, s.lam)
    d = s.X.shape[1]
    return measured, theory.gaussian_dimension_bound(s.n, d, s.lam, radius, s.kernel.sigma)


def largest_gap(K, sizes):
    """Return the largest eigenvalue of the kernel outside the dictionary, at the worst round.

    It only grows while the dictionary stays, so the rounds before it grows and the last are enough.
    """
    joined = np.flatnonzero(np.diff(sizes, prepend=0))
    largest = 0.0
    for t in sorted({*joined, len(K)} - {0}):  # rounds 0, ..., t - 1 were played with atoms below t
        atoms = joined[joined < t]
        rest = K[:t, :t].copy()
        if len(atoms):
            values, V = np.linalg.eigh(K[np.ix_(atoms, atoms)])
            kept = values > 1e-12 * values[-1]
            F = K[:t][:, atoms] @ (V[:, kept] / np.sqrt(values[kept]))
            rest -= F @ F.T
        largest = max(largest, np.linalg.eigvalsh(rest)[-1])
    return largest


@functools.lru_cache(maxsize=8)  # several bounds of a stream have the same competitors
def best_function(s, classes, lam, loss):
    y = np.where(s.y >= 0, 1.0, -1.0) if classes else s.y
    return theory.comparator(s.kernel, s.X, y, lam, loss)


def theorem_1(loss, make=okl.KONS):
    """KONS and its kin, against feasible competitors: multiples of the best functions."""
    rule = losses.get(loss)

    def measure(s):
        C = [0.5, 1.0, 3.0][s.seed % 3] if rule.classes else float(s.largest)
        y = np.where(s.y >= 0, 1.0, -1.0) if rule.classes else s.y
        predictions = okl.run(make(s.kernel, loss=loss, C=C, alpha=s.lam), s.X, y).predictions
        assert np.abs(predictions).max() <= C
        played = rule.value(predictions, y).sum()
        worst = played - rule.value(np.zeros(s.n), y).sum()
        for lam in (s.lam, s.lam / 10):
            # with a kink the best is not always found where lam is small: any competitor will do
            near = loss if rule.curvature(C) > 0.0 else "squared"
            best = best_function(s, rule.classes, lam, near)
            reach = np.abs(best.predictions).max()
            for scale in (min(1.0, C / reach), min(0.5, 0.5 * C / reach)) if reach > 0 else ():
                fit = rule.value(scale * best.predictions, y).sum()
                worst = max(worst, played - fit - s.lam * (scale * best.norm) ** 2)
        return worst, theory.kons_bound(s.kernel, s.X, loss, C, s.lam)

    return measure


sketched = functools.partial(okl.SketchedKONS, gamma=1.0)
without_curvature = functools.partial(okl.KONS, schedule="sqrt")
BOUNDS = {
    "Proposition 1 (Kernel-AWV)": proposition_1,
    "Proposition 2 (log det)": lambda s: (
        s.log_dets[-1],
        theory.log_det_bound(s.kernel, s.X, s.lam),
    ),
    "Theorem 3 (PKAWV, fixed features)": lambda s: theorem_3(
        s, fixed_features(s.kernel, s.X.shape[1], s.seed)
    ),
    "Theorem 3 (PKAWV, the stream's own points)": theorem_3_landmarks,
    "Theorem 4 (PKAWV, Taylor)": theorem_4,
    "certificate (Kernel-AWV)": kernel_certificate,
    "certificate (PKAWV)": pkawv_certificate,
    "certificate (Nystrom-AWV)": nystrom_certificate,
    "Theorem 6 (Nystrom-AWV, beta of the theory)": theorem_6,
    "Theorem 6 (Nystrom-AWV, beta = 1, mu measured)": theorem_6_measured,
    "Proposition 5 (size of KORS)": proposition_5_size,
    "Proposition 5 (accuracy of KORS)": proposition_5_accuracy,
    "Theorem 9 (Nystrom-AWV)": theorem_9,
    "Theorem 9 (uniform sampling)": theorem_9_uniform,
    "effective dimension (Gaussian)": gaussian_dimension,
    "KONS Theorem 1 (squared)": theorem_1("squared"),
    "KONS Theorem 1 (squared hinge)": theorem_1("squared_hinge"),
    "KONS Theorem 1 (logistic)": theorem_1("logistic"),
    "KONS Theorem 1 (hinge, eta_t = 1 / (L C sqrt(t)))": theorem_1("hinge", without_curvature),
    "KONS Theorem 1 (absolute, the same)": theorem_1("absolute", without_curvature),
    "KONS Theorem 1 (quantile of 0.9, the same)": theorem_1("quantile(0.9)", without_curvature),
    "KONS Theorem 3 (Sketched-KONS, gamma = 1)": theorem_1("squared", sketched),
}


def tightest(kind, examples):
    """Play streams; return how often each bound was tested, and its largest ratios to the regret.

    The first ratio is at any round, the second at the last of at least ten.
    """
    tested, ratios = dict.fromkeys(BOUNDS, 0), {name: [0.0, 0.0] for name in BOUNDS}

    @settings(max_examples=examples, deadline=None, derandomize=True, database=None)
    @given(streams(kind))
    def play(s):
        for name, measure in BOUNDS.items():
            found = measure(s)
            if found is None:
                continue
            measured, bound = map(np.atleast_1d, found)
            assert (measured <= bound * (1 + ROUNDING) + ROUNDING).all(), name
            tested[name] += 1
            far = bound > 1e-6  # from rounding
            ratio = np.where(far, measured, 0.0) / np.where(far, bound, 1.0)
            ratios[name][0] = max(ratios[name][0], ratio.max())
            if s.n >= 10:
                ratios[name][1] = max(ratios[name][1], ratio[-1])

    play()
    return tested, ratios


def greedy_stream(make, lam, sigma=1.0, n=GREEDY_ROUNDS):
    kernel = okl.Gaussian(sigma)
    game = adversary.greedy(make(kernel, lam), kernel, n, 2, lam)
    return Stream(game.X, game.y, kernel, lam, 1.0, seed=0)


def main(examples):
    """Print the tightest ratios, as a table of Markdown."""
    tested, ratios = dict.fromkeys(BOUNDS, 0), {name: [0.0, 0.0, "", ""] for name in BOUNDS}
    for kind in KINDS:
        counts, found = tightest(kind, examples)
        for name, (anywhere, last) in found.items():
            tested[name] += counts[name]
            now = ratios[name]
            if anywhere > now[0]:
                now[0], now[2] = anywhere, kind
            if last > now[1]:
                now[1], now[3] = last, kind
    print("| bound | streams | at any round | at the last of 10 or more rounds |")
    print("|---|--:|---|---|")
    for name, (anywhere, last, kind, late) in ratios.items():
        print(f"| {name} | {tested[name]} | {anywhere:.4f} ({kind}) | {last:.4f} ({late}) |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else STREAMS)
