"""Every console list, with lookups its URL must reject.

The lists come from the site, so a new one that accepts more than it declares fails here.
"""

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission
from django.core.exceptions import BadRequest

from agents.access import masking
from agents.models import AgentStep, Approval, AuditEntry, ModelConnection, Run
from agents.review.models import Example
from chat.models import ChatSession, Member, Message
from tests.conftest import as_user
from tests.sampling import one_in

pytestmark = pytest.mark.django_db

# Connections have no list of Django's: the page of each lists all of them.
LISTS = sorted(
    (entry for entry in admin.site._registry.items() if entry[0] is not ModelConnection),
    key=lambda entry: entry[0]._meta.label,
)
# No filter of Django's uses one of these, so none of them can be declared.
FOREIGN = ("contains", "startswith", "regex", "in", "range", "gt", "lte", "length")
RESERVED = {"q": "", "o": "1", "p": "1", "all": "", "_popup": "1", "_facets": "True", "e": "1"}
BAD = ["\0", "9" * 30, "9999", "2026-13-45"]


every_list = pytest.mark.parametrize(
    ("model", "pages"), LISTS, ids=lambda v: getattr(v, "__name__", "")
)


def address(model) -> str:
    return f"/admin/{model._meta.app_label}/{model._meta.model_name}/"


def foreign(model) -> list[str]:
    """Return such lookups over every column, its relations, and their columns."""
    names = [field.name for field in model._meta.concrete_fields]
    for field in model._meta.get_fields():
        if field.is_relation and (there := field.related_model):
            names += [f"{field.name}__{each.name}" for each in there._meta.concrete_fields]
    nested = ["user__password", "run__user__password", "session__user__password"]
    return [f"{name}__{how}" for name in [*names, "pk", *nested] for how in FOREIGN]


@pytest.mark.parametrize(
    "part", one_in(2, [slice(0, None, 25), slice(None)]), ids=["some", "all"]
)
@every_list
def test_a_list_rejects_undeclared_lookups(model, pages, part, rf, administrator):
    """Nor `?status=x`, which is short for `?status__exact=x`, where that is no filter."""
    filters = {str(each) for each in pages.list_filter}
    bare = [f.name for f in model._meta.concrete_fields if f.name not in filters]
    for lookup in [*foreign(model), *bare][part]:
        request = rf.get(address(model), {lookup: "a"})
        request.user = administrator
        with pytest.raises(BadRequest, match=f"no filter named {lookup}"):
            pages.get_changelist_instance(request)


@every_list
def test_an_undeclared_lookup_returns_400(model, pages, admin_client):
    answer = admin_client.get(address(model), {"pk__regex": "a"})

    assert answer.status_code == 400
    assert "cl" not in answer.context


@pytest.mark.django_db(
    transaction=True
)  # after an error, PostgreSQL continues only outside one
@pytest.mark.parametrize(
    ("model", "pages"),
    [
        pytest.param(*each, marks=() if each[0] is Run else pytest.mark.thorough)
        for each in LISTS
    ],
    ids=lambda v: getattr(v, "__name__", ""),
)
@pytest.mark.thorough
def test_any_lookup_value_returns_a_page(model, pages, admin_client):
    shown = admin_client.get(address(model)).context["cl"]
    names = {n for spec in shown.filter_specs for n in spec.expected_parameters()}
    names |= {f"{pages.date_hierarchy}__{part}" for part in ("year", "month", "day")}
    names |= {"q", "o", "p", "_to_field"}
    for name in sorted(names):
        for value in BAD:
            answer = admin_client.get(address(model), {name: value})
            assert answer.status_code in (200, 400), (name, value)


def test_a_list_accepts_declared_lookups(admin_client, person):
    for status in ("completed", "failed"):
        Run.objects.create(user=person, topic=status, query="?", status=status)
    answer = admin_client.get("/admin/agents/run/", {"status__exact": "failed", **RESERVED})

    assert [run.status for run in answer.context["cl"].result_list] == ["failed"]


def test_a_rejected_lookup_has_a_message_and_a_link(admin_client):
    answer = admin_client.get("/admin/auth/user/", {"password__regex": "^a"})

    assert "This list has no filter named password__regex." in answer.text
    assert 'href="/admin/auth/user/">Show all' in answer.text


def test_actions_and_exports_reject_undeclared_lookups(admin_client, administrator):
    picked = {"action": "sign_out_everywhere", "_selected_action": administrator.pk, "index": 0}
    action = admin_client.post("/admin/auth/user/?password__regex=^a", picked)
    export = admin_client.post("/admin/agents/auditentry/export.csv?detail__contains=a")

    assert (action.status_code, export.status_code) == (400, 400)


# What is masked


@pytest.fixture
def clerk(django_user_model):
    """A user who sees all lists, without personal data."""
    person = django_user_model.objects.create_user("clerk", is_staff=True)
    person.user_permissions.add(*Permission.objects.filter(codename__startswith="view_"))
    return as_user(person)


@pytest.fixture
def said(person):
    for text in ("b@example.com", "a@example.com", "c@example.com"):
        chat = ChatSession.objects.create(user=person, title=text)
        run = Run.objects.create(
            user=person, topic=chat.topic, query=text, answer=text, status="completed"
        )
        Message.objects.create(
            session=chat, author=person, run=run, text=text, client_id=run.pk
        )


def found(client, path: str, **asked: str) -> list[int]:
    return [row.pk for row in client.get(path, asked).context["cl"].result_list]


PATHS = ["/admin/agents/run/", "/admin/chat/chatsession/", "/admin/chat/message/"]


@pytest.mark.usefixtures("said")
@pytest.mark.parametrize("path", one_in(3, PATHS))
def test_masked_text_is_neither_searched_nor_sorted_by(path, clerk):
    everything = found(clerk, path)
    orders = [found(clerk, path, o=f"{sign}{n}") for n in range(12) for sign in ("", "-")]

    assert found(clerk, path, q="a@example") == []
    assert {tuple(each) for each in orders} <= {tuple(everything), tuple(everything[::-1])}


@pytest.mark.usefixtures("said")
@pytest.mark.parametrize("path", one_in(3, PATHS))
def test_searching_personal_data_needs_permission_and_is_audited(path, admin_client):
    assert len(found(admin_client, path, q="a@example")) == 1
    assert len(found(admin_client, path, q="b@example")) == 1

    entries = AuditEntry.objects.filter(action="run.searched")
    assert entries.count() == 2
    assert "example" not in str(entries.values())


@pytest.mark.usefixtures("said")
def test_suggestions_exist_only_for_existing_fields(clerk, admin_client):
    """Else they would list any rows that a foreign key leads to, by their unmasked names."""
    asked = {"app_label": "agents", "model_name": "agentstep", "field_name": "run"}
    users = {"app_label": "agents", "model_name": "reviewscope", "field_name": "user"}

    assert admin_client.get("/admin/autocomplete/", asked).status_code == 403
    assert clerk.get("/admin/autocomplete/", asked).status_code == 403
    assert clerk.get("/admin/autocomplete/", users).status_code == 403
    assert admin_client.get("/admin/autocomplete/", {**users, "term": "a\0"}).status_code == 200


@pytest.mark.usefixtures("said")
def test_page_titles_do_not_contain_masked_questions(clerk, person):
    """A run and a session are named after their question."""
    run = Run.objects.first()
    of_run = {"run": run, "started_at": run.started_at}
    AgentStep.objects.create(number=1, kind="thought", status="done", **of_run)
    Approval.objects.create(run=run, step=1, call_id="c", tool="t", asked_at=run.started_at)
    Example.objects.create(name="one", agent_name="a", question=run.query, run=run)
    Member.objects.create(session=ChatSession.objects.first(), user=person, topic="t")

    for model, _ in LISTS:
        for row in model._default_manager.all()[:1]:
            for page in ("change", "history"):
                answer = clerk.get(f"{address(model)}{row.pk}/{page}/", follow=True)
                assert "@example.com" not in answer.text, (model, page)


def test_every_masked_column_is_known_to_the_lists():
    for model, pages in LISTS:
        if hidden := masking.masked_columns(model):
            assert not {*hidden} & {*pages.search_fields} - {"action"}, model
