"""``python -m kb``: the same program as the console script, where only the source tree is at hand."""

from __future__ import annotations

from kb.cli import main

if __name__ == "__main__":
    main()
