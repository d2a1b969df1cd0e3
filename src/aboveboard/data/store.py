"""Where the bytes of a data set come from, and how they are checked.

Bundled files are read from the package. Others are looked for in the folder named by the environment variable
``ABOVEBOARD_DATA``, then in the user's cache, then where a Debian package puts them; only when a download is asked for
are they fetched from their public source. Whatever the place, a file is used only when its checksum is the known one.
"""

import gzip
import hashlib
import io
import os
import sys
import tempfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

from aboveboard.core.errors import InputError
from aboveboard.core.progress import progress
from aboveboard.data.manifest import PACKAGE, DatasetInfo, FileInfo

__all__ = ["ENVIRONMENT_VARIABLE", "cache_folder", "combined_sha256", "obtain"]

ENVIRONMENT_VARIABLE = "ABOVEBOARD_DATA"
_SECONDS = 60
_LARGEST = 64 * 2**20  # bytes; no published file is larger

Contents = dict[str, bytes]


def obtain(
    record: DatasetInfo,
    *,
    files: tuple[FileInfo, ...] = (),
    prepare: Callable[[Mapping[str, bytes]], Contents] = dict,
    download: bool = False,
) -> Contents:
    """Return the checked content of the files of a data set.

    Parameters
    ----------
    record : DatasetInfo
    files : tuple of FileInfo
        Which of ``record.files``; default: all.
    prepare : callable
        Turns the published files (name -> content) into those that the loader reads.
    download : bool
        Whether the published files may be fetched from the public source; they are then kept in the cache.

    Returns
    -------
    dict of str to bytes

    Raises
    ------
    InputError
        When a file is missing, cannot be read, or has another checksum; when the source cannot be reached.
    """
    files = files or record.files
    if record.bundled:
        return {file.name: _read_checked(PACKAGE / "files", file, record) for file in files}
    for folder in _folders(record):
        if _holds(folder, files):
            return {file.name: _read_checked(folder, file, record) for file in files}
        if record.originals and _holds(folder, record.originals):
            originals = {file.name: _read_checked(folder, file, record, "bytes") for file in record.originals}
            return _prepared(originals, record, prepare)
    if not download:
        raise _missing(record, files)
    contents = _fetch(record, record.originals or files, prepare)
    folder = cache_folder()
    for name, content in contents.items():
        _write_atomically(folder / name, content)
    return contents


def cache_folder() -> Path:
    """Return the folder for downloads: the user's cache as the system defines it."""
    if sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "aboveboard" / "data"


def combined_sha256(files: tuple[FileInfo, ...]) -> str:
    """Return the checksum of one file; of several, the checksum of the lines ``name checksum``."""
    if len(files) == 1:
        return files[0].sha256
    lines = "".join(f"{file.name} {file.sha256}\n" for file in files)
    return hashlib.sha256(lines.encode()).hexdigest()


def _folders(record: DatasetInfo) -> list[Path]:
    folders = []
    named = os.environ.get(ENVIRONMENT_VARIABLE, "")
    if named:
        folder = Path(named).expanduser()
        if not folder.is_dir():
            raise InputError(
                f"The environment variable {ENVIRONMENT_VARIABLE} names {named!r}, which is not a folder",
                expected="a folder that holds data sets",
                remedy=f"Correct or unset {ENVIRONMENT_VARIABLE}",
            )
        folders.append(folder)
    folders.append(cache_folder())
    if record.system_folder:
        folders.append(Path(record.system_folder))
    return folders


def _holds(folder: Path, files: tuple[FileInfo, ...]) -> bool:
    return all((folder / file.name).is_file() for file in files)


def _read_checked(folder: Path, file: FileInfo, record: DatasetInfo, checked: str = "") -> bytes:
    path = folder / file.name
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"The file {path} of the data set {record.name} cannot be read: {error.strerror or error}",
            remedy="Reinstall aboveboard" if record.bundled else "Make it readable, or remove it",
        ) from error
    _check(content, file, checked or record.checked, where=str(path), bundled=record.bundled)
    return content


def _check(content: bytes, file: FileInfo, checked: str, *, where: str, bundled: bool = False) -> None:
    if not file.sha256:
        return
    try:
        found = _DIGESTS[checked](content)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        found = f"nothing readable ({error})"
    if found != file.sha256:
        raise InputError(
            f"{where} is not the file that is meant: its sha256 is {found}",
            expected=file.sha256,
            remedy="Reinstall aboveboard" if bundled else "Remove it, then fetch it again",
        )


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _sha256_gunzipped(content: bytes) -> str:
    return _sha256(gzip.decompress(content))


def _sha256_arrays(content: bytes) -> str:
    """Cover names, shapes and values, since the bytes of an .npz file depend on who compressed it."""
    import zipfile

    import numpy as np

    digest = hashlib.sha256()
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            for name in sorted(arrays.files):
                array = np.ascontiguousarray(arrays[name], dtype="<f4")
                digest.update(f"{name} {' '.join(map(str, array.shape))}\n".encode())
                digest.update(array.tobytes())
    except zipfile.BadZipFile as error:
        raise ValueError(str(error)) from error
    return digest.hexdigest()


_DIGESTS = {"bytes": _sha256, "gunzipped": _sha256_gunzipped, "arrays": _sha256_arrays}


def _missing(record: DatasetInfo, files: tuple[FileInfo, ...]) -> InputError:
    places = f"the folder named by {ENVIRONMENT_VARIABLE} or the cache ({cache_folder()})"
    wanted = record.originals or files
    sources = "; ".join(f"{file.name} from {file.url}" + _with_checksum(file, record) for file in wanted[:4])
    if len(wanted) > 4:
        sources += f"; and {len(wanted) - 4} more"
    package = f" or install Debian's package {record.debian_package}" if record.debian_package else ""
    return InputError(
        f"The data set {record.name} does not ship with aboveboard and {files[0].name} was not found",
        expected=f"it in {places}",
        remedy=(
            f"Load it with download=True, or 'aboveboard data show {record.name} --download', or put there by hand: "
            f"{sources}{package}"
        ),
    )


def _with_checksum(file: FileInfo, record: DatasetInfo) -> str:
    if not file.sha256:
        return ""
    return f" (sha256{' of its decompressed content' if record.checked == 'gunzipped' else ''} {file.sha256})"


def _fetch(
    record: DatasetInfo, published: tuple[FileInfo, ...], prepare: Callable[[Mapping[str, bytes]], Contents]
) -> Contents:
    contents = {}
    with progress(len(published)) as bar:
        for file in published:
            bar.step(f"downloading {file.name}")
            contents[file.name] = _download(file)
            _check(contents[file.name], file, "bytes" if record.originals else record.checked, where=file.url)
    return _prepared(contents, record, prepare) if record.originals else contents


def _prepared(originals: Contents, record: DatasetInfo, prepare: Callable[[Mapping[str, bytes]], Contents]) -> Contents:
    contents = prepare(originals)
    for file in record.files:
        _check(contents[file.name], file, record.checked, where=f"What was made of the published {record.name} files")
    return contents


def _download(file: FileInfo) -> bytes:
    from http.client import HTTPException
    from urllib.request import Request, urlopen

    request = Request(file.url, headers={"User-Agent": "aboveboard"})  # noqa: S310 - the address is from the manifest
    limit = file.bytes or _LARGEST
    try:
        with urlopen(request, timeout=_SECONDS) as answer:  # noqa: S310
            content: bytes = answer.read(limit + 1)
    except (OSError, HTTPException) as error:  # URLError is an OSError
        raise InputError(
            f"{file.url} could not be fetched: {getattr(error, 'reason', None) or error}",
            expected="an answer from the public source",
            remedy=(
                f"Try again when online, or fetch it elsewhere, put it into a folder as {file.name} and name that "
                f"folder in {ENVIRONMENT_VARIABLE}" + (f"; its sha256 must be {file.sha256}" if file.sha256 else "")
            ),
        ) from error
    if len(content) > limit:
        raise InputError(
            f"{file.url} is larger than {limit:,} bytes",
            expected=f"{file.bytes:,} bytes" if file.bytes else f"at most {limit:,} bytes",
            remedy="The source has changed: please report it",
        )
    return content


def _write_atomically(path: Path, content: bytes) -> None:
    """Write beside, then rename, so that nobody ever reads half a file."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(content)
            os.replace(temporary, path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise InputError(
            f"The download cannot be kept in {path.parent}: {error.strerror or error}",
            expected="a folder that can be written to",
            remedy="Set XDG_CACHE_HOME to one, or make it writable",
        ) from error
