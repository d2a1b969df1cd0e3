"""What streaming is for: tables that do not fit, and workers that are lost. All of it is slow."""

import json
import os
import runpy
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import joblib
import psutil
import pytest

from aboveboard.reproduce.auditing.audit_streaming import write_table

_SHARED = runpy.run_path(str(Path(__file__).with_name("people.py")))
audited, write = _SHARED["audited"], _SHARED["write"]

pytestmark = pytest.mark.slow

_CHILD = """
import json, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[3]), int(sys.argv[3])))
import aboveboard
report = aboveboard.audit(None, sys.argv[1], "y", predictions="p", sensitive_features=["sex"],
                          only=["performance", "calibration", "group_fairness"], stream=sys.argv[2] == "stream")
print(json.dumps([f.to_dict() for f in report.findings]))
"""


def _under_a_limit(path, way, limit):
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-c", _CHILD, str(path), way, str(limit)],
        capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limit is one of Linux")
def test_a_table_that_does_not_fit_under_a_limit_is_streamed_under_it(tmp_path):
    path = write_table(tmp_path / "large.parquet", 30_000_000)
    limit = 5 * 2**29
    streamed = _under_a_limit(path, "stream", limit)
    assert streamed.returncode == 0, streamed.stderr[-2000:]
    assert json.loads(streamed.stdout)
    memory = _under_a_limit(path, "memory", limit)
    assert memory.returncode != 0
    assert "memory" in memory.stderr.casefold()


def test_a_worker_that_is_killed_in_mid_run_changes_no_figure(table, tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed", reason="needs the extra 'cluster'")
    monkeypatch.setattr("aboveboard.auditing.parquet._PART_ROWS", 100)
    folder = write(table, tmp_path / "data", [1000, 2000], group=25)
    only = ["performance", "calibration", "group_fairness"]
    expected = audited(folder, "clusters", stream=True, only=only)
    killed = []
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.wait_for_workers(2)
        victim = next(iter(client.run(os.getpid).values()))

        def kill_when_busy():
            deadline = time.monotonic() + 120
            while time.monotonic() < deadline:
                done = sum(len(tasks) for tasks in client.has_what().values())
                if done >= 3:
                    os.kill(victim, signal.SIGKILL)
                    killed.append(victim)
                    return
                time.sleep(0.02)

        thread = threading.Thread(target=kill_when_busy)
        thread.start()
        with joblib.parallel_config(backend="dask", n_jobs=2):
            found = audited(folder, "clusters", stream=True, only=only)
        thread.join()
    assert killed
    assert not psutil.pid_exists(victim) or psutil.Process(victim).status() == psutil.STATUS_ZOMBIE
    assert found == expected
