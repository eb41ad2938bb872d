"""One document for one kind of source, without a server: what does the kind make of it?"""

import datetime as dt
import zoneinfo

from kb.http import Answer
from kb.ingest.contract import Report, Skip, Task, Window, kinds
from kb.model import SourceConfig

NOW = dt.datetime(2026, 7, 2, 3, 5, tzinfo=dt.UTC)
WINDOW = Window(None, None, zoneinfo.ZoneInfo("UTC"), NOW)


class Once:
    """A client that gives one document to every request."""

    def __init__(self, body, **headers):
        self.body, self.headers, self.asked = body, headers, []

    def get(self, url, **_):
        self.asked.append(url)
        return Answer(url, 200, self.headers, self.body.encode() if isinstance(self.body, str) else self.body)


class Nothing:
    def has(self, *_):
        return False


def entries(kind, body, **config):
    """What a kind of source makes of a document; (entries, skips, report)."""
    values = {"name": "one", "url": "https://example.org/feed.xml", "why": "a test", **config}
    task = Task(SourceConfig(kind=kind, **values), WINDOW, Once(body), Nothing(), Report("one"))
    made = [kinds()[kind].to_entry(raw, task) for raw in kinds()[kind].fetch(task)]
    return [e for e in made if not isinstance(e, Skip)], [e for e in made if isinstance(e, Skip)], task.report


def rss(*items, head=""):
    return f'<?xml version="1.0"?><rss version="2.0" {head}><channel><title>B</title>{"".join(items)}</channel></rss>'


def item(title="P", link="https://example.org/p", **tags):
    inner = "".join(f"<{name}>{value}</{name}>" for name, value in tags.items())
    return f"<item><title>{title}</title>" + (f"<link>{link}</link>" if link else "") + f"{inner}</item>"
