"""Wild labels and inputs: the error afterwards, with and without the rule for outliers.

Reproduces: nothing published.
Missing: wild labels of learners other than SelfTuning, which take labels as they come.
Time: three minutes (--quick: 2000 rounds, fewer values).
"""

import re
from contextlib import ExitStack, contextmanager
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
from tqdm import tqdm

import oklnumba as okl
from oklnumba.components import scaling
from oklnumba.learners.self_tuning import labels, settings
from scripts.common import cpu_clock, group, run_script

N, QUICK_N = 10_000, 2000
PLACES = 0, 50, 500, 2500, 6000  # rounds of one wild value
SHARE = 0.01  # of the rounds, for many
STUCK, FAR = 20, 1e5  # rounds and value of labels that are wrong one after the other
LABELS, INPUTS = (1e2, 1e4, 1e6, 1e100), (1e3, 1e9)
NOISE = 0.2
AFTER = "error afterwards / without bad data"
MEAN = "loss / loss without the rule"
MOST = 1e6  # that is drawn
PANELS = {  # title: learner, and whether labels or inputs are wild
    "SelfTuning, labels": ("SelfTuning", True),
    "SelfTuning, inputs": ("SelfTuning", False),
    "NystromAWV": ("Standardized(NystromAWV)", False),
}
LEARNERS = {
    "SelfTuning": okl.SelfTuning,
    "Standardized(NystromAWV)": lambda: okl.Standardized(
        okl.NystromAWV(okl.Gaussian(1.0), max_size=150)
    ),
}


class Case(NamedTuple):
    """A stream; ``truth``: what forecasts are compared with; ``lost``: rounds that do not count."""

    what: str
    where: str
    X: np.ndarray
    y: np.ndarray
    truth: np.ndarray
    lost: np.ndarray


def target(X):
    return np.sin(2.0 * X[:, 0]) + 0.9 * X[:, 1] * np.cos(X[:, 2])


def clean(n: int) -> Case:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 3))
    y = target(X) + NOISE * rng.standard_normal(n)
    return Case("clean", "", X, y, y, np.zeros(n, dtype=bool))


def places(n: int):
    """Yield the name and the rounds of wild values: one of PLACES, or some everywhere."""
    for t in PLACES:
        if t < 2 * n // 3:
            yield f"round {t}", np.arange(n) == t
    yield f"{SHARE:.0%} of rounds", np.random.default_rng(1).random(n) < SHARE


def bad_labels(n: int, values=LABELS):
    base = clean(n)
    for value in values:
        for where, rounds in places(n):
            y = np.where(rounds, value, base.y)
            yield base._replace(what=f"label {value:g}", where=where, y=y)
    y = base.y.copy()
    y[n // 4 : n // 4 + STUCK] = FAR
    yield base._replace(what=f"label stuck at {FAR:g}", where=f"{STUCK} rounds", y=y)
    f, cauchy = target(base.X), np.random.default_rng(2).standard_cauchy(n)
    for scale in (NOISE, 5.0 * NOISE):
        what, y = f"Cauchy noise, {scale:g}", f + scale * cauchy
        yield base._replace(what=what, where="all", y=y, truth=f)


def bad_inputs(n: int, values=INPUTS):
    """Yield streams whose first input is wrong; rounds in which it is do not count."""
    base, t = clean(n), np.arange(n)
    for value in values:
        for where, rounds in places(n):
            X = base.X.copy()
            X[rounds, 0] = value
            yield base._replace(what=f"input {value:g}", where=where, X=X, lost=rounds)
    for what, rounds, first in (
        ("stuck sensor", (t >= n // 4) & (t < n // 2), np.full(n, 7.0)),
        ("stuck far away", (t >= n // 4) & (t < n // 4 + 100), np.full(n, 1e5)),
        ("unit changes", t >= n // 2, 1000.0 * base.X[:, 0]),
        ("wakes up late", t < n // 2, np.zeros(n)),
    ):
        X = base.X.copy()
        X[rounds, 0] = first[rounds]
        yield base._replace(what=what, where="a piece", X=X)


def rare(n: int):
    """Yield streams whose far labels are real."""
    base, rng = clean(n), np.random.default_rng(3)
    f, far, wet = target(base.X), rng.exponential(size=n), rng.random(n) < 0.05
    second, normal = np.arange(n) >= n // 2, rng.standard_normal(n)
    for what, y in (
        ("rain: 95 % zeros", np.where(wet, np.exp(0.5 * f) * (1.0 + far), 0.0)),
        ("claims: 95 % zeros, lognormal", np.where(wet, np.exp(0.4 * f + 1.2 * normal), 0.0)),
        ("exponential noise", f + far),
        ("exponential labels", np.exp(0.5 * f) * far),
        ("scale doubles", base.y * np.where(second, 2.0, 1.0)),
        ("scale grows tenfold", base.y * np.where(second, 10.0, 1.0)),
        ("level jumps by 30", base.y + np.where(second, 30.0, 0.0)),
        ("events on small noise", np.where(wet, np.exp(0.5 * f) * (1.0 + far), 0.01 * normal)),
    ):
        yield base._replace(what=what, y=y, truth=y)


@contextmanager
def without_rule():
    """Put outliers infinitely far away: all values count as they come, and ranges stay."""
    widest = settings.MAX_LABEL * np.array([-1.0, -1.0, 0.0, 1.0, 1.0, 1.0])[:, None, None]

    def measure_nothing(windows):
        return np.broadcast_to(widest, (6, *windows.shape[:2]))

    with ExitStack() as stack:
        stack.enter_context(patch.object(scaling, "OUTLIER", np.inf))
        stack.enter_context(patch.object(settings, "INPUT_OUTLIER", np.inf))
        stack.enter_context(patch.object(labels, "measure_limits", measure_nothing))
        stack.enter_context(patch.object(settings, "PERIOD", 10 * N))  # ranges are kept
        yield


def error(make, case: Case, limit: float | None, last: bool = True):
    """Return the mean squared error, of the last third or of all; infinite if the run ends."""
    try:
        with np.errstate(all="ignore"), cpu_clock():
            run = okl.run(make(), case.X, case.y, time_limit=limit)
    except FloatingPointError:
        return np.inf
    n = len(case.y)
    if run.rounds < n:
        return np.nan
    counted = ~case.lost & (np.arange(n) >= (2 * n // 3 if last else 0))
    return np.square(run.predictions - case.truth)[counted].mean()


def cases(quick: bool):
    """Yield learner, stream, and whether its last third is compared with the clean stream."""
    n = QUICK_N if quick else N
    labels, inputs = (LABELS[1:2], INPUTS[:1]) if quick else (LABELS, INPUTS)
    for case in bad_labels(n, labels):
        yield "SelfTuning", case, True
    for name in LEARNERS:
        for case in bad_inputs(n, inputs):
            yield name, case, True
    for case in rare(n):
        yield "SelfTuning", case, False


def draw(rows):
    """Draw wild labels and wild inputs apart: without the rule, labels cost decades."""
    figure, axes = okl.plots.figure(columns=len(PANELS), row_height=3.2)
    after = [r for r in rows if r["measure"] == AFTER]
    for ax, (title, (name, is_labels)) in zip(axes[0], PANELS.items(), strict=True):
        own = [r for r in after if r["learner"] == name]
        own = [r for r in own if bool(re.match("label|Cauchy", r["what"])) == is_labels]
        names = list(group(own, "what"))[::-1]
        for key, label, marker, colour in (
            ("ratio without the rule", "without the rule", "s", okl.plots.COLOURS[1]),
            ("ratio", "with the rule", "o", okl.plots.COLOURS[0]),
        ):
            style = {"color": colour, "markersize": 4.5, "linestyle": "none", "clip_on": False}
            style |= {"markerfacecolor": "none"}
            found = np.array([(r[key], names.index(r["what"])) for r in own])
            far = found[:, 0] > MOST
            ax.plot(*found[~far].T, marker, label=label, **style)
            if far.any():
                text = "without the rule, a million or more"
                ax.plot(np.full(far.sum(), MOST), found[far, 1], ">", label=text, **style)
        ax.axvline(1.0, color="0.6", linewidth=0.8, zorder=0)
        ax.set_yticks(range(len(names)), names)
        top = max(max(r["ratio"], r["ratio without the rule"]) for r in own)
        ax.set_xlim(0.5 if is_labels else 0.9, 1.2 * min(top, 2.0 * MOST))
        okl.plots.tidy(ax, "error / clean error", "", title, log="x", small=1.0)
        ax.grid(False, axis="y")
    return figure


def summary(rows) -> list[dict]:
    """Return the largest ratios of each kind of data."""
    return [
        {"learner": learner, "what": what, "measure": own[0]["measure"], "cases": len(own)}
        | {key: f"{max(r[key] for r in own):.4g}" for key in ("ratio without the rule", "ratio")}
        for (learner, what), own in group(rows, "learner", "what").items()
    ]


def measure(args) -> list[dict]:
    base, rows = clean(QUICK_N if args.quick else N), []
    references = {name: error(make, base, None) for name, make in LEARNERS.items()}  # compiles
    for name, case, last in tqdm(list(cases(args.quick)), disable=None):
        with without_rule():
            before = error(LEARNERS[name], case, args.limit, last)
        after = error(LEARNERS[name], case, args.limit, last)
        unit = references[name] if last else before
        rows.append({
            "learner": name, "what": case.what, "where": case.where,
            "measure": AFTER if last else MEAN,
            "error without the rule": before, "error": after,
            "ratio without the rule": before / unit, "ratio": after / unit,
        })  # fmt: skip
    return rows


if __name__ == "__main__":
    run_script(__doc__, measure, draw, (60.0, 8.0), summary, legend=3)
