"""Drive an open-loop load at any OpenAI-compatible server and print what became of every request, one JSON line each.

    python benchmarks/engines/load.py http://127.0.0.1:8000 --rate 2 --requests 60 --prompt 256 --output 64

Moments are seconds from the start; TTFT counts from when a request was due. The last line sums up; its numbers are null where
any request cannot be used. Ends with 5 then.
"""

from __future__ import annotations

import argparse
import json
import sys
from statistics import median

import numpy as np

from kb.errors import CannotRun
from kb.http.stream import Endpoint
from kb.repro.engines.launch import model_name
from kb.repro.engines.load import Ask, Driven, Sent, Terms, drive
from kb.repro.engines.prompts import draw_tokens


def line(one: Sent) -> dict[str, object]:
    seen = one.ok and bool(one.arrivals)
    return {
        "request": one.number, "warm_up": one.ask.warm_up, "status": one.status, "detail": one.detail,
        "due_s": round(one.due_s, 6), "sent_s": None if one.sent_s != one.sent_s else round(one.sent_s, 6),
        "ttft_s": round(one.ttft_s, 6) if seen else None, "tpot_s": round(one.tpot_s, 6) if seen else None,
        "e2e_s": round(one.e2e_s, 6) if seen else None, "output_tokens": one.output_tokens,
    }  # fmt: skip


def summary(driven: Driven) -> dict[str, object]:
    used = driven.measured if not driven.trouble else []
    return {
        "requests": len(driven.sent), "stopped": driven.stopped, "trouble": driven.trouble,
        "median_ttft_s": median(one.ttft_s for one in used if one.ok) if used else None,
        "median_tpot_s": median(one.tpot_s for one in used if one.ok) if used else None,
    }  # fmt: skip


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("url")
    asked.add_argument("--rate", type=float, default=1.0, help="requests per second, Poisson")
    asked.add_argument("--requests", type=int, default=30)
    asked.add_argument("--warm-up", type=int, default=3, help="requests before those that count")
    asked.add_argument("--prompt", type=int, default=128)
    asked.add_argument("--output", type=int, default=32)
    asked.add_argument(
        "--deadline", type=float, default=60.0, help="seconds per request, from when it is due"
    )
    asked.add_argument("--seed", type=int, default=0)
    given = asked.parse_args()
    rng = np.random.default_rng(given.seed)
    moments = np.cumsum(rng.exponential(1 / given.rate, given.warm_up + given.requests))
    asks = [
        Ask(float(at), draw_tokens(rng, given.prompt), given.output, warm_up=number < given.warm_up)
        for number, at in enumerate(moments)
    ]
    try:
        endpoint = Endpoint(given.url.rstrip("/").removesuffix("/v1"))
        driven = drive(endpoint, model_name(endpoint), asks, Terms(deadline_s=given.deadline))
    except CannotRun as problem:
        print(f"{problem.what}: {problem.cause}; {problem.remedy}", file=sys.stderr)
        return 5
    for one in driven.sent:
        print(json.dumps(line(one)))
    print(json.dumps(summary(driven)))
    return 5 if driven.trouble else 0


if __name__ == "__main__":
    sys.exit(main())
