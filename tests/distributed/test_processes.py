"""Workers in separate processes: their number, and their deaths."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from streamsel import ForwardSelection, SelectKBest
from streamsel.distributed import PartError, learn
from streamsel.distributed.cluster import connect
from tests.conformance.modes import bits
from tests.distributed.clusters import quiet_client
from tests.distributed.parts import Made, made
from tests.seed import some

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def workers():
    """Return a cluster of two workers: processes of one thread each, kept alive."""
    import dask

    with (
        dask.config.set(
            {
                "distributed.deploy.lost-worker-timeout": "1 day",
                # One less than Dask's default, as restarting a worker takes seconds.
                "distributed.scheduler.allowed-failures": 2,
            }
        ),
        quiet_client(2) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def alone(client):
    """Return the state of two models that workers in this process learnt from 24 parts."""
    parts, _, y = made(24)
    models = [SelectKBest(3), ForwardSelection(4, max_candidates=10, exact=True)]
    for model in models:
        learn(model, parts, y, client=client, fan_in=3)
    return [bits(model) for model in models]


@pytest.mark.slow
def test_two_processes_are_bit_identical(workers, alone):
    parts, _, y = made(24)
    for model, expected in zip(
        [SelectKBest(3), ForwardSelection(4, max_candidates=10, exact=True)], alone, strict=True
    ):
        learn(model, parts, y, client=workers, fan_in=3)
        assert bits(model) == expected


@pytest.mark.slow
@pytest.mark.parametrize("fault", some(["SIGKILL", "SIGSEGV", "exit"], 1, "fault"))
def test_worker_death_does_not_change_the_result(fault, workers, alone, tmp_path):
    parts, _, y = made(24)
    parts[13] = Made(13, fault=fault, mended=str(tmp_path / "once"), once=True)
    model = SelectKBest(3)
    learn(model, parts, y, client=workers, fan_in=3)
    assert (tmp_path / "once").exists()
    assert bits(model) == alone[0]


@pytest.mark.slow
def test_killed_workers_do_not_change_the_result(workers, alone):
    # A worker that died in another test may not have restarted.
    workers.wait_for_workers(2, timeout=60)
    parts, _, y = made(24, pause=0.05)
    killed = []

    def kill():
        for pid in list(workers.run(os.getpid).values()):
            with contextlib.suppress(ProcessLookupError):  # it has already been replaced
                os.kill(pid, signal.SIGKILL)
            killed.append(pid)
            time.sleep(0.3)

    thread = threading.Thread(target=kill)
    model = SelectKBest(3)
    learn(
        model,
        parts,
        y,
        client=workers,
        fan_in=3,
        on_block=lambda *_: None if thread.ident else thread.start(),
    )
    thread.join()
    assert len(killed) == 2
    assert bits(model) == alone[0]


@pytest.mark.slow
def test_part_that_kills_its_workers_is_named(workers):
    parts, _, y = made(12)
    parts[7] = Made(7, fault="SIGKILL")
    model = SelectKBest(3)
    with pytest.raises(PartError, match="3 that died while they read columns 140 to 159"):
        learn(model, parts, y, client=workers, fan_in=2)
    assert model.n_columns == 80


@pytest.mark.slow
def test_interrupt_cancels_running_tasks(workers):
    parts, _, y = made(60, pause=0.05)
    model, done = SelectKBest(3), []

    def interrupt(_, summary):
        done.append(summary.n_parts)
        if len(done) == 2:
            threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGINT)).start()

    with pytest.raises(KeyboardInterrupt):
        learn(model, parts, y, client=workers, fan_in=2, on_block=interrupt)
    assert model.n_columns == 20 * done[-1]
    for _ in range(100):
        if not workers.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)):
            break
        time.sleep(0.05)
    else:
        pytest.fail("tasks are left")
    rest = model
    learn(rest, parts[done[-1] :], y, client=workers, fan_in=2)
    whole = SelectKBest(3)
    learn(whole, parts, y, client=workers, fan_in=2)
    assert bits(rest) == bits(whole)


SCRIPT = """
import sys, warnings
warnings.simplefilter("error")
import numpy as np, psutil
from streamsel import SelectKBest
from streamsel.distributed import learn
from tests.distributed.parts import made
if __name__ == "__main__":
    parts, X, y = made(6)
    model = SelectKBest(3)
    learn(model, parts, y, fan_in=2)
    left = psutil.Process().children(True)
    print(model.n_columns, [p for p in left if "resource_tracker" not in str(p.cmdline())])
"""


@pytest.mark.slow
def test_own_cluster_is_started_and_closed(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    folder = tmp_path / "tmp"
    folder.mkdir()
    environment = os.environ | {"TMPDIR": str(folder), "PYTHONPATH": str(Path.cwd())}
    done = subprocess.run(
        [sys.executable, script],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.stdout, done.stderr, done.returncode) == ("120 []\n", "", 0)
    assert not [path for path in folder.iterdir() if path.name.startswith(("streamsel", "dask"))]


@pytest.mark.slow
def test_missing_main_guard_is_reported(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.replace('if __name__ == "__main__":', "if True:"))
    environment = os.environ | {"PYTHONPATH": str(Path.cwd())}
    done = subprocess.run(
        [sys.executable, script],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1
    assert 'if __name__ == "__main__":' in done.stderr.splitlines()[-1]


@pytest.fixture
def scheduler():
    """Return a scheduler and a worker in separate processes, and the scheduler's address."""
    processes = [
        subprocess.Popen(
            [
                sys.executable,
                "-m",
                "distributed.cli.dask_scheduler",
                "--port",
                "0",
                "--dashboard-address",
                "127.0.0.1:0",
                "--scheduler-file",
                "/dev/stdout",
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
    ]
    text = ""
    for line in processes[0].stdout:
        text += line
        if '"address":' in line:
            break
    address = line.split('"')[3]
    processes.append(
        subprocess.Popen(
            [
                sys.executable,
                "-m",
                "distributed.cli.dask_worker",
                address,
                "--nthreads",
                "1",
                "--no-dashboard",
                "--no-nanny",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    )
    yield address, processes[0]
    for process in processes:
        process.kill()
        process.wait()
    processes[0].stdout.close()


@pytest.mark.slow
def test_lost_scheduler_keeps_the_merged_parts(scheduler):
    import dask

    address, process = scheduler
    parts, _, y = made(100, pause=0.02)
    model, done = SelectKBest(3), []

    def kill(_, summary):
        done.append(summary.n_parts)
        if len(done) == 2:
            process.kill()

    with (
        dask.config.set({"distributed.comm.timeouts.connect": "2s"}),
        pytest.raises(
            ConnectionError, match=f"Expected the scheduler at {address} to keep its tasks"
        ),
    ):
        learn(model, parts, y, client=address, fan_in=2, on_block=kill)
    assert model.n_columns == 20 * done[-1]


@pytest.mark.slow
def test_workers_of_this_machine_keep_freed_memory(monkeypatch):
    # Dask leaves it in the environment of a process that has started workers before.
    monkeypatch.delenv("MALLOC_TRIM_THRESHOLD_", raising=False)
    with connect(None, 1) as client:
        (found,) = client.run(os.environ.get, "MALLOC_TRIM_THRESHOLD_").values()
    assert found is None
