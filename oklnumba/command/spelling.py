"""Learners, kernels and numbers written as text: parsed, never evaluated."""

from __future__ import annotations

import ast
from difflib import get_close_matches
from typing import Any

import oklnumba as okl
from oklnumba.core.params import Params
from oklnumba.learners.base.learner import Learner as Player

EXAMPLE = "PKAWV(TaylorFeatures(degree=2), lam=0.1)"


def classes() -> dict[str, type[Params]]:
    """Return what may be named: the learners, kernels, feature maps and samplers of ``okl``."""
    found = {name: getattr(okl, name) for name in okl.__all__}
    return {n: c for n, c in found.items() if isinstance(c, type) and issubclass(c, Params)}


def nearest(word: str, words: Any) -> str:
    """Return "; did you mean NAME?" where a known word is close, else "".

    Examples
    --------
    >>> from oklnumba.command.spelling import nearest
    >>> nearest("pkawv", ["PKAWV", "FOGD"])
    '; did you mean PKAWV?'
    """
    same = {str(one).lower(): str(one) for one in words}
    close = get_close_matches(word.lower(), same, n=1)
    return f"; did you mean {same[close[0]]}?" if close else ""


def value(text: str) -> Any:
    """Return what a text stands for: a number, text, list, or an object of ``okl``.

    A word that is no class of ``okl`` is text; only classes of ``okl`` are ever called.

    Parameters
    ----------
    text : str

    Raises
    ------
    ValueError
        If it is anything else, or a call of something that ``okl`` does not have.

    Examples
    --------
    >>> from oklnumba.command.spelling import value
    >>> value("0.1"), value("logistic"), value("[1, 2]"), value("Gaussian(sigma=2)")
    (0.1, 'logistic', [1, 2], Gaussian(sigma=2))
    """
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(f"cannot read {text!r}; write it as in {EXAMPLE}") from None
    return _built(node, text)


def _built(node: ast.expr, text: str) -> Any:
    """Return the object of a piece of the text."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        number = _built(node.operand, text)
        if isinstance(number, int | float):
            return -number if isinstance(node.op, ast.USub) else number
    if isinstance(node, ast.List | ast.Tuple):
        parts = [_built(part, text) for part in node.elts]
        return parts if isinstance(node, ast.List) else tuple(parts)
    name = _name(node)
    if name in classes():
        return classes()[name]()
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Call) and all(keyword.arg for keyword in node.keywords):
        name = _name(node.func) or ast.unparse(node.func)
        if name not in classes():
            raise ValueError(f"oklnumba has no class {name!r}{nearest(name, classes())}")
        args = [_built(part, text) for part in node.args]
        return classes()[name](*args, **{k.arg or "": _built(k.value, text) for k in node.keywords})
    raise ValueError(f"cannot read {ast.unparse(node)!r}; write it as in {EXAMPLE}")


def _name(node: ast.expr) -> str:
    """Return NAME of ``NAME`` or ``okl.NAME``, "" of anything else."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return node.attr if node.value.id in ("okl", "oklnumba") else ""
    return node.id if isinstance(node, ast.Name) else ""


def learner(text: str, settings: list[str] | None = None) -> Player:
    """Return the learner that a name or a call stands for, with settings ``k=v``.

    Parameters
    ----------
    text : str
        ``FOGD``, or ``PKAWV(TaylorFeatures(degree=2))``.
    settings : list of str, optional
        ``lam=0.1`` and the like, arguments in addition to those of the text.

    Raises
    ------
    ValueError
        If text or settings cannot be read, or name what is not there.
    TypeError
        If the class has no such argument or needs more.

    Examples
    --------
    >>> from oklnumba.command.spelling import learner
    >>> learner("PKAWV", ["features=TaylorFeatures(2)", "lam=0.5"]).lam
    0.5
    """
    given = {}
    for setting in settings or []:
        name, equals, written = setting.partition("=")
        if not equals or not name.strip().isidentifier():
            raise ValueError(f"--set {setting!r}: write it as --set lam=0.1")
        given[name.strip()] = value(written)
    players = [name for name, cls in classes().items() if issubclass(cls, Player)]
    word = text.strip().removeprefix("okl.")
    if word.isidentifier():
        if word not in players:
            raise ValueError(f"oklnumba has no learner {word!r}{nearest(word, players)}")
        return classes()[word](**given)
    made = value(text)
    if not isinstance(made, Player):
        raise ValueError(f"{text!r} is no learner; write it as in {EXAMPLE}")
    return made.set_params(**given) if given else made
