"""Loss around abrupt changes: self-tuning, its best static member, and PKAWV.

Reproduces: nothing published.
Missing: streams that drift slowly have no change points; self_tuning.csv has their losses.
Time: 16 minutes of CPU (--quick: the first 12,000 rounds of one draw).
"""

import numpy as np
from tqdm import tqdm

import oklnumba as okl
from scripts.benchmarks.rivals import standardise_online
from scripts.benchmarks.self_tuning import play
from scripts.benchmarks.streams import DRIFT_ROUNDS, GAPS, Stream, drifts
from scripts.common import parse_args, publish
from scripts.looks import BLACK, BLUE, PINK

DRAWS, QUICK_DRAWS = 6, 1
QUICK_ROUNDS = 12_000
EVERY = 25  # rounds at which the members' losses are read
BEFORE, AFTER, WINDOW = 1000, GAPS[0], 100
WITHIN = 1.1
KEEPS = "no forgetting"  # in the name of a member that does not discount
SELF, STATIC = "self-tuning", "its best static member"
PKAWV, ORACLE = "PKAWV without discount", "self-tuning, told to start anew"
STYLES = {  # colours as in the other figures
    SELF: {"color": BLACK, "linestyle": "-"}, STATIC: {"color": PINK, "linestyle": "--"},
    PKAWV: {"color": BLUE, "linestyle": "-."}, ORACLE: {"color": "0.4", "linestyle": ":"},
}  # fmt: skip


def losses(stream: Stream, points):
    """Return the losses of each learner, summed by pieces of EVERY rounds."""
    run, (_, X, y, _) = play(stream, EVERY), stream
    pkawv = okl.PKAWV(okl.FourierFeatures(200, sigma=X.shape[1] ** 0.5), lam=0.1)
    half, parts = np.abs(y).max(), np.split(np.arange(len(y)), points)
    restarted = [okl.run(okl.SelfTuning(), X[part], y[part]).losses for part in parts]
    static = [i for i, name in enumerate(run.members) if KEEPS in name]
    best = min(static, key=run.pieces.sum(axis=0).__getitem__)

    def pieces(series):
        return series.reshape(-1, EVERY).sum(axis=1)

    return {
        SELF: pieces(run.losses),
        STATIC: run.pieces[:, best],
        PKAWV: pieces(half**2 * okl.run(pkawv, standardise_online(X), y / half).losses),
        ORACLE: pieces(np.concatenate(restarted)),
    }


def around(pieces, points):
    """Return the mean loss of a round around the changes, by rounds since the change."""
    total = np.concatenate([[0.0], np.cumsum(pieces)])
    at = np.arange(-BEFORE, AFTER + 1, EVERY)
    sums = np.interp(points[:, None] + at, EVERY * np.arange(len(total)), total)
    return np.diff(sums, axis=1) / EVERY


def running_mean(curve):
    """Return the mean over the last WINDOW rounds, at every reading from -BEFORE + WINDOW on."""
    return np.convolve(curve, np.ones(WINDOW // EVERY) * EVERY / WINDOW, mode="valid")


def recovery(curve, level: float):
    """Return the rounds until the running mean is within 10 % of the level; None: over AFTER."""
    since = running_mean(curve)[BEFORE // EVERY :]
    back = np.flatnonzero(since <= WITHIN * level)
    return WINDOW + EVERY * int(back[0]) if len(back) else None


def measure(draws: int, rounds: int):
    found = {}
    for seed in tqdm(range(draws), desc="draws", disable=None):
        for stream, points in drifts(seed):
            if not len(points):
                continue
            stream = stream.first(rounds)
            points = points[points <= len(stream.y) - AFTER]
            curves = found.setdefault(stream.name, {})
            for label, pieces in losses(stream, points).items():
                curves.setdefault(label, []).append(around(pieces, points) / stream.y.var())
    return {
        name: {label: np.concatenate(parts) for label, parts in curves.items()}
        for name, curves in found.items()
    }


def rows_of(found) -> list[dict]:
    rows = []
    for name, curves in found.items():
        own = curves[SELF].mean(axis=0)[: BEFORE // EVERY].mean()
        for label, parts in curves.items():
            curve = parts.mean(axis=0)
            level = curve[: BEFORE // EVERY].mean()
            rows.append({
                "stream": name, "learner": label, "changes": len(parts),
                "loss before / variance": f"{level:.4f}",
                f"first {WINDOW} rounds after": f"{running_mean(curve)[BEFORE // EVERY]:.4f}",
                "rounds to its own level": recovery(curve, level) or f"> {AFTER}",
                "rounds to the level of self-tuning": recovery(curve, own) or f"> {AFTER}",
            })  # fmt: skip
    return rows


def draw(found):
    figure, axes = okl.plots.figure(rows=2, columns=2, row_height=2.3)
    at = np.arange(-BEFORE + WINDOW, AFTER + 1, EVERY)
    for ax, (name, curves) in zip(axes.flat, found.items(), strict=True):
        for label, parts in curves.items():
            shown = at >= -BEFORE // 2
            curve = running_mean(parts.mean(axis=0))
            ax.plot(at[shown], curve[shown], label=label, linewidth=1.3, **STYLES[label])
        level = curves[SELF].mean(axis=0)[: BEFORE // EVERY].mean()
        ax.axhline(WITHIN * level, color="0.5", linewidth=0.7,
                   label="10 % above self-tuning before")  # fmt: skip
        ax.axvline(0, color="0.7", linewidth=0.8)
        ax.set_ylim(0, None)
        place = ax.get_subplotspec()
        okl.plots.tidy(ax, "rounds since the change" if place.is_last_row() else "",
             "squared loss / variance of y" if place.is_first_col() else "", name)  # fmt: skip
    return figure


def main() -> None:
    args = parse_args(__doc__, limit=600.0, quick_limit=20.0)
    draws, rounds = (QUICK_DRAWS, QUICK_ROUNDS) if args.quick else (DRAWS, DRIFT_ROUNDS)
    found = measure(draws, rounds)
    publish(draw(found), rows_of(found), args, legend=2)


if __name__ == "__main__":
    main()
