"""Everybody at once: no person's commit or text is lost, no update is forced, the jobs get on.

A tenth with a fixed seed runs by default; `make soak` runs 2,000 commits of people, or ten minutes.
"""

import pytest

from tests.sync.soak import run_soak
from tests.sync.world import World


def test_two_jobs_and_three_reviewers_for_a_minute_or_200_commits(nested: World):
    counts = run_soak(nested, commits=200, seconds=60, seed=1)
    assert counts["commits of people"] >= 5
    assert counts["commits of jobs"] >= 1


@pytest.mark.soak
def test_two_jobs_and_three_reviewers_for_ten_minutes_or_2000_commits(nested: World):
    counts = run_soak(nested, commits=2_000, seconds=600, seed=20261201)
    lines = "\n".join(f"  {name}: {count}" for name, count in sorted(counts.items()))
    print(f"\nsoak, seed 20261201:\n{lines}")  # noqa: T201
    assert counts["commits of jobs"] > 50
    assert counts["races of jobs"] > 0
