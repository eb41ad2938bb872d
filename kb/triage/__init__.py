"""Decide what is worth reading and say why; write drafts for people."""
