import pytest

from agents.accounts import factors, totp

PASSWORD = "a long walk on the beach"


@pytest.fixture
def chat(person):
    from chat.models import ChatSession

    return ChatSession.objects.create(user=person, title="Sums")


@pytest.fixture
def ada(person):
    """A user with a password."""
    person.set_password(PASSWORD)
    person.save()
    return person


@pytest.fixture
def secret(ada):
    """The secret of Ada's authenticator app."""
    secret = totp.new_secret()
    factors.add_authenticator(ada, secret, 0)
    return secret


@pytest.fixture
def sign_in(client):
    def post(name="ada", password=PASSWORD, **more):
        return client.post("/login/", {"username": name, "password": password}, **more)

    return post
