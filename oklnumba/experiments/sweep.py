"""Learners x data sets x permutations in one call: ``sweep``."""

import inspect
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count, product
from operator import itemgetter
from typing import Any

import numpy as np

from oklnumba import theory
from oklnumba.components.kernels import check_kernel
from oklnumba.core import checks
from oklnumba.core.cholesky import one_blas_thread
from oklnumba.core.display import Bar
from oklnumba.core.params import clone
from oklnumba.data import datasets
from oklnumba.experiments import cells
from oklnumba.experiments.cells import Cell, Measure, Options, Stream
from oklnumba.experiments.table import Table
from oklnumba.learners.base.learner import Learner
from oklnumba.learners.outside import adapt, can_learn

WARM_UP_ROWS, WARM_UP_SECONDS = 1500, 1.0  # enough to fill and compile dictionaries of usual size
TUNING_SEED = 1000
COLUMNS = (
    "data", "learner", "setting", "permutation", "n", "d", "loss", "mean_loss", "mistakes",
    "regret", "size", "seconds", "memory", "finished", "total_loss", "seed", "chosen",
    "parameters", "versions", "error",
)  # fmt: skip

Maker = Learner | Callable[..., Learner]
Penalty = float | Mapping[str, float]  # for all losses, or by loss
Choice = dict[str, Any]  # values of tuned parameters


def sweep(
    learners: Any, data: Any, permutations: int | Sequence[int] = 1,
    tune: Mapping[str, Any] | None = None, *, kernel: Any = None, regret: Penalty | None = None,
    measure: Measure | None = None, n_jobs: int | None = None,
    path: str | os.PathLike | None = None, progress: bool = False, **of_run: Any,
) -> Table:  # fmt: skip
    """Play learners on data sets over permutations of their rows; return a table, one row per run.

    A run that fails becomes a row with its error; the others go on. Results do not depend on
    ``n_jobs``, but ``seconds`` does: use ``n_jobs=1`` to compare times. Loops are compiled before
    the first run.

    Parameters
    ----------
    learners : learner, function, or a list or mapping of these
        Learners of other libraries as in ``okl.run``, each played as a deep copy. The keys of a
        mapping are the names; else the class or function gives the name. A list under one name
        holds several settings. A function gets the tuned parameters, and those of ``T`` (rounds),
        ``d`` (width), ``X`` (unpermuted inputs), ``kernel``, ``seed`` (of the permutation) that it
        has as arguments without a default. Learners are copied without data; the permutation's
        seed is added to every ``seed``.
    data : name, Dataset, pair (X, y), or a list or mapping of these
        Data sets by name have inputs scaled to [-1, 1].
    permutations : int or sequence of int
        Number of permutations, with the seeds 0, 1, ..., or the seeds, as in
        ``datasets.load(..., permute=seed)``. 0: one run in the given order.
    tune : mapping, optional
        From hyper-parameters (``kernel__sigma`` for nested ones) or arguments of functions to lists
        of values, for every learner that has them. All combinations play one more permutation, with
        seed 1000 or a larger one that the table does not use. The best combination plays the table
        and is in the column ``chosen``: fewest mistakes if labels are -1 and +1, else least loss.
    kernel : Kernel, optional
        For ``regret`` and for functions that take it.
    regret : float > 0, or mapping of loss to float, optional
        The lam of min_f sum loss + lam |f|^2 over the RKHS of ``kernel``, against which the regret
        in the learner's loss is recorded.
    measure : function of (learner, run), optional
        Returns a dict of more columns: numbers, texts, or Runs (stored without their data).
    n_jobs : int, optional
        Runs played at the same time, as in joblib (``pip install joblib``): -1 for all
        cores; None for one, or what ``joblib.parallel_config(backend, n_jobs=...)`` sets, "loky" or
        "dask" for processes (docs/experiments.md). The default backend is threads.
    path : path, optional
        Folder for finished runs. A later call loads those with the same hyper-parameters, data,
        permutation, options, name of ``measure`` and versions. Failed runs are played again.
    progress : bool
    **of_run
        Further keywords of ``okl.run``: ``loss``, ``time_limit``, ``every``, ``record``.

    Returns
    -------
    Table
        With the columns ``data``, ``learner``, ``setting`` (index in a list), ``permutation``,
        ``n`` (rounds played), ``d``, ``loss``, ``mean_loss``, ``mistakes`` (share of rounds; None
        for regression), ``regret`` (None unless all rounds were played), ``size`` (largest
        dictionary of the run, or number of features), ``seconds`` (in the learner), ``memory``
        (bytes of the pickled learner after the run; None if it has no pickle), ``finished``,
        ``total_loss``, ``seed``, ``chosen``, ``parameters``, ``versions``, ``error`` ("" if none),
        and those of ``measure``.

    Examples
    --------
    >>> data = okl.datasets.load("magic04")
    >>> table = okl.sweep(
    ...     {"FOGD": lambda T, step: okl.FOGD(eta=step / T**0.5, n_frequencies=50),
    ...      "AWV": okl.LinearAWV()},
    ...     {"magic04": (data.X[::20], data.y[::20])},
    ...     permutations=3,
    ...     tune={"step": [0.1, 1.0, 10.0]},
    ... )
    >>> table.pivot("mistakes")
    data       FOGD     AWV
    magic04  0.2271  0.2404
    >>> table.select(learner="FOGD").rows[0]["chosen"]
    'step=10.0'
    """
    seeds = check_seeds(permutations)
    streams = name_streams(data, kernel)
    lines = name_learners(learners)
    grids = expand_grids(tune, lines)
    options = cells.check_options(of_run, measure, path, n_jobs, progress)
    if regret is not None:
        check_penalty("regret", regret)
        if any(stream.kernel is None for stream in streams):
            raise ValueError("regret needs the kernel of its RKHS; pass kernel=okl.Gaussian(sigma)")
    tuning_seed = max(TUNING_SEED, 1 + max(seeds, default=0))
    chosen = choose(streams, lines, grids, tuning_seed, options) if grids else {}
    table = [
        make_cell(stream, name, setting, maker, seed, order, chosen.get((stream, name, setting)))
        for stream in streams
        for name, makers in lines.items()
        for setting, maker in enumerate(makers)
        for seed, order in [(seed, seed) for seed in seeds] or [(0, None)]
    ]
    return play_table(table, options, regret)


def play_table(table: list[Cell], options: Options, lam: Penalty | None) -> Table:
    """Play cells and return their table, with the regret if lam is given."""
    rows = play_cells(table, options)
    best = lam and add_regret(table, rows, lam, options.n_jobs)
    return Table(rows, lam and {"lam": lam, "best": best})


# ---- arguments ----


def check_seeds(permutations: int | Sequence[int]) -> list[int]:
    """Return the seeds of the permutations; an empty list means the given order."""
    if isinstance(permutations, int | np.integer):
        return list(range(checks.require_count("permutations", permutations, 0)))
    what = "a number of permutations, or a list of different seeds"
    seeds = checks.require_different("permutations", permutations, 1, what)
    return [checks.require_seed("a seed of permutations", seed) for seed in seeds]


def check_penalty(name: str, lam: Penalty) -> None:
    """Raise ValueError unless lam, or the lam of each loss, is > 0."""
    for value in lam.values() if isinstance(lam, Mapping) else [lam]:
        checks.require_positive(name, value)


def name_all(names: Iterable[str], values: Iterable[Any]) -> dict[str, Any]:
    """Return values by name; a name that is taken gets a number."""
    named: dict[str, Any] = {}
    for name, value in zip(names, values, strict=True):
        numbered = (f"{name} {i}" for i in count(2))
        named[name if name not in named else next(n for n in numbered if n not in named)] = value
    return named


def _is_pair(value: Any) -> bool:
    """Say whether this is (X, y), not a tuple of two data sets."""
    sets = str | tuple | datasets.Dataset
    pair = isinstance(value, tuple) and len(value) == 2
    return pair and not any(isinstance(v, sets) for v in value)


def name_streams(data: Any, kernel: Any = None) -> list[Stream]:
    """Return the streams of a sweep, each with its kernel."""
    what = "the name of a data set, a Dataset, a pair (X, y), or a list or mapping of these"
    if isinstance(data, str | datasets.Dataset) or _is_pair(data):
        data = [data]
    if isinstance(data, list | tuple):
        names = [v if isinstance(v, str) else getattr(v, "name", f"data {i}")
                 for i, v in enumerate(data)]  # fmt: skip
        data = name_all(names, data)
    checks.require(isinstance(data, Mapping) and len(data) > 0, "data", data, what)
    if kernel is not None:
        check_kernel("kernel", kernel)
    streams = []
    for name, value in data.items():
        loaded = datasets.load(value) if isinstance(value, str) else value
        pair = (loaded.X, loaded.y) if isinstance(loaded, datasets.Dataset) else loaded
        checks.require(_is_pair(pair), f"data {name!r}", value, what)
        streams.append(cells.make_stream(str(name), *pair, kernel))
    return streams


def name_learners(learners: Any) -> dict[str, list[Maker]]:
    """Return the settings of each learner by its name."""
    what = "a learner, a function that returns one, or a list or mapping of these"
    if can_learn(learners) or callable(learners):
        learners = [learners]
    if not isinstance(learners, Mapping):
        learners = checks.require_list("learners", learners, what)
        learners = name_all([getattr(v, "__name__", type(v).__name__) for v in learners], learners)
    checks.require(bool(learners), "learners", learners, what)
    lines = {}
    for name, value in learners.items():
        makers = list(value) if isinstance(value, list | tuple) else [value]
        good = [can_learn(v) or callable(v) and not isinstance(v, type) for v in makers]
        checks.require(bool(good) and all(good), f"learner {name!r}", value, what)
        lines[str(name)] = [adapt(v) if can_learn(v) else v for v in makers]
    return lines


def list_required(maker: Callable[..., Learner]) -> set[str]:
    """Return the arguments of a function that have no default."""
    parameters = inspect.signature(maker).parameters.values()
    return {one.name for one in parameters if one.default is inspect.Parameter.empty}


def _list_tunable(maker: Maker) -> set[str]:
    is_learner = isinstance(maker, Learner)
    return set(maker.get_params() if is_learner else inspect.signature(maker).parameters)


def expand_grids(
    tune: Mapping[str, Any] | None, lines: Mapping[str, list[Maker]]
) -> dict[str, list[Choice]]:
    """Return the combinations to choose from, by learner."""
    what = "a mapping of parameters to lists of one value or more"
    tune = {} if tune is None else tune
    checks.require(isinstance(tune, Mapping), "tune", tune, what)
    values = {name: checks.require_list("tune", given, what) for name, given in tune.items()}
    checks.require(all(values.values()), "tune", tune, what)
    unknown, grids = set(values), {}
    for name, makers in lines.items():
        tunable = set.intersection(*map(_list_tunable, makers))
        unknown -= tunable
        grid = {k: given for k, given in values.items() if k in tunable}
        if grid:
            grids[name] = [dict(zip(grid, point, strict=True)) for point in product(*grid.values())]
    if unknown:
        raise ValueError(f"tune has unknown hyper-parameters: {', '.join(sorted(unknown))}")
    return grids


# ---- cells ----


def make_cell(
    stream: Stream, name: str, setting: int, maker: Maker, seed: int, order: int | None,
    choice: Choice | str | None = None,
) -> Cell:  # fmt: skip
    """Return a cell with its learner, or with the error of making it.

    choice : values of tuned parameters, or why none could be chosen.
    """
    head = {
        "data": stream.name, "learner": name, "setting": setting, "seed": seed,
        "permutation": order, "d": stream.X.shape[1], "chosen": "", "parameters": "",
    }  # fmt: skip
    try:
        if isinstance(choice, str):
            raise ValueError(choice)
        player = _make_learner(maker, stream, seed, choice or {})
    except Exception as error:
        return Cell(stream, None, order, head | {"error": f"{type(error).__name__}: {error}"})
    text = ", ".join(f"{k}={v!r}" for k, v in (choice or {}).items())
    return Cell(stream, player, order, head | {"chosen": text, "parameters": repr(player)})


def _make_learner(maker: Maker, stream: Stream, seed: int, choice: Choice) -> Learner:
    if isinstance(maker, Learner):
        player = clone(maker).set_params(**choice)
        params = player.get_params()
        names = [k for k in params if k.split("__")[-1] == "seed" and k not in choice]
        return player.set_params(**{k: params[k] + seed for k in names})
    n, d = stream.X.shape
    given = {"T": n, "d": d, "X": stream.X, "kernel": stream.kernel, "seed": seed}
    required = list_required(maker)
    player = maker(**{k: v for k, v in given.items() if k in required} | choice)
    checks.require(can_learn(player), "the function's result", player, "a learner")
    return clone(adapt(player))


def play_cells(table: Sequence[Cell], options: Options) -> list[dict[str, Any]]:
    """Return the row of each cell; play the cells that are not in the folder."""
    rows = [dict.fromkeys(COLUMNS) | cell.head for cell in table]
    left, names = [], {}
    for i, cell in enumerate(table):
        if cell.player is None:
            continue
        columns = None
        if options.path is not None:
            names[i] = cells.name_cell(cell, options)
            columns = cells.load_cell(options.path, names[i])
        if columns is None:
            left.append(i)
        rows[i] |= columns or {}
    done, waiting = len(table) - len(left), [table[i] for i in left]
    with (
        Bar(total=len(table), initial=done, unit=" run", disable=not options.progress) as bar,
        one_blas_thread,
    ):
        compile_loops(waiting, options.of_run)
        calls = [(cell, options) for cell in waiting]
        for k, columns in cells.call_all(cells.play_cell, calls, options.n_jobs):
            rows[left[k]] |= columns
            if options.path is not None and not columns["error"]:
                cells.save_cell(options.path, names[left[k]], columns)
            bar.update()
    return rows


def compile_loops(table: Sequence[Cell], of_run: dict[str, Any]) -> None:
    """Play the first rounds of each learner, so that no run's ``seconds`` include compilation."""
    limit = min(WARM_UP_SECONDS, of_run.get("time_limit") or WARM_UP_SECONDS)
    options = Options(of_run | {"time_limit": limit})
    for cell in {(cell.head["learner"], type(cell.player)): cell for cell in table}.values():
        X, y = cell.stream.X[:WARM_UP_ROWS], cell.stream.y[:WARM_UP_ROWS]
        cells.play_cell(cell._replace(stream=replace(cell.stream, X=X, y=y), order=None), options)


def choose(
    streams: Sequence[Stream], lines: Mapping[str, list[Maker]],
    grids: Mapping[str, list[Choice]], seed: int, options: Options,
) -> dict[tuple, Choice | str]:  # fmt: skip
    """Return the best combination by (stream, learner, setting); a text if none could be tried."""
    keys, table = [], []
    for stream in streams:
        for name, grid in grids.items():
            for (setting, maker), choice in product(enumerate(lines[name]), grid):
                keys.append(((stream, name, setting), choice))
                table.append(make_cell(stream, name, setting, maker, seed, seed, choice))
    scores: dict[tuple, list[tuple[float, Choice | str]]] = {}
    rows = play_cells(table, options._replace(measure=None))
    for (place, choice), row in zip(keys, rows, strict=True):
        if row["error"]:
            scored = np.inf, f"tuning, {choice}: {row['error']}"
        elif not row["finished"]:  # at the time limit: chosen only if nothing else is left
            scored = sys.float_info.max, choice
        else:
            scored = row["mean_loss"] if row["mistakes"] is None else row["mistakes"], choice
        scores.setdefault(place, []).append(scored)
    return {place: min(tried, key=itemgetter(0))[1] for place, tried in scores.items()}


def add_regret(
    table: Sequence[Cell], rows: list[dict[str, Any]], lam: Penalty, n_jobs: int | None
) -> dict[str, float]:
    """Add the regret to the rows; return min_f sum loss + lam |f|^2 by "data, loss"."""
    whole, wanted = [], {}
    for cell, row in zip(table, rows, strict=True):
        if not row["error"] and row["n"] == len(cell.stream.X):
            place = f"{row['data']}, {row['loss']}"
            whole.append((place, row))
            wanted[place] = cell.stream, lam, row["loss"]
    places, best = list(wanted), {}
    for k, least in cells.call_all(find_best, list(wanted.values()), n_jobs):
        best[places[k]] = least
    for place, row in whole:
        if isinstance(best[place], str):
            row["error"] = f"no regret: {best[place]}"
        else:
            row["regret"] = row["total_loss"] - best[place]
    return {place: best[place] for place in places if not isinstance(best[place], str)}


def find_best(stream: Stream, lam: Penalty, loss: str) -> float | str:
    """Return min_f sum loss + lam |f|^2 of a stream, or the error as text."""
    try:
        lam = lam[loss] if isinstance(lam, Mapping) else lam
        best = theory.Hindsight(stream.kernel, stream.X, stream.y, lam, loss).comparator()
        return float(best.loss + lam * best.norm**2)
    except (ValueError, FloatingPointError, KeyError) as error:
        return f"{type(error).__name__}: {error}"
