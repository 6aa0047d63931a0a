"""The best functions of millions of rows by passes over their blocks, with an interval.

P(f) = sum l(f(x), y) + lam |f|^2 is minimised over the span of M landmarks: one pass for squared
loss, Newton's method for others. P - lam |f|^2 is convex, so with any f and v = grad P(f)

    P(f) - |v|^2 / (4 lam)  <=  min P over the whole RKHS  <=  P(f).

v = sum l'(f(x_i), y_i) k(x_i, .) + 2 lam f is an expansion on the rows and the landmarks. For a
kernel k(x, z) = E cos(w'(x - z)), |v|^2 = E |sum_i v_i e^(i w'x_i)|^2 is estimated by FREQUENCIES
values of w, at O(n d) each, and DEVIATIONS standard errors are added. For other kernels the
triangle inequality bounds it: |v| <= |its part in the span| + sum |l'| distance to the span.

A loss with a kink is replaced by its Moreau envelope l_mu(f) = l(p) + (f - p)^2 / (2 mu), whose
dual differs by mu / 2 l_mu'^2 from that of l. So the lower bound of l is as above with
l(p) + (f - p)^2 / mu in place of l, wide by the few rows near the kink alone.
"""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy

from oklnumba.components.kernels import Gaussian, Laplacian, Matern
from oklnumba.components.losses import Loss
from oklnumba.core import checks, cholesky, inputs
from oklnumba.core.guard import one_blas_thread, run_together
from oklnumba.hot.primitives.features import fourier_block
from oklnumba.hot.primitives.losses import LEVELS, QUANTILE, TUBE, loss_derivatives
from oklnumba.theory.comparators import GAP, Comparator, in_dual, second_derivatives
from oklnumba.theory.matrix import EPS, pivoted_cholesky

PARTS = 4  # of a block, one per thread: fixed, so that results do not depend on the cores
BLOCK_ROWS = 4096
CANDIDATES = 10_000  # random rows from which landmarks are chosen
FEWEST_LANDMARKS, MOST_LANDMARKS = 500, 2000  # tried if no number is given
FAR = 6.0  # times the wanted width: twice as many landmarks would not be enough either
JITTER = 1e-10  # share of the mean of k(x, x) added to the kernel matrix of the landmarks
FREQUENCIES, RAREST = 2048, 1e-12  # of |v|^2, and the share of the longest, which are not drawn
# Standard errors of the estimate of |v|^2, and how sure it then is a bound: more than a normal law
# asks for, since the values are skewed.
DEVIATIONS, CONFIDENCE = 4.5, 0.999
SMOOTHING = (1.0, 0.1, 0.02)  # mu, one after another
MOST_PASSES = 100  # of Newton's method
LONG = 60.0  # seconds: what takes longer is announced
SQUARED_PASSES, OTHER_PASSES = 1.5, 20.0  # all passes, in terms of the first
WARM_PASSES = 5.0  # of other losses, starting from the function of fewer landmarks

Block = tuple[np.ndarray, np.ndarray]
Source = Callable[[], Iterable[Any]]


def as_source(X: Any, name: str = "X") -> Source:
    """Return a function that plays a stream from its beginning: its pairs (X, y) with rows."""
    again = hasattr(X, "__iter__") and not isinstance(X, Iterator | str) and not hasattr(X, "shape")
    if isinstance(X, tuple | list):
        again = not any(hasattr(one, "shape") for one in X)  # else not of pairs
    what = (
        "a stream that can be played again: okl.stream(path, label=...) or a function that returns "
        f"an iterator of pairs (X, y); or {'arrays X and y' if name == 'X' else 'a pair (X, y)'}"
    )
    checks.require(callable(X) or again, name, X, what)
    return lambda: (pair for i, pair in inputs.number_pairs(X() if callable(X) else X))


class Replay:
    """A stream that is read again for each pass: checked blocks, all labels, some random rows."""

    def __init__(self, source: Source, classes: bool):
        self._source, self._classes = source, classes
        labels, rng = [], np.random.default_rng(0)
        self.candidates, keys = np.empty((0, 0)), np.empty(0)
        for X, y in self.blocks():
            labels.append(y.copy())  # the stream may fill one array again and again
            drawn = rng.random(len(y))
            keep = drawn < (keys.max() if len(keys) == CANDIDATES else 1.0)
            keys = np.append(keys, drawn[keep])
            kept = [self.candidates, X[keep]] if self.candidates.size else [X[keep]]
            order = np.argsort(keys, kind="stable")[:CANDIDATES]
            self.candidates, keys = np.concatenate(kept)[order], keys[order]
        if not labels:
            raise ValueError("the stream has no rows with a label")
        self.y = np.concatenate(labels)

    def blocks(self) -> Iterator[Block]:
        """Yield checked blocks of at most BLOCK_ROWS rows."""
        width, first = None, 0
        for X, y in self._source():
            try:
                X = inputs.as_rows(X, width)
                y = inputs.as_labels(y, X.shape[0], self._classes)
            except ValueError as error:
                raise ValueError(inputs.add_to_rows(first, str(error))) from error
            width, first = X.shape[1], first + len(y)
            for rows, part in inputs.cut_blocks(X, BLOCK_ROWS):
                yield np.array(part, order="C"), y[rows]

    def until(self, at: list[int]) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """Yield blocks up to the last of some rounds, cut at each, with the rows before them."""
        first = 0
        for X, y in self.blocks():
            cuts = [t - first for t in at if 0 < t - first < len(y)]
            for start, stop in pairwise([0, *cuts, len(y)]):
                if first + start < at[-1]:
                    yield first + start, X[start:stop], y[start:stop]
            first += len(y)
            if first >= at[-1]:
                return
        raise ValueError(
            f"the stream had {len(self.y)} rows and then {first}: it must be the same each time, "
            "such as a function that opens its file"
        )


class Smooth(NamedTuple):
    """Of a loss or its envelope at forecasts: value, derivatives, and value of the lower bound."""

    value: np.ndarray
    slope: np.ndarray
    curvature: np.ndarray
    below: np.ndarray


def smooth(loss: Loss, f: np.ndarray, y: np.ndarray, mu: float) -> Smooth:
    """Return the loss itself if it is smooth, else its envelope."""
    gap = y - f
    if loss.name == "hinge":
        apart, sign, low, high = 1.0 - y * f, y, 0.0, mu
    elif loss.name == "epsilon_insensitive":
        apart, sign, low, high = np.abs(gap) - TUBE, np.sign(gap), 0.0, mu
    elif in_dual(loss):  # absolute or quantile
        level = (loss.code - QUANTILE) / LEVELS if loss.code >= QUANTILE else 1.0
        low = (level - 1.0) * mu if loss.code >= QUANTILE else -mu
        apart, sign, high = gap, np.ones(len(y)), level * mu
    else:
        value, slope = loss.of_rounds(f, y), np.empty(len(y))
        loss_derivatives(loss.code, f, y, slope)
        return Smooth(value, slope, second_derivatives(loss, f, y, slope), value)
    shift, inside = sign * np.clip(apart, low, high), (low < apart) & (apart < high)
    at_kink = np.where(inside, 0.0, loss.of_rounds(f + shift, y))
    rest = shift**2 / mu
    return Smooth(at_kink + 0.5 * rest, -shift / mu, inside / mu, at_kink + rest)


def draw_frequencies(kernel: Any, d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return w, (d, D), and weights, (D,), with k(x, z) = sum weights cos(w'(x - z)) on average.

    A good span holds all but the tail of the frequencies, which few plain draws would reach. So the
    probability u of a frequency of that length or a longer one is drawn from the mixture of a
    uniform and a log-uniform distribution, of density q(u), and weighted by 1 / q(u). It is drawn
    in strata, which a standard error leaves out: it is rather too large. Kernels that are no
    function of x - z have D = 0.
    """
    inner, rng = getattr(kernel, "kernel", kernel), np.random.default_rng(seed)  # of a Metric
    if not isinstance(inner, Gaussian | Laplacian | Matern):
        return np.zeros((d, 0)), np.zeros(0)
    by_input = isinstance(inner, Laplacian) and inner.norm == 1  # each has a Cauchy distribution
    shape = (d if by_input else 1, FREQUENCIES)
    places = rng.permuted(np.tile(np.arange(FREQUENCIES), (shape[0], 1)), axis=1)  # strata
    v, share = (places + 1.0 - rng.random(shape)) / FREQUENCIES, 0.8 / shape[0]
    u = np.where(v <= share, RAREST ** (v / share), (v - share) / (1.0 - share))
    density = 1.0 - share + share * np.where(u > RAREST, 1.0 / (u * -np.log(RAREST)), 0.0)
    weights = 1.0 / density.prod(axis=0) / FREQUENCIES
    if by_input:
        w = rng.choice([-1.0, 1.0], shape) / np.tan(0.5 * np.pi * u)
    else:
        if isinstance(inner, Gaussian):
            square = 2.0 * scipy.special.gammainccinv(0.5 * d, u)
        else:  # Student's t of 2 nu degrees of freedom
            nu = float(getattr(inner, "nu", 0.5))
            beta = scipy.special.betaincinv(nu, 0.5 * d, u)
            square = 2.0 * nu * (1.0 - beta) / beta
        w = rng.standard_normal((d, FREQUENCIES))
        w *= np.sqrt(square) / np.linalg.norm(w, axis=0)
    return w / float(inner.sigma), weights


class Sums(NamedTuple):
    """Sums over the rows for k functions; those of the parts of a block are added up."""

    loss: np.ndarray  # (k,)
    value: np.ndarray  # (k,), of the loss or its envelope, and of the lower bound, as in Smooth
    below: np.ndarray
    slopes: np.ndarray  # (k, M): sum l' k(x, landmark)
    waves: np.ndarray  # (k, 2 D): sum l' (sin w'x, cos w'x)
    far: np.ndarray  # (k,): sum |l'| distance of k(x, .) to the span
    steep: np.ndarray  # (k,): sum |l'|
    hessian: np.ndarray  # (M, M), lower triangle: sum l'' z z', of one function


class Span:
    """The span of a kernel at landmarks: z(x) = L^-1 k(x), L L' = K + jitter; f = c.k = w.z."""

    def __init__(self, kernel: Any, landmarks: np.ndarray, rows: Replay, lam: float, loss: Loss):
        self.kernel, self.landmarks, self.lam, self.loss = kernel, landmarks, lam, loss
        self._rows, self._K = rows, kernel(landmarks)
        jitter = JITTER * (float(np.diag(self._K).mean()) or 1.0)
        shifted = self._K.copy()
        shifted[np.diag_indices_from(shifted)] += jitter
        self._L = np.tril(cholesky.factor_matrix(shifted))
        self._draw(0)
        self.found: list[np.ndarray] = []  # w of the functions that ``solve`` returned
        self._passes = SQUARED_PASSES if loss.name == "squared" else OTHER_PASSES
        self._timed = False

    def _announce(self, seconds: float) -> None:
        """Say how long all passes will take, from the seconds of the first, if over a minute."""
        squared, self._timed = self.loss.name == "squared", True
        seconds *= self._passes
        if seconds > LONG:
            about = "about" if squared else "some"
            size = f"{len(self._rows.y):,} rows, {len(self.landmarks)} landmarks"
            text = f"the best function in hindsight takes {about} {seconds / 60:.1f} min ({size})"
            print(text, file=sys.stderr, flush=True)

    def _draw(self, seed: int) -> None:
        drawn = draw_frequencies(self.kernel, self.landmarks.shape[1], seed)
        self._frequencies, self._weights = drawn
        self._waves_of_landmarks = self._write_waves(self.landmarks)  # (M, 2 D)

    def _write_waves(self, X: np.ndarray) -> np.ndarray:
        waves = np.empty((len(X), 2 * len(self._weights)))
        scaled = np.array(inputs.scale_columns(X, self.kernel._scales), order="C")
        fourier_block(scaled, self._frequencies, 1.0, waves)
        return waves

    def _add_rows(
        self, sums: Sums, C: np.ndarray, counts: np.ndarray, mu: float, curved: bool, bounds: bool,
        X: np.ndarray, y: np.ndarray, fitted: np.ndarray,
    ) -> None:  # fmt: skip
        """Add rows to the sums of functions C, (M, k), of which each has the first ``counts``.

        curved, bounds : whether to the Hessian of the last one, and to what intervals need.
        """
        K = self.kernel(X, self.landmarks)
        f = K @ C
        fitted[:] = f[:, -1]
        slopes, curvature = np.zeros(f.shape), np.zeros(len(y))
        for j, n in enumerate(counts):
            one = smooth(self.loss, np.ascontiguousarray(f[:n, j]), y[:n], mu)
            sums.loss[j] += self.loss.of_rounds(f[:n, j], y[:n]).sum()
            sums.value[j] += one.value.sum()
            sums.below[j] += one.below.sum()
            slopes[:n, j], curvature[:n] = one.slope, one.curvature
        sums.slopes[:] += slopes.T @ K
        sums.steep[:] += np.abs(slopes).sum(axis=0)
        if bounds and len(self._weights):
            sums.waves[:] += slopes.T @ self._write_waves(X)
        if curved or (bounds and not len(self._weights)):
            chosen = curvature > 0.0 if curved else np.ones(len(y), bool)
            Z = np.array(K[chosen], order="C")
            cholesky.solve_rows(self._L, Z, len(self._L))
            if curved:
                Z *= np.sqrt(curvature[chosen])[:, None]
                cholesky.add_squares(Z, sums.hessian)
            else:
                off = np.maximum(self.kernel.diag(X) - (Z * Z).sum(axis=1), 0.0)
                sums.far[:] += np.sqrt(off) @ np.abs(slopes)

    def play(
        self, C: np.ndarray, at: list[int], mu: float, *, curved: bool, bounds: bool,
        snapshots: Callable[[Sums], None] | None = None,
    ) -> tuple[Sums, np.ndarray]:  # fmt: skip
        """Pass over the rows once: sums of functions C, (M, k), each up to its round of ``at``.

        Or of one function up to the last of ``at``, with ``snapshots``, which is called with the
        sums so far at each of them. The forecasts are those of the last function. mu : of the
        smoothing; curved, bounds : as in ``_add_rows``.
        """
        k, m = C.shape[1], len(self.landmarks)
        shapes: list[Any] = [(k,), (k,), (k,), (k, m), (k, self._waves_of_landmarks.shape[1])]
        shapes += [(k,), (k,), (m, m) if curved else 0]
        parts = [Sums(*map(np.zeros, shapes)) for _ in range(PARTS)]
        fitted, ends, begin = np.empty(at[-1]), set(at), time.perf_counter()
        with one_blas_thread:
            for first, X, y in self._rows.until(at):
                if first and not self._timed:
                    passed = time.perf_counter() - begin
                    self._announce(len(self._rows.y) / first * passed)
                cuts = np.linspace(0, len(y), PARTS + 1).astype(int)
                left = np.array(at if k > 1 else at[-1:]) - first
                run_together([
                    partial(self._add_rows, sums, C, np.clip(left - a, 0, b - a), mu, curved,
                            bounds, X[a:b], y[a:b], fitted[first + a : first + b])
                    for sums, (a, b) in zip(parts, pairwise(cuts), strict=True)
                    if a < b
                ])  # fmt: skip
                if snapshots is not None and first + len(y) in ends:
                    snapshots(self._add_up(parts))
        return self._add_up(parts), fitted

    @staticmethod
    def _add_up(parts: list[Sums]) -> Sums:
        return Sums(*(sum(arrays[1:], arrays[0].copy()) for arrays in zip(*parts, strict=True)))

    def _to_atoms(self, w: np.ndarray) -> np.ndarray:
        return scipy.linalg.solve_triangular(self._L, w, lower=True, trans=1, check_finite=False)

    def _newton_step(self, sums: Sums, w: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the step of w, and by how much it should lower the objective."""
        H = sums.hessian
        H[np.diag_indices_from(H)] += 2.0 * self.lam
        slope = sums.slopes[0]
        gradient = scipy.linalg.solve_triangular(self._L, slope, lower=True) + 2.0 * self.lam * w
        step = -cholesky.solve(cholesky.factor_matrix(H), gradient)
        return step, -0.5 * float(step @ gradient)

    def _minimise(self, t: int, w: np.ndarray) -> np.ndarray:
        """Return w of the least smoothed objective of the first t rounds, starting from w or 0."""
        if not w.any() and t > CANDIDATES:
            w = self._minimise(t // 10, w)
        for mu in SMOOTHING[-1:] if w.any() or not in_dual(self.loss) else SMOOTHING:
            best, at_best, step = np.inf, w, np.zeros(len(w))
            for _ in range(MOST_PASSES):
                C = self._to_atoms(w)[:, None]
                sums = self.play(C, [t], mu, curved=True, bounds=False)[0]
                value = float(sums.value[0]) + self.lam * float(w @ w)
                if value > best:
                    step *= 0.5
                else:
                    best, at_best = value, w
                    step, gain = self._newton_step(sums, w)
                    if gain <= GAP * best:
                        break
                w = at_best + step
            w = at_best
        return w

    def solve(self, at: list[int], start: list[np.ndarray] | None = None) -> list[Comparator]:
        """Return the best function of the span after each of some rounds, with intervals.

        Predictions are those of the last. ``start`` : ``found`` of a span of the first landmarks.
        """
        m, found = len(self.landmarks), self.found
        if self.loss.name == "squared":
            zero = np.zeros(m)

            def solve(sums: Sums) -> None:
                found.append(self._newton_step(sums, zero)[0])

            self.play(zero[:, None], at, 1.0, curved=True, bounds=False, snapshots=solve)
        else:
            w, self._passes = np.zeros(m), WARM_PASSES if start else OTHER_PASSES
            for j, t in enumerate(at):
                if start is not None:
                    w = np.append(start[j], np.zeros(m - len(start[j])))
                found.append(w := self._minimise(t, w))
        return self.bound(at)

    def bound(self, at: list[int], seed: int = 0) -> list[Comparator]:
        """Return the functions that ``solve`` found, with intervals by frequencies of a seed."""
        self._draw(seed)
        C = self._to_atoms(np.column_stack(self.found))
        sums, fitted = self.play(C, at, SMOOTHING[-1], curved=False, bounds=True)
        return [self._bound(sums, j, c, fitted) for j, c in enumerate(C.T)]

    def _bound(self, sums: Sums, j: int, c: np.ndarray, fitted: np.ndarray) -> Comparator:
        """Return function j of some sums with its interval; ``fitted`` are its forecasts."""
        lam, Kc = self.lam, self._K @ c
        square, largest = max(float(c @ Kc), 0.0), float(np.abs(c) @ np.sqrt(np.diag(self._K)))
        if not len(self._weights):
            e = cholesky.solve(self._L, sums.slopes[j]) + 2.0 * lam * c
            v2 = (float(sums.far[j]) + float(np.sqrt(max(e @ self._K @ e, 0.0)))) ** 2
        else:
            wave = sums.waves[j] + 2.0 * lam * (c @ self._waves_of_landmarks)
            values = self._weights * (wave.reshape(2, -1) ** 2).sum(axis=0)
            v2 = values.sum() + DEVIATIONS * values.std() * np.sqrt(FREQUENCIES)
            rarest = RAREST * self.landmarks.shape[1]  # for each input, if they are drawn apart
            v2 += rarest * (float(sums.steep[j]) + 2.0 * lam * largest) ** 2  # |wave| at most
        rounding = EPS * sum(self.landmarks.shape) ** 0.5 * largest  # of f(x) = sum_m c_m k(x, l_m)
        loose = rounding * (float(sums.steep[j]) + lam * largest)  # |f|^2 = sum_m c_m f(l_m)
        value = float(sums.loss[j]) + lam * square
        loose += EPS * (64 + len(fitted) / BLOCK_ROWS) * value  # of NumPy's sums, and of blocks
        upper = value + loose
        lower = float(sums.below[j]) + lam * square - float(v2) / (4.0 * lam) - loose
        sure = CONFIDENCE if len(self._weights) else 1.0
        return Comparator(float(sums.loss[j]), square**0.5, fitted, max(lower, 0.0), upper, sure)


def solve_in_passes(
    kernel: Any, rows: Replay, lam: float, loss: Loss, landmarks: Any, at: list[int], width: float
) -> list[Comparator]:
    """Return the best functions after some rounds, of given landmarks, a number of them, or None.

    None: two or four times as many, until the interval is at most ``width`` of the objective, or
    MOST_LANDMARKS.
    """
    if landmarks is not None and not isinstance(landmarks, int):
        return Span(kernel, landmarks, rows, lam, loss).solve(at)
    most = min(landmarks or MOST_LANDMARKS, len(rows.candidates))
    with one_blas_thread:  # BLAS threads are slow on a busy machine
        pivots = pivoted_cholesky(kernel, rows.candidates, most=most, seed=0)[1]
    if not len(pivots):  # k(x, x) = 0 everywhere: any landmark spans the function 0
        pivots = np.zeros(1, int)
    m, start = len(pivots) if landmarks else min(FEWEST_LANDMARKS, len(pivots)), None
    while True:
        span = Span(kernel, rows.candidates[pivots[:m]], rows, lam, loss)
        found = span.solve(at, start)
        gap, wanted = found[-1].upper - found[-1].lower, width * found[-1].upper
        if m == len(pivots) or gap <= wanted:
            return found
        m, start = min((4 if gap > FAR * wanted else 2) * m, len(pivots)), span.found
