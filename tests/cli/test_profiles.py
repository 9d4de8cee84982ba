"""Sign-ins are saved for the user alone."""

import stat

import pytest

from project.cli import profiles
from project.cli.errors import CommandFailed
from project.cli.profiles import SignIn

URL, OTHER = "https://chat.example.org", "https://other.example.org"


def test_a_sign_in_is_readable_by_its_user_alone(config_folder):
    profiles.remember(URL, SignIn(token="ash_secret"))

    file = config_folder / "servers.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(config_folder.stat().st_mode) == 0o700
    assert profiles.load().servers[URL].token == "ash_secret"
    assert [path.name for path in config_folder.iterdir()] == ["servers.json"]


def test_the_last_sign_in_is_the_default_and_a_renewal_changes_nothing_about_that(
    config_folder,
):
    profiles.remember(URL, SignIn(token="a"))
    profiles.remember(OTHER, SignIn(token="b"))
    profiles.renew(URL, SignIn(token="c"))

    saved = profiles.load()
    assert saved.default == OTHER
    assert saved.servers[URL].token == "c"


def test_signing_out_leaves_the_others(config_folder):
    profiles.remember(URL, SignIn(token="a"))
    profiles.remember(OTHER, SignIn(token="b"))

    assert profiles.forget(OTHER).token == "b"
    assert profiles.load().default == URL
    assert profiles.forget(OTHER) is None


def test_without_a_file_nobody_is_signed_in(config_folder):
    assert profiles.load().servers == {}


def test_a_damaged_file_is_an_error_that_says_what_to_do(config_folder):
    config_folder.mkdir()
    (config_folder / "servers.json").write_text("{")

    with pytest.raises(CommandFailed, match="is damaged. Delete it"):
        profiles.load()
