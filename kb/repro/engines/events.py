"""What an OpenAI-compatible stream carries: events, their text, and token counts that can be believed or not."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple


class Garbage(Exception):
    """A line that no event stream has."""


def events(lines: Iterator[bytes]) -> Iterator[dict[str, Any] | None]:
    """Read server-sent events that carry JSON objects; None is the end mark.

    Raises:
        Garbage: Another line.
    """
    for raw in lines:
        line = raw.decode("utf-8", "replace")
        if not line.strip() or line.startswith((":", "event:", "id:", "retry:")):
            continue
        if not line.startswith("data:"):
            raise Garbage(f"a line that is no event: {line[:80]!r}")
        data = line[len("data:") :].strip()
        if data == "[DONE]":
            yield None
            return
        try:
            value = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise Garbage(f"an event that is no JSON: {data[:80]!r}") from error
        if not isinstance(value, dict):
            raise Garbage(f"an event that is no object: {data[:80]!r}")
        yield value


def text_of(event: Mapping[str, Any]) -> tuple[str, bool]:
    """Text that an event adds, and whether it ends the answer.

    Raises:
        Garbage: It has choices of another form.
    """
    choices = event.get("choices", [])
    if not isinstance(choices, list):
        raise Garbage("choices that are no list")
    if not choices:
        return "", False
    text = choices[0].get("text", "") if isinstance(choices[0], dict) else None
    if not isinstance(text, str):
        raise Garbage("a choice without text")
    return text, choices[0].get("finish_reason") is not None


class Counts(NamedTuple):
    """Token counts at the end of a stream, as the server gives them."""

    prompt: int
    output: int
    cached: int | None
    """Prompt tokens found in its cache, where it says so."""


class Lie(Exception):
    """A count that cannot be."""


def read_counts(usage: Any, *, prompt: int, asked: int, seen: int) -> Counts:
    """Hold the server's token counts against what was asked and seen.

    Args:
        usage: What stood under that name in the stream.
        prompt: Tokens sent.
        asked: Output tokens asked for; the end of text is ignored, so there must be as many.
        seen: Events with text; an answer whose tokens are no text has its last event at least.

    Raises:
        Lie: One of them cannot be.
    """
    if not isinstance(usage, dict):
        raise Lie("no token counts at the end, though they were asked for")
    said = tuple(_count(usage, name) for name in ("prompt_tokens", "completion_tokens", "total_tokens"))
    details = usage.get("prompt_tokens_details")
    cached = (
        _count(details, "cached_tokens") if isinstance(details, dict) and "cached_tokens" in details else None
    )
    rules = {
        f"{said[0]} prompt tokens where {prompt} were sent": said[0] != prompt,
        f"{said[1]} output tokens where {asked} were asked for": said[1] != asked,
        f"{said[1]} output tokens in {seen} events with text": said[1] < seen,
        f"{said[1]} output tokens and no event that has one": not seen,
        f"{said[2]} tokens in all, not {said[0]} + {said[1]}": said[2] != said[0] + said[1],
        f"{cached} cached of {prompt} prompt tokens": (cached or 0) > prompt,
    }
    for what, is_broken in rules.items():
        if is_broken:
            raise Lie(what)
    return Counts(said[0], said[1], cached)


def _count(values: Mapping[str, Any], name: str) -> int:
    value = values.get(name)
    if type(value) is not int or value < 0:
        raise Lie(f"{name} is {str(value)[:40]}")
    return value
