"""Why POMDR wins: its seven data sets with one part of it changed at a time.

Reproduces: nothing published; POMDR of Tables 2 and 4 of Li and Liao (2023), and variants of it.
Missing: a dictionary without removals, whose time grows with the square of the rounds.
Time: ten minutes (--quick: two permutations of the three smallest sets, a minute).
"""

from functools import partial

import numpy as np

import oklnumba as okl
from oklnumba.core.params import choice, flag
from oklnumba.hot.pomdr import DELTA, REMOVALS, SQUARE, pomdr_rounds
from oklnumba.hot.primitives.jit import ATOMS, DONE, Out, enter
from scripts.common import FIGURES, group, publish, read_csv
from scripts.looks import BLACK, BLUE, GREEN, ORANGE, PINK, THEORY, explain, panels
from scripts.papers.li2023 import CASES, begin, mean_and_sd, play

RATES = (0.03, 0.1, 0.3, 1.0)  # tried after the first removal, on another permutation
MERGED, UNSCALED, MERGED_NEW, _, OLDER, RESTARTED = REMOVED = (
    "merged", "merged, not scaled", "merged into newer", "newer half dropped",
    "older half dropped", "restarted",
)  # fmt: skip


class Changed(okl.POMDR):
    """POMDR with other hints, removals or rates; with the defaults it is POMDR.

    pomdr_rounds plays pieces so short that the dictionary cannot outgrow its budget; in between, if
    it is full, half of it is removed here.
    """

    hinted: bool = flag(True)
    small_at_once: bool = flag(False)  # the rate that POMDR has after the first removal
    removed: str = choice(REMOVED, MERGED)

    def _start(self, d: int) -> None:
        super()._start(d)
        self._state.counts[REMOVALS] = int(self._hyper.small_at_once)

    def _play(self, X, y, trace) -> None:
        self._play_loop(len(X), partial(self._play_pieces, X, y, Out(*trace[:2])))

    def _play_pieces(self, X, y, out, first: int):
        loop, state, budget, status = enter(pomdr_rounds), self._state, self._hyper.budget, DONE
        hinted, rules = self._hyper.hinted, self._rules._replace(budget=np.inf)
        while first < len(X) and status == DONE:
            room = budget - int(state.counts[ATOMS]) if hinted else 1
            stop, beside = min(first + room, len(X)), (self._kernel, rules, state, self._work, out)
            first, status = loop(X[:stop], y[:stop], self._played, first, *beside)
            if not hinted:
                state.last_y[:] = 0.0  # of which p_t is the mean
            if state.counts[ATOMS] == budget:
                self._remove_half(state)
                out.sizes[first - 1] = state.counts[ATOMS]
        return first, status

    def _remove_half(self, state) -> None:
        """Do what merge_half does (line 22), or what is tried in its place."""
        how, radius, kernel = self._hyper.removed, self._hyper.radius, self._hyper.kernel
        atoms, alpha = state.atoms[:, : self._hyper.budget].T, state.alpha[: self._hyper.budget]
        (kept, dropped), (weights, others) = np.split(atoms, 2), np.split(alpha, 2)
        if how in (MERGED_NEW, OLDER):
            kept, dropped, weights, others = dropped, kept, others, weights
        kept, weights = kept.copy(), weights.copy()
        if how in (MERGED, UNSCALED, MERGED_NEW):
            np.add.at(weights, kernel(dropped, kept).argmax(axis=1), others)
        elif how == RESTARTED:
            kept, weights = kept[:0], weights[:0]
        square = float(weights @ kernel(kept) @ weights) if len(kept) else 0.0
        if square > 0.0 and (how != UNSCALED or square > radius**2):
            weights, square = weights * (radius / square**0.5), radius**2
        m = len(kept)
        state.atoms[:, :m], state.alpha[:m] = kept.T, weights
        state.sums[[SQUARE, DELTA]] = square, 0.0
        state.counts[ATOMS] = m
        state.counts[REMOVALS] += 1


PAPER, AGAIN, TUNED = "POMDR", "again", ", rate tuned"
VARIANTS = {  # name: what is changed; a kind of change has a colour
    PAPER: (BLACK, {}),
    "no hints": (BLUE, {"hinted": False}),
    "no ALD, OMDR at once": (GREEN, {"switch_size": 1}),
    **{name: (ORANGE, {"removed": name}) for name in REMOVED[1:]},
    "small rate at once": (PINK, {"small_at_once": True}),
    **{f"rate x {v:g}": (PINK, {"rate_scale": v}) for v in RATES if v != 0.1},
}


def count_removals(learner, run) -> dict:
    return {"removals": learner.diary.removals - int(getattr(learner, "small_at_once", False))}


def make_learner(case, cls, changed: dict, tunes: bool = False):
    given = {"zeta": case.zeta, "rate_scale": case.rate_scale} | changed
    if tunes:
        del given["rate_scale"]
        return lambda T, kernel, rate_scale: cls(kernel, horizon=T, rate_scale=rate_scale, **given)
    return lambda T, kernel: cls(kernel, horizon=T, **given)


def measure(case, args) -> list[dict]:
    lines, tuned = {AGAIN: make_learner(case, Changed, {})}, {}
    for name, (colour, changed) in VARIANTS.items():
        cls = Changed if changed.keys() & Changed.__annotations__ else okl.POMDR
        lines[name] = make_learner(case, cls, changed)
        if colour in (BLACK, BLUE, ORANGE):
            tuned[name + TUNED] = make_learner(case, cls, changed, tunes=True)
    found = list(play(case, args, args.seeds, learners=lines, measure=count_removals))
    if any(run["removals"] for run in found if run["learner"] == AGAIN):  # else no rate matters
        grid = {"rate_scale": RATES}
        found += play(case, args, args.seeds, learners=tuned, measure=count_removals, tune=grid)
    runs = group(found, "learner")
    ratios = {k: np.array([100.0 * run["mistakes"] for run in own]) for k, own in runs.items()}
    if not np.array_equal(ratios[PAPER], ratios.pop(AGAIN)):
        raise SystemExit(f"{case.name}: removals of this script are not those of POMDR")
    rows = []
    for name, own in ratios.items():
        chosen = (runs[name][0].get("chosen") or "").removeprefix("rate_scale=")
        removals = np.mean([run["removals"] for run in runs[name]])
        rows.append({
            "dataset": case.name, "sigma": case.sigma, "variant": name,
            "rate": chosen or VARIANTS[name][1].get("rate_scale", case.rate_scale),
            "permutations": len(own), **mean_and_sd("mistakes", own),
            **mean_and_sd("more", own - ratios[PAPER]), "removals": f"{removals:.1f}",
        })  # fmt: skip
    return rows


def best_others() -> dict:
    """Return the fewest mistakes that another algorithm makes in Tables 2 and 4, by data set."""
    rows = [row for k in (2, 4) for row in read_csv(FIGURES / f"li2023_tab{k}.csv")]
    others = group([row for row in rows if row["algorithm"] != PAPER], "dataset")
    return {name: min(float(row["mistakes"]) for row in own) for name, own in others.items()}


def draw(rows):
    sets, others = group(rows, "dataset"), best_others()
    figure, axes = panels(len(sets), 4, width=7.2, row_height=2.9)
    for ax, (name, found) in zip(axes.flat, sets.items(), strict=False):
        own = {row["variant"]: row for row in found}
        for place, (variant, (colour, _)) in enumerate(VARIANTS.items()):
            for end, aside, fill in (("", -0.12, colour), (TUNED, 0.14, "white")):
                if row := own.get(variant + end):
                    ax.errorbar(
                        float(row["mistakes"]), place + aside, xerr=float(row["mistakes_sd"]),
                        color=colour, marker="o", mfc=fill, markersize=3.5, linewidth=1.0,
                    )  # fmt: skip
        ax.axvline(float(own[PAPER]["mistakes"]), **THEORY)
        if name in others:
            ax.axvline(others[name], **THEORY, linestyle=":")
        first = ax in axes[:, 0]
        ax.set_yticks(range(len(VARIANTS)), list(VARIANTS) if first else [])
        ax.set_ylim(len(VARIANTS) - 0.5, -0.5)
        okl.plots.tidy(ax, "mistakes (%)", "", name, log="x", small=1.0)
        ax.grid(False, axis="y")
    explain(axes[0, 0], "the paper's rate", marker="o", linestyle="", markersize=3.5)
    explain(axes[0, 0], "rate tuned", marker="o", mfc="white", linestyle="", markersize=3.5)
    explain(axes[0, 0], "POMDR", **THEORY)
    explain(axes[0, 0], "the best of the others", **THEORY, linestyle=":")
    return figure


def main() -> None:
    args, cases = begin(__doc__, CASES)
    rows = args.rows or [row for case in cases for row in measure(case, args)]
    publish(draw(rows), rows, args, legend=4, but=("sigma", "permutations"))


if __name__ == "__main__":
    main()
