"""Table 5 of Li and Liao (2023), supplement: kernel alignment and t-bar on more data sets.

Reproduces: mnist12 and a9a whole, and the exact A_T next to the sum of delta; SUSY on other rows.
Missing: rows of SUSY as in Table 4, widths as in Table 3.
Time: about two minutes, most of it the exact A_T (--quick: mnist12 only, half a minute).
"""

from dataclasses import replace

from scripts.papers.li2023 import A9A, MNIST12, susy, widths

if __name__ == "__main__":
    widths(__doc__, 5, [
        replace(MNIST12, sigma=0.5), MNIST12, A9A, replace(A9A, sigma=32.0), susy(),
        replace(susy(), sigma=32.0),
    ])  # fmt: skip
