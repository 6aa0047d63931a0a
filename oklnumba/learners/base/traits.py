"""What others must know of a learner before they play it, and its hyper-parameters in force."""

from typing import Any, NamedTuple

import numpy as np

from oklnumba.core.inputs import PLAY_ROWS


class Refusal(NamedTuple):
    """A class that refuses late labels, or counts rows, and what to do about it."""

    name: str
    cure: str = ""  # beside playing the learner within


class Traits(NamedTuple):
    """How a learner is played. A wrapper has those of the learner within, but for a few."""

    certificate_rows: int = 0  # arrays of its certificate in a Trace: 3, or 4 with ``guaranteed``
    outputs_at_once: bool = False  # whether it plays K labels per round, (n, K), on one state
    in_threads: bool = False  # whether other threads may play it: it makes no calls of BLAS
    run_rows: int = PLAY_ROWS  # most rounds of a run's block: it looks at the clock between two
    block_rows: int = PLAY_ROWS  # most rounds in one call of ``_play`` or ``_forecast``
    needs_last_label: Refusal | None = None  # who refuses late labels
    needs_each_label: str | None = None  # the class that refuses missing labels, and late ones
    plays_gaps: bool = False  # whether a row without a label, NaN, is a round too
    counts_rows: Refusal | None = None  # the class whose inputs are labels of some rows before
    season: int | None = None  # how many labels ago a season was, where it is an input
    signs: bool = False  # whether labels are -1 and +1 though the loss is not of classes
    is_member: bool = True  # whether it can play within another learner


class InForce(NamedTuple):
    """The hyper-parameters of a state, which later assignments to fields do not change."""

    hyper: Any  # a namespace, as loops take them: a Metric is split into kernel and scales
    kernels: dict[str, object]  # by name, as they were given
    scales: np.ndarray | None = None  # of a Metric: the state is that of the scaled inputs
    is_precomputed: bool = False  # whether a kernel, at any depth, is Precomputed
    block_rows: int = PLAY_ROWS  # of the traits


NOT_IN_FORCE = InForce(None, {})  # before any data
