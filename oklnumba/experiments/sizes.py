"""Regret against the size of the dictionary, on one stream, in one call: ``regret_vs_size``."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from math import comb
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from oklnumba import theory
from oklnumba.components.features import TaylorFeatures
from oklnumba.components.kernels import check_kernel
from oklnumba.core import checks
from oklnumba.experiments.cells import Options, Stream, checked_where
from oklnumba.experiments.sweep import (
    checked_penalty,
    lines_of,
    made,
    needed,
    play_table,
    seeds_of,
    streams_of,
)
from oklnumba.experiments.table import Table
from oklnumba.learners.base.learner import Learner as Player
from oklnumba.protocol.runs import Run

SIZES = (12, 25, 50, 100, 200, 400)
# What sets the size of a dictionary or feature map, and what keeps its share of that.
SIZE_NAMES = ("budget", "max_size", "degree", "n_frequencies")
SHARES = ("rank", "sketch", "columns", "switch_size")
LARGEST = 20_000  # rounds for which the effective dimension is worked out: 3.2 GB
EVEN = 2  # POMDR removes half of its budget


def regret_vs_size(
    learners: Any,
    X: ArrayLike,
    y: ArrayLike,
    kernel: Any,
    lam: float | Mapping[str, float],
    seeds: int | Sequence[int] = 1,
    *,
    sizes: Sequence[int] = SIZES,
    permute: bool = False,
    backend: str | None = None,
    n_jobs: int | None = None,
    path: str | os.PathLike | None = None,
    progress: bool = False,
    **of_run: Any,
) -> Table:
    """Play learners of growing size on one stream; return regret, mistakes, time and memory.

    The regret is in each learner's own loss, against min_f sum loss + lam |f|^2 over the RKHS; one
    ``theory.Hindsight`` (for squared loss, one factor) serves all runs of a loss.
    ``plots.regret_vs_size`` draws the table.

    Parameters
    ----------
    learners : learner, function, or a list or mapping of these
        By name. Of a learner, its ``budget``, ``max_size``, ``n_frequencies`` (half the size) or
        the ``degree`` of its Taylor features (the largest that fits) is set to each of the sizes,
        with ``rank``, ``sketch``, ``columns`` and ``switch_size`` in the same share of it as they
        are now; one that has none of these is played as it is. A function is called with ``size``
        and with what else ``okl.sweep`` gives: ``T``, ``d``, ``X``, ``kernel``, ``seed``. A list of
        learners (thresholds, say) is played as it is.
    X : array_like of shape (n, d)
    y : array_like of shape (n,)
    kernel : Kernel
    lam : float > 0, or mapping of loss to float
        Of the penalty lam |f|^2 of the best function.
    seeds : int or sequence of int
        Number of seeds, 0, 1, ..., or these. They move the seeds of the learners and, with
        ``permute``, permute the rows. Without, a learner that draws nothing is played once.
    sizes : sequence of int
        Atoms, or features.
    permute : bool
        Whether each seed has a permutation of its own, or all the order given.
    backend, n_jobs, path, progress, of_run
        As in ``okl.sweep``.

    Returns
    -------
    Table
        The columns of ``okl.sweep`` and ``bound``: what a certificate (AWV learners) says that the
        regret is at most, that is its bound and what the best function of the learner's own space
        loses to that of the RKHS. ``about`` has ``lam``, the least penalised losses ``best`` and
        for squared loss and at most 20,000 rounds ``effective_dimension`` and ``awv_bound`` (max
        |y|^2 log det(K / lam + I), the bound of Kernel-AWV).

    Raises
    ------
    ValueError
        If an argument is not valid.
    ImportError
        If ``backend`` is given, or ``n_jobs`` other than 1, and joblib is not there.

    Examples
    --------
    >>> import numpy as np, oklnumba as okl
    >>> X = np.random.default_rng(0).uniform(-1, 1, (400, 2))
    >>> kernel = okl.Gaussian(0.5)
    >>> table = okl.regret_vs_size(
    ...     [okl.NystromAWV(kernel), okl.KernelAWV(kernel)], X, np.sin(5 * X[:, 0]), kernel, 1.0,
    ...     seeds=2, sizes=[5, 20],
    ... )
    >>> table.mean()[["learner", "size", "regret", "bound"]]
    learner     size  regret  bound
    NystromAWV     5   174.4  183.9
    NystromAWV    20   23.91   50.6
    KernelAWV    400   15.25  47.15
    """
    what = "a list of one size or more"
    sizes = [
        checks.require_count("a size", n, 1) for n in checks.require_list("sizes", sizes, what)
    ]
    checks.require(bool(sizes), "sizes", sizes, what)
    permute, progress = (
        checks.require_flag(*one) for one in (("permute", permute), ("progress", progress))
    )
    where = checked_where(backend, n_jobs)
    check_kernel(kernel)
    lam = checked_penalty("lam", lam)
    stream = streams_of({"data": (X, y)}, kernel)[0]
    seeds = seeds_of(seeds) or [0]
    table = [
        made(stream, name, setting, maker, seed, seed if permute else None, choice)
        for name, makers in lines_of(learners).items()
        for setting, (maker, choice) in enumerate(settings(makers, sizes, stream.X.shape[1]))
        for seed in (seeds if permute or draws(maker) else seeds[:1])
    ]
    options = Options(of_run, certified, None if path is None else checks.as_path(path))
    found = play_table(table, options, where, lam, False, progress)
    return with_theory(found, stream, lam)


def settings(
    makers: Sequence[Any], sizes: Sequence[int], d: int
) -> Iterator[tuple[Any, dict[str, Any] | None]]:
    """Yield a learner or function for each size, and the hyper-parameters that make it this."""
    for maker in makers:
        if not isinstance(maker, Player):
            of_size = "size" in inspect.signature(maker).parameters
            for size in sizes if of_size else (None,):
                yield (partial(maker, size=size) if of_size else maker), None
            continue
        name = size_name(maker) if len(makers) == 1 else None
        choices = [sized(maker, name, int(size), d) for size in sizes] if name else [{}]
        seen = []
        for choice in choices:
            if choice is not None and choice not in seen:  # Taylor features come in few sizes
                seen.append(choice)
                yield maker, choice


def size_name(player: Player) -> str | None:
    """Return the hyper-parameter that sets the size of a learner."""
    params = player.get_params()
    found = []
    for name in params:
        outer, _, last = name.rpartition("__")
        if last not in SIZE_NAMES:
            continue
        part = params[outer] if outer else player
        taken = last == "n_frequencies" and getattr(part, "features", None) is not None
        if not taken and (last != "degree" or isinstance(part, TaylorFeatures)):
            found.append((SIZE_NAMES.index(last), name))
    return min(found)[1] if found else None


def sized(player: Player, name: str, size: int, d: int) -> dict[str, Any] | None:
    """Return hyper-parameters for a dictionary or map of about this size; None where none fits."""
    params = player.get_params()
    outer, _, last = name.rpartition("__")
    prefix = f"{outer}__" if outer else ""
    if last == "degree":
        degree = 0
        while comb(d + degree + 1, d) <= size:
            degree += 1
        return {name: degree} if degree else None
    if last == "n_frequencies":
        return {name: max(size // 2, 1)}
    if f"{prefix}switch_size" in params:
        size += size % EVEN
    share = size / (params[name] or size)
    choice = {name: size}
    for other in SHARES:
        old = params.get(prefix + other)
        if old is not None and share != 1.0:
            least = params.get(f"{prefix}blocks", 1) if other == "sketch" else 1
            choice[prefix + other] = max(int(old * share) // least * least, least)
    return choice


def draws(maker: Any) -> bool:
    """Say whether a learner draws anything at random, or a function asks for a seed."""
    if isinstance(maker, Player):
        return any(name.split("__")[-1] == "seed" for name in maker.get_params())
    return "seed" in needed(maker)


def certified(player: Player, run: Run) -> dict[str, float | None]:
    """Return the most that a certificate allows the total loss to be; None where there is none."""
    found = run.certificate
    if found is None or found.loss.ndim > 1 or not run.rounds:
        return {"loss_bound": None}
    most = float(found.comparator[-1] + found.bound[-1])
    undiscounted = np.isclose(found.loss[-1], run.losses.sum())
    return {"loss_bound": most if undiscounted and np.isfinite(most) else None}


def with_theory(found: Table, stream: Stream, lam: float | Mapping[str, float]) -> Table:
    """Return the table with bounds on the regret, and what the theory says about the stream."""
    rows = []
    for row in found.rows:
        most = row.pop("loss_bound", None)
        best = found.about["best"].get(f"{stream.name}, {row['loss']}")
        rows.append(row | {"bound": None if most is None or best is None else most - best})
    about = found.about | {"kernel": repr(stream.kernel)}
    own = lam.get("squared") if isinstance(lam, Mapping) else lam
    if len(stream.X) <= LARGEST and any(row["loss"] == "squared" for row in rows):
        about["effective_dimension"] = theory.effective_dimension(stream.kernel, stream.X, own)
        about["awv_bound"] = theory.awv_bound(
            stream.kernel, stream.X, own, B=float(np.abs(stream.y).max())
        )
    return Table(rows, about)
