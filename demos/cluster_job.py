"""A long job on a cluster: it is killed as by a node failure, run again, and reported.

python demos/cluster_job.py [--out FOLDER]

The script writes eight Parquet files, each with 4,000 columns of 500 samples, and a table with the
outcome, whose rows are in another order. Then it runs the commands of docs/pages/cluster.md: a job
over all files without interruption; the same job, killed by SIGKILL after 2.5 s; and its command
again, which resumes from the last checkpoint. Both selections should be identical, bit for bit. The
last command writes the HTML report.
"""

import argparse
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

N_SAMPLES, N_FILES, COLUMNS_PER_FILE, N_CAUSES = 500, 8, 4_000, 10
SELECT = (
    "streamsel select --target-file outcome.csv -t outcome --id sample --quiet"
    " --method ForwardSelection -k 10"
)


def write_files(folder: Path, rng: np.random.Generator) -> None:
    """Write eight files of columns, and the outcome: the sum of ten columns and noise."""
    outcome = rng.normal(size=N_SAMPLES)
    samples = [f"S{i:03}" for i in range(N_SAMPLES)]
    causes = rng.choice(N_FILES * COLUMNS_PER_FILE, N_CAUSES, replace=False)
    for i in range(N_FILES):
        X = rng.normal(size=(COLUMNS_PER_FILE, N_SAMPLES)).astype(np.float32)
        for j in causes[causes // COLUMNS_PER_FILE == i] % COLUMNS_PER_FILE:
            outcome += X[j]
        columns = {f"v{i * COLUMNS_PER_FILE + j}": x for j, x in enumerate(X)}
        pq.write_table(pa.table({"sample": samples} | columns), folder / f"part-{i}.parquet")
    lines = [f"{samples[i]},{outcome[i]}\n" for i in rng.permutation(N_SAMPLES)]
    (folder / "outcome.csv").write_text("".join(["sample,outcome\n", *lines]))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    out = options.out or Path(tempfile.mkdtemp(prefix="cluster-"))
    out.mkdir(parents=True, exist_ok=True)
    write_files(out, np.random.default_rng(0))

    def run(command: str, kill_after: float | None = None) -> None:
        print(f"\n$ {command}", flush=True)
        start = time.perf_counter()
        words = [sys.executable, "-m", *shlex.split(command)]
        job = subprocess.Popen(words, cwd=out)  # noqa: S603 (ours)
        try:
            code = job.wait(timeout=kill_after)
        except subprocess.TimeoutExpired:
            job.kill()
            print(f"killed (exit code {job.wait()})")
            return
        print(f"({time.perf_counter() - start:.1f} s)")
        if code:
            sys.exit(code)

    run(f"{SELECT} 'part-*.parquet' -m uninterrupted.model -o uninterrupted.csv")
    resumable = f"{SELECT} 'part-*.parquet' -m all.model -o all.csv --resume --checkpoint 0.2"
    run(resumable, kill_after=2.5)
    run(resumable)
    is_same = (out / "all.csv").read_bytes() == (out / "uninterrupted.csv").read_bytes()
    print(f"the two selections are {'identical' if is_same else 'NOT identical'}")
    run("streamsel report all.model -o page.html")
    print(f"\nfiles: {out}")


if __name__ == "__main__":
    main()
