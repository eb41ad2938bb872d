"""Curators' drafts on their way into the inbox: rendering them, and the records they hold."""
