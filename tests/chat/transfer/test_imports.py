"""Imports run in the background, once per chat, and say what became of each."""

import errno
import io
import json
import zipfile
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from agents.access import audit
from agents.db import jobs as shared_jobs
from agents.metering import budgets
from agents.models import AuditEntry, GuardrailPattern, JobCrash, Run
from agents.review import exports
from chat.messages import history_screening, run_factory
from chat.models import (
    ChatImport,
    ChatSession,
    Filing,
    ImportedChat,
    ImportResult,
    Message,
)
from chat.people_data import erasure, retention
from chat.sessions import branches
from chat.sessions.listing import search
from chat.transfer.exports import chat_export
from chat.transfer.imports import archive, import_pages, jobs, rows, storage
from chat.transfer.imports.values import Problem

pytestmark = pytest.mark.django_db

EXPORTS = Path(__file__).parent / "exports"


@pytest.fixture(autouse=True)
def _own_folder(settings, tmp_path):
    settings.DATA_DIR = tmp_path


def upload_of(name, data=None):
    return SimpleUploadedFile(name, (EXPORTS / name).read_bytes() if data is None else data)


def zipped(**files):
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in files.items():
            packed.writestr(name, data)
    return target.getvalue()


def count(user, *uploads):
    job = jobs.create(user, list(uploads))
    jobs.work(job.pk)
    job.refresh_from_db()
    return job


def run_import(user, *uploads):
    """Upload, count, confirm and import."""
    job = count(user, *uploads)
    assert jobs.confirm(job), job.problem
    jobs.work(job.pk)
    job.refresh_from_db()
    return job


def outcomes(job):
    return [
        (result.outcome, result.title, result.problem)
        for result in ImportResult.objects.filter(chat_import=job).order_by("number")
    ]


def chat_named(title):
    return ChatSession.objects.get(title=title)


# The job


def test_chats_are_counted_before_anything_is_imported(person):
    job = count(person, upload_of("chatgpt.json"))

    assert (job.status, job.found, job.is_new) == ("ready", 2, 2)
    assert job.sources == {"ChatGPT": 2}
    assert outcomes(job) == [("skipped", "", "not_a_chat")]
    assert not ChatSession.objects.exists()


def test_each_chat_has_a_result(person):
    job = run_import(person, upload_of("chatgpt.json"))

    assert job.status == "done"
    assert outcomes(job) == [
        ("imported", "Mount Fuji", ""),
        ("imported", "名前のない会話です。", ""),
        ("skipped", "", "not_a_chat"),
    ]
    assert AuditEntry.objects.filter(action=audit.SESSIONS_IMPORTED).count() == 1
    assert not storage.folder(job.pk).exists()


def test_importing_the_same_export_again_changes_nothing(person):
    run_import(person, upload_of("chatgpt.json"))

    again = count(person, upload_of("chatgpt.json"))
    assert (again.found, again.is_new) == (2, 0)
    jobs.confirm(again)
    jobs.work(again.pk)

    assert [outcome for outcome, *_rest in outcomes(again)] == ["known", "known", "skipped"]
    assert ChatSession.objects.count() == 2


def test_a_deleted_chat_can_be_imported_again_and_others_have_their_own(person, stranger):
    run_import(person, upload_of("claude.json"))
    run_import(stranger, upload_of("claude.json"))
    assert ChatSession.objects.count() == 2

    ChatSession.objects.filter(user=person).update(deleted_at=timezone.now())
    run_import(person, upload_of("claude.json"))

    assert ChatSession.objects.present().filter(user=person).count() == 1


def test_several_files_and_products_at_once(person):
    names = ("librechat.json", "librechat_tree.json", "open_webui.json", "claude.json")

    job = run_import(person, *map(upload_of, names))

    assert job.sources == {"LibreChat": 2, "Open WebUI": 1, "Claude": 1}
    assert ImportedChat.objects.filter(user=person).count() == 4


def test_a_zip_is_read_with_its_numbered_files_only(person):
    chats = json.loads((EXPORTS / "chatgpt.json").read_bytes())
    files = {
        "export/conversations-000.json": json.dumps(chats[:1]),
        "export/conversations-001.json": json.dumps(chats[1:]),
        "export/user.json": json.dumps({"email": "someone@example.org"}),
        "export/message_feedback.json": "[]",
        "export/chat.html": "<html>",
        "../../etc/passwd.json": "[]",
    }

    job = run_import(person, upload_of("export.zip", zipped(**files)))

    assert job.sources == {"ChatGPT": 2}


def test_one_bad_chat_or_file_does_not_lose_the_rest(person):
    good = (EXPORTS / "claude.json").read_text().strip().removeprefix("[").removesuffix("]")
    mixed = f'[{{"mapping": oops}}, {good}, {{"chat_messages": []}}]'.encode()

    job = run_import(
        person,
        upload_of("notes.json", b"hello"),
        upload_of("broken.zip", b"PK\x03\x04 nothing"),
        upload_of("mixed.json", mixed),
    )

    assert [(outcome, problem) for outcome, _title, problem in outcomes(job)] == [
        ("failed", "not_json"),
        ("failed", "bad_zip"),
        ("failed", "broken"),
        ("imported", ""),
        ("skipped", "empty"),
    ]


def test_an_unexpected_error_affects_only_its_chat(person, monkeypatch):
    save = rows.save

    def fail_once(user, chat, conversation):
        if chat.title == "Mount Fuji":
            raise RuntimeError("disk")
        return save(user, chat, conversation)

    monkeypatch.setattr(rows, "save", fail_once)

    job = run_import(person, upload_of("chatgpt.json"))

    assert outcomes(job)[0] == ("failed", "Mount Fuji", "unexpected")
    assert outcomes(job)[1][0] == "imported"


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"hello", "not_json"),
        (b"[]", "no_chats"),
        (b'[{"x": 1}]', "not_a_chat"),
        (zipped(**{"readme.txt": "x"}), "no_chats"),
        (b"\xff\xfe[\x00]\x00", "not_json"),
    ],
)
def test_a_file_without_chats_fails_with_the_reason(person, person_client, data, problem):
    job = count(person, upload_of("x.json", data))
    page = person_client.get(f"/chats/import/{job.pk}/").text

    assert (job.status, job.problem, job.found) == ("failed", problem, 0)
    assert "Nothing was imported." in page
    assert not jobs.confirm(job)


def test_a_zip_bomb_ends_the_import(person, monkeypatch):
    monkeypatch.setattr(archive, "MAX_FILE_BYTES", 100_000)
    bomb = zipped(**{"conversations.json": "[" + " " * 10_000_000 + "]"})
    assert len(bomb) < 20_000

    assert count(person, upload_of("x.zip", bomb)).problem == Problem.TOO_MUCH


def test_brackets_without_end_are_not_read_to_their_end(person, monkeypatch):
    monkeypatch.setattr(archive, "MAX_SIGNS", 1_000)
    bomb = zipped(**{"conversations.json": "[" * 10_000})

    assert count(person, upload_of("x.zip", bomb)).problem == Problem.TOO_MUCH


def test_an_archive_with_too_many_entries_is_rejected(person, monkeypatch):
    monkeypatch.setattr(archive, "MAX_ENTRIES", 2)
    files = {f"{number}.json": "[]" for number in range(3)}

    assert count(person, upload_of("x.zip", zipped(**files))).problem == Problem.TOO_MANY_FILES


@pytest.mark.parametrize(("limit", "most"), [("MAX_ENTRIES", 2), ("MAX_DIRECTORY_BYTES", 100)])
def test_an_archive_with_a_large_directory_is_rejected_before_parsing(
    person, monkeypatch, limit, most
):
    upload = upload_of("x.zip", zipped(**dict.fromkeys("abc", "[]")))
    monkeypatch.setattr(archive, limit, most)
    monkeypatch.setattr(zipfile, "ZipInfo", crash)

    assert count(person, upload).problem == Problem.TOO_MANY_FILES


def test_an_import_resumes_after_a_crash(person, monkeypatch):
    job = count(person, upload_of("chatgpt.json"))
    jobs.confirm(job)
    monkeypatch.setattr(jobs, "_end", crash)
    with pytest.raises(SystemExit):
        jobs.work(job.pk)
    monkeypatch.undo()
    ImportResult.objects.filter(title__startswith="名前").delete()
    ChatSession.objects.filter(title__startswith="名前").delete()

    jobs.work(job.pk)
    assert ChatImport.objects.get().status == "running"  # its owner may still be alive
    ChatImport.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    for found in jobs.find_abandoned(timezone.now()):
        jobs.work(found.pk)

    assert ChatImport.objects.get().status == "done"
    assert [outcome for outcome, *_rest in outcomes(job)] == ["imported", "imported", "skipped"]
    assert ChatSession.objects.count() == 2


def crash(*_about):
    raise SystemExit


def test_an_import_with_missing_files_says_so(person):
    job = count(person, upload_of("chatgpt.json"))
    jobs.confirm(job)
    storage.delete(job.pk)
    ChatImport.objects.update(lease_until=timezone.now() - jobs.LOST_AFTER * 2)

    assert jobs.find_abandoned(timezone.now()) == []
    job.refresh_from_db()
    assert (job.status, job.problem) == ("failed", Problem.FILE_GONE)


def work_after_a_death(job):
    """Let the process of an import die, and another one continue."""
    ended = timezone.now() - timedelta(seconds=1)
    ChatImport.objects.update(lease="of the dead", lease_until=ended)
    for found in jobs.find_abandoned(timezone.now()):
        jobs.work(found.pk)
    job.refresh_from_db()


def test_an_import_that_keeps_failing_ends_with_an_error(person, monkeypatch):
    job = count(person, upload_of("chatgpt.json"))
    jobs.confirm(job)
    monkeypatch.setattr(jobs, "_import", lambda job: 1 / 0)

    for _ in range(jobs.MAX_ATTEMPTS):
        ChatImport.objects.update(lease_until=None)
        jobs.work(job.pk)

    job.refresh_from_db()
    assert (job.status, job.problem) == ("failed", Problem.UNEXPECTED)


def test_an_import_survives_any_number_of_dead_processes(person, monkeypatch):
    job = count(person, upload_of("chatgpt.json"))
    jobs.confirm(job)
    monkeypatch.setattr(jobs, "_import", crash)
    monkeypatch.setattr(shared_jobs, "isolate", lambda *claim: crash())
    for _ in range(5):
        with suppress(SystemExit):
            work_after_a_death(job)

    monkeypatch.undo()
    monkeypatch.setattr(
        shared_jobs, "isolate", lambda kind, pk, lease: jobs.work_claimed(pk, lease) or ""
    )
    work_after_a_death(job)
    assert job.status == "done"


def test_an_import_that_ends_its_own_process_twice_says_so(person, monkeypatch):
    job = count(person, upload_of("chatgpt.json"))
    jobs.confirm(job)
    monkeypatch.setattr(jobs, "_import", crash)
    monkeypatch.setattr(shared_jobs, "isolate", lambda *claim: "SIGKILL")

    with suppress(SystemExit):
        work_after_a_death(job)
    for _ in range(shared_jobs.MAX_CRASHES):
        work_after_a_death(job)

    assert (job.status, job.problem) == ("failed", Problem.CRASHED)


def test_a_stop_gives_an_import_back_and_the_next_process_continues(person, monkeypatch):
    job = count(person, upload_of("chatgpt.json"))
    jobs.confirm(job)
    save = rows.save

    def save_and_stop(*about):
        shared_jobs.stopping.set()
        return save(*about)

    monkeypatch.setattr(rows, "save", save_and_stop)
    jobs.work(job.pk)
    monkeypatch.setattr(rows, "save", save)
    shared_jobs.stopping.clear()
    job.refresh_from_db()
    assert (job.status, job.lease, ChatSession.objects.count()) == ("running", "", 1)

    for found in jobs.find_abandoned(timezone.now()):
        jobs.work(found.pk)
    job.refresh_from_db()
    assert (job.status, ChatSession.objects.count()) == ("done", 2)
    assert not JobCrash.objects.exists()


def test_a_canceled_import_stops_and_keeps_imported_chats(person, monkeypatch):
    job = count(person, upload_of("chatgpt.json"))
    jobs.confirm(job)
    save = rows.save

    def save_and_cancel(*about):
        session = save(*about)
        jobs.cancel(job)
        return session

    monkeypatch.setattr(rows, "save", save_and_cancel)
    jobs.work(job.pk)

    assert ChatImport.objects.get().status == "cancelled"
    assert ChatSession.objects.count() == 1
    assert not storage.folder(job.pk).exists()


def test_chats_that_retention_would_delete_are_not_imported(person, settings):
    settings.RUN_RETENTION_DAYS = 30

    job = count(person, upload_of("claude.json"))

    assert job.problem == Problem.OLD


# What was imported


def test_branches_times_and_the_visible_one_are_kept(person):
    run_import(person, upload_of("chatgpt.json"))
    chat = chat_named("Mount Fuji")

    first, feet, branch = chat.messages.order_by("pk")
    assert (first.parent, feet.parent, branch.parent) == (None, first, None)
    assert branches.visible_path(chat, person) == [first.pk, feet.pk]
    assert first.created_at.year == first.run.started_at.year == 2025
    assert chat.updated_at == feet.run.ended_at
    assert chat.created_at == first.created_at
    assert Filing.objects.get(session=chat).archived_at is not None


def test_an_imported_answer_says_where_it_comes_from_and_invents_nothing(person, person_client):
    run_import(person, upload_of("chatgpt.json"))
    run = chat_named("Mount Fuji").messages.order_by("pk")[0].run

    assert (run.agent_name, run.model, run.status) == ("ChatGPT", "o3", "completed")
    assert (run.agent, run.cost, run.prompt_tokens, run.seconds) == (None, None, 0, None)
    assert (run.is_imported, run.turns, run.tool_calls) == (True, 0, 0)
    assert [event.type for event in run.events.order_by("seq")] == [
        "run_started",
        "step",
        "step",
        "run_finished",
    ]
    steps = run.steps.values_list("kind", "thought")
    assert steps[0] == ("thought", "Recalling facts\nMount Fuji is in Japan.")
    page = person_client.get(f"/chat/{chat_named('Mount Fuji').pk}/").text
    assert '<span class="tag">imported</span>' in page
    assert "3,776 m" in page


def test_a_failed_answer_stays_failed_with_its_reason(person):
    run_import(person, upload_of("librechat.json"))
    run = Run.objects.order_by("pk").last()

    assert (run.status, run.detail) == ("failed", "The provider didn't answer.")


def test_every_page_of_an_imported_run_works(person, person_client):
    run_import(person, upload_of("chatgpt.json"))
    for run in Run.objects.all():
        for page in ("", "replay/", "steps/", "text/answer/", "share/"):
            assert person_client.get(f"/traces/{run.pk}/{page}").status_code == 200, (run, page)
        assert json.loads("".join(exports.as_json(run, is_masked=False)))["run"]["id"] == run.pk
        assert run.answer in "".join(exports.as_markdown(run, is_masked=False))
    for query in ("route:imported", "kind:thought source:imported"):
        found = person_client.get("/traces/", {"q": query}).text
        assert "ChatGPT" in found, query


def test_an_imported_chat_is_found_and_continued_on_the_visible_branch(person, agent):
    run_import(person, upload_of("chatgpt.json"))
    chat = chat_named("Mount Fuji")

    assert [found.row.pk for found in search.search(person, "12,388")] == [chat.pk]
    history = run_factory.history(chat, branches.visible_path(chat, person))
    assert [message["content"] for message in history][-2:] == [
        "[image]\nAnd in feet? 計算して",
        "12,388 ft.",
    ]
    assert "3.8 km" not in str(history)


def test_imported_texts_pass_the_guardrails_of_the_agent_that_answers(person, agent):
    run_import(person, upload_of("chatgpt.json"))
    chat = chat_named("Mount Fuji")
    for pattern, stage, action in (("feet", "input", "block"), ("12,388", "output", "mask")):
        row = GuardrailPattern.objects.create(
            name=f"no {stage}", pattern=pattern, stage=stage, action=action
        )
        row.agents.add(agent)

    path = branches.visible_path(chat, person)
    run = run_factory.prepare(chat, person, "6 * 7", agent, path)

    question, answer = (line["content"] for line in run.history[-2:])
    assert question == history_screening.QUESTION_LEFT_OUT
    assert "12,388" not in answer
    assert answer.endswith(" ft.")
    assert chat.messages.filter(text__contains="And in feet?").exists()


def test_imported_and_corrected_texts_are_judged_in_the_run(person, agent):
    run_import(person, upload_of("chatgpt.json"))
    chat = chat_named("Mount Fuji")
    path = branches.visible_path(chat, person)

    history = run_factory.prepare(chat, person, "6 * 7", agent, path).history

    assert all(message["is_unjudged"] for message in history)


def test_only_the_newest_imported_texts_are_checked_and_sent(person, agent, monkeypatch):
    run_import(person, upload_of("chatgpt.json"))
    chat = chat_named("Mount Fuji")
    path = branches.visible_path(chat, person)
    whole = run_factory.history(chat, path, agent)
    monkeypatch.setattr(run_factory, "MAX_SCREENED_CHARS", 60)

    shortened = run_factory.history(chat, path, agent)

    assert 0 < len(shortened) < len(whole)
    assert shortened == whole[-len(shortened) :]


def test_a_corrected_imported_message_passes_them_too(person, agent):
    run_import(person, upload_of("chatgpt.json"))
    chat = chat_named("Mount Fuji")
    first = chat.messages.order_by("pk")[0]
    GuardrailPattern.objects.create(name="t", pattern="tiger", action="mask").agents.add(agent)

    text, now = "Is a tiger there?", timezone.now()
    chat.messages.filter(pk=first.pk).update(text=text, edited_at=now)

    history = run_factory.history(chat, [first.pk], agent)
    assert "tiger" not in str(history)
    assert "there?" in history[0]["content"]


def test_our_own_export_comes_back_with_its_branches(person, stranger):
    run_import(person, upload_of("chatgpt.json"))
    chat = chat_named("Mount Fuji")
    exported = "".join(chat_export.as_json(chat, person)).encode()

    known = count(person, upload_of("mine.json", exported))
    assert (known.found, known.is_new) == (1, 0)
    run_import(stranger, upload_of("mine.json", exported))

    copy = ChatSession.objects.get(user=stranger)
    assert copy.title == "Mount Fuji"
    for one in (chat, copy):
        rows_ = one.messages.order_by("pk")
        places = {row.pk: at for at, row in enumerate(rows_)}
        assert [
            (places.get(row.parent_id), row.text, row.run.answer, row.run.model)
            for row in rows_
        ] == [
            (None, "How tall is Mount Fuji?", rows_[0].run.answer, "o3"),
            (0, "[image]\nAnd in feet? 計算して", "12,388 ft.", "gpt-4o"),
            (None, "How tall is Mount Fuji?", rows_[2].run.answer, "gpt-4o"),
        ]
    assert len(branches.visible_path(copy, stranger)) == 2


def test_null_characters_and_lone_surrogates_are_replaced(person):
    chats = json.loads((EXPORTS / "claude.json").read_bytes())
    chats[0]["name"] = "T\0itle \ud800"
    chats[0]["chat_messages"][0]["content"][0]["text"] = "Q\0 \udc00"

    run_import(person, upload_of("x.json", json.dumps(chats).encode()))

    assert Message.objects.get().text.startswith("Q ?")


# Pages and the life of the data


def test_the_pages_lead_from_the_upload_to_the_result(person, person_client, monkeypatch):
    monkeypatch.setattr(jobs, "start", lambda job: jobs.work(job.pk))

    answer = person_client.post("/chats/import/", {"files": [upload_of("chatgpt.json")]})
    page = person_client.get(answer.headers["Location"]).text
    assert "2 chats found." in page
    assert "Import 2 chats" in page

    person_client.post(f"{answer.headers['Location']}start/")
    page = person_client.get(answer.headers["Location"]).text
    assert "2 chats imported." in page
    assert "This isn&#x27;t a chat in a known format." in page
    filtered = person_client.get(f"{answer.headers['Location']}?outcome=skipped").text
    assert "Mount Fuji" not in filtered


def test_an_upload_needs_a_file_within_limits_and_no_other_import(
    person, person_client, settings
):
    assert "Choose a file first." in person_client.post("/chats/import/").text
    settings.IMPORT_MB = 0
    large = person_client.post("/chats/import/", {"files": [upload_of("claude.json")]})
    assert "larger than 0 MB" in large.text
    settings.IMPORT_MB = 5
    jobs.create(person, [upload_of("claude.json")])
    second = person_client.post("/chats/import/", {"files": [upload_of("claude.json")]})
    assert "Another import is still in progress." in second.text


def test_of_two_uploads_at_once_one_is_accepted(person, monkeypatch):
    """The lock is what the second one waits for, until the first is saved."""

    def wait(user):
        ChatImport.objects.create(user=user, files=["first.json"])

    monkeypatch.setattr(budgets, "lock_user", wait)

    with pytest.raises(jobs.ImportRejected, match="already_running"):
        jobs.create(person, [upload_of("claude.json")])


def test_every_problem_has_a_message():
    from chat.transfer.imports.import_pages import PROBLEMS

    assert set(PROBLEMS) == set(Problem)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES])
def test_only_a_full_disk_is_called_full_and_nothing_is_left(person_client, monkeypatch, code):
    def save(pk, files):
        storage.folder(pk).mkdir(parents=True)
        raise OSError(code, "Not saved")

    monkeypatch.setattr(storage, "save", save)
    page = person_client.post("/chats/import/", {"files": [upload_of("claude.json")]})

    assert page.status_code == 422
    assert page.context["problem"]
    is_full = page.context["problem"] == import_pages._rejection("disk_full")
    assert is_full == (code == errno.ENOSPC)
    assert not ChatImport.objects.exists()
    assert not [path for path in storage.folder(1).parent.iterdir() if path.is_dir()]


def test_files_and_results_are_deleted_after_a_while(person):
    done = run_import(person, upload_of("claude.json"))
    waiting = count(person, upload_of("chatgpt.json"))
    long_ago = timezone.now() - timedelta(days=40)
    ChatImport.objects.update(created_at=long_ago)
    ChatImport.objects.filter(pk=done.pk).update(ended_at=long_ago)

    retention.prune()

    assert list(ChatImport.objects.values_list("pk", "status")) == [(waiting.pk, "cancelled")]
    assert not storage.folder(waiting.pk).exists()


def test_an_erased_user_leaves_no_files(person, administrator):
    job = count(person, upload_of("claude.json"))
    assert storage.folder(job.pk).exists()

    erasure.begin(person, administrator)

    assert not storage.folder(job.pk).exists()
