"""Files that are damaged, forged, of a full disk or of other data: one error, and no harm."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

import oklnumba as okl
from oklnumba.core import files
from oklnumba.core.files import FORMAT, read_npz, write_npz
from tests.battery import contents, every_learner, every_variant, make, stream
from tests.compiled import COMPILED
from tests.test_sweep import numbers, play

ROOT = Path(__file__).parents[2]
SCALES = (1e-250, 1e-150, 1e-60, 1.0, 1e60, 1e150, 1e250)
LIMITS = pytest.mark.skipif(
    sys.platform != "linux", reason="limits of a process, as Linux has them"
)


def child(*arguments, timeout=3600):
    """Run a module of the tests in a process of its own; return what it wrote."""
    environment = os.environ | {"PYTHONFAULTHANDLER": "1"}
    command = [sys.executable, "-m", *arguments]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=timeout
    )
    assert done.returncode == 0, f"{done.stdout[-300:]}\n{done.stderr[-3000:]}"
    return done.stdout


@LIMITS
@pytest.mark.skipif(not COMPILED, reason="takes hours without the JIT")
def test_no_file_does_harm(tries):
    count = tries(120, 2000)
    tally = json.loads(child("tests.stress.forging", str(count), "0").splitlines()[-1])
    assert sum(tally.values()) == count
    assert tally["refused"] > count / 2 and tally["used"] > 0
    assert tally.get("silent", 0) == 0


# ---- what a file says of itself ----


@pytest.fixture
def path(tmp_path):
    """Return the file of a small learner."""
    path = tmp_path / "learner.npz"
    okl.KRLS(okl.Gaussian(1.0)).partial_fit(*stream(okl.KRLS(okl.Gaussian(1.0)), 40)).save(path)
    return path


def rewritten(path, **changes):
    """Write the members of a file anew, some changed, some gone."""
    with np.load(path) as archive:
        members = dict(archive)
    members |= changes
    np.savez(path, **{name: a for name, a in members.items() if a is not None})
    return path


def test_a_file_has_a_version_and_a_digest_of_all_else(path):
    with np.load(path) as archive:
        assert archive["format"] == FORMAT and len(str(archive["digest"])) == 64
        names = archive.files
    assert names[0] == "format" and names[-1] == "digest"
    before = path.read_bytes()
    for name in names[1:-1]:
        path.write_bytes(before)
        with np.load(path) as archive:
            changed = archive[name].copy()
        if changed.dtype.kind == "U":
            changed = np.array(str(changed).replace("KRLS", "KRLs"))
        else:
            changed.view(np.uint8).reshape(-1)[-1] ^= 1
        with pytest.raises(ValueError, match="not those of its digest"):
            okl.load(rewritten(path, **{name: changed}))
    path.write_bytes(before)
    with pytest.raises(ValueError, match="digest is missing"):
        okl.load(rewritten(path, digest=None))


def test_a_file_of_a_later_version_says_so(path):
    with pytest.raises(
        ValueError, match=rf"learner.npz was written by a later .*{FORMAT + 1}.*upd"
    ):
        okl.load(rewritten(path, format=np.array(FORMAT + 1)))


def test_files_before_the_version_still_load_and_are_checked(path):
    expected = contents(okl.load(path))
    assert contents(okl.load(rewritten(path, format=None, digest=None))) == expected
    with np.load(path) as archive:
        counts = archive["state_counts"] + 10**9
    whole = path.read_bytes()
    okl.load(rewritten(path, state_counts=counts))  # the arrays say how long they are
    path.write_bytes(whole)
    with pytest.raises(ValueError, match=r"learner.npz.*'R' has the shape"):
        okl.load(rewritten(path, state_R=np.zeros((10**6, 0))))


def test_sizes_are_compared_before_room_is_made(path, monkeypatch):
    monkeypatch.setattr(np, "empty", None)  # what would make room
    header = np.lib.format.header_data_from_array_1_0(np.zeros(3)) | {"shape": (10**12,)}
    with zipfile.ZipFile(path, "w") as archive, archive.open("meta.npy", "w") as member:
        np.lib.format.write_array_header_1_0(member, header)
    with pytest.raises(ValueError, match=r"claims the shape \(1000000000000,\)"):
        okl.load(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("meta.npy", bytes(10**7))
    with pytest.raises(ValueError, match="compressed"):
        okl.load(path)


BASES = ("Params", "Kernel", "Features", "Player", "Learner", "Ridge", "Expansion", "Several")


@pytest.mark.parametrize("name", [*BASES, "Run", "Table", "load", "theory", "plots", "", None, []])
def test_a_file_can_name_no_class_but_those_with_hyper_parameters_that_are_exported(path, name):
    meta, arrays = read_npz(path)
    write_npz(path, meta | {"spec": meta["spec"] | {"class": name}}, arrays)
    with pytest.raises(ValueError, match=r"learner.npz.*names the class"):
        okl.load(path)


def test_what_a_file_says_of_a_run_is_checked(tmp_path):
    path, learner = tmp_path / "run.npz", okl.KernelAWV(okl.Gaussian(1.0))
    okl.run(learner, *stream(learner, 40), record=7).save(path)
    meta, arrays = read_npz(path)
    changes = {
        "predictions": np.empty((10**12, 0)),
        "losses": arrays["losses"].astype(int),
        "sizes": arrays["sizes"].astype(float),
        "recorded": arrays["recorded"][::-1].copy(),
        "loss_sums": arrays["loss_sums"][:, None],
        "bound": None,
        "checkpoints": arrays["checkpoints"][:0],
        "more": np.zeros(3),
    }
    for name, value in changes.items():
        kept = {n: a for n, a in (arrays | {name: value}).items() if a is not None}
        write_npz(path, meta, kept)
        with pytest.raises(ValueError, match=r"run.npz is not a file .* its?"):
            okl.Run.load(path)


def test_a_digest_of_other_rows_never_reaches_compiled_loops(tmp_path):
    path, learner = tmp_path / "run.npz", okl.KRLS(okl.Gaussian(1.0))
    X, y = stream(learner, 200)
    okl.run(learner, X, y, checkpoint=path, time_limit=1e-9)
    meta, arrays = read_npz(path)
    for told in (np.zeros(10**6, np.uint64), np.zeros(3, np.uint64), np.zeros((4, 1), np.uint64)):
        write_npz(path, meta, arrays | {"digest_of_rounds": told})
        left = okl.Run.load(path).rounds
        with pytest.raises(ValueError, match="run.npz.*'digest_of_rounds' of rounds of 4"):
            okl.run(learner.reset(), X[left:], y[left:], checkpoint=path, resume=True)


def test_hyper_parameters_of_a_file_are_checked(path):
    meta, arrays = read_npz(path)
    for name, value in (("threshold", -1.0), ("kernel", {"class": "Kernel", "params": {}})):
        spec = meta["spec"] | {"params": meta["spec"]["params"] | {name: value}}
        write_npz(path, meta | {"spec": spec}, arrays)
        with pytest.raises(ValueError, match=r"learner.npz.*(threshold|Kernel)"):
            okl.load(path)
    ignored = okl.FOGD.unchecked(features=okl.FourierFeatures(5), n_frequencies=7)  # once allowed
    ignored.save(path)
    assert okl.load(path).n_frequencies == 7


@every_variant
def test_whatever_a_learner_gets_into_can_be_saved_and_loaded(case, path):
    kept = 0
    for scale in SCALES:
        for of_labels in SCALES:
            learner = make(case)
            X, y = stream(learner, 20)
            y = y if learner._loss().classes else y * of_labels
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    learner.partial_fit(X * scale, y)
            except (ValueError, FloatingPointError):
                if not learner.rounds and not learner._broken:
                    continue
            learner.save(path)
            assert contents(okl.load(path)) == contents(learner)
            kept += 1
            if learner._loss().classes:
                break
    assert kept >= 3


# ---- memory, disks and leftovers ----


@LIMITS
def test_a_good_file_that_does_not_fit_in_memory_says_so(tmp_path):
    file = tmp_path / "large.npz"
    write_npz(file, {"spec": None}, {"a": np.zeros(2 * 10**7)})
    code = (
        "import resource, sys, oklnumba as okl\n"
        "pages = int(open('/proc/self/statm').read().split()[0])\n"
        "most = pages * resource.getpagesize() + 5 * 10**7\n"
        "resource.setrlimit(resource.RLIMIT_AS, (most, most))\n"
        "try: okl.load(sys.argv[1])\n"
        "except MemoryError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(file)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "large.npz, a file of 153 MiB, does not fit in memory" in done.stdout


@LIMITS
@every_learner
def test_a_full_disk_leaves_the_old_file_and_the_learner_as_they_were(cls, tmp_path):
    learner = make(cls)
    X, y = stream(learner, 60)
    path = tmp_path / "learner.npz"
    learner.partial_fit(X[:30], y[:30]).save(path)
    old, soft = path.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    learner.partial_fit(X[30:], y[30:])
    before = contents(learner)
    for room in (0, 100, len(old) // 2):
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, soft[1]))
        try:
            with pytest.raises(OSError, match="too large"):
                learner.save(path)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, soft)
        assert path.read_bytes() == old and os.listdir(tmp_path) == ["learner.npz"]
        assert contents(learner) == before
    learner.save(path)
    assert contents(okl.load(path)) == before


@LIMITS
def test_a_disk_that_fills_up_under_a_run_leaves_a_checkpoint_to_go_on_from(tmp_path):
    path = tmp_path / "run.npz"
    learner, whole = (okl.KernelOGD(okl.Gaussian(1.0)) for _ in range(2))
    X, y = stream(learner, 3000)
    expected = okl.run(whole, X, y)
    soft = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, soft[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            okl.run(learner, X, y, checkpoint=path, every=50)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, soft)
    left = okl.Run.load(path).rounds
    assert 0 < left < 3000 and sorted(os.listdir(tmp_path)) == ["run.npz", "run.npz.rounds"]
    assert left <= learner.rounds and np.isfinite(learner.predict(X)).all()
    again = okl.KernelOGD(okl.Gaussian(1.0))
    run = okl.run(again, X, y, checkpoint=path, every=50)
    np.testing.assert_array_equal(run.predictions, expected.predictions)
    assert contents(again) == contents(whole) and os.listdir(tmp_path) == ["run.npz"]


@pytest.fixture
def small_disk(tmp_path):
    """Return a folder on a file system of its own, of 200 kB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(folder)]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here; RLIMIT_FSIZE stands in above")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


WRITERS = {
    "learner.npz": lambda learner, run, table, path: learner.save(path),
    "run.npz": lambda learner, run, table, path: run.save(path),
    "table.npz": lambda learner, run, table, path: table.save(path),
    "table.csv": lambda learner, run, table, path: table.to_csv(path),
}


def test_whatever_is_written_to_a_full_disk_leaves_the_old_file(small_disk):
    learner = okl.KernelOGD(okl.Gaussian(1.0))
    run = okl.run(learner, *stream(learner, 600))
    table = okl.Table({"round": i, "loss": float(v)} for i, v in enumerate(run.losses))
    for name, write in WRITERS.items():
        write(learner, run, table, small_disk / name)
    old = {path.name: path.read_bytes() for path in small_disk.iterdir()}
    assert old.keys() == WRITERS.keys()
    with pytest.raises(OSError, match="No space"), open(small_disk / "others", "wb", 0) as file:
        while True:
            file.write(bytes(512))
    for name, write in WRITERS.items():
        with pytest.raises(OSError, match="No space"):
            write(learner, run, table, small_disk / name)
    new = {path.name: path.read_bytes() for path in small_disk.iterdir() if path.name in old}
    assert new == old and sorted(os.listdir(small_disk)) == sorted([*old, "others"])
    assert learner.rounds == 600 and contents(okl.load(small_disk / "learner.npz")) == contents(
        learner
    )


def test_a_run_on_a_full_disk_leaves_a_checkpoint_and_its_log(small_disk):
    learner, whole = (okl.PKAWV(okl.TaylorFeatures(2)) for _ in range(2))
    X, y = stream(learner, 6000)
    expected, path = okl.run(whole, X, y), small_disk / "run.npz"
    with pytest.raises(OSError, match="No space"):
        okl.run(learner, X, y, checkpoint=path, every=50)
    assert 0 < okl.Run.load(path).rounds < 6000
    assert sorted(os.listdir(small_disk)) == ["run.npz", "run.npz.rounds"]
    for name in ("run.npz", "run.npz.rounds"):  # to a disk with room
        shutil.copy(small_disk / name, small_disk.parent / name)
    run = okl.run(okl.PKAWV(okl.TaylorFeatures(2)), X, y, checkpoint=small_disk.parent / "run.npz")
    np.testing.assert_array_equal(run.predictions, expected.predictions)


def test_a_sweep_on_a_full_disk_goes_on_when_there_is_room(small_disk):
    (small_disk / "others").write_bytes(bytes(170_000))
    cells = small_disk / "cells"
    with pytest.raises(OSError, match="No space"):
        play(path=cells, n_jobs=2)
    kept = {path.name: path.read_bytes() for path in cells.iterdir()}
    assert kept and not any(name.startswith(".") for name in kept)
    (small_disk / "others").unlink()
    assert numbers(play(path=cells)) == numbers(play(n_jobs=1))
    assert kept.items() <= {path.name: path.read_bytes() for path in cells.iterdir()}.items()


def test_unfinished_files_of_dead_processes_are_swept_and_others_stay(path, tmp_path):
    learner = okl.load(path)
    dead = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True
    )
    gone = [f".learner.npz.{int(dead.stdout)}-0.part", f".learner.npz.{int(dead.stdout)}.part"]
    stay = [f".learner.npz.{os.getpid()}-7.part", f".other.npz.{int(dead.stdout)}-0.part"]
    stay += [".learner.npz.1-0.part", ".learner.npz.mine.part"]  # process 1 lives
    for name in gone + stay:
        (tmp_path / name).write_text("half a file")
    learner.save(path)
    assert sorted(os.listdir(tmp_path)) == sorted([*stay, "learner.npz"])
    (tmp_path / gone[0]).write_text("half a file")
    okl.run(okl.OGD(), *stream(okl.OGD(), 70), checkpoint=tmp_path / "learner.npz.x", every=20)
    files.sweep(path)
    assert sorted(os.listdir(tmp_path)) == sorted([*stay, "learner.npz", "learner.npz.x"])
