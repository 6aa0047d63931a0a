"""What is in the package: algorithm, class, paper and scripts; one table for README and help()."""

from __future__ import annotations

from typing import NamedTuple


class Entry(NamedTuple):
    """One row of the table; names and scripts are separated by commas, "" stands for none."""

    algorithm: str
    names: str  # in ``oklnumba``
    paper: str
    scripts: str


CATALOGUE = tuple(Entry(*row) for row in (
    ("Kernel-AWV", "KernelAWV",
     "Jézéquel, Gaillard, Rudi 2019, section 2, eq. 3",
     "jezequel2019_fig3.py, jezequel2019_tab1.py"),
    ("online kernel ridge regression", "KernelRidge",
     "Jézéquel, Gaillard, Rudi 2019, section 2", "jezequel2019_fig2.py, jezequel2019_fig4.py"),
    ("PKAWV on Taylor, Fourier or Nyström features", "PKAWV",
     "Jézéquel, Gaillard, Rudi 2019, Algorithm 1", "jezequel2019_fig2.py, jezequel2019_fig4.py"),
    ("PKAWV, inputs known beforehand", "PKAWV.known_inputs",
     "Jézéquel, Gaillard, Rudi 2019, Corollary 8", ""),
    ("PKAWV on Taylor features whose degree grows with log n", "GrowingPKAWV",
     "Jézéquel, Gaillard, Rudi 2019, section 3.1, Theorem 4", ""),
    ("Nyström PKAWV with KORS", "NystromAWV",
     "Jézéquel, Gaillard, Rudi 2019, Algorithm 2", "jezequel2019_fig2.py, jezequel2019_fig4.py"),
    ("kernel online Newton step (KONS)", "KONS",
     "Calandriello, Lazaric, Valko 2017 (ICML), Algorithm 1",
     "calandriello2017_gamma.py, calandriello2017_counterexample.py"),
    ("Sketched-KONS", "SketchedKONS",
     "Calandriello, Lazaric, Valko 2017 (ICML), Algorithm 3",
     "calandriello2017_gamma.py, calandriello2017_weights.py, calandriello2017_counterexample.py"),
    ("Pros-N-KONS, CON-KONS", "ProsNKONS",
     "Calandriello, Lazaric, Valko 2017 (NIPS), Algorithm 1",
     "calandriello2017_gamma.py, jezequel2019_fig2.py, jezequel2019_fig4.py"),
    ("KORS, a streaming dictionary", "KORS",
     "Calandriello, Lazaric, Valko 2017 (ICML), Algorithm 2", "calandriello2017_kors.py"),
    ("uniform sampling and ALD, to compare it with", "UniformSampling, ALD",
     "Engel, Mannor, Meir 2004 (ALD)", "calandriello2017_kors.py"),
    ("POMDR, optimistic mirror descent with a bounded dictionary", "POMDR",
     "Li, Liao 2023, Algorithm 1",
     "li2023_tab1.py, li2023_tab2.py, li2023_tab3.py, li2023_tab4.py, li2023_tab5.py"),
    ("POMD, its first phase for ever", "POMD",
     "Li, Liao 2023, eq. 2, 6, 7", "li2023_budget.py"),
    ("kernel online gradient descent, NORMA", "KernelOGD",
     "Kivinen, Smola, Williamson 2004", "regret_vs_dictionary.py"),
    ("bounded online gradient descent, BOGD and BOGD++", "BOGD",
     "Zhao et al. 2012", "regret_vs_dictionary.py"),
    ("Projectron and Projectron++", "Projectron",
     "Orabona, Keshet, Caputo 2009", "regret_vs_dictionary.py"),
    ("kernel recursive least squares with ALD", "KRLS",
     "Engel, Mannor, Meir 2004", "regret_vs_dictionary.py"),
    ("Fourier online gradient descent", "FOGD",
     "Lu, Hoi, Wang, Zhao, Liu 2016, Algorithm 1",
     "li2023_tab2.py, li2023_tab4.py, jezequel2019_fig2.py"),
    ("Nyström online gradient descent", "NOGD",
     "Lu, Hoi, Wang, Zhao, Liu 2016, Algorithm 2", "li2023_tab2.py, li2023_tab4.py"),
    ("sketched online gradient descent", "SkeGD",
     "Zhang, Liao 2019", "li2023_tab2.py, li2023_tab4.py"),
    ("B(AO)2KS, one kernel or several with bandit feedback", "BAO2KS",
     "Liao, Li 2021", "li2023_tab2.py, li2023_tab4.py"),
    ("online gradient descent, projected, lazy, by schedule", "OGD, LazyOGD",
     "Zhang 2019, sections 2.3 and 3", "zhang2019_bounds.py, zhang2019_geometry.py"),
    ("p-norm algorithm", "PNorm",
     "Zhang 2019, section 2.3, item 3", "zhang2019_bounds.py, zhang2019_geometry.py"),
    ("exponentiated gradient, Hedge", "ExponentiatedGradient, Hedge",
     "Zhang 2019, section 2.3, item 4",
     "zhang2019_bounds.py, zhang2019_geometry.py, zhang2019_portfolio.py"),
    ("FTRL with adaptive regularisation, AdaGrad", "AdaptiveFTRL",
     "Zhang 2019, section 2.5, Corollary 1", "zhang2019_bounds.py"),
    ("FTRL for strongly convex losses", "StronglyConvexFTRL",
     "Zhang 2019, section 3, Theorem 4", "zhang2019_bounds.py"),
    ("FTRL for exp-concave losses", "ExpConcaveFTRL",
     "Zhang 2019, section 4, Theorem 6", "zhang2019_bounds.py, zhang2019_portfolio.py"),
    ("online Newton step", "OnlineNewtonStep",
     "Calandriello, Lazaric, Valko 2017 (ICML), Algorithm 1", "benchmark_oco.py"),
    ("online Newton step with frequent directions", "SketchedONS",
     "Luo et al. 2016", "benchmark_oco.py"),
    ("Perceptron, Winnow", "Perceptron, Winnow",
     "Zhang 2019, section 2.4", "zhang2019_bounds.py"),
    ("linear AWV and ridge", "LinearAWV, LinearRidge",
     "Jézéquel, Gaillard, Rudi 2019, section 2", "benchmark_oco.py"),
    ("feature maps, also steps of scikit-learn's pipelines",
     "TaylorFeatures, FourierFeatures, NystromFeatures",
     "Jézéquel, Gaillard, Rudi 2019, eq. 6; Rahimi, Recht 2007; Williams, Seeger 2001",
     "jezequel2019_fig2.py"),
    ("any of these on features", "WithFeatures",
     "", "benchmark_oco.py"),
    ("nothing to tune: a grid of all these, aggregated", "SelfTuning",
     "ours, after Vovk 1998; Jacobsen, Cutkosky 2024", "self_tuning.py, self_tuning_drift.py"),
    ("aggregation of learners", "Experts",
     "Vovk 1998; Zhang 2019, Example 6", "benchmark_oco.py"),
    ("several classes, one scorer each; several labels", "OneVsRest, MultiOutput",
     "Rifkin, Klautau 2004", "benchmark_awv.py"),
    ("inputs standardised by their past, before any learner", "Standardizer, Standardized",
     "Welford 1962", ""),
    ("one fixed function out of a run", "OnlineToBatch",
     "Helmbold, Warmuth 1995; Li, Liao 2023, Theorem 3", "li2023_risk.py"),
    ("any of these as an estimator of scikit-learn",
     "interop.OnlineClassifier, interop.OnlineRegressor",
     "Pedregosa et al. 2011", ""),
    ("any of these as a model of river", "interop.to_river",
     "Montiel et al. 2021", ""),
))  # fmt: skip


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
    """Return names, papers and scripts in plain text, for help()."""
    width = 2 + max(len(entry.names) for entry in CATALOGUE)
    lines = []
    for entry in CATALOGUE:
        paper, *scripts = filter(None, (entry.paper, entry.scripts))
        lines.append(f"{entry.names:{width}}{paper}")
        lines += [" " * width + line for line in scripts]
    return "\n".join(lines)
