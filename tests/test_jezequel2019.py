"""The bounds of pkawv: their formulas, and no algorithm exceeds its bound on 400 streams.

The streams are those of tests/bounds.py, on which the bounds of KONS are tested as well.
"""

from __future__ import annotations

import numpy as np
import pytest

import oklnumba as okl
from oklnumba import theory
from tests import naive
from tests.bounds import (
    KINDS,
    STREAMS,
    greedy_stream,
    largest_gap,
    learner_forecasts,
    proposition_1,
    theorem_3,
    tightest,
)
from tests.compiled import COMPILED
from tests.points import KERNEL, K, X, Y


def test_bounds_add_up_to_their_formulas():
    features = okl.TaylorFeatures(3, sigma=0.7)
    F = naive.taylor(X, 3, 0.7)
    mu = np.linalg.eigvalsh(K - F @ F.T)[-1]
    np.testing.assert_allclose(okl.theory.projection_gap(KERNEL, features, X), mu, rtol=1e-9)
    awv = 0.5 * 4.0 + 9.0 * np.linalg.slogdet(K / 0.5 + np.eye(60))[1]
    found = okl.theory.awv_bound(KERNEL, X, 0.5, B=3.0, norm=2.0)
    np.testing.assert_allclose(found, awv, rtol=1e-9)
    found = okl.theory.pkawv_bound(KERNEL, features, X, 0.5, B=3.0, norm=2.0)
    np.testing.assert_allclose(found, awv + (mu + 0.5) * 60 * mu * 9.0 / 0.25, rtol=1e-9)


def test_theorem_4_holds_from_the_degree_it_asks():
    lam, radius, sigma = 1.0, 0.5, 1.0
    small = X * radius / np.sqrt((X**2).sum(axis=1)).max()
    degree = okl.theory.taylor_degree(len(X), lam, radius, sigma)
    assert degree == 9  # ceil(2 log 60)
    run = okl.run(okl.PKAWV(okl.TaylorFeatures(degree, sigma=sigma), lam=lam), small, Y)
    kernel = okl.Gaussian(sigma)
    bound = 1.5 * okl.theory.awv_bound(kernel, small, lam, B=np.abs(Y).max())
    assert run.regret(kernel, lam)[-1] <= bound


@pytest.mark.parametrize("lam", [10.0, 1.0, 1e-2])
def test_proposition_2(lam):
    assert okl.theory.log_det(KERNEL, X, lam) <= okl.theory.log_det_bound(KERNEL, X, lam)


def test_taylor_bound_wants_the_degree_of_theorem_4():
    with pytest.raises(ValueError, match="degree is 3, but Theorem 4 asks for"):
        okl.theory.taylor_bound(okl.TaylorFeatures(3, sigma=1.0), X, 1.0)
    degree = okl.theory.taylor_degree(60, 1.0, np.sqrt((X**2).sum(axis=1).max()), 1.5)
    found = okl.theory.taylor_bound(okl.TaylorFeatures(degree, sigma=1.5), X, 1.0, B=2.0, norm=3.0)
    log_det = np.linalg.slogdet(naive.gaussian(X, X, 1.5) + np.eye(60))[1]
    np.testing.assert_allclose(found, 9.0 + 1.5 * 4.0 * log_det)


def test_capacity_bound_is_theorem_6_or_3_with_the_parameters_of_the_corollaries():
    n, m, gamma = 10_000, 300, 0.3
    for known in (False, True):
        found = okl.theory.capacity_bound(n, m, gamma, B=2.0, norm=3.0, known_inputs=known)
        mu, lam = n * m ** (-1 / gamma), found.lam
        rest = (mu + lam) * n * mu / lam**2 if known else 2 * (m + 1) * n * mu / lam
        capacity = (n / lam) ** gamma * np.log(np.e + np.e * n / lam)
        np.testing.assert_allclose(found.bound, 9 * lam + 4 * (capacity + rest), rtol=1e-12)
        np.testing.assert_allclose(found.mu, mu, rtol=1e-12)
        assert mu <= lam


@pytest.mark.parametrize("gamma", [0.25, np.sqrt(2) - 1, 0.75])
def test_rates_minimise_the_forms_of_equation_8(gamma):
    found = okl.theory.rates(gamma, points=41)
    lam = np.linspace(-1.0, 2.0, 3001)[:, None]  # log_n lam
    a = found["a"]
    d_eff = gamma * (1 - lam)
    forms = {
        "PKAWV": np.maximum(np.maximum(lam, d_eff), 2 + a - a / gamma - lam),
        "PKAWV (beforehand features)": np.maximum(np.maximum(lam, d_eff), 2 - a / gamma - lam),
        "Sketched-KONS": np.maximum(lam, 1 - a + d_eff),
        "Pros-N-KONS": np.maximum(a + np.maximum(lam, d_eff), 2 - a / gamma - lam),
    }
    for name, form in forms.items():
        expected = np.minimum.accumulate(np.minimum(form.min(axis=0), 1.0))
        np.testing.assert_allclose(found[name], expected, atol=2e-3, err_msg=name)


# ---- every bound on streams of every kind ----


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_no_algorithm_exceeds_its_bound(kind):
    tested, ratios = tightest(kind, STREAMS)
    if COMPILED:
        assert all(count >= STREAMS // 10 for count in tested.values()), tested
        assert ratios["Proposition 1 (Kernel-AWV)"][0] > 0.5  # the streams are hard


# ---- controls: bounds that are too small are exceeded ----


def test_half_of_log_det_is_exceeded():
    measured, bound = proposition_1(
        greedy_stream(lambda kernel, lam: okl.KernelAWV(kernel, lam=lam), 10.0)
    )
    assert measured[-1] <= bound[-1]
    assert measured[-1] > bound[-1] / 2


def test_theorem_3_needs_its_second_term():
    """Without it the bound is that of Kernel-AWV, which features of degree 0 exceed."""
    s = greedy_stream(
        lambda kernel, lam: okl.PKAWV(okl.TaylorFeatures(0, sigma=0.3), lam=lam), 1.0, 0.3, 40
    )
    measured, bound = theorem_3(s, okl.TaylorFeatures(0, sigma=0.3))
    assert measured[-1] <= bound[-1]
    assert measured[-1] > theory.awv_bound(s.kernel, s.X, s.lam)


def test_theorem_4_needs_its_degree():
    """Its bound is exceeded by a smaller degree, which taylor_bound refuses."""
    features = okl.TaylorFeatures(0, sigma=0.3)
    s = greedy_stream(lambda kernel, lam: okl.PKAWV(features, lam=lam), 1.0, 0.3, 40)
    assert s.regret(learner_forecasts(okl.PKAWV(features), s))[-1] > 1.5 * s.log_dets[-1]
    with pytest.raises(ValueError, match="degree"):
        theory.taylor_bound(features, s.X, s.lam)


def test_theorem_6_needs_an_accurate_dictionary():
    """One atom, and the mu of a large dictionary: the regret grows with the rounds."""
    s = greedy_stream(lambda kernel, lam: okl.NystromAWV(kernel, lam=lam, max_size=1), 1.0, 0.3, 40)
    run = okl.run(okl.NystromAWV(s.kernel, lam=s.lam, max_size=1), s.X, s.y)
    assert s.regret(run.predictions)[-1] > s.log_dets[-1]
    assert largest_gap(s.K, run.sizes) > s.lam
