"""The job's own clone is brought to the branch; a person's clone only when asked with --absorb."""

import json

import pytest

from tests.sync.world import BLOCK, PAGE, World, page


def job(world: World) -> dict[str, str]:
    return {"KB_OWNED": str(world.here)}


def test_the_jobs_clone_follows_the_branch(nested: World):
    """Files, HEAD and index are the branch's after each run; people's edits, renames and removals come in."""
    nested.push_edit(
        {
            PAGE: page("| old |", intro="A better introduction."),
            "review/jay/2026-06-10-brief.md": "# moved\n",
            "inbox/jay/2026-06-10-brief.md": None,
            "kb.toml": 'zone = "UTC"\n',
        }
    )
    nested.write("items/2026-06.jsonl", nested.read("items/2026-06.jsonl") + '{"id":"mine"}\n')
    report = nested.sync(env=job(nested))
    assert report["brought"] == 4
    assert nested.git("status", "--porcelain") == ""
    assert nested.git("rev-parse", "HEAD") == nested.tip()
    assert "A better introduction." in nested.read(PAGE)
    assert not (nested.base / "inbox/jay/2026-06-10-brief.md").exists()
    assert nested.read("kb.toml") == 'zone = "UTC"\n'


def test_a_clash_in_the_jobs_clone_waits_and_the_persons_text_comes_in(world: World):
    """Ours is kept beside; publish then merges three ways from the branch's stored text."""
    world.push_edit({PAGE: page("| old, a note |")})
    world.write(PAGE, page("| new |"))
    world.write(f"published/.blocks/{BLOCK}.md", "| new |\n")
    report = world.sync(env=job(world), code=3)
    assert report["batches"] == []
    assert world.read(PAGE) == page("| old, a note |")
    assert world.read(f"published/.blocks/{BLOCK}.md") == "| old |\n"
    kept = list((world.base / ".kb/sync/kept").rglob("index.md"))
    assert [path.read_text(encoding="utf-8") for path in kept] == [page("| new |")]


def test_two_jobs_append_to_one_file(world: World):
    """Lines of both arrive, in one line of history."""
    start = world.read("items/2026-06.jsonl")
    world.write("items/2026-06.jsonl", start + '{"id":"a"}\n')
    world.write("items/2026-06.jsonl", start + '{"id":"b"}\n', at=world.there)
    world.sync(env=job(world))
    world.sync(at=world.there, env={"KB_OWNED": str(world.there)})
    world.sync(env=job(world))
    assert world.show("items/2026-06.jsonl") == start + '{"id":"a"}\n{"id":"b"}\n'
    assert world.read("items/2026-06.jsonl") == world.read("items/2026-06.jsonl", at=world.there)


def test_a_persons_edit_in_the_jobs_clone_is_listed_and_kept(world: World):
    world.write("kb.toml", 'zone = "UTC"\n')
    world.push_edit({"README.md": "x\n"})
    report = world.sync(env=job(world))
    assert [entry["path"] for entry in report["yours"]] == ["kb.toml"]
    assert world.read("kb.toml") == 'zone = "UTC"\n'


def test_a_persons_clone_is_only_given_the_commits(world: World):
    """Not even its remote-tracking ref moves: that would disarm the person's own --force-with-lease."""
    before = world.git("rev-parse", "refs/remotes/origin/main")
    world.push_edit({"README.md": "theirs\n"})
    report = world.sync()
    assert report["behind"] == 1
    assert world.read("README.md") == "repository\n"
    assert world.git("rev-parse", "refs/remotes/origin/main") == before
    assert world.git("rev-parse", "refs/kb/upstream") == world.tip()


def test_absorb_fast_forwards_when_the_branch_has_all(nested: World):
    """Untracked copies, changed machine files and pages that were carried are no obstacle."""
    nested.write("inbox/jay/2026-07-01-稿.md", "# 稿\n")
    nested.write(PAGE, page("| new |"))
    nested.write("items/2026-06.jsonl", nested.read("items/2026-06.jsonl") + '{"id":"mine"}\n')
    nested.sync()
    nested.push_edit(
        {
            "items/2026-06.jsonl": nested.show("items/2026-06.jsonl") + '{"id":"theirs"}\n',
            PAGE: page("| new |", intro="Theirs."),
        }
    )
    nested.sync("--absorb")
    assert nested.git("rev-parse", "HEAD") == nested.tip()
    assert nested.git("status", "--porcelain") == ""
    assert "Theirs." in nested.read(PAGE)
    assert nested.sync()["plan"] == []


def test_absorb_refuses_where_something_would_be_lost(world: World):
    world.write("inbox/jay/2026-07-01-x.md", "# x\n")
    world.write("kb.toml", 'zone = "UTC"\n')
    world.sync()
    head, files = world.git("rev-parse", "HEAD"), world.read("kb.toml")
    report = world.sync("--absorb", code=3)
    assert "kb.toml" in report["stderr"]
    assert "git commit" in report["stderr"]
    assert (world.git("rev-parse", "HEAD"), world.read("kb.toml")) == (head, files)


def test_stage_moves_and_edits_reach_the_other_clone(world: World):
    """git mv to review, edit, move to published: one unit each time, carried with its text."""
    world.write("inbox/jay/2026-07-01-x.md", "# x\n")
    world.sync()
    (world.base / "review/jay").mkdir(parents=True)
    (world.base / "inbox/jay/2026-07-01-x.md").rename(world.base / "review/jay/2026-07-01-x.md")
    world.write("review/jay/2026-07-01-x.md", "# x\nreviewed\n")
    report = world.sync()
    assert {entry["path"]: entry["from"] for entry in report["plan"] if entry["action"] == "add"} == {
        "review/jay/2026-07-01-x.md": "inbox/jay/2026-07-01-x.md"
    }
    world.kb("move", "jay/2026-07-01-x", "--to", "published", "--reason", "right", code=None)
    if not (world.base / "published/drafts/2026-07-01-x.md").exists():
        (world.base / "published/drafts").mkdir(parents=True)
        (world.base / "review/jay/2026-07-01-x.md").rename(world.base / "published/drafts/2026-07-01-x.md")
    world.sync()
    world.pull()
    assert world.read("published/drafts/2026-07-01-x.md", at=world.there) == "# x\nreviewed\n"
    assert not {"inbox/jay/2026-07-01-x.md", "review/jay/2026-07-01-x.md"} & world.files()
    stages = [
        json.loads(world.kb("status", "--json", at=clone).stdout)["stages"]
        for clone in (world.base, world.there)
    ]
    assert stages[0] == stages[1]


def test_a_stage_move_meets_a_persons_edit_of_the_old_place(world: World):
    """Their text stays; neither half of the move is carried."""
    world.push_edit({"inbox/jay/2026-06-10-brief.md": "# a draft, improved\n"})
    (world.base / "review/jay").mkdir(parents=True)
    (world.base / "inbox/jay/2026-06-10-brief.md").rename(world.base / "review/jay/2026-06-10-brief.md")
    world.sync(code=3)
    assert world.show("inbox/jay/2026-06-10-brief.md") == "# a draft, improved\n"
    assert "review/jay/2026-06-10-brief.md" not in world.files()


def test_untracked_copies_swept_away_are_no_deletion(world: World):
    """git clean removes what sync carried and git does not track here."""
    world.write("inbox/jay/2026-07-01-x.md", "# x\n")
    world.sync()
    world.git("clean", "--quiet", "--force", "-d")
    assert world.sync()["plan"] == []
    assert "inbox/jay/2026-07-01-x.md" in world.files()


def test_a_lost_folder_is_not_a_decision(world: World):
    world.push_edit({f"inbox/jay/2026-07-01-{number}.md": f"# {number}\n" for number in range(30)})
    world.pull(world.here)
    for path in (world.base / "inbox/jay").iterdir():
        path.unlink()
    report = world.sync(code=3)
    assert report["batches"] == []
    assert "is the folder whole?" in report["queue"][0]["reason"]


def test_a_sparse_checkout_hides_files_and_deletes_none(world: World):
    world.git("status")
    world.git("sparse-checkout", "set", "--no-cone", "/*", "!/verdicts/")
    assert not (world.base / "verdicts/eai.json").exists()
    assert world.sync()["plan"] == []
    assert "verdicts/eai.json" in world.files()


@pytest.mark.parametrize("change", ["nothing", "the branch", "a file here"])
def test_the_plan_that_was_shown_is_the_plan_that_runs(world: World, change: str):
    plan = str(world.root / "plan.json")
    world.write(PAGE, page("| new |"))
    world.sync("--dry-run", "--plan", plan)
    assert world.count() == 1
    if change == "the branch":
        world.push_edit({"README.md": "x\n"})
    elif change == "a file here":
        world.write(PAGE, page("| newer |"))
    before = world.tip()
    world.sync("--plan", plan, code=0 if change == "nothing" else 3)
    assert (world.tip() == before) == (change != "nothing")


def test_a_new_block_goes_where_it_stands_here(world: World):
    """publish added a block after the first one, and a person edited the page meanwhile."""
    block = "<!-- kb:begin inference/kvcache/reading v=1 run=r1 sum=0 -->\n- a paper\n<!-- kb:end inference/kvcache/reading -->\n"
    world.push_edit({PAGE: page("| old |", intro="Theirs.")})
    world.write(PAGE, page("| old |").replace("\nThe end.", f"{block}\nThe end."))
    world.sync()
    text = world.show(PAGE)
    assert "Theirs." in text
    assert text.index("kvcache/evidence") < text.index("kvcache/reading") < text.index("The end.")


def test_notifications_come_from_the_users_settings(world: World):
    """A program must be on the allow-list; it gets new verdicts, contradictions and held blocks as JSON."""
    program = world.root / "tell"
    program.write_text(f"#!/bin/sh\ncat > '{world.root}/told.json'\n", encoding="utf-8")
    program.chmod(0o755)
    verdicts = [{"claim": "eai/a", "verdict": "contradicted"}, {"claim": "eai/b", "verdict": "holds"}]
    world.write("verdicts/eai.json", json.dumps({"system": "eai", "verdicts": verdicts}))
    world.push_edit({PAGE: page("| theirs |")})
    world.write(PAGE, page("| new |"))
    report = world.sync(env={"KB_NOTIFY": str(program)}, code=3)
    assert "allow" in report["notes"][0]
    assert not (world.root / "told.json").exists()
    verdicts[1]["verdict"] = "partly"
    verdicts[0]["verdict"] = "untested"
    verdicts.append({"claim": "eai/c", "verdict": "contradicted"})
    world.write("verdicts/eai.json", json.dumps({"system": "eai", "verdicts": verdicts}))
    world.sync(env={"KB_NOTIFY": str(program), "KB_ALLOW": str(program)}, code=3)
    told = json.loads((world.root / "told.json").read_text(encoding="utf-8"))
    assert [(event["event"], event["claim"]) for event in told["events"]] == [
        ("new-verdict", "eai/b"),
        ("contradiction", "eai/c"),
    ]


def test_a_new_base_takes_its_settings_along_and_later_ones_are_the_persons(world: World):
    """The first batch makes a base of the folder on the branch; a claim written afterwards is committed by hand."""
    new = world.here / "second"
    world.kb("init", str(new))
    world.write("second/claims/eai.toml", "")
    world.sync(at=new)
    assert {"second/kb.toml", "second/claims/eai.toml"} <= world.files()
    world.write("second/claims/other.toml", "")
    report = world.sync(at=new)
    assert {entry["path"]: entry["todo"] for entry in report["yours"]}["claims/other.toml"].startswith(
        "new here"
    )
    assert "second/claims/other.toml" not in world.files()
