"""Figure 2 of Jezequel, Gaillard, Rudi (2019): classification error and time on cod-rna and SUSY.

Reproduces: as jezequel2019_fig4.py, the share of mistakes.
Missing: values of the paper, whose figure is a picture only. Without the full SUSY 30,000 of its
    rows stand for it. No centred basis of M = 4 on SUSY.
Time: half an hour, 5 GB of memory, 8 GB with the full SUSY; --quick: about 4 minutes.
"""

import oklnumba as okl
from scripts.papers.jezequel2019 import Panel, reproduce

if __name__ == "__main__":
    susy = "susy" if okl.datasets.found("susy") else "susy30k"
    reproduce(__doc__, [Panel("cod-rna", test_part=True), Panel(susy, sigma=4.0)])
