"""Public workload traces: do their files have the shape that is quoted?

Backs     azure-2023/conv-shape · azure-2023/code-shape · mooncake/conversation-shape · mooncake/prefix-reuse-ceiling
Question  Means over the files themselves. The files are not ours to ship: `kb data fetch` gets them,
          ``KB_DATA_DIR`` names a folder that has them. Without them these claims are blocked.
Shows not That today's traffic looks like this.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from kb.datasets import data_folder
from kb.errors import CannotRun, WrongResult
from kb.model import Claim, Measurement, Record
from kb.repro.harness.bench import Bench
from kb.repro.harness.exact import by_claim, no_figure
from kb.repro.harness.rules import metric_of

CLAIMS = (
    "azure-2023/conv-shape",
    "azure-2023/code-shape",
    "mooncake/conversation-shape",
    "mooncake/prefix-reuse-ceiling",
)
LEVELS = ("derived",)
NEEDS = ()
PAGE = 512
"""Tokens per hash of the Mooncake trace."""


class Shape(Record):
    """One statistic of one file."""

    claim: str
    metric: str
    pattern: str = ""
    file: str
    """Below the data folder."""


def mean_column(path: Path, column: str) -> float:
    """Mean of a CSV column."""
    with path.open(encoding="utf-8", newline="") as file:
        values = [float(row[column]) for row in csv.DictReader(file)]
    return sum(values) / len(values)


def mean_input(path: Path) -> float:
    """Mean prompt tokens of a Mooncake trace."""
    values = [
        json.loads(line)["input_length"] for line in path.read_text(encoding="utf-8").splitlines() if line
    ]
    return float(sum(values) / len(values))


def reuse_ceiling(path: Path) -> float:
    """Share of pages that an unlimited cache has already seen."""
    seen: set[int] = set()
    hits = total = 0
    for line in path.read_text(encoding="utf-8").splitlines():
        for page in json.loads(line)["hash_ids"] if line else ():
            hits += page in seen
            total += 1
            seen.add(page)
    return hits / total


STATISTICS: dict[str, tuple[str, Callable[[Path], float]]] = {
    "azure-2023/conv-shape": (
        "azure-2023/AzureLLMInferenceTrace_conv.csv",
        lambda path: mean_column(path, "GeneratedTokens"),
    ),
    "azure-2023/code-shape": (
        "azure-2023/AzureLLMInferenceTrace_code.csv",
        lambda path: mean_column(path, "GeneratedTokens"),
    ),
    "mooncake/conversation-shape": ("mooncake-fast25/conversation_trace.jsonl", mean_input),
    "mooncake/prefix-reuse-ceiling": ("mooncake-fast25/conversation_trace.jsonl", reuse_ceiling),
}


def data() -> list[Path]:
    """Files it counts over."""
    return sorted({data_folder() / file for file, _ in STATISTICS.values()})


def cases(claims: Mapping[str, Claim]) -> Iterator[Shape]:
    """One statistic per claim."""
    for name, (file, _) in STATISTICS.items():
        yield Shape(claim=name, metric=metric_of(claims[name]), file=file)


def check(case: Shape, bench: Bench) -> None:
    """See that the file is there and is not empty.

    Raises:
        CannotRun: It is not; the claim is blocked.
        WrongResult: It holds nothing.
    """
    del bench
    path = data_folder() / case.file
    if not path.is_file():
        raise CannotRun(
            f"{case.claim}: not counted",
            cause=f"{case.file} is not in the data folder",
            remedy="fetch it, or point KB_DATA_DIR at a folder that has it",
            next_command=f"kb data fetch {case.file.partition('/')[0]}",
        )
    if path.stat().st_size == 0:
        raise WrongResult(f"{case.file}: empty", cause="the file holds nothing", remedy="fetch it again")


def measure(case: Shape, bench: Bench) -> Iterator[Measurement]:
    """Count."""
    yield bench.record(case.metric, case, [STATISTICS[case.claim][1](data_folder() / case.file)])


judge = by_claim()
figure = no_figure
