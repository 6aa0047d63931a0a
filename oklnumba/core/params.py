"""Hyper-parameters: fields with a domain, listed, printed, copied, and written as plain JSON."""

import copy
import inspect
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY as KW_ONLY
from dataclasses import Field, dataclass, field, fields
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, dataclass_transform

import numpy as np

from oklnumba.core import checks
from oklnumba.core.checks import repr_short, repr_type, repr_value, suggest
from oklnumba.core.display import table

# What other libraries call some of our hyper-parameters.
SYNONYMS = {
    **dict.fromkeys(("bandwidth", "length_scale", "gamma", "width"), ("sigma",)),
    **dict.fromkeys(("C", "alpha", "lambda_", "reg", "l2", "ridge", "penalty"), ("lam",)),
    **dict.fromkeys(("learning_rate", "lr", "eta0", "step_size"), ("eta",)),
    **dict.fromkeys(("random_state", "random_seed", "rng"), ("seed",)),
    **dict.fromkeys(("half_life", "forgetting_factor"), ("discount",)),
    **dict.fromkeys(("max_atoms", "dictionary_size", "n_landmarks"), ("budget", "max_size")),
    **{"budget": ("max_size",), "max_size": ("budget",)},
    **dict.fromkeys(("n_components", "n_features"), ("n_frequencies", "rank")),
    **dict.fromkeys(("estimator", "model"), ("learner",)),
}
INVERSES = {"gamma", "C"}  # large where ours is small
NO_WEIGHTS = "all rounds count alike: for rare classes move the threshold of the forecasts; "
UNKNOWN = dict.fromkeys(("class_weight", "sample_weight"), NO_WEIGHTS)


# ---- declarations: each is a dataclass field with the check of its domain ----

T = TypeVar("T")
Check = Callable[[str, Any], T]


def required(check: Check[T]) -> T:
    """Declare a hyper-parameter without a default.

    ``check(name, value)`` returns the value that loops compute with, or raises ValueError.
    """
    return field(metadata={"check": check, "optional": False})


def field_with(check: Check, default: T, optional: bool = False) -> T:
    """Declare a hyper-parameter; ``optional``, or the default None, allows None."""
    optional = optional or default is None
    return field(default=default, metadata={"check": check, "optional": optional})


# As in ``lam: float = positive(1.0)``.
positive = partial(field_with, checks.require_positive)
nonnegative = partial(field_with, checks.require_nonnegative)
width = partial(field_with, checks.require_width)  # of a kernel: its square does not overflow
discount_factor = partial(field_with, checks.require_discount)
random_seed = partial(field_with, checks.require_seed)
flag = partial(field_with, checks.require_flag)


def field_in(interval: str, default: T) -> T:
    """Declare a number in an interval, written as "(0, 1]"."""
    return field_with(partial(checks.require_within, interval=interval), default)


def count(default: T, *, least: int) -> T:
    """Declare an integer >= least."""
    return field_with(partial(checks.require_count, least=least), default)


def choice(words: Iterable[str], default: T) -> T:
    """Declare one of some words."""
    return field_with(partial(checks.require_choice, choices=list(words)), default)


# ---- objects that have hyper-parameters ----


@dataclass_transform(eq_default=False, field_specifiers=(required,))
class Params:
    """Base of every object with hyper-parameters: kernels, feature maps, learners.

    Every subclass is a dataclass with a field for each hyper-parameter and its domain, such as
    ``lam: float = positive(1.0)``. ``__init__``, the checks, ``get_params``, the repr and the file
    follow from the fields. They hold what the user gives, so scikit-learn's ``clone`` works. Fields
    after a line ``_: KW_ONLY`` are given by keyword.
    """

    __signature__: ClassVar[inspect.Signature]
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        dataclass(eq=False, repr=False)(cls)
        parameters = list(inspect.signature(cls.__init__).parameters.values())
        cls.__signature__ = inspect.Signature(parameters[1:])

    if not TYPE_CHECKING:  # which would hide the arguments of __init__

        def __new__(cls, *args: Any, **kwargs: Any) -> Self:
            """Return a new object; raise TypeError that names what an unknown argument may mean."""
            for name in kwargs:
                if name not in cls.__signature__.parameters:
                    raise TypeError(unknown_name(cls, name, "argument"))
            return super().__new__(cls)

    def __post_init__(self) -> None:
        self._checked_params()

    def _checked_params(self) -> SimpleNamespace:
        """Return the hyper-parameters as loops take them; ValueError for any out of range."""
        values = {}
        for one in fields(self):
            value, check = getattr(self, one.name), one.metadata.get("check")
            if check and not (value is None and one.metadata["optional"]):
                value = check(one.name, value)
            values[one.name] = value
        self._check_params()
        return SimpleNamespace(**values)

    def _check_params(self) -> None:
        """Raise ValueError for hyper-parameters, each in its domain, that do not go together."""

    @property
    def _uses_seed(self) -> bool:
        """Whether ``seed`` has an effect of its own, apart from seeds of inner objects."""
        return True

    def _refuse_unused(self, why: str, *names: str) -> None:
        """Raise ValueError for hyper-parameters other than the default that change nothing."""
        for one in fields(self):
            value = getattr(self, one.name)
            if one.name in names and value is not one.default and value != one.default:
                raise ValueError(f"{one.name}={repr_short(value)} would be ignored: {why}")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return hyper-parameters; ``deep`` adds those of nested objects as ``outer__inner``."""
        params = {name: getattr(self, name) for name in self.__signature__.parameters}
        for name, value in list(params.items()) if checks.require_flag("deep", deep) else ():
            if isinstance(value, Params):
                params |= {f"{name}__{inner}": v for inner, v in value.get_params().items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set hyper-parameters by name, nested ones by ``outer__inner``; return self.

        After the first data they take effect at ``reset()``.
        """
        direct: dict[str, Any] = {}
        nested: defaultdict[str, dict[str, Any]] = defaultdict(dict)
        for name, value in params.items():
            outer, inner = name.partition("__")[::2]
            if outer not in self.__signature__.parameters:
                raise ValueError(unknown_name(type(self), outer, "hyper-parameter"))
            (nested[outer] if inner else direct)[inner or outer] = value
        objects = self, *self.get_params().values(), *direct.values()
        undo = [(one, one.get_params(deep=False)) for one in objects if isinstance(one, Params)]
        try:
            for name, value in direct.items():
                setattr(self, name, value)
            for outer, inner_params in nested.items():
                one = getattr(self, outer)
                if not isinstance(one, Params):
                    raise ValueError(f"{outer}={repr_short(one)} has no hyper-parameters")
                one.set_params(**inner_params)
            self._checked_params()
        except BaseException:
            for one, values in undo:
                vars(one).update(values)
            raise
        return self

    def __repr__(self) -> str:
        return self._repr_with(vars(self))

    def _repr_with(self, params: dict[str, Any]) -> str:
        names = self.__signature__.parameters
        inside = ", ".join([f"{name}={repr_value(params[name])}" for name in names])
        return f"{type(self).__name__}({inside})"

    def _describe_data(self) -> dict[str, Any]:
        """Return what to show of the data seen, by name; empty before any."""
        return {}

    def _repr_html_(self) -> str:
        rows = {name: repr_value(value) for name, value in self.get_params(deep=False).items()}
        return table(type(self).__name__, rows | self._describe_data())


def unknown_name(cls: type[Params], name: str, what: str) -> str:
    """Return the message for a name that a class does not have, with the one that may be meant."""
    names = list(cls.__signature__.parameters)
    meant = next((one for one in SYNONYMS.get(name, ()) if one in names), None)
    hint = UNKNOWN.get(name, suggest(name, names)) if meant is None else f"did you mean {meant!r}? "
    hint += f"(small where {name!r} is large) " if meant and name in INVERSES else ""
    return f"{cls.__name__} has no {what} {name!r}; {hint}it has {', '.join(names) or 'none'}"


def find_parts(kind: type[T], *values: Any) -> list[T]:
    """Return the objects of a class among hyper-parameters, at any depth."""
    found: list[T] = []
    for one in values:
        if isinstance(one, kind):
            found.append(one)
        elif isinstance(one, Params):
            found += find_parts(
                kind, *[getattr(one, name) for name in one.__signature__.parameters]
            )
        elif isinstance(one, list | tuple):
            found += find_parts(kind, *one)
    return found


def clone(value: Any, more_seed: int = 0) -> Any:
    """Return a copy of an object, or of a list of objects, without the data they have seen.

    more_seed : what is added to every ``seed`` in it that is used.
    """
    if isinstance(value, Params):
        params = {n: clone(v, more_seed) for n, v in value.get_params(deep=False).items()}
        if "seed" in params and value._uses_seed:
            params["seed"] += more_seed
        return type(value)(**params)
    if type(value) in (list, tuple):
        return type(value)(clone(v, more_seed) for v in value)
    return copy.deepcopy(value)


# ---- plain data, for files ----


def to_spec(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """Return ``value`` as plain JSON data; arrays go into ``arrays``, their names here."""
    if isinstance(value, Params):
        params = {name: to_spec(v, arrays) for name, v in value.get_params(deep=False).items()}
        return {"class": type(value).__name__, "params": params}
    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        key = f"param_{len(arrays)}"
        arrays[key] = value
        return {"array": key}
    if hasattr(value, "tolist"):  # NumPy's number, an array of objects, or a column of a frame
        value = value.tolist()
    if isinstance(value, list | tuple | range):
        return {"list": [to_spec(v, arrays) for v in value], "tuple": isinstance(value, tuple)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if (real := checks.as_float(value)) == real:  # a fraction or a decimal
        return real
    raise ValueError(
        f"cannot save a hyper-parameter that is {repr_type(value)}, only numbers, texts, arrays, "
        "lists and objects of oklnumba; pickle.dump(learner, file) saves others too (no lambda)"
    )


def from_spec(spec: Any, arrays: Any, classes: Sequence[type] = ()) -> Any:
    """Return what ``to_spec`` wrote, made of ``classes`` and oklnumba's, or UnknownClass."""
    if not isinstance(spec, dict):
        return spec
    if "array" in spec:
        return arrays[spec["array"]]
    if "list" in spec:
        items = [from_spec(v, arrays, classes) for v in spec["list"]]
        return tuple(items) if spec["tuple"] else items
    name, by_name = spec["class"], list_classes() | {one.__name__: one for one in classes}
    if name not in by_name:
        raise checks.UnknownClass(
            f"needs the class {name}, which is not in this oklnumba; if it is your own, pass it: "
            f"okl.load(path, classes=[{name}]); otherwise update oklnumba"
        )
    params = {key: from_spec(v, arrays, classes) for key, v in spec["params"].items()}
    return by_name[name](**params)


def list_classes() -> dict[str, type[Params]]:
    """Return the classes with hyper-parameters that oklnumba exports, by name."""
    package = sys.modules["oklnumba"]
    exported = {name: vars(package).get(name) for name in package.__all__}
    return {n: c for n, c in exported.items() if isinstance(c, type) and issubclass(c, Params)}
