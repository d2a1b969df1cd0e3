"""Run every fuzz target for a while, each in a process of its own::

    python fuzz/run.py --seconds 60
    python fuzz/run.py --seconds 1800 --record

Each target starts from its committed corpus (fuzz/corpus/<target>); what it finds on the way goes to a temporary
folder. A crash is written to fuzz/crashes and makes the exit status 1. ``--record`` measures the coverage of the
project's own lines too, and writes executions and coverage to fuzz/RESULTS.md.
"""

import argparse
import datetime
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path

FOLDER = Path(__file__).parent
TARGETS = {
    "readers": "aboveboard/auditing/reading.py, frames.py",
    "cli": "aboveboard/cli.py, auditing/config.py, subject.py",
    "report_json": "aboveboard/core/report.py, finding.py",
    "model_answers": "aboveboard/_model_host/wire.py, auditing/models/hosted.py",
}
COVERED = {
    "readers": ["auditing/reading.py", "auditing/frames.py"],
    "cli": ["cli.py", "auditing/config.py", "auditing/subject.py", "auditing/gate.py", "auditing/output.py"],
    "report_json": ["core/report.py", "core/finding.py", "core/certificate.py"],
    "model_answers": ["_model_host/wire.py", "auditing/models/hosted.py"],
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=int, default=60, help="for each target (default: 60)")
    parser.add_argument("--only", choices=TARGETS, action="append", help="only this target; may be repeated")
    parser.add_argument("--jobs", type=int, default=1, help="targets at the same time (default: 1)")
    parser.add_argument("--record", action="store_true", help="write executions and coverage to fuzz/RESULTS.md")
    arguments = parser.parse_args()
    if importlib.util.find_spec("atheris") is None:
        print("Skipped: Atheris is not installed. Install it with: pip install 'aboveboard[fuzz]'")
        return 0
    rows, failed = [], False
    targets = arguments.only or list(TARGETS)
    (FOLDER / "crashes").mkdir(exist_ok=True)
    with ThreadPoolExecutor(arguments.jobs) as pool:
        results = list(pool.map(lambda target: fuzz(target, arguments.seconds, measure=arguments.record), targets))
    if not any((FOLDER / "crashes").iterdir()):
        (FOLDER / "crashes").rmdir()
    for target, (executions, coverage, crashed) in zip(targets, results, strict=True):
        failed |= crashed
        rows.append((target, arguments.seconds, executions, coverage, crashed))
        print(f"{target}: {executions:,} executions in {arguments.seconds} s, {'CRASHED' if crashed else 'no crash'}")
    if arguments.record:
        record(rows, arguments.jobs)
    return int(failed)


def fuzz(target: str, seconds: int, *, measure: bool) -> tuple[int, str, bool]:
    """Run one target; return its executions, the coverage of its modules, and whether it crashed."""
    crashes = FOLDER / "crashes"
    with tempfile.TemporaryDirectory(prefix="aboveboard-fuzz-") as scratch:
        found = Path(scratch) / "found"
        shutil.copytree(FOLDER / "corpus" / target, found)
        command = [
            sys.executable, str(FOLDER / f"fuzz_{target}.py"), str(found), f"-max_total_time={seconds}",
            f"-artifact_prefix={crashes}{os.sep}{target}-", "-rss_limit_mb=4096", "-timeout=60", "-print_final_stats=1",
            "-verbosity=1", "-max_len=4096", "-seed=1",
        ]  # fmt: skip
        environment = os.environ | {"OMP_NUM_THREADS": "1", "TMPDIR": scratch, "PYTHONWARNINGS": "ignore"}
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, errors="replace", timeout=seconds + 600
        )
        if done.returncode:
            print(done.stdout[-2000:] + done.stderr[-6000:], file=sys.stderr)
        match = re.search(r"stat::number_of_executed_units:\s*(\d+)", done.stderr)
        executions = int(match[1]) if match else 0
        coverage = covered(target, found, scratch) if measure else ""
    return executions, coverage, done.returncode != 0


def covered(target: str, corpus: Path, scratch: str) -> str:
    """Replay the corpus that the run ended with, and return the share of lines and branches that it reaches."""
    data = Path(scratch) / "coverage"
    include = ",".join(f"*/aboveboard/{name}" for name in COVERED[target])
    environment = os.environ | {"COVERAGE_FILE": str(data), "TMPDIR": scratch, "PYTHONWARNINGS": "ignore"}
    replay = [str(FOLDER / f"fuzz_{target}.py"), "--replay", str(corpus)]
    coverage = [sys.executable, "-m", "coverage"]
    subprocess.run([*coverage, "run", "--branch", f"--include={include}", *replay], env=environment, check=True)
    report = subprocess.run([*coverage, "report"], env=environment, capture_output=True, text=True, check=True).stdout
    lines = [line.split() for line in report.splitlines() if "%" in line]
    return "; ".join(
        f"{row[0].rpartition('aboveboard/')[2] if row[0] != 'TOTAL' else 'all'} {row[-1]}" for row in lines
    )


def record(rows: list[tuple[str, int, int, str, bool]], jobs: int) -> None:
    where = f"{jobs} target(s) at a time on {os.cpu_count()} cores, Python {platform.python_version()}"
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("aboveboard", "atheris", "pandas", "pyarrow"))
    text = [
        "# Fuzzing: what was run",
        "",
        f"Written by `python fuzz/run.py --seconds {rows[0][1]} --record` on {datetime.date.today()},",
        f"{where}, {versions}. Coverage is that of lines and branches when the",
        "corpus at the end of the run is replayed.",
        "",
        "| target | what it feeds | seconds | executions | coverage | crashes |",
        "|---|---|---:|---:|---|---|",
        *(
            f"| {target} | {TARGETS[target]} | {seconds} | {executions:,} | {coverage} | {'yes' if crashed else 'no'} |"
            for target, seconds, executions, coverage, crashed in rows
        ),
        "",
    ]
    (FOLDER / "RESULTS.md").write_text("\n".join(text), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
