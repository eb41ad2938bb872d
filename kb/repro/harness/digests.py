"""Digests of everything a verdict rests on, kept apart so that the cause of staleness can be named.

source   the item the claim was read in: version and content hash
claim    statement, number, unit, bound, baseline, conditions
rule     the acceptance rule with its bands worked out
code     the reproduction and the modules of this package it imports, directly or not
inputs   claims' numbers and data files the cases are made from
environment   the class of machine
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import kb
from kb.files import digest, sha256
from kb.model import Claim, Item
from kb.repro.harness.rules import effective_rule

PACKAGE = Path(kb.__file__).parent
HARNESS = PACKAGE / "repro/harness"
SHORT = 16
OUTSIDE = (
    "kb.cli", "kb.store", "kb.config", "kb.lock", "kb.files", "kb.clock", "kb.errors", "kb.model", "kb.vocab",
    "kb.repro.harness",
)  # fmt: skip
"""Modules that cannot change a sample: records, files, messages, judging. Kept out so that a reworded help text does
not make every verdict stale."""
MEASURING = ("kb.repro.harness.bench", "kb.repro.harness.timing")
"""Modules of the harness that do touch samples."""


def claim_digest(claim: Claim) -> str:
    """What the claim says."""
    return digest(claim.model_dump(mode="json", exclude={"rule", "relayed", "topics", "planned", "doubt"}))[
        :SHORT
    ]


def rule_digest(claims: Iterable[Claim]) -> str:
    """The rules of some claims, with their bands worked out."""
    return digest({claim.id: effective_rule(claim) for claim in claims})[:SHORT]


def source_digest(claim: Claim, items: Mapping[str, Mapping[str, Item]]) -> str:
    """The item a claim was read in; empty where the base does not hold it."""
    versions = items.get(claim.item, {})
    known = {name: item.content_sha256 for name, item in versions.items()}
    return digest({"item": claim.item, "version": claim.version, "known": known})[:SHORT] if known else ""


def inputs_digest(claims: Iterable[Claim], data: Iterable[Path] = ()) -> str:
    """Numbers that the cases may be made from: what claims state and the data files of the reproduction.

    A file that is not there counts as absent: its cases are blocked.
    """
    numbers = {claim.id: [claim.low, claim.high, claim.unit, claim.conditions] for claim in claims}
    files = {path.name: file_digest(path) for path in sorted(data)}
    return digest({"numbers": numbers, "data": files})[:SHORT]


def file_digest(path: Path) -> str:
    """SHA-256 of a file, read piece by piece; empty where there is none."""
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def code_digest(module: Path) -> str:
    """The text of a module and of every module of this package that it imports, directly or not."""
    found = {
        path.relative_to(PACKAGE).as_posix() if path.is_relative_to(PACKAGE) else path.name: _sum(path)
        for path in traced(module)
    }
    return digest(found)[:SHORT]


def traced(module: Path) -> list[Path]:
    """Files of this package that a module imports, itself first; imports inside functions count too."""
    seen: dict[Path, None] = {}
    waiting = [module]
    while waiting:
        path = waiting.pop(0)
        if path in seen:
            continue
        seen[path] = None
        if (
            path.parent != HARNESS
        ):  # a count does not depend on how times are taken, unless it takes some itself
            waiting.extend(_imported(path))
    return list(seen)


@cache
def _imported(path: Path) -> tuple[Path, ...]:
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    ours = [
        name
        for name in names
        if name.startswith("kb.") and (not name.startswith(OUTSIDE) or name.startswith(MEASURING))
    ]
    return tuple(dict.fromkeys(found for name in ours if (found := _file_of(name))))


def _file_of(name: str) -> Path | None:
    """File of a module; a package's ``__init__`` holds no code here and is left out."""
    path = PACKAGE.joinpath(*name.split(".")[1:]).with_suffix(".py")
    return path if path.is_file() else None


@cache
def _sum(path: Path) -> str:
    return sha256(path.read_bytes())
