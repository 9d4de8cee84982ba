"""Passwords are hashed a few at a time, whoever asks."""

import pytest
from django.contrib.auth import hashers

from agents.access import passwords

OLD_PROFILE = {"time_cost": 1, "memory_cost": 64, "parallelism": 2}


@pytest.fixture(autouse=True)
def hasher(settings):
    settings.PASSWORD_HASHERS = ["agents.access.passwords.PasswordHasher"]
    return passwords.PasswordHasher


def test_two_passwords_are_hashed_at_a_time(monkeypatch):
    with passwords._acquire_slot(), passwords._acquire_slot():
        monkeypatch.setattr(passwords, "TIMEOUT_SECONDS", 0.01)
        with pytest.raises(passwords.PasswordsBusy):
            hashers.make_password("secret")

    assert hashers.check_password("secret", hashers.make_password("secret"))
    assert passwords._waiting == 0


def test_with_too_many_waiting_a_sign_in_says_so_and_does_not_count(
    client, person, monkeypatch
):
    monkeypatch.setattr(passwords, "MAX_WAITING", 0)
    for _ in range(40):  # more than a name or an address may try
        answer = client.post("/login/", {"username": "nobody", "password": "wrong"})
        assert answer.status_code == 503
    monkeypatch.undo()

    for name in ("nobody", "somebody"):
        answer = client.post("/login/", {"username": name, "password": "wrong"})
        assert answer.status_code == 200


def test_a_busy_server_says_so_wherever_a_password_is_hashed(person_client, monkeypatch):
    monkeypatch.setattr(passwords, "MAX_WAITING", 0)
    answer = person_client.post("/account/confirm/", {"password": "a"})

    assert answer.status_code == 503


def test_an_expensive_hash_is_replaced_at_the_next_sign_in(client, person, hasher, monkeypatch):
    with monkeypatch.context() as older:
        for name, value in OLD_PROFILE.items():
            older.setattr(hasher, name, value)
        person.set_password("a long walk")
        person.save()
    assert "m=64" in person.password

    client.post("/login/", {"username": person.username, "password": "a long walk"})

    person.refresh_from_db()
    assert "m=19456,t=2,p=1" in person.password
