"""Documentation says what the code says: generated pages are current, links lead somewhere, words are ours."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from kb import vocab
from kb.cli.root import verb_names
from kb.model import RECORDS
from kb.tables import TABLES

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def generate(*args):
    return subprocess.run(
        [sys.executable, ROOT / "scripts/docs.py", *args],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )


def test_generated_pages_are_what_the_code_says():
    done = generate("--check")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("verb", verb_names())
def test_every_verb_is_in_the_manual(verb):
    assert f"## `kb {verb}`" in (ROOT / "docs/commands.md").read_text()


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.__name__)
def test_every_field_of_a_record_is_documented(record):
    page = (ROOT / "docs/records.md").read_text()
    assert f"## {record.__name__}\n" in page
    for name, field in record.model_fields.items():
        assert f"`{field.alias or name}`" in page


@pytest.mark.parametrize("table", TABLES)
def test_every_table_is_documented(table):
    assert f"## `{table}`\n" in (ROOT / "docs/records.md").read_text()


@pytest.mark.parametrize("metric", vocab.METRICS)
def test_every_metric_is_in_the_glossary_with_a_known_unit(metric):
    assert f"| `{metric}` |" in (ROOT / "docs/glossary.md").read_text()
    assert vocab.METRICS[metric].unit in vocab.UNITS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_page_lead_to_files_that_exist(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if not re.match(r"[a-z]+:", target):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_blocks_name_verbs_that_exist(page):
    text = page.read_text(encoding="utf-8")
    for block in re.findall(r"```(?:sh|bash|console|text)?\n(.*?)```", text, flags=re.DOTALL):
        for verb in re.findall(r"(?m)^(?:\$ )?kb (?:-C \S+ )?([a-z]+)\b", block):
            assert verb in verb_names(), f"{page.name}: kb {verb}"


def test_a_stale_page_is_noticed(tmp_path):
    """The check can fail: in a copy of the repository's code one generated page is changed by hand."""
    import shutil

    for name in ("kb", "scripts", "docs"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("README.md", "CONTRIBUTING.md"):
        shutil.copy(ROOT / name, tmp_path / name)
    page = tmp_path / "docs/glossary.md"
    page.write_text(page.read_text().replace("`ttft`", "`first_token`"))
    done = subprocess.run(
        [sys.executable, tmp_path / "scripts/docs.py", "--check"], capture_output=True, text=True, check=False,
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 1
    assert "docs/glossary.md" in done.stdout
