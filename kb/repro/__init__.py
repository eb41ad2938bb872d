"""Reproductions, one file per system, found by looking in this folder."""
