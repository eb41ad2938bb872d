from pathlib import Path

import pytest

from tests.sync.world import World, make_world


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A repository whose top is the base."""
    return make_world(tmp_path)


@pytest.fixture
def nested(tmp_path: Path) -> World:
    """A repository that holds the base in a folder, under a path with a space."""
    root = tmp_path / "a place"
    root.mkdir()
    return make_world(root, "shared/research-kb/")
