"""Regret against dictionary size on one stream in one call: ``regret_vs_size``."""

import inspect
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from math import comb
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from oklnumba import theory
from oklnumba.components.features import TaylorFeatures
from oklnumba.components.kernels import check_kernel
from oklnumba.core import checks
from oklnumba.core.params import Params
from oklnumba.experiments import sweep
from oklnumba.experiments.cells import Measure, NamedData, check_columns, check_options, make_stream
from oklnumba.experiments.table import Table
from oklnumba.learners.base.learner import Learner
from oklnumba.protocol.runs import Run

SIZES = (12, 25, 50, 100, 200, 400)
SIZE_NAMES = ("budget", "max_size", "degree", "n_frequencies")  # in order of preference
SHARES = ("rank", "sketch", "columns", "switch_size")  # scaled along with the size
Bound = Callable[[Learner, Run], float | None]  # on the regret
OWN = "bound", "loss_bound", "given_bound"  # columns, the last two on the way to the first
MAX_ROUNDS = 20_000  # for the effective dimension: 3.2 GB


def regret_vs_size(
    learners: Any, X: Any, y: ArrayLike | None = None, kernel: Any = None,
    lam: sweep.Penalty = 1.0, seeds: int | Sequence[int] = 1, *, sizes: Sequence[int] = SIZES,
    permute: bool = False, measure: Measure | None = None, bound: Bound | None = None,
    n_jobs: int | None = None, path: str | os.PathLike | None = None, progress: bool = False,
    **of_run: Any,
) -> Table:  # fmt: skip
    """Play learners of growing size on one stream; return regret, mistakes, time and memory.

    The regret is in the loss of each learner, against min_f sum loss + lam |f|^2 over the RKHS of
    ``kernel``. ``plots.regret_vs_size`` draws the table.

    Parameters
    ----------
    learners : learner, function, or a list or mapping of these
        As in ``okl.sweep``. Each size is set as a learner's ``budget``, ``max_size``,
        ``n_frequencies`` (half the size) or the ``degree`` of its Taylor features (the largest
        that fits); ``rank``, ``sketch``, ``columns`` and ``switch_size`` are scaled with it. A
        learner without these is played once. A function is also called with ``size``. A list of
        learners, for example with different thresholds, is played as it is.
    X, y : array_like of shape (n, d) and (n,)
        Or X alone, a stream: ``okl.stream(path, label=...)``, or a function that returns an
        iterator of pairs (X, y).
    kernel, lam : Kernel, and float > 0 or mapping of loss to float
        Of the best function.
    seeds : int or sequence of int
        Number of seeds, 0, 1, ..., or the seeds, which are added to the learners' seeds.
        Deterministic learners play once.
    sizes : sequence of int
        Atoms or features.
    permute : bool
        Whether each seed also permutes the rows, for all learners; not those of a stream.
    measure : function of (learner, run), optional
        Returns a dict of more columns, as in ``okl.sweep``.
    bound : function of (learner, run), optional
        Returns a bound on the regret of a learner of your own, None for others.
    n_jobs, path, progress, of_run
        As in ``okl.sweep``.

    Returns
    -------
    Table
        The columns of ``okl.sweep``, and ``bound``, a bound on the regret: the loss that the
        certificate of an AWV learner guarantees, minus the least penalised loss of the RKHS.
        ``about`` has ``lam``, the least penalised losses ``best`` with their ``interval``, and for
        squared loss and at most 20,000 rounds ``effective_dimension`` and ``awv_bound`` (max |y|^2
        log det(K / lam + I), the bound of Kernel-AWV).

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-1, 1, (400, 2))
    >>> kernel = okl.Gaussian(0.5)
    >>> table = okl.regret_vs_size(
    ...     [okl.NystromAWV(kernel), okl.KernelAWV(kernel)], X, np.sin(5 * X[:, 0]), kernel, 1.0,
    ...     seeds=2, sizes=[5, 20],
    ... )
    >>> table.mean()[["learner", "size", "regret", "bound"]]
    learner     size  regret  bound
    NystromAWV     5   174.4  175.1
    NystromAWV    20   23.91  30.69
    KernelAWV    400   15.25  23.44
    """
    asked = checks.require_list("sizes", sizes, "a list of sizes")
    sizes = list(dict.fromkeys(checks.require_count("a size", n, 1) for n in asked))
    checks.require(bool(sizes), "sizes", asked, "a list of one size or more")
    permute = checks.require_flag("permute", permute)
    for name, given in (("measure", measure), ("bound", bound)):
        what = "a function of (learner, run)"
        checks.require(given is None or callable(given), name, given, what)
    options = check_options(of_run, Measures(measure, bound), path, n_jobs, progress)
    check_kernel("kernel", kernel)
    sweep.check_penalty("lam", lam)
    if y is None and permute:
        raise ValueError("permute=True needs arrays X and y; a stream is played in its order")
    stream = make_stream("data", X, y, kernel)
    seeds = sweep.check_seeds(seeds) or [0]
    table = [
        sweep.make_cell(stream, name, setting, maker, seed, seed if permute else None, choice)
        for name, makers in sweep.name_learners(learners).items()
        for setting, (maker, choice) in enumerate(list_settings(makers, sizes, stream.shape[1]))
        for seed in (seeds if permute or is_random(maker) else seeds[:1])
    ]
    return add_theory(sweep.play_table(table, options, lam), stream, lam)


def list_settings(
    makers: Sequence[Any], sizes: Sequence[int], d: int
) -> Iterator[tuple[Any, dict[str, Any] | str | None]]:
    """Yield a learner or function for each size, and the hyper-parameters that set the size.

    A text says why there are none.
    """
    for maker in makers:
        if not isinstance(maker, Learner):
            takes_size = "size" in inspect.signature(maker).parameters
            for size in sizes if takes_size else (None,):
                yield (partial(maker, size=size) if takes_size else maker), None
            continue
        name = find_size_name(maker) if len(makers) == 1 else None
        choices = [scale_to(maker, name, size, d) for size in sizes] if name else [{}]
        fitting = [choice for choice in choices if choice is not None]
        if not fitting:
            yield maker, f"degree 1 has {d + 1} Taylor features, more than the largest of sizes"
        for i, choice in enumerate(fitting):
            if choice not in fitting[:i]:  # sizes of the same degree
                yield maker, choice


def find_size_name(player: Learner) -> str | None:
    """Return the hyper-parameter that sets the size of a learner."""
    params = player.get_params()
    for size_name in SIZE_NAMES:
        for name in params:
            outer, last = name.rpartition("__")[::2]
            part = params[outer] if outer else player
            unused = last == "n_frequencies" and getattr(part, "features", None) is not None
            if last == "degree" and not isinstance(part, TaylorFeatures):
                continue
            if last == size_name and not unused:
                return name
    return None


def scale_to(player: Learner, name: str, size: int, d: int) -> dict[str, Any] | None:
    """Return the hyper-parameters for about this size; None if even degree 1 is larger."""
    params = player.get_params()
    outer, mark, last = name.rpartition("__")
    if last == "degree":
        degree = 0
        while comb(d + degree + 1, d) <= size:
            degree += 1
        return {name: degree} if degree else None
    if last == "n_frequencies":
        return {name: max(size // 2, 1)}
    if f"{outer}{mark}switch_size" in params:
        size += size % 2  # POMDR removes half of its budget
    share = size / (params[name] or size)
    choice = {name: size}
    for other in SHARES:
        old = params.get(outer + mark + other)
        if old is not None and share != 1.0:
            least = params.get(f"{outer}{mark}blocks", 1) if other == "sketch" else 1
            choice[outer + mark + other] = max(int(old * share) // least * least, least)
    return choice


def is_random(maker: Any) -> bool:
    """Say whether a learner has a seed, or a function requires one."""
    return has_seed(maker) if isinstance(maker, Learner) else "seed" in sweep.list_required(maker)


def has_seed(value: Any) -> bool:
    """Say whether an object, or one in a list, has a seed."""
    if isinstance(value, list | tuple):
        return any(map(has_seed, value))
    params = value.get_params(deep=False) if isinstance(value, Params) else {}
    own = "seed" in params and value._uses_seed
    return own or any(map(has_seed, params.values()))


class Measures(NamedTuple):
    """The columns of ``measure``, and what the bound on the regret is made of."""

    measure: Measure | None
    bound: Bound | None

    def __call__(self, learner: Learner, run: Run) -> dict[str, Any]:
        """Return the columns of a run."""
        proof, guaranteed = run.certificate, None
        if proof and run.rounds and proof.loss.ndim == 1:  # of one output
            if np.isclose(proof.loss[-1], run.loss_sums[-1]):  # no discount
                guaranteed = float(proof.guaranteed[-1])
        given = self.bound and self.bound(learner, run)
        more = self.measure(learner, run) if self.measure else {}
        check_columns(more, OWN)
        return more | {"loss_bound": guaranteed, "given_bound": given}


def add_theory(table: Table, stream: NamedData, lam: sweep.Penalty) -> Table:
    """Return the table with bounds on the regret, and the theory's quantities of the stream."""
    rows = []
    for row in table.rows:
        guaranteed, bound = row.pop("loss_bound", None), row.pop("given_bound", None)
        best = table.about["best"].get(f"{stream.name}, {row['loss']}")
        if bound is None and None not in (guaranteed, best) and np.isfinite(guaranteed):
            bound = guaranteed - best
        rows.append(row | {"bound": bound})
    about = table.about | {"kernel": repr(stream.kernel)}
    squared = any(row["loss"] == "squared" and not row["error"] for row in rows)
    if squared and stream.y is not None and stream.shape[0] <= MAX_ROUNDS:
        lam = lam["squared"] if isinstance(lam, Mapping) else lam
        X, y = stream.labelled
        B = float(np.abs(y).max())
        about["effective_dimension"] = theory.effective_dimension(stream.kernel, X, lam)
        about["awv_bound"] = theory.awv_bound(stream.kernel, X, lam, B=B)
    return Table(rows, about)
