"""`kb config` says where each setting comes from and shows no secret."""

import pytest

from kb.config import UserSettings
from kb.settings import SECRET


def rows(ended):
    return {row["name"]: row for row in ended.json}


def test_a_value_names_the_file_or_variable_it_comes_from(base, kb, monkeypatch, tmp_path):
    monkeypatch.setenv("KB_CONFIG_DIR", str(tmp_path))
    (tmp_path / "config.toml").write_text('contact = "a@example.org"\n')
    (tmp_path / "allow").write_text("notify-send\n")
    monkeypatch.setenv("KB_CURATOR", "jay")
    found = rows(kb("config", "show", "--json"))
    assert found["user.contact"]["origin"].endswith("config.toml")
    assert found["user.allow"] == {
        "name": "user.allow", "value": "notify-send", "origin": str(tmp_path / "allow"), "env": "KB_ALLOW",
    }  # fmt: skip
    assert (found["user.curator"]["value"], found["user.curator"]["origin"]) == ("jay", "KB_CURATOR")
    assert found["base.zone"]["origin"].endswith("kb.toml")
    assert found["base.remote"]["origin"] == "default"


@pytest.mark.parametrize("name", ["KB_PROXY", "KB_LLM", "KB_WEBHOOK"])
def test_what_may_hold_a_secret_is_only_said_to_be_set(base, kb, monkeypatch, name):
    monkeypatch.setenv(name, "http://user:hunter2@example.org")
    for args in (("config", "show"), ("config", "show", "--json"), ("config", "env")):
        ended = kb(*args)
        assert "hunter2" not in ended.out + ended.err
    assert f"set (from {name})" in kb("config", "show").out


def test_every_setting_has_a_variable_and_a_meaning(kb):
    listed = {row["env"]: row["meaning"] for row in kb("config", "env", "--json").json}
    for name in UserSettings.model_fields:
        assert listed[f"KB_{name.upper()}"], name


def test_the_users_settings_are_shown_without_a_base(kb, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = rows(kb("config", "show", "--json"))
    assert "user.contact" in found
    assert "base.zone" not in found


def test_a_setting_that_is_renamed_does_not_become_visible():
    assert set(UserSettings.model_fields) >= SECRET
