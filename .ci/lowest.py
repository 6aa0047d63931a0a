"""Print the lower bounds of pyproject.toml, dependencies and the extra ``test``, as exact pins.

river is left out: it asks for a later SciPy than oklnumba does. pyparsing is matplotlib's, whose
lower bound warns with later ones.
"""

import re
import tomllib
from pathlib import Path

with open(Path(__file__).parents[1] / "pyproject.toml", "rb") as file:
    project = tomllib.load(file)["project"]
for bound in project["dependencies"] + project["optional-dependencies"]["test"]:
    name, _, version = re.fullmatch(r"([\w\[\]-]+)(>=)([\d.]+)", bound).groups()
    if name != "river":
        print(f"{name}=={version}")
print("pyparsing==3.1.0")
