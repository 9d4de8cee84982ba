"""Response headers of every page."""

import json
from html.parser import HTMLParser

import pytest
from asgiref.sync import sync_to_async
from django.contrib import admin

from tests.access.routes import ROUTES
from tests.access.world import World, create_world
from tests.conftest import select
from tests.sampling import one_in

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]

# Pages of their own policy, which is stricter in all but scripts: see test_sandbox_frame.
FRAMES = {"sandbox/diagram/", "sandbox/preview/"}
READ = [
    route for route, access in ROUTES.items() if access.method == "GET" and route not in FRAMES
]
FILES = ("export.json", "export.md", "<slug:name>/")
# Plain text, for which nothing may run.
SANDBOXED = "traces/<int:pk>/text/<slug:name>/"
PROMISED = {
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Inline(HTMLParser):
    """Collects what a strict policy would refuse to run."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        names = dict(attrs)
        is_data = names.get("type") == "application/json"
        is_bare = tag == "style" or (tag == "script" and "src" not in names and not is_data)
        is_told = any(name == "style" or name.startswith("on") for name in names)
        is_code = any(str(value).lower().startswith("javascript:") for value in names.values())
        if is_bare or is_told or is_code:
            self.found.append(self.get_starttag_text())


@pytest.fixture
async def world(agent, django_user_model) -> World:
    return await sync_to_async(create_world)(agent, django_user_model.objects)


# What other sites load and frame: an embedded chat and its script.
ELSEWHERE = ("/embed.js", "/embed/")


def check(answer, where) -> None:
    headers, inline = answer.headers, Inline()
    if not answer.streaming and "html" in headers.get("Content-Type", ""):
        inline.feed(answer.text)
        # A second one would run what both import twice.
        assert answer.text.count('type="module"') <= 1, where
    policy = headers["Content-Security-Policy"]
    assert answer.status_code < 500, where
    assert inline.found == [], where
    is_sandboxed = "default-src 'none'" in policy and "sandbox" in policy
    assert is_sandboxed or "script-src 'self';" in f"{policy};", where
    path = answer.request["path"]
    is_framed = path.startswith("/embed/")
    assert is_framed or "frame-ancestors 'none'" in policy, where
    assert "unsafe" not in policy, where
    assert headers["Referrer-Policy"] in {"same-origin", "no-referrer"}, where
    assert "camera=()" in headers["Permissions-Policy"], where
    promised = PROMISED
    if path.startswith(ELSEWHERE):
        promised = {"X-Content-Type-Options": "nosniff"}
    assert {name: headers[name] for name in promised} == promised, where


def is_kept_nowhere(answer) -> bool:
    told = answer.headers["Cache-Control"]
    if answer.request["path"].startswith("/branding/"):
        return "immutable" in told  # the same for everybody
    if answer.request["path"] == "/embed.js":
        return True
    if answer.headers["Content-Type"].startswith("image/"):
        return told.startswith("private,")  # a tool's image, in its user's browser
    return "no-store" in told or "text/event-stream" in answer.headers["Content-Type"]


@pytest.mark.parametrize("roles", one_in(2, [["nobody", "owner"], ["root"]]), ids=" ".join)
async def test_every_page_has_a_policy_and_nothing_inline(world, roles):
    for route in [*READ, "nowhere/"]:
        for role in roles:
            answer = await world.clients[role].get(world.address(route))
            check(answer, (route, role))
            assert is_kept_nowhere(answer), route


async def test_htmx_copies_no_styles_which_the_policy_would_refuse(world):
    """Elements that a script has placed have a style; htmx would set it on their successor."""
    for page in ("/", "/admin/agents/guardrailpattern/"):
        html = await world.clients["root"].get(page)
        [meta] = select(html, "meta[name=htmx-config]")
        config = json.loads(meta.attributes["content"])
        assert "style" not in config["attributesToSettle"], page


async def test_exports_are_served_as_files(world):
    for route in [each for each in READ if each.endswith(FILES) and each != SANDBOXED]:
        answer = await world.clients["owner"].get(world.address(route))
        assert answer.headers["Content-Disposition"].startswith("attachment;"), route


@pytest.mark.thorough
async def test_every_page_of_the_console_has_a_policy_and_nothing_inline(world):
    client = world.clients["root"]
    for model in admin.site._registry:
        for page in await sync_to_async(pages)(model):
            answer = await client.get(page)
            check(answer, page)
            assert is_kept_nowhere(answer), page
    for page in ("", "health/", "circuits/", "agents/guardrailpattern/hits/"):
        check(await client.get(f"/admin/{page}"), page)


def pages(model) -> list[str]:
    """Return a model's list, its add form, and all pages of one row."""
    base = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
    row = model._default_manager.first()
    of_one = ("change", "history", "delete") if row else ()
    return [base, f"{base}add/", *(f"{base}{row.pk}/{page}/" for page in of_one)]
