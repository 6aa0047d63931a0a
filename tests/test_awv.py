"""AWV and ridge, exact, on features, Nystrom, linear and discounted, against the textbook."""

import decimal
from operator import mul

import numba
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import oklnumba as okl
from oklnumba.hot.awv import AWVResults, Certificate, certify
from oklnumba.hot.primitives.jit import DONE, NOT_FINITE, PLAIN
from oklnumba.hot.primitives.rows import WIDE
from tests.checks import COMPILED, Factor, assert_close, poisoned, refused, troubled
from tests.reference import naive
from tests.streams import HARD, KERNELS, every_hard_stream, hard, smooth

# Every kernel with one lam, every lam with one kernel: rows of a kernel know nothing of lam.
every_kernel = pytest.mark.parametrize(
    ("kernel", "lam"), [*((kernel, 1e-3) for kernel in KERNELS), (KERNELS[0], 1.0)], ids=repr
)

# ---- forecasts are those of the definition ----


@every_kernel
@pytest.mark.parametrize("awv", [True, False])
def test_exact_kernel_learners_equal_the_dense_argmin(kernel, lam, awv):
    X, y = smooth()
    K = naive.kernel_function(kernel)(X, X)
    learner = (okl.KernelAWV if awv else okl.KernelRidge)(kernel, lam=lam)
    expected = naive.kernel_forecasts(K, y, lam, awv)
    assert_close(okl.run(learner, X, y).predictions, expected)


@pytest.mark.parametrize("lam", [1.0, 1e-3, 1e-6, 1e-9, 1e-12])
def test_small_lam_costs_no_digits(lam):
    """The factor is updated, not the inverse: a dense solve in double precision is worse."""
    X, y = smooth(n=120, d=2)
    F = naive.taylor(X, 4, 1.0).astype(np.longdouble)
    exact = np.empty(len(y))
    for t in range(len(y)):
        A = lam * np.eye(F.shape[1]) + F[: t + 1].T @ F[: t + 1]
        exact[t] = F[t] @ naive.longdouble_solve(A, F[:t].T @ y[:t])
    found = okl.run(okl.PKAWV(okl.TaylorFeatures(4, sigma=1.0), lam=lam), X, y).predictions
    assert_close(found, exact, rtol=1e-12)


def test_known_inputs_is_pkawv_on_the_span_of_a_kors_dictionary():
    X, y = smooth()
    kernel = okl.Gaussian(1.0)
    run = okl.run(okl.PKAWV.known_inputs(kernel, X, lam=0.1, mu=0.3, seed=2), X, y)
    atoms = okl.KORS(kernel, alpha=0.3, seed=2).partial_fit(X).landmarks_
    K = naive.gaussian(X, atoms)
    values, vectors = np.linalg.eigh(naive.gaussian(atoms, atoms))
    F = K @ vectors / np.sqrt(values)
    assert_close(run.predictions, naive.feature_forecasts(F, y, 0.1, True), rtol=1e-8)
    assert okl.PKAWV.known_inputs(kernel, X, discount=0.9).discount == 0.9


@pytest.mark.parametrize("bad", [0, 1, 2, 3, 7, 13, 16])
def test_awv_rounds_say_in_which_round_a_forecast_is_not_finite(bad):
    rng = np.random.default_rng(18)
    Z, y = rng.standard_normal((17, 5)), rng.uniform(-1, 1, 17)
    Z[bad, 2] = np.nan
    factor = Factor(5, 1.0)
    played, status = factor.play(Z, y)
    assert (played, status) == (bad, NOT_FINITE)
    assert np.isfinite(factor.forecasts).all() and len(factor.forecasts) == bad


# ---- the certificate, and the theorems as tests ----


@pytest.mark.parametrize("discount", [1.0, 0.9])
@pytest.mark.parametrize("ridge", [False, True])
def test_certify_against_plain_sums_and_in_two_parts(ridge, discount):
    rng = np.random.default_rng(23)
    n = 12
    Y, F = rng.uniform(-1, 1, (n, 2)), rng.uniform(-1, 1, (n, 2))
    shrinks, growths = 1 + rng.random(n), 0.01 * rng.random((n, 2))
    totals = np.zeros((2, 5))
    out = AWVResults(F, poisoned(n, 2), shrinks, growths)
    certificate = Certificate(totals, *poisoned(3, n, 2))
    for first, stop in ((0, 5), (5, n)):
        certify(Y, first, stop, ridge, out, discount, certificate)
    rounds = np.arange(n)
    weights = np.tril(discount ** np.abs(rounds[:, None] - rounds))
    s = shrinks[:, None]
    m = F if ridge else F * s
    loss = weights @ (Y - F) ** 2
    comparator = weights @ ((Y - m) ** 2 / s - growths)
    bound = weights @ (Y**2 * (1 - 1 / s) + growths) + 1e-12 * loss  # for rounding
    if ridge:  # the regret
        bound = loss - comparator + 1e-12 * loss
    assert_allclose(certificate.loss, loss, rtol=1e-13)
    assert_allclose(certificate.comparator, comparator, rtol=1e-12, atol=1e-13)
    assert_allclose(certificate.bound, bound, rtol=1e-11)


SIGMA = 0.7
LAPLACIAN = okl.Laplacian(0.7)


def taylor_gram(X, degree):
    F = naive.taylor(X, degree, SIGMA)
    return F @ F.T


def dictionary_gram(X, t):
    """Return the Gram matrix of t rounds in the span of the atoms that joined before round t."""
    kept = okl.KORS(LAPLACIAN, alpha=0.1, seed=3).partial_fit(X).indices_
    atoms = np.unique(X[kept[kept < t]], axis=0)
    values, vectors = np.linalg.eigh(naive.laplacian(atoms, atoms, 0.7))
    F = naive.laplacian(X[:t], atoms, 0.7) @ vectors / np.sqrt(values)
    return F @ F.T


CERTIFIED = {  # a learner, and the Gram matrix of the first t rounds in its space after round t
    "KernelAWV": (
        lambda lam: okl.KernelAWV(okl.Gaussian(SIGMA), lam=lam),
        lambda X, t: naive.gaussian(X[:t], X[:t], SIGMA),
    ),
    "PKAWV, degree 1": (
        lambda lam: okl.PKAWV(okl.TaylorFeatures(1, sigma=SIGMA), lam=lam),
        lambda X, t: taylor_gram(X[:t], 1),
    ),
    "PKAWV, degree 6": (
        lambda lam: okl.PKAWV(okl.TaylorFeatures(6, sigma=SIGMA), lam=lam),
        lambda X, t: taylor_gram(X[:t], 6),
    ),
    "GrowingPKAWV": (
        lambda lam: okl.GrowingPKAWV(okl.TaylorFeatures(1, sigma=SIGMA), lam=lam, first=20),
        lambda X, t: taylor_gram(X[:t], 1 + (t >= 20) + (t >= 40) + (t >= 80)),
    ),
    "NystromAWV": (lambda lam: okl.NystromAWV(LAPLACIAN, lam=lam, mu=0.1, seed=3), dictionary_gram),
}


@every_hard_stream
@pytest.mark.parametrize("lam", [1.0, 1e-2])
@pytest.mark.parametrize("name", CERTIFIED)
def test_certificates_are_exact_in_the_space_of_their_round_and_hold(name, lam, kind):
    X, y = hard(kind)
    make, gram = CERTIFIED[name]
    rounds = np.r_[1:20, 20 : len(y) : 5, len(y)]
    certificate = (run := okl.run(make(lam), X, y)).certificate
    grams = [gram(X, t) for t in rounds]
    expected = [naive.penalised_comparator(G, y[: len(G)], lam) for G in grams]
    assert_allclose(certificate.comparator[rounds - 1], expected, rtol=1e-8)
    assert_allclose(certificate.loss, np.cumsum((y - run.predictions) ** 2), rtol=1e-11)
    assert (certificate.regret <= certificate.bound + 1e-9).all()
    if "Growing" not in name and "Nystrom" not in name:  # in one space, y^2 z' A_t^-1 z a round
        G, t = gram(X, len(y)), np.arange(1, len(y) + 1)
        shares = [np.linalg.solve(G[:s, :s] + lam * np.eye(s), G[:s, s - 1])[-1] for s in t]
        bound = np.cumsum(y**2 * shares) + 1e-12 * certificate.loss  # for rounding
        assert_allclose(certificate.bound, bound, rtol=1e-8)
    kernel, B = okl.Gaussian(SIGMA), np.abs(y).max()
    if name == "KernelAWV":
        assert_allclose(certificate.regret, run.regret(kernel, lam), rtol=1e-9, atol=1e-9)
        assert certificate.bound[-1] < okl.theory.awv_bound(kernel, X, lam, B)
    elif name.startswith("PKAWV"):  # against the whole RKHS
        bound = okl.theory.pkawv_bound(kernel, make(lam).features, X, lam, B)
        assert run.regret(kernel, lam)[-1] <= bound


def test_ridge_breaks_the_bound_of_awv():
    """Negative control: the artificial point (x_t, 0) is what the bound rests on."""
    n = 60
    y = 50.5 * np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    X = np.linspace(0, 1, n)[:, None]
    kernel, lam = okl.Gaussian(1.0), 1e-4
    awv = okl.run(okl.KernelAWV(kernel, lam=lam), X, y).certificate
    ridge = okl.run(okl.KernelRidge(kernel, lam=lam), X, y).certificate
    assert_allclose(ridge.comparator, awv.comparator, rtol=1e-12)
    assert (awv.regret <= awv.bound).all()
    assert (ridge.regret > awv.bound).any()


RIDGES = {
    "KernelRidge": lambda lam: okl.KernelRidge(okl.Gaussian(SIGMA), lam=lam),
    "PKAWV": lambda lam: okl.PKAWV(okl.TaylorFeatures(3, sigma=SIGMA), lam=lam, forecaster="ridge"),
    "NystromAWV": lambda lam: okl.NystromAWV(LAPLACIAN, lam=lam, forecaster="ridge"),
    "discounted": lambda lam: okl.LinearRidge(lam=lam, discount=0.9),
}


@every_hard_stream
@pytest.mark.parametrize("lam", [1.0, 1e-2])
@pytest.mark.parametrize("name", RIDGES)
def test_the_regret_of_ridge_is_its_certificate(name, lam, kind):
    """The sum of (y - f)^2 d / (1 + d) is the regret; where the space grows it is a bound.

    Forecasts cut to [-B, B] have the bound with 4 B^2 log det.
    """
    X, y = hard(kind)
    run, B = okl.run(RIDGES[name](lam), X, y), np.abs(y).max()
    regret, bound = run.certificate.regret, run.certificate.bound
    assert (regret <= bound + 1e-9 * B**2).all()
    if name != "NystromAWV":
        assert_allclose(bound, regret, rtol=1e-7, atol=1e-9 * B**2)
    if name == "KernelRidge":
        loss = np.square(y - np.clip(run.predictions, -B, B)).sum()
        bound = okl.theory.ridge_bound(okl.Gaussian(SIGMA), X, lam, B)
        assert loss - run.certificate.comparator[-1] <= bound


def test_half_of_the_bound_of_ridge_is_exceeded_and_that_of_awv_too():
    """On x_t = 2^t ridge expects B and sees -B: 3 B^2 a round, of 4 B^2 log 4 = 5.5 B^2.

    4 B^2 sum d / (1 + d), before log(1 + d) takes the place of d / (1 + d), is reached.
    """
    x, y = 2.0 ** np.arange(14), np.ones(14)
    for t in range(1, 14):
        y[t] = -1.0 if x[:t] @ y[:t] > 0.0 else 1.0
    X, kernel = x[:, None], okl.Linear()
    run = okl.run(okl.LinearRidge(lam=1.0), X, y)
    loss = np.square(y - np.clip(run.predictions, -1.0, 1.0)).sum()
    regret, bound = loss - run.certificate.comparator[-1], okl.theory.ridge_bound(kernel, X, 1.0)
    assert bound / 2 < regret <= bound
    assert 0.9 < regret / (4.0 * (x**2 / (1.0 + np.cumsum(x**2))).sum()) <= 1.0
    assert regret > okl.theory.awv_bound(kernel, X, 1.0)
    assert okl.run(okl.LinearAWV(lam=1.0), X, y).certificate.regret[-1] < regret / 3


def test_certificate_goes_on_from_the_rounds_before_the_run(tmp_path):
    X, y = smooth(n=90)
    learner = okl.PKAWV(okl.TaylorFeatures(2, sigma=1.0))
    whole = okl.run(okl.PKAWV(okl.TaylorFeatures(2, sigma=1.0)), X, y).certificate
    learner.partial_fit(X[:50], y[:50])
    run = okl.run(learner, X[50:], y[50:], record=10)
    run.save(tmp_path / "run.npz")
    rest = okl.Run.load(tmp_path / "run.npz").certificate
    for a, b in zip(whole[:4], rest[:4], strict=True):
        assert_array_equal(a[59::10], b)
    assert rest.rounds == whole.rounds == 90 and repr(rest) == repr(whole)


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
    troubled("reset", learner.predict_one, [1.0])
    learner.reset()
    if "1e-300" not in repr(learner):
        assert np.isfinite(learner.learn_one([0.5], 1.0).predict_one([0.5]))


def test_low_captured_share_is_said_by_run():
    X = np.full((10, 3), 9.0)
    with pytest.warns(UserWarning, match="centre the basis"):
        okl.run(okl.PKAWV(okl.TaylorFeatures(2, sigma=1.0)), X, np.ones(10))


# ---- discounts ----

DISCOUNTS = (1.0, 0.999, 0.9, 0.5)

SPOKEN = np.random.default_rng(8).permutation(220) < 110
X, Y = hard("uniform", 220)
STREAMS = {kind: hard(kind, 220) for kind in HARD}
STREAMS["silent"] = X * SPOKEN[:, None] * [1.0, 0.0] + [0.0, 1e-3], Y


def assert_as_defined(run, expected, rtol=1e-9):
    forecasts, least = expected
    assert_close(run.predictions, forecasts, rtol=rtol)
    assert_close(run.certificate.comparator, least, rtol=rtol)


def every_discount(name, *lams):
    """Yield discounts with forecasters and lams: of two streams in turn, all four pairs of each."""
    turn = list(STREAMS).index(name)
    for i, discount in enumerate(DISCOUNTS):
        yield discount, ("awv", "ridge")[(i + turn) % 2], lams[(i // 2 + turn // 2) % 2]


@pytest.mark.slow
@pytest.mark.parametrize("name", STREAMS)
def test_discounted_pkawv_equals_its_definition(name):
    X, y = STREAMS[name]
    maps = (
        okl.TaylorFeatures(2, sigma=1.0, center=[0.1, -0.2]),
        okl.FourierFeatures(8, sigma=0.8, seed=3),
        okl.NystromFeatures(X[:12], okl.Laplacian(0.9)),
    )
    features = maps[list(STREAMS).index(name) % 3]
    F = features.transform(X)
    for discount, forecaster, lam in every_discount(name, 1.0, 1e-6):
        learner = okl.PKAWV(features, lam=lam, forecaster=forecaster, discount=discount)
        expected = naive.discounted_forecasts(F, y, lam, discount, forecaster == "awv")
        assert_as_defined(okl.run(learner, X, y), expected)


@pytest.mark.parametrize("cls", [okl.LinearAWV, okl.LinearRidge])
def test_discounted_linear_learners_equal_their_definition(cls):
    X, y = STREAMS["silent"]
    for discount in DISCOUNTS:
        run = okl.run(cls(0.1, discount=discount), X, y)
        expected = naive.discounted_forecasts(X, y, 0.1, discount, cls is okl.LinearAWV)
        assert_as_defined(run, expected)
    learner = cls(0.1).partial_fit(X, y)
    assert_allclose(learner.w, np.linalg.solve(X.T @ X + 0.1 * np.eye(2), X.T @ y), rtol=1e-8)
    refused("learn_one", learner.update, X[0])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["uniform", "sorted", "lagged", "clustered"])
def test_discounted_nystrom_awv_equals_its_definition(name):
    X, y = (part[:90] for part in STREAMS[name])
    for discount, forecaster, lam in every_discount(name, 1.0, 1e-3):
        learner = okl.NystromAWV(
            okl.Gaussian(0.7), lam=lam, mu=0.3, forecaster=forecaster, discount=discount
        )
        run = okl.run(learner, X, y)
        kept = np.flatnonzero(np.diff(run.sizes, prepend=0))
        assert kept[-1] > 2  # a direction with a past
        expected = naive.discounted_nystrom_forecasts(
            naive.gaussian, X / 0.7, y, lam, discount, kept, forecaster == "awv"
        )
        assert_as_defined(run, expected, rtol=1e-7)


def test_a_certificate_on_near_atoms_names_the_nugget():
    """In exact decimals: the plain span holds second derivatives, which the nugget hides."""
    x = np.append(1e-4 * np.linspace(-1, 1, 6), np.random.default_rng(0).uniform(-2, 2, 94))
    y = (3 * x**2 - 1) * np.exp(-(x**2) / 2)
    learner = okl.NystromAWV(okl.Gaussian(1.0), lam=0.01, sampler=1.0, max_size=6)
    certificate = okl.run(learner, x[:, None], y).certificate
    with decimal.localcontext(prec=60):
        points, labels = ([decimal.Decimal(float(v)) for v in values] for values in (x, y))
        K = [[(-((a - b) ** 2) / 2).exp() for b in points[:6]] for a in points]
        A = [[sum(k[i] * k[j] for k in K) + K[i][j] / 100 for j in range(6)] for i in range(6)]
        b = [sum(map(mul, column, labels)) for column in zip(*K, strict=True)]
        best = sum(v * v for v in labels) - sum(map(mul, b, naive.decimal_solve(A, b)))
    assert certificate.loss[-1] - float(best) > 5 * certificate.bound[-1]  # not of the plain span
    assert certificate.space == "the span of the 6 atoms of the dictionary, to a nugget of 1e-14"


# ---- the certificate of the discounted problem ----


def test_a_certificate_says_that_it_is_discounted():
    X, y = STREAMS["uniform"]
    assert "discounted" not in repr(okl.run(okl.LinearAWV(), X, y).certificate)
    lifted = okl.WithFeatures(okl.TaylorFeatures(1), okl.LinearAWV(discount=0.9))
    for learner in (lifted, okl.PKAWV(okl.TaylorFeatures(1), discount=0.9)):
        shown = repr(okl.run(learner, X, y).certificate)
        assert "of degree 1, rounds discounted by 0.9: regret" in shown
    ridge = okl.run(okl.LinearRidge(discount=0.9), X, y).certificate
    assert_allclose(ridge.bound, ridge.regret)


def test_half_the_bound_of_the_discounted_certificate_is_exceeded():
    run = okl.run(okl.LinearAWV(0.7, discount=0.1), [[1.0]] * 40, [1.0, -1.0] * 20)
    assert (run.certificate.regret <= run.certificate.bound).all()
    assert run.certificate.regret[-1] > run.certificate.bound[-1] / 2


@pytest.mark.skipif(not COMPILED, reason="10^5 rounds")
@pytest.mark.parametrize("lam, discount", [(1.0, 0.5), (1e-6, 0.5), (1e-6, 0.99), (1.0, 1e-100)])
def test_long_silence_neither_underflows_nor_overflows(lam, discount):
    rng = np.random.default_rng(3)
    n, r = 100_000, 8
    Z, y = np.zeros((n, r)), rng.uniform(-1, 1, n)
    Z[:50] = rng.standard_normal((50, r))
    Z[50:, 0] = 2.0
    factor = Factor(r, lam, discount=discount)
    assert factor.play(Z, y) == (n, DONE)
    state = factor.state()
    assert np.isfinite(state).all()
    assert_allclose(factor.inv_d[1:], 1 / lam, rtol=1e-15)  # all that was heard is forgotten
    heard = 4.0 * discount / (1.0 - discount)  # a geometric sum
    assert factor.inv_d[0] == pytest.approx(1 / max(heard, lam), rel=1e-9)
    # without the floor the penalty has no digits left, and novelty is infinite
    bare = Factor(r, lam, discount=discount)
    bare.forgetting = bare.forgetting._replace(inv_floor=np.inf)
    assert bare.play(Z, y)[1] == NOT_FINITE


@pytest.mark.skipif(not COMPILED, reason="bits of compiled code")
def test_columns_behind_those_in_use_are_left_alone():
    rng = np.random.default_rng(5)
    Z, Y = rng.standard_normal((40, 11)), rng.standard_normal((40, 3))
    tight, wide = (Factor(11, 0.1, discount=0.9, outputs=3, spare=spare) for spare in (0, 16))
    for factor in (tight, wide):
        assert factor.play(Z, Y) == (40, DONE)
    assert_array_equal(wide.forecasts, tight.forecasts)
    assert_array_equal(wide.ridge_forecasts, tight.ridge_forecasts)
    assert_array_equal(wide.forecast(Z), tight.forecast(Z))
    assert_array_equal(wide.U[:16, :16], tight.U)
    assert_array_equal(wide.U[16:], np.eye(32)[16:])
    assert_array_equal(wide.inv_d[16:], 1 / 0.1)
    assert_array_equal(wide.c[:, 16:], 0.0)
    assert_allclose(
        wide.forecasts, np.array(wide.ridge_forecasts) / np.array(wide.a)[:, None], rtol=1e-14
    )


# ---- Nystrom-AWV, where its dictionary is hard ----


# The forecasters by turns, and both on the first kernel: rows of a kernel know nothing of them.
@pytest.mark.parametrize(
    ("kernel", "forecaster", "lam"),
    [(KERNELS[0], "awv", 1.0), (KERNELS[0], "ridge", 1e-3)]
    + [(kernel, ("awv", "ridge")[i % 2], 1e-3) for i, kernel in enumerate(KERNELS)],
)
def test_nystrom_awv_equals_the_dense_argmin(kernel, forecaster, lam):
    X, y = smooth(120)
    k, mu = naive.kernel_function(kernel), 0.5
    sampler = okl.KORS(kernel, alpha=mu, seed=4).partial_fit(X)
    learner = okl.NystromAWV(kernel, lam=lam, mu=mu, forecaster=forecaster, seed=4)
    run = okl.run(learner, X, y)
    expected = naive.nystrom_forecasts(k, X, y, lam, list(sampler.indices_), forecaster == "awv")
    assert_close(run.predictions, expected.astype(float))
    sizes = np.searchsorted(sampler.indices_, np.arange(len(X)), side="right")
    np.testing.assert_array_equal(run.sizes, sizes)


def joined(run):
    """Return the rounds whose points joined the dictionary."""
    return list(np.flatnonzero(np.diff(run.sizes, prepend=0)))


@pytest.mark.skipif(not COMPILED, reason="many inputs")
@pytest.mark.parametrize(
    "options", [{"mu": 0.3}, {"mu": 0.3, "max_size": 41}, {"sampler": 0.5, "discount": 0.97}]
)
def test_rounds_of_wide_inputs_that_share_passes_have_the_bits_of_single_ones(options):
    rng = np.random.default_rng(0)
    hidden = rng.standard_normal((150, 4))
    X, y = hidden @ rng.standard_normal((4, WIDE)) / WIDE**0.5, np.sin(3 * hidden[:, 0])
    whole, cut, one = (okl.NystromAWV(okl.Gaussian(1.0), seed=4, **options) for _ in range(3))
    run = okl.run(whole, X, y)
    assert run.sizes[-1] > 40
    if list(options) == ["mu"]:
        expected = naive.nystrom_forecasts(naive.gaussian, X, y, 1.0, joined(run), True)
        assert_close(run.predictions, expected.astype(float))
    # Bounds checks, and the several copies of a loop that plain numba has, change what LLVM fuses.
    same = assert_close if numba.config.BOUNDSCHECK or PLAIN else assert_array_equal
    pieces = [okl.run(cut, X[t : t + 29], y[t : t + 29]).predictions for t in range(0, 150, 29)]
    same(np.concatenate(pieces), run.predictions)
    for x, label, forecast in zip(X, y, run.predictions, strict=True):
        same(one.predict_one(x), forecast)
        one.learn_one(x, label)
    for learner in (cut, one):
        same(learner.predict(X), whole.predict(X))


@pytest.mark.parametrize("mu", [1.0, 0.1, 1e-2])
def test_kors_as_listed_has_the_weights_of_the_printed_code(mu):
    X, y = smooth(120)
    coins = np.random.default_rng(4).random(len(X))
    kept, _ = naive.kors(naive.gaussian, X, coins, mu, 1.0, 0.5, listed=True)
    run = okl.run(okl.NystromAWV(okl.Gaussian(), mu=mu, sampler="kors_listed", seed=4), X, y)
    assert joined(run) == kept
    expected = naive.nystrom_forecasts(naive.gaussian, X, y, 1.0, kept, True)
    assert_close(run.predictions, expected.astype(float))
    as_in_the_paper = okl.run(okl.NystromAWV(okl.Gaussian(), mu=mu, seed=4), X, y)
    assert run.sizes[-1] < as_in_the_paper.sizes[-1]


@pytest.mark.parametrize(("kind", "probability"), [*zip(HARD, 3 * [1.0, 0.3, 0.05], strict=False)])
def test_uniform_sampling_keeps_what_its_coins_say(kind, probability):
    X, y = hard(kind, 100)
    kernel = okl.Laplacian(0.7)  # the dense version needs a kernel matrix that is well conditioned
    kept = okl.UniformSampling(kernel, probability=probability, seed=4).partial_fit(X)
    learner = okl.NystromAWV(kernel, lam=0.1, sampler=probability, seed=4)
    run = okl.run(learner, X, y)
    assert joined(run) == list(kept.indices_)
    k = naive.kernel_function(kernel)
    expected = naive.nystrom_forecasts(k, X, y, 0.1, list(kept.indices_), True)
    assert_close(run.predictions, expected.astype(float))
    assert (run.certificate.regret <= run.certificate.bound + 1e-9).all()
