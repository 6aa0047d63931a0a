"""Cells of a sweep: each plays one learner on one permutation of one stream."""

import functools
import inspect
import json
import pickle
import platform
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from oklnumba.core import checks, inputs
from oklnumba.core.files import digest_of, find_target, replace_file, to_json
from oklnumba.core.guard import one_blas_thread
from oklnumba.core.params import Params, clone, to_spec
from oklnumba.experiments.table import as_cell
from oklnumba.learners.base.learner import Learner
from oklnumba.protocol.run import run
from oklnumba.protocol.runs import Run, read_labelled
from oklnumba.theory.passes import as_source

Measure = Callable[[Learner, Run], dict[str, Any]]
RUN_OPTIONS = "loss", "time_limit", "every", "record", "delay", "batch", "labels"
COLUMNS = (
    "data", "learner", "setting", "permutation", "n", "d", "loss", "mean_loss", "mistakes",
    "regret", "size", "seconds", "memory", "finished", "total_loss", "seed", "chosen",
    "parameters", "versions", "error",
)  # fmt: skip
HEAD_ROWS = 8192  # of a stream, on which learners are compiled and timed


@dataclass(frozen=True, eq=False)
class NamedData:
    """Inputs and labels with a name, and a kernel or None.

    y is None if X is a stream of pairs, an iterable or a function, which is played from its start.
    To other processes it travels once: joblib maps its arrays from a file, Dask scatters it.
    """

    name: str
    X: Any
    y: np.ndarray | None
    kernel: Any

    def __sizeof__(self) -> int:
        return sum(one.nbytes for one in self._packed)  # Dask scatters what is large, asking this

    def __reduce__(self) -> tuple:
        return _unpack, self._packed

    @functools.cached_property
    def _packed(self) -> tuple[np.ndarray, ...]:
        """A pickle and its buffers, kept: joblib writes an array to a file once."""
        own = "cloudpickle" if find_spec("cloudpickle") else "joblib.externals.cloudpickle"
        dumps = import_module(own).dumps  # joblib before 1.6 has its own
        buffers: list[pickle.PickleBuffer] = []
        fields = self.name, self.X, self.y, self.kernel
        head = dumps(fields, protocol=5, buffer_callback=buffers.append)
        return tuple(np.frombuffer(one, np.uint8) for one in (head, *(b.raw() for b in buffers)))

    @property
    def labelled(self) -> tuple[Any, Any]:
        """X and y of the rows with a label; of a stream a function that reads them, and None."""
        if self.y is None:
            return functools.partial(read_labelled, as_source(self.X), self.shape[0]), None
        there = inputs.find_labels(self.y)
        return self.X[there], self.y[there]

    def blocks(self) -> Iterator[tuple[Any, Any]]:
        """Yield pairs (X, y)."""
        return iter(as_source(self.X)() if self.y is None else [(self.X, self.y)])

    @functools.cached_property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        if hasattr(self.X, "shape"):
            return self.X.shape
        rows = self.X.count_rows() if hasattr(self.X, "count_rows") else None
        if rows is not None:
            return rows, self.X.width
        shapes = np.array([inputs.as_rows(block[0]).shape for block in self.blocks()])
        if not len(shapes):
            raise ValueError(f"data {self.name!r} has no rows")
        return int(shapes[:, 0].sum()), int(shapes[0, 1])

    @functools.cached_property
    def head(self) -> tuple[np.ndarray, np.ndarray]:
        """The first block."""
        X, y = next(self.blocks())
        return inputs.make_dense(inputs.as_rows(X)[:HEAD_ROWS]), np.asarray(y)[:HEAD_ROWS]

    @functools.cached_property
    def digest(self) -> str:
        """SHA-256 of the data: names such as "data 0" do not tell streams apart."""
        digests = []
        for X, y in self.blocks():
            y = np.asarray(y)
            y = np.array([*map(repr, y.tolist())]) if y.dtype == object else y
            digests.append(digest_of("", {"X": inputs.make_dense(inputs.as_rows(X)), "y": y}))
        return digests[0] if len(digests) == 1 else digest_of(" ".join(digests), {})


def _unpack(head: np.ndarray, *buffers: np.ndarray) -> NamedData:
    return NamedData(*pickle.loads(head.data, buffers=buffers))


class Cell(NamedTuple):
    """A learner without data, its stream, and the seed that permutes the rows (None: as given)."""

    stream: NamedData
    player: Learner | None  # None if it could not be made; then head["error"] says why
    order: int | None
    head: dict[str, Any]  # columns that do not need the run


class Options(NamedTuple):
    """Options of all cells of a sweep; ``of_run`` are keywords of okl.run."""

    of_run: dict[str, Any]
    measure: Measure | None = None
    path: Path | None = None
    n_jobs: int | None = None
    progress: bool = False


def check_options(of_run: Any, measure: Any, path: Any, n_jobs: Any, progress: Any) -> Options:
    """Return checked options; ImportError if ``n_jobs`` needs joblib and it is not installed."""
    for name in of_run:
        checks.require_choice("a keyword for okl.run", name, RUN_OPTIONS)
    if measure is not None:
        checks.require(callable(measure), "measure", measure, "a function of (learner, run)")
    if n_jobs is not None and checks.as_float(n_jobs) != -1:
        n_jobs = checks.require_count("n_jobs", n_jobs, 1)
    if n_jobs not in (None, 1):
        checks.import_optional("joblib", f"n_jobs={n_jobs}")
    if path is not None:
        path = checks.as_path(path)
        path.mkdir(parents=True, exist_ok=True)
        find_target(path / "cell.json")  # which refuses a folder that cannot be written
    return Options(of_run, measure, path, n_jobs, checks.require_flag("progress", progress))


def make_stream(name: str, X: Any, y: Any, kernel: Any) -> NamedData:
    """Return a stream of checked inputs; each learner checks the labels itself."""
    if y is None:
        as_source(X)  # which refuses what cannot be played again
        return NamedData(name, X, None, kernel)
    X, labels = inputs.as_inputs(X), inputs.as_label_array(y)
    if labels.ndim == 0 or len(labels) != len(X):
        raise ValueError(f"data {name!r}: X has {len(X)} rows, but y has shape {labels.shape}")
    return NamedData(name, X, labels, kernel)


@functools.cache
def list_versions() -> str:
    """Return the versions that results may depend on, in one line."""
    try:
        ours = version("oklnumba")
    except PackageNotFoundError:  # a source tree that was not installed
        ours = "?"
    libraries = f"numba {version('numba')}, numpy {np.__version__}"
    return f"oklnumba {ours}, {libraries}, Python {platform.python_version()}"


# ---- play one cell ----


def play_cell(
    options: Options, stream: NamedData, player: Learner | None, order: int | None
) -> dict[str, Any]:
    """Return the columns of a run, or its error."""
    try:
        X, y = stream.X, stream.y
        if y is None and callable(X):
            X = X()
        elif y is not None and order is not None:
            rows = np.random.default_rng(order).permutation(len(X))
            X, y = X.take(rows, axis=0), y[rows]
        player = clone(player)  # freed when this function returns
        with one_blas_thread:  # in joblib's processes too
            done = run(player, X, y, **options.of_run)
        if done.interrupted:
            raise KeyboardInterrupt  # Ctrl-C ends the whole sweep
        return measure_run(player, done, options.measure)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def measure_run(player: Learner, done: Run, measure: Measure | None) -> dict[str, Any]:
    """Return the columns of a run, with those of the user's ``measure``."""
    more = measure(player, done) if measure else {}
    check_columns(more, {*COLUMNS} - {"regret"})  # which is empty without a lam
    for name, value in more.items():
        cell = as_cell(value, name)
        more[name] = cell.without_data() if isinstance(cell, Run) else cell
    size = int(done.sizes.max()) if done.rounds else 0  # not the last: some learners restart
    return {
        "n": done.rounds,
        "loss": done.loss,
        "mean_loss": done.mean_loss,
        "mistakes": done.mistake_rate,
        "size": int(getattr(player, "sketch_size", size)),
        "seconds": done.seconds,
        "memory": count_bytes(player),
        "finished": done.finished,
        "total_loss": float(done.loss_sums[-1:].sum()),
        "versions": list_versions(),
        "error": "",
    } | more


def check_columns(more: Any, own: Collection[str]) -> None:
    """Raise ValueError unless ``measure`` returned a dict without the table's own columns."""
    checks.require(isinstance(more, dict), "the result of measure", more, "a dict of columns")
    for name in more:
        what = "another name than those of the table's own columns"
        checks.require(name not in own, "a column of measure", name, what)


def count_bytes(player: Learner) -> int | None:
    """Return the bytes of a pickled learner; None if a class of the user cannot be pickled."""
    buffers: list[pickle.PickleBuffer] = []
    try:
        head = pickle.dumps(player, protocol=5, buffer_callback=buffers.append)
    except (pickle.PicklingError, AttributeError, TypeError):
        return None
    return len(head) + sum(buffer.raw().nbytes for buffer in buffers)


# ---- play many ----


def call_all(
    function: Callable, items: Sequence[tuple], n_jobs: int | None
) -> Iterator[tuple[int, Any]]:
    """Yield the index of each tuple of arguments and the function's result, as calls end."""
    if find_spec("joblib") is None:
        yield from ((i, function(*arguments)) for i, arguments in enumerate(items))
        return
    from joblib import Parallel, delayed

    given = {} if n_jobs is None else {"n_jobs": n_jobs}  # or parallel_config
    parallel = Parallel(prefer="threads", return_as="generator_unordered", batch_size=1, **given)
    yield from parallel(delayed(_call)(function, i, *one) for i, one in enumerate(items))


def _call(function: Callable, i: int, *arguments: Any) -> tuple[int, Any]:
    return i, function(*arguments)


# ---- files ----


def name_cell(cell: Cell, of_run: dict[str, Any], measures: list[list[str]]) -> str:
    """Return a digest of hyper-parameters, data, options, and what ``describe_measures`` returned.

    "" if the learner cannot be told by its hyper-parameters: it is of another library.
    """
    try:
        return _name(cell.player, cell.stream.digest, cell.order, of_run, measures)
    except ValueError:
        return ""


def describe_measures(given: Any) -> list[list[str]]:
    """Return what tells measures apart; regret_vs_size has two. ValueError if they cannot be."""
    return [_describe_measure(one) for one in (given if isinstance(given, tuple) else [given])]


def _describe_measure(one: Any) -> list[str]:
    """Return the name and the text of a function, of an object also what it holds, as pickled."""
    is_function = isinstance(one, FunctionType)
    made = one if is_function else getattr(one, "__func__", type(one))
    try:
        if made is functools.partial or is_function and (one.__closure__ or "<" in one.__name__):
            raise TypeError
        held = "" if is_function else pickle.dumps(one, protocol=5).hex()
    except (TypeError, AttributeError, pickle.PicklingError) as error:
        raise ValueError(
            "path keeps runs by the text of measure or bound: define it with def, without "
            "variables from outside, or as an object that can be pickled"
        ) from error
    try:
        return [made.__qualname__, inspect.getsource(made), held]
    except (OSError, TypeError):  # Python has no text of what was typed
        return [made.__qualname__, "", held]


def name_best(stream: NamedData, lam: float, loss: str) -> str:
    """Return a digest of what determines the best function in hindsight."""
    return _name(stream.kernel, stream.digest, lam, loss)


def _name(one: Params | None, *others: Any) -> str:
    arrays: dict[str, np.ndarray] = {}
    parts = [to_spec(one, arrays), *others, list_versions()]
    return digest_of(to_json(parts, sort_keys=True), arrays)


def load_cell(path: Path, name: str) -> dict[str, Any] | None:
    """Return the columns of a finished cell, or None if its file is missing or damaged."""
    try:
        digest, cell = json.loads((path / f"{name}.json").read_text(encoding="utf-8"))
        if digest != digest_of(to_json(cell), {}):
            return None
        return {column: Run.load(path / value["run"]) if isinstance(value, dict) else value
                for column, value in cell.items()}  # fmt: skip
    except (FileNotFoundError, ValueError, TypeError):
        return None


def save_cell(path: Path, name: str, columns: dict[str, Any]) -> None:
    """Write a finished cell as JSON, its Runs first and into separate files."""
    cell = dict(columns)
    for i, (column, value) in enumerate(columns.items()):
        if isinstance(value, Run):
            cell[column] = {"run": f"{name}-{i}.npz"}
            value.save(path / f"{name}-{i}.npz")
    with replace_file(path / f"{name}.json") as part:
        text = to_json([digest_of(to_json(cell), {}), cell])
        part.write_text(text, encoding="utf-8")
