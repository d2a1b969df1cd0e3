"""Models that misbehave in every way that we could think of, each in a process of its own."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import pytest

import aboveboard
from aboveboard.core.errors import InputError, ModelError

pytestmark = pytest.mark.skipif(os.name != "posix", reason="models from files need Linux or macOS")

ROWS = pd.DataFrame({"a": np.linspace(0, 1, 40)})

MODELS = """
import ctypes, os, signal, sys, threading, time
from pathlib import Path
import numpy as np

def fine(rows): return rows["a"]
def pid(rows): return np.full(len(rows), os.getpid())
def segfault(rows): ctypes.string_at(0)
def abort(rows): os.abort()
def leave(rows): os._exit(7)
def leave_fine(rows): os._exit(0)
def exits(rows): sys.exit(3)
def raises(rows): raise ValueError("bad \\x1b[31mvalue\\x1b[0m\\nand more")
def interrupts(rows): raise KeyboardInterrupt
def out_of_memory(rows): raise MemoryError
def says_last(rows):
    print("\\x1b]0;title\\x07the end is near", flush=True)
    os._exit(9)
class Odd(Exception):
    def __str__(self): raise RuntimeError("no")
def odd(rows): raise Odd
def hangs(rows): time.sleep(600)
def spins(rows):
    while True: pass
def leaks(rows):
    kept = []
    while True: kept.append(b"x" * (16 << 20))
def leaks_in_a_fork(rows):
    if os.fork() == 0: leaks(rows)
    time.sleep(600)
def leaks_later(rows):
    threading.Thread(target=leaks, args=(rows,), daemon=True).start()
    return rows["a"]
def short(rows): return [0.5]
def long(rows): return [0.5] * (len(rows) + 1)
def wide(rows): return np.zeros((len(rows), 1001))
def cube(rows): return np.zeros((len(rows), 2, 2))
def missing(rows): return [np.nan] * len(rows)
def infinite(rows): return [np.inf] * len(rows)
def words(rows): return ["high"] * len(rows)
def nothing(rows): return None
def objects(rows): return [object()] * len(rows)
def noisy(rows):
    os.write(1, b"\\x1b[2J" * 300_000)
    os.write(2, b"\\x00\\xff" * 100_000)
    print("noise")
    return rows["a"]
def reads(rows): return np.full(len(rows), len(sys.stdin.read()))
def secrets(rows): return np.full(len(rows), float(any("SECRET" in name for name in os.environ)))
def descriptors(rows):
    held = [Path("/proc/self/fd", fd) for fd in os.listdir("/proc/self/fd")]
    return np.full(len(rows), sum("secret.txt" in os.readlink(fd) for fd in held if os.path.lexists(fd)))
def litters(rows):
    import tempfile
    Path(tempfile.gettempdir(), "litter").write_text("x" * 1000)
    Path("where.txt").write_text(tempfile.gettempdir())
    return rows["a"]
def garbage(rows):
    for fd in range(3, 1024):  # the socket has the first number that was free in the audit
        try: os.write(fd, b"\\xff" * 64)
        except OSError: pass
    return rows["a"]
def lies(rows):
    import struct
    for fd in range(3, 1024):  # the socket has the first number that was free in the audit
        try: os.write(fd, struct.pack(">IQ", 2, 0) + b"{}")
        except OSError: pass
    return rows["a"]
def trickles(rows):
    import struct
    for fd in range(3, 1024):  # the socket has the first number that was free in the audit
        try: os.write(fd, struct.pack(">IQ", 1 << 20, 0))
        except OSError: continue
        while True:
            os.write(fd, b" ")
            time.sleep(0.01)
def dumps(rows):
    import resource
    return np.full(len(rows), resource.getrlimit(resource.RLIMIT_CORE)[0])
def lingers(rows):
    child = os.fork()
    if child == 0: time.sleep(600)
    Path("child.txt").write_text(str(child))
    return rows["a"]
def lingers_far(rows):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            Path("child.txt").write_text(str(os.getpid()))
            time.sleep(600)
        os._exit(0)
    while not Path("child.txt").exists() or not Path("child.txt").read_text(): time.sleep(0.01)
    return rows["a"]
def lingers_and_dies(rows):
    lingers(rows)
    os._exit(5)
def on_missing(rows):
    if rows["a"].isna().any(): os._exit(6)
    return rows["a"].clip(0, 1)
"""


@pytest.fixture
def model(tmp_path, monkeypatch):
    """Open functions of MODELS; all of their processes and files are gone in the end."""
    (tmp_path / "own_models.py").write_text(MODELS, encoding="utf-8")
    (tmp_path / "tmp").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    opened = []

    def open_(name, **options):
        opened.append(aboveboard.open_model(f"own_models:{name}", **{"timeout": 60.0, **options}))
        return opened[-1]

    yield open_
    for each in opened:
        each.close()
    assert list((tmp_path / "tmp").iterdir()) == []
    left = [child for child in psutil.Process().children(recursive=True) if "_model_host" in " ".join(_command(child))]
    assert left == []


def _command(process):
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def gone(pid):
    """Whether a process ended, perhaps only just."""
    for _ in range(200):
        with contextlib.suppress(psutil.NoSuchProcess):
            if psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                time.sleep(0.05)
                continue
        return True
    return False


def hurry(opened, seconds):
    """Give the next question less time than reading the model had."""
    opened._process._timeout = seconds


CRASHES = [
    ("segfault", "crashed: its process was killed by SIGSEGV"),
    ("abort", "crashed: its process was killed by SIGABRT"),
    ("leave", "crashed: its process ended with status 7"),
    ("leave_fine", "crashed: its process ended with status 0"),
    ("says_last", r"ended with status 9; it said: \\x1b\]0;title\\x07the end is near"),
    ("lingers_and_dies", "crashed: its process ended with status 5"),
    ("garbage", "gave a message of [0-9,]+ bytes"),
]


@pytest.mark.parametrize(("name", "message"), CRASHES)
def test_a_crash_is_an_error_of_the_model_and_the_next_question_gets_a_new_process(model, name, message):
    opened = model(name)
    first = opened._process._process.pid
    with pytest.raises(ModelError, match=message):
        opened(ROWS)
    assert gone(first)
    with pytest.raises(ModelError, match=message):
        opened(ROWS)
    assert opened._process._process.pid != first


ERRORS = [
    ("exits", "raised SystemExit: 3", "SystemExit"),
    ("raises", r"raised ValueError: bad \\x1b\[31mvalue\\x1b\[0m$", "ValueError"),
    ("interrupts", "raised KeyboardInterrupt: no message", "KeyboardInterrupt"),
    ("odd", "raised Odd: no message", "Odd"),
    ("out_of_memory", "ran out of memory", "MemoryError"),
    ("words", "raised ValueError", "ValueError"),
    ("nothing", r"an answer of shape \(\) for 40 rows", ""),
    ("objects", "raised TypeError", "TypeError"),
    ("short", r"an answer of shape \(1\) for 40 rows", ""),
    ("long", r"an answer of shape \(41\) for 40 rows", ""),
    ("wide", r"an answer of shape \(40, 1001\) for 40 rows", ""),
    ("cube", r"an answer of shape \(40, 2, 2\) for 40 rows", ""),
    ("lies", "an answer that is no .npy", ""),
]


@pytest.mark.parametrize(("name", "message", "kind"), ERRORS)
def test_an_error_or_a_malformed_answer_is_told(model, name, message, kind):
    opened = model(name)
    with pytest.raises(ModelError, match=message) as caught:
        opened(ROWS)
    assert caught.value.kind == kind


@pytest.mark.parametrize("name", ["hangs", "spins", "trickles"])
def test_a_model_that_hangs_is_ended(model, name):
    opened = model(name)
    hurry(opened, 0.5)
    with pytest.raises(ModelError, match=r"took longer than 0\.5 seconds") as caught:
        opened(ROWS)
    assert caught.value.kind == "time limit"
    assert not opened._process.alive


@pytest.mark.parametrize("name", ["leaks", "leaks_in_a_fork"])
def test_a_model_that_eats_memory_is_ended(model, name):
    opened = model(name, memory=0.75)
    with pytest.raises(ModelError, match=r"GiB of memory, more than the 0\.75 GiB that it may") as caught:
        opened(ROWS)
    assert caught.value.kind == "memory limit"


def test_a_model_that_eats_memory_between_questions_is_ended(model):
    opened = model("leaks_later", memory=0.75)
    opened(ROWS)
    opened._process._process.wait(30)
    assert not opened._process.alive


@pytest.mark.parametrize("name", ["missing", "infinite"])
def test_answers_that_are_not_finite_end_the_audit_with_an_error_of_the_model(model, name):
    with pytest.raises(ModelError, match="40 answers that are not finite"):
        aboveboard.audit(model(name), ROWS, np.arange(40) % 2)


def test_what_the_model_prints_neither_reaches_the_terminal_nor_disturbs_the_answers(model, capfd):
    opened = model("noisy")
    for _ in range(2):
        np.testing.assert_array_equal(opened(ROWS), ROWS["a"])
    assert capfd.readouterr() == ("", "")


def test_the_model_reads_nothing_and_sees_neither_secrets_nor_open_files(model, monkeypatch):
    monkeypatch.setenv("MY_SECRET_TOKEN", "x")
    assert (model("reads")(ROWS) == 0).all()
    assert (model("secrets")(ROWS) == 0).all()
    assert (model("dumps")(ROWS) == 0).all()
    if sys.platform == "linux":
        with open("secret.txt", "w") as file:
            os.set_inheritable(file.fileno(), True)
            assert (model("descriptors")(ROWS) == 0).all()


def test_what_the_model_writes_to_its_temporary_folder_is_gone_with_it(model):
    opened = model("litters")
    opened(ROWS)
    assert Path(Path("where.txt").read_text(), "litter").exists()
    opened.close()
    assert not Path(Path("where.txt").read_text()).exists()


@pytest.mark.parametrize("name", ["lingers", "lingers_far"])
def test_what_the_model_started_ends_with_it(model, name):
    opened = model(name)
    opened(ROWS)
    child = int(Path("child.txt").read_text())
    assert psutil.pid_exists(child)
    opened.close()
    assert gone(child)


def test_an_interrupt_ends_the_process_and_the_next_question_gets_a_new_one(model):
    opened = model("hangs")

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        with pytest.raises(KeyboardInterrupt):
            opened(ROWS)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert not opened._process.alive


def test_a_model_that_was_closed_answers_no_more(model):
    opened = model("fine")
    with opened:
        opened(ROWS)
    opened.close()
    with pytest.raises(ModelError, match="was closed"):
        opened(ROWS)


def test_a_model_that_dies_of_one_input_is_audited_all_the_same(model):
    report = aboveboard.audit(
        model("on_missing"), ROWS, (ROWS["a"] > 0.5).astype(int), only="model_inputs", effort="quick"
    )
    found = {f.id: f.statement for f in report.findings}
    assert found["model_inputs/missing/number"] == (
        "The model answers missing values in columns of numbers with an error (crash)."
    )
    assert "copes with a single row" in found["model_inputs/single_row"]
    assert "copes" in found["model_inputs/extreme_numbers"]


STARTS = """
import sys, time
import pandas as pd, aboveboard
model = aboveboard.open_model("own_models:pid")
print(int(model(pd.DataFrame({"a": [1.0]}))[0]), flush=True)
if sys.argv[1] == "stays": time.sleep(600)
"""


@pytest.mark.parametrize("way", ["leaves", "stays"])
def test_the_process_ends_with_the_one_that_started_it_however_that_ends(model, tmp_path, way):
    with subprocess.Popen(
        [sys.executable, "-c", STARTS, way], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    ) as started:
        assert started.stdout is not None
        child = int(started.stdout.readline())
        if way == "stays":
            assert psutil.pid_exists(child)
            started.kill()
    assert gone(child)


def test_a_process_that_cannot_be_started_is_told(monkeypatch, tmp_path):
    (tmp_path / "own_models.py").write_text(MODELS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "gone"))
    with pytest.raises(ModelError, match="cannot be started"):
        aboveboard.open_model("own_models:fine")


READING = {
    "crash": "import os; os._exit(4)",
    "exit": "import sys; sys.exit('bye')",
    "error": "1 / 0",
}


@pytest.mark.parametrize(
    ("way", "error", "message"),
    [
        ("crash", ModelError, "ended with status 4"),
        ("exit", ModelError, "raised SystemExit: bye"),
        ("error", InputError, "ZeroDivisionError"),
    ],
)
def test_a_model_that_cannot_even_be_read_is_told(tmp_path, monkeypatch, way, error, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_reading.py").write_text(textwrap.dedent(READING[way]), encoding="utf-8")
    with pytest.raises(error, match=message):
        aboveboard.open_model("own_reading:model")


def test_a_file_beside_the_user_that_is_called_like_a_package_is_not_imported(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("pandas", "json", "aboveboard"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('shadowed')", encoding="utf-8")
    (tmp_path / "own_reading.py").write_text("def model(rows): return rows['a']", encoding="utf-8")
    with aboveboard.open_model("own_reading:model") as opened:
        np.testing.assert_array_equal(opened(ROWS), ROWS["a"])
