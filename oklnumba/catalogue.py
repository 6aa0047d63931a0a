"""What is in the package: algorithm, class, paper and script, one table for README and help()."""

from __future__ import annotations

from typing import NamedTuple


class Entry(NamedTuple):
    """One algorithm.

    Attributes
    ----------
    algorithm : str
    names : str
        Its names in ``oklnumba``, separated by commas.
    paper : str
        Where it is published.
    scripts : str
        Which scripts show it, separated by commas.
    """

    algorithm: str
    names: str
    paper: str
    scripts: str


PKAWV_2019 = "Jézéquel, Gaillard, Rudi 2019"
KONS_2017 = "Calandriello, Lazaric, Valko 2017"
OCO_2019 = "Zhang 2019"
AWV_FIGURES = "jezequel2019_fig2.py, jezequel2019_fig4.py"
KONS_FIGURES = "calandriello2017_gamma.py, calandriello2017_counterexample.py"
POMDR_TABLES = "li2023_tab2.py, li2023_tab4.py"

CATALOGUE = tuple(
    Entry(*row)
    for row in (
        ("Kernel-AWV", "KernelAWV", f"{PKAWV_2019}, section 2, eq. 3", AWV_FIGURES),
        ("online kernel ridge regression", "KernelRidge", f"{PKAWV_2019}, section 2", AWV_FIGURES),
        (
            "PKAWV on Taylor, Fourier or Nyström features",
            "PKAWV",
            f"{PKAWV_2019}, Algorithm 1",
            AWV_FIGURES,
        ),
        ("PKAWV, inputs known beforehand", "PKAWV.known_inputs", f"{PKAWV_2019}, Corollary 8", ""),
        ("Nyström PKAWV with KORS", "NystromAWV", f"{PKAWV_2019}, Algorithm 2", AWV_FIGURES),
        (
            "kernel online Newton step (KONS)",
            "KONS",
            f"{KONS_2017} (ICML), Algorithm 1",
            KONS_FIGURES,
        ),
        ("Sketched-KONS", "SketchedKONS", f"{KONS_2017} (ICML), Algorithm 3", KONS_FIGURES),
        (
            "Pros-N-KONS, CON-KONS",
            "ProsNKONS",
            f"{KONS_2017} (NIPS), Algorithm 1",
            "calandriello2017_gamma.py",
        ),
        (
            "KORS, a streaming dictionary",
            "KORS",
            f"{KONS_2017} (ICML), Algorithm 2",
            "calandriello2017_kors.py",
        ),
        (
            "uniform sampling and ALD, to compare it with",
            "UniformSampling, ALD",
            "Engel, Mannor, Meir 2004 (ALD)",
            "calandriello2017_kors.py",
        ),
        (
            "POMDR, optimistic mirror descent with a bounded dictionary",
            "POMDR",
            "Li, Liao 2023, Algorithm 1",
            "li2023_tab2.py, li2023_tab3.py, li2023_tab4.py, li2023_tab5.py",
        ),
        (
            "POMD, its first phase for ever",
            "POMD",
            "Li, Liao 2023, eq. 2, 6, 7",
            "li2023_budget.py",
        ),
        (
            "kernel online gradient descent, NORMA",
            "KernelOGD",
            "Kivinen, Smola, Williamson 2004",
            "regret_vs_dictionary.py",
        ),
        (
            "bounded online gradient descent, BOGD and BOGD++",
            "BOGD",
            "Zhao et al. 2012",
            "regret_vs_dictionary.py",
        ),
        (
            "Projectron and Projectron++",
            "Projectron",
            "Orabona, Keshet, Caputo 2009",
            "regret_vs_dictionary.py",
        ),
        (
            "kernel recursive least squares with ALD",
            "KRLS",
            "Engel, Mannor, Meir 2004",
            "regret_vs_dictionary.py",
        ),
        (
            "Fourier online gradient descent",
            "FOGD",
            "Lu, Hoi, Wang, Zhao, Liu 2016, Algorithm 1",
            f"{POMDR_TABLES}, jezequel2019_fig2.py",
        ),
        (
            "Nyström online gradient descent",
            "NOGD",
            "Lu, Hoi, Wang, Zhao, Liu 2016, Algorithm 2",
            POMDR_TABLES,
        ),
        ("sketched online gradient descent", "SkeGD", "Zhang, Liao 2019", POMDR_TABLES),
        (
            "B(AO)2KS, one kernel or several with bandit feedback",
            "BAO2KS",
            "Liao, Li 2021",
            POMDR_TABLES,
        ),
        (
            "online gradient descent, projected, lazy, by schedule",
            "OGD, LazyOGD",
            f"{OCO_2019}, sections 2.3 and 3",
            "zhang2019_bounds.py, zhang2019_geometry.py",
        ),
        (
            "p-norm algorithm",
            "PNorm",
            f"{OCO_2019}, section 2.3, item 3",
            "zhang2019_bounds.py, zhang2019_geometry.py",
        ),
        (
            "exponentiated gradient, Hedge",
            "ExponentiatedGradient, Hedge",
            f"{OCO_2019}, section 2.3, item 4",
            "zhang2019_bounds.py, zhang2019_geometry.py, zhang2019_portfolio.py",
        ),
        (
            "FTRL with adaptive regularisation, AdaGrad",
            "AdaptiveFTRL",
            f"{OCO_2019}, section 2.5, Corollary 1",
            "zhang2019_bounds.py",
        ),
        (
            "FTRL for strongly convex losses",
            "StronglyConvexFTRL",
            f"{OCO_2019}, section 3, Theorem 4",
            "zhang2019_bounds.py",
        ),
        (
            "FTRL for exp-concave losses",
            "ExpConcaveFTRL",
            f"{OCO_2019}, section 4, Theorem 6",
            "zhang2019_bounds.py, zhang2019_portfolio.py",
        ),
        (
            "online Newton step",
            "OnlineNewtonStep",
            f"{KONS_2017} (ICML), Algorithm 1",
            "benchmark_oco.py",
        ),
        (
            "online Newton step with frequent directions",
            "SketchedONS",
            "Luo et al. 2016",
            "benchmark_oco.py",
        ),
        (
            "Perceptron, Winnow",
            "Perceptron, Winnow",
            f"{OCO_2019}, section 2.4",
            "zhang2019_bounds.py",
        ),
        (
            "linear AWV and ridge",
            "LinearAWV, LinearRidge",
            f"{PKAWV_2019}, section 2",
            "benchmark_oco.py",
        ),
        ("any of these on features", "WithFeatures", "", "benchmark_oco.py"),
        (
            "aggregation of learners",
            "Experts",
            f"Vovk 1998; {OCO_2019}, Example 6",
            "benchmark_oco.py",
        ),
        ("several classes, one scorer each", "OneVsRest", "Rifkin, Klautau 2004", ""),
        (
            "one fixed function out of a run",
            "OnlineToBatch",
            "Helmbold, Warmuth 1995; Li, Liao 2023, Theorem 3",
            "",
        ),
    )
)


def markdown() -> str:
    """Return the table as README has it."""

    def code(names: str) -> str:
        return ", ".join(f"`{name}`" for name in names.split(", ")) if names else ""

    lines = ["| algorithm | class | paper | script |", "|---|---|---|---|"]
    for entry in CATALOGUE:
        cells = entry.algorithm, code(entry.names), entry.paper, code(entry.scripts)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def text() -> str:
    """Return the table of names, papers and scripts in plain text, for help()."""
    rows = [(e.names, e.paper, e.scripts) for e in CATALOGUE]
    widths = [max(len(row[i]) for row in rows) for i in range(2)]
    return "\n".join(
        f"{names:{widths[0]}}  {paper:{widths[1]}}  {scripts}".rstrip()
        for names, paper, scripts in rows
    )
