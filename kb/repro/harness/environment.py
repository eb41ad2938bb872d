"""The class of machine a run is taken on, and facts of the run beside it. No host or user name enters a record."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import kb
from kb.errors import NeedsGpu
from kb.model import Environment


def observe(needs: Sequence[str], *, gpu: bool = False) -> Environment:
    """Describe this machine for a reproduction.

    Args:
        needs: Its ``NEEDS``: versions of libraries it does not use are left out, so that they never tell machines apart.
        gpu: Whether it runs on the GPU.

    Raises:
        NeedsGpu: ``gpu`` and none is usable.
    """
    packages = {"torch", "triton"} & set(needs)
    facts: dict[str, Any] = {
        "cpu": cpu_model(),
        "num_cores": num_cores(),
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "numpy": version("numpy"),
        **{name: version(name) for name in sorted(packages)},
    }
    if not gpu:
        return Environment(machine="cpu", **facts)
    from kb.repro.harness.gpu import describe

    return Environment(**{**facts, **describe()})


def need_gpu(what: str) -> None:
    """See that a CUDA device is usable.

    Raises:
        NeedsGpu: With the cause as observed here.
    """
    cause = ""
    try:
        import torch
    except ModuleNotFoundError:
        cause = "PyTorch is not installed"
    else:
        if torch.version.cuda is None:
            cause = f"the installed PyTorch {torch.__version__} is built without CUDA"
        elif not torch.cuda.is_available():
            cause = "torch.cuda.is_available() is False: no CUDA device or no driver"
    if cause:
        raise NeedsGpu(
            f"{what}: no number was taken",
            cause=cause,
            remedy="run without --gpu to answer what the CPU can, or prepare a run for a GPU machine",
            next_command="scripts/gpu_check --dry-run",
        )


def cpu_model() -> str:
    """CPU model as the system names it."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.processor() or platform.machine()
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1].strip() if found else platform.machine()


def num_cores() -> int:
    """Logical cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def load_average() -> float:
    """Processes that wanted a core over the last minute; what else ran beside the measurement."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else -1.0


def version(package: str) -> str:
    """Installed version without its build tag; empty where absent."""
    try:
        return metadata.version(package).partition("+")[0]
    except metadata.PackageNotFoundError:
        return ""


def code_state() -> dict[str, Any]:
    """Commit the package was run from and whether its files differed; empty where it is no checkout."""
    folder = Path(kb.__file__).parent
    commit = _git(folder, "rev-parse", "--short=12", "HEAD")
    tracked = _git(folder, "ls-files", "--error-unmatch", "__init__.py")
    if not commit or not tracked:
        return {}
    return {"commit": commit, "dirty": bool(_git(folder, "status", "--porcelain", "--", "."))}


def _git(folder: Path, *words: str) -> str:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words],
            capture_output=True,
            text=True,
            check=False,
            timeout=20,
            env=clean,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
