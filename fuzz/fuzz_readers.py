"""Feed any bytes to the readers: they are read as a table or refused with `InputError`, and nothing else.

The first byte says what the file is called; the rest is the file.
"""

import tempfile
from pathlib import Path

from harness import run

NAMES = ("data.csv", "data.parquet", "data.feather", "data.arrow", "data.csv.gz", "data.tsv")
FOLDER = Path(tempfile.mkdtemp(prefix="aboveboard-readers-"))


def test_one_input(content: bytes) -> None:
    from aboveboard.auditing.frames import column_kind
    from aboveboard.auditing.reading import read_table
    from aboveboard.core.errors import InputError

    if not content:
        return
    path = FOLDER / NAMES[content[0] % len(NAMES)]
    path.write_bytes(content[1:])
    try:
        table = read_table(path)
    except InputError as error:
        if str(FOLDER) in str(error):
            raise RuntimeError("a message names a folder") from error
        return
    names = list(table.frame.columns)
    assert len(table.frame) > 0
    assert len(set(names)) == len(names)
    assert all(column_kind(table.frame[name]) == kind for name, kind in table.kinds.items())
    again = read_table(path, like=table)
    assert again.kinds == table.kinds, "its own types do not fit it"


if __name__ == "__main__":
    run(test_one_input, ["aboveboard.auditing.reading", "aboveboard.auditing.frames"])
