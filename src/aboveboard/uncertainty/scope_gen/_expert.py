"""Ask an expert in the terminal which drafts are admissible; every answer is on the disk before the next question."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click

from aboveboard.core import InputError
from aboveboard.uncertainty.scope_gen._items import GeneratedItem
from aboveboard.uncertainty.scope_gen._stages import Item

__all__ = ["AnswerTakenBack", "TerminalExpert", "read_items"]

_ANSWERS: Final = {"y": True, "n": False}
_FIELDS: Final = frozenset({"prompt", "samples", "quality", "similarity", "labels"})


class AnswerTakenBack(Exception):
    """The expert took the last answer back: calibrate again, and only that question comes again."""


class TerminalExpert:
    """The `admissible` of `SCOPEGen.calibrate` that asks a person, and never the same question twice.

    Parameters
    ----------
    items : sequence of items
        The same that go to `calibrate`.
    answers : path
        A file of JSON lines, one per answer; made when it is not there, and read first when it is. An answer belongs to
        a prompt and a draft, not to a place, so the file still serves when items are added or put in another order.

    Attributes
    ----------
    n_asked_ : int
        Questions that the person answered; the others were answered by the file.

    Raises
    ------
    InputError
        For a file that holds something else, or two different answers to one question.

    Notes
    -----
    Each answer is appended and flushed to the disk before the next question, so an interrupt loses nothing: the same
    items and the same `random_state` lead to the same questions, and the next run goes on where this one ended.
    A last line that was cut in the middle of writing is dropped.
    """

    def __init__(self, items: Sequence[Item], answers: str | Path) -> None:
        self._items = items
        self._path = Path(answers)
        self._answers = self._read()
        self.n_asked_ = 0

    def __call__(self, i: int, j: int) -> bool:
        """Say whether draft j of item i is admissible.

        Raises
        ------
        AnswerTakenBack
            When the person wants to change the last answer.
        click.Abort
            When the person interrupts.
        """
        key = (str(self._items[i].prompt), str(self._items[i].samples[j]))
        if key not in self._answers:
            answer = self._ask(*key)
            self._append(key, answer)
            self._answers[key] = answer
            self.n_asked_ += 1
        return self._answers[key]

    def _ask(self, prompt: str, sample: str) -> bool:
        click.secho(f"\n{_shown(prompt)}", bold=True, err=True)
        click.echo(f"\n{_shown(sample)}\n", err=True)
        while True:
            word = click.prompt(
                f"[{len(self._answers) + 1}] Acceptable? y, n, b (back) or Ctrl-C (stop; nothing is lost)",
                prompt_suffix=" > ",
                err=True,
            ).strip()
            if word.lower() in _ANSWERS:
                return _ANSWERS[word.lower()]
            if word.lower() == "b" and self._answers:
                self._take_back()
                raise AnswerTakenBack
            click.echo("There is no answer to take back." if word.lower() == "b" else "Say y, n or b.", err=True)

    def _append(self, key: tuple[str, str], answer: bool) -> None:
        line = json.dumps({"prompt": key[0], "sample": key[1], "admissible": answer})
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())

    def _take_back(self) -> None:
        self._answers.popitem()
        rest = [json.dumps({"prompt": p, "sample": s, "admissible": a}) + "\n" for (p, s), a in self._answers.items()]
        beside = self._path.with_name(self._path.name + ".part")
        beside.write_text("".join(rest), encoding="utf-8")
        beside.replace(self._path)

    def _read(self) -> dict[tuple[str, str], bool]:
        answers: dict[tuple[str, str], bool] = {}
        if not self._path.exists():
            return answers
        content = self._path.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            with self._path.open("r+b") as file:
                file.truncate(whole)
        for number, line in enumerate(content[:whole].splitlines(), start=1):
            record = _record(line, f"{self._path.name}, line {number}", {"prompt", "sample", "admissible"})
            answer = record.get("admissible")
            if not isinstance(answer, bool) or not isinstance(record.get("sample"), str):
                raise InputError(
                    f"{self._path.name}, line {number}, is no answer",
                    expected='lines like {"prompt": "...", "sample": "...", "admissible": true}',
                )
            if answers.setdefault((str(record.get("prompt")), record["sample"]), answer) != answer:
                raise InputError(
                    f"{self._path.name}, line {number}, contradicts an earlier answer to the same question",
                    remedy="Delete the wrong one of the two lines",
                )
        return answers


def read_items(path: str | Path) -> list[GeneratedItem]:
    """Read items from a file of JSON lines.

    Parameters
    ----------
    path : path
        Each line is an object with ``"samples"`` (list of text) and, as far as the stages need them, ``"prompt"``,
        ``"quality"`` (list), ``"similarity"`` (list of lists) and ``"labels"`` (list of 0 and 1).

    Returns
    -------
    list of GeneratedItem

    Raises
    ------
    InputError
        When the file cannot be read, or a line is no item; the message names the line.
    """
    path = Path(path)
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise InputError(f"{path.name} cannot be read: {error.strerror}") from error
    items = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        where = f"{path.name}, line {number}"
        record = _record(line, where, _FIELDS)
        samples = record.pop("samples", None)
        if not isinstance(samples, list) or not all(isinstance(sample, str) for sample in samples):
            raise InputError(f"{where}, has no list of texts under 'samples'", expected='{"samples": ["...", "..."]}')
        try:
            items.append(GeneratedItem(samples, **record))
        except (InputError, TypeError, ValueError) as error:
            raise InputError(f"{where}: {error}") from error
    if not items:
        raise InputError(f"{path.name} holds no items", expected="one JSON object per line")
    return items


def _record(line: bytes, where: str, fields: frozenset[str] | set[str]) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}, is not JSON", expected="one JSON object per line") from error
    if not isinstance(record, dict):
        raise InputError(f"{where}, holds no JSON object", expected="one JSON object per line")
    if unknown := set(record) - fields:
        raise InputError(f"{where}, has unknown fields {sorted(unknown)!r:.80}", expected=", ".join(sorted(fields)))
    return record


def _shown(text: str) -> str:
    """Return text without what would steer the terminal."""
    return "".join(c if c in "\n\t" or c.isprintable() else f"\\x{ord(c):02x}" for c in text)
