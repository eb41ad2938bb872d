"""Run the product offline: the replay server beside it, commands as a user types them, every clock fixed."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHIPPED = ROOT / "shared/research-kb"
NOW = "2026-07-03T01:00:00Z"
"""The day after the replayed sources end."""
SINCE = "2026-06-01"
MACHINE_WRITTEN = (
    "items", "assessments", "log", "inbox", "review", "dropped", "measurements", "verdicts", "figures", "published",
)  # fmt: skip


def copy_without_machine_parts(target: Path) -> None:
    """Copy the shipped base as it was before its first run: settings, topics, sources, rules and claims."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(SHIPPED, target, ignore=shutil.ignore_patterns(".kb"), symlinks=True)
    for name in MACHINE_WRITTEN:
        shutil.rmtree(target / name, ignore_errors=True)


@contextlib.contextmanager
def replay(state: Path) -> Iterator[dict[str, str]]:
    """Serve the bundled answers on loopback and yield the environment in which `kb` asks only there.

    Args:
        state: Folder for what would else be the user's own settings.
    """
    state.mkdir(parents=True, exist_ok=True)
    server = subprocess.Popen(
        [sys.executable, "-m", "kb.ingest.replay"], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    try:
        address = server.stdout.readline().strip() if server.stdout else ""
        if not address:
            raise SystemExit("the replay server did not start")
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("KB_") or name == "KB_DATA_DIR"
        }
        yield {
            **kept,
            "KB_NOW": NOW,
            "KB_REPLAY": address,
            "KB_ALLOW_PRIVATE": address.removeprefix("http://"),
            "KB_CONFIG_DIR": str(state),
            "KB_CURATOR": "demo",
        }
    finally:
        server.terminate()
        server.wait()


def kb(
    base: Path,
    env: dict[str, str],
    *args: str,
    quiet: bool = False,
    lines: int = 40,
    fine: tuple[int, ...] = (0,),
) -> str:
    """Run one command, print it and the last ``lines`` lines of its answer, and return its stdout.

    Args:
        base: The knowledge base.
        env: As `replay` yields it.
        args: The command, without ``kb``.
        quiet: Print nothing.
        lines: How much of the answer is printed.
        fine: Exit codes that are no failure.

    Raises:
        SystemExit: It failed; its own message was printed.
    """
    if not quiet:
        print(f"\n$ kb {' '.join(args)}", flush=True)
    program = Path(sys.executable).with_name("kb")
    done = subprocess.run(
        [program, "-C", base, *args], env=env, text=True, check=False, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if quiet else None,
    )  # fmt: skip
    if done.returncode not in fine:
        print(done.stdout, done.stderr or "", sep="\n")
        raise SystemExit(f"kb {' '.join(args)} ended with {done.returncode}")
    if not quiet:
        answer = done.stdout.splitlines()
        left_out = [f"… {len(answer) - lines} lines more"] if len(answer) > lines else []
        print("\n".join([*left_out, *answer[-lines:]]), flush=True)
    return done.stdout
