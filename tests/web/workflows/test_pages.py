import pytest
from django.db.models import ProtectedError
from django.utils.html import escape

from agents.engine.suggestions import suggest
from agents.models import Run, Workflow
from agents.web.workflows import versions
from agents.web.workflows.examples import EXAMPLES
from tests.access.test_headers import Inline
from tests.conftest import as_user
from tests.web.workflows import pipeline

pytestmark = pytest.mark.django_db

SHORT = "name: Short\nsteps:\n  - {name: one, tool: report_writer}\n"


@pytest.fixture
def editing(editor):
    return as_user(editor)


def page(answer):
    return answer.text


def test_without_workflows_an_editor_is_offered_examples(editing):
    shown = page(editing.get("/workflows/"))

    assert "No workflows yet" in shown
    for key in EXAMPLES:
        assert f"?example={key}" in shown
        assert "No errors. Ready to save." in page(
            editing.get(f"/workflows/new/?example={key}")
        )


def test_a_saved_workflow_can_be_viewed_and_started(editing, pipeline_tools, person_client):
    saved = editing.post("/workflows/new/", {"text": pipeline.TEXT, "base": "0"})
    shown = page(person_client.get(saved.headers["Location"]))

    assert saved.status_code == 302
    assert "アンケート集計レポート" in shown
    assert shown.count('class="node"') == 2 * 4
    assert "#line-" not in shown
    assert "Start</button>" in shown
    assert "/edit/" not in shown


def test_the_graph_links_to_the_lines_of_the_definition(editing, workflow):
    shown = page(editing.get(f"/workflows/{workflow.pk}/"))

    assert f'href="/workflows/{workflow.pk}/edit/#line-7"' in shown


def test_problems_are_shown_with_their_line_while_typing(editing):
    text = "name: w\nsteps:\n  - {name: a, tol: x}\n"

    shown = page(editing.post("/workflows/check/", {"text": text}))

    assert 'data-line="3"' in shown
    assert escape(suggest("", "tool")) in shown
    assert "<html" not in shown


def test_missing_tools_are_warnings_and_do_not_prevent_saving(editing):
    text = SHORT.replace("report_writer", "databse")

    checked = page(editing.post("/workflows/check/", {"text": text}))
    saved = editing.post("/workflows/new/", {"text": text})
    shown = page(editing.get(saved.headers["Location"]))

    assert "needs the tool &#x27;databse&#x27;, which isn&#x27;t available." in checked
    assert "disabled" in shown


def test_an_invalid_definition_is_not_saved_and_keeps_its_text(editing):
    answer = editing.post("/workflows/new/", {"text": "name: w\nsteps: nothing & more"})

    assert answer.status_code == 422
    assert "steps: nothing &amp; more" in page(answer)
    assert not Workflow.objects.exists()


def test_a_conflicting_save_is_rejected_and_keeps_both_texts(editing, workflow, administrator):
    theirs = pipeline.TEXT.replace("answer_counter", "their_counter")
    versions.save(theirs, administrator, workflow=workflow, base=1)
    mine = pipeline.TEXT.replace("answer_counter", "my_counter")

    answer = editing.post(f"/workflows/{workflow.pk}/edit/", {"text": mine, "base": "1"})

    assert answer.status_code == 409
    assert "was saved by root while you were editing" in page(answer)
    assert "their_counter" in page(answer)
    assert "my_counter" in page(answer)
    assert workflow.versions.count() == 2
    again = editing.post(f"/workflows/{workflow.pk}/edit/", {"text": mine, "base": "2"})
    assert again.status_code == 302
    assert workflow.newest.text == mine


def test_a_version_never_changes_and_can_be_restored(editing, workflow):
    editing.post(f"/workflows/{workflow.pk}/edit/", {"text": SHORT, "base": "1"})
    shown = page(editing.get(f"/workflows/{workflow.pk}/versions/2/"))

    editing.post(f"/workflows/{workflow.pk}/versions/1/restore/")

    assert 'data-sign="-"' in shown
    texts = workflow.versions.order_by("number").values_list("text", flat=True)
    assert list(texts) == [pipeline.TEXT, SHORT, pipeline.TEXT]
    workflow.refresh_from_db()
    assert workflow.name == "アンケート集計レポート"


def test_saving_the_same_text_creates_no_new_version(editing, workflow):
    text = pipeline.TEXT.replace("\n", "\r\n")  # as a browser sends it

    editing.post(f"/workflows/{workflow.pk}/edit/", {"text": text, "base": "1"})

    assert workflow.versions.count() == 1


def test_two_workflows_do_not_share_a_name(editing, workflow):
    answer = editing.post("/workflows/new/", {"text": pipeline.TEXT})

    assert answer.status_code == 422
    assert "A workflow named アンケート集計レポート already exists." in page(answer)


def test_the_editor_needs_the_permission(person_client, workflow):
    pages = ["edit/", "versions/1/"]

    assert {person_client.get(f"/workflows/{workflow.pk}/{p}").status_code for p in pages} == {
        404
    }
    assert person_client.get("/workflows/new/").status_code == 403
    assert person_client.post("/workflows/check/").status_code == 403
    assert (
        person_client.post(f"/workflows/{workflow.pk}/versions/1/restore/").status_code == 404
    )


def test_only_editors_see_a_disabled_workflow(person_client, editing, workflow):
    Workflow.objects.update(enabled=False)
    at = f"/workflows/{workflow.pk}/"

    missing = person_client.get("/workflows/987654321/")

    assert person_client.get(at).content == missing.content
    assert "アンケート集計" not in page(person_client.get("/workflows/"))
    assert "disabled" in page(editing.get(at))


@pytest.mark.parametrize("text", ["\0", "name: \0", "[" * 5_000, "&a [*a]", "{"])
def test_unusual_texts_get_problems(editing, text):
    answer = editing.post("/workflows/check/", {"text": text})

    assert answer.status_code == 200
    assert "No errors. Ready to save." not in page(answer)


def test_the_dry_run_shows_the_arguments_of_each_step(editing, pipeline_tools):
    text = """\
name: w
parameters: {month: "2026-11", cities: [Ueno, Ginza], deep: false}
steps:
  - name: first
    tool: report_writer
    arguments: {q: "In ${parameters.month}: ${item}"}
    for_each: parameters.cities
  - name: second
    tool: answer_counter
    arguments: {rows: "${steps.first.output}"}
    condition: parameters.deep
  - name: third
    tool: answer_counter
    condition: len(steps.first.output) > 3
"""
    typed = {"parameter-month": "2026-12", "parameter-cities": '["A"]'}

    shown = page(editing.post("/workflows/check/", {"text": text, **typed}))

    assert "In 2026-12: A" in shown
    assert "1 time" in shown
    assert "⟨steps.first.output⟩" in shown
    assert 'data-outcome="skipped"' in shown
    assert "only if len(steps.first.output) &gt; 3" in shown


def test_the_pages_follow_the_content_security_policy(editing, workflow):
    at = f"/workflows/{workflow.pk}/"

    for address in ["/workflows/", "/workflows/new/?example=sales", at, f"{at}versions/1/"]:
        inline = Inline()
        inline.feed(page(editing.get(address)))
        assert inline.found == [], address


def test_names_in_a_workflow_are_escaped(editing):
    text = "name: <script>\nsteps: [{name: '<b>x', tool: '<i>y', ask: '</textarea>'}]"

    shown = page(editing.post("/workflows/new/", {"text": text}))

    assert "<script>" not in shown
    assert "<b>x" not in shown
    assert "</textarea>'" not in shown


@pytest.mark.parametrize("number", [0, 2**31, 2**63, 10**30])
def test_an_invalid_id_returns_404(editing, workflow, number):
    pages = ["{n}/", "{n}/edit/", "{pk}/versions/{n}/", "{n}/versions/1/"]

    for page in pages:
        at = page.format(n=number, pk=workflow.pk)
        assert editing.get(f"/workflows/{at}").status_code == 404, at


def test_the_run_list_shows_version_and_user(person_client, workflow, person):
    about = {"topic": "a", "query": "/workflow", "agent_name": "x", "status": "completed"}
    Run.objects.create(user=person, workflow=workflow.newest, **about)

    shown = page(person_client.get(f"/workflows/{workflow.pk}/"))

    assert "<span>Version 1</span>" in shown
    assert f"<span>{person.get_username()}</span>" in shown


def test_a_workflow_with_runs_can_be_disabled_but_not_deleted(workflow, person):
    Run.objects.create(user=person, topic="a", query="q", workflow=workflow.newest)

    with pytest.raises(ProtectedError):
        workflow.delete()
