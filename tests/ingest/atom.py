"""An Atom feed as text: a frame and an entry of (id, title)."""

ATOM = """<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><title>t</title><id>x</id>
<updated>2026-06-10T00:00:00Z</updated>{}</feed>"""
ENTRY = """<entry><id>{0}</id><title>{1}</title><link href="{0}"/><published>2026-06-10T00:00:00Z</published>
<updated>2026-06-10T00:00:00Z</updated><summary>text</summary></entry>"""
