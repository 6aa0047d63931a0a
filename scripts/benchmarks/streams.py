"""The streams on which self-tuning is compared: raw units, a fixed order, at most ROWS rounds.

Every data set at hand in the order of its file (some are sorted by class), permuted, and some
sorted by a column; and made-up streams that drift.
"""

from typing import NamedTuple

import numpy as np

import oklnumba as okl
from scripts.common import available, load

ROWS = 50_000
PERMUTATION = 0  # seed of the order "permuted"
SETS = (
    "german", "svmguide3", "abalone", "spambase", "parkinsons", "mushrooms", "phishing", "mnist12",
    "magic04", "cadata", "susy30k", "casp", "a9a", "w8a", "ijcnn1", "cod-rna",
)  # fmt: skip
SORTED = {"cadata": 0, "magic04": 0, "casp": 0, "ijcnn1": 10, "cod-rna": 0}  # set: column
DRIFTS = ("abrupt", "slow")
GAPS = (2000, 5000)  # fewest and most rounds between two abrupt changes
TURN = 10_000  # rounds in which the slow drift comes back to where it was
DRIFT_ROUNDS = 30_000
ELECTRICITY = "electricity-like"
HALF_HOURS, ELECTRICITY_ROUNDS = 48, 45_312  # of a day, and rounds of the electricity prices


class Stream(NamedTuple):
    """Inputs (n, d) in raw units, labels -1 and +1 or real ones, and "classification" or not."""

    name: str
    X: np.ndarray
    y: np.ndarray
    kind: str

    def first(self, rows: int, name: str = ""):
        """Return the first rows, under another name if one is given."""
        return Stream(name or self.name, self.X[:rows], self.y[:rows], self.kind)


def load_stream(name: str, seed=None) -> Stream:
    data = load(name, scale=None, permute=seed)
    return Stream(name, data.X[:ROWS], data.y[:ROWS], data.task)


def streams_of_set(name: str):
    yield load_stream(name).first(ROWS, f"{name}, file order")
    _, X, y, kind = load_stream(name, PERMUTATION)
    yield Stream(f"{name}, permuted", X, y, kind)
    if name in SORTED:
        X, y = okl.adversary.sorted_by(X, y, column=SORTED[name])
        yield Stream(f"{name}, sorted by input {SORTED[name]}", X, y, kind)


def rotation(d: int, rng):
    return np.linalg.qr(rng.standard_normal((d, d)))[0]


def linear(U):
    return U[:, 0]


def curved(U):
    """Return a function of two directions that no linear one is close to."""
    return np.sqrt(2.0) * np.sin(1.5 * U[:, 0]) * np.cos(U[:, 1]) + 0.5 * (U[:, 1] ** 2 - 1.0)


DRIFTING = {  # the arguments of ``drift`` by the name of the stream
    f"{how} drift, {function.__name__} {kind}": (how, function, kind)
    for how in DRIFTS for function in (linear, curved) for kind in ("classification", "regression")
}  # fmt: skip


def turn_axes(X, how: str, rng):
    """Return inputs in the axes of their round's concept, all equally hard, and change points."""
    n, d = X.shape
    Q = rotation(d, rng)
    if how == "slow":
        U, angle = X @ Q, 2.0 * np.pi * np.arange(n) / TURN
        first = np.cos(angle) * U[:, 0] + np.sin(angle) * U[:, 2]
        U[:, 2] = np.cos(angle) * U[:, 2] - np.sin(angle) * U[:, 0]
        U[:, 0] = first
        return U, np.empty(0, dtype=np.int64)
    points = np.cumsum(rng.integers(GAPS[0], GAPS[1] + 1, size=n // GAPS[0] + 1))
    points = points[points <= n - GAPS[0]]
    pieces = np.split(X, points)
    return np.concatenate([piece @ rotation(d, rng) for piece in pieces]), points


def drift(how: str, function, kind: str, seed: int = 0):
    """Return a stream whose concept changes, and its change points (0-based first rounds).

    Normal inputs in different units; a tenth of the labels flipped, or noise of half the signal.
    """
    rng = np.random.default_rng([seed, DRIFTS.index(how), len(kind), function is curved])
    n, d = DRIFT_ROUNDS, 8 if function is linear else 3
    X = rng.standard_normal((n, d))
    U, points = turn_axes(X, how, rng)
    signal = function(U)
    if kind == "classification":
        y = np.where(signal > 0.0, 1.0, -1.0) * np.where(rng.random(n) < 0.1, -1.0, 1.0)
    else:
        y = 10.0 * (signal + 0.5 * signal.std() * rng.standard_normal(n))
    units = 10.0 ** rng.uniform(-2.0, 3.0, d)
    raw = units * (X + 3.0 * rng.standard_normal(d))
    return Stream(f"{how} drift, {function.__name__} {kind}", raw, y, kind), points


def autoregression(n: int, memory: float, rng):
    """Return v_t = memory v_{t-1} + noise, of variance 1."""
    from scipy.signal import lfilter  # 60 MB, which millions.py would count

    noise = np.sqrt(1.0 - memory**2) * rng.standard_normal(n)
    first = [memory * rng.standard_normal()]
    return lfilter([1.0], [1.0, -memory], noise, zi=first)[0]


def electricity_like(seed: int = 0) -> Stream:
    """Return a stand-in for electricity prices; label: is it above the mean of its last day.

    Inputs: day, time, price and demand at home and next door, and the transfer between them. Price
    level and slope drift. Repeating the last label makes 15 % mistakes.
    """
    n = ELECTRICITY_ROUNDS
    rng, t = np.random.default_rng([seed, n]), np.arange(n)
    hour, day = (t % HALF_HOURS) / HALF_HOURS, (t // HALF_HOURS) % 7
    daily = -np.cos(2.0 * np.pi * hour) + 0.5 * np.sin(4.0 * np.pi * hour)
    demand = daily - 0.6 * (day >= 5) + 0.5 * autoregression(n, 0.98, rng)
    slope = 0.2 + 0.12 * autoregression(n, 0.9995, rng)
    level = 0.5 * autoregression(n, 0.9998, rng)
    log_price = level + slope * demand + 0.25 * autoregression(n, 0.84, rng)
    price = 30.0 * np.exp(log_price)
    total = np.concatenate([[0.0], np.cumsum(price)])
    first = np.maximum(t + 1 - HALF_HOURS, 0)
    last_day = (total[t + 1] - total[first]) / (t + 1 - first)
    y = np.where(price > last_day, 1.0, -1.0)
    next_price = price * np.exp(0.2 * autoregression(n, 0.8, rng))
    next_demand = 0.8 * demand + 0.4 * autoregression(n, 0.98, rng)
    transfer = 500.0 + 200.0 * (demand - next_demand) + 50.0 * rng.standard_normal(n)
    X = np.column_stack([
        1.0 + day, hour, price, 6000.0 + 900.0 * demand, next_price, 4000.0 + 700.0 * next_demand,
        transfer,
    ])  # fmt: skip
    return Stream(ELECTRICITY, X, y, "classification")


def drifts(seed: int = 0):
    """Yield the made-up streams with their change points, none where the drift is slow."""
    for given in DRIFTING.values():
        yield drift(*given, seed)


def groups():
    """Return what ``streams_of_group`` takes: made-up streams, and the sets at hand."""
    return [*DRIFTING, ELECTRICITY, *available(SETS)]


def streams_of_group(group: str, seed: int = 0):
    if group in SETS:
        yield from streams_of_set(group)
    elif group == ELECTRICITY:
        yield electricity_like(seed)
    else:
        yield drift(*DRIFTING[group], seed)[0]


def streams(rows: int = ROWS):
    """Yield the first rows of all streams, those made up first, then those of the data sets."""
    for group in groups():
        for stream in streams_of_group(group):
            yield stream.first(rows)
