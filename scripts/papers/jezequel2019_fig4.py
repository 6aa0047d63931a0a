"""Figure 4 of Jezequel, Gaillard, Rudi (2019): average loss and time on casp and ijcnn1.

Reproduces: the losses and times of kernel ridge regression, PKAWV with Taylor features (M = 2, 3,
    4), Nystrom features, FOGD and Pros-N-KONS under the paper's limit of 300 s (of CPU time);
    squared loss for casp, share of mistakes for ijcnn1. figures/README.md says how we read the
    paper where it leaves room (inputs, labels of casp, FOGD, KORS), and what is ours in it.
Missing: values of the paper's own picture, in which casp has another time limit than in the
    authors' repository (300 s, 600 s); nothing at all is known of ijcnn1. The ends of kernel ridge
    regression, of M = 4 on ijcnn1 (14,950 features), and of Nystrom and Pros-N-KONS there with
    inputs in [-1, 1], cut by the limit. The centred basis of M = 4 on ijcnn1. The permutation of
    the rows is ours, see jezequel2019_casp.py for others, and for the lag of Pros-N-KONS.
Time: at most 5 minutes of CPU time for each algorithm that does not finish, an hour in all, 5 GB of
    memory; --quick: about 4 minutes.
Data: casp (comes with the package); ijcnn1 (OKLNUMBA_DATA or the cache; never downloaded here);
    scripts/papers/published/jezequel2019.csv.
"""

from scripts.papers.jezequel2019 import Panel, reproduce

if __name__ == "__main__":
    reproduce(__doc__, [Panel("casp"), Panel("ijcnn1")])
