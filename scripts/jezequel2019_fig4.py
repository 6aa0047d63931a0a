"""Figure 4 of Jezequel, Gaillard, Rudi (2019): average loss and time on casp and ijcnn1.

Reproduces: the losses and times of kernel ridge regression, PKAWV with Taylor features (M = 2, 3,
    4), Nystrom features, FOGD and Pros-N-KONS under the paper's limit of 300 s (of CPU time);
    squared loss for casp, share of mistakes for ijcnn1. Labels of casp as the authors' code scales
    them, to (2 RMSD - 1) / 41. Inputs scaled to [-1, 1], as the paper says, and to [0, 1], as that
    code does; there points show the authors' run on casp, read off the pictures in their
    repository. Beside the published Taylor basis stands ours, centred at the mean of the first 500
    inputs, where it has at most 2500 features.
Missing: values of the paper's own picture, in which casp has another time limit than in the
    authors' repository (300 s, 600 s); nothing at all is known of ijcnn1. The ends of kernel ridge
    regression, of M = 4 on ijcnn1 (14,950 features), and of Nystrom and Pros-N-KONS there with
    inputs in [-1, 1], cut by the limit. The centred basis of M = 4 on ijcnn1. "1000 random
    features" of FOGD are read as 1000 frequencies (2000 sines and cosines), as in the authors'
    code. The permutation of the rows is ours, see jezequel2019_casp.py for others. KORS is played
    as published and as the paper lists it; Pros-N-KONS without the lag of the authors' code (same
    script).
Time: at most 5 minutes of CPU time for each algorithm that does not finish, an hour in all, 5 GB of
    memory; --quick: about 4 minutes.
Data: casp (comes with the package); ijcnn1 (OKLNUMBA_DATA or the cache; never downloaded here);
    scripts/published/jezequel2019.csv.
"""

from jezequel2019 import Panel, reproduce

if __name__ == "__main__":
    reproduce(__doc__, [Panel("casp"), Panel("ijcnn1")])
