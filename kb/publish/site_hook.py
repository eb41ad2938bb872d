"""What mkdocs calls for each page: hostile HTML goes, wide tables scroll by keyboard too. Loaded by the site's config."""

from __future__ import annotations

import re
from typing import Any

from kb.publish.sanitise import sanitise


def on_page_content(html: str, page: Any, config: Any, **_: Any) -> str:
    """Make a page's HTML safe and its tables reachable.

    Args:
        html: What Markdown became.
        page: mkdocs' page.
        config: mkdocs' settings; ``extra.raw`` names the pages that hold HTML of a person.
    """
    if page.file.src_uri in config.extra["raw"]:
        html = sanitise(html)
    label = config.extra["table_label"]
    html = html.replace(
        "<table>", f'<div class="kb-scroll" tabindex="0" role="group" aria-label="{label}"><table class="kb">'
    )
    html = re.sub(r"</table>(?!</div>)", "</table></div>", html)
    # a task list's boxes show a state; a reader cannot change it, and a screen reader must hear what they are for
    return html.replace(
        '<input type="checkbox" disabled',
        f'<input type="checkbox" aria-label="{config.extra["task_label"]}" disabled',
    )
