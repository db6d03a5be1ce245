"""A service that predicts and learns: its latency, its snapshots, and the history of its selection.

python demos/service.py [--out FOLDER]

The service detects spam by the words of messages: 20 words per message, of a vocabulary of 5,000.
The warehouse has 2,000 messages, with one column per word; ProjSe selects 50 words in a second or
two. In a River pipeline it then predicts 6,000 more messages one by one, and learns each when its
label arrives. From message 3,000 on spam uses other words.

Every 500 messages the whole pipeline is pickled, with the number of messages that it has learnt,
into a temporary file, which replaces the last snapshot. At message 4,321 the service crashes. The
next process loads the snapshot, and gets the messages since then again. Its predictions are
compared with those of a service that did not crash.

The script writes `latency.txt`, `history.svg` and `page.html` into FOLDER.
"""

import argparse
import os
import pickle
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from river import linear_model, optim
from scipy.sparse import csc_array

import streamsel
from streamsel import History, ProjSe

N_WORDS, N_STORED, N_LIVE, PER_MESSAGE = 5_000, 2_000, 6_000, 20
CHANGE, SNAPSHOT_EVERY, CRASH = 3_000, 500, 4_321
Message = tuple[dict[str, float], bool]


def messages(rng: np.random.Generator, n: int, change: int | None = None) -> Iterator[Message]:
    """Yield the words of messages, and whether each is spam. The words of spam change once."""
    frequency = 1.0 / np.arange(10, N_WORDS + 10)
    frequency /= frequency.sum()
    for i in range(n):
        spam = bool(rng.random() < 0.3)
        words = list(rng.choice(N_WORDS, PER_MESSAGE, p=frequency))
        if spam:
            first = 100 if change is None or i < change else 200
            words += list(rng.integers(first, first + 30, size=3))
        yield {f"w{word}": 1.0 for word in words}, spam


def learn_columns(stored: list[Message]) -> ProjSe:
    """Select words from the stored messages, with one column per word."""
    words = [f"w{word}" for word in range(N_WORDS)]
    index_of = {word: j for j, word in enumerate(words)}
    entries = [(i, index_of[word]) for i, (x, _) in enumerate(stored) for word in x]
    rows, columns = np.array(entries).T
    X = csc_array((np.ones(len(entries)), (rows, columns)), shape=(len(stored), N_WORDS))
    model = ProjSe(k=50, fading_factor=0.002, refresh_factor=1.1, max_features=10_000)
    model.learn_target([spam for _, spam in stored])
    model.learn_columns(X, words)
    return model


class Service:
    """Predicts and learns, and writes a snapshot after every `SNAPSHOT_EVERY` messages."""

    def __init__(self, pipeline: Any, folder: Path, n_learnt: int = 0) -> None:
        self.pipeline, self.n_learnt = pipeline, n_learnt
        self.snapshot = folder / "service.pickle"

    @classmethod
    def from_snapshot(cls, folder: Path) -> "Service":
        """Load the last snapshot. Only this service writes it, so its pickle can be trusted."""
        pipeline, n_learnt = pickle.loads(  # noqa: S301
            (folder / "service.pickle").read_bytes()
        )
        return cls(pipeline, folder, n_learnt)

    def predict(self, x: dict[str, float]) -> bool:
        return bool(self.pipeline.predict_one(x))

    def learn(self, x: dict[str, float], spam: bool) -> None:
        self.pipeline.learn_one(x, spam)
        self.n_learnt += 1
        if self.n_learnt % SNAPSHOT_EVERY == 0:
            temporary = self.snapshot.with_suffix(".new")
            with temporary.open("wb") as file:
                pickle.dump((self.pipeline, self.n_learnt), file)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self.snapshot)  # atomic: a reader gets the old or the new snapshot


def serve(service: Service, live: list[Message]) -> tuple[list[bool], np.ndarray]:
    """Predict, then learn, each message not yet learnt; return predictions and seconds."""
    predictions, seconds = [], []
    for x, spam in live[service.n_learnt :]:
        start = time.perf_counter()
        predictions.append(service.predict(x))
        predicted = time.perf_counter()
        service.learn(x, spam)
        seconds.append((predicted - start, time.perf_counter() - predicted))
    return predictions, np.array(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    out = options.out or Path(tempfile.mkdtemp(prefix="service-"))
    out.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    stored, live = list(messages(rng, N_STORED)), list(messages(rng, N_LIVE, CHANGE))

    start = time.perf_counter()
    model = learn_columns(stored)
    print(
        f"warehouse: {model.n_columns} words of {N_STORED} messages, "
        f"{time.perf_counter() - start:.1f} s"
    )
    pipeline = History(model) | linear_model.LogisticRegression(optim.SGD(0.1))
    for x, spam in stored:  # the regression learns the stored messages, too
        pipeline["LogisticRegression"].learn_one(model.transform_one(x), spam)
    initial = pickle.dumps(pipeline)

    with tempfile.TemporaryDirectory() as folder:
        service = Service(pipeline, Path(folder))
        predictions, seconds = serve(service, live)
    is_correct = np.array(predictions) == [spam for _, spam in live]
    before, after = is_correct[:CHANGE].mean(), is_correct[-1000:].mean()
    lines = [f"accuracy: {before:.1%} before the change, {after:.1%} of the last 1,000"]
    for action, microseconds in zip(("predict", "learn"), 1e6 * seconds.T, strict=True):
        median, p99, p999 = np.percentile(microseconds, (50, 99, 99.9))
        lines.append(
            f"{action:>8}: median {median:,.0f} µs, 99 % {p99:,.0f} µs, 99.9 % {p999:,.0f} µs"
        )

    with tempfile.TemporaryDirectory() as folder:
        crashing = Service(pickle.loads(initial), Path(folder))  # noqa: S301 (made above)
        serve(crashing, live[:CRASH])
        del crashing
        restarted = Service.from_snapshot(Path(folder))
        n_resent = CRASH - restarted.n_learnt
        later, _ = serve(restarted, live)
        is_same = later == predictions[-len(later) :]
        lines.append(
            f"crash at {CRASH}: {n_resent} messages sent again, predictions "
            f"{'the same' if is_same else 'NOT the same'} as without the crash"
        )
    print("\n".join(lines))
    (out / "latency.txt").write_text("\n".join(lines) + "\n")
    history = service.pipeline["History"]
    streamsel.plot.history(history).figure.savefig(out / "history.svg")
    (out / "page.html").write_text(streamsel.report(history.learner))
    print(f"files: {out}/history.svg, page.html, latency.txt")


if __name__ == "__main__":
    main()
