"""Plants secrets all over the product, uses it well and badly, then searches for leaks."""

import json
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx2
import psutil
import pytest
from django.contrib import admin

from agents.console.system.config_files.kinds import KINDS
from tests.access import echo_servers
from tests.access.routes import ROUTES
from tests.access.sentinels import Found, Sentinel, database, forms, leaks
from tests.access.visitor import Visitor
from tests.access.world import TOKEN, World
from tests.collector import Collector
from tests.faults.product import Product
from tests.wire import serve_in_thread

TIMEOUT_SECONDS = 60
ROWS = 6  # of each model, whose pages of the console are looked at
OURS = ("environment server",)
SESSIONS = ("database django_session.session_key", "database people_visit.session_id")
THEIR_PAGES = ("page * /join/*", "page * /shared/*")  # which know where they are
# A user's text belongs to them and to reviewers; their own page may display it.
SAID = (
    *("database chat_message.text", "database chat_chatsession.title", "database agents_run.*"),
    *("database agents_runevent.data", "database agents_agentstep.*", "database *search*"),
    *("page owner *", "page writer *", "page reader *", "page invited *"),
    *("page reviewer * /traces/*", "page root * /traces/*", "page root * /admin/*"),
    *("page reviewer * /api/*", "page root * /api/*", "page root * /review/*"),
    *("page reviewer * /review/*",),
)
KEPT = {
    "provider key": OURS,
    "secret key": OURS,
    "encryption key": OURS,
    "administrator's password": OURS,
    "metrics token": OURS,
    "OTLP header": OURS,
    "OIDC secret": OURS,
    "MCP environment": ("environment of plain.py",),
    "MCP header": (),
    "MCP client secret": (),
    "tool header": (),
    "kept model key": (),
    "littled model key": (),
    "password": (),
    "typed key": (),
    "their words": SAID,
}
SECRETS = {name: f"quokka {name} umbrella".replace(" ", "-").replace("'", "") for name in KEPT}
TOTP = "QUOKKAUMBRELLAQUOKKAUMBRELLAQUOK"
ENVIRONMENT = {
    "ASHIATO_MODEL_KEY": "provider key",
    "ASHIATO_SECRET_KEY": "secret key",
    "ASHIATO_ENCRYPTION_KEYS": "encryption key",
    "ASHIATO_ADMIN_PASSWORD": "administrator's password",
    "ASHIATO_METRICS_TOKEN": "metrics token",
    "ASHIATO_OIDC_CLIENT_SECRET": "OIDC secret",
}
FAILURES = ("refuse", "broken", "loose", "moved", "midway")
TOOLS = ("plain__environment", "plain__curse", "far__echo", "plain__die", "database")


class Around(threading.Thread):
    """Watches a process's children: their environment and argv."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.process, self.over = psutil.Process(pid), threading.Event()
        self.seen: dict[str, Found] = {}

    def run(self) -> None:
        self._note("server", self.process)
        while not self.over.wait(0.01):
            for child in self.process.children(recursive=True):
                with suppress(psutil.Error):
                    self._note(self._called(child), child)

    def _called(self, child: psutil.Process) -> str:
        """Return a child's name; one that is about to exec is still the server."""
        argv = child.cmdline()
        programs = [Path(word).name for word in argv if word.endswith(".py")]
        if argv == self.process.cmdline():
            return "server"
        return f"of {programs[-1] if programs else child.name()}"

    def _note(self, name: str, process: psutil.Process) -> None:
        texts = {
            f"environment {name}": json.dumps(process.environ()),
            f"command line {name}": " ".join(process.cmdline()),
        }
        if self._called(process) != name:
            return  # it became another one in this very moment, and is noted as that
        for place, text in texts.items():
            self.seen.setdefault(f"{place} {process.pid}", Found(place=place, text=text))


class Sweep:
    """The product with everything planted, and everything found in it."""

    def __init__(
        self, product: Product, elsewhere, collector: Collector, planted: dict
    ) -> None:
        self.product, self.elsewhere, self.collector = product, elsewhere, collector
        self.planted = planted
        self.visitors = {
            role: Visitor(role, product.url, cookie)
            for role, cookie in {"nobody": "", **planted["cookies"]}.items()
        }
        self.more: list[Found] = []
        self.sentinels = [
            Sentinel(name=k, value=SECRETS[k], belongs=v) for k, v in KEPT.items()
        ]
        self.sentinels += [
            Sentinel(name="TOTP secret", value=TOTP),
            Sentinel(
                name="a link", value=TOKEN, belongs=("page * /join/*", "page * /shared/*")
            ),
            Sentinel(name="API key", value=planted["api_key"]),
            *(Sentinel(name="recovery code", value=code) for code in planted["codes"]),
            *(self._session(visitor) for visitor in self.visitors.values() if visitor.token),
            *(
                Sentinel(name="CSRF token", value=v.token)
                for v in self.visitors.values()
                if v.token
            ),
        ]

    def _session(self, visitor: Visitor) -> Sentinel:
        value = visitor.cookie.partition("=")[2]
        return Sentinel(name=f"session of {visitor.role}", value=value, belongs=SESSIONS)

    def ask(self, text: str, agent: str = "helper") -> None:
        self.visitors["owner"].post("/chat/", text=text, agent=agent)
        self.wait()

    def wait(self) -> None:
        end = time.monotonic() + TIMEOUT_SECONDS
        while "running" in self._statuses():
            assert time.monotonic() < end
            time.sleep(0.05)

    def _statuses(self) -> set[str]:
        return {status for (status,) in self.rows("SELECT status FROM agents_run")}

    def rows(self, statement: str) -> list[tuple]:
        with closing(sqlite3.connect(self.product.database)) as opened, opened:
            return opened.execute(statement).fetchall()

    def everything(self) -> list[Found]:
        folder = self.product.folder
        files = {"output": self.product.log, "trace file": folder / "trace"}
        return [
            *database(self.product.database),
            *(Found(place=name, text=path.read_text()) for name, path in files.items()),
            Found(
                place="telemetry", text=repr((self.collector.spans, self.collector.resource))
            ),
            Found(place="elsewhere", text=repr(self.elsewhere.requests)),
            *(page for visitor in self.visitors.values() for page in visitor.pages),
            *self.more,
        ]


@pytest.fixture(scope="module")
def sweep():
    with ExitStack() as stack:
        place = Path(stack.enter_context(TemporaryDirectory(prefix="ashiato-sweep-")))
        elsewhere = stack.enter_context(serve_in_thread([]))
        script = echo_servers.provider(elsewhere.url)
        provider = stack.enter_context(serve_in_thread(script, pages=echo_servers.pages()))
        collector = stack.enter_context(Collector(answers=[401]))
        product = _product(place, provider.url, collector.url)
        stack.callback(product.end)
        product.start()
        around = Around(product.web.pid)
        around.start()
        root = provider.url.removesuffix("/v1")
        secrets = json.dumps({**SECRETS, "totp": TOTP})
        planted = product.run(
            "-m", "tests.access.plant_secrets", secrets, root, str(place / "notes")
        )
        sweep = Sweep(product, elsewhere, collector, json.loads(planted))
        for visitor in sweep.visitors.values():
            stack.callback(visitor.client.close)
        _use(sweep)
        around.over.set()
        around.join()
        _break(sweep)
        product.stop()
        sweep.more += around.seen.values()
        yield sweep


def _product(place: Path, provider: str, collector: str) -> Product:
    told = {name: SECRETS[secret] for name, secret in ENVIRONMENT.items()}
    return Product(
        place,
        provider,
        ASHIATO_MODEL_RETRIES="0",
        ASHIATO_EGRESS_ALLOW="127.0.0.1",
        ASHIATO_OTLP_ENDPOINT=collector,
        ASHIATO_OTLP_HEADERS=f"x-key={SECRETS['OTLP header']}",
        ASHIATO_OIDC_ISSUER=provider,
        ASHIATO_OIDC_CLIENT_ID="ashiato",
        ASHIATO_TRACE_FILE=str(place / "trace"),
        ASHIATO_TRACE_CONSOLE="info",
        ASHIATO_LOG_LEVEL="DEBUG",
        **told,
    )


def _use(sweep: Sweep) -> None:
    """Take the main paths through the product, and many that fail."""
    _talk(sweep)
    _come_in(sweep)
    _call(sweep)
    _administer(sweep)
    _take_away(sweep)
    _look_at_everything(sweep)


def _talk(sweep: Sweep) -> None:
    sweep.ask(f"hello {SECRETS['their words']}")
    for tool in TOOLS:
        sweep.ask(f"use:{tool}")
    sweep.ask("use:echo")
    [(pk, digest)] = sweep.rows("SELECT id, digest FROM agents_approval WHERE tool = 'echo'")
    approved = {"verdict": "approve", f"digest-{pk}": digest}
    sweep.visitors["owner"].post(f"/approvals/{pk}/", **approved)
    sweep.wait()
    for agent in ("helper", "kept", "littled"):
        for failure in FAILURES:
            sweep.ask(failure, agent)


def _come_in(sweep: Sweep) -> None:
    """Sign in with a password, with one in the wrong field, and by a failing service."""
    with httpx2.Client(base_url=sweep.product.url) as client:
        token = client.get("/login/").cookies["csrftoken"]
        right, headers = SECRETS["password"], {"X-CSRFToken": token}
        for name, word in ((right, "x"), ("owner", f"{right}x"), ("owner", right)):
            answer = client.post(
                "/login/", data={"username": name, "password": word}, headers=headers
            )
        assert answer.status_code == 302, answer.text
        client.get("/login/oidc/")
        client.get("/login/oidc/back/?code=x&state=y")
        wrong = {"Authorization": f"Bearer {SECRETS['metrics token']}x"}
        for headers in (wrong, {"Authorization": f"Bearer {SECRETS['metrics token']}"}):
            figures = client.get("/metrics", headers=headers)
            sweep.more.append(Found(place="metrics", text=figures.text))
        assert figures.status_code == 200


def _call(sweep: Sweep) -> None:
    """Call with a key, with a broken one, and so that it fails."""
    token = sweep.planted["api_key"]
    with httpx2.Client(base_url=sweep.product.url) as client:
        for value in (token, f"{token}x", f"{token} x"):
            headers = {"Authorization": f"Bearer {value}"}
            for path in ("/v1/models", "/api/v1/nothing", "/account/", "/v1/%00"):
                answer = client.get(path, headers=headers)
                sweep.more.append(Found(place=f"answer {path}", text=answer.text))
            client.post("/v1/chat/completions", headers=headers, content=b"{")


def _administer(sweep: Sweep) -> None:
    """Test the configuration, and submit invalid forms with secrets in them."""
    root, typed = sweep.visitors["root"], SECRETS["typed key"]
    base = "/admin/agents"
    for (pk,) in sweep.rows("SELECT id FROM agents_mcpserver"):
        root.post(f"{base}/mcpserver/{pk}/test/")
    for pk, name in sweep.rows("SELECT id, name FROM agents_toolregistration"):
        if name in {"echo", "far__echo", "plain__environment", "plain__die"}:
            root.post(f"{base}/toolregistration/{pk}/run/", arguments="{}")
    columns = "id, label, connection_id"
    for pk, label, connection in sweep.rows(f"SELECT {columns} FROM agents_languagemodel"):
        about = {"label": label, "connection": connection, "model": "refuse"}
        root.post(f"{base}/languagemodel/{pk}/test/", **about)
    for (pk,) in sweep.rows("SELECT id FROM agents_modelconnection"):
        root.post(f"{base}/modelconnection/{pk}/refresh/")
    access = {"name": "a", "provider": "bedrock", "base_url": "x", "api_key": typed}
    server = {"name": "a b", "transport": "http", "url": "nowhere", "timeout": "30"}
    pair = {"secrets-name": "aws_session_token", "secrets-value": typed}
    root.post(f"{base}/modelconnection/add/", **access, **pair)
    for page in ("add/", "try/"):
        rows = {"headers-name": "Authorization", "headers-value": typed}
        root.post(f"{base}/mcpserver/{page}", **server, **rows, oauth_client_secret=typed)
    tool = {"name": "a b", "endpoint": "nowhere", "method": "GET"}
    root.post(f"{base}/toolregistration/add/", **tool, **rows)
    root.post("/admin/auth/user/add/", username="owner", password1=typed, password2=typed)


def _take_away(sweep: Sweep) -> None:
    for role, visitor in sweep.visitors.items():
        if role != "nobody":
            visitor.post("/account/data/download/", form="json")
            visitor.post("/account/data/download/", form="markdown")
    root = sweep.visitors["root"]
    for form in ("csv", "json", "jsonl"):
        root.post(f"/admin/agents/auditentry/export.{form}")
    written = [root.post("/admin/configuration/export/", kinds=kind) for kind in KINDS]
    assert {answer.status_code for answer in written} == {200}
    for (pk,) in sweep.rows("SELECT id FROM auth_user"):
        root.post(f"/admin/chat/chatsession/person/{pk}/data/")


def _look_at_everything(sweep: Sweep) -> None:
    world = World(None, None, sweep.planted["ids"], {})
    doors = [world.address(route) for route, access in ROUTES.items() if access.method == "GET"]
    for role in ("nobody", "stranger", "scoped", "staff", "owner", "reviewer", "root"):
        sweep.visitors[role].look_around([*doors, "/admin/", "/health/", "/nowhere/"])
    for address in _console(sweep):
        sweep.visitors["root"].get(address)


def _console(sweep: Sweep) -> Iterator[str]:
    """Yield every console page of the latest rows."""
    for model in admin.site._registry:
        about = model._meta
        base = f"/admin/{about.app_label}/{about.model_name}/"
        yield from (base, f"{base}add/")
        last = f"SELECT {about.pk.column} FROM {about.db_table} ORDER BY 1 DESC LIMIT {ROWS}"
        for (pk,) in sweep.rows(last):
            yield from (f"{base}{pk}/{page}/" for page in ("change", "history", "delete"))


def _break(sweep: Sweep) -> None:
    """Open pages that fail midway."""
    for table in ("review_sharelink", "chat_invitation", "agents_mcpserver"):
        sweep.rows(f"ALTER TABLE {table} RENAME TO {table}_gone")
    for role in ("nobody", "stranger", "root"):
        visitor = sweep.visitors[role]
        for page in (f"/shared/{TOKEN}/", f"/join/{TOKEN}/", "/admin/agents/mcpserver/"):
            sweep.failed = visitor.get(page).status_code


@pytest.mark.thorough
def test_secrets_appear_only_where_expected(sweep):
    assert leaks(sweep.sentinels, sweep.everything()) == []


@pytest.mark.thorough
def test_the_search_covered_enough(sweep):
    """Or nothing would be found because nothing happened."""
    places = {found.place for found in sweep.everything()}
    statuses = dict(sweep.rows("SELECT status, count(*) FROM agents_run GROUP BY status"))

    assert sweep.failed == 503  # a table that is gone is an error of the database
    assert len([place for place in places if "root GET /admin/" in place]) > 100
    assert {"environment server", "environment of plain.py"} <= places
    assert "environment of sql_worker.py" in places
    assert statuses["failed"] >= len(FAILURES) * 3
    assert sweep.elsewhere.requests == []


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ASHIATO_DATABASE_URL", "postgresql://ashiato:{}@127.0.0.1:1/ashiato"),
        ("ASHIATO_DATABASE_URL", "mysql://ashiato:{}@127.0.0.1/ashiato"),
        ("ASHIATO_REDIS_URL", "http://:{}@127.0.0.1"),
        ("ASHIATO_OTLP_HEADERS", "{}"),
        ("ASHIATO_METRICS_TOKEN", "{}é"),
        ("ASHIATO_OIDC_ISSUER", "http://ashiato:{}@id.example"),
    ],
)
def test_a_failed_start_does_not_print_the_password(name, value, tmp_path):
    secret = "quokka-of-the-database-umbrella"
    product = Product(tmp_path, "http://127.0.0.1:1/v1", **{name: value.format(secret)})

    with pytest.raises(RuntimeError) as told:
        product.run("manage.py", "setup")

    assert name in str(told.value) or "127.0.0.1" in str(told.value)
    assert secret not in str(told.value)


def test_the_search_finds_a_secret_in_every_encoding():
    sentinel = Sentinel(name="key", value="quokka-key-umbrella", belongs=("here",))

    for form in forms(sentinel.value):
        text = f"before{form}after"
        assert leaks([sentinel], [Found(place="here", text=text)]) == []
        assert len(leaks([sentinel], [Found(place="there", text=text)])) >= 1


@pytest.mark.thorough
def test_a_secret_in_a_row_is_found(sweep):
    [(pk,)] = sweep.rows("SELECT min(id) FROM agents_run")
    leaked = SECRETS["provider key"]
    before = sweep.rows(f"SELECT detail FROM agents_run WHERE id = {pk}")[0][0]
    sweep.rows(f"UPDATE agents_run SET detail = 'Oh: {leaked}' WHERE id = {pk}")

    found = leaks(sweep.sentinels, database(sweep.product.database))

    sweep.rows(f"UPDATE agents_run SET detail = '{before}' WHERE id = {pk}")
    assert len([leak for leak in found if "agents_run.detail" in leak]) == 1
