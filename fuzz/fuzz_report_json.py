"""Feed any text to `Report.from_json`: it is a report, which then round-trips, or refused with `InputError`."""

from harness import run


def test_one_input(content: bytes) -> None:
    from aboveboard.core.errors import InputError
    from aboveboard.core.report import Report

    try:
        report = Report.from_json("{" + content.decode("utf-8", "replace"))
    except InputError:
        return
    assert report.worst in ("ok", "note", "warn", "fail")
    report.to_frame()
    text = report.to_json()
    assert Report.from_json(text).to_json() == text


if __name__ == "__main__":
    run(test_one_input, ["aboveboard.core.report", "aboveboard.core.finding", "aboveboard.core.certificate"])
