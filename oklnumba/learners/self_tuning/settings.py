"""The constants of SelfTuning: who its members are, how they are combined, and when things happen.

docs/self_tuning.md tells how they were chosen. Times and memories are in rounds.
"""

from typing import NamedTuple

import numpy as np

from oklnumba.components import scaling
from oklnumba.hot.experts import AGGREGATING, DYNAMIC, ML_POLY

# ---- members ----


class Ridge(NamedTuple):
    """A ridge regression; where nothing is forgotten and no lags are seen, also its AWV."""

    lam: float
    half_life: int | None = None  # None: nothing is forgotten


class Space(NamedTuple):
    """Coordinates of a kernel, and the members that play on them."""

    kernel: str  # "Gaussian", "Laplacian" or "linear"
    seed: int  # of the coins of its dictionaries: any number, but another for each space
    ridges: tuple[Ridge, ...]
    aggressiveness: tuple[float, ...] = ()  # C of PA-I, in units of the largest label
    steps: tuple[float, ...] = ()  # of gradient descent, over the squared length of the point
    width: float = 1.0  # sigma, in median distances of the inputs
    max_size: float = np.inf  # most atoms in a dictionary, whatever the budget
    share: float = 1.0  # most atoms in a dictionary, as a share of ``budget``
    metric: str | None = None  # the kernel whose gradients give the metric; None: no metric
    leaf_rounds: int | None = None  # one leaf of its tree for so many rounds; None: no tree
    normal_scores: bool = False  # whether each input counts by its rank
    # Whether its inputs are x and how earlier labels differ from the last one, and its labels the
    # changes from the last one. Such a space is the last of SPACES.
    lags: bool = False


CAUTIOUS_AND_BOLD = 0.1, 1.0  # C of PA-I: one for noisy labels, one for labels without noise
LITTLE_NOISE, MUCH_NOISE = (Ridge(0.03),), (Ridge(0.3),)  # in the labels

SPACES = (
    # After a change, a narrow kernel that forgets: rough functions.
    Space("Gaussian", 0, (Ridge(0.1, 250),), CAUTIOUS_AND_BOLD, width=0.5, max_size=200),
    # Functions of average smoothness, without forgetting.
    Space("Gaussian", 1, (Ridge(0.01),), CAUTIOUS_AND_BOLD),
    # Few atoms and the shortest memory: the first kernel to recover after a change.
    Space("Gaussian", 3, (Ridge(0.1, 50),), max_size=100),
    # Tables in which a few columns matter: a blunt metric, large leaves.
    Space("Laplacian", 5, LITTLE_NOISE, metric="Gaussian", leaf_rounds=512, share=2 / 3),
    # Tables with skewed columns: a sharp metric, columns by their ranks.
    Space(
        "Laplacian", 6, MUCH_NOISE, metric="Laplacian", leaf_rounds=256, share=2 / 3,
        normal_scores=True,
    ),
    # Labels with hardly any noise: many small leaves.
    Space("Laplacian", 7, LITTLE_NOISE, metric="Laplacian", leaf_rounds=32, max_size=64),
    # Linear functions, from standing still to fast drift; descent where none of the models is true.
    Space(
        "linear", 4, tuple(Ridge(lam, t) for lam in (0.001, 1.0) for t in (None, 100, 50, 20, 6)),
        CAUTIOUS_AND_BOLD, steps=(0.3, 3.0),
    ),
    # Labels that depend on the last ones: time series, levels that outages leave and come back to.
    Space("linear", 8, (Ridge(1.0), Ridge(1.0, 300)), lags=True),
)  # fmt: skip
# Behind these is one more member, the last label: for labels that hardly ever change.
LAGS, SHARED_LAGS = 14, 4  # last labels, and those of each of several outputs, which all see

# Jumps along single inputs, and rules: a forest on x, one on x and the last labels. A member is a
# forest whose nodes count as so many rounds of their parents.
TREES, FOREST_LAGS, SHRINKAGES = 10, (0, 3), (0.1, 0.5, 5.0)
RESIDUAL_SHRINKAGES = 1.0, 10.0, 100.0  # of the trees on what the layers lack: mostly noise
GROWTHS = tuple(48 * 2**i for i in range(10))  # rounds after which trees are grown: no restarts
# Trees grow on so many latest rows; on fewer, but not the fewest, if these have more numbers.
MOST_GROWN, FEWEST_GROWN, GROWTH_NUMBERS = 8192, 512, 2**18
LEAST_SPREAD = 1e-12  # of the labels of trees, over the largest label: below, all are equal
# The most work of a growth, for each number, tree and log2 of the rows: of trees on labels, on
# residuals, and of boosted ones.
DEPTHS = 1.5, 3.3, 0.5

# Compiled into loops, so beside them: JOINING of KORS in hot/tuned/space.py, MEMORY and
# LEAST_VARIANCE of the fourth aggregation in hot/experts.py.


class Boosting(NamedTuple):
    """Boosted trees on labels -1 and +1."""

    surest: float  # they begin at forecasts of at most this, which they can overturn
    trees: int  # each time
    leaves: int  # at most; fewer where there were not so many rows for each
    rows: int
    inputs: int  # that a tree sees, drawn anew for each
    rate: float
    curvature: float  # of a child at least, and added to that of a leaf
    debt: float  # what they must gain before they count: where all is sure, rounding would do
    growths: tuple[int, ...]  # as above, but more often: rules change less than means


BOOSTING = Boosting(
    surest=0.7, trees=40, leaves=16, rows=32, inputs=32, rate=0.6, curvature=0.5, debt=1.0,
    growths=tuple(sorted((*GROWTHS, *(68 * 2**i for i in range(9))))),
)  # fmt: skip

# ---- layers ----

# Aggregations of all members, (kind, share). The first has the guarantee, the second follows drift,
# the third needs no scale of losses, the fourth learns the variance of the noise.
FIRST_LAYER = (AGGREGATING, 0.0), (AGGREGATING, 1e-3), (ML_POLY, 0.0), (DYNAMIC, 1e-3)
POSTERIOR = 3  # the aggregation whose weights are ``SelfTuning.weights``
# Regressions on the forecasts of members and first layer, in units of the largest label: for noisy
# labels without and with drift, and for labels with little noise.
STACKS = Ridge(10.0), Ridge(10.0, 500), Ridge(0.3, 500)
# Regressions on what the first layer and these forecast, and on its cubes: for functions that level
# off, as probabilities do.
CORRECTIONS = Ridge(1.0), Ridge(1.0, 500)
FINAL_LAYER = 0, 2  # aggregations of the first layer that ML-Poly weighs, with all regressions
STAGES = len(FIRST_LAYER) + len(STACKS) + len(CORRECTIONS)  # forecasts of layers before the last

# ---- when things happen ----

RESTARTS = (32, 128, 512, 2048, 8192, 32_768)  # rounds after which there is a new ensemble
# A restart before round LATE leaves out the last quarter of the past, a later one the last seventh,
# one out of schedule, as a growth of trees, the last sixteenth. In single rounds a restart's work
# is spread evenly over what it leaves out, PIECES_PER_ROUND[i] pieces after each round, i the
# restart, so that few rounds take over five times the median one.
LATE, RESTART_SHARES, GROWTH_SHARE = 8192, (4, 7), 16
PIECES_PER_ROUND = 4, 2, 1, 1, 1, 1
# Time of a row that may join a dictionary, if a plain replay takes 1: where dictionaries only
# choose, and where it is played as well.
CHOICE_COST, JOIN_COST = 0.4, 1.5
MAX_PAST, FREE_RESTARTS = 2**26, 2048  # bytes of the past; restarts up to this round take any
BLOCK_ROWS = 1024  # rounds whose coordinates and forecasts are in memory at a time
# Of rows of so many that a single round reads together: they share no set of the first cache.
ROW_ROOM = BLOCK_ROWS + 8

# Rows of inputs that are kept after the last restart. Importance reads fewer, but at least
# FEWEST_SAMPLED, where they hold more than SAMPLED_NUMBERS.
KEPT_ROWS, FEWEST_SAMPLED, SAMPLED_NUMBERS = 256, 16, 2**14

# ---- labels ----

LABEL_OUTLIER = 20.0  # median deviations from the median from which on labels are outliers:
LONG_WINDOW, SHORT_WINDOW = 1024, 16  # of so many last labels, and of so few
# A label is none if a member with lags forecast it within so much of its distance from the median,
# and if it is at most so many times further away than outliers begin.
FORETOLD, MOST_REACHES = 0.25, 20.0
MEASURE_LABELS_EVERY = 8  # rounds
MAX_LABEL = 1e70  # fourth powers of larger ones overflow
LABEL_SIZES, FEWEST_SIZES = (1e-60, 1e60), 8  # of the last labels, if so many are not 0
# Rounds of a period. After each the range of labels is forgotten if the labels of the last two
# periods do not fill one part of so many.
PERIOD, FILLED = 1024, 4.0

# ---- inputs: scales, metrics, trees ----

INPUT_OUTLIER = scaling.OUTLIER  # median deviations
MAX_INPUT = scaling.LARGEST
LOG_FROM = 4.0  # standard deviations from which on inputs count by their logarithm
SCORES = np.linspace(-3.0, 3.0, 33)  # normal scores of the quantiles that are measured
METRIC_ROUNDS = 128  # all scales are 1 before so many
# Rows of each pass of a metric, by its kernel. More passes are sharper; one metric of each kind
# serves more tables than two alike.
PASSES = {"Gaussian": (2048, 4096), "Laplacian": (1024, 1024, 1024, 1024, 2048)}
METRIC_ATOMS = 300
PASS_NUMBERS, LEAST_PASS_ROWS = 2**18, 512  # a pass has fewer rows if these have more numbers
WIDTH_ROWS = 200  # rows whose distances give the width of the kernel of a pass
MEDIAN_ROWS = 500  # rows whose distances give the median distance
LEAST_MEDIAN = 1e-12  # below, all inputs but a few are equal on the common scale
SAME_SPREAD = 1.0 - 1e-9  # spreads that differ by less are equal; the first column is split
DEEPEST = 8192  # rounds; trees have no more leaves after more

# Work of one piece of a restart, in numbers read, and about the most pieces for one task.
SORT_NUMBERS, SORT_PIECES = 2**14, 8
SPLIT_NUMBERS, SPLIT_PIECES = 2**15, 16
NODE_NUMBERS = 2**12  # a node takes as long as its numbers and so many more
