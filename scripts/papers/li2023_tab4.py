"""Table 4 of Li and Liao (2023), supplement: mistakes and times on four more data sets.

Reproduces: mnist12, a9a and ijcnn1 whole, settings as in Table 2; SUSY on other rows.
Missing: which 50,000 rows of SUSY the authors drew: 50,000 others of the full file stand for them
    (susy, drawn here), or else 30,000 (susy30k). Widths and times as in Table 2.
Time: ten minutes (--quick: two permutations of mnist12, some seconds).
"""

from scripts.papers.li2023 import A9A, IJCNN1, MNIST12, compare, susy

if __name__ == "__main__":
    compare(__doc__, 4, [MNIST12, A9A, IJCNN1, susy()])
