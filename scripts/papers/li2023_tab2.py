"""Table 2 of Li and Liao (2023): mistakes and times on magic04, w8a and mushrooms.

Reproduces: the whole table, at its widths and at the best of 2^(-2..6) for each algorithm.
Missing: their machine: times are CPU seconds of compiled Python, theirs of R elsewhere.
Time: five minutes (--quick: two permutations, without w8a, a few seconds).
"""

from scripts.papers.li2023 import MAGIC04, MUSHROOMS, W8A, compare

if __name__ == "__main__":
    compare(__doc__, 2, [MAGIC04, W8A, MUSHROOMS])
