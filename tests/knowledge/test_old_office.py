"""Word and PowerPoint files from before 2007 are converted by LibreOffice, in a sandbox."""

import base64
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import psutil
import pytest

from agents.knowledge import parsing
from agents.knowledge.parsing import libreoffice, parsers
from agents.tools import sandbox
from tests import document_files as files

needs_libreoffice = pytest.mark.skipif(
    shutil.which("soffice") is None, reason="LibreOffice isn't installed"
)
OLD_WORD = files.compound({"WordDocument": b"heron"})
OLD_SLIDES = files.compound({"PowerPoint Document": b"heron"})
# It says in the converted file how it was started.
REPORT = """
import base64, io, json, os, pathlib, zipfile
folder = pathlib.Path(sys.argv[sys.argv.index("--outdir") + 1])
report = {
    "arguments": sys.argv[1:],
    "variables": sorted(os.environ),
    "settings": next(folder.glob("profile/user/*.xcu")).read_text(),
    "source": pathlib.Path(sys.argv[-1]).read_bytes().decode("latin-1"),
}
text = base64.b64encode(json.dumps(report).encode()).decode()
template = zipfile.ZipFile(io.BytesIO(base64.b64decode("TEMPLATE")))
with zipfile.ZipFile(folder / "document.docx", "w") as target:
    for name in template.namelist():
        target.writestr(name, template.read(name).decode().replace("heron", text))
""".replace("TEMPLATE", base64.b64encode(files.docx(files.paragraph("heron"))).decode())
Install = Callable[[str], None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Install a program of this code as LibreOffice, and no other one."""

    def install_program(code: str) -> None:
        programs = tmp_path / "programs"
        programs.mkdir()
        program = programs / "soffice"
        program.write_text(f"#!{sys.executable} -S\nimport sys\n{code}\n")
        program.chmod(0o700)
        monkeypatch.setenv("PATH", str(programs))

    return install_program


def parse(folder: Path, data: bytes = OLD_WORD, name: str = "Leave.doc") -> str:
    path = folder / "upload"
    path.write_bytes(data)
    document = parsing.parse(path, name, deadline=120)
    return "\n".join(part.text for part in document.parts)


def test_libreoffice_gets_the_file_its_reader_and_a_profile_of_its_own(tmp_path, install):
    install(REPORT)

    report = json.loads(base64.b64decode(parse(tmp_path)))

    assert report["source"].encode("latin-1") == OLD_WORD
    assert "--infilter=MS Word 97" in report["arguments"]
    assert "--headless" in report["arguments"]
    folder = report["arguments"][report["arguments"].index("--outdir") + 1]
    assert f"-env:UserInstallation=file://{folder}/profile" in report["arguments"]
    assert not Path(folder).exists()
    assert set(report["variables"]) <= {
        *("HOME", "LC_ALL", "LC_CTYPE", "PATH", "PYTHONDONTWRITEBYTECODE", "TMPDIR")
    }
    assert '"DisableMacrosExecution" oor:op="fuse"><value>true<' in report["settings"]


FAILURES = {
    "it writes nothing": "",
    "it fails": "sys.exit(1)",
    "it writes a link": "import os; os.symlink('/etc/hostname', TARGET)",
    "it writes a folder": "import os; os.mkdir(TARGET)",
    "it floods its output": "while True: print('x' * 100_000)",
}


@pytest.mark.parametrize("code", FAILURES.values(), ids=FAILURES)
def test_a_conversion_that_fails_is_said(tmp_path, install, code):
    target = "sys.argv[sys.argv.index('--outdir') + 1] + '/document.docx'"
    install(code.replace("TARGET", target))

    with pytest.raises(parsing.UnreadableDocument, match="LibreOffice can't convert"):
        parse(tmp_path)


@pytest.mark.parametrize(
    "data", [b"garbage" * 100, OLD_WORD, b""], ids=["text", "old", "empty"]
)
def test_what_libreoffice_wrote_is_a_file_like_any_other(tmp_path, install, data):
    install(
        f"open(sys.argv[sys.argv.index('--outdir') + 1] + '/document.docx', 'wb').write({data})"
    )

    with pytest.raises(parsing.UnreadableDocument, match="content is different|empty"):
        parse(tmp_path)


@pytest.mark.slow
def test_a_conversion_that_takes_too_long_is_killed_with_its_children(
    tmp_path, install, monkeypatch
):
    install("import os, time; os.fork(); time.sleep(60)")
    monkeypatch.setattr(libreoffice, "MAX_SECONDS", 1.0)

    with pytest.raises(parsing.UnreadableDocument, match="took longer than 1 s"):
        parse(tmp_path)
    running = psutil.Process().children(recursive=True)
    assert [child for child in running if child.status() != psutil.STATUS_ZOMBIE] == []


@pytest.mark.skipif(not sandbox.landlock_abi(), reason="the kernel has no Landlock")
def test_libreoffice_can_read_nothing_but_the_file(tmp_path, install):
    secret = tmp_path / "secret"
    secret.write_text("heron")
    install(f"open({str(secret)!r})")

    with pytest.raises(parsing.UnreadableDocument, match="LibreOffice can't convert"):
        parse(tmp_path)


def test_without_libreoffice_the_reason_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(parsing.UnreadableDocument, match="LibreOffice isn't installed"):
        parse(tmp_path, OLD_SLIDES, "Leave.ppt")


def test_an_old_file_in_an_email_is_named_with_the_reason():
    data = files.outlook("Leave", "Ten days", **{"plan.doc": OLD_WORD})
    document = parsers.parse(parsers.SourceFile(data=data, name="a.msg"))

    assert "'plan.doc' wasn't read. This file is in an old Microsoft" in document.notes[0]


def test_a_text_that_is_called_doc_is_a_text():
    source = parsers.SourceFile(data=b"Ten days", name="leave.doc")

    assert parsers.parse(source).parts[0].text == "Ten days"


@pytest.mark.parametrize(
    ("embedded", "parser"), [("Workbook", "old_office"), ("WordDocument", "spreadsheet")]
)
def test_what_is_embedded_in_a_file_doesnt_decide_its_type(embedded, parser):
    own = {"old_office": "WordDocument", "spreadsheet": "Workbook"}[parser]
    data = files.compound({f"ObjectPool/{embedded}": b"heron", own: "Book".encode("utf-16-le")})

    assert parsers.sniff(parsers.SourceFile(data=data, name="a")).parser == parser


MANIFEST = (
    '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">'
    '<manifest:file-entry manifest:full-path="/" manifest:media-type="{kind}"/>'
    '<manifest:file-entry manifest:full-path="content.xml" manifest:media-type="text/xml"/>'
    "</manifest:manifest>"
)


def in_old_format(folder: Path, data: bytes, ending: str) -> bytes:
    """Return an OpenDocument file as LibreOffice saves it in an old format."""
    with ZipFile(BytesIO(data)) as opened:
        entries = {name: opened.read(name) for name in opened.namelist()}
    manifest = MANIFEST.format(kind=entries["mimetype"].decode())
    path = folder / "made"
    path.write_bytes(files.archive({**entries, "META-INF/manifest.xml": manifest}))
    profile = f"-env:UserInstallation={(folder / 'profile').as_uri()}"
    arguments = [profile, "--headless", "--convert-to", ending, "--outdir", str(folder)]
    subprocess.run(
        ["soffice", *arguments, str(path)], check=True, timeout=120, capture_output=True
    )
    return path.with_suffix(f".{ending}").read_bytes()


@pytest.mark.thorough
@needs_libreoffice
def test_a_word_document_is_read_with_its_headings_and_tables(tmp_path):
    row = (
        "<table:table-row><table:table-cell><text:p>{}</text:p></table:table-cell>"
        "<table:table-cell><text:p>{}</text:p></table:table-cell></table:table-row>"
    )
    body = (
        "<text:h>旅費規程</text:h><text:p>Applies to everyone.</text:p><table:table>"
        '<table:table-column table:number-columns-repeated="2"/>'
        f"{row.format('City', 'Limit')}{row.format('東京', '12,000')}</table:table>"
    )
    data = in_old_format(tmp_path, files.odt(body), "doc")

    text = parse(tmp_path, data)

    assert "旅費規程\n\nApplies to everyone." in text
    assert "| City | Limit |\n| --- | --- |\n| 東京 | 12,000 |" in text
    for end in (600, len(data) // 2):
        with pytest.raises(parsing.UnreadableDocument, match="damaged"):
            parse(tmp_path, data[:end])


@pytest.mark.thorough
@needs_libreoffice
def test_slides_are_read_with_their_titles(tmp_path):
    box = "<draw:frame{}><draw:text-box><text:p>{}</text:p></draw:text-box></draw:frame>"
    title = box.format(' presentation:class="title"', "Leave")
    page = f"<draw:page>{title}{box.format('', 'Ten days')}</draw:page>"
    data = in_old_format(tmp_path, files.odt(page, "presentation"), "ppt")

    text = parse(tmp_path, data, "Leave.ppt")

    assert "Leave" in text
    assert "- Ten days" in text


@pytest.mark.slow
@needs_libreoffice
def test_what_libreoffice_cant_read_is_refused(tmp_path):
    with pytest.raises(parsing.UnreadableDocument, match="LibreOffice can't convert"):
        parse(tmp_path, OLD_SLIDES, "Leave.ppt")
