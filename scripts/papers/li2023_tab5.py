"""Table 5 of Li and Liao (2023), supplement: kernel alignment and t-bar on more data sets.

Reproduces: mnist12 and a9a whole, and the exact A_T next to the sum of delta; SUSY on other rows.
Missing: which 50,000 rows of SUSY the authors drew: 50,000 others of the full file stand for them
    (susy, drawn here), or else 30,000 (susy30k). Widths as in Table 3.
Time: about two minutes, most of it the exact A_T (--quick: mnist12 only, half a minute).
Data: mnist12, a9a and susy or susy30k.
"""

from dataclasses import replace

from scripts.papers.li2023 import A9A, MNIST12, susy, widths

if __name__ == "__main__":
    widths(__doc__, 5, [
        replace(MNIST12, sigma=0.5), MNIST12, A9A, replace(A9A, sigma=32.0), susy(),
        replace(susy(), sigma=32.0),
    ])  # fmt: skip
