"""Figure 2 of Jezequel, Gaillard, Rudi (2019): classification error and time on cod-rna and SUSY.

Reproduces: the share of mistakes and the times of kernel ridge regression, PKAWV with Taylor
    features (M = 2, 3, 4), Nystrom features and FOGD. Inputs scaled to [-1, 1], as the paper says,
    and to [0, 1], as its released code does. Beside the published Taylor basis stands ours, centred
    at the mean of the first 500 inputs.
Missing: Pros-N-KONS; degrees with more than 1500 features (SUSY: M = 4). The full SUSY is run where
    it is at hand; otherwise 30,000 of its rows stand for it. The paper gives curves without
    numbers. "1000 random features" of FOGD are read as 1000 frequencies (2000 sines and cosines),
    as in the released code. The permutation of the rows is ours.
Time: at most 5 minutes for each algorithm that does not finish, half an hour in all, an hour more
    with the full SUSY (which takes 8 GB of memory); --quick: about 3 minutes.
Data: cod-rna (its test file, n = 271,617), susy30k and, if it is there, susy, from OKLNUMBA_DATA or
    the cache; never downloaded here.
"""

from jezequel2019 import Panel, reproduce

if __name__ == "__main__":
    panels = [
        Panel("cod-rna", test_part=True),
        Panel("susy30k", sigma=4.0),
        Panel("susy", sigma=4.0, optional=True),
    ]
    reproduce(__doc__ or "", "jezequel2019_fig2", panels)
