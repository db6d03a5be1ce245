"""A service that answers and learns: its latency, its snapshots, and what it has selected when.

python demos/service.py [--out FOLDER]

Words of messages, 5,000 kinds, 20 a message, are to tell spam. In the warehouse lie 2,000 messages,
a column a word: 50 words are selected of them in a second or two. The selector then stands in a
River pipeline, answers 6,000 more messages one by one and learns each when its label comes. From
message 3,000 on spam uses other words.

Every 500 messages the pipeline is pickled, whole, beside the number of messages that it has learnt,
and moved over the last snapshot. At message 4,321 the service dies. The next one begins with the
snapshot, is given the messages since again, and answers what follows as if nothing had been:
compared, message by message, with one that did not die.

Written into FOLDER: `latency.txt`, `history.svg` and `page.html`.
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
CHANGE, EVERY, DEATH = 3_000, 500, 4_321
Message = tuple[dict[str, float], bool]


def messages(rng: np.random.Generator, n: int, change: int | None = None) -> Iterator[Message]:
    """Yield messages and whether each is spam; spam has words of its own, others from `change`."""
    frequency = 1.0 / np.arange(10, N_WORDS + 10)
    frequency /= frequency.sum()
    for i in range(n):
        spam = bool(rng.random() < 0.3)
        words = list(rng.choice(N_WORDS, PER_MESSAGE, p=frequency))
        if spam:
            first = 100 if change is None or i < change else 200
            words += list(rng.integers(first, first + 30, size=3))
        yield {f"w{word}": 1.0 for word in words}, spam


def learn_in_the_warehouse(stored: list[Message]) -> ProjSe:
    """Select words of the stored messages, a column a word."""
    words = [f"w{word}" for word in range(N_WORDS)]
    place = {word: j for j, word in enumerate(words)}
    at = [(i, place[word]) for i, (x, _) in enumerate(stored) for word in x]
    rows, columns = np.array(at).T
    X = csc_array((np.ones(len(at)), (rows, columns)), shape=(len(stored), N_WORDS))
    model = ProjSe(k=50, fading_factor=0.002, refresh_factor=1.1, max_features=10_000)
    model.learn_target([spam for _, spam in stored])
    model.learn_columns(X, words)
    return model


class Service:
    """Answers and learns, and leaves a snapshot behind every so many messages."""

    def __init__(self, pipeline: Any, folder: Path, done: int = 0) -> None:
        self.pipeline, self.snapshot, self.done = pipeline, folder / "service.pickle", done

    @classmethod
    def from_snapshot(cls, folder: Path) -> "Service":
        """Begin where the last snapshot was taken. A pickle is trusted: it is our own."""
        pipeline, done = pickle.loads(  # noqa: S301
            (folder / "service.pickle").read_bytes()
        )
        return cls(pipeline, folder, done)

    def answer(self, x: dict[str, float]) -> bool:
        return bool(self.pipeline.predict_one(x))

    def learn(self, x: dict[str, float], spam: bool) -> None:
        self.pipeline.learn_one(x, spam)
        self.done += 1
        if self.done % EVERY == 0:
            alongside = self.snapshot.with_suffix(".new")
            with alongside.open("wb") as file:
                pickle.dump((self.pipeline, self.done), file)
                file.flush()
                os.fsync(file.fileno())
            alongside.replace(self.snapshot)  # a reader finds the old one or the new one


def serve(service: Service, live: list[Message]) -> tuple[list[bool], np.ndarray]:
    """Answer, then learn, every message that it has not learnt; return answers and seconds."""
    answers, seconds = [], []
    for x, spam in live[service.done :]:
        start = time.perf_counter()
        answers.append(service.answer(x))
        answered = time.perf_counter()
        service.learn(x, spam)
        seconds.append((answered - start, time.perf_counter() - answered))
    return answers, np.array(seconds)


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
    model = learn_in_the_warehouse(stored)
    print(
        f"in the warehouse: {model.n_columns} words of {N_STORED} messages, "
        f"{time.perf_counter() - start:.1f} s"
    )
    pipeline = History(model) | linear_model.LogisticRegression(optim.SGD(0.1))
    for x, spam in stored:  # what stands behind the selection has seen the warehouse too
        pipeline["LogisticRegression"].learn_one(model.transform_one(x), spam)
    first = pickle.dumps(pipeline)

    with tempfile.TemporaryDirectory() as folder:
        whole = Service(pipeline, Path(folder))
        answers, seconds = serve(whole, live)
    right = np.array(answers) == [spam for _, spam in live]
    before, after = right[:CHANGE].mean(), right[-1000:].mean()
    lines = [f"right: {before:.1%} before the change, {after:.1%} of the last 1,000"]
    for what, taken in zip(("answer", "learn"), 1e6 * seconds.T, strict=True):
        quantiles = np.percentile(taken, (50, 99, 99.9))
        told = ", ".join(
            f"{name} {value:,.0f} µs"
            for name, value in zip(("median", "99 %", "99.9 %"), quantiles, strict=True)
        )
        lines.append(f"{what:>6}: {told}")

    with tempfile.TemporaryDirectory() as folder:
        dying = Service(pickle.loads(first), Path(folder))  # noqa: S301 (made above)
        serve(dying, live[:DEATH])
        del dying
        next_one = Service.from_snapshot(Path(folder))
        behind = DEATH - next_one.done
        again, _ = serve(next_one, live)
        lines.append(
            f"died at {DEATH}: {behind} messages given again, answers "
            f"{'the same' if again == answers[-len(again) :] else 'NOT the same'} as without it"
        )
    print("\n".join(lines))
    (out / "latency.txt").write_text("\n".join(lines) + "\n")
    history = whole.pipeline["History"]
    streamsel.plot.history(history).figure.savefig(out / "history.svg")
    (out / "page.html").write_text(streamsel.report(history.learner))
    print(f"written: {out}/history.svg, page.html, latency.txt")


if __name__ == "__main__":
    main()
