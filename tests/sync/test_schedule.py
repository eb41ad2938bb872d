"""What `kb schedule print` prints can be used as it is: parsed by sh, YAML and systemd, and run."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.sync.world import PAGE, World, page


def printed(world: World, kind: str, *more: str) -> str:
    return world.kb("schedule", "print", f"--{kind}", *more).stdout


CHAIN = ["sync --once", "ingest --since", "triage", "stale --json", "repro", "publish", "sync --once"]


def verbs(script: str) -> list[str]:
    pattern = "|".join(map(re.escape, sorted(set(CHAIN), key=len, reverse=True)))
    lines = [line for line in script.splitlines() if " -C " in line]
    return [found.group(1) for line in lines if (found := re.search(rf"-C \S+ ({pattern})", line))]


@pytest.mark.parametrize("kind", ["systemd", "cron", "github"])
def test_each_runs_the_whole_chain_in_order(nested: World, kind: str):
    """The branch comes first and last; the run is known as scheduled."""
    text = printed(nested, kind, "--clone", "/srv/kb")
    assert verbs(text) == CHAIN
    assert "KB_SCHEDULED" in text
    assert "shared/research-kb" in text


def test_the_script_parses_and_reports_to_the_heartbeat(nested: World):
    """Run with a kb that only writes down how it was called, except for sync, which is the real one."""
    clone = nested.root / "job's clone"
    script = nested.root / "job.sh"
    script.write_text(printed(nested, "cron", "--clone", str(clone)), encoding="utf-8")
    subprocess.run(["sh", "-n", str(script)], check=True)
    log = nested.root / "called"
    fake = nested.root / "bin/kb"
    fake.parent.mkdir()
    fake.write_text(f'#!/bin/sh\necho "$@" >> "{log}"\ncase "$*" in *stale*) '
                    'echo \'[{"next": "kb repro paged-eviction"}]\';; *ingest*) exit 4;; esac\n', encoding="utf-8")  # fmt: skip
    fake.chmod(0o755)
    text = re.sub(r"(?:'[^'\n]*/kb'|\S*kb) -C", f"'{fake}' -C", script.read_text(encoding="utf-8"))
    env = nested.environment | {"PATH": f"{fake.parent}:{os.environ['PATH']}"}
    subprocess.run(["sh", "-c", text.replace("#!/bin/sh", "")], check=True, env=env)
    called = log.read_text(encoding="utf-8").splitlines()
    assert [call.split("research-kb ")[1].split(" 2")[0] for call in called] == [
        "sync --once", "ingest --since", "triage", "stale --json", "repro paged-eviction", "publish", "sync --once"
    ]  # fmt: skip


def test_the_workflow_is_yaml_with_full_history_and_no_overlap(nested: World):
    flow = yaml.safe_load(printed(nested, "github", "--at", "23:59"))
    assert flow[True]["schedule"] == [{"cron": "59 23 * * *"}]
    assert flow["concurrency"] == {"group": "kb-sync", "cancel-in-progress": False}
    steps = flow["jobs"]["kb"]["steps"]
    assert steps[0]["with"]["fetch-depth"] == 0
    subprocess.run(["sh", "-n"], input=steps[-1]["run"].encode(), check=True)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed here")
def test_the_units_are_accepted_by_systemd(nested: World, tmp_path: Path):
    text = printed(nested, "systemd", "--clone", str(tmp_path / "a job"))
    units = re.split(r"(?m)^# ~/.config/systemd/user/(kb\.\w+)\n", text)
    for name, body in zip(units[1::2], units[2::2], strict=True):
        (tmp_path / name).write_text(body, encoding="utf-8")
    (tmp_path / "a job.sh").write_text("", encoding="utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", "--user", "--man=no", str(tmp_path / "kb.timer")],
        capture_output=True, text=True, check=False, env=nested.environment | {"XDG_RUNTIME_DIR": str(tmp_path)},
    )  # fmt: skip
    if "Failed to" in done.stderr and "kb." not in done.stderr:
        pytest.skip(f"systemd-analyze does not run here: {done.stderr.strip()}")
    assert not re.search(r"kb\.(service|timer):\d+", done.stderr), done.stderr


@pytest.mark.parametrize("at", ["24:00", "2", "aa:bb", "02:60", "٠٢:٠٥"])
def test_a_wrong_time_of_day_is_wrong_use(world: World, at: str):
    world.kb("schedule", "print", "--cron", "--at", at, code=2)
    world.kb("schedule", "print", code=2)


def test_a_password_in_the_address_is_not_printed(world: World):
    world.git("remote", "set-url", "origin", "https://ann:hunter22@example.org/kb.git")
    assert "hunter22" not in printed(world, "cron")
    assert "https://example.org/kb.git" in printed(world, "cron")


def test_the_recipe_gives_the_job_its_own_clone(world: World):
    """What the comments say, done by hand: the clone is brought to the branch by itself."""
    text = printed(world, "cron", "--clone", str(world.root / "job"))
    commands = [line.removeprefix("#   ") for line in text.splitlines() if line.startswith("#   git clone")]
    subprocess.run(["sh", "-c", commands[0]], check=True, env=world.environment)
    (world.root / "home/config/owned").write_text(f"{world.root}/job\n", encoding="utf-8")
    world.push_edit({PAGE: page("| old |", intro="Theirs.")})
    assert world.sync(at=world.root / "job")["brought"] == 1
    assert "Theirs." in world.read(PAGE, at=world.root / "job")
