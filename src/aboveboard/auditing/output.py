"""The report folder: written whole or not at all, and never over anything that is not ours."""

import contextlib
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

from aboveboard.core.errors import InputError
from aboveboard.core.report import Report

__all__ = ["FILES", "check_folder", "write_report"]

FILES: Final = ("index.html", "report.json")


def check_folder(folder: Path, *, force: bool = False) -> None:
    """Make sure, before any work, that a report can be written to `folder`.

    Raises
    ------
    InputError
        When it is no folder, cannot be written to, or holds files that no audit wrote and `force` is not given.
    """
    try:
        with contextlib.suppress(FileNotFoundError):
            folder.lstat()  # refuses what can be no folder: too long a name, a file among the parents
        if folder.exists() and not folder.is_dir():
            raise InputError(
                f"{folder.name!r}, where the report should go, is no folder", remedy="Name another (--out)"
            )
        if folder.is_symlink() and not folder.exists():
            raise InputError(f"{folder.name!r}, where the report should go, is a link that leads nowhere")
        if folder.is_dir() and not force and not _is_ours(folder):
            raise InputError(
                f"the folder {folder.name!r} holds files that no audit wrote",
                expected="an empty folder, a new one, or one with an earlier report",
                remedy="Name another (--out), or write beside those files (--force)",
            )
        place = folder if folder.is_dir() else _parent(folder)
        with tempfile.TemporaryDirectory(prefix=".aboveboard-", dir=place):
            pass
    except (OSError, RuntimeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise _unwritable(folder, error) from error


def write_report(report: Report, folder: Path, *, force: bool = False) -> None:
    """Write ``index.html`` and ``report.json`` into `folder`.

    The files are written to a temporary folder beside it, which then takes its place. A folder that holds other files
    too keeps them: then each of the two files takes its place by itself.

    Raises
    ------
    InputError
        As `check_folder`, and when the disk is full or a file cannot be replaced; nothing is left half-written.
    """
    texts = {"index.html": report.to_html(), "report.json": report.to_json()}
    check_folder(folder, force=force)
    try:
        folder = folder.resolve()
        folder.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as stack:
            fresh = Path(tempfile.mkdtemp(prefix=".aboveboard-", dir=folder.parent))
            stack.callback(shutil.rmtree, fresh, ignore_errors=True)
            for name, text in texts.items():
                _write(fresh / name, text)
            fresh.chmod(0o777 & ~_umask())
            _take_place(fresh, folder)
    except (OSError, RuntimeError) as error:
        raise _unwritable(folder, error) from error


def _take_place(fresh: Path, folder: Path) -> None:
    if not folder.exists():
        fresh.rename(folder)
    elif {entry.name for entry in folder.iterdir()} <= set(FILES):
        old = Path(tempfile.mkdtemp(prefix=".aboveboard-", dir=folder.parent)) / "old"
        folder.rename(old)
        try:
            fresh.rename(folder)
        except OSError:
            old.rename(folder)
            raise
        finally:
            shutil.rmtree(old.parent, ignore_errors=True)
    else:
        for name in FILES:
            os.replace(fresh / name, folder / name)


def _write(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _is_ours(folder: Path) -> bool:
    """Whether a folder is empty, or holds a report that an audit wrote."""
    if not any(folder.iterdir()):
        return True
    try:
        data = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(data, dict) and {"schema_version", "findings", "not_run", "environment"} <= set(data)


def _parent(folder: Path) -> Path:
    """Return the nearest folder above that exists."""
    return next(parent for parent in folder.absolute().parents if parent.is_dir())


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _unwritable(folder: Path, error: BaseException) -> InputError:
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return InputError(f"the folder {folder.name!r} cannot be written ({why})", remedy="Name another (--out)")
