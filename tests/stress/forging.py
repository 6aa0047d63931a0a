"""Damage and forge saved files, and use what loads: ``python -m tests.stress.forging COUNT SEED``.

A forged file has a good digest, or is of the old format without one, and one thing changed: a
count, an index, a shape, a type, a number, a random state, a hyper-parameter, a name. Each file
must be refused by one error that names it, or give a learner that forecasts and plays 50 rounds,
whose numbers may turn out not to be numbers. Runs, checkpoints with their logs and tables are tried
alike. Under NUMBA_BOUNDSCHECK=1 an index that is none is seen too. The parent sees crashes and
hangs: it reads what was being tried from the last line.
"""

from __future__ import annotations

import copy
import faulthandler
import functools
import io
import json
import random
import resource
import shutil
import sys
import tempfile
import warnings
import zipfile
from pathlib import Path

import numpy as np

import oklnumba as okl
from oklnumba.core.files import read_npz, write_npz
from oklnumba.protocol.recording import append, log_path, read_log
from tests.battery import CASES, contents, labels, make

ROUNDS, AHEAD = 90, 50
MEMORY = 8 * 2**30  # bytes of address space
SECONDS = 60  # for one file
COUNTS = (-1, 0, 1, 2, 7, 10**9, 2**40, 2**62, -(2**63))
NUMBERS = (0.0, -1.0, 1e300, float("nan"), float("inf"), 1e-300)
SCALARS = (None, -1, 0, 1, 2, 3.5, 10**12, 2**70, "", "text", [], {}, True, float("nan"), 1e308)
NAMES = ("Learner", "Player", "Kernel", "Gaussian", "OGD", "KRLS", "Experts", "os.system", "", None)


def learners():
    """Return a learner of every kind, and wrappers of some."""
    made = [make(case.values[0]) for case in CASES]
    gaussian = okl.Gaussian(1.0)
    for inner in (okl.NystromAWV(gaussian), okl.KRLS(gaussian), okl.FOGD(n_frequencies=8)):
        made += [okl.MultiOutput(inner), okl.OneVsRest(okl.KernelAWV(gaussian), ["a", "b", "c"])]
        made.append(okl.OnlineToBatch(inner, draws=3))
        made.append(okl.Standardized(inner))
    members = [okl.NystromAWV(gaussian), okl.KRLS(gaussian), okl.FOGD(loss="squared")]
    made += [okl.Experts(members, share=0.01, B=None), okl.OneVsRest(okl.SelfTuning(), ["a", "b"])]
    made += [okl.MultiOutput(okl.SelfTuning()), okl.OnlineToBatch(okl.SelfTuning(), draws=2)]
    made += [okl.NystromAWV(gaussian, max_size=5), okl.KernelOGD(gaussian, budget=8, radius=2.0)]
    made += [okl.SkeGD(gaussian, budget=20, sketch=16, columns=8, rank=5, period=9)]
    made += [okl.POMDR(gaussian, budget=10, switch_size=4), okl.NOGD(gaussian, budget=9, rank=4)]
    made += [okl.BOGD(gaussian, budget=9), okl.BAO2KS([gaussian, okl.Linear()], budget=9)]
    return made + [okl.Projectron(gaussian, budget=9), okl.Projectron(gaussian, threshold=0.01)]


def stream(learner, n, d=3, seed=0):
    """Return rounds that the learner takes."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    values = np.sin(3 * X[:, 0]) * X[:, -1] + 0.2 * rng.standard_normal(n)
    if isinstance(learner, okl.OneVsRest):
        places = np.digitize(values, [-0.3, 0.3]) % len(learner.classes)
        return X, learner._names()[places]
    y = labels(learner, values)
    if isinstance(learner, okl.MultiOutput):
        y = np.column_stack([y] * (learner._outputs or 2))
    return X, y


def played():
    """Yield the contents of each learner after some rounds."""
    for learner in learners():
        yield type(learner).__name__, learner.partial_fit(*stream(learner, ROUNDS))._contents()


# ---- forging ----


def forged(meta, arrays, chance):
    """Return a copy with one thing changed, and what that was."""
    meta, arrays = copy.deepcopy(meta), {name: np.array(a) for name, a in arrays.items()}
    names = list(arrays)
    integers = [name for name in names if arrays[name].dtype.kind == "i" and arrays[name].size]
    ways = [change_scalar, change_scalar, change_coins, change_shape, change_type, change_number]
    ways += [change_integer] * (4 if integers else 0)
    way = chance.choice(ways)
    name = chance.choice(integers if way is change_integer else names) if names else None
    if name is None and way not in (change_scalar, change_coins):
        way = change_scalar
    return meta, arrays, f"{way.__name__}: {way(meta, arrays, name, chance)}"


def change_integer(meta, arrays, name, chance):
    flat = arrays[name].reshape(-1)
    i, value = chance.randrange(flat.size), chance.choice(COUNTS)
    flat[i] = flat[i] + value if value in (1, 2, -1) else value
    arrays[name] = flat.reshape(arrays[name].shape)
    return f"{name}[{i}] = {flat[i]}"


def change_number(meta, arrays, name, chance):
    flat = arrays[name].reshape(-1)
    if not flat.size or flat.dtype.kind != "f":
        return f"nothing of {name}"
    i, value = chance.randrange(flat.size), chance.choice(NUMBERS)
    flat[i] = value
    arrays[name] = flat.reshape(arrays[name].shape)
    return f"{name}[{i}] = {value}"


def change_type(meta, arrays, name, chance):
    kind = chance.choice(["f4", "i8", "u1", "?", "U5", ">f8"])
    a = arrays[name]
    with np.errstate(all="ignore"):  # texts are no numbers
        arrays[name] = a.astype("U5" if a.dtype.kind == "U" else kind)
    return f"{name} as {arrays[name].dtype}"


def change_shape(meta, arrays, name, chance):
    a = arrays[name]
    ways = {
        "gone": None,
        "flat": a.reshape(-1),
        "turned": a.T,
        "doubled": np.concatenate([a, a]) if a.ndim else a,
        "wider": np.concatenate([a, a], axis=-1) if a.ndim else a,
        "one less": a[:-1] if a.ndim else a,
        "one narrower": a[..., :-1] if a.ndim else a,
        "empty": a.reshape(-1)[:0],
        "an axis more": a[None],
        "a long nothing": np.empty((10**12, 0)),
        "another array": arrays[chance.choice(list(arrays))],
    }
    way = chance.choice(list(ways))
    arrays[name] = ways[way]
    if ways[way] is None:
        del arrays[name]
    return f"{name} {way}"


def places(value, path=()):
    """Yield the paths of all scalars in JSON data."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(inner, dict | list) and inner:
            yield from places(inner, (*path, key))
        yield (*path, key)


def change_scalar(meta, arrays, name, chance):
    *path, last = chance.choice(list(places(meta)))
    holder = meta
    for key in path:
        holder = holder[key]
    if chance.random() < 0.1 and isinstance(holder, dict):
        del holder[last]
        return f"{(*path, last)} gone"
    holder[last] = chance.choice(NAMES if last == "class" else SCALARS)
    return f"{(*path, last)} = {holder[last]!r}"


def change_coins(meta, arrays, name, chance):
    texts = [path for path in places(meta) if "coins" in str(path[-1])]
    if not texts:
        return change_scalar(meta, arrays, name, chance)
    *path, last = chance.choice(texts)
    holder = meta
    for key in path:
        holder = holder[key]
    try:
        state = json.loads(holder[last])
    except (TypeError, ValueError):
        return "nothing"
    value = chance.choice(
        [{"next": (1e300).hex()}, {"next": "nan"}, {"next": "-0x1p-1"}, {"next": 3}, {"rng": 1}]
    )
    holder[last] = json.dumps(state | value)
    return f"{last} {value}"


# ---- damage ----


def damaged(path, others, chance):
    """Damage the bytes of a file; return what was done."""
    content = bytearray(path.read_bytes())
    way = chance.choice(["flips", "cut", "hole", "head", "mixed", "zeros"])
    at = chance.randrange(len(content))
    if way == "flips":
        for _ in range(chance.choice([1, 1, 3, 20])):
            content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    elif way == "cut":
        del content[at:]
    elif way == "hole":
        del content[at : at + chance.choice([1, 8, 100])]
    elif way == "head":  # in the headers of arrays, and the directory
        marks = [i for i in range(len(content) - 4) if content[i : i + 2] in (b"(", b"PK", b", ")]
        for i in chance.sample(marks, min(3, len(marks))):
            content[i + chance.randrange(4)] = chance.randrange(256)
    elif way == "mixed":
        other = chance.choice(others).read_bytes()
        content = bytearray(other[: len(other) // 2]) + content[len(content) // 2 :]
    else:
        content[at : at + 64] = bytes(len(content[at : at + 64]))
    path.write_bytes(bytes(content))
    return f"{way} at {at}"


def rebuilt(path, others, chance):
    """Write the archive anew as we never do; return what was done."""
    way = chance.choice(["twice", "one more", "pickled", "squeezed", "turned", "renamed"])
    with zipfile.ZipFile(path) as archive:
        members = [(info.filename, archive.read(info)) for info in archive.infolist()]
    i = chance.randrange(len(members))
    if way in ("twice", "one more"):
        name = "more.npy" if way == "one more" else members[i][0]
        members.append((name, chance.choice(members)[1]))
    elif way == "pickled":
        buffer = io.BytesIO()
        np.save(buffer, np.array([print, "text"], dtype=object), allow_pickle=True)
        members[i] = members[i][0], buffer.getvalue()
    elif way == "turned":
        members.reverse()
    elif way == "renamed":
        members[i] = chance.choice(["x", "../x.npy", "x.npy", "/x.npy"]), members[i][1]
    kind = zipfile.ZIP_DEFLATED if way == "squeezed" else zipfile.ZIP_STORED
    with zipfile.ZipFile(path, "w", kind) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return f"{way}, member {i}"


def forged_log(path, meta, chance):
    """Change the log of a checkpoint beside ``path`` and the checksum of it; return the data."""
    log, meta = log_path(path), copy.deepcopy(meta)
    parts = read_log(log, meta["run"]["log"])
    i = chance.randrange(len(parts))
    _, parts[i], what = forged({"part": i}, parts[i], chance)
    log.unlink()
    meta["run"]["log"] = {"bytes": 0, "crc": 0}
    for part in parts:
        meta["run"]["log"] = append(log, meta["run"]["log"], part)
    return meta, f"the log, {what}"


# ---- use ----


def used(path, expected=None):
    """Load and use a learner; return what came of it. ``expected``: its contents, if damaged."""
    try:
        learner = okl.load(path)
    except (ValueError, MemoryError) as error:
        assert str(path) in str(error), f"an error that does not name the file: {error}"
        return "refused"
    if expected is not None and contents(learner) != expected:
        return "silent"
    try:
        if learner._width is None:
            learner.partial_fit(*stream(learner, AHEAD))
            return "fresh"
        X, y = stream(learner, AHEAD, learner._width)
        if learner.rounds:
            learner.predict(X[:5])
        if not isinstance(learner, okl.OnlineToBatch) or learner._learner is not None:
            learner.partial_fit(X, y)
        learner.predict(X[:5])
    except FloatingPointError:  # numbers that a file may have and no run would
        return "numbers"
    except RuntimeError as error:
        if not learner._fault:  # which the file says there was
            raise error
        return "fault"
    return "used"


RUNS = ("KernelAWV", "KRLS", "SketchedKONS", "FOGD")


def play(name, path, end=None, record="all", start=0):
    """Play the run of a checkpoint; ``end``: break off there, its rounds in the log; 0: no log."""
    learner = make(getattr(okl, name))
    X, y = stream(learner, 3 * ROUNDS)

    def broken_off(X, y):
        yield X[:end], y[:end]
        raise InterruptedError

    X, y = (broken_off(X, y), None) if end else (X[start:], y[start:])
    options = {"checkpoint": path, "record": record, "resume": start > 0, "every": 20}
    options["time_limit"] = 1e-9 if end == 0 else None
    try:
        return okl.run(learner, X, y, **options)
    except InterruptedError:
        return None


def used_checkpoint(name, record, resume, path, expected=None):
    """Read a checkpoint and go on from it; return what came of it."""
    try:
        rounds = shown(okl.Run.load(path)).rounds
        run = play(name, path, record=record, start=rounds if resume else 0)
    except (ValueError, MemoryError) as error:
        named = str(path) in str(error) or "but the data so far had" in str(error)  # its width
        assert named, f"an error that does not name the file: {error}"
        return "refused"
    except FloatingPointError:
        return "numbers"
    if expected is not None and not np.array_equal(run.predictions, expected):
        return "silent"
    return "used"


def shown(run):
    """Look at all that a run says."""
    repr(run), run._repr_html_(), run.mean_loss, run.loss_sums, run.mistake_sums
    run.mistake_rate, repr(run.certificate), run.to_frame()
    return run


def used_results(cls, path, expected=None):
    """Load and look at a run or a table, and save it again; return what came of it."""
    try:
        found = cls.load(path)
    except (ValueError, MemoryError) as error:
        assert str(path) in str(error), f"an error that does not name the file: {error}"
        return "refused"
    if cls is okl.Run:
        shown(found)
    else:
        repr(found), found._repr_html_(), found.to_csv(), [found[name] for name in found.columns]
    found.save(path)
    if expected is not None and told(path) != expected:
        return "silent"
    return "used"


def told(path):
    """Return what a file says, as something that can be compared."""
    meta, arrays = read_npz(path)
    return json.dumps(meta), {n: (str(a.dtype), a.shape, a.tobytes()) for n, a in arrays.items()}


def checkpoints(folder):
    """Yield those of runs that ended, and of runs that were broken off, for each record."""
    for name in RUNS:
        for record, resume in (("all", False), (7, False), (7, True)):
            for end in (0, 2 * ROUNDS):
                path = Path(folder, f"{end}-{name}-{record}-{resume}.npz")
                play(name, path, end, record)
                whole = play(name, Path(folder, "whole.npz"), record=record).predictions
                Path(folder, "whole.npz").unlink()
                use = functools.partial(used_checkpoint, name, record, resume)
                yield f"checkpoint of {name}", path, *read_npz(path), use, whole


def results(folder):
    """Yield runs of one and of several outputs, and a table."""
    one, few = okl.KernelAWV(okl.Gaussian(1.0)), okl.OneVsRest(okl.FOGD(), ["a", "b", "c"])
    made = [okl.run(learner, *stream(learner, ROUNDS)) for learner in (one, few)]
    made.append(okl.run(one.reset(), *stream(one, ROUNDS), record=7))
    rows = [{"data": "a", "n": 3, "loss": 0.5, "none": None}, {"data": "b", "n": None, "loss": 1.5}]
    for i, found in enumerate([*made, okl.Table(rows, {"title": "t"})]):
        path = Path(folder, f"results{i}.npz")
        found.save(path)
        use = functools.partial(used_results, type(found))
        yield f"{type(found).__name__} {i}", path, *read_npz(path), use, told(path)


def saved(folder):
    """Yield (name, file, meta, arrays, use, what it must hold) of good files."""
    for i, (name, (meta, arrays)) in enumerate(played()):
        path = Path(folder, f"good{i}-{name}.npz")
        write_npz(path, meta, arrays)
        yield name, path, meta, arrays, used, contents(okl.load(path))
    yield from checkpoints(folder)
    yield from results(folder)


def tried(good, others, path, chance):
    """Change a good file in one way and use it; return what came of it."""
    name, file, meta, arrays, use, expected = good
    log = log_path(file)
    if log.exists():
        shutil.copy(log, log_path(path))
    if chance.random() < 0.3:
        path.write_bytes(file.read_bytes())
        way = chance.choice([damaged, damaged, rebuilt])
        target = log_path(path) if log.exists() and chance.random() < 0.5 else path
        what = (damaged if target != path else way)(target, others, chance)
    else:
        if log.exists() and chance.random() < 0.5:
            meta, what = forged_log(path, meta, chance)
        else:
            meta, arrays, what = forged(meta, arrays, chance)
        expected = None
        if chance.random() < 0.5:
            write_npz(path, meta, arrays)
        else:  # as version 0.1.0 wrote it
            np.savez(path, meta=np.array(json.dumps(meta)), **arrays)
    print(f"{name}: {what}", flush=True)
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    try:
        return use(path, expected)
    finally:
        faulthandler.cancel_dump_traceback_later()
        log_path(path).unlink(missing_ok=True)


def main(count, seed):
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    chance = random.Random(seed)
    tally: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        good = list(saved(folder))
        others = [one[1] for one in good]
        for i in range(count):
            one = good[i % len(good)] if count >= len(good) else chance.choice(good)
            found = tried(one, others, Path(folder, "tried.npz"), chance)
            tally[found] = tally.get(found, 0) + 1
            print(f"{i}: {found}", flush=True)
    print(json.dumps(tally))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
