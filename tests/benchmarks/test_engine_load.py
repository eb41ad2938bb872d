"""The load tool prints a line per request and a sum; where one request went wrong it gives no number and ends with 5."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.repro.engines import hostile

REPOSITORY = Path(__file__).resolve().parents[2]
TOOL = REPOSITORY / "benchmarks/engines/load.py"


def run(url):
    words = [
        "--rate",
        "40",
        "--requests",
        "4",
        "--warm-up",
        "1",
        "--prompt",
        "8",
        "--output",
        "2",
        "--deadline",
        "5",
    ]
    return subprocess.run(
        [sys.executable, TOOL, url, *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=REPOSITORY,
        timeout=60,
    )


@pytest.mark.parametrize(
    ("behave", "status", "code"),
    [(hostile.good, "ok", 0), (hostile.answering("500 Internal Server Error"), "server-error", 5)],
)
def test_each_request_has_a_line_and_the_sum_says_whether_to_believe_it(behave, status, code):
    server = hostile.Server(behave)
    try:
        ended = run(f"{server.url}/v1")
    finally:
        server.close()
    *lines, whole = map(json.loads, ended.stdout.splitlines())
    assert (ended.returncode, len(lines)) == (code, 5)
    assert [line["status"] for line in lines] == [status] * 5
    assert [line["warm_up"] for line in lines] == [True, False, False, False, False]
    assert (whole["median_ttft_s"] is not None) == (whole["trouble"] == "") == (code == 0)


def test_no_server_ends_with_5_and_a_reason():
    server = hostile.Server(hostile.good)
    server.close()
    ended = run(server.url)
    assert (ended.returncode, ended.stdout) == (5, "")
    assert "not measured" in ended.stderr
