"""The expert in the terminal: nothing is lost, nothing is asked twice, nothing steers the terminal."""

import json

import click
import numpy as np
import pytest
from click.testing import CliRunner

from aboveboard.core import InputError
from aboveboard.uncertainty import AnswerTakenBack, GeneratedItem, SCOPEGen, TerminalExpert, read_items


def _items(n=12):
    return [GeneratedItem([f"draft {j} of {i}" for j in range(4)], prompt=f"question {i}") for i in range(n)]


def _scope():
    return SCOPEGen(alpha=0.5, stages=("generation",), score="count", max_samples=4, random_state=0)


def _answer(words, call):
    """Run a call while a person types these words; what happens after the last is an interrupt."""
    result, waiting = {}, iter(words)

    def prompt(text, **options):  # click's own runner never ends where the oldest click runs out of input
        click.echo(text, err=options["err"])
        if (word := next(waiting, None)) is None:
            raise click.Abort
        return word

    @click.command()
    def command():
        result["value"] = call()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(click, "prompt", prompt)
        outcome = CliRunner().invoke(command)
    result["stopped"] = outcome.exception if not isinstance(outcome.exception, SystemExit) else None
    result["aborted"] = outcome.exit_code == 1 and "Aborted" in outcome.output
    result["output"] = outcome.output
    return result


def test_an_interrupted_expert_goes_on_where_the_file_ends(tmp_path):
    items, file = _items(), tmp_path / "answers.jsonl"
    truth = {(i, j): (i + j) % 3 == 0 for i in range(12) for j in range(4)}
    uninterrupted = _scope().calibrate(items, lambda i, j: truth[i, j])
    words = []
    _scope().calibrate(items, lambda i, j: words.append("y" if truth[i, j] else "n") or truth[i, j])

    first = _answer(words[:5], lambda: _scope().calibrate(items, TerminalExpert(items, file)))
    assert first["aborted"]
    assert len(file.read_text().splitlines()) == 5
    expert = TerminalExpert(items, file)
    second = _answer(words[5:], lambda: _scope().calibrate(items, expert))
    assert second["value"].thresholds_ == uninterrupted.thresholds_
    assert expert.n_asked_ == len(words) - 5
    third = TerminalExpert(items, file)
    assert _scope().calibrate(items, third).thresholds_ == uninterrupted.thresholds_
    assert third.n_asked_ == 0


def test_a_line_cut_while_it_was_written_is_asked_again(tmp_path):
    items, file = _items(), tmp_path / "answers.jsonl"
    whole = json.dumps({"prompt": "question 0", "sample": "draft 0 of 0", "admissible": True}) + "\n"
    file.write_text(whole + '{"prompt": "question 1", "sam')
    assert TerminalExpert(items, file)(0, 0) is True
    assert file.read_text() == whole


def test_the_last_answer_can_be_taken_back(tmp_path):
    items, file = _items(), tmp_path / "answers.jsonl"
    expert = TerminalExpert(items, file)

    def answer():
        assert expert(0, 0) is True
        assert expert(1, 0) is False
        with pytest.raises(AnswerTakenBack):
            expert(2, 0)
        assert expert(1, 0) is True

    outcome = _answer(["y", "n", "b", "y"], answer)
    assert outcome["stopped"] is None
    assert [json.loads(line)["admissible"] for line in file.read_text().splitlines()] == [True, True]


def test_what_is_no_answer_is_asked_again(tmp_path):
    outcome = _answer(["b", "maybe", "Y"], lambda: TerminalExpert(_items(), tmp_path / "a.jsonl")(0, 0))
    assert outcome["value"] is True
    assert "no answer to take back" in outcome["output"]
    assert "Say y, n or b" in outcome["output"]


def test_equal_drafts_of_one_prompt_are_asked_about_once(tmp_path):
    items = [GeneratedItem(["same", "same"], prompt="q")]
    expert = TerminalExpert(items, tmp_path / "a.jsonl")
    outcome = _answer(["n"], lambda: (expert(0, 0), expert(0, 1)))
    assert outcome["value"] == (False, False)


def test_hostile_drafts_reach_the_terminal_and_the_file_harmlessly(tmp_path, hostile_name):
    items = [GeneratedItem([hostile_name], prompt=hostile_name)]
    outcome = _answer(["y"], lambda: TerminalExpert(items, tmp_path / "a.jsonl")(0, 0))
    assert outcome["value"] is True
    assert "\x1b" not in outcome["output"]
    assert TerminalExpert(items, tmp_path / "a.jsonl")(0, 0) is True


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("no json\n", "line 1, is not JSON"),
        ("[1]\n", "no JSON object"),
        ('{"prompt": "q", "sample": "s", "admissible": "yes"}\n', "is no answer"),
        ('{"prompt": "q", "sample": 3, "admissible": true}\n', "is no answer"),
        ('{"prompt": "q", "sample": "s", "admissible": true, "x": 1}\n', "unknown fields"),
        (
            '{"prompt": "q", "sample": "s", "admissible": true}\n{"prompt": "q", "sample": "s", "admissible": false}\n',
            "line 2, contradicts",
        ),
    ],
)
def test_a_file_that_holds_no_answers_is_refused(tmp_path, content, message):
    (tmp_path / "a.jsonl").write_text(content)
    with pytest.raises(InputError, match=message):
        TerminalExpert(_items(), tmp_path / "a.jsonl")


# --- items from a file ------------------------------------------------------------------------------------------------


def test_items_are_read_as_written(tmp_path):
    lines = [
        {"prompt": "q", "samples": ["a", "b"], "quality": [0.1, 0.9], "similarity": [[1, 0.2], [0.2, 1]]},
        {"samples": ["c", "d"], "labels": [0, 1]},
    ]
    (tmp_path / "items.jsonl").write_text("\n\n".join(map(json.dumps, lines)) + "\n")
    one, two = read_items(tmp_path / "items.jsonl")
    assert (one.prompt, list(one.samples), one.quality_of(2).tolist()) == ("q", ["a", "b"], [0.1, 0.9])
    assert one.similarity_of(np.arange(2)).tolist() == [[1, 0.2], [0.2, 1]]
    assert two.labels.tolist() == [False, True]
    assert two.has == frozenset()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "holds no items"),
        (b"\xff\n", "line 1, is not JSON"),
        (b"{}\n", "no list of texts"),
        (b'{"samples": "text"}\n', "no list of texts"),
        (b'{"samples": [1]}\n', "no list of texts"),
        (b'{"samples": []}\n', "line 1: samples"),
        (b'{"samples": ["a"], "quality": ["x"]}\n', "line 1: "),
        (b'{"samples": ["a"], "quality": [2]}\n', "line 1: quality"),
        (b'{"samples": ["a"], "score": [2]}\n', "unknown fields"),
        (b"[" * 100_000 + b"\n", "is not JSON"),
    ],
)
def test_lines_that_are_no_items_are_refused(tmp_path, content, message):
    (tmp_path / "items.jsonl").write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_items(tmp_path / "items.jsonl")


def test_a_missing_file_is_said(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_items(tmp_path / "none.jsonl")
