"""Workloads from public files: Azure 2023, Vidur, Mooncake, ServeGen, and JSON lines with lengths (ShareGPT-like).

All are read row by row. Nothing in them is trusted: counts must be whole and in range, times finite; a line, a file and
its number of rows have an end. Times start at 0 with the first request. Where each comes from stands in `kb.datasets`.
"""

from __future__ import annotations

import ast
import datetime as dt
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kb.repro.sim.csv_rows import read_rows, unreadable
from kb.repro.sim.work import Floats, Ints, Requests

LONGEST_LINE = 1 << 20
MOST_ROWS = 5_000_000
MOST_TOKENS = 1 << 24
"""Tokens of a prompt or an answer."""
MOONCAKE_PAGE = 512
"""Tokens per hash of a Mooncake trace."""
PROMPT = ("input_toks", "input_length", "prompt_tokens", "num_prefill_tokens", "prompt_len")
OUTPUT = ("output_toks", "output_length", "completion_tokens", "num_decode_tokens", "output_len")


def azure(path: Path) -> Requests:
    """Azure 2023: ``TIMESTAMP, ContextTokens, GeneratedTokens``.

    Raises:
        BadInput: The file is none.
    """
    rows = []
    for line, row in enumerate(read_rows(path, ("ContextTokens", "GeneratedTokens"), ("TIMESTAMP",)), 2):
        stamp = row["TIMESTAMP"]
        try:  # seven digits after the point; the standard library reads six
            second = dt.datetime.fromisoformat(stamp[:19]).replace(tzinfo=dt.UTC).timestamp()
            fraction = float(f"0{stamp[19:]}" if stamp[19:] else 0)
        except ValueError as error:
            raise unreadable(path, f"line {line}: TIMESTAMP is {stamp[:40]!r}") from error
        rows.append((second + fraction, float(row["ContextTokens"]), float(row["GeneratedTokens"])))
        _not_too_many(path, len(rows))
    return build(path, rows)


def vidur(path: Path) -> Requests:
    """Vidur's processed traces: ``arrived_at, num_prefill_tokens, num_decode_tokens``.

    Raises:
        BadInput: The file is none.
    """
    names = ("arrived_at", "num_prefill_tokens", "num_decode_tokens")
    rows = []
    for row in read_rows(path, names):
        rows.append(tuple(float(row[name]) for name in names))
        _not_too_many(path, len(rows))
    return build(path, rows)


def mooncake(path: Path) -> Requests:
    """Mooncake: times in ms, and the names of prompt pages of 512 tokens, which the engine must then use, too.

    Pages of answers have names of their own.

    Raises:
        BadInput: The file is none.
    """
    rows, contents = [], []
    for line, entry in json_lines(path):
        names = entry.get("hash_ids")
        if not isinstance(names, list) or not all(_is_count(name, 1 << 31) for name in names):
            raise unreadable(path, f"line {line}: hash_ids is no list of whole numbers")
        rows.append(
            (_number(path, line, entry, "timestamp") / 1000, *_lengths(path, line, entry)),
        )
        contents.append(names)
        _not_too_many(path, len(rows))
    order = np.argsort([row[0] for row in rows], kind="stable")
    requests = build(path, rows)
    full = (requests.prompt + requests.output) // MOONCAKE_PAGE
    page_from = np.concatenate([[0], np.cumsum(full)])
    known: dict[int, int] = {}
    page_ids = np.full(int(page_from[-1]), -1, np.int64)
    for number, row in enumerate(order):
        whole = contents[row][: int(requests.prompt[number]) // MOONCAKE_PAGE]
        begin = page_from[number]
        page_ids[begin : begin + len(whole)] = [known.setdefault(name, len(known)) for name in whole]
    own = page_ids < 0
    page_ids[own] = len(known) + np.arange(int(own.sum()))
    return Requests(
        requests.arrival, requests.prompt, requests.output, page_from=page_from, page_ids=page_ids
    )


def json_requests(path: Path, time: str = "") -> Requests:
    """JSON lines with prompt and output lengths under one of their usual names.

    Args:
        path: The file.
        time: Name of the arrival time, s; without one all arrive at 0.

    Raises:
        BadInput: A line is no such object.
    """
    rows = []
    for line, entry in json_lines(path):
        rows.append((_number(path, line, entry, time) if time else 0.0, *_lengths(path, line, entry)))
        _not_too_many(path, len(rows))
    return build(path, rows)


def servegen(folder: Path, rng: np.random.Generator, begin: float, seconds: float) -> Requests:
    """Draw requests from ServeGen's client chunks: Gamma arrivals per 600 s, lengths from histograms per 6 h.

    Args:
        folder: Has ``chunk-*-trace.csv`` and ``chunk-*-dataset.json``.
        rng: Source of arrivals and lengths.
        begin: Second of the recorded days to begin at.
        seconds: How long.

    Raises:
        BadInput: A file is none, or nobody sends anything then.
    """
    rows: list[tuple[float, float, float]] = []
    for trace in sorted(folder.glob("chunk-*-trace.csv")):
        data = trace.with_name(trace.name.replace("-trace.csv", "-dataset.json"))
        histograms = _histograms(data)
        for start, rate, variation in _windows(trace):
            low, high = max(start, begin), min(start + 600, begin + seconds)
            window = histograms.get(int(start // 21600) * 21600)
            if low < high and rate > 0 and window:
                times = low + _gamma_arrivals(rng, rate, variation or 1.0, high - low)
                _not_too_many(trace, len(rows) + len(times))
                drawn = [rng.choice(values, len(times), p=shares) for values, shares in window]
                rows += zip(times - begin, *drawn, strict=True)
    if not rows:
        raise unreadable(folder, "no chunk sends a request in this time")
    return build(folder, rows)


def _gamma_arrivals(rng: np.random.Generator, rate: float, variation: float, seconds: float) -> Floats:
    """Times of a renewal process within ``seconds``."""
    shape = 1 / variation**2
    many = int(rate * seconds + 10 * math.sqrt(rate * seconds * max(1, variation**2)) + 10)
    times = np.cumsum(rng.gamma(shape, 1 / (rate * shape), many))
    return np.asarray(times[times < seconds])


def _windows(path: Path) -> Iterator[tuple[float, float, float]]:
    """Start, requests per second and coefficient of variation; the file has no header."""
    try:
        with path.open(encoding="utf-8") as file:
            for line, text in enumerate(file, 1):
                cells = text[:LONGEST_LINE].split(",")
                try:
                    start, rate, variation = (float(cell) for cell in cells[:3])
                except ValueError as error:
                    raise unreadable(path, f"line {line}: not three numbers") from error
                if not (0 <= start < 1e9 and 0 <= rate < 1e6 and 0 <= variation < 1e3):  # noqa: PLR2004  beyond any client
                    raise unreadable(path, f"line {line}: start, rate or cv out of range")
                yield start, rate, variation
    except (OSError, UnicodeDecodeError) as error:
        raise unreadable(path, str(error)) from error


def _histograms(path: Path) -> dict[int, tuple[tuple[Ints, Floats], tuple[Ints, Floats]]]:
    """Prompt and output lengths with their shares, by start of the window."""
    try:
        if path.stat().st_size > 64 * LONGEST_LINE:
            raise unreadable(path, "larger than 64 MiB")
        windows = json.loads(path.read_text(encoding="utf-8"))
        found = {}
        for start, entry in windows.items():
            sides = [ast.literal_eval(entry[name]) for name in ("input_tokens", "output_tokens")]
            if all(sides):
                found[int(start)] = (_histogram(path, sides[0]), _histogram(path, sides[1]))
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        SyntaxError,
        RecursionError,
        MemoryError,
    ) as error:
        raise unreadable(path, f"no histograms: {type(error).__name__}") from error
    return found


def _histogram(path: Path, shares: dict[int, float]) -> tuple[Ints, Floats]:
    values, weights = np.array(list(shares), np.float64), np.array(list(shares.values()), np.float64)
    if not (np.isfinite(weights) & (weights >= 0)).all() or not weights.sum() > 0:
        raise unreadable(path, "shares of a histogram must be finite and not negative")
    return np.clip(values, 1, MOST_TOKENS).astype(np.int64), weights / weights.sum()


def json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield line numbers and objects of a file of JSON lines; empty lines are passed over.

    Raises:
        BadInput: It cannot be read, or a line is too long, no JSON, or no object.
    """
    try:
        with path.open(encoding="utf-8") as file:
            line = 0
            while text := file.readline(LONGEST_LINE):
                line += 1
                if len(text) == LONGEST_LINE and not text.endswith("\n"):
                    raise unreadable(path, f"line {line}: longer than {LONGEST_LINE} characters")
                if text.isspace():
                    continue
                try:
                    entry = json.loads(text)
                except (ValueError, RecursionError) as error:
                    raise unreadable(path, f"line {line}: no JSON ({type(error).__name__})") from error
                if not isinstance(entry, dict):
                    raise unreadable(path, f"line {line}: no JSON object")
                yield line, entry
    except (OSError, UnicodeDecodeError) as error:
        raise unreadable(path, str(error)) from error


def _is_count(value: object, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < most


def _number(path: Path, line: int, entry: dict[str, Any], name: str) -> float:
    value = entry.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < 1e18:  # noqa: PLR2004  beyond any clock
        raise unreadable(path, f"line {line}: {name} is no finite number")
    return float(value)


def _lengths(path: Path, line: int, entry: dict[str, Any]) -> tuple[float, float]:
    return _length(path, line, entry, PROMPT), _length(path, line, entry, OUTPUT)


def _length(path: Path, line: int, entry: dict[str, Any], names: Sequence[str]) -> float:
    for name in names:
        if name in entry:
            if not _is_count(entry[name], MOST_TOKENS):
                raise unreadable(path, f"line {line}: {name} is no number of tokens")
            return float(entry[name])
    raise unreadable(path, f"line {line}: none of {', '.join(names)}")


def _not_too_many(path: Path, count: int) -> None:
    if count > MOST_ROWS:
        raise unreadable(path, f"more than {MOST_ROWS} requests")


def build(path: Path, rows: Sequence[tuple[float, ...]]) -> Requests:
    """Requests in order of time, from the first on; who asks for nothing is given one token to read or write.

    Args:
        path: For the error.
        rows: Time, prompt and output of each.

    Raises:
        BadInput: There are none, or a length is not whole or out of range.
    """
    if not rows:
        raise unreadable(path, "it has no requests")
    table = np.array(rows, np.float64)
    table = table[np.argsort(table[:, 0], kind="stable")]
    lengths = table[:, 1:3]
    if (lengths != np.rint(lengths)).any() or (lengths < 0).any() or (lengths >= MOST_TOKENS).any():
        raise unreadable(path, f"a length is not a whole number below {MOST_TOKENS}")
    prompt, output = np.maximum(lengths.astype(np.int64), 1).T
    return Requests(table[:, 0] - table[0, 0], prompt.copy(), output.copy())
