"""Figure 4 of Jezequel, Gaillard, Rudi (2019): average loss and time on casp and ijcnn1.

Reproduces: the losses and times of kernel ridge regression, PKAWV with Taylor features (M = 2, 3,
    4), Nystrom features and FOGD; squared loss for casp, share of mistakes for ijcnn1. Inputs
    scaled to [-1, 1], as the paper says, and to [0, 1], as its released code does. Beside the
    published Taylor basis stands ours, centred at the mean of the first 500 inputs.
Missing: Pros-N-KONS; degrees with more than 1500 features (ijcnn1: M = 3 and 4). The paper gives
    curves without numbers, so there is nothing to compare digit by digit. "1000 random features" of
    FOGD are read as 1000 frequencies (2000 sines and cosines), as in the released code. The
    permutation of the rows is ours.
Time: at most 5 minutes for each algorithm that does not finish, about half an hour in all;
    --quick: about 3 minutes.
Data: casp (comes with the package); ijcnn1 (OKLNUMBA_DATA or the cache; never downloaded here).
"""

from jezequel2019 import Panel, reproduce

if __name__ == "__main__":
    reproduce(__doc__ or "", "jezequel2019_fig4", [Panel("casp"), Panel("ijcnn1")])
