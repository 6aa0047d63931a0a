"""A learner that tunes itself: scales, kernels, regularisation and forgetting chosen on the way."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from oklnumba.components.kernels import Gaussian, Linear
from oklnumba.components.scaling import LARGEST as LARGEST_INPUT
from oklnumba.components.scaling import moments
from oklnumba.core.checks import require_count, require_seed
from oklnumba.core.health import Part, of_members
from oklnumba.core.state import Reserving, State, padded, under
from oklnumba.core.threads import together
from oklnumba.hot.primitives.jit import DONE
from oklnumba.learners.base.learner import Learner
from oklnumba.learners.base.player import Trace, per_round
from oklnumba.learners.self_tuning.grid import ROWS, Group, LinearMap, Member, Setting, SpanMap
from oklnumba.learners.self_tuning.layers import Layers

RESTARTS = (32, 128, 512, 2048)
PAST = 0  # entry of the counts: rounds kept for the next restart
FAR = 4.0  # standard deviations from which on inputs count by their logarithm
SPREAD = 500  # inputs whose distances give the median
LEAST = 1e-12  # median distance: below, all inputs but a few are equal on the common scale
# Widths of Gaussian kernels, in medians, and the settings of their members; of the linear ones. How
# they were chosen is in docs/self_tuning.md.
KERNELS = (
    (0.25, (Setting(0.1, None),)),
    (0.5, (Setting(0.1, None), Setting(0.1, 250))),
    (1.0, (Setting(0.01, None), Setting(1.0, None), Setting(0.01, 125))),
    (2.0, (Setting(0.01, 250),)),
)
# After a change few atoms and a short memory are first: width, largest dictionary, settings.
QUICK = 1.0, 100, (Setting(0.1, 50),)
LINEAR = tuple(Setting(lam, half) for lam in (0.001, 1.0) for half in (None, 100, 50, 20, 6))
AGGRESSIVENESS = 0.1, 1.0  # C of PA-I, in units of the largest label
STEPS = 0.3, 3.0  # of gradient descent, linear, over the squared length of the input


def _distances(X: np.ndarray) -> np.ndarray:
    """Return those of all pairs of rows; scipy.spatial has them, and takes 0.2 s to load."""
    apart = (X[i + 1 :] - X[i] for i in range(len(X)))
    return np.sqrt(np.concatenate([np.einsum("ij,ij->i", one, one) for one in apart]))


def restarts(rounds: int) -> int:
    """Return how many restarts there are in so many rounds."""
    return sum(end <= rounds for end in RESTARTS)


class Scales(NamedTuple):
    """What a restart takes from the past: scales of the inputs, middles of the labels, a width."""

    mean: np.ndarray  # (d,), of the inputs
    scale: np.ndarray  # (d,); infinite before any data
    offsets: np.ndarray  # (K,), the middle of the labels; 0 for -1 and +1
    signs: np.ndarray  # (K,), 1 where all labels were -1 or +1, else 0
    median: float  # distance of two inputs; 0 before any data

    @classmethod
    def of(cls, X: np.ndarray, Y: np.ndarray) -> Scales:
        """Return those of past rounds."""
        if len(X) == 0:
            d = X.shape[1]
            zeros = np.zeros(Y.shape[1])
            return cls(np.zeros(d), np.full(d, np.inf), zeros, zeros, 0.0)
        mean, scale = moments(np.clip(X, -LARGEST_INPUT, LARGEST_INPUT))
        signs = np.isin(Y, (-1.0, 1.0)).all(axis=0)
        # Halved first: the sum of two labels may be too large.
        offsets = np.where(signs, 0.0, 0.5 * Y.min(axis=0) + 0.5 * Y.max(axis=0))
        scales = cls(mean, scale, offsets, signs.astype(float), 1.0)
        spread = np.linspace(0, len(X) - 1, min(len(X), SPREAD)).astype(int)
        distances = _distances(scales.transform(X[spread]))
        distances = distances[distances > 0.0]
        if len(distances) == 0:
            return scales
        return scales._replace(median=max(float(np.median(distances)), LEAST))

    def check(self, d: int, outputs: int) -> None:
        """Raise ValueError where these are no scales of inputs and labels of that width."""
        for name, n in (("mean", d), ("scale", d), ("offsets", outputs), ("signs", outputs)):
            values = getattr(self, name)
            good = isinstance(values, np.ndarray) and values.dtype == float
            good = good and values.shape == (n,) and not np.isnan(values).any()
            if not good or (np.isinf(values).any() and name != "scale"):
                raise ValueError(f"its {name!r} is no array of {n} numbers")
        good = isinstance(self.median, float) and 0.0 <= self.median < np.inf
        if not good or not (self.scale > 0.0).all() or not np.isin(self.signs, (0.0, 1.0)).all():
            raise ValueError("its scales cannot be")

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Return the inputs of the members."""
        with np.errstate(over="ignore"):
            Z = (X - self.mean) / self.scale
        far = np.abs(Z) > FAR
        size = np.minimum(np.abs(Z[far]), LARGEST_INPUT)
        Z[far] = np.copysign(FAR + np.log1p(size - FAR), Z[far])
        return Z


class Stage(State):
    """What is made anew at a restart: scales, members and their weights, for K labels a round.

    ``loss`` and ``losses`` are those of the aggregate and the members in the rounds played here,
    the replayed ones included; ``before`` and ``losses_before`` make them those of the rounds as
    they were.
    """

    _STATE = {
        "last": ("outputs",), "loss": ("outputs",), "losses": ("outputs", "experts"),
        "before": ("outputs",), "losses_before": ("outputs", "experts"),
    }  # fmt: skip

    def __init__(self, scales: Scales, budget: int, seed: list[int]):
        self.scales = scales
        d, outputs = len(scales.mean), len(scales.offsets)
        kernels = [(width, budget, settings, AGGRESSIVENESS) for width, settings in KERNELS]
        kernels.append((*QUICK, ()))
        self.groups, self.members = [], []
        for i, (width, most, settings, rates) in enumerate(kernels if scales.median else ()):
            sigma = width * scales.median
            points = SpanMap(Gaussian(sigma), d, min(most, budget), [*seed, i])
            self._add(Group(points, settings, scales.signs, rates), sigma)
        wide = scales.median and d > budget
        linear = SpanMap(Linear(), d, budget, [*seed, len(kernels)]) if wide else LinearMap(d)
        self._add(Group(linear, LINEAR, scales.signs, AGGRESSIVENESS, STEPS), None)
        self.members.append(Member("last label"))
        self.layers = Layers(len(self.members), outputs)
        self._make_state(outputs=outputs, experts=len(self.members))

    def _add(self, group: Group, sigma: float | None) -> None:
        self.groups.append(group)
        self.members += group.members(sigma)

    # ---- rounds ----

    def play(self, X: np.ndarray, Y: np.ndarray, learn: bool, trace: Trace) -> tuple[int, int]:
        """Play up to ROWS rounds; X is standardised, Y less its offsets; return (rounds, status).

        ``learn``: whether inputs may join dictionaries. trace : arrays of shape (n, K).
        """
        played, status = self._in_groups(len(X), lambda group: group.play(X, Y, learn))
        if status != DONE:
            return played, status
        F = self._forecasts(np.vstack([self._last, Y[:-1]]))
        self._last[:] = Y[-1]
        proofs = np.concatenate([group.certificates(len(X)) for group in self.groups])
        for k, y in enumerate(np.ascontiguousarray(Y.T)):
            played, status = self._aggregate(k, F[k], y, proofs[..., k], trace)
            if status != DONE:
                return played, status
        return len(X), DONE

    def choose(self, X: np.ndarray) -> tuple[int, int]:
        """Let the dictionaries choose among up to ROWS standardised inputs."""
        return self._in_groups(len(X), lambda group: group.choose(X))

    def _in_groups(self, n: int, call: Callable[[Group], tuple[int, int]]) -> tuple[int, int]:
        """Call for all groups, n rounds each; return (rounds, status) of the first in trouble."""
        found: list[tuple[int, int]] = [(0, DONE)] * len(self.groups)

        def store(i: int) -> None:
            found[i] = call(self.groups[i])

        together([partial(store, i) for i in range(len(self.groups))], n)
        return min((one for one in found if one[1] != DONE), default=found[0])

    def _forecasts(self, before: np.ndarray) -> np.ndarray:
        """Return the members' forecasts, which the groups have just made, (K, n, N).

        before : (n, K), the label before each round.
        """
        shown = [group.shown(len(before)) for group in self.groups]
        F = np.concatenate([*shown, before[None]])
        return np.ascontiguousarray(F.transpose(2, 1, 0))

    def _aggregate(
        self, k: int, F: np.ndarray, y: np.ndarray, proofs: np.ndarray, trace: Trace
    ) -> tuple[int, int]:
        """Aggregate the members' forecasts F, (n, N), of output k; proofs : (static, 3, n)."""
        forecasts, excess, (played, status) = self.layers.play(k, F, y)
        if status != DONE:
            return played, status
        trace.predictions[:, k] = forecasts + self.scales.offsets[k]
        # Running sums one by one, so that they do not depend on how the stream is cut.
        loss = np.add.accumulate(np.append(self._loss[k], (forecasts - y) ** 2))
        losses = np.vstack([self._losses[k], (F - y[:, None]) ** 2])
        self._loss[k], self._losses[k] = loss[-1], np.add.accumulate(losses)[-1]
        best = np.argmin(proofs[:, 1] + proofs[:, 2], axis=0)
        rounds = np.arange(len(y))
        trace.loss[:, k] = loss[1:] + self._before[k]
        trace.comparator[:, k] = proofs[best, 1, rounds]
        trace.bound[:, k] = proofs[best, 2, rounds] + excess + self._before[k]
        return played, status

    def forecast(self, X: np.ndarray, out: np.ndarray) -> None:
        """Write the forecasts of single rounds, X standardised, up to ROWS; out : (n, K)."""
        for group in self.groups:
            group.forecast(X)
        F = self._forecasts(np.broadcast_to(self._last, out.shape))
        for k in range(len(F)):
            column = np.empty(len(X))
            self.layers.forecast(k, F[k], column)
            out[:, k] = column + self.scales.offsets[k]

    def weights(self) -> np.ndarray:
        """Return the posterior of the members in the next round, (K, N)."""
        return np.stack([self.layers.posterior(k) for k in range(len(self._loss))])

    # ---- what came before, and saving ----

    def follow(self, other: Stage) -> None:
        """Take over the losses as they were in the rounds that were replayed here."""
        self._before[:] = other._loss + other._before - self._loss
        same = other._losses.shape == self._losses.shape
        # Before there were these members, the learner's own loss stands for theirs.
        were = other.played_losses() if same else (other._loss + other._before)[:, None]
        self._losses_before[:] = were - self._losses

    def played_losses(self) -> np.ndarray:
        """Return the members' losses in the rounds as they were, (K, N)."""
        return self._losses + self._losses_before

    def matrices(self) -> list[Part]:
        """Return what there is to say of all matrices."""
        scales = self.layers.scales()
        parts = [(f"group {g}", group.matrices(scales)) for g, group in enumerate(self.groups)]
        return of_members([*parts, ("layers", self.layers.matrices())])

    def parts(self) -> dict[str, State]:
        """Return everything with a state, by name."""
        parts = {
            f"group{g}_{name}": part
            for g, group in enumerate(self.groups)
            for name, part in group.parts().items()
        }
        return parts | {"layers": self.layers, "stage": self}


class SelfTuning(Learner):
    """A learner without anything to tune, for the squared loss: real labels, or -1 and +1.

    Members with Gaussian kernels of four widths and linear ones, of several lam and half-lives, by
    ridge regression and, where nothing is forgotten, AWV, passive-aggressive ones, linear gradient
    descent, and the last label are aggregated in two layers, with ridge regression on all forecasts
    between them: the whole has a guarantee, follows drift, is quick where there is hardly any
    noise, and is better than its best member where members know different things. Inputs are
    standardised, beyond 4 standard deviations they count by their logarithm; widths are multiples
    of the median distance of inputs, dictionaries are by KORS. All that is taken from the past
    only, anew after 32, 128, 512 and 2048 rounds, and the new members play the rounds so far again:
    nothing is known beforehand, no forecast looks ahead.

    About 40 us a round on one core for d <= 30; memory does not grow after round 2048.

    Parameters
    ----------
    budget : int >= 1
        Largest dictionary, one for each width (and for the linear members, if inputs are wider):
        time and memory are of order budget^2.
    seed : int
        Of the coins of KORS.

    Remarks
    -------
    Ours, of known parts: discounted AWV (Jacobsen and Cutkosky 2024), PA-I on the same coordinates
    (Crammer et al. 2006; hinge loss for labels -1 and +1, else absolute loss), gradient descent
    with normalised steps (logistic loss for labels -1 and +1, else squared loss), the aggregating
    algorithm without and with fixed share (Vovk 1998, Herbster and Warmuth 1998), labels of unknown
    size (Gerchinovitz and Yu 2014), dynamic model averaging (Raftery, Karny and Ettler 2010), with
    the variance of the noise learned, and ML-Poly (Gaillard, Stoltz and van Erven 2014), which also
    weighs two of these and the regressions on top. Ridge on forecasts is stacking (Breiman 1996),
    online: on what each adds to the last label, over the largest label, lam = 10, without
    forgetting and with a half-life of 500 rounds. A point that joins a dictionary adds its
    direction for the rounds after it, and counts as 0 in those before. Labels count from their
    middle, that of the past at the last restart; 0 for labels -1 and +1.

    The certificate is against the best penalised function of each member that forgets nothing, in
    its own space, at once: ``comparator`` and ``bound`` of a round are those of the member whose
    sum is least. The bound is the member's (pkawv Proposition 1), plus ``theory.experts_bound`` and
    ``theory.mlpoly_bound`` of the two layers, plus what the rounds before the last restart cost
    more than their replay.

    Examples
    --------
    >>> import numpy as np, oklnumba as okl
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 1000, (2000, 2))
    >>> y = 7.0 + np.sin(X[:, 0] / 100) * X[:, 1] + rng.normal(0, 50, 2000)
    >>> learner = okl.SelfTuning()
    >>> run = okl.run(learner, X, y)
    >>> bool(run.losses[1000:].mean() < 1.2 * 50**2)
    True
    >>> print(learner.leader)
    ridge, Gaussian kernel, sigma = 0.442, lam = 0.1, no forgetting
    """

    _STATE = {"counts": ("counts",), "inputs": (PAST, "d"), "labels": (PAST, "outputs")}
    _REMEDY = "scale the labels"
    _certified = True
    _several = True
    _prepares = True
    _run_rows = 2048
    _following: tuple | None = None  # a restart to come: for which rounds, its stage and status

    def __init__(self, budget: int = 300, *, seed: int = 0):
        self.budget = budget
        self.seed = seed

    @property
    def size(self) -> int:
        """Atoms in all dictionaries together; 0 before any data."""
        if self._width is None:
            return 0
        return sum(group.map.size for group in self._stage.groups)

    @property
    def members(self) -> list[Member]:
        """What each member is; sigma in the units of the standardised inputs.

        Linear ones only before round 32, and of all inputs zero: constants.
        """
        return list(self._stage_now().members)

    @property
    def weights(self) -> np.ndarray:
        """The posterior of the members in the next round, (N,), or (K, N) for K outputs.

        Those of dynamic model averaging: how likely each is to be the best one now. (The forecast
        has other weights, by the regressions also negative ones.)
        """
        return self._of_outputs(self._stage_now().weights())

    @property
    def leader(self) -> Member | list[Member]:
        """The member with the largest weight; a list of them for several outputs."""
        stage = self._stage_now()
        leaders = [stage.members[i] for i in stage.weights().argmax(axis=1)]
        return leaders if self._outputs > 1 else leaders[0]

    @property
    def member_losses(self) -> np.ndarray:
        """Squared losses of the members, summed, (N,), or (K, N) for K outputs.

        As they forecast at the time, cut to the largest label; in the first 32 rounds, before there
        were these members, the learner's own.
        """
        return self._of_outputs(self._stage_now().played_losses())

    def _stage_now(self) -> Stage:
        if not self._ready():
            raise ValueError("there are no members yet: play a round first")
        return self._stage

    def _of_outputs(self, values: np.ndarray) -> np.ndarray:
        return values if self._outputs > 1 else values[0]

    def _space(self) -> str:
        return "the span of one of its dictionaries or of the inputs"

    def _check_params(self) -> None:
        super()._check_params()
        require_count("budget", self.budget, 1)
        require_seed(self.seed)

    def _start(self, d: int) -> None:
        room = padded(int(self.budget) + 1)
        matrices = sum(3 + len(settings) for _, settings in KERNELS)
        try:  # before any round, not at the first restart
            np.empty((matrices, room, room))
        except (MemoryError, ValueError):
            raise MemoryError(
                f"SelfTuning(budget={self.budget}) keeps {matrices} matrices of {room} x {room} "
                "numbers, which do not fit in memory; lower the budget"
            ) from None
        self._make_state(counts=1, d=d, outputs=self._outputs)
        self._stage = self._new_stage(Scales.of(self._inputs, self._labels), 0)

    def _new_stage(self, scales: Scales, rounds: int) -> Stage:
        """Return the stage that begins after so many rounds."""
        return Stage(scales, int(self.budget), [int(self.seed), restarts(rounds)])

    def _to_restart(self, n: int) -> int:
        """Return how many of n rounds there are until the next restart."""
        return min([n, *(end - self._played for end in RESTARTS if end > self._played)])

    def _ahead(self, n: int) -> int:
        return super()._ahead(self._to_restart(n)) if self._played < RESTARTS[-1] else n

    def _prepare(self, X: np.ndarray, y: np.ndarray) -> None:
        if self._played >= RESTARTS[-1]:
            return
        first, end = int(self._counts[PAST]), self._played + len(X)
        total = first + len(X)
        self._reserve({PAST: total})
        self._inputs[first:total], self._labels[first:total] = X, y.reshape(len(X), self._outputs)
        if end not in RESTARTS:
            return
        rounds = end, X.tobytes(), y.tobytes()
        if self._following is None or self._following[0] != rounds:
            with Reserving(self):
                self._following = rounds, *self._replay(total)

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        Y = y.reshape(len(X), self._outputs)
        start = 0
        while start < len(X):
            stop = start + self._to_restart(min(ROWS, len(X) - start))
            self._play_block(X[start:stop], Y[start:stop], trace.rows(start, stop))
            start = stop

    def _play_block(self, X: np.ndarray, Y: np.ndarray, trace: Trace) -> None:
        """Play up to ROWS rounds, none of which a restart comes after but the last."""
        shape = Y.shape
        own = Trace(*(a if a is trace.sizes else a.reshape(shape) for a in trace))
        self._prepare(X, Y)
        stage, scales = self._stage, self._stage.scales
        points = scales.transform(X)
        played, status = stage.play(points, Y - scales.offsets, True, own)
        self._check(status, played)
        trace.sizes[:] = sum(group.sizes[: len(X)] for group in stage.groups)
        if self._played < RESTARTS[-1]:
            self._counts[PAST] += len(X)
        self._played += len(X)
        if self._played in RESTARTS:
            (_, following, replayed), self._following = self._following, None
            self._check(replayed, 0)
            self._restart(following)
            trace.sizes[-1] = self.size

    def _matrices(self) -> list[Part]:
        return self._stage.matrices()

    def _replay(self, n: int) -> tuple[Stage, int]:
        """Take scales and members anew from the first n rounds, and let these play them.

        Returns the stage and the status of its compiled loops.
        """
        X, Y = self._inputs[:n], self._labels[:n]
        stage = self._new_stage(Scales.of(X, Y), n)
        points, labels = stage.scales.transform(X), Y - stage.scales.offsets
        blocks = [slice(start, start + ROWS) for start in range(0, n, ROWS)]
        for block in blocks:
            status = stage.choose(points[block])[1]
            if status != DONE:
                return stage, status
        for block in blocks:
            part = points[block]
            trace = Trace(*(np.empty((len(part), self._outputs)) for _ in range(5)))
            status = stage.play(part, labels[block], False, trace)[1]
            if status != DONE:
                return stage, status
        return stage, DONE

    def _restart(self, stage: Stage) -> None:
        """Go on with a stage that has played all rounds so far again."""
        stage.follow(self._stage)
        self._stage = stage
        if self._played == RESTARTS[-1]:  # the past is no longer needed
            self._counts[PAST] = 0
            self._inputs, self._labels = self._inputs[:0].copy(), self._labels[:0].copy()
            self._rooms[PAST] = 0

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        forecasts = per_round(len(X), self._outputs)
        columns = forecasts.reshape(len(X), self._outputs)
        points = self._stage.scales.transform(X)
        for start in range(0, len(X), ROWS):
            part = points[start : start + ROWS]
            self._stage.forecast(part, columns[start : start + ROWS])
        return forecasts

    def _state(self) -> dict[str, Any]:
        scales = self._stage.scales
        state = super()._state() | {"restarts": restarts(self._played)} | scales._asdict()
        for part, holder in self._stage.parts().items():
            state |= {f"{part}/{name}": value for name, value in holder._state().items()}
        return state

    def _output_axes(self) -> dict[str, int]:
        axes = super()._output_axes() | {"offsets": 0, "signs": 0}
        for part, holder in self._stage.parts().items():
            axes |= {f"{part}/{name}": axis for name, axis in holder._output_axes().items()}
        return axes

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        scales = Scales(*(state[name] for name in Scales._fields))
        scales.check(self._inputs.shape[1], self._outputs)
        self._stage = self._new_stage(scales, self._played)
        for part, holder in self._stage.parts().items():
            holder._broken = self._broken or self._fault
            holder._restore(under(f"{part}/", state))
