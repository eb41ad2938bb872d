"""SurrealDB's post on context layers: can one statement replace three calls, and does it take less than a millisecond?

Backs     surrealdb/sub-ms-context · one-query
Question  Chunks with vectors, links between them and their texts lie in SQLite. The nearest chunks, their neighbours and
          the texts are fetched by one statement, and by one call to each of three stores; the rows must be equal. One
          statement is put under a clock at two sizes of the corpus.
Shows not The product: the vector search is an exact scan, in process. The post measured nothing; its millisecond is a
          requirement. A customer's count of tools cannot be tested.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kb.errors import WrongResult
from kb.model import Claim, Measurement, Outcome
from kb.repro.harness.exact import Quantity, no_figure
from kb.repro.harness.judge import Answer
from kb.repro.harness.timed import Timing, durations, exact_and_timed, sharing
from kb.repro.harness.timing import Candidate

CLAIMS = ("surrealdb/sub-ms-context", "surrealdb/one-query")
LEVELS = ("derived",)
NEEDS = ()
DIM, NEAREST, LINKS = 384, 5, 3
ONE = (
    "SELECT DISTINCT chunk.id, chunk.text FROM json_each(near(?)) AS hit"
    " JOIN link ON link.source = hit.value JOIN chunk ON chunk.id = link.target ORDER BY chunk.id"
)
NEIGHBOURS = "SELECT DISTINCT target FROM link WHERE source IN (SELECT value FROM json_each(?))"
TEXTS = "SELECT id, text FROM chunk WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id"


class Corpus:
    """Chunks, links and vectors, and a count of the statements that were sent.

    Args:
        rng: Source of vectors and links.
        chunks: How many.
    """

    def __init__(self, rng: np.random.Generator, chunks: int) -> None:
        self.vectors = rng.standard_normal((chunks, DIM), dtype=np.float32)
        self.calls = 0
        self.store = sqlite3.connect(":memory:")
        self.store.executescript(
            "CREATE TABLE chunk (id INTEGER PRIMARY KEY, text TEXT); CREATE TABLE link (source INTEGER, target INTEGER)"
        )
        self.store.executemany(
            "INSERT INTO chunk VALUES (?, ?)", ((n, f"text of chunk {n}") for n in range(chunks))
        )
        targets = rng.integers(chunks, size=(chunks, LINKS)).tolist()
        self.store.executemany(
            "INSERT INTO link VALUES (?, ?)", ((n, target) for n, row in enumerate(targets) for target in row)
        )
        self.store.execute("CREATE INDEX by_source ON link (source)")
        self.store.create_function("near", 1, self._near_packed)

    def near(self, query: np.ndarray) -> str:
        """Ids of the nearest chunks by inner product, as JSON."""
        scores = self.vectors @ query
        return json.dumps(np.argpartition(-scores, NEAREST)[:NEAREST].tolist())

    def _near_packed(self, query: bytes) -> str:
        return self.near(np.frombuffer(query, dtype=np.float32))

    def in_one(self, query: np.ndarray) -> list[Any]:
        """Texts of the neighbours of the nearest chunks, by one statement."""
        self.calls += 1
        return self.store.execute(ONE, (query.tobytes(),)).fetchall()

    def in_three(self, query: np.ndarray) -> list[Any]:
        """The same by one call each to a vector, a graph and a document store."""
        self.calls += 3
        hits = self.near(query)
        neighbours = [row[0] for row in self.store.execute(NEIGHBOURS, (hits,))]
        return self.store.execute(TEXTS, (json.dumps(neighbours),)).fetchall()


def statements(rng: np.random.Generator, stores: float, chunks: float) -> float:
    """Statements that assemble one context, the rows being equal to those of the other way.

    Args:
        rng: Source of draws.
        stores: 1 for one store, more for one each of vectors, links and texts.
        chunks: Size of the corpus.

    Raises:
        WrongResult: The two ways give other rows.
    """
    corpus = Corpus(rng, int(chunks))
    query = rng.standard_normal(DIM, dtype=np.float32)
    wanted = corpus.in_three(query)
    before = corpus.calls
    rows = corpus.in_one(query) if stores <= 1 else corpus.in_three(query)
    if rows != wanted or not rows:
        raise WrongResult(
            "surrealdb: one statement gives other rows than three calls",
            cause="the join loses or repeats rows",
            remedy="read ONE, NEIGHBOURS and TEXTS; nothing was stored",
        )
    return float(corpus.calls - before)


def assemble(inputs: Mapping[str, float]) -> dict[str, Candidate]:
    """One statement over a corpus of ``chunks``, a new query each time."""
    corpus = Corpus(np.random.default_rng(0), int(inputs["chunks"]))

    def prepare(rng: np.random.Generator) -> np.ndarray:
        return rng.standard_normal(DIM, dtype=np.float32)

    def verify(query: np.ndarray, rows: list[Any]) -> None:
        if rows != corpus.in_three(query):
            raise WrongResult(
                "surrealdb: the timed statement gives other rows than three calls",
                cause="the join loses or repeats rows",
                remedy="read ONE, NEIGHBOURS and TEXTS; nothing was stored",
            )

    return {"one-statement": Candidate(prepare, corpus.in_one, verify, 1e-7)}


def sub_ms(claim: Claim, taken: Sequence[Measurement]) -> Answer:
    """Whether the median time stays below the stated one at each size of the corpus."""
    limit = claim.high or 0.0
    times = {
        f"{one.case['inputs']['chunks']:g} chunks": float(np.median(durations([one], "one-statement")))
        for one in taken
    }
    good = [name for name, seconds in times.items() if seconds <= limit]
    outcome = Outcome.HOLDS if len(good) == len(times) else Outcome.PARTLY if good else Outcome.CONTRADICTED
    shown = ", ".join(f"{name} {1e3 * seconds:.2f} ms" for name, seconds in times.items())
    return (
        outcome,
        f"one statement with an exact scan takes {shown}; the post asks for {1e3 * limit:g} ms and measures nothing",
        f"一条语句（精确扫描）耗时 {shown}；文中要求 {1e3 * limit:g} ms，但没有测量",
    )


QUANTITIES = (Quantity("surrealdb/one-query", statements, {"stores": 1, "chunks": 2000}),)
TIMINGS = tuple(
    Timing("surrealdb/sub-ms-context", assemble, {"chunks": chunks}, pattern=f"{chunks}-chunks")
    for chunks in (1000, 50_000)
)

cases, check, measure = exact_and_timed(QUANTITIES, TIMINGS)
judge = sharing({"sub-ms": sub_ms}, {})
figure = no_figure
