"""Names that two systems cannot keep apart: case twins, composed and decomposed twins, forbidden characters."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from kb.sync.doctor.contract import Finding, Patient, State
from kb.sync.paths import FOLDERS, is_ignored, nfc, why_not_portable

TITLE = "every name is unique and portable"


def check(patient: Patient) -> Iterator[Finding]:
    """See the module."""
    seen: dict[str, list[str]] = {}
    for folder in FOLDERS:
        for place in sorted((patient.base.root / folder).rglob("*")):
            path = place.relative_to(patient.base.root).as_posix()
            if place.is_file() and not is_ignored(path):
                seen.setdefault(nfc(path).casefold(), []).append(path)
                if why := why_not_portable(nfc(path)):
                    yield Finding(State.WARN, f"{path}: {why}", f"git mv -- {shlex.quote(path)} NEW-NAME")
    for paths in seen.values():
        if len(paths) > 1:
            kind = "composition (NFC, NFD)" if len({nfc(p) for p in paths}) == 1 else "upper and lower case"
            yield Finding(
                State.FAIL, f"{' and '.join(map(ascii, paths))} differ in {kind} only: one of them vanishes elsewhere",
                f"git mv -- {shlex.quote(paths[-1])} NEW-NAME",
            )  # fmt: skip
