"""A server of one's own per test."""

import pytest

from tests.repro.engines.hostile import Server


@pytest.fixture
def serve():
    started = []

    def start(behave):
        started.append(Server(behave))
        return started[-1]

    yield start
    for one in started:
        one.close()
