from pathlib import Path

import pytest

from tests.sync.world import World, copy_world, make_world


@pytest.fixture(scope="session")
def plain_template(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="session")
def nested_template(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("nested"), "shared/research-kb/")


@pytest.fixture
def world(tmp_path: Path, plain_template: World) -> World:
    """A repository whose top is the base."""
    return copy_world(plain_template, tmp_path)


@pytest.fixture
def nested(tmp_path: Path, nested_template: World) -> World:
    """A repository that holds the base in a folder, under a path with a space."""
    return copy_world(nested_template, tmp_path / "a place")
