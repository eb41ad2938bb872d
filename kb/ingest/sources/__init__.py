"""Kinds of sources, one file each, found by looking in this folder."""
