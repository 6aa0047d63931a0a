"""Learners x data sets x permutations in one call: ``sweep``."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from oklnumba import theory
from oklnumba.components.kernels import check_kernel
from oklnumba.core import checks
from oklnumba.core.display import Bar
from oklnumba.core.params import clone as anew, describe as told
from oklnumba.data import datasets
from oklnumba.experiments import cells
from oklnumba.experiments.cells import Cell, Measure, Options, Stream
from oklnumba.experiments.table import Table
from oklnumba.learners.base.learner import Learner as Player

MOST_RUNS = 10**6  # of one learner: more are a slip
TUNING_SEED = 1000  # of the permutation on which settings are chosen, or one beyond all others
COLUMNS = (
    "data", "learner", "setting", "permutation", "n", "d", "loss", "mean_loss", "mistakes",
    "regret", "size", "seconds", "memory", "peak", "finished", "total_loss", "seed", "chosen",
    "parameters", "versions", "error",
)  # fmt: skip

Maker = Player | Callable[..., Player]
Choice = dict[str, Any]  # of tuned parameters


def sweep(
    learners: Any,
    data: Any,
    permutations: int | Sequence[int] = 1,
    tune: Mapping[str, Any] | None = None,
    *,
    kernel: Any = None,
    regret: float | Mapping[str, float] | None = None,
    measure: Measure | None = None,
    backend: str | None = None,
    n_jobs: int | None = None,
    path: str | os.PathLike | None = None,
    time_alone: bool = False,
    progress: bool = False,
    **of_run: Any,
) -> Table:
    """Play learners on data sets over permutations of their rows; return a table, a row a run.

    Each run is a cell of its own: one that fails is recorded with its error and stops nothing. The
    numbers do not depend on where and beside what a cell is played (BLAS keeps to one thread);
    ``seconds`` and ``peak`` do.

    Parameters
    ----------
    learners : learner, function, or a list or mapping of these
        By name, or named by their class. A list under one name makes one line of several settings.
        A function is called with those of these arguments that it names, without a default: ``T``
        (rounds), ``d`` (width), ``X`` (inputs as they are in the data, unpermuted), ``kernel``,
        ``seed`` (that of the permutation); and with what is tuned. A learner is copied and starts
        without data; every hyper-parameter ``seed`` of it is moved by the permutation's seed.
    data : name, Dataset, pair (X, y), or a list or mapping of these
        Names are those of ``okl.datasets``, with inputs scaled to [-1, 1].
    permutations : int or sequence of int
        Number of permutations, 0, 1, ..., or their seeds: ``np.random.default_rng(seed)``
        permutes the rows, as ``datasets.load(..., permute=seed)`` does. 0: the order given, once.
    tune : mapping, optional
        Of parameters (of the learner, ``kernel__sigma`` for those of parts, or of the function) to
        values, for every learner that has them, or of learners' names to such mappings. All
        combinations play a permutation of their own, with seed 1000 or one beyond all of
        ``permutations``; that with the fewest mistakes (where labels are -1 and +1, else with the
        least loss) plays the others, and is in the column ``chosen``.
    kernel : Kernel, or mapping of data to Kernel, optional
        For ``regret`` and for functions that ask for it.
    regret : float > 0, or mapping of loss to float, optional
        The lam of min_f sum loss + lam |f|^2 over the RKHS of ``kernel``, the regret against which
        is then recorded, in the learner's own loss; one ``theory.Hindsight`` for all runs of a loss
        on a data set.
    measure : function of (learner, run), optional
        Returns more columns, a dict of numbers and texts, from the learner after its run. A ``Run``
        among them, such as this one, is kept too, without its data.
    backend : str, optional
        Of joblib: "loky" (processes), "dask" (the running cluster), "threading". None: threads, or
        what ``joblib.parallel_config`` says; without joblib (``pip install oklnumba[sweep]``) cells
        are played one after another, in the calling thread.
    n_jobs : int, optional
        Cells played side by side; None: what ``joblib.parallel_config`` says, or as many as there
        are cores (for "dask": workers).
    path : path, optional
        Folder, made if need be, in which each finished cell is kept as soon as it is known; a
        second call takes from it what it has. Cells are told apart by hyper-parameters, data,
        permutation, further arguments and versions. Failed cells are tried again.
    time_alone : bool
        Play the cells of the table, not those of tuning, one after another in this process, so that
        their ``seconds`` compare; loops are compiled before.
    progress : bool
        Show a progress bar with the time left.
    **of_run
        Further keywords of ``okl.run``: ``loss``, ``time_limit``, ``every``, ``record`` (sums are
        of all rounds in any case, ``size`` is the largest of those recorded).

    Returns
    -------
    Table
        With the columns ``data``, ``learner``, ``setting`` (place in a list), ``permutation``,
        ``n`` (rounds played), ``d``, ``loss``, ``mean_loss``, ``mistakes`` (share of rounds; None
        for regression), ``regret`` (None unless asked for and all rounds were played), ``size``
        (largest dictionary of the run, or features), ``seconds`` (in the learner), ``memory``
        (bytes of the learner as it is pickled after the run: what it holds), ``peak`` (bytes by
        which the resident set of the process rose at most during the run; None where another cell
        ran in a thread beside it, or the system is not Linux, whose own record of the peak begins
        anew with each cell), ``finished``, ``total_loss``, ``seed``, ``chosen``, ``parameters``,
        ``versions``, ``error`` ("" where there was none), then those of ``measure``.

    Raises
    ------
    ValueError
        If an argument is not valid.
    FileNotFoundError
        If a named data set is nowhere to be had.
    ImportError
        If ``backend`` is given, or ``n_jobs`` other than 1, and joblib is not there.

    Examples
    --------
    >>> import oklnumba as okl
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
    >>> table.select(learner="FOGD")["chosen"]
    array(['step=10.0', 'step=10.0', 'step=10.0'], dtype='<U9')
    """
    seeds = seeds_of(permutations)
    streams = streams_of(data, kernel)
    lines = lines_of(learners)
    grids = grids_of(tune, lines)
    options = Options(of_run, measure, None if path is None else checks.as_path(path))
    time_alone = checks.require_flag("time_alone", time_alone)
    progress = checks.require_flag("progress", progress)
    regret = checked_penalty("regret", regret)
    if regret is not None and any(s.kernel is None for s in streams):
        raise ValueError("regret needs the kernel of its RKHS; pass kernel=okl.Gaussian(sigma)")
    where = cells.checked_where(backend, n_jobs)
    if measure is not None:
        checks.require(callable(measure), "measure", measure, "a function of (learner, run)")
    chosen: dict[tuple, Choice | str] = {}
    if grids:
        tuning_seed = max(TUNING_SEED, 1 + max(seeds, default=0))
        chosen = choose(streams, lines, grids, tuning_seed, options._replace(measure=None), where,
                        progress)  # fmt: skip
    order = [(seed, seed) for seed in seeds] or [(0, None)]
    table = [
        made(stream, name, setting, maker, seed, permuted, chosen.get((stream.name, name, setting)))
        for stream in streams
        for name, makers in lines.items()
        for setting, maker in enumerate(makers)
        for seed, permuted in order
    ]
    return play_table(table, options, where, regret, time_alone, progress)


def play_table(
    table: list[Cell],
    options: Options,
    where: tuple[str | None, int | None],
    regret: float | Mapping[str, float] | None,
    time_alone: bool,
    progress: bool,
) -> Table:
    """Play cells and return the table of them."""
    found = play_cells(table, options, (None, 1) if time_alone else where, progress,
                       cells.TIMED_ROWS if time_alone else cells.FIRST_ROWS)  # fmt: skip
    rows = [dict.fromkeys(COLUMNS) | cell.head | out
            for cell, out in zip(table, found, strict=True)]  # fmt: skip
    about: dict[str, Any] = {}
    if regret is not None:
        about = {"lam": regret, "best": against_the_best(table, rows, regret, options.path)}
    return Table(rows, about)


# ---- what the arguments are ----


def seeds_of(permutations: int | Sequence[int]) -> list[int]:
    """Return the seeds of permutations; none for the order given."""
    if isinstance(permutations, int | np.integer):
        permutations = checks.require_count("permutations", permutations, 0)
        checks.require(permutations <= MOST_RUNS, "permutations", permutations, f"<= {MOST_RUNS}")
        return list(range(permutations))
    what = "a number of permutations, or seeds that differ"
    seeds = [checks.require_seed(seed, "a seed of permutations")
             for seed in checks.require_list("permutations", permutations, what)]  # fmt: skip
    checks.require(
        bool(seeds) and len(set(seeds)) == len(seeds),
        "permutations", permutations, what,
    )  # fmt: skip
    return seeds


def checked_penalty(
    name: str, lam: float | Mapping[str, float] | None
) -> float | dict[str, float] | None:
    """Return lam, or that of each loss, > 0; None is none."""
    if isinstance(lam, Mapping):
        return {loss: checks.require_positive(name, value) for loss, value in lam.items()}
    return None if lam is None else checks.require_positive(name, lam)


def _pair(one: Any) -> bool:
    """Say whether this is inputs and labels, and not two data sets."""
    return (
        isinstance(one, tuple)
        and len(one) == 2
        and not any(isinstance(part, str | tuple | datasets.Dataset) for part in one)
    )


def streams_of(data: Any, kernel: Any = None) -> list[Stream]:
    """Return the data sets of a sweep, each with its kernel."""
    if isinstance(data, str | datasets.Dataset) or _pair(data):
        data = [data]
    if not isinstance(data, Mapping):
        what = "a name, a Dataset, a pair (X, y), or a list or mapping of these"
        checks.require(isinstance(data, list | tuple) and len(data) > 0, "data", data, what)
        named: dict[str, Any] = {}
        for i, one in enumerate(data):
            name = one if isinstance(one, str) else getattr(one, "name", f"data {i}")
            named[_unused(name, named)] = one
        data = named
    streams = []
    for name, one in data.items():
        if isinstance(one, str):
            one = datasets.load(one)
        if isinstance(one, datasets.Dataset):
            one = one.X, one.y
        if not _pair(one):
            raise ValueError(
                f"data {name!r} must be the name of a set, a Dataset or a pair (X, y), "
                f"but is {told(one)}"
            )
        own = kernel.get(name) if isinstance(kernel, Mapping) else kernel
        if own is not None:
            check_kernel(own)
        streams.append(cells.stream_of(str(name), *one, own))
    checks.require(bool(streams), "data", data, "one data set or more")
    return streams


def _unused(name: str, taken: Mapping[str, Any]) -> str:
    number = 2
    while (found := name if number == 2 and name not in taken else f"{name} {number}") in taken:
        number += 1
    return found


def lines_of(learners: Any) -> dict[str, list[Maker]]:
    """Return the settings of each line by its name."""
    if isinstance(learners, Player) or callable(learners):
        learners = [learners]
    if not isinstance(learners, Mapping):
        named: dict[str, Any] = {}
        what = "a learner, a function, or a list or mapping of these"
        for one in checks.require_list("learners", learners, what):
            name = getattr(one, "__name__", type(one).__name__)
            named[_unused(name, named)] = one
        learners = named
    lines = {
        str(name): list(ones) if isinstance(ones, list | tuple) else [ones]
        for name, ones in learners.items()
    }
    for name, ones in lines.items():
        for one in ones:
            if isinstance(one, type) or not (isinstance(one, Player) or callable(one)):
                raise ValueError(
                    f"learner {name!r} must be a learner, a function that returns one, or a list "
                    f"of these, but is {told(one)}"
                )
    checks.require(bool(lines) and all(lines.values()), "learners", learners, "one or more")
    return lines


def _arguments(maker: Maker) -> set[str]:
    """Return what can be tuned: hyper-parameters of a learner, arguments of a function."""
    if isinstance(maker, Player):
        return set(maker.get_params())
    return set(inspect.signature(maker).parameters)


def needed(maker: Callable[..., Player]) -> set[str]:
    """Return the arguments of a function that have no default."""
    parameters = inspect.signature(maker).parameters.values()
    return {one.name for one in parameters if one.default is inspect.Parameter.empty}


def grids_of(
    tune: Mapping[str, Any] | None, lines: Mapping[str, list[Maker]]
) -> dict[str, list[Choice]]:
    """Return the combinations to choose from, for each line that has any."""
    if tune is None or isinstance(tune, Mapping) and not tune:
        return {}
    checks.require(isinstance(tune, Mapping), "tune", tune, "a mapping of parameters to values")
    own = any(isinstance(values, Mapping) for values in tune.values())
    unknown = set(tune) - set(lines) if own else set()
    grids: dict[str, list[Choice]] = {}
    for name, makers in lines.items():
        has = set.intersection(*map(_arguments, makers))
        asked = tune.get(name, {}) if own else {k: v for k, v in tune.items() if k in has}
        what = "parameters with one value or more each, in a list"
        checks.require(isinstance(asked, Mapping), "tune", tune, what)
        unknown |= {f"{name}: {k}" for k in asked if k not in has}
        values = [
            [v.item() if isinstance(v, np.generic) else v for v in one]
            for one in (checks.require_list("tune", vs, what) for vs in asked.values())
        ]
        checks.require(all(values), "tune", tune, what)
        if asked:
            grids[name] = [dict(zip(asked, point, strict=True)) for point in product(*values)]
    if not own:
        unknown |= set(tune) - {k for grid in grids.values() for k in grid[0]}
    if unknown:
        raise ValueError(
            f"tune names what no learner has: {', '.join(sorted(unknown))}; it takes arguments "
            "of the functions and hyper-parameters of the learners (kernel__sigma for those of "
            "parts), or {learner: {parameter: values}}"
        )
    return grids


# ---- cells ----


def made(
    stream: Stream, name: str, setting: int, maker: Maker, seed: int, order: int | None,
    choice: Choice | str | None = None,
) -> Cell:  # fmt: skip
    """Return a cell with its learner, or with the error of making it.

    choice : tuned parameters; text: why none could be chosen.
    """
    head = {
        "data": stream.name, "learner": name, "setting": setting, "seed": seed,
        "permutation": order, "d": stream.X.shape[1], "chosen": "", "parameters": "",
    }  # fmt: skip
    try:
        if isinstance(choice, str):
            raise ValueError(choice)
        player = _learner(maker, stream, seed, choice or {})
    except Exception as error:
        return Cell(stream, None, order, head | {"error": f"{type(error).__name__}: {error}"})
    text = ", ".join(f"{k}={v!r}" for k, v in (choice or {}).items())
    return Cell(stream, player, order, head | {"chosen": text, "parameters": repr(player)})


def _learner(maker: Maker, stream: Stream, seed: int, choice: Choice) -> Player:
    """Return the learner that a line plays."""
    if isinstance(maker, Player):
        player = anew(maker).set_params(**choice)
        names = [k for k in player.get_params() if k.split("__")[-1] == "seed" and k not in choice]
        return player.set_params(**{k: player.get_params()[k] + seed for k in names})
    n, d = stream.X.shape
    known = {"T": n, "d": d, "X": stream.X, "kernel": stream.kernel, "seed": seed}
    asked = needed(maker)
    player = maker(**{k: v for k, v in known.items() if k in asked} | choice)
    if not isinstance(player, Player):
        raise ValueError(f"the function must return a learner, but returned {told(player)}")
    return anew(player)


def play_cells(
    table: Sequence[Cell],
    options: Options,
    where: tuple[str | None, int | None],
    progress: bool,
    first_rows: int = cells.FIRST_ROWS,
) -> list[dict[str, Any]]:
    """Return what each cell left, playing those that are not kept."""
    if options.path is not None:
        options.path.mkdir(parents=True, exist_ok=True)
    found: list[dict[str, Any]] = [{} for _ in table]
    keys: list[str | None] = [None] * len(table)
    left = []
    for i, cell in enumerate(table):
        if cell.player is None:
            continue
        if options.path is not None:
            keys[i] = cells.key(cell, options)
            before = cells.kept(options.path, keys[i])
            if before is not None:
                found[i] = before
                continue
        left.append(i)
    tasks = [_task(table[i], options) for i in left]
    bar = Bar(total=len(table), initial=len(table) - len(left), unit=" run", disable=not progress)
    with bar, threadpool_limits(1):
        compile_loops([table[i] for i in left], options, first_rows)
        for j, out in cells.results(tasks, *where):
            i = left[j]
            found[i] = out
            if options.path is not None and not out["error"]:
                cells.keep(options.path, str(keys[i]), out)
            bar.update()
    return found


def _task(cell: Cell, options: Options) -> tuple:
    return (
        cell.player, cell.stream.X, cell.stream.y, cell.order, options.of_run, options.measure,
    )  # fmt: skip


def compile_loops(table: Sequence[Cell], options: Options, rows: int) -> None:
    """Play the first rounds of each line: threads would wait for one that compiles."""
    lines = {(cell.head["learner"], type(cell.player)): cell for cell in table}
    ways = {cells.FIRST_ROWS: options.of_run}
    ways[rows] = options.of_run | ({"time_limit": cells.TIMED_SECONDS} if rows not in ways else {})
    for cell, (n, of_run) in product(lines.values(), ways.items()):
        assert cell.player is not None
        cells.play(cell.player, cell.stream.X[:n], cell.stream.y[:n], None, of_run, None)


def choose(
    streams: Sequence[Stream],
    lines: Mapping[str, list[Maker]],
    grids: Mapping[str, list[Choice]],
    seed: int,
    options: Options,
    where: tuple[str | None, int | None],
    progress: bool,
) -> dict[tuple, Choice | str]:
    """Return the best combination by data, learner and setting; text where none could be played."""
    places = [
        (stream, name, setting, maker)
        for stream in streams
        for name in grids
        for setting, maker in enumerate(lines[name])
    ]
    points = [(place, choice) for place in places for choice in grids[place[1]]]
    table = [made(*place, seed, seed, choice) for place, choice in points]
    best: dict[tuple, tuple[float, Choice | str]] = {}
    found = play_cells(table, options, where, progress)
    for ((stream, name, setting, _), choice), cell, out in zip(points, table, found, strict=True):
        told = cell.head | out
        place = stream.name, name, setting
        if told["error"]:
            best.setdefault(place, (np.inf, f"tuning, {choice}: {told['error']}"))
            continue
        score = out["mean_loss"] if out["mistakes"] is None else out["mistakes"]
        unlimited = score if out["finished"] else np.inf
        known, before = best.get(place, (np.inf, ""))
        if unlimited < known or isinstance(before, str):
            best[place] = unlimited, choice
    return {place: choice for place, (_, choice) in best.items()}


# ---- regret ----


def against_the_best(
    table: Sequence[Cell],
    rows: list[dict[str, Any]],
    lam: float | Mapping[str, float],
    path: Path | None,
) -> dict[str, float]:
    """Fill in the regret of the rows; return min_f sum loss + lam |f|^2 by data and loss."""
    best: dict[tuple[str, str], float] = {}
    for cell, row in zip(table, rows, strict=True):
        stream = cell.stream
        if row["error"] or row["n"] < len(stream.X):
            continue
        place = stream.name, row["loss"]
        try:
            if place not in best:
                own = lam[row["loss"]] if isinstance(lam, Mapping) else lam
                best[place] = least(stream, row["loss"], own, path)
            row["regret"] = row["total_loss"] - best[place]
        except (ValueError, FloatingPointError, KeyError) as error:
            row["error"] = f"no regret: {type(error).__name__}: {error}"
    return {", ".join(place): value for place, value in best.items()}


def least(stream: Stream, loss: str, lam: float, path: Path | None) -> float:
    """Return min_f sum loss + lam |f|^2 over the RKHS of a stream's kernel, kept like a cell."""
    what = cells.key_of_best(stream, loss, lam)
    before = None if path is None else cells.kept(path, what)
    if before is not None:
        return before["best"]
    found = theory.Hindsight(stream.kernel, stream.X, stream.y, lam, loss).comparator()
    value = float(found.loss + lam * found.norm**2)
    if path is not None:
        cells.keep(path, what, {"best": value})
    return value
