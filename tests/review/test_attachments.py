"""Files of a run: who can open them, and how safely."""

import io
import json
import zipfile
from hashlib import sha256

import pytest
from django.test import Client

from agents.knowledge.files import store
from agents.models import AgentStep, AuditEntry, RunAttachment
from agents.review import exports
from chat.people_data import data_export
from tests.conftest import as_user, select
from tests.pictures import png, wav
from tests.review.conftest import MAIL
from tests.review.test_sharing import link_url, share
from tests.sampling import one_in

pytestmark = pytest.mark.django_db(transaction=True)


def attach(run, data=None, mime_type="image/png", name=f"{MAIL}.png", **about):
    data = png() if data is None else data
    digest = sha256(data).hexdigest()
    about |= {"digest": digest, "mime_type": mime_type, "name": name, "size": len(data)}
    kind = mime_type.partition("/")[0]
    step = run.steps.get(number=1)
    ref = about | {"kind": kind if kind in {"image", "audio"} else "file"}
    AgentStep.objects.filter(pk=step.pk).update(attachments=[*step.attachments, ref])
    file = store.save(data, name=name, owner=None)
    return RunAttachment.objects.create(run=run, file=file, **about)


@pytest.fixture
def picture(personal_run):
    return attach(personal_run)


def url(row, run=None):
    return f"/traces/{row.run_id}/attachments/{row.digest}/"


def test_an_image_is_served_inert(picture, person):
    answer = as_user(person).get(url(picture))

    assert (answer.status_code, answer.content) == (200, png())
    assert answer.headers["Content-Type"] == "image/png"
    assert answer.headers["Content-Security-Policy"].startswith("sandbox; default-src 'none'")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Cache-Control"] == "private, no-cache"
    assert answer.headers["Content-Disposition"].startswith("inline; ")


@pytest.mark.parametrize("mime_type", ["image/svg+xml", "text/html", "application/pdf"])
def test_anything_else_is_downloaded(personal_run, person, mime_type):
    row = attach(personal_run, b"<script>alert(1)</script>", mime_type, 'a"b\r\n/../é.svg')

    answer = as_user(person).get(url(row))

    assert answer.headers["Content-Type"] == "application/octet-stream"
    disposition = answer.headers["Content-Disposition"]
    assert disposition.startswith(f'attachment; filename="attachment-{row.digest[:12]}.bin"')
    assert "\n" not in disposition


def test_an_unchanged_file_is_not_sent_again(picture, person, stranger):
    known = {"If-None-Match": f'"{picture.digest}"'}

    assert as_user(person).get(url(picture), headers=known).status_code == 304
    assert as_user(stranger).get(url(picture), headers=known).status_code == 404


@pytest.mark.parametrize(
    ("asked", "status", "found"),
    one_in(
        4,
        [
            ("bytes=0-3", 206, (0, 4)),
            ("bytes=4-", 206, (4, None)),
            ("bytes=-4", 206, (-4, None)),
            ("bytes=0-99999999", 206, (0, None)),
            ("bytes=99999999-", 416, (0, 0)),
            ("bytes=3-1", 416, (0, 0)),
            ("bytes=0-1,3-4", 200, (0, None)),
            ("lines=1", 200, (0, None)),
        ],
    ),
)
def test_a_range_of_an_audio_file_can_be_requested(personal_run, person, asked, status, found):
    row = attach(personal_run, wav(), "audio/wav", "a.wav")

    answer = as_user(person).get(url(row), headers={"Range": asked})

    assert (answer.status_code, answer.content) == (status, wav()[slice(*found)])


def test_a_reviewer_sees_no_file_before_unmasking(picture, auditor):
    client = as_user(auditor)
    page = client.get(f"/traces/{picture.run_id}/").text

    refused = client.get(url(picture))
    client.post(f"/traces/{picture.run_id}/unmask/", {"reason": "A complaint"})
    opened = client.get(url(picture))

    assert refused.status_code == 403
    assert picture.digest not in page
    assert "masked because it may contain personal data" in page
    assert (opened.status_code, opened.headers["Cache-Control"]) == (200, "no-store, private")


def test_only_a_link_that_shows_everything_shows_files(picture, person):
    client = as_user(person)

    for level, status in {"person": 404, "reviewer": 404, "auditor": 200}.items():
        link = link_url(share(client, picture.run, level))
        answer = Client().get(f"{link}attachments/{picture.digest}/")
        assert answer.status_code == status, level
        page = Client().get(link).text
        assert (f'src="attachments/{picture.digest}/"' in page) is (status == 200)

    assert answer.headers["Cache-Control"] == "no-store, private"
    assert AuditEntry.objects.filter(action="share.opened").exists()


def test_the_step_shows_an_image_a_player_and_a_file(picture, personal_run, person):
    attach(personal_run, wav(), "audio/wav", "voice.wav")
    attach(personal_run, b"%PDF", "application/pdf", "<b>report.pdf")
    page = as_user(person).get(f"/traces/{personal_run.pk}/steps/1/")

    [image] = select(page, ".attachments img")
    assert image.attributes["src"] == url(picture)
    assert image.attributes["loading"] == "lazy"
    assert select(page, '.attachments audio[controls][preload="none"]')
    [name] = select(page, ".attachments a[download] b")
    assert name.text() == "<b>report.pdf"


def test_an_attachment_that_could_not_be_saved_is_explained(personal_run, person):
    about = {"digest": "", "mime_type": "image/png", "size": 6_000_000, "name": "big.png"}
    ref = about | {"kind": "image", "problem": "too large to save (limit 5.0 MB)"}
    AgentStep.objects.update(attachments=[ref])

    page = as_user(person).get(f"/traces/{personal_run.pk}/steps/1/").text

    assert "too large to save (limit 5.0 MB)" in page
    assert "<img" not in page


def test_run_exports_list_files_and_data_exports_contain_them(picture, person):
    exported = json.loads("".join(exports.as_json(picture.run, is_masked=False)))
    masked = "".join(exports.as_json(picture.run, is_masked=True))
    archive = zipfile.ZipFile(io.BytesIO(b"".join(data_export.archive(person))))

    assert exported["steps"][0]["attachments"][0]["digest"] == picture.digest
    assert MAIL not in masked
    name = f"runs/{picture.run_id}-attachments/{picture.digest}.png"
    assert archive.read(name) == png()
