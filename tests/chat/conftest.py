import pytest


@pytest.fixture(autouse=True)
def quick_passwords(settings):
    """Hashing a password well takes longer than most tests."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def chat(person):
    from chat.models import ChatSession

    return ChatSession.objects.create(user=person, title="Sums")
