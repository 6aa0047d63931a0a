"""Table 2 of Li and Liao (2023): mistakes and times on magic04, w8a and mushrooms.

Reproduces: the whole table: FOGD, NOGD (as Lu et al. have it, and as the authors' script plays it),
    SkeGD, B(AO)2KS and POMDR with 400 atoms or frequencies, steps of the baselines tuned over
    10^(-3..3) / sqrt(T), means over ten random permutations; at the widths of the table, and at the
    best of 2^(-2..6) for each algorithm, tuned with the step.
Missing: their machine: times are CPU seconds of compiled Python, theirs of R elsewhere.
Time: five minutes (--quick: two permutations, without w8a, a few seconds).
Data: magic04 and mushrooms (both come with the package), w8a.
"""

from scripts.papers.li2023 import MAGIC04, MUSHROOMS, W8A, compare

if __name__ == "__main__":
    compare(__doc__, 2, [MAGIC04, W8A, MUSHROOMS])
