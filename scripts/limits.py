"""Size limits of the code: a file fits on ten screens, a function on one. Part of ``make check``.

    python scripts/limits.py [FOLDER]…

Prints ``file:line: what`` for each place and ends with 1 where there is any.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("kb", "tests", "scripts", "benchmarks")
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60
VAGUE = frozenset({"utils", "util", "helpers", "helper", "manager", "common", "misc"})
"""Module names that say nothing about what is inside."""


def find_oversize(path: Path, *, is_kernel: bool = False) -> Iterator[tuple[int, str]]:
    """Yield (line, complaint) for one Python file; kernels are exempt from the limit on functions."""
    text = path.read_text(encoding="utf-8")
    lines = text.count("\n")
    if lines > MAX_FILE_LINES:
        yield 1, f"{lines} lines, the limit is {MAX_FILE_LINES}"
    if path.stem in VAGUE:
        yield 1, f"a module called {path.stem} says nothing about what is inside"
    if is_kernel:
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            size = (node.end_lineno or node.lineno) - node.lineno + 1
            if size > MAX_FUNCTION_LINES:
                yield node.lineno, f"{node.name} has {size} lines, the limit is {MAX_FUNCTION_LINES}"


def find_all(folders: list[Path]) -> Iterator[str]:
    """Yield ``file:line: complaint`` for every Python file under the folders."""
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            for line, complaint in find_oversize(path, is_kernel="kernels" in path.parts):
                yield f"{path}:{line}: {complaint}"


def main() -> int:
    """Check the folders given, or the whole repository."""
    given = [Path(name) for name in sys.argv[1:]] or [ROOT / name for name in FOLDERS]
    found = list(find_all(given))
    print("\n".join(found) or "limits: every file and function is within them")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
