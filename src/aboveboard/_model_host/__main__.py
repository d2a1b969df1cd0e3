"""Read a model, then answer questions about rows until the socket is closed. See `aboveboard._model_host`."""

import contextlib
import gc
import os
import resource
import socket
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any, Final

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

from aboveboard._model_host.loaders import Loaded, Untrusted, file_sha256, load
from aboveboard._model_host.wire import pack_numbers, plain_scalar, read_message, read_rows, written_message
from aboveboard.core.errors import InputError, MissingExtra

_NO_LIMIT: Final = 1 << 62
_FEW_ROWS: Final = 1_000


def main(descriptor: int) -> None:
    """Serve the audit at the other end of the socket `descriptor`."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash leaves no copy of the rows on the disk
    channel = socket.socket(fileno=descriptor)
    channel.set_inheritable(False)
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    loaded: Loaded | None = None
    pools = ThreadpoolController()
    while True:
        try:
            head, body = read_message(lambda length: _received(channel, length), most=_NO_LIMIT)
        except EOFError:
            return
        if head["do"] == "load":
            loaded, reply = _read_model(head)
            answer = memoryview(b"")
            pools = ThreadpoolController()  # those of the libraries that the model brought
        else:
            assert loaded is not None
            # few rows need no threads, and where cores are shared threads wait for each other a hundred times longer
            few = head.get("n", _FEW_ROWS) < _FEW_ROWS
            with pools.limit(limits=1, user_api="openmp") if few else contextlib.nullcontext():
                reply, answer = _answered(loaded, head, body)
        for piece in written_message(reply, answer):
            channel.sendall(piece)
        body = bytearray()


def _read_model(head: Mapping[str, Any]) -> tuple[Loaded | None, dict[str, Any]]:
    """Return the model, and what the audit is told of it or of why there is none."""
    try:
        sha256 = None if head["path"] is None else file_sha256(head["path"])
        if head["sha256"] is not None and sha256 != head["sha256"]:
            return None, {"changed": True}
        loaded = load(head)
        told: dict[str, Any] = {
            "model": loaded.model,
            "questions": sorted(loaded.questions),
            "classes": None if loaded.classes is None else [plain_scalar(label) for label in loaded.classes],
            "feature_names": loaded.feature_names,
            "n_features": loaded.n_features,
            "regressor": loaded.regressor,
            "trusted": list(loaded.trusted),
            "versions": loaded.versions(),
            "notes": list(loaded.notes),
            "sha256": sha256,
        }
    except Untrusted as error:
        return None, {"untrusted": error.types}
    except InputError as error:
        return None, {"refused": [error.got, error.expected, error.remedy]}
    except MissingExtra as error:
        return None, {"missing": [error.package, error.extra, error.feature]}
    except MemoryError:
        return None, {"raised": ["MemoryError", ""]}
    except BaseException as error:
        return None, {"raised": _told(error)}
    gc.collect()
    return loaded, {"loaded": told}


def _answered(loaded: Loaded, head: Mapping[str, Any], body: bytearray) -> tuple[dict[str, Any], memoryview]:
    """Return what the model says about some rows; labels that are no numbers go as codes and their values."""
    nothing = memoryview(b"")
    try:
        said = loaded.questions[head["question"]](read_rows(head, body))
        if head["question"] == "predict":
            return _labelled(said)
        return {"numbers": True}, pack_numbers(said)
    except BaseException as error:
        return {"raised": _told(error)}, nothing


def _labelled(said: Any) -> tuple[dict[str, Any], memoryview]:
    import numpy as np
    import pandas as pd

    labels = np.asarray(said)
    if labels.dtype.kind in "biuf":
        return {"numbers": True}, pack_numbers(labels)
    codes, uniques = pd.factorize(labels.reshape(-1), use_na_sentinel=True)
    return {"labels": [plain_scalar(value) for value in uniques]}, pack_numbers(codes.reshape(labels.shape))


def _told(error: BaseException) -> list[str]:
    """Return the type of an error and the first line of its message, which may itself raise."""
    try:
        text = (str(error).strip().splitlines() or [""])[0][:300]
    except Exception:
        text = ""
    return [type(error).__name__[:100], text]


def _received(channel: socket.socket, length: int) -> bytearray:
    content = bytearray(length)
    view, done = memoryview(content), 0
    while done < length:
        count = channel.recv_into(view[done:])
        if count == 0:
            raise EOFError
        done += count
    return content


def _end_with_parent(parent: int) -> None:
    """End this process when the one that started it is gone, however that ended."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


if __name__ == "__main__":
    main(int(sys.argv[1]))
