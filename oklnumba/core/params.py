"""Hyper-parameters: stored verbatim, listed, printed, and written as plain JSON."""

from __future__ import annotations

import copy
import functools
import inspect
import sys
import threading
from abc import ABCMeta
from collections.abc import Iterator
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import numpy as np

from oklnumba.core.arguments import call, cure, wrong_arguments
from oklnumba.core.checks import as_number, number, require_flag, shown
from oklnumba.core.display import short, table

# Objects with hyper-parameters, and what began with them: a learner with its kernel, say.
_users: WeakKeyDictionary[Params, WeakSet[Params]] = WeakKeyDictionary()
_users_lock = threading.Lock()


class Hyper:
    """A hyper-parameter as an attribute: not assigned while there is data that it belongs to.

    It has no ``__get__``, so that reading takes what stands in ``vars``, at full speed.
    """

    def __init__(self, name: str):
        self.name = name

    def __set__(self, one: Params, value: Any) -> None:
        """Store the value, lists as tuples; raise ValueError if it is another and there is data."""
        values, value = vars(one), _as_tuples(value)
        if self.name in values and not _same(values[self.name], value):
            one._refuse_in_use(self.name)
        values[self.name] = value


def _same(old: Any, new: Any) -> bool:
    """Say whether a value is the old one: the same object, or an equal number or text."""
    plain = type(new) is type(old) and isinstance(new, bool | int | float | str)
    return new is old or (plain and new == old)


def _as_tuples(value: Any) -> Any:
    """Return a tuple for a list, which could change in mid-stream; anything else as it is.

    Columns of data frames too, which files hold as lists.
    """
    if hasattr(value, "tolist") and not isinstance(value, np.ndarray | np.generic | type):
        value = value.tolist()
    return tuple(_as_tuples(one) for one in value) if isinstance(value, list) else value


def _own(value: Any) -> Any:
    """Return a value that nobody else can change: a read-only copy of what is an array."""
    if isinstance(value, tuple):
        owned = tuple(_own(one) for one in value)
        return value if all(a is b for a, b in zip(owned, value, strict=True)) else owned
    if not hasattr(value, "__array__") or np.ndim(value) == 0:
        return value
    if isinstance(value, np.ndarray) and value.base is None and not value.flags.writeable:
        return value
    copied = np.array(value)
    copied.flags.writeable = False
    return copied


class Checked(ABCMeta):
    """The class of classes with hyper-parameters: an object is checked as soon as it is made.

    Not in ``__init__``, which only stores, nor by copies and files, which bring back what was. A
    call with arguments that the class does not have says which are meant.
    """

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """Return a new object, checked; raise TypeError for arguments it does not have."""
        try:
            made = super().__call__(*args, **kwargs)
        except TypeError:
            wrong = wrong_arguments(cls.__name__, cls.__signature__, args, kwargs)
            if not wrong:
                raise
            raise TypeError(wrong) from None
        made._check_params()
        return made

    @property
    def __signature__(cls) -> inspect.Signature:
        """That of ``__init__``, where ``inspect.signature`` would take the one of ``__call__``."""
        if cls.__init__ is object.__init__:
            return inspect.Signature()
        parameters = inspect.signature(cls.__init__).parameters.values()
        return inspect.Signature(list(parameters)[1:])

    def unchecked(cls, **params: Any) -> Any:
        """Return an object of these hyper-parameters, which were checked when they were set.

        So a file of an older version, which allowed more, can be read.
        """
        made = cls.__new__(cls)
        made.__init__(**params)
        return made


class Ignored(ValueError):
    """What is raised for a hyper-parameter that changes nothing: older files may have one."""


class Params(metaclass=Checked):
    """Base of every object with hyper-parameters: kernels, feature maps, learners.

    ``__init__`` of a subclass stores each argument under its own name and does nothing else, as in
    scikit-learn; so ``sklearn.base.clone`` and ``GridSearchCV`` work on it. Lists are kept as
    tuples, and with the first data arrays become read-only copies. ``_check_params``
    refuses those that are out of range: it is called once an object has been made, by
    ``set_params``, and before the first round, for attributes may be assigned too.
    """

    def _check_params(self) -> None:
        """Raise ValueError for hyper-parameters out of range, as far as no data is needed.

        Here: store numbers of NumPy, fractions and decimals as Python's own, and integers too large
        for 64 bits as floats where a float is meant, so that formulas and compiled loops see no
        other types. Subclasses call it first.
        """
        for name, is_float in _numbers_of(type(self)).items():
            value = getattr(self, name)
            if type(value) is float or value is None:
                continue
            plain = as_number(value)
            if isinstance(plain, int) and is_float and abs(plain) > 2**53 and number(plain):
                plain = float(plain)
            if plain is not None and type(plain) is not type(value):
                setattr(self, name, plain)

    def __init_subclass__(cls, **options: Any) -> None:
        """Make an attribute of each hyper-parameter that the class has and its bases have not."""
        super().__init_subclass__(**options)
        for name in cls.__signature__.parameters:
            if name not in vars(cls):
                setattr(cls, name, Hyper(name))

    @classmethod
    @functools.cache
    def _param_names(cls) -> tuple[str, ...]:
        return tuple(name for name in inspect.signature(cls).parameters if name != "self")

    def _refuse_ignored(self, why: str, *names: str) -> None:
        """Raise ValueError for hyper-parameters other than the default that change nothing.

        why : beside what, and what to do.
        """
        defaults = type(self).__signature__.parameters
        for name in names:
            value, default = getattr(self, name), defaults[name].default
            if value is not default and value != default:
                raise Ignored(f"{name}={shown(value)} would be ignored: {why}")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return hyper-parameters; ``deep`` adds those of nested objects as ``outer__inner``."""
        deep = require_flag("deep", deep)
        params: dict[str, Any] = {}
        for name in self._param_names():
            value = getattr(self, name)
            params[name] = value
            if deep and isinstance(value, Params):
                nested = value.get_params()
                params.update({f"{name}__{inner}": v for inner, v in nested.items()})
        return params

    def set_params(self, **params: Any) -> Params:
        """Set hyper-parameters by name, ``outer__inner`` for those of nested objects; return self.

        Raises
        ------
        ValueError
            For a name that is not a hyper-parameter, or a value out of range (nothing has changed
            then).
        """
        own, nested = self._sorted_params(params)
        parts = [self, *(value for value in own.values() if isinstance(value, Params))]
        before = [(one, one.get_params(deep=False)) for part in parts for one in part._nested()]
        try:
            for name, value in own.items():
                setattr(self, name, value)
            for outer, inner_params in nested.items():
                getattr(self, outer).set_params(**inner_params)
            self._check_params()
        except BaseException:
            for one, values in before:
                vars(one).update(values)
            raise
        return self

    def _sorted_params(self, params: dict[str, Any]) -> tuple[dict[str, Any], dict[str, dict]]:
        """Return those of the object itself, and of each nested one; ValueError if unknown."""
        own = {name: value for name, value in params.items() if "__" not in name}
        nested: dict[str, dict[str, Any]] = {}
        for name in params:
            outer, _, inner = name.partition("__")
            target = own.get(outer, getattr(self, outer, None))
            known = outer in self._param_names()
            if inner:
                known = known and isinstance(target, Params) and inner in target.get_params()
                nested.setdefault(outer, {})[inner] = params[name]
            if not known:
                nests = inner and isinstance(target, Params)
                owner, wrong = (target, inner) if nests else (self, outer)
                meant = cure(type(owner).__name__, type(owner).__signature__, wrong)
                raise ValueError(
                    f"{type(self).__name__} has no hyper-parameter {name!r}: {meant}; "
                    f"it has {', '.join(self.get_params())}"
                )
        return own, nested

    def _nested(self) -> Iterator[Params]:
        """Yield the object and those among its hyper-parameters, also in lists, and theirs."""
        yield self
        for value in self.get_params(deep=False).values():
            for one in value if isinstance(value, list | tuple) else (value,):
                if isinstance(one, Params):
                    yield from one._nested()

    # ---- data that belongs to hyper-parameters ----

    def _data(self) -> str | None:
        """Return what the object has done with its hyper-parameters, None before any data."""
        return None

    def _use_parts(self) -> None:
        """Note that data is about to come, for which all that is within must stay as it is."""
        with _users_lock:
            for part in self._nested():
                vars(part).update((n, _own(v)) for n, v in part.get_params(deep=False).items())
                if part is not self:
                    _users.setdefault(part, WeakSet()).add(self)

    def _refuse_in_use(self, name: str) -> None:
        """Raise ValueError where there is data that belongs to the hyper-parameter as it is."""
        done = self._data()
        if done:
            raise ValueError(
                f"this {type(self).__name__} {done} with its present {name}; call reset() first, "
                "or make a new one"
            )
        with _users_lock:
            users = list(_users.get(self, ()))
        for user in users:
            done = user._data()
            if done:
                raise ValueError(
                    f"this {type(self).__name__} belongs to a {type(user).__name__} that {done} "
                    f"with its present {name}; reset() that one first, or make a new "
                    f"{type(self).__name__}"
                )

    def __repr__(self) -> str:
        params = ", ".join(f"{name}={short(getattr(self, name))}" for name in self._param_names())
        return f"{type(self).__name__}({params})"

    def _fitted(self) -> dict[str, Any]:
        """Return what there is to say of the data seen, by name; nothing before any."""
        return {}

    def _repr_html_(self) -> str:
        rows = {name: short(getattr(self, name)) for name in self._param_names()}
        return table(type(self).__name__, rows | self._fitted())


@functools.cache
def _numbers_of(cls: type) -> dict[str, bool]:
    """Return the hyper-parameters of a class that may be numbers; whether they may be floats."""
    declared = {p.name: str(p.annotation) for p in cls.__signature__.parameters.values()}
    return {n: "float" in kind for n, kind in declared.items() if "float" in kind or "int" in kind}


def anew(value: Any) -> Any:
    """Return hyper-parameters, and objects of them, as they were given: without data."""
    if isinstance(value, Params):
        params = value.get_params(deep=False)
        return type(value).unchecked(**{name: anew(v) for name, v in params.items()})
    if type(value) in (list, tuple):
        return type(value)(anew(v) for v in value)
    return copy.deepcopy(value)


def told(value: Any) -> str:
    """Return what a value is that is none of ours, or a class of ours; for messages."""
    if isinstance(value, Checked):
        return f"the class {value.__name__}; make one: {call(value.__name__, value.__signature__)}"
    library = {"sklearn": "scikit-learn", "river": "river"}.get(
        type(value).__module__.split(".")[0]
    )
    if library:
        return f"{library}'s {type(value).__name__}, which is none"
    return shown(value)


def exported(name: str) -> type[Params] | None:
    """Return the class of objects with hyper-parameters that oklnumba exports under a name.

    None where it exports none: bases of others, and whatever else there is, no file can name.
    """
    package = sys.modules["oklnumba"]
    found = getattr(package, name) if name in package.__all__ else None
    return found if isinstance(found, Checked) else None


def same_spec(a: tuple[Any, Any], b: tuple[Any, Any]) -> bool:
    """Say whether two pairs (spec, arrays) of ``to_spec`` describe equal hyper-parameters.

    One that was written before a hyper-parameter existed has its default.
    """
    arrays_a: dict[str, np.ndarray] = {}
    arrays_b: dict[str, np.ndarray] = {}
    equal = to_spec(from_spec(*a), arrays_a) == to_spec(from_spec(*b), arrays_b)
    return equal and all(np.array_equal(arrays_a[name], arrays_b[name]) for name in arrays_a)


def to_spec(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """Return ``value`` as plain JSON data; arrays go into ``arrays``, their names here."""
    if isinstance(value, Params):
        params = {name: to_spec(v, arrays) for name, v in value.get_params(deep=False).items()}
        return {"class": type(value).__name__, "params": params}
    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        key = f"param_{len(arrays)}"
        arrays[key] = value
        return {"array": key}
    if isinstance(value, np.generic):
        return value.item()
    if hasattr(value, "tolist"):  # an array of objects, or a column of a data frame
        value = value.tolist()
    if isinstance(value, list | tuple | range):
        return {"list": [to_spec(v, arrays) for v in value], "tuple": isinstance(value, tuple)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise ValueError(
        f"cannot save a hyper-parameter of type {type(value).__name__}; "
        "use numbers, strings, arrays, lists or oklnumba's own objects"
    )


def from_spec(spec: Any, arrays: Any, checked: bool = False) -> Any:
    """Return the value that ``to_spec`` wrote; only public classes of oklnumba are made.

    checked : whether hyper-parameters out of range are refused, as those of a file are; ones that
    change nothing are not, for older versions allowed them.
    """
    if not isinstance(spec, dict):
        return spec
    if "array" in spec:
        return arrays[spec["array"]]
    if "list" in spec:
        items = [from_spec(v, arrays, checked) for v in spec["list"]]
        return tuple(items) if spec["tuple"] else items
    cls = exported(spec["class"])
    if cls is None:
        raise ValueError(
            f"the file names the class {spec['class']!r}, which this oklnumba does not have; "
            "it was written by another version"
        )
    made = cls.unchecked(
        **{name: from_spec(v, arrays, checked) for name, v in spec["params"].items()}
    )
    if checked:
        try:
            made._check_params()
        except Ignored:
            pass
    return made
