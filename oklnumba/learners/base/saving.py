"""Learners in files, copies and pickles: what is written of them, and checks of what is read."""

from __future__ import annotations

import os
from typing import Any, Self

import numpy as np

from oklnumba.core.files import read_npz, refusing, write_npz
from oklnumba.core.params import Params, anew, from_spec, to_spec, told
from oklnumba.core.state import MOST, State, count_in, under
from oklnumba.core.threads import locked


class Saved(Params):
    """What ``okl.run`` plays, as something that can be saved."""

    def _contents(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return everything as JSON data and arrays."""
        arrays: dict[str, np.ndarray] = {}
        return {"spec": to_spec(self, arrays)}, arrays

    @locked
    def save(self, path: str | os.PathLike) -> None:
        """Write hyper-parameters, state and random state into one ``.npz`` file (no pickle inside).

        ``oklnumba.load(path)`` goes on bit for bit where this learner stands.
        """
        meta, arrays = self._contents()
        write_npz(path, meta, arrays)

    @locked
    def __getstate__(self) -> dict[str, Any]:
        """Return hyper-parameters and state; closures and buffers behind them are made anew."""
        meta, arrays = self._contents()
        arrays = {name: np.array(a) for name, a in arrays.items()}  # others may learn meanwhile
        return {"params": self.get_params(deep=False), "meta": meta, "arrays": arrays}

    def __setstate__(self, contents: dict[str, Any]) -> None:
        """Take over what ``__getstate__`` returned."""
        vars(self).update(contents["params"])
        self._adopt(contents["meta"], contents["arrays"])


class SavedState(State):
    """The saving half of ``Learner``, a learner with a state of its own."""

    def _contents(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        meta, arrays = super()._contents()
        meta |= {"width": self._width, "rounds": self._played, "broken": self._broken}
        meta["outputs"] = self._outputs
        if self._fault:
            meta["fault"] = self._fault
        if self._width is not None:
            scalars = {}
            for name, value in self._state().items():
                if isinstance(value, np.ndarray):
                    arrays[f"state_{name}"] = value
                else:
                    scalars[name] = value
            meta["state"] = scalars
        return meta, arrays

    def _with_output(self) -> Self:
        """Return a learner in this state with one label a round more, which was as the last one."""
        meta, arrays = self._contents()
        meta["outputs"] += 1
        for name, axis in self._output_axes().items():
            array = arrays[f"state_{name}"]
            last = array.take([-1], axis=axis)
            arrays[f"state_{name}"] = np.concatenate([array, last], axis=axis)
        more = anew(self)
        more._adopt(meta, arrays)
        return more

    def _adopt(self, meta: dict[str, Any], arrays: Any) -> None:
        """Take over a state that ``_contents`` wrote, of the same hyper-parameters.

        Raises
        ------
        ValueError
            What is wrong with it; the learner is without data then.
        """
        self.reset()
        width, rounds, outputs = self._told(meta)
        if width is None:
            return
        state = under("state_", arrays) | meta["state"]
        try:
            self._refuse_others(state, width, outputs)
            self._open(width, outputs)
            self._played = rounds
            self._broken, self._fault = meta["broken"], meta.get("fault")
            self._restore(state)
        except BaseException:
            self.reset()
            raise

    def _refuse_others(self, state: dict[str, Any], d: int, outputs: int = 1) -> None:
        """Raise ValueError where a state is not of inputs of width d: before room is made."""
        self._refuse_lengths(state, {"d": d, "outputs": outputs} | self._lengths(d))

    def _lengths(self, d: int) -> dict[str, int]:
        """Return the fixed lengths of ``_STATE`` that hyper-parameters tell, besides d."""
        return {}

    def _told(self, meta: dict[str, Any]) -> tuple[int | None, int, int]:
        """Return width, rounds and outputs of a file; ValueError for what cannot be."""
        width, rounds = meta["width"], meta["rounds"]
        outputs = meta.get("outputs", 1)  # not in older files
        whole = count_in(rounds, 0) and (width is None or count_in(width, 1))
        if not whole or (width is None and rounds):
            raise ValueError(f"its state has width={width!r} and rounds={rounds!r}")
        if not count_in(outputs, 1, MOST if self._several else 1):
            raise ValueError(f"its state has {outputs!r} outputs a round")
        for trouble in (meta["broken"], meta.get("fault")):
            if trouble is not None and not isinstance(trouble, str):
                raise ValueError(f"its state has the trouble {trouble!r}")
        return width, rounds, outputs


def refuse_other(one: Any, holder: Any) -> None:
    """Raise ValueError where a learner that was taken over is not of its holder's rounds.

    After trouble, which may have come in the middle of a round, their numbers may differ.
    """
    trouble = any(which._broken or which._fault for which in (one, holder))
    if one._width != holder._width or not (trouble or one.rounds == holder.rounds):
        raise ValueError(
            f"a {type(one).__name__} in it has {one.rounds} rounds of width {one._width}, but "
            f"{type(holder).__name__} has {holder.rounds} of width {holder._width}"
        )


def load(path: str | os.PathLike) -> Saved:
    """Return the learner saved at ``path``; it goes on bit for bit where it stopped.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is damaged, holds no learner, or was written by a later oklnumba. Whatever a
        file says is checked before it is used, so that no file can do harm.
    MemoryError
        If the file is good and its learner does not fit in memory.

    Examples
    --------
    >>> import oklnumba as okl, tempfile, os
    >>> learner = okl.KernelAWV(okl.Gaussian(1.0)).learn_one([0.5], 1.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     learner.save(os.path.join(folder, "awv.npz"))
    ...     again = okl.load(os.path.join(folder, "awv.npz"))
    >>> again.rounds, again.predict_one([0.5]) == learner.predict_one([0.5])
    (1, True)
    """
    meta, arrays = read_npz(path)
    if "spec" not in meta:
        raise ValueError(f"{path} holds no learner; a run is read by Run.load")
    with refusing(path):
        learner = from_spec(meta["spec"], arrays, checked=True)
        if not isinstance(learner, Saved):
            raise ValueError(f"it holds {told(learner)}, which is no learner")
        learner._adopt(meta, arrays)
    return learner
