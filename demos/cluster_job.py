"""A long job on a cluster: killed like a node that fails, run again, and shown.

python demos/cluster_job.py [--out FOLDER]

Writes eight Parquet files, 4,000 columns of 500 samples in each, and a table with the outcome, in
another order. Then it runs the commands of the guide (docs/pages/cluster.md): a job over all files
that nothing happens to; the same, killed by SIGKILL in the middle, and its line run again, which
must end with the same bits; and the page of what was found.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

N, FILES, PER_FILE, CAUSES = 500, 8, 4_000, 10
SELECT = (
    "streamsel select --target-file outcome.csv -t outcome --id sample --quiet"
    " --method ForwardSelection -k 10"
)


def make_the_files(folder: Path, rng: np.random.Generator) -> None:
    """Write the columns of eight files, ten of which add up to the outcome."""
    outcome = rng.normal(size=N)
    samples = [f"S{i:03}" for i in range(N)]
    causes = rng.choice(FILES * PER_FILE, CAUSES, replace=False)
    for i in range(FILES):
        X = rng.normal(size=(PER_FILE, N)).astype(np.float32)
        for j in causes[causes // PER_FILE == i] % PER_FILE:
            outcome += X[j]
        columns = {f"v{i * PER_FILE + j}": x for j, x in enumerate(X)}
        pq.write_table(pa.table({"sample": samples} | columns), folder / f"part-{i}.parquet")
    lines = [f"{samples[i]},{outcome[i]}\n" for i in rng.permutation(N)]
    (folder / "outcome.csv").write_text("".join(["sample,outcome\n", *lines]))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    out = options.out or Path(tempfile.mkdtemp(prefix="cluster-"))
    out.mkdir(parents=True, exist_ok=True)
    make_the_files(out, np.random.default_rng(0))

    def run(command: str, kill_after: float | None = None) -> None:
        print(f"\n$ {command}", flush=True)
        start = time.perf_counter()
        words = [word.strip("'") for word in command.split()]
        job = subprocess.Popen([sys.executable, "-m", *words], cwd=out)  # noqa: S603 (ours)
        try:
            code = job.wait(timeout=kill_after)
        except subprocess.TimeoutExpired:
            job.kill()
            print(f"killed (exit code {job.wait()})")
            return
        print(f"({time.perf_counter() - start:.1f} s)")
        if code:
            sys.exit(code)

    run(f"{SELECT} 'part-*.parquet' -m undisturbed.model -o undisturbed.csv")
    again = f"{SELECT} 'part-*.parquet' -m all.model -o all.csv --resume --checkpoint 0.2"
    run(again, kill_after=2.5)
    run(again)
    same = (out / "all.csv").read_bytes() == (out / "undisturbed.csv").read_bytes()
    print(f"what was selected is {'the same, bit by bit' if same else 'NOT the same'}")
    run("streamsel report all.model -o page.html")
    print(f"\nwritten: {out}")


if __name__ == "__main__":
    main()
