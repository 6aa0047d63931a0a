"""Figure 4 of Jezequel, Gaillard, Rudi (2019): average loss and time on casp and ijcnn1.

Reproduces: the whole figure under the paper's limit of 300 s (of CPU time), which cuts some curves.
Missing: values of the paper's own picture. One permutation, ours; jezequel2019_casp.py has more.
Time: at most 5 minutes for each algorithm, an hour in all, 5 GB of memory; --quick: 4 minutes.
"""

from scripts.papers.jezequel2019 import Panel, reproduce

if __name__ == "__main__":
    reproduce(__doc__, [Panel("casp"), Panel("ijcnn1")])
