"""HTML that a person wrote into a page, reduced to what text needs: no script, no frame, no handler, no foreign form."""

from __future__ import annotations

from html import escape
from html.parser import HTMLParser

from kb.publish.escape import address

ALLOWED = frozenset(
    "a abbr b blockquote br caption cite code col colgroup dd del details dfn div dl dt em figcaption figure h1 h2 h3 h4 h5"
    " h6 hr i img input ins kbd label li mark ol p pre q rp rt ruby s samp small span strong sub summary sup table tbody td"
    " tfoot th thead time tr u ul var wbr".split()
)
"""Elements that stay."""
VOID = frozenset({"br", "col", "hr", "img", "input", "wbr"})
DROPPED = frozenset(
    {"script", "style", "iframe", "object", "template", "noscript", "svg", "math", "textarea", "title"}
)
"""Elements that go with everything in them."""
ATTRIBUTES = frozenset(
    "align alt aria-label checked class colspan data-label disabled height href id lang role rowspan scope src start"
    " tabindex title type width".split()
)


class _Cleaner(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.out: list[str] = []
        self.depth = 0
        """How many dropped elements are open."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in DROPPED:
            self.depth += 1
        elif (
            self.depth == 0 and tag in ALLOWED and not (tag == "input" and ("type", "checkbox") not in attrs)
        ):
            kept = "".join(f' {key}="{escape(value)}"' for key, value in _kept(attrs))
            self.out.append(f"<{tag}{kept}>")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in DROPPED:
            self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if tag in DROPPED:
            self.depth = max(0, self.depth - 1)
        elif self.depth == 0 and tag in ALLOWED and tag not in VOID:
            self.out.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        if self.depth == 0:
            self.out.append(escape(data, quote=False))

    def handle_entityref(self, name: str) -> None:
        if self.depth == 0:
            self.out.append(f"&{name};")

    def handle_charref(self, name: str) -> None:
        if self.depth == 0:
            self.out.append(f"&#{name};")


def _kept(attrs: list[tuple[str, str | None]]) -> list[tuple[str, str]]:
    found = []
    for key, given in attrs:
        value = given or ""
        if key not in ATTRIBUTES:
            continue
        if key in {"href", "src"}:
            is_local = value.startswith(("#", "./", "../")) or (
                value and value[0].isalnum() and ":" not in value
            )
            value = value if is_local else address(value)
            if not value or (key == "src" and not is_local):
                continue  # a picture from another host would be a request the reader did not ask for
        found.append((key, value))
    return found


def sanitise(html: str) -> str:
    """HTML with nothing in it that acts; text stays."""
    cleaner = _Cleaner()
    cleaner.feed(html)
    cleaner.close()
    return "".join(cleaner.out)
