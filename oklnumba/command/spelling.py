"""Learners, kernels and values written as text: parsed, never evaluated."""

import ast
from collections.abc import Iterable
from typing import Any

from oklnumba.core.checks import suggest
from oklnumba.core.params import list_classes
from oklnumba.learners.base.learner import Learner

EXAMPLE = "PKAWV(TaylorFeatures(degree=2), lam=0.1)"
EXAMPLES = {  # of arguments that learners need
    "features": "TaylorFeatures(degree=2)",
    "kernel": "Gaussian(sigma=1.0)",
    "kernels": "[Gaussian(sigma=1.0)]",
    "learner": "LinearRidge()",
    "learners": "[LinearRidge(), LinearAWV()]",
    "classes": "['no', 'yes']",
}
LISTED = "docs/algorithms.md lists them"


def parse_value(text: str) -> Any:
    """Return the number, text, list or object of ``okl`` that a text stands for."""
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(f"cannot read {text!r}; write it as in {EXAMPLE}") from None
    return _build(node)


def _build(node: ast.expr) -> Any:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.List):
        return [_build(part) for part in node.elts]
    if isinstance(node, ast.Call) and all(keyword.arg for keyword in node.keywords):
        name, classes = ast.unparse(node.func), list_classes()
        if name not in classes:
            raise ValueError(f"oklnumba has no class {name!r}; {suggest(name, classes)}{LISTED}")
        named = {str(keyword.arg): _build(keyword.value) for keyword in node.keywords}
        return classes[name](*map(_build, node.args), **named)
    try:
        return ast.literal_eval(node)
    except ValueError:
        raise ValueError(f"cannot read {ast.unparse(node)!r}; write it as in {EXAMPLE}") from None


def parse_learner(text: str, assignments: Iterable[str] = ()) -> Learner:
    """Return the learner that a name or a call stands for, with assignments such as "lam=0.1"."""
    given = {}
    for one in assignments:
        name, equals, written = one.partition("=")
        if not equals or not name.isidentifier():
            raise ValueError(f"--set {one!r}: write it as --set lam=0.1")
        given[name] = parse_value(written)
    if text.isidentifier():
        players = {n: cls for n, cls in list_classes().items() if issubclass(cls, Learner)}
        if text not in players:
            raise ValueError(f"oklnumba has no learner {text!r}; {suggest(text, players)}{LISTED}")
        parameters = players[text].__signature__.parameters.items()
        if needs := [n for n, one in parameters if one.default is one.empty and n not in given]:
            example = EXAMPLE
            if EXAMPLES.keys() >= {*needs}:
                example = f"{text}({', '.join(EXAMPLES[one] for one in needs)})"
            raise ValueError(f"{text} needs {' and '.join(needs)}; write it as in {example}")
        return players[text](**given)
    made = parse_value(text)
    if not isinstance(made, Learner):
        raise ValueError(f"{text!r} is not a learner; write it as in {EXAMPLE}")
    return made.set_params(**given) if given else made
