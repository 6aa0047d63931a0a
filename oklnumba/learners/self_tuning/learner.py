"""A learner that tunes itself: scales, kernels, regularisation and forgetting chosen on the way."""

from __future__ import annotations

from dataclasses import KW_ONLY
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from oklnumba.components.kernels import Gaussian, Laplacian, Linear
from oklnumba.components.scaling import FAR as FAR_INPUT
from oklnumba.components.scaling import LARGEST as LARGEST_INPUT
from oklnumba.components.scaling import measure_range, moments, replace_outliers
from oklnumba.core.cholesky import find_blas
from oklnumba.core.guard import run_together
from oklnumba.core.health import Part, name_members
from oklnumba.core.params import count, random_seed
from oklnumba.core.state import State
from oklnumba.core.steps import Steps, finish
from oklnumba.hot import self_tuning as hot
from oklnumba.learners.base.learner import Learner, Trace, empty_per_round
from oklnumba.learners.self_tuning.grid import (
    ROWS,
    Group,
    Member,
    Metric,
    Setting,
    SpanMap,
    Trouble,
    make_room,
)
from oklnumba.learners.self_tuning.layers import Layers
from oklnumba.learners.self_tuning.scores import cut_columns, find_scores, measure_scores
from oklnumba.learners.self_tuning.tree import PASSES, grow_tree, measure_metric, median_distance

RESTARTS = (32, 128, 512, 2048, 8192, 32_768)
# New members are made of all rounds before a restart but the last sixteenth, in which single rounds
# do the work: so many steps after each, by restart, of so many rows.
LAST, WORK, WORK_ROWS = 16, (16, 8, 5, 3, 2, 2), 18
LARGEST_PAST = 2**26  # bytes of inputs and labels; restarts after round 2048 need no more
SPAN = 1024  # rounds; the ranges of labels are of the last two spans
PAST = 0  # entry of the counts: rounds kept for the next restart
# Labels further than LABEL_FAR median deviations from the median are outliers: of the last LONG and
# of the last SHORT labels, measured every EVERY rounds.
LABEL_FAR, LONG, SHORT, EVERY = 20.0, 1024, 16, 8
LARGEST_LABEL = 1e70  # fourth powers of larger ones overflow
AGGRESSIVENESS = 0.1, 1.0  # C of PA-I, in units of the largest label
# Widths of Gaussian kernels, in medians, the most atoms, and the settings of their members: ridge
# and PA-I. After a change few atoms and a short memory are ahead. Then the settings of the linear
# members. docs/self_tuning.md tells how they were chosen.
KERNELS = (
    (0.5, 200, (Setting(0.1, 250),), AGGRESSIVENESS),
    (1.0, np.inf, (Setting(0.01, None), Setting(0.01, 125)), AGGRESSIVENESS),
    (2.0, 200, (Setting(0.01, 250),), AGGRESSIVENESS),
    (1.0, 100, (Setting(0.1, 50),), ()),
)
LINEAR = tuple(Setting(lam, half) for lam in (0.001, 1.0) for half in (None, 100, 50, 20, 6))
STEPS = 0.3, 3.0  # of gradient descent, linear, over the squared length of the input
# Trees: the kernel whose gradients give the metric, rounds for each leaf, the most atoms there, and
# whether inputs are normal scores; the settings of their members.
TREES = (
    ("Gaussian", 512, np.inf, False), ("Laplacian", 256, np.inf, True), ("Laplacian", 32, 64, False)
)  # fmt: skip
IN_LEAVES = Setting(0.03, None), Setting(0.3, None)


def keep_within(Y: np.ndarray, low: np.ndarray, middle: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the labels, the middle in place of those that are not between low and high."""
    return np.where((Y < low) | (Y > high), middle, Y)


class Scales(NamedTuple):
    """What a restart takes from the past: scales of the inputs, middles of the labels, a width."""

    mean: np.ndarray  # (d,), of the inputs
    scale: np.ndarray  # (d,); infinite before any data
    offsets: np.ndarray  # (K,), the middle of the labels but outliers; 0 for -1 and +1
    signs: np.ndarray  # (K,), 1 where all labels were -1 or +1, else 0
    median: float = 0.0  # distance of two inputs; 0 before any data
    metrics: np.ndarray = np.empty((0, 0))  # (M, d), in the order of PASSES
    # Of each tree: the median distance of its inputs, scaled; leaves; one tree after the other.
    widths: np.ndarray = np.empty(0)
    leaves: np.ndarray = np.empty(0, dtype=np.int64)
    columns: np.ndarray = np.empty(0, dtype=np.int64)
    thresholds: np.ndarray = np.empty(0)
    # Of the normal scores of the inputs.
    knots: np.ndarray = np.empty((0, 0))  # (d, 33)
    scores: np.ndarray = np.empty((0, 0))  # (d, 33)

    @classmethod
    def measure(cls, X: np.ndarray, Y: np.ndarray, n: int) -> Steps[Scales]:
        """Return the scales of past rounds; the trees grow as deep as ``n`` rounds allow."""
        if len(X) == 0:
            d, zeros = X.shape[1], np.zeros(Y.shape[1])
            return cls(np.zeros(d), np.full(d, np.inf), zeros, zeros)
        mean, scale = np.empty((2, X.shape[1]))
        for some in cut_columns(X):
            within = X[:, some].clip(-LARGEST_INPUT, LARGEST_INPUT)
            usual = replace_outliers(within, *measure_range(within.T, FAR_INPUT))
            mean[some], scale[some] = moments(usual)
            yield
        signs = np.isin(Y, (-1.0, 1.0)).all(axis=0)
        usual = replace_outliers(Y, *measure_range(Y.T, LABEL_FAR))
        # Halved first: the sum of two labels may be too large.
        offsets = np.where(signs, 0.0, 0.5 * usual.min(axis=0) + 0.5 * usual.max(axis=0))
        scales = cls(mean, scale, offsets, signs.astype(float))
        yield
        Z = scales.transform(X)
        yield
        median = median_distance(Z, 1.0)
        if median == 0.0:
            return scales
        yield
        knots, scores, normal = yield from measure_scores(Z)
        views, metrics, trees, widths = (Z, normal), {}, [], []
        for name in PASSES:
            metrics[name] = yield from measure_metric(name, Z, Y, n)
        for name, leaf, _, scored in TREES:
            trees.append((yield from grow_tree(views[scored], metrics[name], leaf, n)))
            yield
            widths.append(median_distance(views[scored], metrics[name], norm=1))
        _, columns, thresholds = zip(*trees, strict=True)
        return cls(
            *scales[:4], median, np.stack(list(metrics.values())), np.array(widths),
            np.array([tree.leaves for tree in trees]),
            np.concatenate(columns), np.concatenate(thresholds), knots, scores,
        )  # fmt: skip

    def trees(self) -> list[Metric]:
        """Return each tree with its metric."""
        if len(self.leaves) == 0:
            return []
        metrics = dict(zip(PASSES, self.metrics, strict=True))
        ends = np.cumsum(self.leaves - 1)[:-1]
        parts = TREES, np.split(self.columns, ends), np.split(self.thresholds, ends)
        return [Metric(metrics[name], *split) for (name, *_), *split in zip(*parts, strict=True)]

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Return the inputs of the members; columns that came later wait for the next restart."""
        Z = np.empty((len(X), len(self.mean)))
        hot.write_standardised(X, self.mean, self.scale, Z)
        return Z


class Stage(State):
    """What each restart makes: scales, members and their weights, for K labels a round.

    ``loss`` and ``losses`` are the sums of the aggregate and of the members in the rounds that this
    stage has played, replayed rounds included. ``before`` and ``losses_before`` correct them to
    the losses of the forecasts that were given at the time. ``best`` is the certified member with
    the least comparator.
    """

    _STATE = {
        "last": ("outputs",), "loss": ("outputs",), "losses": ("outputs", "experts"),
        "before": ("outputs",), "losses_before": ("outputs", "experts"), "best": ("outputs",),
    }  # fmt: skip
    _INTEGERS = frozenset({"best"})

    def __init__(self, scales: Scales):
        self.scales, self.replayed = scales, 0

    def make_members(self, budget: int, rounds: float, seed: list[int]) -> Steps[None]:
        """Make the members; ``rounds`` : as many as they can have played at the next restart."""
        scales = self.scales
        d, outputs = len(scales.mean), len(scales.offsets)
        plain, wide = Metric.plain(d), d > budget
        budget = int(min(budget, rounds))
        self.groups, self.members = [], []
        self._scored = []  # whether groups take normal scores
        for i, (width, most, settings, rates) in enumerate(KERNELS if scales.median else ()):
            sigma = width * scales.median
            points = SpanMap(Gaussian(sigma), d, int(min(most, budget)), [*seed, i])
            group = Group(points, plain, settings, scales.signs, rates)
            self._add(group, Member("", sigma))
            yield
        for i, metric in enumerate(scales.trees()):
            name, _, most, scored = TREES[i]
            kernel, own = Laplacian(float(scales.widths[i]), norm=1), [*seed, len(KERNELS) + 1 + i]
            points = SpanMap(kernel, d, int(min(most, budget)), own, metric.leaves)
            like = Member("", kernel.sigma, metric=name, scores=scored)
            self._add(Group(points, metric, IN_LEAVES, scales.signs), like)
            yield
        linear = SpanMap(Linear(), d, budget if wide else 0, [*seed, len(KERNELS)])
        group = Group(linear, plain, LINEAR, scales.signs, AGGRESSIVENESS, STEPS)
        self._add(group, Member(""))
        self.members.append(Member("last label"))
        self._share_room(outputs)
        self.layers = Layers(len(self.members), outputs)
        self._make_state(outputs=outputs, experts=len(self.members))

    def _add(self, group: Group, like: Member) -> None:
        self.groups.append(group)
        self.members += group.describe_members(like)
        self._scored.append(like.scores)

    def _share_room(self, outputs: int) -> None:
        """Make the room that all groups write into, and find the rows of members and proofs."""
        forecasts = np.cumsum([0, *(group.forecasters for group in self.groups)])
        proofs = np.cumsum([0, *(len(group.settings) for group in self.groups)])
        # Behind the forecasts of the groups is that of the last label.
        self._found, self._proofs = make_room(forecasts[-1] + 1, proofs[-1], outputs)
        self.sizes = np.zeros((len(self.groups), ROWS), dtype=np.int64)
        self._rows, self._static = [], []  # of members, and certified ones
        for i, group in enumerate(self.groups):
            group.use_room(
                self._found[forecasts[i] : forecasts[i + 1]],
                self._proofs[proofs[i] : proofs[i + 1]], self.sizes[i],
            )  # fmt: skip
            self._rows += [forecasts[i] + row for row in group.members]
            self._static += [proofs[i] + row for row in group.static]
        self._rows, self._static = np.array([*self._rows, -1]), np.array(self._static)

    # ---- rounds ----

    def play(
        self, X: np.ndarray, Y: np.ndarray, learn: bool, trace: Trace, known: bool = False
    ) -> None:
        """Play up to ROWS rounds; Y is less its offsets.

        learn : whether inputs may join dictionaries. trace : arrays of shape (n, K). known :
        whether ``forecast`` has just had the only round.
        """
        n, views = len(X), self._views(X, known)
        run_together([partial(group.play, Z, Y, learn, known) for group, Z in views], n)
        self._found[-1, 0] = self._last
        self._found[-1, 1:n] = Y[:-1]
        F = self._forecasts(n)
        self._last[:] = Y[-1]
        proofs = self._proofs[self._static, :, :n]
        sums = self._loss, self._losses, self._before, self._best
        out = trace.predictions, *trace[2:6]
        for k, offset in enumerate(self.scales.offsets.tolist()):
            self.layers.play(k, F[k], Y, offset, proofs, sums, out)

    def replay(self, X: np.ndarray, Y: np.ndarray, learn: bool, step: int) -> Steps[None]:
        """Play the rounds of the past X, Y that were not replayed yet, and end spans between."""
        while self.replayed < len(X):
            start = self.replayed
            if start > 0 and start % SPAN == 0:
                self.end_span()
            # Few at first between single rounds: a leaf's factors get memory in its first one.
            most = start + (step if step == ROWS else min(step, 2 + start // 16))
            rows = slice(start, min(most, start // SPAN * SPAN + SPAN, len(X)))
            labels = Y[rows] - self.scales.offsets
            trace = Trace(*np.empty((6, *labels.shape)))
            self.play(X[rows], labels, learn, trace)
            self.replayed = rows.stop
            yield

    def end_span(self) -> None:
        """Forget what labels no longer fill: the range of the layers, and the unit of PA-I's C."""
        recent = self.layers.end_span(self.scales.signs)
        for group in self.groups:
            group.shrink_units(recent)

    def choose(self, X: np.ndarray) -> None:
        """Let the dictionaries choose among up to ROWS inputs."""
        run_together([partial(group.choose, Z) for group, Z in self._views(X)], len(X))

    def _views(self, X: np.ndarray, known: bool = False) -> list[tuple[Group, np.ndarray]]:
        """Return each group and what it takes of X: standardised inputs, or their normal scores.

        known : whether the last call was with these inputs.
        """
        if not known:
            scales, Z = self.scales, self.scales.transform(X)
            scores = find_scores(Z, scales.knots, scales.scores) if any(self._scored) else Z
            scored = zip(self.groups, self._scored, strict=True)
            self._seen = [(group, scores if own else Z) for group, own in scored]
        return self._seen

    def _forecasts(self, n: int) -> np.ndarray:
        """Return the members' forecasts of n rounds, which the groups have just made, (K, n, N)."""
        return np.ascontiguousarray(self._found[self._rows, :n].transpose(2, 1, 0))

    def forecast(self, X: np.ndarray, out: np.ndarray) -> None:
        """Write the forecasts of single rounds, up to ROWS; out : (n, K)."""
        for group, Z in self._views(X):
            group.forecast(Z)
        self._found[-1] = self._last
        F = self._forecasts(len(X))
        for k, offset in enumerate(self.scales.offsets.tolist()):
            self.layers.forecast(k, F[k], offset, out)

    def weights(self) -> np.ndarray:
        """Return the posterior of the members in the next round, (K, N)."""
        return np.stack([self.layers.posterior(k) for k in range(len(self._loss))])

    # ---- what came before, and saving ----

    def correct_losses(self, other: Stage) -> None:
        """Correct the losses of the rounds replayed here to those of the stage that played them."""
        self._before[:] = other._loss + other._before - self._loss
        same = other._losses.shape == self._losses.shape
        # Before there were these members, the learner's own loss stands for theirs.
        were = other.played_losses() if same else (other._loss + other._before)[:, None]
        self._losses_before[:] = were - self._losses

    def played_losses(self) -> np.ndarray:
        """Return the members' losses as they forecast at the time, (K, N)."""
        return self._losses + self._losses_before

    def measure(self) -> list[Part]:
        """Return the parts of all matrices."""
        scales = self.layers.largest_labels()
        parts = [(f"group {g}", group.measure(scales)) for g, group in enumerate(self.groups)]
        return name_members([*parts, ("layers", self.layers.measure())])

    def parts(self) -> dict[str, State]:
        """Return everything with a state, by name."""
        parts: dict[str, State] = {"stage": self, "layers": self.layers}
        for g, group in enumerate(self.groups):
            parts |= {f"group{g}_{i}": one for i, one in enumerate(group.parts())}
        return parts


class SelfTuning(Learner):
    """A learner without anything to tune, for the squared loss: real labels, or -1 and +1.

    Its members are ridge regressions with Gaussian kernels of three widths, with Laplacian kernels
    in two learned metrics, and on the inputs themselves, of several lam and half-lives; AWV where
    nothing is forgotten; passive-aggressive learners; linear gradient descent; and the last label.
    Those in a metric have a dictionary in each leaf of a tree. Two layers aggregate all members,
    with ridge regression on all forecasts between: the whole has a guarantee, follows drift, learns
    fast where there is hardly any noise, and beats its best member where they know different
    things.

    Scales, metrics, trees and dictionaries are taken from the past only: after 32, 128, 512, 2048,
    8192 and 32,768 rounds there are new members, made of the first 15/16 of these rounds, which
    replay them all; after round 2048 only while the past takes at most 64 MiB. Where rounds come
    one at a time, each of the last 1/16 does some of that work, so that none takes long. Labels and
    inputs that are far from all others do no lasting harm. docs/self_tuning.md has the details.

    About 70 to 150 us a round on one core for d <= 60, replays included; memory does not grow after
    the last restart.

    Parameters
    ----------
    budget : int >= 1
        Largest dictionary, one for each width and leaf (and for the linear members, if inputs are
        wider): time and memory are of order budget^2.
    seed : int
        Of the coins of KORS.

    Remarks
    -------
    Ours, of known parts: discounted AWV (Jacobsen and Cutkosky 2024), PA-I on the same coordinates
    (Crammer et al. 2006; hinge loss for labels -1 and +1, else absolute loss), gradient descent
    with normalised steps (logistic loss for labels -1 and +1, else squared loss), the aggregating
    algorithm without and with fixed share (Vovk 1998, Herbster and Warmuth 1998), labels of unknown
    size (Gerchinovitz and Yu 2014), dynamic model averaging (Raftery, Karny and Ettler 2010), with
    the variance of the noise learned, ML-Poly (Gaillard, Stoltz and van Erven 2014), and stacking
    (Breiman 1996), online: ridge on what each forecast adds to the last label. The metrics are
    ``learned_metric`` of a Gaussian and of a Laplacian kernel (Radhakrishnan et al. 2024), from
    round 128 on; several outputs share them. The trees are those of xRFM (Beaglehole et al. 2025).

    The certificate is against the best penalised function of all members that forget nothing, each
    in its own space, as it was chosen at the last restart: ``member`` is the one with the least
    comparator, ``bound`` what holds for it, ``guaranteed`` the least comparator + bound of all. The
    bound is the member's (pkawv Proposition 1), plus ``theory.experts_bound`` and
    ``theory.mlpoly_bound`` of the two layers, plus what atoms that joined later gained and what the
    rounds before the last restart cost more than their replay, plus ``outlier_price``. Comparators
    are of the labels as learned.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 1000, (2000, 2))
    >>> y = 7.0 + np.sin(X[:, 0] / 100) * X[:, 1] + rng.normal(0, 50, 2000)
    >>> learner = okl.SelfTuning()
    >>> run = okl.run(learner, X, y)
    >>> bool(run.losses[1000:].mean() < 1.2 * 50**2)
    True
    >>> learner.importance.round(2)
    array([0.99, 0.01])
    """

    # recent: the last LONG labels, NaN before there were any; range: low, middle and high, beyond
    # which labels are outliers; price: what these cost so far.
    _STATE = {
        "counts": ("counts",), "inputs": (PAST, "d"), "labels": (PAST, "outputs"),
        "recent": ("window", "outputs"), "range": ("range", "outputs"), "price": ("outputs",),
    }  # fmt: skip
    _UNBOUNDED = frozenset({"recent", "price"})
    _REMEDY = "scale the labels"
    _certified, _several = 4, True
    _run_rows = 2048
    _block_rows = ROWS

    budget: int = count(1, 300)
    _: KW_ONLY
    seed: int = random_seed(0)

    @property
    def size(self) -> int:
        """Atoms in all dictionaries together; 0 before any data."""
        return sum(group.map.size for group in self._stage.groups) if self._width else 0

    @property
    def members(self) -> list[Member]:
        """What each member is; sigma in the units of the standardised inputs.

        Before round 32, and where all inputs are zero, there are linear members only: constants.
        """
        return list(self._stage_now().members)

    @property
    def weights(self) -> np.ndarray:
        """The posterior of the members in the next round, (N,), or (K, N) for K outputs.

        By dynamic model averaging: how likely each is to be the best one now. (The forecast has
        other weights, by the regressions also negative ones.)
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

        As they forecast at the time, cut to the largest label, on the labels as learned: the median
        in place of outliers. For the first 32 rounds, before there were these members, the
        learner's own losses.
        """
        return self._of_outputs(self._stage_now().played_losses())

    @property
    def importance(self) -> np.ndarray:
        """How much the labels depend on each input, by the learned metrics, (d,); the sum is 1.

        The mean of the squared scales of both metrics, so of expected squared gradients by inputs
        of deviation 1. The same for all before round 128.
        """
        squares = np.square(self._stage_now().scales.metrics)
        if not squares.any():
            return np.full(self._width, 1.0 / self._width)
        found = (squares / squares.sum(axis=1, keepdims=True)).mean(axis=0)
        return np.append(found, np.zeros(self._width - len(found)))  # columns that came since

    @property
    def outlier_price(self) -> float | np.ndarray:
        """What outliers cost more than the median that was learned in their place; (K,) for K.

        The sum of (y - p)^2 - (c - p)^2, p the forecast, c the median; part of the bound.
        """
        self._stage_now()
        return self._price.copy() if self._outputs > 1 else float(self._price[0])

    def _stage_now(self) -> Stage:
        if not self._ready():
            raise ValueError("there are no members yet: play a round first")
        return self._stage

    def _of_outputs(self, values: np.ndarray) -> np.ndarray:
        return values if self._outputs > 1 else values[0]

    def _space(self) -> str:
        restart = max(end for end in (0, *self._restarts) if end <= self._played)
        return f"the space that a member got in round {restart}"

    def _member(self) -> str | list[str]:
        certified = [m for m in self._stage.members if m.forecaster == "awv"]
        names = [str(certified[i]) for i in self._stage._best]
        return names if self._outputs > 1 else names[0]

    def _start(self, d: int) -> None:
        most = LARGEST_PAST // (8 * (d + self._outputs))
        # How many rounds the new members are made of, by the round after which they begin.
        self._restarts = {end: end - end // LAST for end in RESTARTS if end <= max(most, 2048)}
        self._make_state(counts=1, d=d, outputs=self._outputs, window=LONG, range=3)
        self._recent[:] = np.nan
        self._range[:] = [[-LARGEST_LABEL], [0.0], [LARGEST_LABEL]]
        self._next = None  # makes the members of the next restart where rounds come singly
        find_blas()  # so that SciPy is loaded now, not in round 120, for the first metric
        scales = finish(Scales.measure(self._inputs, self._labels, 0))
        self._stage = finish(self._make_stage(scales, 0))

    @property
    def _can_widen(self) -> bool:
        return self._played < max(self._restarts)

    def _make_stage(self, scales: Scales, restarts: int) -> Steps[Stage]:
        """Return the stage after so many restarts."""
        stage, rounds = Stage(scales), (*self._restarts, np.inf)[restarts]
        yield from stage.make_members(self._hyper.budget, rounds, [self._hyper.seed, restarts])
        return stage

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        Y, start, known = y.reshape(len(X), self._outputs), 0, self._just_looked_at(X)
        while start < len(X):
            stops = (*self._restarts.values(), *self._restarts, self._played // SPAN * SPAN + SPAN)
            left = min(stop - self._played for stop in stops if stop > self._played)
            rows = slice(start, min(len(X), start + left))
            try:
                self._play_block(X[rows], Y[rows], trace.rows(rows.start, rows.stop), known)
            except Trouble as trouble:
                self._raise_status(*trouble.args)
            start = rows.stop

    def _play_block(self, X: np.ndarray, Y: np.ndarray, trace: Trace, known: bool) -> None:
        """Play up to ROWS rounds; restarts begin and end, and spans, after the last one only."""
        n, stage, learned = len(X), self._stage, self._replace_outliers(Y)
        kept = trace[: 2 + self._certified]  # without what a learner around this one keeps
        own = Trace(*(a if a is trace.sizes else a.reshape(Y.shape) for a in kept))
        stage.play(X, learned - stage.scales.offsets, True, own, known)
        # The loss is that of the labels that came, so the bound takes in what outliers cost.
        with np.errstate(over="ignore"):  # squares of labels beyond 1e154
            more = (Y - own.predictions) ** 2 - (learned - own.predictions) ** 2
        more[0] += self._price
        price = np.add.accumulate(more)
        self._price[:] = price[-1]
        own.loss[:] += price
        own.bound[:] += price
        own.guaranteed[:] += price
        trace.sizes[:] = stage.sizes[:, :n].sum(axis=0)
        if self._played < max(self._restarts):
            first, total = self._played, self._played + n
            self._reserve({PAST: total})
            self._inputs[first:total], self._labels[first:total] = X, learned
            self._counts[PAST] = total
        self._played += n
        self._restart(single=n == 1)
        if self._played in self._restarts:
            trace.sizes[-1] = self.size
        if self._played % SPAN == 0:
            self._stage.end_span()

    def _replace_outliers(self, Y: np.ndarray) -> np.ndarray:
        """Return the labels to learn from: an outlier counts as the median of the last SHORT.

        Outliers are far from the last LONG labels and from the last SHORT ones, so labels that
        move elsewhere, or to another scale, are outliers for at most SHORT rounds.
        """
        n, t = len(Y), self._played
        seen = np.concatenate([self._recent, Y])  # the labels of rounds t - LONG to t + n - 1
        starts = np.arange(max(SHORT - t, -t % EVERY), n, EVERY)
        self._recent[:] = seen[n:]
        if not len(starts):
            return keep_within(Y, *self._range)
        windows = sliding_window_view(seen, LONG, axis=0)[starts]
        long, reach = measure_range(windows, LABEL_FAR)
        middle, near = measure_range(windows[..., -SHORT:], LABEL_FAR)
        low = np.minimum(long - reach, middle - near).clip(min=-LARGEST_LABEL)
        high = np.maximum(long + reach, middle + near).clip(max=LARGEST_LABEL)
        ranges = np.concatenate([self._range[None], np.stack([low, middle, high], axis=1)])
        self._range[:] = ranges[-1]
        which = np.searchsorted(starts, np.arange(n), side="right")
        return keep_within(Y, *ranges[which].swapaxes(0, 1))

    def _restart(self, single: bool) -> None:
        """Begin with new members if it is time; single rounds do some of the work before.

        Nothing depends on how much of it.
        """
        end = next((end for end in self._restarts if end >= self._played), np.inf)
        built = self._restarts.get(end, np.inf)
        if self._played == built and end == RESTARTS[0]:  # labels from before there was a range
            self._labels[:SHORT] = keep_within(self._labels[:SHORT], *self._range)
        try:
            if self._played == end:
                stage = finish(self._next or self._build(end, ROWS))
                stage.correct_losses(self._stage)
                self._stage, self._next = stage, None
            elif self._played >= built and single:
                self._next = self._next or self._build(end, WORK_ROWS)
                for _ in islice(self._next, WORK[RESTARTS.index(end)]):
                    pass
        except Trouble as trouble:
            raise Trouble(trouble.args[0], -1) from None  # in the last round played
        if self._played == max(self._restarts):
            self._free(PAST)

    def _build(self, end: int, step: int) -> Steps[Stage]:
        """Return the members that begin after round ``end``, once it is played.

        step : rows that are replayed in one go.
        """
        built, restarts = self._restarts[end], list(self._restarts).index(end) + 1
        X, Y = self._inputs[:built], self._labels[:built]
        scales = yield from Scales.measure(X, Y, end)
        stage = yield from self._make_stage(scales, restarts)
        # A row takes less time here than in the replay; where there are few, small steps fit too.
        quick = min(2 * step, ROWS) if built > ROWS else step
        for start in range(0, built, quick):
            stage.choose(X[start : start + quick])
            yield
        yield from stage.replay(X, Y, False, step)
        while stage.replayed < end:  # what came since; rows that may join take longer
            n = self._played
            yield from stage.replay(self._inputs[:n], self._labels[:n], True, step // 3)
            yield
        return stage

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        forecasts = empty_per_round(len(X), self._outputs)
        columns = forecasts.reshape(len(X), self._outputs)
        self._looked_at = None  # until it is whole: Ctrl-C may come between
        self._stage.forecast(X, columns)
        self._looked_at = self._single_input(X)
        return forecasts

    def _matrices(self) -> list[Part]:
        return self._stage.measure()

    def _nested(self) -> dict[str, State]:
        return self._stage.parts()

    def _state(self) -> dict[str, Any]:
        return super()._state() | self._stage.scales._asdict()

    def _output_axes(self) -> dict[str, int]:
        return super()._output_axes() | {"offsets": 0, "signs": 0}

    def _restore(self, state: dict[str, Any]) -> None:
        restarts = sum(end <= state["played"] for end in self._restarts)
        scales = Scales(*(state[name] for name in Scales._fields))
        self._stage = finish(self._make_stage(scales, restarts))
        super()._restore(state)
