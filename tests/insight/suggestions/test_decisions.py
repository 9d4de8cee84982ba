"""What administrators do with a suggestion."""

import pytest
from asgiref.sync import sync_to_async
from django.urls import reverse
from django.utils import timezone

from agents import runs
from agents.engine.testing import Says, ScriptedModel
from agents.insight.problems.status import ChangeRejected
from agents.insight.suggestions import decisions, presentation, store
from agents.insight.suggestions.evidence import Finding
from agents.insight.suggestions.models import Suggestion
from agents.models import Agent, AuditEntry
from agents.review.experiments.models import Experiment
from agents.review.models import Review
from tests.conftest import as_staff, run_question
from tests.review.experiments.conftest import finish

pytestmark = pytest.mark.django_db


class FollowsInstructions(ScriptedModel):
    """A model that answers in euros only if its instructions say so."""

    async def stream(self, *, messages, **about):
        is_told = "Give prices in euros." in str(messages[0])
        self.script = [Says(answer="It is 11 euros." if is_told else "It is 12 dollars.")]
        async for chunk in super().stream(messages=messages, **about):
            yield chunk


def suggest(agent, kind="tool_fails", subject="database", text="Check first.", **about):
    figures = {"calls": 20, "failures": 8, "message": "No such column", "same": 8, "read": 8}
    figures |= {"runs": 40, "comments": 3, "wrong": 4}
    finding = Finding(
        agent=agent, kind=Suggestion.Kind(kind), subject=subject, text=text,
        figures=figures, **about,
    )  # fmt: skip
    store.save([finding], timezone.now())
    return Suggestion.objects.select_related("agent").get(subject=subject)


def decide(client, suggestion, action, **more):
    address = reverse("admin:suggestions_suggestion_decide", args=[suggestion.pk])
    return client.post(address, {"action": action, **more}, follow=True)


def test_an_instruction_is_added_as_a_version_and_taken_back(agent, administrator):
    agent.instructions = "Never give legal advice."
    agent.save()
    suggestion = suggest(agent)

    number = decisions.apply(suggestion, administrator)

    agent.refresh_from_db()
    assert agent.instructions == "Never give legal advice.\n\nCheck first."
    assert agent.version == suggestion.applied_version == number
    assert AuditEntry.objects.filter(action="suggestion.applied").exists()
    decisions.take_back(suggestion, administrator)
    agent.refresh_from_db()
    assert (agent.instructions, agent.version) == ("Never give legal advice.", number + 1)
    assert Suggestion.objects.get().is_open


def test_an_unused_tool_is_removed(agent, administrator):
    suggestion = suggest(agent, "tool_unused", "search", "")

    decisions.apply(suggestion, administrator)

    assert set(agent.tools.values_list("name", flat=True)) == {"calculator", "database"}


def test_a_suggestion_of_an_agent_that_changed_is_not_taken_back(agent, administrator):
    suggestion = suggest(agent)
    decisions.apply(suggestion, administrator)
    Agent.objects.update(version=9)

    with pytest.raises(ChangeRejected, match="changed since"):
        decisions.take_back(suggestion, administrator)


def test_what_was_dismissed_is_not_suggested_again(agent, administrator):
    decisions.dismiss(suggest(agent), administrator)

    assert suggest(agent).status == "dismissed"


def test_two_people_do_not_apply_the_same_suggestion_twice(agent, administrator, person):
    first, second = suggest(agent), suggest(agent)
    decisions.apply(first, administrator)

    with pytest.raises(ChangeRejected):
        decisions.apply(second, person)


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("run_executor")
async def test_a_correction_measures_whether_answers_get_better(
    scripted, agent, person, administrator
):
    scripted(Says(answer="It is 12 dollars."))
    wrong = await run_question("The price?", user=person, agent=agent)
    await Review.objects.acreate(
        run=wrong, correction="It is 11 euros.", corrected_at=timezone.now()
    )
    suggestion = await sync_to_async(suggest)(
        agent, "instruction", "euros", "Give prices in euros.", runs=(wrong.pk,)
    )

    scripted(model=FollowsInstructions())
    await sync_to_async(decisions.measure)(suggestion, administrator)
    await finish(suggestion.before)
    await finish(suggestion.after)
    await runs.shut_down()

    measured = await Suggestion.objects.select_related("before", "after").aget()
    view = presentation.SuggestionView(measured, administrator, {})
    comparison = await sync_to_async(lambda: view.comparison)()
    assert comparison.verdicts == {"better": 1}
    assert (comparison.prevented, comparison.own) == (1, 1)
    sentence = presentation.measured(measured, comparison)
    assert sentence.startswith("It would have improved 1 of 1 wrong answers.")


@pytest.mark.parametrize(("effect", "is_live"), [("read", True), ("idempotent", False)])
def test_a_failing_tool_that_only_reads_is_measured_live(
    agent, administrator, make_run, effect, is_live
):
    agent.links.filter(tool__name="database").update(effect=effect)
    suggestion = suggest(agent, runs=(make_run().pk,))

    decisions.measure(suggestion, administrator)

    assert (suggestion.before.is_live, suggestion.after.is_live) == (is_live, is_live)


def test_the_page_has_evidence_and_change_and_applies_an_edited_text(admin_client, agent):
    suggestion = suggest(agent)

    html = admin_client.get(
        reverse("admin:suggestions_suggestion_change", args=[suggestion.pk])
    ).text
    assert "8 of 20 calls failed" in html
    listed = admin_client.get(reverse("admin:suggestions_suggestion_changelist")).text
    assert "database fails in 40% of its calls" in listed
    decide(admin_client, suggestion, "apply", text="Read the schema first.")
    agent.refresh_from_db()
    assert agent.instructions.endswith("Read the schema first.")


def test_an_empty_instruction_is_rejected_with_a_sentence(admin_client, agent):
    html = decide(admin_client, suggest(agent), "apply", text="  ").text

    assert "Enter the instruction." in html


def test_a_user_who_cannot_change_agents_can_only_read(agent, person):
    client = as_staff(person, "view_suggestion", "change_suggestion")
    suggestion = suggest(agent)

    page = client.get(reverse("admin:suggestions_suggestion_change", args=[suggestion.pk]))

    assert page.status_code == 200
    assert "Apply as version" not in page.text
    assert decide(client, suggestion, "apply").status_code == 403


def test_a_measurement_is_not_started_twice(agent, administrator, make_run):
    run = make_run()
    suggestion = suggest(agent, "instruction", text="Give prices in euros.", runs=(run.pk,))
    seen = Suggestion.objects.get(pk=suggestion.pk)
    decisions.measure(suggestion, administrator)

    with pytest.raises(ChangeRejected, match="still running"):
        decisions.measure(seen, administrator)
    assert Experiment.objects.count() == 2
