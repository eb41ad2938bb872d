"""What mkdocs calls for each page: kb's own rendering takes the place of its Markdown. Loaded by the site's config."""

from __future__ import annotations

from html import escape
from typing import Any

from mkdocs.structure.toc import get_toc

from kb.publish.sanitise import sanitise
from kb.publish.site_html import to_html


def on_env(env: Any, **_: Any) -> Any:
    """Trust that the theme's templates stay as they are while a site is built: they are not looked at for each page."""
    env.auto_reload = False
    return env


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Render a page; mkdocs is left nothing to render.

    Args:
        markdown: The staged page.
        page: mkdocs' page.
        config: mkdocs' settings; ``extra.raw`` names the pages that hold HTML of a person.
    """
    extra = config.extra
    made = to_html(markdown, page.file.src_uri, extra["table_label"], extra["task_label"])
    if page.file.src_uri in extra["raw"]:
        made.body = sanitise(made.body)
    page.meta["title"] = escape(made.title)  # the theme prints it as HTML
    page.kb_html = made
    return ""


def on_page_content(_html: str, page: Any, **_: Any) -> str:
    """Put the rendering and its headings where mkdocs would have put its own."""
    page.toc = get_toc(page.kb_html.headings)
    return str(page.kb_html.body)
