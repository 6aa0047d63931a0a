"""What to write instead of arguments that a class does not have: names that stand elsewhere."""

from __future__ import annotations

from difflib import get_close_matches
from inspect import Parameter, Signature
from typing import Any

from oklnumba.core.checks import shown

# What sets the size of a dictionary or of a feature map; docs/sizes.md says which class has which.
SIZES = {
    "budget": "most atoms",
    "max_size": "largest dictionary or feature map",
    "n_frequencies": "half the number of features",
    "rank": "directions kept",
    "sketch": "columns of the sketch",
    "columns": "atoms of the map",
}
SIZES_ELSEWHERE = (
    "n_components", "n_features", "n_landmarks", "n_inducing", "max_atoms", "dictionary_size",
    "n_basis", "n_rff", "D",
)  # fmt: skip
# Name elsewhere: names here, the first of which that the class or a part of it has is meant.
ELSEWHERE = {
    **dict.fromkeys(("bandwidth", "length_scale", "lengthscale", "width"), ("sigma",)),
    "gamma": ("sigma", "scale"),
    **dict.fromkeys(("C", "l2", "ridge", "penalty", "weight_decay"), ("lam", "alpha")),
    **dict.fromkeys(("alpha", "lambda_", "lambd", "lamda", "reg", "reg_lambda"), ("lam",)),
    **dict.fromkeys(("learning_rate", "lr", "eta0", "step", "step_size"), ("eta",)),
    **dict.fromkeys(("random_state", "random_seed", "rng"), ("seed",)),
    **dict.fromkeys(("half_life", "forgetting_factor", "forgetting", "decay"), ("discount",)),
    **dict.fromkeys(("loss_function", "loss_fn", "objective", "criterion"), ("loss",)),
    **dict.fromkeys(("estimator", "base_estimator", "model", "base_learner"), ("learner",)),
    **dict.fromkeys(("estimators", "models", "experts"), ("learners",)),
    **dict.fromkeys(("feature_map", "transformer"), ("features",)),
    **dict.fromkeys(("nu", "tolerance"), ("threshold",)),
    **dict.fromkeys(("aggressiveness", "U", "norm", "max_norm"), ("radius",)),
    **dict.fromkeys(SIZES_ELSEWHERE, tuple(SIZES)),
    **{name: tuple(other for other in SIZES if other != name) for name in SIZES},
}
NOT_MEANT = ("AdaptiveFTRL", "sigma"), ("ExponentiatedGradient", "scale")  # not of a kernel
NOTES = {  # for a name elsewhere and one here, or for a class and a name elsewhere
    ("gamma", "sigma"): "exp(-gamma |x - z|^2) has gamma = 1 / (2 sigma^2), so sigma = "
    "1 / sqrt(2 gamma)",
    ("gamma", "scale"): "(gamma x.z + coef0)^degree has gamma = scale",
    ("Laplacian", "gamma"): "exp(-gamma |x - z|) has gamma = 1 / sigma; |.| is Euclidean",
    ("Matern", "gamma"): "sigma is the length scale",
    ("C", "lam"): "C multiplies the losses and lam the penalty: lam is of order 1 / C",
    ("alpha", "lam"): "the penalty is lam |f|^2",
    ("penalty", "lam"): "the penalty is lam |f|^2, there is no other",
    ("half_life", "discount"): "discount = 2 ** (-1 / half_life)",
    ("n_components", "n_frequencies"): "there are two features for each frequency",
}
# What learners do not have, and other libraries' users look for.
CALLS_ELSEWHERE = {
    "fit": "it plays rounds, okl.run(learner, X, y) or partial_fit(X, y); "
    "okl.interop.OnlineClassifier(learner) and OnlineRegressor(learner) have fit",
    "fit_predict": "okl.run(learner, X, y).predictions are the forecasts, each before its label",
    "score": "okl.run(learner, X, y) has mistake_rate and mean_loss",
    "predict_proba": "okl.interop.OnlineClassifier(learner) has probabilities",
    "decision_function": "predict(X) is the real forecast, whose sign is the class",
    "coef_": "KernelOGD and its kin have coefficients and atoms, linear learners w",
    "learn_many": "partial_fit(X, y) learns many rounds",
    "predict_many": "predict(X) has the forecasts of many points",
    "save_model": "save(path) writes it, okl.load(path) reads it",
}
# What belongs to a part: the argument that is the part, and for each name an example of it.
PARTS = {
    "kernel": {
        "sigma": "okl.Gaussian(sigma=...)",
        "degree": "okl.Polynomial(degree=...)",
        "coef0": "okl.Polynomial(coef0=...)",
        "scale": "okl.Polynomial(scale=...)",
        "nu": "okl.Matern(nu=...)",
    },
    "kernels": {"sigma": "[okl.Gaussian(sigma=...)]", "degree": "[okl.Polynomial(degree=...)]"},
    "features": {
        "degree": "okl.TaylorFeatures(degree=...)",
        "sigma": "okl.TaylorFeatures(sigma=...)",
        "center": "okl.TaylorFeatures(center=...)",
        "n_frequencies": "okl.FourierFeatures(n_frequencies=...)",
        "seed": "okl.FourierFeatures(seed=...)",
        "kernel": "okl.NystromFeatures(landmarks, kernel)",
        "landmarks": "okl.NystromFeatures(landmarks, kernel)",
        "rank": "okl.NystromFeatures(landmarks, kernel, rank=...)",
    },
    "learner": {
        "lam": "okl.PKAWV(features, lam=...)",
        "eta": "okl.FOGD(eta=...)",
        "loss": "okl.FOGD(loss=...)",
        "sigma": "okl.FOGD(sigma=...)",
        "kernel": "okl.NystromAWV(kernel)",
        "features": "okl.PKAWV(features)",
    },
    "learners": {
        "lam": "[okl.PKAWV(features, lam=...)]",
        "eta": "[okl.FOGD(eta=...)]",
        "loss": "[okl.FOGD(loss=...)]",
        "sigma": "[okl.FOGD(sigma=...)]",
    },
}
ONE_PASS = "a stream is played once: okl.run(learner, X, y) is one pass, another call one more"
ABSENT = {  # what others have and a class has not
    "lam": "there is no penalty to set; KernelOGD(kernel, lam=...) has one",
    "eta": "there is no step size to set, leave it out",
    "loss": "its loss is fixed; FOGD, KernelOGD and BOGD take loss=",
    "seed": "there is no randomness in it, leave it out",
    "discount": "it forgets nothing; PKAWV and NystromAWV take discount=",
    "radius": "it is not projected; KernelOGD(kernel, radius=...) is",
    "classes": "several classes are for okl.OneVsRest(learner, classes)",
}
NOTHING = {  # what nothing here corresponds to, and why
    **dict.fromkeys(
        ("max_iter", "n_iter", "epochs", "tol", "early_stopping", "batch_size"), ONE_PASS
    ),
    "n_outputs": "the number of labels a round is known with the first of them",
    "shuffle": "rows are played in their order: shuffle them before",
    **dict.fromkeys(
        ("fit_intercept", "intercept"), "there is no intercept: add a column of ones to X"
    ),
    **dict.fromkeys(("verbose", "progress"), "the bar belongs to okl.run(..., progress=True)"),
    **dict.fromkeys(("n_jobs", "warm_start"), "leave it out, there is nothing to set"),
    **dict.fromkeys(("class_weight", "sample_weight"), "rounds have no weights: leave it out"),
}
EXAMPLES = {  # of what has no default
    "kernel": "okl.Gaussian(sigma=1.0)",
    "kernels": "[okl.Gaussian(sigma=1.0)]",
    "features": "okl.TaylorFeatures(degree=2)",
    "learner": "okl.FOGD()",
    "learners": "[okl.FOGD(eta=0.1), okl.FOGD(eta=1.0)]",
    "classes": "[0, 1, 2]",
    "landmarks": "X[:100]",
}


def named(signature: Signature) -> list[str]:
    """Return the names of arguments that may be given by position."""
    return [
        p.name for p in signature.parameters.values() if p.kind is Parameter.POSITIONAL_OR_KEYWORD
    ]


def required(signature: Signature) -> list[str]:
    """Return the names of arguments without a default."""
    return [p.name for p in signature.parameters.values() if p.default is Parameter.empty]


def call(name: str, signature: Signature, examples: bool = False) -> str:
    """Return how an object of a class is made: okl.KernelAWV(kernel)."""
    needed = [EXAMPLES.get(one, one) if examples else one for one in required(signature)]
    return f"okl.{name}({', '.join(needed) or '...'})"


def cure(name: str, signature: Signature, unknown: str) -> str:
    """Return what to write instead of an argument that a class does not have."""
    own = signature.parameters
    candidates = [one for one in ELSEWHERE.get(unknown, ()) if (name, one) not in NOT_MEANT]
    meant = [one for one in candidates if one in own]
    size = unknown in SIZES or unknown in SIZES_ELSEWHERE
    if meant and size:
        sizes = ", ".join(f"{one} ({SIZES[one]})" for one in meant)
        note = NOTES.get((unknown, meant[0]))
        return f"the size is set by {sizes}" + (f"; {note}" if note else "")
    if meant:
        note = NOTES.get((name, unknown), NOTES.get((unknown, meant[0])))
        return f"{meant[0]} is meant" + (f": {note}" if note else "")
    close = get_close_matches(unknown, own, n=1, cutoff=0.7)
    if close:
        return f"{close[0]} is meant"
    if name == "SelfTuning":
        return "leave it out, for it tunes itself"
    for part, examples in PARTS.items():
        found = [one for one in (unknown, *candidates) if one in examples]
        if part in own and found:
            note = NOTES.get((unknown, found[0]))
            told = f"{found[0]} belongs to the {part}, {part}={examples[found[0]]}"
            return told + (f"; {note}" if note else "")
    if size and "degree" in own:
        return "the number of features follows from degree, C(d + degree, degree)"
    if size:
        return (
            "no argument bounds its size; NystromAWV(kernel, max_size=...), BOGD(kernel, "
            "budget=...) and FOGD(n_frequencies=...) have one (docs/sizes.md)"
        )
    told = [ABSENT[one] for one in (unknown, *candidates) if one in ABSENT]
    return told[0] if told else NOTHING.get(unknown, "leave it out")


def wrong_arguments(name: str, signature: Signature, args: tuple, kwargs: dict[str, Any]) -> str:
    """Return what is wrong with the arguments of a call, and what to write; "" where nothing is."""
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in signature.parameters.values()):
        return ""  # of a subclass that takes anything
    takes = f"{name} takes {', '.join(signature.parameters) or 'no argument'}"
    unknown = [one for one in kwargs if one not in signature.parameters]
    if unknown:
        told = "; no argument ".join(f"{one}: {cure(name, signature, one)}" for one in unknown)
        return f"{name} has no argument {told}. {takes}"
    places = named(signature)
    if len(args) > len(places):
        rest = [one for one in signature.parameters if one not in places and one not in kwargs]
        if not rest:
            return f"{takes}, but {len(args)} were given; leave the others out"
        pairs = zip(rest, args[len(places) :], strict=False)
        written = ", ".join([*places, *(f"{one}={shown(value)}" for one, value in pairs)])
        return (
            f"{name} takes {len(places)} argument{'s' * (len(places) != 1)} without a name, but "
            f"{len(args)} were given; name the others, for example okl.{name}({written})"
        )
    twice = [one for one in places[: len(args)] if one in kwargs]
    if twice:
        return f"{name} got {twice[0]} twice, by its place and by its name; leave one out"
    given = {*places[: len(args)], *kwargs}
    absent = [one for one in required(signature) if one not in given]
    if absent:
        example = call(name, signature, examples=True)
        return f"{name} needs {' and '.join(absent)}; for example {example}"
    return ""
