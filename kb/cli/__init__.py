"""The command line ``kb``: parses, prints, maps errors to exit codes. No decisions, no loops over data."""

from kb.cli.root import main

__all__ = ["main"]
