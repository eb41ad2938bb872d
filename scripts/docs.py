"""Documentation that is written from the code, and the check that it is up to date.

    python scripts/docs.py            write docs/*.md and the generated parts of README.md
    python scripts/docs.py --check    change nothing; end with 1 where something would change

A generated part of a page stands between ``<!-- docs:NAME -->`` and ``<!-- docs:end -->``.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from kb import vocab
from kb.cli.root import cli
from kb.cli.verbs.explain import CODES
from kb.model import RECORDS, Level, Outcome
from kb.store import Base
from kb.tables import TABLES, read_table

ROOT = Path(__file__).resolve().parent.parent
HEAD = "<!-- Written by scripts/docs.py from the code; change the code, then run `make docs`. -->\n"
PLACES = {
    "Item": "items/YYYY-MM.jsonl", "Assessment": "assessments/YYYY-MM.jsonl", "LogEntry": "log/YYYY-MM.jsonl",
    "Draft": "front matter of inbox/, review/, dropped/ and published/drafts/", "Claim": "claims/<system>.toml",
    "Environment": "measurements/env/<digest>.json", "Measurement": "measurements/<repro>/<env>.jsonl",
    "Verdict": "verdicts/<system>.json", "Figure": "figures/<repro>/<name>.json", "Topic": "topics/<path>.toml", "Guide": "guides/<path>.toml",
    "TopicPage": "published/<topic>/index.md, in memory only", "SourceConfig": "sources/<name>.toml",
    "WordRule": "rules/<name>.toml", "CodeRule": "rules/<name>.toml",
}  # fmt: skip
"""Record → where it is kept."""


def records() -> str:
    """Every record: where it lives, its fields, its JSON Schema."""
    out = [
        HEAD,
        "# Records\n\nWhat a knowledge base holds. Unknown keys are refused; absent is null, never zero.\n",
    ]
    for record in RECORDS:
        out.append(f"## {record.__name__}\n\n`{PLACES[record.__name__]}`\n\n{first_line(record.__doc__)}\n")
        out.append(field_table(record.model_json_schema()))
        schema = json.dumps(record.model_json_schema(), ensure_ascii=False, indent=2)
        out.append(f"<details><summary>JSON Schema</summary>\n\n```json\n{schema}\n```\n\n</details>\n")
    out.append("# Parts of records\n")
    for name, part in sorted(parts_of_records().items()):
        out.append(f"## {name}\n\n{first_line(part.get('description'))}\n\n{field_table(part)}")
    out.append(
        "# Tables\n\nWhat `kb list` and `kb query` show: the records above, flattened where people ask for columns.\n"
    )
    for name, table in TABLES.items():
        out.append(
            f"## `{name}`\n\n{first_line(table.row.__doc__)}\n\n{field_table(table.row.model_json_schema())}"
        )
    return "\n".join(out)


def parts_of_records() -> dict[str, dict[str, Any]]:
    """Schemas of the records that stand inside others."""
    found: dict[str, dict[str, Any]] = {}
    for record in RECORDS:
        found.update(record.model_json_schema().get("$defs", {}))
    whole = {record.__name__ for record in RECORDS}
    return {name: part for name, part in found.items() if "properties" in part and name not in whole}


def field_table(schema: dict[str, Any]) -> str:
    """Fields of a record, given its JSON Schema, as a Markdown table."""
    rows = ["| field | type | default | |", "|---|---|---|---|"]
    for name, value in schema["properties"].items():
        default = (
            "required"
            if name in schema.get("required", ())
            else f"`{json.dumps(value.get('default'), ensure_ascii=False)}`"
        )
        rows.append(f"| `{name}` | {type_name(value)} | {default} | {cell(value.get('description', ''))} |")
    return "\n".join(rows) + "\n"


def type_name(schema: dict[str, Any]) -> str:
    """Name of a field's type, readable in a table."""
    if "anyOf" in schema:
        return " or ".join(type_name(part) for part in schema["anyOf"])
    if "$ref" in schema:
        return schema["$ref"].rpartition("/")[2]
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    if schema.get("type") == "array":
        return f"list of {type_name(schema.get('items', {}))}"
    return str(schema.get("type", "any"))


def glossary() -> str:
    """The words of the base, from `kb.vocab`."""
    out = [HEAD, "# Glossary\n\nOne word per thing. The right-hand column is not used.\n", "## Metrics\n"]
    out += ["| name | unit | | | not called |", "|---|---|---|---|---|"]
    for name, metric in vocab.METRICS.items():
        others = ", ".join(metric.not_called)
        out.append(f"| `{name}` | {metric.unit} | {metric.en} | {metric.zh} | {others} |")
    out += ["\n## Units\n", "| unit | | | compared |", "|---|---|---|---|"]
    for name, unit in vocab.UNITS.items():
        out.append(
            f"| `{name}` | {unit.en} | {unit.zh} | {'on a log scale' if unit.scale == 'ratio' else 'linearly'} |"
        )
    out += ["\n## Words\n", "| write | not |", "|---|---|"]
    out += [f"| {good} | {bad} |" for bad, good in vocab.BANNED.items()]
    out += ["\n## How a quotation relates to its source\n", "| | |", "|---|---|"]
    out += [f"| `{name}` | {text} |" for name, text in vocab.RELAY_MATCHES.items()]
    out += ["\n## Stages of a draft\n", " → ".join(f"`{s}`" for s in vocab.STAGES[:3]) + "; or `dropped`\n"]
    out += ["## What a source ended with\n", ", ".join(f"`{s}`" for s in vocab.SOURCE_STATUS) + "\n"]
    return "\n".join(out)


def commands() -> str:
    """Help of every command, as the program prints it, and the exit codes."""
    out = [HEAD, "# Commands\n"]
    for path, command in every_command(cli):
        name = " ".join(("kb", *path))
        out.append(
            f"{'#' * (len(path) + 1 if path else 2)} `{name}`\n\n```text\n{help_of(command, name)}\n```\n"
        )
    out.append("## Exit codes\n\n| | meaning | next |\n|---|---|---|")
    out += [f"| {code} | {meaning} | {following} |" for code, (meaning, following) in CODES.items()]
    return "\n".join(out) + "\n"


def help_of(command: click.Command, name: str) -> str:
    """Help text at a fixed width."""
    context = click.Context(
        command, info_name=name, terminal_width=100, max_content_width=100, help_option_names=["-h", "--help"]
    )
    return command.get_help(context)


def every_command(
    command: click.Command, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """A command and all below it, in name order."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            if found is not None:
                yield from every_command(found, (*path, name))


UNITS = {
    "Kinds of source": "kb/ingest/sources", "Triage rules in code": "kb/triage/rules", "Reproductions": "kb/repro",
    "Kernels": "kb/repro/kernels",
}  # fmt: skip
"""Heading → folder whose files are units."""


def units() -> str:
    """What each folder of units holds: one file, one unit, its first sentence."""
    out = [
        HEAD,
        "# Units\n\nEach is one file, found by looking; adding one edits no list (CONTRIBUTING.md).\n",
    ]
    for heading, folder in UNITS.items():
        rows = unit_rows(folder)
        out.append(f"## {heading} ({len(rows)})\n\n`{folder}/`\n\n| | |\n|---|---|")
        out += [*(f"| `{name}` | {cell(line)} |" for name, line in rows), ""]
    return "\n".join(out)


def unit_rows(folder: str) -> list[tuple[str, str]]:
    """Name and first sentence of every unit of a folder; the files are read, not imported."""
    rows = []
    for path in sorted((ROOT / folder).glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assigned = {t.id for n in tree.body if isinstance(n, ast.Assign | ast.AnnAssign) for t in targets(n)}
        is_unit = "CLAIMS" in assigned if folder == "kb/repro" else not path.stem.startswith("_")
        if is_unit:
            rows.append(
                (
                    path.stem.replace("_", "-") if folder == "kb/repro" else path.stem,
                    first_line(ast.get_docstring(tree)),
                )
            )
    return rows


def targets(node: ast.Assign | ast.AnnAssign) -> list[ast.Name]:
    """Plain names a statement assigns."""
    found = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [target for target in found if isinstance(target, ast.Name)]


def first_line(text: str | None) -> str:
    """First paragraph of a docstring on one line."""
    return " ".join((text or "").strip().split("\n\n")[0].split())


def cell(text: str) -> str:
    """Text for a table: one line, no column mark."""
    return " ".join(text.split()).replace("|", "\\|").replace("``", "`")


def unit_counts() -> str:
    """One line of counts for README."""
    counts = [f"{len(unit_rows(folder))} {heading.lower()}" for heading, folder in UNITS.items()]
    return f"Units so far: {', '.join(counts)} ([list](docs/units.md)).\n"


def verdict_counts() -> str:
    """Verdicts of the shipped base by evidence level, for README."""
    rows = read_table(Base(ROOT / "shared/research-kb"), "verdicts")
    levels = [level.value for level in Level if any(row["level"] == level for row in rows)]
    out = [f"| {' | '.join([f'{len(rows)} claims', *levels, 'all'])} |", "|---|" + "--:|" * (len(levels) + 1)]
    for outcome in Outcome:
        of = [row for row in rows if row["verdict"] == outcome]
        counts = [str(sum(row["level"] == level for row in of) or "") for level in levels]
        if of:
            out.append(f"| {' | '.join([outcome.value, *counts, str(len(of))])} |")
    return "\n" + "\n".join(out) + "\n\n"


PAGES: dict[str, Callable[[], str]] = {
    "docs/records.md": records,
    "docs/glossary.md": glossary,
    "docs/commands.md": commands,
    "docs/units.md": units,
}
PARTS: dict[str, Callable[[], str]] = {"verdicts": verdict_counts, "units": unit_counts}
"""Name of a generated part → what writes it."""


def with_parts(text: str) -> str:
    """Rewrite every generated part of a page.

    Raises:
        KeyError: A part has a name nothing writes.
    """
    mark = re.compile(r"(<!-- docs:([a-z-]+) -->\n)(?:.*?)(<!-- docs:end -->)", re.DOTALL)
    return mark.sub(lambda found: found[1] + PARTS[found[2]]() + found[3], text)


def starter_rules() -> dict[str, str]:
    """The rules a new base starts with: those of the shipped base, which an installed package does not carry."""
    shipped = sorted((ROOT / "shared/research-kb/rules").glob("*.toml"))
    return {f"kb/starter/rules/{path.name}": path.read_text(encoding="utf-8") for path in shipped}


def main() -> int:
    """Write or check."""
    wanted = {name: write() for name, write in PAGES.items()}
    for name in ("README.md", "CONTRIBUTING.md"):
        wanted[name] = with_parts((ROOT / name).read_text(encoding="utf-8"))
    wanted |= starter_rules()
    stale = [name for name, text in wanted.items() if not same(ROOT / name, text)]
    if "--check" in sys.argv[1:]:
        for name in stale:
            print(f"{name}: not what the code says; run make docs")
        print(f"docs: {len(wanted) - len(stale)} of {len(wanted)} generated files are current")
        return 1 if stale else 0
    for name in stale:
        (ROOT / name).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / name).write_text(wanted[name], encoding="utf-8")
        print(f"wrote {name}")
    return 0


def same(path: Path, text: str) -> bool:
    """True where the file holds exactly this text."""
    return path.is_file() and path.read_text(encoding="utf-8") == text


if __name__ == "__main__":
    sys.exit(main())
