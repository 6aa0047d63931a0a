"""What a deployed learner meets: labels that come late or in batches; latency, memory, restarts.

Reproduces: nothing published. docs/production.md has its numbers.
Missing: real electricity prices, which do not come with the package: a stand-in is played.
Time: 17 minutes of CPU (--quick: 3000 rounds, one stream, half a minute).
"""

import os
import pickle
import tempfile
import time

import numpy as np
from tqdm import tqdm

import oklnumba as okl
from oklnumba import plots
from scripts.benchmarks.streams import ELECTRICITY, drifts, electricity_like, load_stream
from scripts.benchmarks.timing import machine
from scripts.common import run_script
from scripts.looks import look

QUICK_ROUNDS = 3000
DELAYS, BATCHES = (0, 1, 10, 100), (1, 10, 100, 1000)
HALF_LIFE = 500
SELF, LAST = "SelfTuning", "last label"
SERVICE_ROWS, SINGLE = 10_000, 2000  # rows learned before calls are timed, and timed calls


VARIANTS = {  # of the looks
    f"PKAWV, half-life {HALF_LIFE}": {"linestyle": "--", "marker": "s"},
    LAST: {"color": "0.5", "linestyle": "-.", "marker": "."},
}


def learners(d: int):
    features = okl.FourierFeatures(200, sigma=d**0.5)
    return {
        SELF: okl.SelfTuning(),
        "PKAWV": okl.Standardized(okl.PKAWV(features, lam=0.1)),
        f"PKAWV, half-life {HALF_LIFE}": okl.Standardized(
            okl.PKAWV(features, lam=0.1, discount=2.0 ** (-1.0 / HALF_LIFE))
        ),
    }


# ---- labels that come late ----


def mistakes(label: str, learner, stream, delay: int, batch: int) -> float:
    """Return the mistakes of a run in per cent."""
    X, y = stream.X, stream.y
    if label == LAST:
        rounds = np.arange(len(y))
        last = rounds // batch * batch - delay - 1
        return 100.0 * np.mean(y[last.clip(0)] * (last >= 0) != y)
    late = {"delay": delay, "batch": batch}
    return 100.0 * okl.run(learner, X, y, record="none", **late).mistake_rate


def late_labels(quick: bool):
    """Yield rows of mistakes with late labels and batches."""
    drifting = {stream.name: stream for stream, _ in drifts()}
    streams = [electricity_like()]
    if not quick:
        streams += [drifting["abrupt drift, curved classification"], load_stream("magic04", 0)]
    settings = [(delay, 1) for delay in DELAYS] + [(0, batch) for batch in BATCHES[1:]]
    for stream in streams:
        rows = QUICK_ROUNDS if quick else len(stream.y)
        stream = stream._replace(X=stream.X[:rows], y=stream.y[:rows])
        for label in (*learners(1), LAST):
            for delay, batch in tqdm(settings, desc=f"{stream.name}, {label}", disable=None):
                learner = None if label == LAST else learners(stream.X.shape[1])[label]
                found = mistakes(label, learner, stream, delay, batch)
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
            path = os.path.join(folder, "model.npz")
            found["save (ms)"] = microseconds(learner.save, [(path,)])[0] / 1e3
            okl.load(path)  # compiles
            found["load (ms)"] = microseconds(okl.load, [(path,)])[0] / 1e3
        for measure, value in found.items():
            yield row(measure, ELECTRICITY, label, value)


def measure(args) -> list[dict]:
    return [*late_labels(args.quick), *service(args.quick)]


# ---- figure ----


def draw(rows):
    names = list(dict.fromkeys(r["stream"] for r in rows if r["measure"] == "mistakes (%)"))
    figure, axes = plots.figure(rows=len(names), columns=2, row_height=2.2)
    for name, pair in zip(names, axes, strict=True):
        for ax, key, other, least in zip(
            pair, ("delay", "batch"), ("batch", "delay"), (0, 1), strict=True
        ):
            own = [r for r in rows if r["stream"] == name and r["measure"] == "mistakes (%)"]
            own = [r for r in own if r[other] == 1 - least and r["learner"] != LAST]
            for label in dict.fromkeys(r["learner"] for r in own):
                points = [(r[key], float(r["value"])) for r in own if r["learner"] == label]
                style = look(label) | VARIANTS.get(label, {}) | {"markersize": 4, "linewidth": 1.2}
                ax.plot(*zip(*points, strict=True), label=label, **style)
            ax.set_xscale("symlog", linthresh=1.0)
            last = name == names[-1]
            what = "delay of labels (rows)" if key == "delay" else "rows in a batch"
            plots.tidy(ax, what if last else "", "mistakes (%)" if key == "delay" else "", name)
            ticks = DELAYS if key == "delay" else BATCHES
            ax.set_xticks(ticks, labels=map(str, ticks))
    return figure


if __name__ == "__main__":
    run_script(__doc__, measure, draw, (3600.0, 60.0), legend=3)
