"""Learners x data sets x permutations in one call: ``sweep``."""

import inspect
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count, product
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from oklnumba import theory
from oklnumba.components.kernels import check_kernel
from oklnumba.core import checks
from oklnumba.core.display import Bar
from oklnumba.core.guard import one_blas_thread
from oklnumba.core.params import clone
from oklnumba.data import datasets
from oklnumba.experiments import cells
from oklnumba.experiments.cells import Cell, Measure, NamedData, Options
from oklnumba.experiments.table import Table
from oklnumba.learners.base.learner import Learner
from oklnumba.learners.outside import adapt, can_learn

WARM_UP_ROWS, WARM_UP_SECONDS = 1500, 1.0  # enough to fill and compile dictionaries of usual size
TUNING_SEED = 1000

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
    data : name, Dataset, pair (X, y), stream, or a list or mapping of these
        Data sets by name have inputs scaled to [-1, 1]. A stream is ``okl.stream(path, label=...)``
        or a function that returns an iterator of pairs (X, y). It is played in its order, and each
        process opens its file.
    permutations : int or sequence of int
        Number of permutations, with the seeds 0, 1, ..., or the seeds, as in
        ``datasets.load(..., permute=seed)``. 0: one run in the given order. Of a stream: seeds of
        the learners alone.
    tune : mapping, optional
        From hyper-parameters (``kernel__sigma`` for nested ones) or arguments of functions to lists
        of values, for every learner that has them. All combinations play one more permutation, with
        seed 1000 or a larger one that the table does not use. The best combination plays the table
        and is in the column ``chosen``: fewest mistakes if labels are -1 and +1, else least loss.
        Streams have no permutation for it.
    kernel : Kernel, optional
        For ``regret`` and for functions that take it.
    regret : float > 0, or mapping of loss to float, optional
        The lam of min_f sum loss + lam |f|^2 over the RKHS of ``kernel``, against which the regret
        in the learner's loss is recorded, on the rows with a label. Beyond 20,000 rows it is known
        up to an interval, ``about["interval"]`` of the table (see ``theory.Hindsight``).
    measure : function of (learner, run), optional
        Returns a dict of more columns: numbers, texts, or Runs (stored without their data).
    n_jobs : int, optional
        Runs played at the same time, as in joblib (``pip install joblib``): -1 for all
        cores; None for one, or what ``joblib.parallel_config(backend, n_jobs=...)`` sets, "loky" or
        "dask" for processes (docs/experiments.md). The default backend is threads.
    path : path, optional
        Folder for finished runs. A later call loads those with the same hyper-parameters, data,
        permutation, options, text of ``measure`` and versions: if what it calls has changed, name
        another folder. Failed runs and learners of other libraries are played again.
    progress : bool
        Show a bar of runs and best functions.
    **of_run
        Further keywords of ``okl.run``: ``loss``, ``time_limit``, ``every``, ``record``.

    Returns
    -------
    Table
        With the columns ``data``, ``learner``, ``setting`` (index in a list), ``permutation``,
        ``n`` (rounds played), ``d``, ``loss``, ``mean_loss``, ``mistakes`` (share of rounds; None
        for regression), ``regret`` (None unless all rounds were played; a warning says why else),
        ``size`` (largest dictionary of the run, or number of features), ``seconds`` (in the
        learner), ``memory`` (bytes of the pickled learner after the run; None if it has no pickle),
        ``finished``, ``total_loss``, ``seed``, ``chosen``, ``parameters``, ``versions``, ``error``
        ("" if none), and those of ``measure``.

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
    streams = name_streams(data, kernel)
    seeds = check_seeds(permutations)
    settings = name_learners(learners)
    grids = expand_grids(tune, settings)
    options = cells.check_options(of_run, measure, path, n_jobs, progress)
    if regret is not None:
        check_penalty("regret", regret)
        if any(stream.kernel is None for stream in streams):
            raise ValueError("regret needs the kernel of its RKHS; pass kernel=okl.Gaussian(sigma)")
    tuning_seed = max(TUNING_SEED, 1 + max(seeds, default=0))
    if grids and any(stream.y is None for stream in streams):
        raise ValueError(
            "tune needs a permutation of the rows, which a stream does not have; tune on its first "
            "rows, X, y = next(iter(stream)), and sweep the stream with the values chosen"
        )
    chosen = choose(streams, settings, grids, tuning_seed, options) if grids else {}
    orders: list[tuple[int, int | None]] = [(seed, seed) for seed in seeds] or [(0, None)]
    plan = [
        make_cell(stream, name, setting, maker, seed, order if stream.y is not None else None,
                  chosen.get((stream, name, setting)))
        for stream in streams
        for name, makers in settings.items()
        for setting, maker in enumerate(makers)
        for seed, order in orders
    ]  # fmt: skip
    return play_table(plan, options, regret)


def play_table(plan: list[Cell], options: Options, lam: Penalty | None) -> Table:
    """Play cells and return their table, with the regret if lam is given."""
    losses: dict[tuple[NamedData, str], None] = {}  # for which a best function is needed
    if lam is not None:
        given = options.of_run.get("loss")
        players = ((cell.stream, cell.player) for cell in plan if cell.player is not None)
        losses = dict.fromkeys((stream, one._recorded_loss(given).name) for stream, one in players)
    if isinstance(lam, Mapping) and (lacking := {loss for stream, loss in losses} - {*lam}):
        raise ValueError(
            f"no lam for the {', '.join(sorted(lacking))} loss, but for {', '.join(lam)}"
        )
    total = len(plan) + len(losses)
    with Bar(total=total, unit=" run", disable=not options.progress) as bar:
        rows = play_cells(plan, options, bar)
        if lam is None:
            return Table(rows)
        best, intervals = add_regret(plan, rows, lam, options, bar)
    return Table(rows, {"lam": lam, "best": best, "interval": intervals})


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


def _is_stream(value: Any) -> bool:
    """Say whether this is a file or a function that can be played again."""
    return callable(value) or hasattr(value, "count_rows")


def _is_pair(value: Any) -> bool:
    """Say whether this is (X, y), not a tuple of two data sets."""
    sets = str | tuple | datasets.Dataset
    pair = isinstance(value, tuple) and len(value) == 2
    return pair and not any(isinstance(v, sets) for v in value)


def name_streams(data: Any, kernel: Any = None) -> list[NamedData]:
    """Return the streams of a sweep, each with its kernel."""
    what = "a data set or its name, a pair (X, y), a stream, or a list or mapping of these"
    if isinstance(data, str | datasets.Dataset) or _is_pair(data) or _is_stream(data):
        data = [data]
    if isinstance(data, list | tuple):
        names = [v if isinstance(v, str) else getattr(v, "name", f"data {i}")
                 for i, v in enumerate(data)]  # fmt: skip
        data = name_all(names, data)
    checks.require(isinstance(data, Mapping) and len(data) > 0, "data", data, what)
    data = name_all(map(str, data), data.values())
    if kernel is not None:
        check_kernel("kernel", kernel)
    streams = []
    for name, value in data.items():
        loaded = datasets.load(value) if isinstance(value, str) else value
        pair = (loaded.X, loaded.y) if isinstance(loaded, datasets.Dataset) else loaded
        pair = (pair, None) if _is_stream(pair) else pair
        checks.require(_is_pair(pair), f"data {name!r}", value, what)
        X, y = pair
        streams.append(cells.make_stream(name, X, y, kernel))
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
    settings = {}
    for name, value in name_all(map(str, learners), learners.values()).items():
        makers = list(value) if isinstance(value, list | tuple) else [value]
        good = [can_learn(v) or callable(v) and not isinstance(v, type) for v in makers]
        checks.require(bool(good) and all(good), f"learner {name!r}", value, what)
        settings[name] = [adapt(v) if can_learn(v) else v for v in makers]
    return settings


def list_required(maker: Callable[..., Learner]) -> set[str]:
    """Return the arguments of a function that have no default."""
    parameters = inspect.signature(maker).parameters.values()
    return {one.name for one in parameters if one.default is inspect.Parameter.empty}


def _list_tunable(maker: Maker) -> set[str]:
    if isinstance(maker, Learner):
        return set(maker.get_params())
    return set(inspect.signature(maker).parameters)


def expand_grids(
    tune: Mapping[str, Any] | None, settings: Mapping[str, list[Maker]]
) -> dict[str, list[Choice]]:
    """Return the combinations to choose from, by learner."""
    what = "a mapping of parameters to lists of one value or more"
    tune = {} if tune is None else tune
    checks.require(isinstance(tune, Mapping), "tune", tune, what)
    values = {name: checks.require_list("tune", given, what) for name, given in tune.items()}
    checks.require(all(values.values()), "tune", tune, what)
    unknown, grids = set(values), {}
    for name, makers in settings.items():
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
    stream: NamedData, name: str, setting: int, maker: Maker, seed: int, order: int | None,
    choice: Choice | str | None = None,
) -> Cell:  # fmt: skip
    """Return a cell with its learner, or with the error of making it.

    choice : values of tuned parameters, or why none could be chosen.
    """
    head = {
        "data": stream.name, "learner": name, "setting": setting, "seed": seed,
        "permutation": order, "d": stream.shape[1], "chosen": "", "parameters": "",
    }  # fmt: skip
    try:
        if isinstance(choice, str):
            raise ValueError(choice)
        player = _make_learner(maker, stream, seed, choice or {})
    except Exception as error:
        return Cell(stream, None, order, head | {"error": f"{type(error).__name__}: {error}"})
    text = ", ".join(f"{k}={v!r}" for k, v in (choice or {}).items())
    return Cell(stream, player, order, head | {"chosen": text, "parameters": repr(player)})


def _make_learner(maker: Maker, stream: NamedData, seed: int, choice: Choice) -> Learner:
    if isinstance(maker, Learner):
        player = clone(clone(maker).set_params(**choice), seed)
        return player.set_params(**{k: v for k, v in choice.items() if k.split("__")[-1] == "seed"})
    n, d = stream.shape
    given = {"T": n, "d": d, "X": stream.X, "kernel": stream.kernel, "seed": seed}
    required = list_required(maker)
    if "X" in required and stream.y is None:
        raise ValueError("a function of X needs arrays: a stream is not in memory")
    player = maker(**{k: v for k, v in given.items() if k in required} | choice)
    checks.require(can_learn(player), "the function's result", player, "a learner")
    return clone(adapt(player))


def play_cells(plan: Sequence[Cell], options: Options, bar: Bar) -> list[dict[str, Any]]:
    """Return the row of each cell; play the cells that are not in the folder."""
    rows = [dict.fromkeys(cells.COLUMNS) | cell.head for cell in plan]
    left, names = [], {}
    measures = [] if options.path is None else cells.describe_measures(options.measure)
    for i, cell in enumerate(plan):
        if cell.player is None:
            continue
        columns = None
        if options.path is not None and (name := cells.name_cell(cell, options.of_run, measures)):
            columns, names[i] = cells.load_cell(options.path, name), name
        if columns is None:
            left.append(i)
        rows[i] |= columns or {}
    waiting = [plan[i] for i in left]
    bar.initial = bar.n = len(plan) - len(left)  # which says nothing about the time of the rest
    with one_blas_thread:
        compile_loops(waiting, options.of_run)
        calls = [(options, cell.stream, cell.player, cell.order) for cell in waiting]
        for k, columns in cells.call_all(cells.play_cell, calls, options.n_jobs):
            rows[left[k]] |= columns
            if options.path is not None and left[k] in names and not columns["error"]:
                cells.save_cell(options.path, names[left[k]], columns)
            bar.update()
    return rows


def compile_loops(plan: Sequence[Cell], of_run: dict[str, Any]) -> None:
    """Play the first rounds of each learner, so that no run's ``seconds`` include compilation."""
    limit = min(WARM_UP_SECONDS, of_run.get("time_limit") or WARM_UP_SECONDS)
    options = Options(of_run | {"time_limit": limit})
    for cell in {(cell.head["learner"], type(cell.player)): cell for cell in plan}.values():
        X, y = (rows[:WARM_UP_ROWS] for rows in cell.stream.head)
        cells.play_cell(options, replace(cell.stream, X=X, y=y), cell.player, None)


def choose(
    streams: Sequence[NamedData], settings: Mapping[str, list[Maker]],
    grids: Mapping[str, list[Choice]], seed: int, options: Options,
) -> dict[tuple, Choice | str]:  # fmt: skip
    """Return the best combination by (stream, learner, setting); a text if none could be tried."""
    keys, plan = [], []
    for stream in streams:
        for name, grid in grids.items():
            for (setting, maker), choice in product(enumerate(settings[name]), grid):
                keys.append(((stream, name, setting), choice))
                plan.append(make_cell(stream, name, setting, maker, seed, seed, choice))
    scores: dict[tuple, list[tuple[float, Choice | str]]] = {}
    with Bar(total=len(plan), unit=" run", disable=not options.progress) as bar:
        rows = play_cells(plan, options._replace(measure=None), bar)
    for (place, choice), row in zip(keys, rows, strict=True):
        if row["error"]:
            scored: tuple[float, Choice | str] = np.inf, f"tuning, {choice}: {row['error']}"
        elif not row["finished"]:  # at the time limit: chosen only if nothing else is left
            scored = sys.float_info.max, choice
        else:
            scored = row["mean_loss"] if row["mistakes"] is None else row["mistakes"], choice
        scores.setdefault(place, []).append(scored)
    return {place: min(tried, key=itemgetter(0))[1] for place, tried in scores.items()}


def add_regret(
    plan: Sequence[Cell], rows: list[dict[str, Any]], lam: Penalty, options: Options, bar: Bar
) -> tuple[dict[str, float], dict[str, list[float]]]:  # fmt: skip
    """Add the regret to the rows; return min_f sum loss + lam |f|^2 by "data, loss" and bounds."""
    whole, wanted = [], {}
    if any(row["regret"] is not None for row in rows):
        checks.warn("the table's own regret replaces that of measure; give that another name")
    for cell, row in zip(plan, rows, strict=True):
        row["regret"] = None
        if not row["error"] and row["n"] == cell.stream.shape[0]:
            place = f"{row['data']}, {row['loss']}"
            whole.append((place, row))
            wanted[place] = cell.stream, lam, row["loss"], options.path
    places, found = list(wanted), {}
    for k, values in cells.call_all(find_best, list(wanted.values()), options.n_jobs):
        if "error" in values:  # the runs are as good as without it
            checks.warn(f"no regret for {places[k]}: {values['error']}")
        else:
            found[places[k]] = values
        bar.update()
    for place, row in whole:
        if place in found:
            row["regret"] = row["total_loss"] - found[place]["best"]
    found = {place: found[place] for place in places if place in found}
    best = {place: values["best"] for place, values in found.items()}
    return best, {place: [one["lower"], one["upper"]] for place, one in found.items()}


def find_best(stream: NamedData, lam: Penalty, loss: str, path: Path | None) -> dict[str, Any]:
    """Return min_f sum loss + lam |f|^2 of a stream and its bounds, or the error as text."""
    try:
        lam = lam[loss] if isinstance(lam, Mapping) else lam
        name = cells.name_best(stream, lam, loss) if path else ""
        found = cells.load_cell(path, name) if path else None
        if not found:
            best = theory.Hindsight(stream.kernel, *stream.labelled, lam, loss).comparator()
            value = float(best.loss + lam * best.norm**2)
            found = {"best": value, "lower": best.lower, "upper": best.upper}
            if path:
                cells.save_cell(path, name, found)
        return found
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
