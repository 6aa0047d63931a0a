"""Gradient descent on a feature map of a full dictionary: NOGD and SkeGD."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from oklnumba.components.kernels import Kernel
from oklnumba.core.checks import require, require_count, require_positive, require_seed
from oklnumba.core.health import UNIT, Part, weights_part
from oklnumba.core.state import NoRoom, refuse_outside
from oklnumba.hot.nogd import FEATURES, LOSSES, STORED, mapped_gradient_rounds, mapped_step
from oklnumba.hot.primitives.jit import ATOMS, NEED_MAP, NOT_FINITE
from oklnumba.learners.base.expansion import Expansion
from oklnumba.learners.base.player import Trace

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

    _STATE = Expansion._STATE | {"W": (FEATURES, ATOMS)}

    _waiting = 0.0  # 1.0 where a new map waits for the next round with a loss

    def _check_params(self) -> None:
        super()._check_params()
        require_positive("eta", self.eta)
        require_count("budget", self.budget, 2)
        require_count("rank", self.rank, 1)
        domain = f"at most budget = {self.budget}"
        require(self.rank <= self.budget, "rank", self.rank, domain)

    def _start_mapped(self, d: int, period: float, **lengths: int) -> None:
        self._setting = float(self.eta), float(self.budget), period, self._waiting
        self._start_expansion(d, float(self.budget), counts=4, **lengths)
        self._reserve({FEATURES: 1})  # the room of a map, which then is not lacking in mid-round

    @property
    def size(self) -> int:
        """Atoms that are stored; 0 before any data."""
        return int(max(self._counts[[ATOMS, STORED]])) if self._width is not None else 0

    def _room(self, axis: int, least: int) -> int:
        return int(self.rank) if axis == FEATURES else super()._room(axis, least)

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        loss, out = self._loss_code, trace[:2]

        def rounds(first: int) -> tuple[int, int]:
            while True:
                first, status = mapped_gradient_rounds(
                    X, y, first, self._kernel, loss, self._setting, self._counts,
                    (self._atoms, self._a), self._W, self._work, out,
                )  # fmt: skip
                if status != NEED_MAP:
                    return first, status
                try:
                    first = self._make_map(X, y, first, trace)
                except NoRoom as full:
                    full.first = first
                    raise

        self._play_rounds(len(X), rounds)

    def _make_map(self, X: np.ndarray, y: np.ndarray, t: int, trace: Trace) -> int:
        """Make the map when row t has been forecast; return the next row to play."""
        raise NotImplementedError

    def _finite_kernel(self, atoms: np.ndarray, t: int) -> np.ndarray:
        """Return the kernel matrix of the atoms when row t - 1 completed them."""
        K = self.kernel(atoms)
        if not np.isfinite(K).all():
            self._check(NOT_FINITE, t - 1)
        return K

    def _matrices(self) -> list[Part]:
        W, a = self._used("W"), self._used("a")
        if not W.any():
            return [weights_part(a)]
        values = np.linalg.svd(W, compute_uv=False) ** 2  # rank^2 B; W of NOGD has them as rows
        K = self.kernel(self.atoms)
        norm = np.sqrt(max(a @ K @ a, 0.0))
        terms = float(np.abs(a) @ np.sqrt(K.diagonal()))  # of the sum that a forecast is
        return [
            weights_part(
                a,
                condition=float(values[0] / values[-1]) if values[-1] > 0.0 else np.inf,
                drift=self._map_drift(W, K),
                refused=max(self.rank - len(W), 0) / self.rank,
                error=UNIT * max(terms / norm, 1.0) if norm > 0.0 else UNIT,
            )._replace(matrix="the feature map")
        ]

    def _map_drift(self, W: np.ndarray, K: np.ndarray) -> float | None:
        """Return how far the map is from what it was made to be; None where that is not kept."""
        return None

    def _adopt_map(self, W: np.ndarray) -> None:
        """Take a map over the atoms; one without rows, of a kernel that is 0, has a row of 0."""
        r = max(len(W), 1)
        self._reserve({FEATURES: r})
        self._counts[FEATURES] = r
        self._used("W")[...] = W if len(W) else 0.0

    def _restore(self, state: dict[str, Any]) -> None:
        if not len(state["W"]):  # version 0.1.0 saved no map as (0, 0)
            state = state | {"W": np.zeros((0, len(state["a"])))}
        super()._restore(state)


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
        *,
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

    def _check_state(self) -> None:
        refuse_outside("counts", self._counts[[STORED]], 0, int(self._counts[ATOMS]))

    def _map_drift(self, W: np.ndarray, K: np.ndarray) -> float:
        v = np.random.default_rng(0).standard_normal(len(W))
        return float(np.linalg.norm(W @ (K @ (W.T @ v)) - v) / np.linalg.norm(v))  # W K W' = I

    def _make_map(self, X: np.ndarray, y: np.ndarray, t: int, trace: Trace) -> int:
        values, V = leading(self._finite_kernel(self.atoms, t), int(self.rank))
        projected = V @ (V.T @ self._used("a"))  # w = Lambda^{1/2} V' a
        self._adopt_map(V.T / np.sqrt(values)[:, None])  # z = Lambda^{-1/2} V' k
        self._used("a")[:] = projected
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

    # All atoms, their rows of S_p, the columns of S_m, Phi_pp and Phi_pm.
    _STATE = _Mapped._STATE | {
        "stored": ("d", STORED),
        "S": (STORED, "sketch"),
        "sampled": ("columns",),
        "pp": ("sketch", "sketch"),
        "pm": ("sketch", "columns"),
    }
    _INTEGERS = _Mapped._INTEGERS | {"sampled"}

    _waiting = 1.0

    def __init__(
        self,
        kernel: Kernel,
        *,
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

    def _check_params(self) -> None:
        super()._check_params()
        for name in ("sketch", "columns", "blocks"):
            require_count(name, getattr(self, name), 1)
        require_seed(self.seed)
        if self.period is not None:
            require_count("period", self.period, 1)
        domain = f"a multiple of blocks = {self.blocks}"
        require(self.sketch % self.blocks == 0, "sketch", self.sketch, domain)
        domain = f"at most budget = {self.budget}"
        require(self.columns <= self.budget, "columns", self.columns, domain)
        least = min(self.sketch, self.columns)
        domain = f"at most sketch and columns, that is {least}"
        require(self.rank <= least, "rank", self.rank, domain)

    def _start(self, d: int) -> None:
        self._start_mapped(
            d, np.inf if self.period is None else float(self.period),
            sketch=int(self.sketch), columns=int(self.columns),
        )  # fmt: skip
        self._sampled[:] = self._sample()
        self._reserve({STORED: 1})

    def _room(self, axis: int, least: int) -> int:
        if axis == STORED:  # of all that the first map takes; beyond that where there is a period
            more = 0 if self.period is None else max(least, 2 * self._rooms[axis])
            return max(int(self.budget), more)
        return super()._room(axis, least)

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

    def _first_sketches(self, t: int) -> tuple[np.ndarray, ...]:
        """Return the atoms of the full dictionary, their rows of S_p, Phi_pp and Phi_pm."""
        atoms = self.atoms
        K = self._finite_kernel(atoms, t)
        S = np.stack([self._sketch_row(i) for i in range(len(atoms))])
        return atoms, S, S.T @ K @ S, S.T @ K[:, self._sampled]

    def _more_sketches(self, x: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the same with one more atom, x : (1, d); the first two of that atom alone."""
        psi = self.kernel(self._used("stored").T, x)[:, 0]
        s, psi_s = self._sketch_row(int(self._counts[STORED])), self._used("S").T @ psi
        cross = np.outer(s, psi_s)
        pp = self._pp + (cross + cross.T + self.kernel.diag(x)[0] * np.outer(s, s))
        return x, s[None], pp, self._pm + np.outer(s, psi[self._sampled])

    def _make_map(self, X: np.ndarray, y: np.ndarray, t: int, trace: Trace) -> int:
        x, forecast = X[t : t + 1], trace.predictions[t]
        m, stored = int(self._counts[ATOMS]), int(self._counts[STORED])
        self._reserve({FEATURES: 1, STORED: max(m, stored + 1)})
        first = self._counts[FEATURES] == 0
        points, S, pp, pm = self._first_sketches(t) if first else self._more_sketches(x)
        values, V = leading(pp, int(self.rank))
        inverse = scipy.linalg.pinv(pm, rtol=NULL_SINGULAR)
        more = slice(stored, stored + len(S))  # all that may fail has been done
        self._stored[:, more], self._S[more], self._pp[...], self._pm[...] = points.T, S, pp, pm
        self._counts[STORED] = more.stop
        if first:  # the sampled atoms become those of f
            self._counts[ATOMS] = len(self._sampled)
            self._used("atoms")[...] = points[self._sampled].T
        self._adopt_map((inverse @ (V * np.sqrt(values))).T)  # Q' = Sigma^{1/2} V' pinv(Phi_pm)'
        W, a, row = self._used("W"), self._used("a"), self.kernel(x, self.atoms)[0]
        phi = W @ row
        square = phi @ phi
        a[:] = 0.0
        if square > NULL_EIGENVALUE * self.kernel.diag(x)[0]:
            a[:] = W.T @ phi * (forecast / square)  # w = f(x) phi / |phi|^2
        step = float(self.eta) * self._loss().derivative(forecast, y[t])
        mapped_step(self._a, self._W, row, step, len(row), len(W))
        self._counts[LOSSES] = 0
        trace.sizes[t] = self.size
        return t + 1

    def _restore(self, state: dict[str, Any]) -> None:
        if not len(state["pp"]):  # version 0.1.0 saved no sketches as (0, 0)
            state = state | {"pp": self._pp, "pm": self._pm}
        super()._restore(state)

    def _check_state(self) -> None:
        atoms, features, _, stored = (int(n) for n in self._counts)
        mapped = features > 0  # the sampled atoms are those of f then
        refuse_outside("sampled", self._sampled, 0, (stored if mapped else int(self.budget)) - 1)
        if mapped != (stored > 0) or (mapped and atoms != len(self._sampled)):
            raise ValueError(f"it has {stored} atoms aside and {atoms} in use, which cannot be")
