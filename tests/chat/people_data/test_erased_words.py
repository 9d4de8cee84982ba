"""An erased user's text is gone, from others' data and from the database file."""

import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async
from django.apps import apps
from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.db import connection, models
from django.utils import timezone

from agents.access import audit
from agents.access.audit import hash_chain
from agents.knowledge import ingest_text
from agents.models import (
    AgentStep,
    AgentVersion,
    Approval,
    AuditEntry,
    Collection,
    Run,
    RunEvent,
    Schedule,
    Workflow,
    WorkflowVersion,
)
from agents.review.models import Comment, Example, Label, Note, Rating, Review, SavedView
from chat.models import ChatSession, Message, Prompt
from chat.people_data import (
    erasure,
    free_space,
    quotation_matcher,
    quotations,
    text_columns,
)
from chat.sessions.titles import make_title
from chat.sharing import members, public_links
from tests.access.audit.rows import conversation, create_ended_run, create_question
from tests.chat.people_data.test_erasure import rows_with
from tests.sampling import one_in

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("run_executor"),
]
MARK, ANSWER = f"mark{uuid4().hex}", f"reply{uuid4().hex[:6]}"
WORDS = f'My {MARK} "garden"\nis in 鎌倉, and nobody but you knows the way that leads there.'


@pytest.fixture
def reviewer(django_user_model):
    return django_user_model.objects.create_user("rei")


def add_events(run, *events):
    """Add events to a run, in order."""
    last = run.events.count()
    RunEvent.objects.bulk_create(
        RunEvent(run=run, seq=last + at, type=kind, agent="helper", time=timezone.now(), data=d)
        for at, (kind, d) in enumerate(events, start=1)
    )


def step(run, number, **columns):
    about = {"kind": "tool", "started_at": timezone.now(), **columns}
    return AgentStep.objects.create(run=run, number=number, **about)


def in_json(text):
    return json.dumps({"note": text, "again": json.dumps({"inner": text})})


@pytest.fixture
def repeated(person, stranger, reviewer, agent):
    """A user's sentence, everywhere it can get to."""
    create_question(
        ChatSession.objects.create(user=person, title=make_title(WORDS)), person, WORDS
    )
    shared = ChatSession.objects.create(user=stranger, title=make_title(WORDS))
    create_question(shared, stranger, "What shall we do?")
    members.add_member(shared, "ada", "write")
    create_question(shared, person, WORDS)
    history = [{"role": "user", "content": WORDS}, {"role": "assistant", "content": "Nice."}]
    run = create_question(shared, stranger, f"“{WORDS}”, is that so?", history=history)
    Run.objects.filter(pk=run.pk).update(
        answer=f"You said: {WORDS} Nice.", output={"said": [WORDS]}, detail=f"x {WORDS}"
    )
    step(
        run,
        2,
        thought=f"They say {WORDS}",
        action_input={"text": WORDS},
        observation=in_json(WORDS),
        notes=[WORDS],
        request={"messages": history, "replaced": {"‹name 1›": f'{MARK} "garden"'}},
    )
    middle = WORDS.index(MARK) + 10
    add_events(
        run,
        ("thought_delta", {"step": 2, "content": f"Hm: {WORDS[:middle]}"}),
        ("thought_delta", {"step": 2, "content": f"{WORDS[middle:]} So"}),
        ("delta", {"step": 2, "content": f"You said: {WORDS[:middle]}"}),
        ("delta", {"step": 2, "content": f"{WORDS[middle:]} Nice."}),
        ("tool_call", {"step": 2, "id": "c1", "function": {"arguments": in_json(WORDS)}}),
        ("tool_response", {"step": 2, "content": WORDS, "content_preview": WORDS[:60]}),
        ("step", {"step": 2, "messages": history, "thought": WORDS}),
        ("error", {"message": f"Cannot: {WORDS}"}),
    )
    about = {"agent_name": "helper", "question": run.query, "history": history}
    about |= {"observations": [{"tool": "x", "arguments": {}, "observation": WORDS}]}
    Example.objects.create(name=WORDS[:100], run=run, expected=WORDS, **about)
    Example.objects.create(name="without a run", expected=WORDS, **about)
    create_ended_run(reviewer, "again", "trial.1", history, origin=run, origin_step=1)
    far = create_ended_run(reviewer, f"Somebody wrote {WORDS}", "trial.2")
    add_events(far, ("delta", {"step": 1, "content": f"It was: {WORDS}"}))
    Note.objects.create(run=run, author=person, text=f"{MARK} is odd")
    Note.objects.create(run=run, author=reviewer, text=f"See: {WORDS}")
    Comment.objects.create(run=run, author=person, text=MARK)
    Comment.objects.create(run=run, author=stranger, text=f"> {WORDS}")
    Rating.objects.create(run=run, user=person, is_good=True, comment=MARK)
    Label.objects.create(run=run, author=person, name=MARK)
    Review.objects.create(
        run=run, flagged_by=person, why=MARK, corrected_by=person, correction=WORDS
    )
    SavedView.objects.create(user=reviewer, name="theirs", query=f"text:{WORDS}")
    Prompt.objects.create(user=person, name="own", title=MARK, text=WORDS, sharing="everyone")
    Prompt.objects.create(user=stranger, name="copy", title="Copy", text=f"> {WORDS}")
    AgentVersion.objects.create(
        agent=agent, number=99, snapshot={}, author=person, note=f"As {MARK} says"
    )
    about = {"session": shared, "author": person, "client_id": "q", "place": 1}
    Message.objects.create(text=WORDS, **about)
    public_links.create(shared, stranger, "details", "24")
    workflow = Workflow.objects.create(name="w")
    WorkflowVersion.objects.create(workflow=workflow, number=1, text="steps: []")
    Schedule.objects.create(
        workflow=workflow, user=person, cron="0 0 * * *", parameters={"text": WORDS}
    )
    LogEntry.objects.create(
        user=reviewer,
        content_type=ContentType.objects.get_for_model(Run),
        object_id="1",
        object_repr=f"#1 {WORDS[:60]}",
        action_flag=2,
        change_message=WORDS,
    )
    return run


@pytest.fixture
def answered(person, reviewer):
    """Create another user's run that asked the person, with its result."""
    run = create_ended_run(reviewer, "Ask somebody", "chat.77")
    about = {"run": run, "step": 2, "tool": "ask_person", "arguments": "{}", "call_id": "c-9"}
    Approval.objects.create(
        decided_by=person,
        verdict="approved",
        reason=ANSWER,
        new_arguments=json.dumps({"text": f"{ANSWER} as typed by hand"}),
        why="question",
        asked_at=run.started_at,
        **about,
    )
    heard = {"role": "tool", "tool_call_id": "c-9", "content": ANSWER}
    step(run, 2, action="ask_person", call_id="c-9", observation=ANSWER)
    step(run, 3, kind="thought", request={"messages": [heard]})
    resolved = {"step": 2, "by": person.pk, "by_name": "ada", "reason": ANSWER}
    add_events(
        run,
        ("approval_resolved", resolved | {"is_approved": True, "arguments": None}),
        ("tool_response", {"step": 2, "tool_call_id": "c-9", "content": ANSWER}),
        ("step", {"step": 2, "observation": ANSWER, "messages": [heard]}),
        ("step_started", {"step": 3, "request": {"messages": [heard]}}),
    )
    later = create_ended_run(
        reviewer, "And now?", "chat.77", [{"role": "user", "content": "x"}, heard]
    )
    said = {"tool": "ask_person", "arguments": {}, "observation": ANSWER}
    about = {"agent_name": "helper", "question": "Ask somebody", "observations": [said]}
    Example.objects.create(name="asked", run=later, **about)
    return run


def in_the_file(words):
    """Return the database files that contain these bytes.

    Another process reads them: closing a file also gives up SQLite's locks on it in this one.
    """
    name = Path(connection.settings_dict["NAME"])
    files = [name, name.with_name(f"{name.name}-wal")]
    return [file for file in files if file.exists() and words.encode() in _read(file)]


def _read(file):
    code = (
        "import pathlib, sys; sys.stdout.buffer.write(pathlib.Path(sys.argv[1]).read_bytes())"
    )
    command = [sys.executable, "-I", "-c", code, str(file)]
    return subprocess.run(command, capture_output=True, check=True, timeout=30).stdout


def numbers(run):
    return list(RunEvent.objects.filter(run=run).order_by("seq").values_list("seq", flat=True))


async def test_the_text_of_an_erased_user_is_nowhere(person, administrator, repeated, answered):
    before = {run.pk: await sync_to_async(numbers)(run) for run in (repeated, answered)}
    assert len(await sync_to_async(rows_with)(MARK)) > 30
    assert len(await sync_to_async(rows_with)(ANSWER)) > 7

    report = await erasure.erase(person, administrator)

    assert await sync_to_async(rows_with)(MARK) == []
    assert await sync_to_async(rows_with)(ANSWER) == []
    assert await sync_to_async(rows_with)("'ada'") == []
    assert {pk: await sync_to_async(numbers)(pk) for pk in before} == before
    assert all(b - a == 1 for seqs in before.values() for a, b in pairwise(seqs))
    assert (await sync_to_async(hash_chain.verify)()).holds
    if connection.vendor == "sqlite":
        assert report.storage == free_space.OVERWRITTEN
        assert in_the_file(MARK) == in_the_file(ANSWER) == []


def test_the_words_of_an_erased_users_documents_are_not_in_the_search_index(person):
    collection = Collection.objects.create(name="Own", owner=person)
    other = Collection.objects.create(name="Others")
    for number in range(3):
        text = f"The {MARK} leads to 鎌倉 in {number} hours."
        ingest_text(text, source=f"{number}.md", title="Way", collection=collection)
        ingest_text(f"Tea {number}", source=f"{number}.md", title="Tea", collection=other)

    erasure.begin(person, None)
    report = erasure.finish(person)

    if connection.vendor == "sqlite":
        assert report.storage == free_space.OVERWRITTEN
        assert in_the_file(MARK[10:]) == []  # a term is saved without what the last one had
    assert index_size() == 3


def index_size():
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM agents_chunk_index")
        return cursor.fetchone()[0]


def test_text_of_other_users_stays(person, administrator, repeated):
    call_command("erase_person", "ada", "--yes")

    run = Run.objects.get(pk=repeated.pk)
    assert run.answer == "You said: ‹…› Nice."
    assert run.history[0] == {"role": "user", "content": "‹…›"}
    assert run.history[1] == {"role": "assistant", "content": "Nice."}
    assert json.loads(run.steps.get(number=2).observation)["note"] == "‹…›"
    bits = run.events.filter(type="delta").order_by("seq")
    assert [bit.data["content"] for bit in bits] == ["You said: ‹…› Nice.", ""]
    assert Comment.objects.get(author=run.user).text == "> ‹…›"
    assert Example.objects.filter(run=None).get().name == "without a run"
    assert Run.objects.filter(user=run.user).count() == 2


def test_the_report_lists_what_was_found_where(person, administrator, repeated, capsys):
    call_command("erase_person", "ada", "--yes")

    said = capsys.readouterr().out
    entry = AuditEntry.objects.get(action=audit.PERSON_ERASED)
    assert entry.detail["removed"] | {"message": 3, "comment": 1} == entry.detail["removed"]
    assert entry.detail["replaced"]["runevent"] >= 10
    assert entry.detail["replaced"]["example"] == 2
    assert entry.detail["replaced"]["run"] == 3  # none of their own
    assert entry.detail["left"] == {}
    assert "Text removed from other users' data: " in said
    assert "examples (2)" in said


def test_text_in_agent_instructions_is_reported_and_kept(person, agent, repeated):
    agent.instructions = f"Be kind. {WORDS}"
    agent.save()

    report = erasure.finish(person)

    assert [(line.kind, line.count) for line in report.left] == [("agent", 1)]
    assert any("Edit them manually." in sentence for sentence in report.sentences)


COMMON = "What can you do for me today?"


def test_equal_text_of_another_user_is_kept(person, stranger):
    chat = conversation(stranger, COMMON)
    members.add_member(chat, "ada", "write")
    create_question(chat, person, COMMON)
    elsewhere = conversation(stranger, COMMON)

    call_command("erase_person", "ada", "--yes")

    assert Run.objects.get(topic=elsewhere.topic).query == COMMON
    assert Run.objects.get(topic=chat.topic).query == COMMON
    assert [message.text for message in Message.objects.all()] == [COMMON, COMMON]


def test_short_text_is_erased_only_in_the_users_own_rows(person, stranger):
    chat = conversation(stranger, "Shall we use it?")
    members.add_member(chat, "ada", "write")
    create_question(chat, person, "user")
    history = [{"role": "user", "content": "user"}, {"role": "assistant", "content": "user"}]
    run = create_question(chat, stranger, "And the user?", history=history)

    call_command("erase_person", "ada", "--yes")

    run.refresh_from_db()
    assert run.query == "And the user?"
    assert run.history == [
        {"role": "user", "content": "‹…›"},
        {"role": "assistant", "content": "user"},
    ]


@pytest.mark.parametrize(
    ("message", "answer", "left"),
    [
        ("PIN 4711", "It is PIN 4711, she said.", "It is ‹…›, she said."),
        ("user", "She said “user” of a user.", "She said “‹…›” of a user."),
        ("7F-12", '{"code": "7F-12", "rows": [7]}', '{"code": "‹…›", "rows": [7]}'),
        ("港区1-2", "住所は港区1-2です。", "住所は‹…›です。"),
        ("PIN 4711.", "She said “PIN 4711” and left.", "She said “‹…›” and left."),
        ("I live in Uji!", "You said “I live in Uji”.", "You said “‹…›”."),
        ("1234", "It has 12345 rows.", "It has 12345 rows."),
    ],
)
def test_a_short_message_is_erased_where_another_members_answer_quotes_it(
    person, stranger, message, answer, left
):
    chat = conversation(stranger, "What is it?")
    members.add_member(chat, "ada", "write")
    create_question(chat, person, message)
    run = create_question(chat, stranger, "What did she say?")
    Run.objects.filter(pk=run.pk).update(answer=answer)

    call_command("erase_person", "ada", "--yes")

    run.refresh_from_db()
    assert run.answer == left


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (
            "I live near the old harbour.",
            "The blue door is the one that squeaks at night.",
        ),
        ("古い港の近くに住んでいます。", "青い扉が夜になるときしみます。"),
    ],
)
def test_a_sentence_of_a_long_text_is_found_too(person, stranger, first, second):
    chat = conversation(stranger, "Where?")
    members.add_member(chat, "ada", "write")
    create_question(chat, person, f"{first} {second}")
    run = create_question(chat, stranger, "What did she say?")
    Run.objects.filter(pk=run.pk).update(answer=f"That “{second}”")

    call_command("erase_person", "ada", "--yes")

    run.refresh_from_db()
    assert run.answer == "That “‹…›”"


STAGES = [
    (quotations, "redact_deltas"),
    (quotations, "all_rows"),
    (erasure, "_anonymize_decisions"),
    (erasure, "_anonymize_feedback"),
    (erasure.membership, "leave_all"),
]


@pytest.mark.parametrize(("room", "stage"), one_in(4, STAGES))
def test_an_interrupted_erasure_is_completed_by_the_next(
    person, repeated, answered, monkeypatch, room, stage
):
    with monkeypatch.context() as patch:
        patch.setattr(room, stage, lambda *about: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            call_command("erase_person", "ada", "--yes")

    call_command("erase_person", "ada", "--yes")

    assert rows_with(MARK) == rows_with(ANSWER) == []


@pytest.mark.parametrize("text", ['a "b" \n c' * 6, "鎌倉の庭は秘密です。" * 5, "x\\ny" * 20])
def test_text_is_found_in_its_json_encoding(text):
    words = quotation_matcher.QuotationMatcher([text])
    value = json.dumps({"a": text, "b": json.dumps([text, "stays"])})

    left = words.without(value)

    assert json.loads(left)["a"] == "‹…›"
    assert json.loads(json.loads(left)["b"]) == ["‹…›", "stays"]


def test_many_long_texts_are_found_quickly():
    texts = [
        f"{number} is the number of this sentence, {uuid4().hex}." for number in range(3000)
    ]
    words = quotation_matcher.QuotationMatcher(texts)

    assert words.without(" ".join(texts[:2])) == "‹…› ‹…›"
    assert not words.matches("This sentence has no number at all. " * 10_000)


# Personal data that is deleted with its user or once it is used, or whose key is destroyed.
DELETED = {
    "auth.User": "password username first_name last_name email",
    "sessions.Session": "session_key session_data",
    "agents.AuditPerson": "token name key",
    "agents.CacheEntry": "key source value",
    "agents.Deletion": "kind object_id name rows",
    "agents.EmbedVisitor": "subject email digest",
    "agents.McpSignIn": "url tokens client metadata",
    "agents.McpSignInAttempt": "state next_url response error",
    "agents.ApiKey": "name prefix digest scopes",
    "agents.AuthorizationCode": "digest scopes redirect_uri challenge",
    "agents.DeviceCode": "digest user_code_digest scopes",
    "agents.OAuthGrant": "family_digest secret_digest scopes",
    "agents.Personalization": "chosen learned",
    "agents.ToolGrant": "agent_name digest topic",
    "people.Profile": "display_name skeleton language time_zone",
    "people.Visit": "way device address",
    "people.Authenticator": "secret",
    "people.Passkey": "name key_id public_key",
    "people.RecoveryCode": "digest",
    "people.Identity": "issuer subject",
    "chat.Folder": "name",
    "chat.ChatImport": "files sources problem lease",
    "chat.ImportResult": "source title problem file",
    "chat.ImportedChat": "source original_id",
    "chat.Prompt": "name",
    "agents.Collection": "name description topic",
    "people.Invitation": "digest email",
}
# Names, settings, states, digests and numbers: no users' text.
NO_WORDS = {
    "admin.LogEntry": "object_id",
    "auth.Permission": "name codename",
    "auth.Group": "name",
    "contenttypes.ContentType": "app_label model",
    "agents.DatabaseConnection": (
        "name file host database username password ca_certificate description tables "
        "last_error version powers schema"
    ),
    "agents.McpServer": (
        "name url command args folders env headers oauth_client_id oauth_client_secret "
        "oauth_client last_error"
    ),
    "agents.ToolRegistration": (
        "name description rerank_model definition pending endpoint headers"
    ),
    "agents.Agent": "name model roles fallback_models output_schema",
    # What an app says about itself.
    "agents.OAuthApp": (
        "client_id secret_digest auth_method name homepage redirect_uris grant_types"
    ),
    "agents.Membership": "topic",
    "agents.HiddenTopic": "topic",
    "agents.OutsideTextTopic": "topic",
    "agents.Workflow": "name description",
    "agents.Embed": "name public_id origins secret",
    "agents.Schedule": "cron accepted",
    "agents.Trigger": "public_id verification secret previous_secret",
    "agents.TriggerCall": "digest",
    "agents.Run": "topic agent_name model dialect route version owner step_types",
    "agents.Disconnection": "page",
    "agents.AgentTool": "description",
    "agents.Approval": "call_id agent_name tool digest role granted_scope",
    "agents.StoredFile": "digest mime_type",
    "agents.RunAttachment": "digest mime_type",
    "agents.AuditEntry": "action subject detail place key previous seal",
    "agents.AuditHead": "seal",
    "agents.PeriodicJob": "name problem result",
    "agents.BudgetCounter": "scope window",
    "agents.CacheGroup": "name",
    "agents.CacheUsage": "source",
    "agents.Sitemap": "fetch_problem url known",
    "agents.Document": (
        "fetch_problem title source url etag last_modified mime_type digest problem lease "
        "origin_key origin_version"
    ),
    "agents.DocumentSource": "lease name place secret problem place_version removed",
    "agents.AgentDraft": "marks",
    "agents.RunEvent": "type agent",
    "agents.Experience": "digest tools collections vector vector_model",
    "agents.StyleSignal": "value",
    "agents.GuardrailPattern": "name pattern message model",
    "agents.GuardrailHit": "agent_name",
    "agents.ConfigurationChange": "value",
    "agents.InstallationSetting": "key value",
    "agents.JobCrash": "kind",
    "agents.ModelConnection": (
        "name prefix base_url api_key api_version region secrets options listing"
    ),
    "agents.LanguageModel": ("label model options parameters abilities fallbacks last_test"),
    "agents.Memory": "digest reason vector vector_model",
    "agents.ModelGate": "model",
    "agents.ModelSlot": "key model",
    "agents.EmbeddingIndex": "model problem lease",
    "agents.ChunkVector": "vector",
    "agents.ServerProcess": "name version stalled_in mcp_instances",
    "agents.AgentStep": "agent_name call_id action failed_tool",
    # Addresses and secrets of programs, deleted with their runs.
    "agents.PushTarget": "name url token scheme credentials sent_status last_error",
    "agents.ReadingUsage": "digest model",
    "review.ReviewQueue": "name",
    "review.Criterion": "name about",
    "review.ExampleSet": "name description",
    "review.Example": "agent_name",
    "review.SavedView": "columns sort grouping",
    "review.ShareLink": "digest",
    "experiments.ExperimentResult": "lease",
    "experiments.Experiment": "spec judge_model rubric left_out problem",
    "dashboard.RunSummary": "topic agent_name model",
    "dashboard.ToolSummary": "tool call_histogram",
    "dashboard.ModelSummary": "model",
    "dashboard.TitleUsage": "model",
    "dashboard.DailyFigures": (
        "agent_name model tool active_histogram first_histogram call_histogram"
    ),
    "dashboard.DeletedFigures": (
        "agent_name model tool active_histogram first_histogram call_histogram"
    ),
    "problems.Problem": "fingerprint stage subject agent_name",
    "problems.ProblemTag": "value",
    "problems.ProblemChange": "details",
    "suggestions.Suggestion": "subject figures",
    "alerts.AlertChannel": "name addresses url secret previous_secret base_url events",
    "alerts.AlertRule": "name",
    "alerts.Delivery": "address last_error key",
    "alerts.SummarySchedule": "name",
    "people.Attempts": "key",
    "chat.ChatSession": "options",
    "chat.Invitation": "digest",
    "chat.Message": "agent_name options client_id",
    "chat.Attachment": "mime_type",
    "chat.PublicLink": "digest",
    "chat.ApiRequest": "key_digest digest",
}
TEXT_FIELDS = (
    *(models.CharField, models.TextField, models.JSONField),
    *(models.BinaryField, models.FileField),
)


def test_every_column_that_can_contain_text_is_declared_as_personal_or_not():
    """A new column of any app belongs to one of the four tables."""
    known = {
        f"{model._meta.label}.{name}"
        for table in (text_columns.TEXT_COLUMNS, text_columns.CONFIG_COLUMNS)
        for model, names in table.items()
        for name in names
    } | {
        f"{label}.{name}"
        for table in (DELETED, NO_WORDS)
        for label, names in table.items()
        for name in names.split()
    }
    columns = {
        f"{model._meta.label}.{field.name}"
        for model in apps.get_models()
        if model._meta.app_label != "procrastinate"  # its jobs have IDs of rows only
        for field in model._meta.local_concrete_fields
        if isinstance(field, TEXT_FIELDS) and not field.choices
    }

    assert columns - known == set()
    # Where users' text is erased, a column can also have choices.
    everything = {
        f"{m._meta.label}.{f.name}" for m in apps.get_models() for f in m._meta.fields
    }
    assert known - everything == set()
