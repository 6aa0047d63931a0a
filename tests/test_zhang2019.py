"""The bounds of the notes on online convex optimisation, on games that hypothesis draws."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oklnumba as okl
from oklnumba import theory
from oklnumba.components.potentials import euclidean
from tests.checks import COMPILED
from tests.streams import ADAPTIVE, played

GAME_COUNT = 250 if COMPILED else 20
sizes = st.sampled_from([0.0, 1e-8, 0.1, 1.0, 1.0, 1.0, 30.0, 1e4, 1e9])
entries = st.sampled_from([-1.0, -0.6, -0.3, 0.0, 0.2, 0.5, 0.9, 1.0])
one_gradient = st.tuples(sizes, st.lists(entries, min_size=3, max_size=3), st.integers(1, 4))


@st.composite
def games(draw):
    """Draw the gradients of a game, (n, 3): zero, repeated, alternating and huge ones."""
    rows = []
    for size, direction, times in draw(st.lists(one_gradient, min_size=1, max_size=7)):
        rows += [size * np.array(direction)] * times
    gradients = np.array(rows)
    if draw(st.booleans()):
        gradients[1::2] *= -1
    return gradients


class Claim:
    """A learner, and the bound that the notes claim for it, as functions of a step's multiple."""

    def __init__(self, name, learner, bound, kind="linear", inside=None):
        self.name, self.learner, self.bound = name, learner, bound
        self.kind, self.inside = kind, inside

    def __repr__(self):
        return self.name

    def gap(self, linear, wrong=1.0, comparators=()):
        """Return the largest regret - bound over comparators, and the size of its terms."""
        learner = self.learner(wrong).reset(linear.shape[1])
        gradients, points = np.empty_like(linear), np.empty_like(linear)
        for t, c in enumerate(linear):
            points[t] = learner.w
            gradients[t] = c + (LAM * points[t] if self.kind == "strong" else 0.0)
            learner.update(gradients[t])
        worst, size = -np.inf, 0.0
        # For FTRL the last point is the comparator that comes nearest to the bound.
        for w in [learner.w, np.zeros(linear.shape[1]), *comparators]:
            if self.inside is not None:
                w = self.inside(w)
            moves = points - w
            terms = (gradients * moves).sum(axis=1)
            if self.kind == "strong":  # f_t(w) = <c_t, w> + lam |w|^2 / 2
                terms = terms - LAM / 2 * (moves**2).sum(axis=1)
            elif self.kind == "exp-concave":
                terms = terms - ALPHA / 2 * terms**2
            bound = self.bound(gradients, w)
            worst = max(worst, terms.sum() - bound)
            size = max(size, np.abs(gradients * moves).sum(), abs(bound))
        return worst, size


ETA, LAM, ALPHA, LIPSCHITZ, SIGMA = 0.3, 0.7, 0.05, 2.0, 1.5
ROUNDING = 1e-14  # a divergence is a difference of entropies of order 1 / eta


def in_ball(w):
    return w / max(1.0, np.linalg.norm(w) / 1.2)


def in_simplex(w, scale=1.0):
    w = np.abs(w)
    return scale * (w / w.sum() if 0 < w.sum() < np.inf else np.full(len(w), 1 / len(w)))


def adaptive(kind):
    params = {} if kind == "sqrt" else {"sigma": SIGMA}
    return Claim(
        f"Corollary 1, {kind}",
        lambda k: okl.AdaptiveFTRL(kind, eta=k * ETA, **params),
        lambda g, w: theory.adaptive_ftrl_bound(g, w, kind, ETA, SIGMA),
    )


def exp_concave(domain, inside):
    params = {"lipschitz": LIPSCHITZ, "domain": domain}
    params |= {"radius": 1.2} if domain == "ball" else {}
    return Claim(
        f"Theorem 6, {domain}",
        lambda k: okl.ExpConcaveFTRL(ALPHA / k, **params),
        lambda g, w: theory.exp_concave_bound(g, w, ALPHA, LIPSCHITZ),
        "exp-concave",
        inside,
    )


CLAIMS = [
    Claim("OGD", lambda k: okl.OGD(k * ETA), lambda g, w: theory.ogd_bound(g, w, ETA)),
    Claim("OGD, projected", lambda k: okl.OGD(k * ETA, radius=1.2),
          lambda g, w: theory.ogd_bound(g, w, ETA), inside=in_ball),
    Claim("footnote 1", lambda k: okl.OGD(k * ETA, schedule="gradient", radius=1.2),
          lambda g, w: theory.gradient_steps_bound(g, w, ETA, 1.2), inside=in_ball),
    Claim("LazyOGD", lambda k: okl.LazyOGD(k * ETA, radius=1.2),
          lambda g, w: theory.ftrl_bound(euclidean(ETA, 1.2), g, w), inside=in_ball),
    Claim("PNorm", lambda k: okl.PNorm(k * ETA, p=1.3),
          lambda g, w: theory.p_norm_bound(g, w, ETA, 1.3)),
    Claim("Hedge", lambda k: okl.Hedge(k * ETA),
          lambda g, w: theory.exponentiated_gradient_bound(g, w, ETA), inside=in_simplex),
    Claim("ExponentiatedGradient, scale 5",
          lambda k: okl.ExponentiatedGradient(k * ETA, scale=5.0),
          lambda g, w: theory.exponentiated_gradient_bound(g, w, ETA, 5.0),
          inside=lambda w: in_simplex(w, 5.0)),
    *(adaptive(kind) for kind in ADAPTIVE),
    Claim("Theorem 4", lambda k: okl.StronglyConvexFTRL(LAM / k),
          lambda g, w: theory.strongly_convex_bound(g, w, LAM), "strong"),
    Claim("Theorem 5", lambda k: okl.OGD(schedule="strong", lam=LAM / k),
          lambda g, w: theory.ogd_strong_bound(g, LAM), "strong"),
    exp_concave("all", None),
    exp_concave("ball", in_ball),
    exp_concave("simplex", in_simplex),
]  # fmt: skip


@pytest.mark.slow
@settings(max_examples=GAME_COUNT // 2)
@given(linear=games(), w=st.lists(st.floats(-3, 3), min_size=3, max_size=3).map(np.array))
def test_the_bounds_hold_on_random_games(linear, w):
    small = linear / max(1.0, np.sqrt((linear**2).sum(axis=1)).max() / LIPSCHITZ)
    for claim in CLAIMS:  # Theorem 6 is for gradients of at most L
        gradients = small if claim.kind == "exp-concave" else linear
        worst, size = claim.gap(gradients, comparators=(w, 100 * w))
        assert worst <= 1e-9 * size + ROUNDING, claim


@pytest.mark.parametrize("claim", CLAIMS, ids=repr)
def test_a_wrong_step_breaks_a_bound(claim):
    """Negative control: the bounds are not so loose that anything passes."""
    g = np.array([1.0, -0.5, 0.25])
    found = [
        np.repeat(np.tile([g, -g], (n, 1)), times, axis=0) for n, times in ((200, 1), (10, 20))
    ]
    rng, broken = np.random.default_rng(0), False
    found += [np.tile(g, (400, 1)), *rng.standard_normal((2, 200, 3))]
    for linear in found:
        far = (-100 * linear.sum(axis=0), *np.eye(3))
        worst, size = claim.gap(linear, comparators=far)
        assert worst <= 1e-9 * size + ROUNDING
        gaps = (claim.gap(linear, wrong, far) for wrong in (30.0, 1e-2, 1e-4))
        broken = broken or any(worst > 1e-6 * size for worst, size in gaps)
    assert broken


@settings(max_examples=GAME_COUNT)
@given(linear=games())
def test_adagrad_in_closed_form(linear):
    sigma = max(1.0, (linear**2).max())
    *points, last = played(okl.AdaptiveFTRL("adagrad", eta=ETA, sigma=sigma), linear)
    for w in (last, np.ones(3), np.zeros(3)):
        regret = (linear * (np.array(points) - w)).sum()
        exact = theory.adaptive_ftrl_bound(linear, w, "adagrad", ETA, sigma)
        closed = theory.adagrad_bound(linear, w, ETA, sigma)
        assert regret <= exact + 1e-9 * abs(exact) and exact <= closed * (1 + 1e-12)


def footnote_1(linear, radius=1.2):
    """Return regret and bound of the mirror descent of footnote 1, tuned, for the worst w."""
    learner = okl.OGD(np.sqrt(2) * radius, schedule="gradient", radius=radius)
    points = played(learner, linear)[:-1]
    worst = (linear * points).sum() + radius * np.linalg.norm(linear.sum(axis=0))
    return worst, 2 * np.sqrt(2) * radius * np.linalg.norm(linear), points


@settings(max_examples=GAME_COUNT)
@given(linear=games(), power=st.integers(-60, 60))
def test_footnote_1_needs_no_sigma(linear, power):
    """Its bound holds at any scale of the gradients, which changes no point."""
    regret, bound, points = footnote_1(linear)
    assert regret <= bound * (1 + 1e-9) + ROUNDING
    assert np.array_equal(points, footnote_1(linear * 2.0**power)[2])


def test_footnote_1_is_tight_to_less_than_a_factor_of_two():
    """Half of its bound is exceeded: all gradients small, then one that all points regret."""
    ratios = []
    for size, n in itertools.product((1.0, 1e4), (1, 2, 5, 50)):
        g = np.eye(3)[:1] * np.append(np.ones(n), -size)[:, None]
        regret, bound, _ = footnote_1(g)
        ratios.append(regret / bound)
    assert 0.5 < max(ratios) <= 1.0


@pytest.mark.parametrize("rate", [0.1, 0.5, 1.0, 1.5, 8.0])
def test_lemmas_7_and_9_with_the_one_of_errata_50(rate):
    a = rate ** np.arange(30)
    A = np.cumsum(a)
    assert (a / np.sqrt(A)).sum() <= 2 * np.sqrt(A[-1])
    assert (a / A).sum() <= 1 + np.log(A[-1] / a[0])
    for printed in ([1.0], [1.0, 0.0], [1.0, 1.0]):  # as printed Lemma 9 is false
        A = np.cumsum(printed)
        assert np.sum(printed / A) > np.log(A[-1] / A[0]) + 0.5


labelled = st.tuples(st.lists(entries, min_size=3, max_size=3), st.booleans(), st.integers(1, 4))


@pytest.mark.slow
@settings(max_examples=GAME_COUNT)
@given(
    rows=st.lists(labelled, min_size=1, max_size=12),
    w=st.lists(st.floats(-5, 5), min_size=3, max_size=3).map(np.array),
)
def test_mistake_bounds(rows, w):
    X = np.array([x for x, _, times in rows for _ in range(times)])
    y = np.array([1.0 if up else -1.0 for _, up, times in rows for _ in range(times)])
    R2 = max((X**2).sum(axis=1).max(), 1e-12)
    mistakes = np.count_nonzero(y * by_hand(okl.Perceptron(), X, y) <= 0)
    for eta in (0.1 / R2, 0.5 / R2, 0.9 / R2):
        for u in (w, 0.1 * w, np.zeros(3)):
            assert mistakes <= theory.perceptron_bound(X, y, u, eta) * (1 + 1e-12)
    eta = 0.5 / max(np.abs(X).max() ** 2, 1e-12)
    mistakes = np.count_nonzero(y * by_hand(okl.Winnow(eta), X, y) <= 0)
    for u in (in_simplex(w), np.full(3, 1 / 3), np.eye(3)[0]):
        assert mistakes <= theory.winnow_bound(X, y, u, eta) * (1 + 1e-12)
    assert theory.winnow_bound(X, y, np.eye(3)[0], 1e6) == np.inf or not X.any()


def by_hand(learner, X, y):
    """Return w_t.x_t of each round (a run reports 0 for the first one)."""
    learner.reset(X.shape[1])
    margins = []
    for x, label in zip(X, y, strict=True):
        margins.append(learner.w @ x)
        learner.learn_one(x, label)
    return np.array(margins)


def test_winnow_needs_four_not_two_as_errata_42_has_it():
    """An adversary forces more than 2 log d mistakes on data with margin 1, never 4 log d."""
    d = 2000
    learner = okl.Winnow(eta=0.5).reset(d)
    X = []
    alive = np.arange(1, d)
    for _ in range(60):
        w, x = learner.w, np.ones(d)  # w* = e_1 has margin 1 on every x
        order = alive[np.argsort(w[alive])]
        # as few coordinates at -1 as make a mistake: they shrink, the others are the next rounds'
        count = int(np.searchsorted(np.cumsum(w[order][::-1]), 0.5)) + 1
        if count > len(order):
            break
        x[order[::-1][:count]] = -1.0
        assert w @ x <= 0
        learner.learn_one(x, 1.0)
        X.append(x)
    X, y = np.array(X), np.ones(len(X))
    bound = theory.winnow_bound(X, y, np.eye(d)[0], eta=0.5)
    assert bound == pytest.approx(4 * np.log(d))
    assert 2 * np.log(d) < len(X) <= bound


@pytest.mark.parametrize(("lam", "eps", "R"), [(0.1, 0.1, 1.0), (2.0, 3.0, 0.5), (1e-3, 0.7, 4.0)])
def test_svm_rounds_are_the_fewest_that_the_theorems_allow(lam, eps, R):
    rounds = theory.svm_rounds(lam, eps, R)
    for T, enough in ((rounds, True), (rounds - 1, False)):
        if T == 0:
            assert rounds == 1
            continue
        longest = np.full((T, 1), 2 * R)  # gradients
        theorem_4 = theory.strongly_convex_bound(longest, [R / lam], lam)
        assert theorem_4 >= theory.ogd_strong_bound(longest, lam)
        harmonic = 1 / np.arange(1, T + 1)
        logarithm = theorem_4 + 4 * R**2 / lam * (1 + np.log(T) - harmonic.sum())
        assert (logarithm / T <= eps * (1 + 1e-12)) == enough
    ratio = theory.svm_rounds(lam, eps / 1e7, R) / theory.svm_rounds(lam, eps / 1e6, R)
    assert 10 < ratio < 12  # (1 / eps) log(1 / eps)
    assert abs(theory.svm_rounds(lam * 2, eps / 2, R) - rounds) <= 1  # of lam eps alone


STRONG = {okl.StronglyConvexFTRL: {}, okl.OGD: {"schedule": "strong"}}


@pytest.mark.parametrize("kind", STRONG)
def test_an_svm_is_within_eps_after_svm_rounds(kind):
    """Four points, so that the risk and its minimum are exact; one function drawn out of a run."""
    lam, eps = 0.1, 0.3
    X = np.array([[1.0, 0.0], [0.6, 0.8], [-0.6, 0.8], [0.0, -1.0]])
    y = np.array([1.0, 1.0, -1.0, -1.0])
    learner = kind(loss="hinge", lam=lam, **STRONG[kind])

    def risk(w):
        return lam / 2 * (w @ w) + np.maximum(1 - y * (X @ w), 0.0).mean()

    best = theory.comparator(okl.Linear(), X, y, lam * len(y) / 2, loss="hinge")
    least = lam / 2 * best.norm**2 + best.loss / len(y)
    found = {}
    for T in (2, theory.svm_rounds(lam, eps)):
        excess = []
        for seed in range(50):
            chosen = np.random.default_rng([seed, T]).integers(0, 4, T)
            batch = okl.OnlineToBatch(learner, seed=seed).fit(X[chosen], y[chosen])
            w = batch.predict(np.eye(2))
            excess.append(risk(w) - least)
        assert min(excess) > -1e-6
        found[T] = np.mean(excess)
    assert found[2] > eps > found[T]
