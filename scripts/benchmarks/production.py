"""What a deployed learner meets: late labels, batches, latency, memory, restarts, threads.

Reproduces: nothing published. docs/production.md has its numbers.
Missing: real electricity prices, which do not come with the package: a stand-in is played.
Time: 7 minutes of CPU (--quick: 3000 rounds, one stream, half a minute).
"""

import pickle
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
from tqdm import tqdm

import oklnumba as okl
from scripts.benchmarks.streams import ELECTRICITY, curved, drift, electricity_like, load_stream
from scripts.benchmarks.timing import machine
from scripts.common import group, memory_mb, run_script
from scripts.looks import look

QUICK_ROUNDS = 3000
DELAYS, BATCHES = (0, 1, 10, 100), (1, 10, 100, 1000)
HALF_LIFE = 500
SELF, FORGETS, LAST = "SelfTuning", f"PKAWV, half-life {HALF_LIFE}", "last label"
SERVICE_ROWS, SINGLE = 10_000, 2000  # rows learned before calls are timed, and timed calls
READERS, PAUSES = 7, (0.0, 0.02)  # threads that forecast; their mean pauses in seconds


def learners(d: int):
    awv = partial(okl.PKAWV, okl.FourierFeatures(200, sigma=d**0.5), lam=0.1)
    return {
        SELF: okl.SelfTuning(),
        "PKAWV": okl.Standardized(awv()),
        FORGETS: okl.Standardized(awv(discount=2.0 ** (-1.0 / HALF_LIFE))),
    }


# ---- labels that come late ----


def mistakes(label: str, stream, delay: int, batch: int) -> float:
    """Return the mistakes of a run in per cent."""
    X, y = stream.X, stream.y
    if label == LAST:
        last = np.arange(len(y)) // batch * batch - delay - 1
        return 100.0 * np.mean(y[last.clip(0)] * (last >= 0) != y)
    learner, late = learners(X.shape[1])[label], {"delay": delay, "batch": batch}
    return 100.0 * okl.run(learner, X, y, record="none", **late).mistake_rate


def late_labels(quick: bool):
    """Yield rows of mistakes with late labels and batches."""
    streams = [electricity_like()]
    if not quick:
        streams += [drift("abrupt", curved, "classification")[0], load_stream("magic04", 0)]
    settings = [(delay, 1) for delay in DELAYS] + [(0, batch) for batch in BATCHES[1:]]
    for stream in streams:
        stream = stream.first(QUICK_ROUNDS if quick else len(stream.y))
        for label in (*learners(1), LAST):
            for delay, batch in tqdm(settings, desc=f"{stream.name}, {label}", disable=None):
                found = mistakes(label, stream, delay, batch)
                yield row("mistakes (%)", stream.name, label, found, delay, batch)


def row(measure: str, stream: str, learner: str, value: float, delay="", batch="") -> dict:
    return {"measure": measure, "stream": stream, "learner": learner, "delay": delay,
            "batch": batch, "value": f"{value:.4g}", "machine": machine()}  # fmt: skip


# ---- one row in a service ----


def served(d: int):
    kernel = okl.Gaussian(d**0.5)
    return {
        SELF: okl.SelfTuning(),
        "NystromAWV": okl.Standardized(okl.NystromAWV(kernel, max_size=150)),
        "PKAWV": okl.Standardized(okl.PKAWV(okl.FourierFeatures(100, sigma=d**0.5))),
        "OGD": okl.Standardized(okl.OGD(eta=0.01, loss="logistic")),
    }


def microseconds(call, rows) -> np.ndarray:
    """Return the CPU time of each call: others use this machine too."""
    times = []
    for one in rows:
        start = time.thread_time()
        call(*one)
        times.append(time.thread_time() - start)
    return 1e6 * np.array(times)


def service(quick: bool):
    """Yield rows of latency, memory and restarts on electricity-like rows."""
    stream = electricity_like()
    n = 2500 if quick else SERVICE_ROWS
    X, y = stream.X, stream.y
    more = slice(n, n + (200 if quick else SINGLE))
    for label, learner in served(X.shape[1]).items():
        learner.partial_fit(X[:n], y[:n])
        learner.predict_one(X[n])
        learner.learn_one(X[n], y[n])
        learner.predict(X[:64])
        found = {"predict, a row in bulk": microseconds(learner.predict, [(X[:n],)])[0] / n}
        ahead = microseconds(learner.predict_one, [(x,) for x in X[more]])
        learned = microseconds(learner.learn_one, zip(X[more], y[more], strict=True))
        for name, times in (("predict_one", ahead), ("learn_one", learned)):
            found |= {f"{name}, median": np.median(times)}
            found |= {f"{name}, 99 %": np.quantile(times, 0.99)}
        found = {f"{name} (us)": value for name, value in found.items()}
        found["pickle (MB)"] = len(pickle.dumps(learner)) / 2**20
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/model.npz"
            found["save (ms)"] = microseconds(learner.save, [(path,)])[0] / 1e3
            okl.load(path)  # compiles
            found["load (ms)"] = microseconds(okl.load, [(path,)])[0] / 1e3
        for measure, value in found.items():
            yield row(measure, ELECTRICITY, label, value)


# ---- many rounds, one by one ----


def play_timed(learner, X, y):
    """Return the CPU milliseconds of each round, and the memory after each tenth of them."""
    times, sizes = np.empty(len(y)), []
    for t in range(len(y)):
        start = time.thread_time()
        learner.predict_one(X[t])
        learner.learn_one(X[t], y[t])
        times[t] = 1e3 * (time.thread_time() - start)
        if (t + 1) % (len(y) // 10) == 0:
            sizes.append(memory_mb("VmRSS"))
    return times, sizes


def alone(quick: bool):
    """Yield rows of long runs in one thread: times of a round, and memory."""
    stream = electricity_like()
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (3000 if quick else 1_000_000, 3))
    plain = okl.PKAWV(okl.FourierFeatures(100, sigma=1.0))
    rows = slice(0, 3000 if quick else 40_000)
    for label, learner, data, X_, y_ in (
        (SELF, okl.SelfTuning(), ELECTRICITY, stream.X[rows], stream.y[rows]),
        ("PKAWV", plain, "uniform", X, np.sin(3.0 * X[:, 0]) * X[:, 1]),
    ):
        okl.warm_up(learner)
        times, sizes = play_timed(learner, X_, y_)
        name = f"{len(y_)} rounds"
        for share in (0.5, 0.99, 0.999, 1.0):
            found = np.quantile(times, share)
            yield row(f"{name}, {100 * share:g} % (ms)", data, label, found)
        for tenth in (1, 5, 10):
            found = sizes[tenth - 1]
            yield row(f"{name}, memory after {tenth} tenths (MB)", data, label, found)


def side_by_side(quick: bool):
    """Yield rows of forecasts by seven threads while another learns row after row."""
    stream, n = electricity_like(), 600 if quick else 9000
    for pause in PAUSES:
        waits = np.array(time_forecasts(stream.X[:n], stream.y[:n], pause))
        seconds = (waits[:, 0] - waits[:, 0].min()).astype(int)
        medians = [np.median(waits[seconds == one, 1]) for one in np.unique(seconds)]
        found = {
            "median": np.median(waits[:, 1]),
            "longest median of a second": max(medians),
            "99 %": np.quantile(waits[:, 1], 0.99),
            "100 %": waits[:, 1].max(),
        }
        name = f"forecast of {READERS} threads, pauses of {1e3 * pause:g} ms, {n} rounds"
        for what, value in found.items():
            yield row(f"{name}, {what} (ms)", ELECTRICITY, SELF, 1e3 * value)


def time_forecasts(X, y, pause: float) -> list[tuple[float, float]]:
    """Return when forecasts began, and the seconds that they took, while all rows are learned."""
    learner, found, ended = okl.SelfTuning(), [], threading.Event()
    okl.warm_up(learner)

    def read(seed: int) -> None:
        rng = np.random.default_rng(seed)
        while not ended.is_set():
            start = time.perf_counter()
            learner.predict_one(X[rng.integers(len(X))])
            found.append((start, time.perf_counter() - start))
            if pause:
                time.sleep(rng.exponential(pause))

    with ThreadPoolExecutor(READERS) as pool:
        for seed in range(READERS):
            pool.submit(read, seed)
        for x, label in zip(X, y, strict=True):
            learner.learn_one(x, label)
        ended.set()
    return found


def measure(args) -> list[dict]:
    jobs = late_labels, service, alone, side_by_side
    return [one for job in jobs for one in job(args.quick)]


# ---- figure ----


def draw(rows):
    drawn = [r for r in rows if r["measure"] == "mistakes (%)" and r["learner"] != LAST]
    names = group(drawn, "stream")
    figure, axes = okl.plots.figure(rows=len(names), columns=2, row_height=2.2)
    panels = ("delay", "batch", 1), ("batch", "delay", 0)  # on the x axis, and the other's value
    for (name, here), pair in zip(names.items(), axes, strict=True):
        for ax, (key, other, value) in zip(pair, panels, strict=True):
            played = group([r for r in here if r[other] == value], "learner")
            for label, own in played.items():
                points = [(r[key], float(r["value"])) for r in own]
                style = look(label) | {"markersize": 4, "linewidth": 1.2}
                style |= {"linestyle": "--", "marker": "s"} if label == FORGETS else {}
                ax.plot(*zip(*points, strict=True), label=label, **style)
            ax.set_xscale("symlog", linthresh=1.0)
            last = ax in axes[-1]
            what = "delay of labels (rows)" if key == "delay" else "rows in a batch"
            okl.plots.tidy(ax, what if last else "", "mistakes (%)" if key == "delay" else "", name)
            ticks = DELAYS if key == "delay" else BATCHES
            ax.set_xticks(ticks, labels=map(str, ticks))
    return figure


if __name__ == "__main__":
    run_script(__doc__, measure, draw, (900.0, 60.0), legend=3)
