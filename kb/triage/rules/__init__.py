"""Code units of scoring rules, one file each, found by looking in this folder."""
