"""The web of one's own, for the client's tests."""

from tests.ingest.conftest import web  # noqa: F401
