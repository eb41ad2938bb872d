"""Draw what a command prints on a terminal as an SVG for the documentation.

    python scripts/picture.py docs/img/status.svg kb -C build/demo/research-kb status

The same output gives the same bytes; no font or file is fetched by whoever looks at it.
"""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

FORMAT = """\
<svg xmlns="http://www.w3.org/2000/svg" class="{unique_id}" viewBox="0 0 {width} {height}" role="img" aria-label="terminal">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "Noto Sans Mono CJK SC", monospace; font-size: {char_height}px; line-height: {line_height}px; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}<g class="{unique_id}-matrix">{matrix}</g></g>
</svg>
"""


def draw(command: list[str], width: int = 100) -> str:
    """Run a command and return its output, its prompt above it, as SVG.

    Raises:
        CalledProcessError: The command failed.
    """
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    console = Console(
        record=True, width=width, file=io.StringIO(), force_terminal=True, color_system="truecolor"
    )
    shown = " ".join(part for part in command if part != "-C" and "/" not in part)
    console.print(Text.assemble(("$ ", "bold green"), (shown, "bold")))
    for line in done.stdout.splitlines():
        name, _, rest = line.partition(" ")
        console.print(Text.assemble((name, "cyan"), f" {rest}"), no_wrap=True, overflow="ellipsis")
    return console.export_svg(title="kb", code_format=FORMAT, unique_id="kb")


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(draw(sys.argv[2:]), encoding="utf-8")
