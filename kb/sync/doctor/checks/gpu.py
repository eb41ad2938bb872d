"""GPU, driver and PyTorch fit each other. Nothing is loaded and no setting of the device is touched."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator

from kb.sync.doctor.contract import Finding, Patient, State

TITLE = "the GPU can be used"


def check(_: Patient) -> Iterator[Finding]:
    """See the module."""
    program = shutil.which("nvidia-smi")
    torch = _version("torch")
    if program is None:
        yield Finding(
            State.NOTE,
            f"no GPU driver here (no nvidia-smi), torch {torch or 'not installed'}: reproductions run on the CPU",
        )
        return
    done = subprocess.run(
        [program, "--query-gpu=name,driver_version", "--format=csv,noheader"],
        capture_output=True, text=True, check=False, timeout=30,
    )  # fmt: skip
    if done.returncode != 0:
        said = (done.stdout + done.stderr).strip().splitlines() or ["it gave no reason"]
        yield Finding(State.WARN, f"nvidia-smi ended with {done.returncode}: {said[0]}", "nvidia-smi")
        return
    cards = ", ".join(line.strip() for line in done.stdout.splitlines() if line.strip())
    if "+cpu" in torch:
        yield Finding(
            State.WARN,
            f"{cards}, and torch {torch} is built for the CPU",
            "pip install 'kb[repro]' --force-reinstall",
        )
    elif not torch:
        yield Finding(State.WARN, f"{cards}, and torch is not installed", "pip install 'kb[repro]'")
    else:
        yield Finding(State.OK, f"{cards}, torch {torch}")


def _version(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return ""
