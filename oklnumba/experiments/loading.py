"""One ``load`` for every file that oklnumba saves."""

from __future__ import annotations

import os
from collections.abc import Sequence

from oklnumba.core import checks
from oklnumba.core.files import read_npz
from oklnumba.core.params import Params
from oklnumba.experiments.table import Table
from oklnumba.learners.base.learner import Learner, restore_learner
from oklnumba.protocol.runs import Run


def load(path: str | os.PathLike, classes: Sequence[type] = ()) -> Learner | Run | Table:
    """Return what was saved at ``path``: a learner, a Run or a Table.

    A learner goes on bit for bit where it stopped. A checkpoint of ``okl.run`` holds a learner and
    the run so far: this returns the learner, ``Run.load`` the run.

    Damage is found by a digest and raises ValueError. An intact file is believed, so load files
    from people you trust.

    Parameters
    ----------
    path : path
    classes : sequence of classes, optional
        Your own classes that the file needs: learners, and kernels or feature maps within them.

    Examples
    --------
    >>> import os, tempfile
    >>> learner = okl.KernelAWV(okl.Gaussian(1.0)).learn_one([0.5], 1.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     learner.save(os.path.join(folder, "awv.npz"))
    ...     again = okl.load(os.path.join(folder, "awv.npz"))
    >>> again.rounds, again.predict_one([0.5]) == learner.predict_one([0.5])
    (1, True)
    """
    what = "a list of your own classes, such as [MyLearner]"
    own = checks.require_list("classes", classes, what)
    valid = all(isinstance(one, type) and issubclass(one, Params) for one in own)
    checks.require(valid, "classes", classes, what)
    meta, arrays = read_npz(path)
    if "spec" in meta:
        return restore_learner(path, meta, arrays, own)
    return Table.load(path) if "table" in meta else Run.load(path)
