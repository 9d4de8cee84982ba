"""Signing in to a real MCP server with OAuth, in the browser and in runs."""

import json
import subprocess
import sys
import time
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.db import connection
from django.urls import reverse
from mcp.shared.auth import OAuthClientMetadata

from agents.catalog import mcp_servers
from agents.catalog.mcp_servers import sign_in_flow, sign_ins
from agents.engine import call_context
from agents.engine.call_context import CallContext, QuestionAnswer, QuestionUnavailable
from agents.models import Approval, AuditEntry, Deletion, McpServer, McpSignIn
from agents.web.presentation.decisions.question_form import QuestionView
from tests.conftest import as_user

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("run_executor"),
]

REDIRECT = "http://testserver/mcp/callback/"
MEMBERS = str(Path(__file__).parents[1] / "tools" / "mcp_servers" / "members.py")


@contextmanager
def club(*options):
    """Run the server; return its URL."""
    command = [sys.executable, "-W", "ignore", MEMBERS, *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.fixture(scope="module")
def members():
    with club() as url:
        yield url


@pytest.fixture(autouse=True)
def loopback(settings):
    settings.EGRESS_ALLOW = ["127.0.0.1"]


def make_server(url, sign_in="user", **columns):
    return McpServer.objects.create(name="club", url=url, sign_in=sign_in, **columns)


def fingerprint(row):
    """What the server says of a sign-in's token."""
    return sha256(row.tokens.reveal()["access_token"].encode()).hexdigest()[:16]


def sign_in(client, server, next_url="", **options):
    """Do what a browser does: to the authorization server, and back."""
    page = reverse("runs:mcp_sign_in", args=[server.pk])
    begun = client.get(page, {"next": next_url}, **options)
    assert begun.status_code == 302, begun.text
    consented = httpx2.get(begun.url, follow_redirects=False, trust_env=False)
    back = urlsplit(consented.headers["Location"])
    assert back.path == reverse("runs:mcp_callback")
    return client.get(f"{back.path}?{back.query}", **options)


class Answering(CallContext):
    """A call of a user, who does something when they are asked."""

    def __init__(self, user, on_question=None):
        self.user_id = str(user.pk)
        self.questions = []
        self._on_question = on_question

    async def ask(self, question):
        self.questions.append(question)
        if self._on_question is None:
            raise QuestionUnavailable
        await sync_to_async(self._on_question, thread_sensitive=False)()
        return QuestionAnswer(action="accept")


def call(server, user, *tools, context=None):
    """Call tools as a run of this user does; return the last result."""

    async def run():
        rows = [row async for row in server.tools.select_related("server")]
        try:
            loaded = {one.name: one for one in await mcp_servers.load_tools(rows)}
            with call_context.use_context(context or Answering(user)):
                results = [
                    await loaded[f"club__{tool}"].execute({}) for tool in tools or ["account"]
                ]
            return results[-1]
        finally:
            await mcp_servers.shut_down()

    return async_to_sync(run)()


def test_a_user_signs_in_and_calls_tools_with_their_own_token(members, administrator, person):
    server = make_server(members)
    answer = sign_in(as_user(administrator), server, "/account/")
    found = async_to_sync(mcp_servers.sync)(server, administrator)
    signed_in = call(server, administrator)
    other = call(server, person)

    row = McpSignIn.objects.get()
    assert answer.url == "/account/"
    assert found.added == ("account", "repeat", "revoke_everything")
    assert fingerprint(row) in signed_in.output
    assert "You aren’t signed in to club." in other.error
    assert AuditEntry.objects.filter(action="server.signed_in").exists()


@pytest.fixture
def signed_in(members, administrator):
    """A server where an administrator has signed in and loaded the tools."""
    server = make_server(members)
    sign_in(as_user(administrator), server)
    async_to_sync(mcp_servers.sync)(server, administrator)
    return server


def test_a_run_asks_its_user_to_sign_in_and_goes_on(signed_in, person):
    context = Answering(person, lambda: sign_in(as_user(person), signed_in))
    result = call(signed_in, person, context=context)

    [question] = context.questions
    assert question.url == reverse("runs:mcp_sign_in", args=[signed_in.pk])
    assert question.message == "Sign in to club to use its tools."
    card = QuestionView(Approval(arguments=json.dumps({"url": question.url})))
    assert (card.url, card.is_own_page) == (question.url, True)
    assert fingerprint(McpSignIn.objects.get(user=person)) in result.output
    call(signed_in, person, context=context)
    assert len(context.questions) == 1


def test_everyone_uses_a_shared_sign_in(members, administrator, person):
    server = make_server(members, "shared")
    assert as_user(person).get(reverse("runs:mcp_sign_in", args=[server.pk])).status_code == 404
    sign_in(as_user(administrator), server)
    async_to_sync(mcp_servers.sync)(server, administrator)

    row = McpSignIn.objects.get()
    assert row.user is None
    assert fingerprint(row) in call(server, person).output

    row.delete()
    assert "Ask an administrator to sign in." in call(server, person).error


@pytest.mark.thorough
def test_an_expired_token_is_refreshed(administrator):
    with club("--seconds", "6") as url:
        server = make_server(url)
        sign_in(as_user(administrator), server)
        async_to_sync(mcp_servers.sync)(server, administrator)
        old = McpSignIn.objects.get()
        time.sleep(3.1)
        result = call(server, administrator)

    new = McpSignIn.objects.get()
    assert new.tokens.reveal() != old.tokens.reveal()
    assert fingerprint(new) in result.output
    assert new.signed_in_at == old.signed_in_at


@pytest.mark.thorough
def test_a_sign_in_that_the_server_forgot_is_asked_for_again(administrator):
    with club() as url:
        server = make_server(url)
        sign_in(as_user(administrator), server)
        async_to_sync(mcp_servers.sync)(server, administrator)
        result = call(server, administrator, "revoke_everything", "account", "account")

    assert "You aren’t signed in to club." in result.error
    assert not McpSignIn.objects.exists()


def test_signing_out_revokes_the_tokens(signed_in, administrator, person):
    sign_in(as_user(person), signed_in)
    before = int(call(signed_in, person).output.split()[-1])
    client = as_user(administrator)
    assert "Sign out of club" in client.get(reverse("people:account")).text
    client.post(reverse("runs:mcp_sign_out", args=[signed_in.pk]))

    assert int(call(signed_in, person).output.split()[-1]) == before - 1
    assert [row.user for row in McpSignIn.objects.all()] == [person]
    assert "Sign in to club" in client.get(reverse("people:account")).text

    async_to_sync(mcp_servers.end_sign_ins_of_user)(person)
    assert not McpSignIn.objects.exists()


def test_a_deleted_server_or_another_url_ends_all_sign_ins(signed_in, admin_client):
    page = reverse("admin:agents_mcpserver_delete", args=[signed_in.pk])
    admin_client.post(page, {"post": "yes"})

    assert not McpSignIn.objects.exists()
    copy = json.dumps(Deletion.objects.get().rows.reveal())
    assert "access_token" not in copy


@pytest.mark.thorough
def test_a_refused_sign_in_says_why(administrator):
    with club("--refuse") as url:
        server = make_server(url)
        answer = sign_in(as_user(administrator), server)

    assert "Not today." in answer.text
    assert not McpSignIn.objects.exists()


def test_only_the_user_who_began_can_finish(members, administrator, person):
    server = make_server(members)
    begun = as_user(person).get(reverse("runs:mcp_sign_in", args=[server.pk]))
    consented = httpx2.get(begun.url, follow_redirects=False, trust_env=False)
    back = urlsplit(consented.headers["Location"])
    answer = as_user(administrator).get(f"{back.path}?{back.query}")

    assert "has expired" in answer.text
    assert not McpSignIn.objects.exists()


def test_tokens_are_encrypted_and_not_in_logs(signed_in, caplog):
    with connection.cursor() as cursor:
        cursor.execute("SELECT tokens FROM agents_mcpsignin")
        [(stored,)] = cursor.fetchall()

    token = McpSignIn.objects.get().tokens.reveal()["access_token"]
    assert token not in stored
    assert token not in caplog.text


def test_a_server_that_repeats_the_token_tells_nobody(signed_in, administrator):
    result = call(signed_in, administrator, "repeat")

    assert result.output == "You sent: ***."


@pytest.mark.parametrize("secret", ["a secret", ""])
def test_an_entered_client_is_used(administrator, secret):
    with club("--client", f"ours:{secret}", "--redirect", REDIRECT) as url:
        server = make_server(url, oauth_client_id="ours", oauth_client_secret=secret)
        sign_in(as_user(administrator), server)
        async_to_sync(mcp_servers.sync)(server, administrator)
        result = call(server, administrator)

    row = McpSignIn.objects.get()
    assert fingerprint(row) in result.output
    assert row.client.reveal()["client_id"] == "ours"
    assert "client_secret" not in McpServer.objects.get().oauth_client.reveal()


@pytest.mark.thorough
def test_a_sign_in_is_renewed_with_the_secret_that_is_saved_now(administrator):
    options = ("--seconds", "6", "--redirect", REDIRECT)
    with club("--client", "ours:new", *options) as url:
        server = make_server(url, oauth_client_id="ours", oauth_client_secret="new")
        sign_in(as_user(administrator), server)
        row = McpSignIn.objects.get()
        row.client = {**row.client.reveal(), "client_secret": "old"}
        row.save()
        async_to_sync(mcp_servers.sync)(server, administrator)
        time.sleep(3.1)
        result = call(server, administrator)

    new = McpSignIn.objects.get()
    assert new.tokens.reveal() != row.tokens.reveal()
    assert fingerprint(new) in result.output


def test_the_secret_of_another_url_is_not_sent_to_revoke_a_sign_in():
    entered = {"oauth_client_id": "ours", "oauth_client_secret": "new"}
    server = make_server("https://new.example/mcp", **entered)
    client = {"client_id": "ours", "client_secret": "old"}
    row = McpSignIn(server=server, url="https://old.example/mcp", client=client)

    assert sign_ins.credentials_of(row).client["client_secret"] == "old"
    row.url = server.url
    assert sign_ins.credentials_of(row).client["client_secret"] == "new"


def test_a_sign_in_that_ends_late_registers_no_client_at_another_url():
    server = make_server("https://old.example/mcp")
    McpServer.objects.update(url="https://new.example/mcp")
    sign_ins.save_client(server, {"client_id": "at the old one"})

    assert not McpServer.objects.get().oauth_client


def test_an_entered_secret_is_not_sent_to_another_authorization_server(administrator):
    with club("--client", "ours:secret", "--redirect", REDIRECT) as url:
        other = {"issuer": "https://before.example/"}
        entered = {"oauth_client_id": "ours", "oauth_client_secret": "secret"}
        server = make_server(url, oauth_client=other, **entered)
        page = reverse("runs:mcp_sign_in", args=[server.pk])
        answer = as_user(administrator).get(page)

    assert answer.status_code == 400
    assert "another authorization server" in answer.text


def test_without_any_client_the_error_says_what_to_do(administrator):
    with club("--client", "theirs", "--redirect", REDIRECT) as url:
        server = make_server(url)
        answer = as_user(administrator).get(reverse("runs:mcp_sign_in", args=[server.pk]))

    assert answer.status_code == 400
    assert "register clients by itself. Enter a client ID" in answer.text


@pytest.fixture
def addresses(monkeypatch):
    """The addresses of this product's own host."""
    own = ["93.184.215.14"]

    async def resolve(host, port):
        assert (host, port) == ("testserver", 443)
        return own

    monkeypatch.setattr(sign_in_flow, "resolve_in_own_loop", resolve)
    return own


def test_the_metadata_document_is_our_client_id(administrator, client, tmp_path, addresses):
    document = tmp_path / "client.json"
    document.write_bytes(client.get(reverse("runs:mcp_client"), secure=True).content)
    with club("--document", str(document)) as url:
        server = make_server(url)
        sign_in(as_user(administrator), server, secure=True)
        async_to_sync(mcp_servers.sync)(server, administrator)
        result = call(server, administrator)

    row = McpSignIn.objects.get()
    assert fingerprint(row) in result.output
    assert row.client.reveal()["client_id"] == "https://testserver/mcp/client.json"


def test_a_document_that_nobody_can_read_is_not_used(
    administrator, client, tmp_path, addresses
):
    addresses[:] = ["10.0.0.7"]
    document = tmp_path / "client.json"
    document.write_bytes(client.get(reverse("runs:mcp_client"), secure=True).content)
    with club("--document", str(document)) as url:
        server = make_server(url)
        page = reverse("runs:mcp_sign_in", args=[server.pk])
        answer = as_user(administrator).get(page, secure=True)

    assert "Enter a client ID" in answer.text


def test_the_metadata_document_is_what_is_registered_elsewhere(client):
    answer = client.get(reverse("runs:mcp_client"), secure=True)
    document = OAuthClientMetadata.model_validate(answer.json())

    assert [str(uri) for uri in document.redirect_uris] == ["https://testserver/mcp/callback/"]
    assert document.token_endpoint_auth_method == "none"
