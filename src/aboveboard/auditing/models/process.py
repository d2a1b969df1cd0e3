"""A process that holds a model, kept within a time and a memory, and ended with all that it started.

The process leads a group and a session of its own, reads nothing from standard input, inherits no descriptor but one
end of a socket, and sees a few variables of the environment. What it prints is kept only to quote its last line.
"""

import contextlib
import os
import secrets
import select
import signal
import site
import socket
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Mapping
from typing import Any, Final

import psutil

from aboveboard._model_host.wire import Malformed, read_message, written_message
from aboveboard.core.errors import InputError, ModelError

__all__ = ["ModelProcess", "printable"]

_PASSED_ON: Final = frozenset(
    {
        "PATH", "HOME", "LANG", "LANGUAGE", "TZ", "PYTHONPATH", "PYTHONHASHSEED", "VIRTUAL_ENV", "LD_LIBRARY_PATH",
        "DYLD_LIBRARY_PATH", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS",
        "CUDA_VISIBLE_DEVICES", "SYSTEMROOT",
    }
)  # fmt: skip
"""What the process sees of the environment, besides LC_*: no keys and tokens."""

_MARK: Final = "ABOVEBOARD_MODEL_PROCESS"
_STEP: Final = 0.05
_WHOLE_GROUP_STEP: Final = 0.5
_TAIL: Final = 4096
_PIECE: Final = 1 << 18


class ModelProcess:
    """A child that runs ``aboveboard._model_host``.

    Parameters
    ----------
    timeout : float
        Seconds that one question may take.
    memory : int
        Bytes that it and what it starts may hold at once.

    Raises
    ------
    ModelError
        When it cannot be started.
    """

    def __init__(self, *, timeout: float, memory: int) -> None:
        if os.name != "posix":
            raise InputError(
                "models from files run in a process of their own, which needs Linux or macOS",
                remedy="Load the model in Python and call aboveboard.audit, or add its predictions to the table",
            )
        self._timeout = timeout
        self._state = _State(memory)
        mark = secrets.token_hex(16)
        folder = tempfile.TemporaryDirectory(prefix="aboveboard-model-", ignore_cleanup_errors=True)
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                self._process = subprocess.Popen(
                    # -P: a file beside the user that is called like a package is not imported in its place
                    [sys.executable, "-P", "-m", "aboveboard._model_host", str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    pass_fds=(theirs.fileno(),),
                    start_new_session=True,
                    env=_environment(folder.name) | {_MARK: mark},
                )
        except BaseException as error:
            ours.close()
            folder.cleanup()
            if isinstance(error, OSError):
                raise ModelError(f"a process for the model cannot be started ({error.strerror or error})") from error
            raise
        self._socket = ours
        ours.settimeout(_STEP)
        watcher = threading.Thread(target=_watch, args=(self._process, self._state), daemon=True)
        self._end = weakref.finalize(self, _end, self._process, ours, folder, watcher, self._state, mark, os.getpid())
        watcher.start()

    @property
    def alive(self) -> bool:
        return self._end.alive and self._process.poll() is None

    def ask(
        self, head: Mapping[str, Any], body: bytes | memoryview = b"", *, most: int = 0
    ) -> tuple[dict[str, Any], bytearray]:
        """Send a message and return the answer, whose body has at most `most` bytes.

        Raises
        ------
        ModelError
            When the process ends, takes too long or too much memory, or answers with anything but a message. It is
            ended then.
        """
        deadline = time.monotonic() + self._timeout
        try:
            for piece in written_message(head, body):
                self._send(memoryview(piece), deadline)
            return read_message(lambda length: self._receive(length, deadline), most=most)
        except Malformed as error:
            self.close()
            raise ModelError(f"the model's process gave {error}") from None
        except BaseException:  # also an interrupt: an answer that still comes would be taken for the next one
            self.close()
            raise

    def close(self) -> None:
        """End the process and all that it started, and remove its temporary files."""
        self._end()

    def _send(self, content: memoryview, deadline: float) -> None:
        done = 0
        while done < len(content):
            self._refuse_late(deadline)
            try:
                done += self._socket.send(content[done : done + _PIECE])
            except TimeoutError:
                if self._process.poll() is not None:
                    raise self._gone() from None
            except OSError:
                raise self._gone() from None

    def _receive(self, length: int, deadline: float) -> bytearray:
        content = bytearray()
        while len(content) < length:
            self._refuse_late(deadline)
            try:
                piece = self._socket.recv(min(_PIECE, length - len(content)))
            except TimeoutError:
                if self._process.poll() is not None:  # what it forked may keep the socket open
                    raise self._gone() from None
                continue
            except OSError:
                raise self._gone() from None
            if not piece:
                raise self._gone()
            content += piece
        return content

    def _refuse_late(self, deadline: float) -> None:
        if time.monotonic() > deadline:
            raise ModelError(f"the model took longer than {self._timeout:g} seconds", kind="time limit")

    def _gone(self) -> ModelError:
        """End what is left, and say how the process ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        status = self._process.poll()
        self.close()
        if self._state.over:
            return ModelError(
                f"the model held {self._state.over / 2**30:.2f} GiB of memory, more than the "
                f"{self._state.memory / 2**30:.3g} GiB that it may",
                kind="memory limit",
            )
        if status is not None and status < 0:
            name = signal.Signals(-status).name if -status in set(signal.Signals) else f"signal {-status}"
            how = f"was killed by {name}"
        else:
            how = "closed its connection" if status is None else f"ended with status {status}"
        last = self._state.last_line()
        return ModelError(
            f"the model crashed: its process {how}" + (f"; it said: {last}" if last else ""), kind="crash"
        )


class _State:
    """What the watcher tells: by how much memory the limit was passed, and what was printed last."""

    def __init__(self, memory: int) -> None:
        self.memory = memory
        self.over = 0
        self.ended = threading.Event()
        self.tail = b""

    def last_line(self) -> str:
        lines = [line for line in self.tail.decode("utf-8", "replace").splitlines() if line.strip()]
        return printable(lines[-1].strip()[:300]) if lines else ""


def printable(text: str) -> str:
    """Return text of a model without anything that could steer a terminal."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def _watch(process: "subprocess.Popen[bytes]", state: _State) -> None:
    """Read away what the process prints, and end its group once it holds too much memory."""
    assert process.stdout is not None
    source = process.stdout.fileno()
    ready = select.poll()  # not select.select, which knows the first 1,024 descriptors only
    ready.register(source, select.POLLIN)
    open_, next_look, next_group = True, 0.0, 0.0
    while not state.ended.is_set():
        if open_ and ready.poll(1000 * _STEP):
            piece = os.read(source, 1 << 16)
            open_ = bool(piece)
            state.tail = (state.tail + piece)[-_TAIL:]
        elif not open_:
            state.ended.wait(_STEP)
        now = time.monotonic()
        if now < next_look:
            continue
        next_look = now + _STEP
        whole = now >= next_group
        next_group = now + _WHOLE_GROUP_STEP if whole else next_group
        held = _resident(process.pid, whole=whole)
        if held > state.memory:
            state.over = held
            _kill_group(process)
            return


def _resident(pid: int, *, whole: bool) -> int:
    """Return the resident bytes of a process, and with `whole` of those below it."""
    try:
        process = psutil.Process(pid)
        members = [process, *process.children(recursive=True)] if whole else [process]
    except psutil.Error:
        return 0
    total = 0
    for member in members:
        with contextlib.suppress(psutil.Error):
            total += member.memory_info().rss
    return total


def _kill_group(process: "subprocess.Popen[bytes]") -> None:
    if process.returncode is None:  # not reaped yet, so nobody else has its number
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def _end(
    process: "subprocess.Popen[bytes]",
    channel: socket.socket,
    folder: "tempfile.TemporaryDirectory[str]",
    watcher: threading.Thread,
    state: _State,
    mark: str,
    owner: int,
) -> None:
    """Kill the group, then whatever left it but bears the mark, and leave nothing behind."""
    channel.close()
    if os.getpid() != owner:  # a fork of the audit that ends must not end the model of the audit
        return
    _kill_group(process)
    process.wait()
    for other in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if other.environ().get(_MARK) == mark:
                other.kill()
    state.ended.set()
    if watcher.is_alive() and watcher is not threading.current_thread():
        watcher.join(2.0)
    if process.stdout is not None:
        process.stdout.close()
    folder.cleanup()


def _environment(folder: str) -> dict[str, str]:
    """Return the variables that the process sees: a few of ours, and a temporary folder of its own."""
    seen = {name: value for name, value in os.environ.items() if name in _PASSED_ON or name.startswith("LC_")}
    if site.ENABLE_USER_SITE:
        seen["PYTHONUSERBASE"] = site.getuserbase()
    return seen | {"TMPDIR": folder, "PYTHONUNBUFFERED": "1"}
