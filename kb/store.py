"""Where everything of a knowledge base lives, and how it is read and written. Only this module knows paths.

Files in git are the truth. Each write is atomic and taken under the short write lock by the caller's verb
(`Base.writing`), so a crash at any byte leaves a base that opens. Formats are in ``docs/records.md``.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from kb.config import BaseSettings, build, load_base, read_record, read_toml
from kb.errors import BadConfig, BadInput, WrongUse
from kb.files import BadLine, append_lines, digest, read_bytes, read_lines, sync_folder, write_atomic
from kb.lock import SHORT_WAIT_S, hold
from kb.model import (
    Assessment,
    Claim,
    CodeRule,
    Environment,
    Figure,
    Guide,
    Item,
    LogEntry,
    Measurement,
    Record,
    SourceConfig,
    Topic,
    Verdict,
    WordRule,
)

R = TypeVar("R", bound=Record)
MAX_PAGE_BYTES = 8 << 20
"""Largest Markdown file that is read."""
STAGE_FOLDERS = {"inbox": "inbox", "review": "review", "published": "published/drafts", "dropped": "dropped"}
"""Stage of a draft → folder."""
MONTH = re.compile(r"^\d{4}-\d{2}\.jsonl$")


def find_root(start: Path, explicit: str | None = None) -> Path:
    """Find the knowledge base: ``-C``, ``KB_ROOT``, ``kb.toml`` upwards, then ``./shared/research-kb``.

    Args:
        start: Folder to look from.
        explicit: What ``-C`` gave.

    Raises:
        WrongUse: None of them is a knowledge base.
    """
    given = explicit or os.environ.get("KB_ROOT")
    if given:
        root = Path(given).expanduser()
        if (root / "kb.toml").is_file():
            return root.resolve()
        raise WrongUse(
            f"{given}: not a knowledge base",
            cause="it has no kb.toml",
            remedy="give the folder that holds kb.toml, or make one",
            next_command=f"kb init {given}",
        )
    for folder in (start, *start.parents):
        if (folder / "kb.toml").is_file():
            return folder.resolve()
    if (start / "shared/research-kb/kb.toml").is_file():
        return (start / "shared/research-kb").resolve()
    raise WrongUse(
        "no knowledge base here",
        cause=f"no kb.toml in {start} or above, and no shared/research-kb beside you",
        remedy="go to one, name it with -C DIR or KB_ROOT, or make one",
        next_command="kb init DIR",
    )


@dataclass
class Base:
    """One knowledge base on disk.

    Readers skip what they cannot read and add it to ``problems``; `kb check` reports those.
    """

    root: Path
    problems: list[BadLine] = field(default_factory=list)

    # Places

    @property
    def cache(self) -> Path:
        """``.kb``: safe to delete."""
        return self.root / ".kb"

    @property
    def scratch(self) -> Path:
        """Temporary files of atomic writes."""
        return self.cache / "tmp"

    @property
    def bodies(self) -> Path:
        """Fetched bytes by digest, untracked."""
        return self.cache / "bodies"

    @cached_property
    def settings(self) -> BaseSettings:
        """``kb.toml``."""
        return load_base(self.root / "kb.toml")

    def relative(self, path: Path) -> str:
        """Path below the root with forward slashes, for messages and records."""
        return path.relative_to(self.root).as_posix()

    def page_path(self, topic: str) -> Path:
        """Topic page: ``published/<topic>/index.md``."""
        return self.root / "published" / topic / "index.md"

    def block_path(self, block: str) -> Path:
        """Last machine output of a block."""
        return self.root / "published/.blocks" / f"{block}.md"

    def proposal_path(self, block: str) -> Path:
        """New text of a held block."""
        return self.root / "published/.blocks" / f"{block}.proposal.md"

    def draft_path(self, draft: str, stage: str = "inbox") -> Path:
        """File of a draft ``curator/date-slug`` in a stage; accepted drafts lie flat under ``published/drafts``."""
        curator, _, name = draft.partition("/")
        folder = self.root / STAGE_FOLDERS[stage]
        return folder / f"{name}.md" if stage == "published" else folder / curator / f"{name}.md"

    def figure_path(self, repro: str, name: str, suffix: str) -> Path:
        """``figures/<repro>/<name>.json`` or ``.svg``."""
        return self.root / "figures" / repro / f"{name}.{suffix}"

    # Writing

    @contextlib.contextmanager
    def writing(self, what: str, wait_s: float = SHORT_WAIT_S) -> Iterator[None]:
        """Hold the short write lock; ``what`` is the command, for whoever has to wait.

        Raises:
            Busy: Another writer holds it longer than ``wait_s``.
        """
        with hold(self.root, "write", what, wait_s=wait_s):
            yield

    def write(self, path: Path, data: str | bytes) -> bool:
        """Write one file atomically; True if its bytes changed.

        Raises:
            BadInput: The path leads out of the base.
        """
        self._inside(path)
        raw = data.encode() if isinstance(data, str) else data
        return write_atomic(path, raw, scratch=self.scratch)

    def rename(self, old: Path, new: Path) -> None:
        """Move one file within the base, durably; its folder is made.

        Raises:
            BadInput: Either path leads out of the base.
        """
        self._inside(old)
        self._inside(new)
        new.parent.mkdir(parents=True, exist_ok=True)
        old.rename(new)
        sync_folder(new.parent)
        sync_folder(old.parent)

    def _inside(self, path: Path) -> None:
        if not path.resolve().is_relative_to(self.root.resolve()):
            raise BadInput(
                f"{path}: not written",
                cause="the path leads out of the knowledge base",
                remedy="remove the symbolic link or the .. in the name",
            )

    def append(self, path: Path, records: Iterable[Record]) -> int:
        """Append records to a JSON Lines file; the number of lines written."""
        self._inside(path)
        return append_lines(path, (record.to_json() for record in records), scratch=self.scratch)

    # Reading JSON Lines

    def _records(self, kind: type[R], paths: Iterable[Path]) -> Iterator[R]:
        for path in paths:
            for number, value in read_lines(path, self.problems):
                try:
                    yield kind.model_validate(value)
                except ValidationError as error:
                    first = error.errors()[0]
                    where = ".".join(str(part) for part in first["loc"])
                    self.problems.append(BadLine(path, number, f"{where}: {first['msg']}"))

    def _months(self, folder: str) -> list[Path]:
        place = self.root / folder
        return sorted(p for p in place.iterdir() if MONTH.match(p.name)) if place.is_dir() else []

    def items(self) -> Iterator[Item]:
        """Every line of ``items/``, oldest file first; see `latest_items` for what counts."""
        return self._records(Item, self._months("items"))

    def latest_items(self) -> dict[str, dict[str, Item]]:
        """Item id → version → the last line of that version."""
        found: dict[str, dict[str, Item]] = {}
        for item in self.items():
            found.setdefault(item.id, {})[item.version] = item
        return found

    def assessments(self) -> Iterator[Assessment]:
        """Every decision, oldest file first; the last per (item, by, draft) counts."""
        return self._records(Assessment, self._months("assessments"))

    def log(self) -> list[LogEntry]:
        """Every act, ordered by (seq, id); a line that union-merge doubled counts once."""
        entries = {entry.id: entry for entry in self._records(LogEntry, self._months("log"))}
        return sorted(entries.values(), key=lambda entry: (entry.seq, entry.id))

    def append_items(self, items: Iterable[Item]) -> int:
        """Append items to the file of the month they were first seen in."""
        return self._append_monthly("items", ((item.first_seen.at[:7], item) for item in items))

    def append_assessments(self, assessments: Iterable[Assessment]) -> int:
        """Append decisions to the file of their month."""
        return self._append_monthly("assessments", ((a.at[:7], a) for a in assessments))

    def _append_monthly(self, folder: str, dated: Iterable[tuple[str, Record]]) -> int:
        months: dict[str, list[Record]] = {}
        for month, record in dated:
            if not MONTH.match(f"{month}.jsonl"):
                raise BadInput(f"{folder}: not written", cause=f"{month!r} is no month", remedy="report this")
            months.setdefault(month, []).append(record)
        return sum(
            self.append(self.root / folder / f"{m}.jsonl", group) for m, group in sorted(months.items())
        )

    def append_log(self, act: str, target: str, *, who: str, at: str, **rest: str) -> LogEntry:
        """Append one act with the next sequence number; ``rest`` may give ``from_``, ``to`` and ``reason``."""
        seq = max((entry.seq for entry in self.log()), default=0) + 1
        values = {"seq": seq, "at": at, "who": who, "act": act, "target": target, **rest}
        entry = LogEntry.model_validate({"id": digest(values)[:16], **values})
        self._append_monthly("log", [(at[:7], entry)])
        return entry

    # Units: one file each

    def _units(self, folder: str, pattern: str = "*.toml") -> list[Path]:
        return sorted((self.root / folder).glob(pattern))

    def topics(self) -> dict[str, Topic]:
        """Topics by path, in (order, path) order."""
        found = []
        for path in self._units("topics", "**/*.toml"):
            name = path.relative_to(self.root / "topics").with_suffix("").as_posix()
            found.append(read_record(Topic, path, {"path": name}))
        return {topic.path: topic for topic in sorted(found, key=lambda t: (t.order, t.path))}

    def guides(self) -> dict[str, Guide]:
        """Guides by path, in (order, path) order."""
        found = [read_record(Guide, path, {"path": path.stem}) for path in self._units("guides")]
        return {guide.path: guide for guide in sorted(found, key=lambda g: (g.order, g.path))}

    def sources(self) -> dict[str, SourceConfig]:
        """Sources by name."""
        return {p.stem: read_record(SourceConfig, p, {"name": p.stem}) for p in self._units("sources")}

    def rules(self) -> list[WordRule | CodeRule]:
        """Triage rules by file name."""
        found: list[WordRule | CodeRule] = []
        for path in self._units("rules"):
            values = {**read_toml(path), "name": path.stem}
            if values.get("kind") == "code":
                found.append(build(CodeRule, values, path))
            else:
                found.append(build(WordRule, values, path))
        return found

    def claims(self, systems: Iterable[str] | None = None) -> dict[str, Claim]:
        """Claims by id, in file order.

        Raises:
            BadConfig: A file cannot be read, or an id occurs twice or in another system's file.
        """
        found: dict[str, Claim] = {}
        names = sorted(systems) if systems is not None else [p.stem for p in self._units("claims")]
        for name in names:
            path = self.root / "claims" / f"{name}.toml"
            for values in read_toml(path).get("claim", []):
                claim = build(Claim, values, path)
                if claim.id in found or not claim.id.startswith(f"{name}/"):
                    raise BadConfig(
                        f"{path}: {claim.id} not used",
                        cause="the id occurs twice, or belongs into another system's file",
                        remedy=f"ids in this file begin with {name}/ and are unique",
                    )
                found[claim.id] = claim
        return found

    def verdicts(self) -> dict[str, Verdict]:
        """Verdicts by claim id."""
        found: dict[str, Verdict] = {}
        for path in self._units("verdicts", "*.json"):
            for values in self._json(path).get("verdicts", []):
                verdict = build(Verdict, values, path)
                found[verdict.claim] = verdict
        return found

    def write_verdicts(self, system: str, verdicts: Iterable[Verdict]) -> bool:
        """Write ``verdicts/<system>.json``, sorted by claim."""
        ordered = sorted(verdicts, key=lambda verdict: verdict.claim)
        value = {"system": system, "verdicts": [verdict.to_json() for verdict in ordered]}
        return self.write(self.root / "verdicts" / f"{system}.json", to_json_text(value))

    def measurements(self, repro: str) -> Iterator[Measurement]:
        """Everything measured for one reproduction, machine by machine."""
        return self._records(Measurement, self._units(f"measurements/{repro}", "*.jsonl"))

    def append_measurements(self, repro: str, environment: Environment, taken: Iterable[Measurement]) -> int:
        """Append measurements to the file of their machine class and keep its `Environment`."""
        name = environment_name(environment)
        self.write(self.root / "measurements/env" / f"{name}.json", to_json_text(environment.to_json()))
        return self.append(self.root / "measurements" / repro / f"{name}.jsonl", taken)

    def declare_rules(self, name: str, rules: dict[str, Any]) -> bool:
        """Keep the rules a run was declared with, claim by claim, in ``measurements/rules/<digest>.json``."""
        return self.write(self.root / "measurements/rules" / f"{name}.json", to_json_text(rules))

    def declared_rules(self) -> dict[str, dict[str, Any]]:
        """Digest of a set of rules → claim id → its rule as it was declared."""
        return {path.stem: self._json(path) for path in self._units("measurements/rules", "*.json")}

    def environments(self) -> dict[str, Environment]:
        """Environments by digest."""
        paths = self._units("measurements/env", "*.json")
        return {path.stem: build(Environment, self._json(path), path) for path in paths}

    def figures(self) -> list[Figure]:
        """Every figure record."""
        return [build(Figure, self._json(path), path) for path in self._units("figures", "*/*.json")]

    def write_figure(self, figure: Figure) -> bool:
        """Write ``figures/<repro>/<name>.json``."""
        return self.write(self.figure_path(figure.repro, figure.name, "json"), to_json_text(figure.to_json()))

    def _json(self, path: Path) -> dict[str, Any]:
        try:
            value = json.loads(read_bytes(path, limit=64 << 20))
        except (ValueError, RecursionError) as error:
            raise BadConfig(f"{path}: not read", cause=str(error), remedy="restore it from git") from error
        if not isinstance(value, dict):
            raise BadConfig(
                f"{path}: not read", cause="it holds no JSON object", remedy="restore it from git"
            )
        return value


def to_json_text(value: Any) -> str:
    """JSON for files in git: sorted by the caller, two spaces, UTF-8, final newline."""
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


def environment_name(environment: Environment) -> str:
    """Name of a machine class: the first 12 characters of its digest."""
    return digest(environment.to_json())[:12]
