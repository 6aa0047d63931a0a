"""The road of a row: what of the package one okl.run enters, counted without the JIT."""

import pytest

from tests.checks import python

# Files, functions and frames of the package, and classes of ours that the learner derives from.
LIMITS = {"PKAWV": (19, 114, 10, 7), "SelfTuning": (38, 298, 20, 5)}
LEARNERS = {"PKAWV": "okl.PKAWV(okl.TaylorFeatures(2))", "SelfTuning": "okl.SelfTuning()"}


@pytest.mark.slow
@pytest.mark.parametrize("name", LIMITS)
def test_the_road_of_a_row_does_not_grow(name):
    code = f"""if True:
        import json, os, sys
        import numpy as np
        import oklnumba as okl
        from oklnumba.core import guard

        guard.FEWEST_ROUNDS = 1000  # threads would enter some functions in turns
        root, entered, frames = os.path.dirname(okl.__file__), set(), 0

        def note(frame, event, _):
            global frames
            code = frame.f_code
            if event != "call" or code.co_name[0] == "<" or not code.co_filename.startswith(root):
                return
            entered.add((code.co_filename, code.co_qualname))
            depth = 0
            while frame:
                depth += frame.f_code.co_filename.startswith(root)
                frame = frame.f_back
            frames = max(frames, depth)

        rng = np.random.default_rng(0)
        X = rng.uniform(-1, 1, (40, 3))
        y, learner = np.sign(X[:, 0] + 0.3 * rng.standard_normal(40)), {LEARNERS[name]}
        sys.setprofile(note)
        okl.run(learner, X, y)
        sys.setprofile(None)
        ours = sum(cls.__module__.startswith("oklnumba") for cls in type(learner).__mro__)
        print(json.dumps([len(dict(entered)), len(entered), frames, ours]))
    """
    counts = python(code, NUMBA_DISABLE_JIT="1")
    what = zip(("files", "functions", "frames", "classes"), counts, LIMITS[name], strict=True)
    longer = [f"{count} {unit}, at most {most}" for unit, count, most in what if count > most]
    assert not longer, f"{name}: {'; '.join(longer)}"
