"""Which sources a run asks: those of the base, those that were named, or one made up on the spot."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from kb.errors import NothingMatches, WrongUse
from kb.ingest.contract import kinds
from kb.model import SourceConfig
from kb.store import Base


def choose_sources(base: Base, names: Sequence[str]) -> list[SourceConfig]:
    """Sources of the base: all that are enabled, or exactly those named.

    Args:
        base: The base.
        names: Names; ``KIND:QUERY`` makes one up, such as ``arxiv:cat:cs.DC`` or ``feed:https://example.org/feed.xml``.

    Raises:
        NothingMatches: A name is none of the base's sources.
        WrongUse: The base has no source and none was named.
    """
    known = base.sources()
    if names:
        return list({source.name: source for source in (_named(known, name) for name in names)}.values())
    chosen = [source for source in known.values() if source.enabled]
    if not chosen:
        raise WrongUse(
            "kb ingest: nothing to ask",
            cause="the base follows no source" if not known else "every source of the base is disabled",
            remedy="add sources/<name>.toml, or give --url, --arxiv-id or --file",
            next_command="kb sources list",
        )
    return chosen


def _named(known: dict[str, SourceConfig], name: str) -> SourceConfig:
    if name in known:
        return known[name]
    kind, colon, query = name.partition(":")
    module = kind.replace("-", "_")
    if colon and query and (kind in kinds() or module in kinds()):
        return made_up(kind if kind in kinds() else module, query)
    near = difflib.get_close_matches(name, known, n=1)
    raise NothingMatches(
        f"--source {name}: no such source",
        cause=f"did you mean {near[0]}?" if near else f"the base follows {', '.join(known) or 'none'}",
        remedy="name one of them, or KIND:QUERY",
        next_command="kb sources list",
    )


def made_up(kind: str, query: str) -> SourceConfig:
    """A source for one run: an address is its ``url``, anything else its ``query``."""
    slug = re.sub(r"[^a-z0-9]+", "-", f"{kind} {query}".lower()).strip("-")[:60].strip("-")
    is_address = query.startswith(("http://", "https://"))
    return SourceConfig(
        name=slug or kind,
        kind=kind,
        url=query if is_address else "",
        query="" if is_address else query,
        why="named on the command line",
    )
