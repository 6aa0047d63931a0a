"""Gradient descent on a feature map of a full dictionary: NOGD and SkeGD."""

import numpy as np
import scipy

from oklnumba.components.features import leading_eigenvectors
from oklnumba.components.losses import loss_field
from oklnumba.core.checks import require
from oklnumba.core.health import NO_MATRIX, UNIT, Part
from oklnumba.core.params import KW_ONLY, count, positive, random_seed
from oklnumba.hot import nogd as loops
from oklnumba.hot.primitives.jit import ATOMS, NEED_MAP, NOT_FINITE, Out, enter
from oklnumba.learners.base.expansion import Expansion
from oklnumba.learners.base.learner import Trace

NULL_EIGENVALUE = 1e-10  # share of the largest below which an eigenvalue of a map is rounding
NULL_SINGULAR = 1.5e-8  # the same for singular values of a sketch, as in R's ginv


class _Mapped(Expansion[loops.MappedState, loops.Work]):
    """Base of NOGD and SkeGD: kernel gradient descent, then linear descent on a feature map.

    On features z = W k(x, atoms) the function w.z is the expansion with coefficients W' w. A
    subclass has ``rank``, the largest number of features, and ``_make_map(X, y, t, trace)``, which
    makes the map when row t has been forecast, and returns the next row to play.
    """

    _layout, _work_layout = loops.MappedState, loops.Work
    _waits = False  # whether the first map is made in the next round with a loss

    _: KW_ONLY
    loss: str = loss_field("hinge")
    eta: float = positive(0.1)
    budget: int = count(400, least=2)

    def _start_mapped(self, d: int, period: float, **lengths: int) -> None:
        p = self._hyper
        rules = loops.Rules(self._loss_code, p.eta, float(p.budget), period, self._waits)
        self._start_expansion(d, rules, float(p.budget), counts=4, **lengths)

    def _make_map(self, X: np.ndarray, y: np.ndarray, t: int, trace: Trace) -> int:
        raise NotImplementedError

    @property
    def size(self) -> int:
        """Atoms that are stored; 0 before any data."""
        return int(max(self._counts[[ATOMS, loops.STORED]]))

    def _choose_room(self, axis: int, least: int) -> int:
        return self._hyper.rank if axis == loops.FEATURES else super()._choose_room(axis, least)

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        loop, rules, out = enter(loops.mapped_gradient_rounds), self._rules, Out(*trace[:2])

        def rounds(first: int) -> tuple[int, int]:
            while True:
                arrays = self._state, self._work
                first, status = loop(X, y, first, self._kernel, rules, *arrays, out)
                if status != NEED_MAP:
                    return first, status
                first = self._make_map(X, y, first, trace)

        self._play_loop(len(X), rounds)

    def _set_map(self, W: np.ndarray) -> None:
        """Take over a map of the atoms; without rows (the kernel is 0) it becomes a row of 0."""
        r = max(len(W), 1)
        self._reserve({loops.FEATURES: r})
        self._counts[loops.FEATURES] = r
        self._state.W[:r, : int(self._counts[ATOMS])] = W if len(W) else 0.0

    @property
    def _map(self) -> np.ndarray:
        """W, (r, m), a view."""
        return self._state.W[: int(self._counts[loops.FEATURES]), : int(self._counts[ATOMS])]

    def _finite_kernel(self, atoms: np.ndarray, t: int) -> np.ndarray:
        """Return the kernel matrix of the atoms, the last of which is row t - 1."""
        K = self._hyper.kernel(atoms)
        if not np.isfinite(K).all():
            self._raise_status(NOT_FINITE, t - 1)
        return K

    def _matrices(self) -> list[Part]:
        W, alpha = self._map, self.coefficients
        if not W.any():
            return [NO_MATRIX]
        values = np.linalg.svd(W, compute_uv=False) ** 2
        condition = float(values[0] / values[-1]) if values[-1] > 0.0 else np.inf
        K = self._hyper.kernel(self.atoms)
        norm = np.sqrt(max(alpha @ K @ alpha, 0.0))
        terms = float(np.abs(alpha) @ np.sqrt(K.diagonal()))  # of the sum that a forecast is
        error = UNIT * max(terms / norm, 1.0) if norm > 0.0 else UNIT
        return [Part("the feature map", condition, error)]


class NOGD(_Mapped):
    """Nystrom online gradient descent (Lu, Hoi, Wang, Zhao and Liu 2016, Algorithm 2).

    Kernel gradient descent until the dictionary has ``budget`` atoms; then gradient descent on the
    leading ``rank`` Nystrom features of these atoms, from the projection of the function so far.
    O(B d) time per round, O(B rank) more where there is a loss; memory bounded by the budget B.

    Parameters
    ----------
    kernel, loss, eta
        As in KernelOGD.
    budget : int >= 2
        Atoms of the dictionary.
    rank : int >= 1
        Directions of the map, at most the budget.

    Remarks
    -------
    One step size for both phases, where the paper has two; eigenvalues of at most 1e-10 times the
    largest are dropped. w.z is stored as an expansion over the atoms: forecasts need no features.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> learner = okl.NOGD(okl.Gaussian(1.0), eta=0.5, budget=50, rank=20)
    >>> run = okl.run(learner, X, np.sign(X[:, 0] * X[:, 1]))
    >>> bool(run.mistake_rate < 0.1), learner.size
    (True, 50)
    """

    _: KW_ONLY
    rank: int = count(80, least=1)

    def _check_params(self) -> None:
        require(self.rank <= self.budget, "rank", self.rank, f"at most budget = {self.budget}")

    def _start(self, d: int) -> None:
        self._start_mapped(d, np.inf, sketch=0, columns=0)

    def _make_map(self, X: np.ndarray, y: np.ndarray, t: int, trace: Trace) -> int:
        K, rank = self._finite_kernel(self.atoms, t), self._hyper.rank
        values, V = leading_eigenvectors(K, rank, NULL_EIGENVALUE)
        projected = V @ (V.T @ self.coefficients)  # w = Lambda^{1/2} V' alpha
        self._set_map(V.T / np.sqrt(values)[:, None])  # z = Lambda^{-1/2} V' k
        self._state.alpha[: len(projected)] = projected
        return t


class SkeGD(_Mapped):
    """Sketched online gradient descent (Zhang and Liao 2019).

    Kernel gradient descent until the dictionary has ``budget`` atoms; then gradient descent on
    features phi(x) = Q' k(x, sampled atoms). With a count sketch S_p (budget x sketch) and a column
    sample S_m of the kernel matrix K, Phi_pp = S_p' K S_p ~ V_k Sigma_k V_k' and Phi_pm = S_p' K
    S_m, Q is pinv(Phi_pm) V_k Sigma_k^{1/2}. O(c d) time per round for c columns, O(c rank) more
    where there is a loss.

    Parameters
    ----------
    kernel, loss, eta
        As in NOGD.
    budget : int >= 2
        Atoms before the map is made.
    sketch : int >= 1
        Columns of the count sketch, a multiple of ``blocks``.
    columns : int >= 1
        Atoms sampled for the map, at most the budget.
    blocks : int >= 1
        Of the count sketch; each row has one entry +-1 / sqrt(blocks) in each.
    rank : int >= 1
        Features, at most sketch and columns.
    period : int >= 1, optional
        Rounds with a loss between two updates of the sketches, which store one more atom and
        rebuild the map; None: the map is made once, and memory is bounded by the budget.
    seed : int
        Of the sketch and the sample.

    Remarks
    -------
    As in the authors' code, a new map keeps only the forecast of the current point, w = f(x) phi(x)
    / |phi(x)|^2, and only the atoms of the update rounds enter the sketches. Their period of 0.3 n
    needs the number of rounds n; by default we make one. Our first map has rank k like later ones.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> learner = okl.SkeGD(okl.Gaussian(1.0), eta=0.5, budget=50, sketch=40, columns=20, rank=15)
    >>> run = okl.run(learner, X, np.sign(X[:, 0] + X[:, 1]))
    >>> bool(run.mistake_rate < 0.1), learner.size
    (True, 50)
    """

    _waits = True

    _: KW_ONLY
    sketch: int = count(300, least=1)
    columns: int = count(60, least=1)
    blocks: int = count(4, least=1)
    rank: int = count(40, least=1)
    period: int | None = count(None, least=1)
    seed: int = random_seed(0)

    def _check_params(self) -> None:
        sketch, columns, blocks, budget = self.sketch, self.columns, self.blocks, self.budget
        require(sketch % blocks == 0, "sketch", sketch, f"a multiple of blocks = {blocks}")
        require(columns <= budget, "columns", columns, f"at most budget = {budget}")
        least = min(sketch, columns)
        require(self.rank <= least, "rank", self.rank, f"at most sketch and columns, here {least}")

    def _start(self, d: int) -> None:
        p = self._hyper
        self._start_mapped(d, float(p.period or np.inf), sketch=p.sketch, columns=p.columns)
        # Sketch and sample depend on the seed only, not on the data.
        sample = np.random.default_rng([p.seed, 0]).choice(p.budget, p.columns, replace=False)
        self._state.sampled[:] = sample

    def _choose_room(self, axis: int, least: int) -> int:
        if axis == loops.STORED:
            return max(least, self._hyper.budget, 2 * self._rooms[axis])
        return super()._choose_room(axis, least)

    def _sketch_row(self, i: int) -> np.ndarray:
        """Return row i of the count sketch."""
        p = self._hyper
        rng = np.random.default_rng([p.seed, i + 1])
        row, width = np.zeros(p.sketch), p.sketch // p.blocks
        places = np.arange(p.blocks) * width + rng.integers(0, width, p.blocks)
        row[places] = rng.choice([-1.0, 1.0], p.blocks) / np.sqrt(p.blocks)
        return row

    def _first_sketches(self, t: int) -> tuple[np.ndarray, ...]:
        """Return the atoms of the full dictionary, their rows of S_p, Phi_pp and Phi_pm."""
        atoms = self.atoms
        K = self._finite_kernel(atoms, t)
        S = np.stack([self._sketch_row(i) for i in range(len(atoms))])
        return atoms, S, S.T @ K @ S, S.T @ K[:, self._state.sampled]

    def _more_sketches(self, x: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the same with one more atom, x : (1, d); the first two of that atom alone."""
        kernel, state, m = self._hyper.kernel, self._state, int(self._counts[loops.STORED])
        psi = kernel(state.stored[:, :m].T, x)[:, 0]
        s, psi_s = self._sketch_row(m), state.S[:m].T @ psi
        cross = np.outer(s, psi_s)
        pp = state.pp + (cross + cross.T + kernel.diag(x)[0] * np.outer(s, s))
        return x, s[None], pp, state.pm + np.outer(s, psi[state.sampled])

    def _make_map(self, X: np.ndarray, y: np.ndarray, t: int, trace: Trace) -> int:
        p, x, forecast = self._hyper, X[t : t + 1], trace.predictions[t]
        first, stored = self._counts[loops.FEATURES] == 0, int(self._counts[loops.STORED])
        points, S, pp, pm = self._first_sketches(t) if first else self._more_sketches(x)
        self._reserve({loops.STORED: stored + len(S)})
        state, new = self._state, slice(stored, stored + len(S))
        state.stored[:, new], state.S[new], state.pp[...], state.pm[...] = points.T, S, pp, pm
        self._counts[loops.STORED] = new.stop
        if first:  # the sampled atoms become those of f
            m = self._counts[ATOMS] = len(state.sampled)
            state.atoms[:, :m] = points[state.sampled].T
        values, V = leading_eigenvectors(pp, p.rank, NULL_EIGENVALUE)
        inverse = scipy.linalg.pinv(pm, rtol=NULL_SINGULAR)
        self._set_map((inverse @ (V * np.sqrt(values))).T)  # Q' = Sigma^{1/2} V' pinv(Phi_pm)'
        state, W, k = self._state, self._map, p.kernel(x, self.atoms)[0]
        alpha = state.alpha[: len(k)]
        phi = W @ k
        square = phi @ phi
        alpha[:] = 0.0
        if square > NULL_EIGENVALUE * p.kernel.diag(x)[0]:
            alpha[:] = W.T @ phi * (forecast / square)  # w = f(x) phi / |phi|^2
        step = p.eta * self._loss().derivative(forecast, y[t])
        loops.mapped_step(state.alpha, state.W, k, step, len(k), len(W))
        self._counts[loops.LOSSES] = 0
        trace.sizes[t] = self.size
        return t + 1
