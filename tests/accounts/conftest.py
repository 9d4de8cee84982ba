import pytest
from pydantic import SecretStr

from agents.accounts.authentication import factors, totp
from agents.accounts.openid import oidc_client
from agents.accounts.users import roles
from agents.models.catalog.rights import Role
from tests.accounts.provider import CLIENT, SECRET, serve_provider, use
from tests.conftest import as_user

PASSWORD = "a long walk on the beach"


@pytest.fixture
def chat(person):
    from chat.models import ChatSession

    return ChatSession.objects.create(user=person, title="Sums")


@pytest.fixture
def helper(django_user_model):
    """An administrator who isn't a superuser."""
    user = django_user_model.objects.create_user("grace")
    roles.set_role(user, Role.ADMINISTRATOR)
    return django_user_model.objects.get(pk=user.pk)


@pytest.fixture
def console(helper):
    return as_user(helper)


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


@pytest.fixture(scope="module")
def service():
    with serve_provider() as provider:
        yield provider


@pytest.fixture
def provider(service, settings):
    """An OpenID provider named Acme, and the settings for it."""
    service.reset()
    use(settings, oidc_issuer=service.url, oidc_client_id=CLIENT)
    use(settings, oidc_client_secret=SecretStr(SECRET), oidc_name="Acme")
    oidc_client.document.cache_clear()
    return service
