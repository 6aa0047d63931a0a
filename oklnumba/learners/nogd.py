"""Gradient descent on a feature map of a full dictionary: NOGD and SkeGD."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from oklnumba.checks import require, require_count, require_positive
from oklnumba.hot.jit import NEED_MAP, NOT_FINITE
from oklnumba.hot.nogd import mapped_gradient_rounds, mapped_step
from oklnumba.kernels import Kernel
from oklnumba.learners.expansion import Expansion
from oklnumba.learners.learner import Trace

NULL_EIGENVALUE = 1e-10  # share of the largest below which an eigenvalue of a map is rounding
NULL_SINGULAR = 1.5e-8  # the same for singular values of a sketch, as in R's ginv


def leading(matrix: np.ndarray, rank: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the leading eigenvalues that are not null, largest first, and their vectors."""
    values, vectors = scipy.linalg.eigh(matrix)
    order = np.argsort(values)[::-1][:rank]
    order = order[values[order] > NULL_EIGENVALUE * max(values[order[0]], 0.0)]
    return values[order], vectors[:, order]


class _Mapped(Expansion):
    """What NOGD and SkeGD share: kernel gradient descent, then linear descent on a feature map.

    On features z = W k(x, atoms) the function w.z is the expansion with coefficients W' w.
    """

    _waiting = 0.0  # 1.0 where a new map waits for the next round with a loss

    def _start_mapped(self, d: int, period: float) -> None:
        require_positive("eta", self.eta)
        require_count("budget", self.budget, 2)
        require_count("rank", self.rank, 1)
        domain = f"at most budget = {self.budget}"
        require(self.rank <= self.budget, "rank", self.rank, domain)
        self._setting = float(self.eta), float(self.budget), period, self._waiting
        self._loss_code = self._loss().code
        self._W = np.zeros((0, 0))
        self._start_expansion(d, self.kernel, float(self.budget), ints=4)

    @property
    def size(self) -> int:
        """Atoms that are stored; 0 before any data."""
        return int(self._ints[3]) if self._width is not None else 0

    def _rounds(self, X: np.ndarray, y: np.ndarray, first: int, trace: Trace) -> tuple[int, int]:
        while True:
            first, status = mapped_gradient_rounds(
                X, y, first, self._kernel, self._loss_code, self._setting, self._ints,
                self._atoms, self._a, self._W, self._work, trace.predictions, trace.sizes,
            )  # fmt: skip
            if status != NEED_MAP:
                return first, status
            first = self._make_map(X, y, first, trace)

    def _make_map(self, X: np.ndarray, y: np.ndarray, t: int, trace: Trace) -> int:
        """Make the map when row t has been forecast; return the next row to play."""
        raise NotImplementedError

    def _finite_kernel(self, atoms: np.ndarray, t: int) -> np.ndarray:
        """Return the kernel matrix of the atoms when row t - 1 completed them."""
        K = self.kernel(atoms)
        if not np.isfinite(K).all():
            self._check(NOT_FINITE, t - 1, "scale the inputs")
        return K

    def _adopt_map(self, W: np.ndarray) -> None:
        """Take a map over the first atoms; rows as wide as the buffers."""
        self._W = np.zeros((len(W), len(self._a)))
        self._W[:, : W.shape[1]] = W

    def _state(self) -> dict[str, Any]:
        return super()._state() | {"W": self._W[:, : int(self._ints[0]) if len(self._W) else 0]}

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        if len(state["W"]):
            self._adopt_map(state["W"])


class NOGD(_Mapped):
    """Nystrom online gradient descent (Lu, Hoi, Wang, Zhao and Liu 2016, Alg. 2).

    Kernel gradient descent until the dictionary has ``budget`` atoms; then gradient descent on the
    leading ``rank`` Nystrom features of these atoms, from the projection of the function so far.

    O(B d) time a round, O(B rank) more where there is a loss; memory bounded by the budget B.

    Parameters
    ----------
    kernel : Kernel
    loss : str
        A loss of losses.py.
    eta : float > 0
        Step size, of both phases.
    budget : int >= 2
        Atoms of the dictionary.
    rank : int >= 1
        Directions kept, at most the budget.

    Remarks
    -------
    One step size for both phases, where the paper has two; eigenvalues of at most 1e-10 times the
    largest are dropped. The linear function w.z is kept as an expansion over the atoms, so that a
    forecast costs no projection.

    Examples
    --------
    >>> import numpy as np, oklnumba as okl
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> learner = okl.NOGD(okl.Gaussian(1.0), eta=0.5, budget=50, rank=20)
    >>> run = okl.run(learner, X, np.sign(X[:, 0] * X[:, 1]))
    >>> bool(run.mistake_rate < 0.1), learner.size
    (True, 50)
    """

    def __init__(
        self,
        kernel: Kernel,
        loss: str = "hinge",
        eta: float = 0.1,
        budget: int = 400,
        rank: int = 80,
    ):
        self.kernel = kernel
        self.loss = loss
        self.eta = eta
        self.budget = budget
        self.rank = rank

    def _start(self, d: int) -> None:
        self._start_mapped(d, np.inf)

    def _make_map(self, X: np.ndarray, y: np.ndarray, t: int, trace: Trace) -> int:
        B = int(self._ints[0])
        values, V = leading(self._finite_kernel(self.atoms, t), int(self.rank))
        self._a[:B] = V @ (V.T @ self._a[:B])  # w = Lambda^{1/2} V' a
        self._adopt_map(V.T / np.sqrt(values)[:, None])
        self._ints[1] = 1
        return t


class SkeGD(_Mapped):
    """Sketched online gradient descent (Zhang and Liao 2019).

    Kernel gradient descent until the dictionary has ``budget`` atoms; then gradient descent on
    features phi(x) = Q' k(x, sampled atoms), where Q comes from a count sketch S_p (budget x
    sketch) and a column sample S_m of the kernel matrix K: with Phi_pp = S_p' K S_p ~ V_k Sigma_k
    V_k' and Phi_pm = S_p' K S_m, Q = pinv(Phi_pm) V_k Sigma_k^{1/2}.

    O(c d) time a round for c columns, O(c rank) more where there is a loss.

    Parameters
    ----------
    kernel : Kernel
    loss : str
        A loss of losses.py.
    eta : float > 0
        Step size.
    budget : int >= 2
        Atoms before the map is made.
    sketch : int >= 1
        Columns of the count sketch, a multiple of ``blocks``.
    columns : int >= 1
        Atoms sampled for the map, at most the budget.
    blocks : int >= 1
        Blocks of the count sketch; each row has one entry +-1 / sqrt(blocks) in each.
    rank : int >= 1
        Features, at most sketch and columns.
    period : int >= 1, optional
        Rounds with a loss between two updates of the sketches, each of which stores one more atom
        and rebuilds the map; None: the map is made once, and memory is bounded by the budget.
    seed : int
        Of the sketch and the sample.

    Remarks
    -------
    As in the code that the authors passed on: a new map keeps the forecast of the current point and
    nothing else, w = f(x) phi(x) / |phi(x)|^2; only the atoms of the update rounds enter the
    sketches. Their period of 0.3 n needs the number of rounds n: the default makes one map. Our
    first map is cut to rank k like the later ones.

    Examples
    --------
    >>> import numpy as np, oklnumba as okl
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> learner = okl.SkeGD(okl.Gaussian(1.0), eta=0.5, budget=50, sketch=40, columns=20, rank=15)
    >>> run = okl.run(learner, X, np.sign(X[:, 0] + X[:, 1]))
    >>> bool(run.mistake_rate < 0.1), learner.size
    (True, 50)
    """

    _waiting = 1.0

    def __init__(
        self,
        kernel: Kernel,
        loss: str = "hinge",
        eta: float = 0.1,
        budget: int = 400,
        sketch: int = 300,
        columns: int = 60,
        blocks: int = 4,
        rank: int = 40,
        period: int | None = None,
        seed: int = 0,
    ):
        self.kernel = kernel
        self.loss = loss
        self.eta = eta
        self.budget = budget
        self.sketch = sketch
        self.columns = columns
        self.blocks = blocks
        self.rank = rank
        self.period = period
        self.seed = seed

    def _start(self, d: int) -> None:
        require_count("budget", self.budget, 2)
        for name in ("sketch", "columns", "blocks", "rank"):
            require_count(name, getattr(self, name), 1)
        require_count("seed", self.seed, 0)
        if self.period is not None:
            require_count("period", self.period, 1)
        domain = f"a multiple of blocks = {self.blocks}"
        require(self.sketch % self.blocks == 0, "sketch", self.sketch, domain)
        domain = f"at most budget = {self.budget}"
        require(self.columns <= self.budget, "columns", self.columns, domain)
        least = min(self.sketch, self.columns)
        domain = f"at most sketch and columns, that is {least}"
        require(self.rank <= least, "rank", self.rank, domain)
        self._start_mapped(d, np.inf if self.period is None else float(self.period))
        self._stored = np.zeros((d, 0))  # all atoms; those of the function are the sampled ones
        self._S = np.zeros((0, int(self.sketch)))
        self._sampled = self._sample()
        self._pp = np.zeros((0, 0))
        self._pm = np.zeros((0, 0))

    def _sketch_row(self, i: int) -> np.ndarray:
        """Return row i of the count sketch; it depends on the seed and i only."""
        rng = np.random.default_rng([int(self.seed), i + 1])
        blocks, width = int(self.blocks), int(self.sketch // self.blocks)
        row = np.zeros(int(self.sketch))
        places = np.arange(blocks) * width + rng.integers(0, width, blocks)
        row[places] = rng.choice([-1.0, 1.0], blocks) / np.sqrt(blocks)
        return row

    def _sample(self) -> np.ndarray:
        """Return the sampled columns; they depend on the seed only."""
        rng = np.random.default_rng([int(self.seed), 0])
        return rng.choice(int(self.budget), int(self.columns), replace=False)

    def _make_map(self, X: np.ndarray, y: np.ndarray, t: int, trace: Trace) -> int:
        x, forecast = X[t : t + 1], trace.predictions[t]
        c = int(self.columns)
        if self._ints[1] == 0:
            atoms = self.atoms
            K = self._finite_kernel(atoms, t)
            self._S = np.array([self._sketch_row(i) for i in range(len(atoms))])
            self._pp = self._S.T @ K @ self._S
            self._pm = self._S.T @ K[:, self._sampled]
            self._stored = np.ascontiguousarray(atoms.T)
            self._atoms[:, :c] = self._stored[:, self._sampled]
            self._ints[0], self._ints[1] = c, 1
        else:
            psi = self.kernel(self._stored.T, x)[:, 0]
            s, psi_s = self._sketch_row(self._stored.shape[1]), self._S.T @ psi
            cross = np.outer(s, psi_s)
            self._pm += np.outer(s, psi[self._sampled])
            self._pp += cross + cross.T + self.kernel.diag(x)[0] * np.outer(s, s)
            self._stored = np.concatenate([self._stored, x.T], axis=1)
            self._S = np.concatenate([self._S, s[None]])
            self._ints[3] += 1
        values, V = leading(self._pp, int(self.rank))
        inverse = scipy.linalg.pinv(self._pm, rtol=NULL_SINGULAR)
        self._adopt_map((inverse @ (V * np.sqrt(values))).T)
        row = np.zeros(len(self._a))
        row[:c] = self.kernel(x, self._atoms[:, :c].T)[0]
        phi = self._W @ row
        square = phi @ phi
        self._a[:] = 0.0
        if square > NULL_EIGENVALUE * self.kernel.diag(x)[0]:
            self._a[:] = self._W.T @ phi * (forecast / square)
        step = float(self.eta) * self._loss().derivative(forecast, y[t])
        mapped_step(self._a, self._W, row, step, c)
        self._ints[2] = 0
        trace.sizes[t] = self._ints[3]
        return t + 1

    def _state(self) -> dict[str, Any]:
        return super()._state() | {
            "stored": self._stored,
            "S": self._S,
            "sampled": self._sampled,
            "pp": self._pp,
            "pm": self._pm,
        }

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._stored, self._S, self._sampled = state["stored"], state["S"], state["sampled"]
        self._pp, self._pm = state["pp"], state["pm"]
