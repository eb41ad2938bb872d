"""Units as they are written, in English and Chinese, and what they are counted in."""

from __future__ import annotations

import re

_S = {
    "ns": 1e-9, "纳秒": 1e-9, "µs": 1e-6, "μs": 1e-6, "us": 1e-6, "微秒": 1e-6, "microseconds": 1e-6,
    "ms": 1e-3, "msec": 1e-3, "毫秒": 1e-3, "milliseconds": 1e-3, "millisecond": 1e-3,
    "s": 1.0, "sec": 1.0, "secs": 1.0, "second": 1.0, "seconds": 1.0, "秒": 1.0, "秒钟": 1.0,
    "min": 60.0, "mins": 60.0, "minute": 60.0, "minutes": 60.0, "分钟": 60.0,
    "h": 3600.0, "hr": 3600.0, "hrs": 3600.0, "hour": 3600.0, "hours": 3600.0, "小时": 3600.0,
    "day": 86400.0, "days": 86400.0, "天": 86400.0,
}  # fmt: skip
_DECIMAL = {"k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "p": 1e15}
_BINARY = {"ki": 2.0**10, "mi": 2.0**20, "gi": 2.0**30, "ti": 2.0**40, "pi": 2.0**50}
_PREFIX = {**_DECIMAL, **_BINARY}

TABLE: dict[str, tuple[str, float]] = {
    "%": ("fraction", 0.01), "％": ("fraction", 0.01), "percent": ("fraction", 0.01), "per cent": ("fraction", 0.01),
    "x": ("ratio", 1.0), "×": ("ratio", 1.0), "倍": ("ratio", 1.0), "-fold": ("ratio", 1.0), "fold": ("ratio", 1.0), "times": ("ratio", 1.0),
    "个百分点": ("points", 1.0), "百分点": ("points", 1.0), "percentage points": ("points", 1.0), "points": ("points", 1.0),
    "point": ("points", 1.0), "pp": ("points", 1.0), "分": ("points", 1.0),
    "tok/s": ("tok/s", 1.0), "tokens/s": ("tok/s", 1.0), "token/s": ("tok/s", 1.0), "toks/s": ("tok/s", 1.0), "tps": ("tok/s", 1.0),
    "tokens per second": ("tok/s", 1.0), "tokens/sec": ("tok/s", 1.0), "tok/sec": ("tok/s", 1.0), "token/秒": ("tok/s", 1.0),
    "ktok/s": ("tok/s", 1e3), "k tok/s": ("tok/s", 1e3),
    "req/s": ("req/s", 1.0), "reqs/s": ("req/s", 1.0), "requests/s": ("req/s", 1.0), "requests per second": ("req/s", 1.0),
    "qps": ("req/s", 1.0), "rps": ("req/s", 1.0), "requests/sec": ("req/s", 1.0),
    "bit": ("bits", 1.0), "bits": ("bits", 1.0), "-bit": ("bits", 1.0), "比特": ("bits", 1.0),
    "months": ("months", 1.0), "month": ("months", 1.0), "个月": ("months", 1.0), "years": ("months", 12.0),
    "standard deviations": ("sd", 1.0), "standard deviation": ("sd", 1.0), "个标准差": ("sd", 1.0), "σ": ("sd", 1.0),
    "美元": ("usd", 1.0), "usd": ("usd", 1.0), "dollars": ("usd", 1.0), "cents": ("usd", 0.01), "美分": ("usd", 0.01),
    "美元/小时": ("usd/h", 1.0),
    "w": ("W", 1.0), "kw": ("W", 1e3), "mw": ("W", 1e6), "瓦": ("W", 1.0), "千瓦": ("W", 1e3),
    "j": ("J", 1.0), "mj": ("J", 1e-3), "kj": ("J", 1e3), "焦": ("J", 1.0), "焦耳": ("J", 1.0),
    "wh": ("J", 3600.0), "kwh": ("J", 3.6e6),
    "hz": ("Hz", 1.0), "mhz": ("Hz", 1e6), "ghz": ("Hz", 1e9),
    "bytes": ("bytes", 1.0), "byte": ("bytes", 1.0), "字节": ("bytes", 1.0),
    **{name: ("s", scale) for name, scale in _S.items()},
    **{f"{p}b": ("bytes", scale) for p, scale in _PREFIX.items()},
    "gbps": ("bits/s", 1e9), "gigabit/s": ("bits/s", 1e9), "gbit/s": ("bits/s", 1e9), "mbps": ("bits/s", 1e6), "元": ("cny", 1.0),
    **{f"{p}b/s": ("bytes/s", scale) for p, scale in _PREFIX.items()},
    **{f"{p}flops": ("flop/s", scale) for p, scale in _DECIMAL.items()},
    **{f"{p}flop/s": ("flop/s", scale) for p, scale in _DECIMAL.items()},
}  # fmt: skip
"""Spelling in lower case → (unit, factor)."""

_CASED = {
    "s": "s",
    "h": "h",
    "w": "W",
    "j": "J",
    "kb": "[Kk]B",
    "mb": "MB",
    "gb": "GB",
    "tb": "TB",
    "pb": "PB",
    "mj": "mJ",
    "mw": "MW",
    "x": "[xX]",
    "kb/s": "[Kk]B/s",
    "mb/s": "MB/s",
    "gb/s": "GB/s",
    "tb/s": "TB/s",
}
"""Short units whose letters say too little in another case."""


def _spelling(name: str) -> str:
    body = _CASED.get(name) or "".join(
        f"[{c.lower()}{c.upper()}]" if c.isascii() and c.isalpha() else re.escape(c) for c in name
    )
    return body + (r"(?![A-Za-z0-9])(?!/)" if name[-1].isascii() and name[-1].isalpha() else "")


UNIT = re.compile(r"\s?-?\s?(" + "|".join(_spelling(n) for n in sorted(TABLE, key=len, reverse=True)) + ")")
"""A unit right behind a number."""
SCALES = {
    "k": 1e3, "K": 1e3, "M": 1e6, "万": 1e4, "亿": 1e8, "千": 1e3, "百万": 1e6, "thousand": 1e3, "million": 1e6, "billion": 1e9,
}  # fmt: skip
SCALE = re.compile(r"\s?(百万|万|亿|千(?!瓦|克|米)|thousand\b|million\b|billion\b)|([kKM])(?![A-Za-z0-9/])")
"""What multiplies a number before its unit."""
PER_HOUR = re.compile(r"\s?(?:/\s?(?:h|hr|hour)\b|per hour\b|an hour\b|/小时|每小时)", re.IGNORECASE)


GIGABIT = re.compile(r"\s?G(?:b/s|b\b(?!/)|bE\b)")
"""Gb/s: bits, where GB/s are bytes; only the case tells."""


def unit_of(spelling: str) -> tuple[str, float]:
    """(unit, factor) of a spelling that `UNIT` matched."""
    return TABLE[re.sub(r"^-(?!fold|bit)", "", spelling.strip().lower())]
