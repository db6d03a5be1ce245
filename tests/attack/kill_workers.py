"""Kill workers while they learn: `python -m tests.attack.kill_workers --kills 30 --seed 0`.

Three processes learn a file repeatedly; one after the other is killed at a random moment, by
SIGKILL, SIGSEGV or SIGTERM. Every run must end with results bit-identical to an undisturbed run.
"""

import argparse
import os
import random
import signal
import tempfile
import threading
import time
from pathlib import Path

import dask
import numpy as np

from streamsel import ForwardSelection, SelectKBest
from streamsel.distributed import learn
from streamsel.stream import iter_npy
from tests.conformance.modes import bits
from tests.distributed.clusters import quiet_client

SIGNALS = (signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM)
MODELS = (SelectKBest(5), ForwardSelection(5, max_candidates=30, exact=True))


class Killer(threading.Thread):
    """A thread that kills a worker now and then, until it is stopped."""

    def __init__(self, cluster, seed, most):
        super().__init__(daemon=True)
        self.killed, self._cluster, self._most = 0, cluster, most
        self._random, self._stopped = random.Random(seed), threading.Event()  # noqa: S311

    def run(self):
        while self.killed < self._most:
            if self._stopped.wait(self._random.uniform(0.05, 1.0)):
                return
            nannies = [nanny for nanny in self._cluster.workers.values() if nanny.pid]
            if nannies:
                os.kill(self._random.choice(nannies).pid, self._random.choice(SIGNALS))
                self.killed += 1

    def stop(self):
        self._stopped.set()
        self.join()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    rng = np.random.default_rng(asked.seed)
    settings = {
        "distributed.deploy.lost-worker-timeout": "1 day",
        # More failures are allowed than in real use, as these deaths are intended.
        "distributed.scheduler.allowed-failures": 1000,
    }
    with (
        tempfile.TemporaryDirectory() as folder,
        dask.config.set(settings | {"temporary-directory": folder}),
        quiet_client(3) as client,
    ):
        path = Path(folder, "x.npy")
        X = np.asfortranarray(rng.normal(size=(500, 20_000)))
        np.save(path, X)
        y = X[:, 7] - X[:, 19_000] + 0.5 * X[:, 11_111]

        def learnt(model):
            model = model.clone()
            learn(model, iter_npy(path), y, parts=200, fan_in=4, client=client)
            return bits(model)

        expected = [learnt(model) for model in MODELS]
        killed = runs = right = 0
        while killed < asked.kills:
            killer = Killer(client.cluster, asked.seed + runs, min(6, asked.kills - killed))
            start = time.monotonic()
            killer.start()
            right += learnt(MODELS[runs % 2]) == expected[runs % 2]
            killer.stop()
            killed, runs = killed + killer.killed, runs + 1
            print(
                f"run {runs}: {killer.killed} kills, {time.monotonic() - start:.1f} s", flush=True
            )
    print(f"{killed} kills in {runs} runs, {right} of which ended with the same bits")
    raise SystemExit(right != runs)


if __name__ == "__main__":
    main()
