"""One run on a GPU machine that has no network and ten minutes: every check first, then every measurement.

    scripts/gpu_check --prepare         here: fetch the wheels the GPU machine lacks, into build/gpu_check/site
    scripts/gpu_check --dry-run         here: the plan with expected seconds, and every step but the device
    scripts/gpu_check --run --out DIR   there: do it; DIR then holds archives, their digests and a report

The GPU machine has Python 3.12, PyTorch and Triton; the rest travels unpacked beside the working tree. What it leaves in
DIR comes home with ``kb run import FILE --expect SHA256``; the digests are in SHA256SUMS and on its standard output.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build/gpu_check"
SITE = WORK / "site"
LIMIT_S = 600
REFUSED = 2
"""Exit code of an import that is refused."""
PYTHON, PLATFORMS = "3.12", ("manylinux_2_28_x86_64", "manylinux2014_x86_64", "manylinux_2_17_x86_64")
PACKAGES = ("click", "pydantic", "PyYAML", "nvidia-ml-py", "pytest", "hypothesis")
"""What ``kb repro`` and the kernels' tests import and a machine with PyTorch may lack; with their dependencies."""
REHEARSED = "moe-coverage"
"""Reproduction whose archive stands in for a GPU's in the dry run."""
HAS_SITE = SITE.is_dir() and f"{sys.version_info.major}.{sys.version_info.minor}" == PYTHON
"""Whether the unpacked wheels are there and meant for the Python that runs."""
sys.path[:0] = [str(ROOT), *([str(SITE)] if HAS_SITE else [])]


@dataclass(frozen=True)
class Step:
    """One step on the GPU machine."""

    name: str
    seconds: int
    """Expected, from the module's GPU_SECONDS or from earlier runs; also half of what it may take at most."""
    command: tuple[str, ...]


def plan(out: str) -> list[Step]:
    """Steps in order: what they check comes before what they measure."""
    from kb.repro.harness.contract import units

    python = sys.executable
    steps = [
        Step("device", 10, (python, "-m", "kb.repro.harness.gpu")),
        Step(
            "kernels agree with their references",
            180,
            (python, "-m", "pytest", "-q", "-x", "-o", "addopts=", "-p", "no:cacheprovider",
             "--import-mode=importlib", "-m", "not soak", "tests/repro/kernels/test_agreement.py"),
        ),
        Step("bars: paged decode beside copy and PyTorch", 90, (python, "scripts/gpu_bars.py", "--out", out)),
    ]  # fmt: skip
    for unit in units().values():
        if unit.gpu_seconds:
            limit = str(2 * unit.gpu_seconds)
            command = ("-m", "kb", "repro", unit.name, "--gpu", "--out", out, "--timeout", limit)
            steps.append(Step(f"kb repro {unit.name} --gpu", unit.gpu_seconds, (python, *command)))
    return steps


def show(steps: list[Step]) -> int:
    """Print the plan; 1 where it does not fit."""
    for step in steps:
        print(f"{step.seconds:>5} s  {step.name}")
    total = sum(step.seconds for step in steps)
    print(f"{total:>5} s  in all, of {LIMIT_S}")
    if total > LIMIT_S:
        print(
            "too long: lower GPU_SECONDS of a reproduction by giving it fewer cases, or leave one out",
            file=sys.stderr,
        )
        return 1
    return 0


def prepare() -> int:
    """Fetch and unpack wheels for the GPU machine."""
    wheels = WORK / "wheels"
    shutil.rmtree(WORK, ignore_errors=True)
    wheels.mkdir(parents=True)
    command = [
        sys.executable,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "download",
        "--quiet",
        "--dest",
        str(wheels),
    ]
    command += ["--only-binary=:all:", "--python-version", PYTHON, "--implementation", "cp"]
    for platform in PLATFORMS:
        command += ["--platform", platform]
    pins = ROOT / "requirements/constraints.txt"
    done = subprocess.run([*command, "--constraint", str(pins), *PACKAGES], check=False)
    if done.returncode:
        print("the wheels were not fetched: this step needs a package index", file=sys.stderr)
        return 5
    for wheel in sorted(wheels.glob("*.whl")):
        with zipfile.ZipFile(wheel) as packed:
            packed.extractall(SITE)
    size = sum(path.stat().st_size for path in SITE.rglob("*") if path.is_file())
    print(
        f"{len(list(wheels.glob('*.whl')))} wheels, {size / 2**20:.0f} MiB unpacked in {SITE.relative_to(ROOT)}"
    )
    print("take the working tree and that folder along, then there: scripts/gpu_check --run --out DIR")
    return 0


def environment() -> dict[str, str]:
    """Environment of the steps: this tree and the unpacked wheels, the shipped base."""
    path = os.pathsep.join([str(ROOT), *([str(SITE)] if HAS_SITE else [])])
    base = os.environ.get("KB_ROOT") or str(ROOT / "shared/research-kb")
    return {**os.environ, "PYTHONPATH": path, "KB_ROOT": base, "PYTHONDONTWRITEBYTECODE": "1"}


def perform(steps: list[Step], out: Path) -> int:
    """Do the steps, keep what each said, stop before the limit; 4 where some failed."""
    out.mkdir(parents=True, exist_ok=True)
    began, report = time.monotonic(), []
    for step in steps:
        left = LIMIT_S - (time.monotonic() - began)
        row = {**asdict(step), "took": 0.0, "code": None, "tail": "no time left"}
        if left > step.seconds / 2:
            started = time.monotonic()
            row["code"], row["tail"] = _one(step, min(left, 2 * step.seconds + 10))
            row["took"] = round(time.monotonic() - started, 1)
        report.append(row)
        print(f"{row['took']:>7} s  code {row['code']}  {step.name}", flush=True)
        (out / "report.json").write_text(json.dumps(report, indent=1), encoding="utf-8")
        if step.name.startswith("kernels") and row["code"] != 0:
            print(row["tail"])
            print("a kernel disagrees with its reference: nothing is measured", file=sys.stderr)
            break
    sums = [f"{_sha256(path)}  {path.name}" for path in sorted(out.glob("*.json"))]
    (out / "SHA256SUMS").write_text("\n".join(sums) + "\n", encoding="utf-8")
    print("\n".join(sums))
    return 0 if len(report) == len(steps) and all(row["code"] == 0 for row in report) else 4


def _one(step: Step, limit_s: float) -> tuple[int, str]:
    try:
        done = subprocess.run(
            step.command,
            cwd=ROOT,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return 124, f"stopped after {limit_s:.0f} s"
    return done.returncode, (done.stdout + done.stderr)[-3000:]


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def rehearse(out: Path) -> int:
    """Every step but the device: an archive made on this CPU is imported, a tampered one refused."""
    fits = show(plan(str(out)))
    shutil.rmtree(out, ignore_errors=True)
    base = out / "base"
    shutil.copytree(ROOT / "shared/research-kb/claims", base / "claims")
    (base / "kb.toml").write_text('title = "rehearsal"\n', encoding="utf-8")
    print("\nrehearsed here, on the CPU:")
    checks: list[tuple[str, Callable[[], bool]]] = [
        (
            "--gpu refuses with cause and remedy where there is no GPU",
            lambda: _kb(base, "repro", REHEARSED, "--gpu") in {0, 5},
        ),
        (
            "the bars run at toy size",
            lambda: _code(sys.executable, "scripts/gpu_bars.py", "--toy", "--out", str(out)) == 0,
        ),
        ("a run is written as an archive", lambda: _kb(base, "repro", REHEARSED, "--out", str(out)) == 0),
        ("it is imported with its digest", lambda: _import(base, out)),
        (
            "another digest is refused",
            lambda: _kb(base, "run", "import", _archive(out), "--expect", "0" * 64) == REFUSED,
        ),
        ("a tampered archive is refused", lambda: _kb(base, "run", "import", _tampered(out)) == REFUSED),
    ]
    good = True
    for name, check in checks:
        started = time.monotonic()
        passed = check()
        good &= passed
        print(f"{'ok' if passed else 'FAILED':>6}  {name} ({time.monotonic() - started:.1f} s)")
        if not passed:
            break
    unpacked = "unpacked" if SITE.is_dir() else "not fetched yet: scripts/gpu_check --prepare"
    print(f"wheels for the GPU machine: {unpacked}\nnot rehearsed: the device itself")
    return fits or (0 if good else 1)


def _code(*command: str, env: dict[str, str] | None = None) -> int:
    done = subprocess.run(
        command, cwd=ROOT, env=env or environment(), capture_output=True, text=True, check=False
    )
    if done.returncode not in {0, 2, 5}:
        print(done.stdout + done.stderr, file=sys.stderr)
    return done.returncode


def _kb(base: Path, *words: str) -> int:
    return _code(sys.executable, "-m", "kb", *words, env=environment() | {"KB_ROOT": str(base)})


def _archive(out: Path) -> str:
    return str(next(out.glob(f"{REHEARSED}-*.json")))


def _import(base: Path, out: Path) -> bool:
    archive = Path(_archive(out))
    code = _kb(base, "run", "import", str(archive), "--expect", _sha256(archive))
    return code == 0 and (base / "verdicts").is_dir()


def _tampered(out: Path) -> str:
    body = json.loads(Path(_archive(out)).read_text(encoding="utf-8"))
    body["runs"][0]["measurements"][0]["samples"][0] += 0.25
    path = out / "tampered.json"
    path.write_text(json.dumps(body), encoding="utf-8")
    return str(path)


def main() -> int:
    """Do what the options ask for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--prepare", action="store_true", help="fetch wheels for the GPU machine")
    mode.add_argument(
        "--dry-run", action="store_true", help="print the plan and rehearse it without a device"
    )
    mode.add_argument("--run", action="store_true", help="do it, on the GPU machine")
    parser.add_argument("--out", type=Path, default=WORK / "out", help="folder for what is left behind")
    asked = parser.parse_args()
    out = asked.out.resolve()
    if asked.prepare:
        return prepare()
    if asked.dry_run:
        return rehearse(out)
    return perform(plan(str(out)), out)


if __name__ == "__main__":
    sys.exit(main())
