"""Files made to do harm are refused with a sentence, or read without doing any."""

import re
import shutil
import struct
import time
import zlib
from collections.abc import Callable
from dataclasses import replace
from email.message import EmailMessage
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import psutil
import pytest

from agents import file_types
from agents.knowledge import parsing
from agents.knowledge.parsing import parsers, process
from agents.knowledge.parsing.parsers import archive, values
from tests import document_files as files
from tests.sampling import one_in

PASSWORDS = '<!DOCTYPE x [<!ENTITY x SYSTEM "file:///etc/passwd">]>'
LAUGHS = (
    '<!DOCTYPE x [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">'
    '<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">]>'
)


def parse(data: bytes, name: str) -> parsing.ParsedDocument:
    return parsers.parse(parsers.SourceFile(data=data, name=name))


def png(width: int, height: int, pixels: bytes = b"\0") -> bytes:
    """Return a PNG whose header claims these dimensions."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = chunk(b"IDAT", zlib.compress(pixels))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + body + chunk(b"IEND", b"")


def docx_with(document: str) -> bytes:
    return files.docx(**{"word/document.xml": document})


def nested_mail(depth: int) -> bytes:
    """Return a message in a message in a message."""
    head = b"From: a@b.c\nSubject: x\nMIME-Version: 1.0\nContent-Type: message/rfc822\n\n"
    return head * depth


def mail_with(count: int, data: bytes) -> bytes:
    """Return an e-mail that has the same attachment so many times."""
    mail = EmailMessage()
    mail["From"], mail["Subject"], mail["Message-ID"] = "a@b.c", "heron", "<1@b.c>"
    mail.set_content("The heron nests.")
    for number in range(count):
        mail.add_attachment(data, maintype="text", subtype="plain", filename=f"../{number}.txt")
    return mail.as_bytes()


def page_with(count: int, attribute: bytes) -> bytes:
    """Return a page with an element that has so many attributes."""
    listed = b" ".join(attribute % number for number in range(count))
    return b"<html><p " + listed + b">heron</p></html>"


def mail_typed(parameters: bytes) -> bytes:
    head = b"From: a@b.c\nSubject: heron\nMessage-ID: <1@b.c>\nMIME-Version: 1.0\n"
    return head + b"Content-Type: text/plain; " + parameters + b"\n\nheron\n"


def odt_with(content: str) -> bytes:
    return files.archive({"mimetype": file_types.ODT, "content.xml": content})


MESSAGE = files.outlook("heron", "heron")
REPEATED = (
    '<table:table><table:table-row table:number-rows-repeated="999999">'
    '<table:table-cell table:number-columns-repeated="999999"><text:p>heron</text:p>'
    "</table:table-cell></table:table-row></table:table>"
)


REFUSED: list[tuple[str, Callable[[], bytes], str]] = [
    ("an empty file", lambda: b"", "This file is empty."),
    ("a.pdf", lambda: b"not a PDF", "the content is different (text file)"),
    ("a.pdf", lambda: b"<html>%PDF-1.4 <script>alert(1)</script>", "damaged or incomplete"),
    ("a.html", lambda: b"<html>%PDF-1.4 <script>x</script>", "the content is different (PDF)"),
    (
        "a.png",
        lambda: b"<svg><script>alert(1)</script></svg>",
        "the content is different (text file)",
    ),
    ("a.gif", lambda: b"GIF89a=1;alert(1)//", "damaged or incomplete"),
    ("a.svg", lambda: b"<svg><script>alert(1)</script></svg>", "contains no text"),
    ("a.pdf.exe", lambda: b"MZ\x90\0", "Programs can't be read"),
    ("a.jpg", lambda: b"\x7fELF", "Programs can't be read"),
    ("a.zip", lambda: files.archive({"a.zip": files.archive({"b": b"x"})}), "Archives can't"),
    ("a.docx", lambda: files.archive({"../../x": b"x"}), "Archives can't"),
    ("a.tar.gz", lambda: b"\x1f\x8b\x08", "Archives can't"),
    ("a.docx", lambda: b"PK\x03\x04broken", "damaged or incomplete"),
    ("a.docx", lambda: files.docx("<w:p>"), "damaged or incomplete"),
    ("a.docx", lambda: docx_with(f"{PASSWORDS}<w>&x;</w>"), "document type declaration"),
    ("a.docx", lambda: docx_with(f"{LAUGHS}<w>&c;</w>"), "document type declaration"),
    ("a.docx", lambda: docx_with("<a>" * 1_000), "damaged or incomplete"),
    ("a.odt", lambda: odt_with(f"{PASSWORDS}<w>&x;</w>"), "document type declaration"),
    ("a.odt", lambda: odt_with(f"{LAUGHS}<w>&c;</w>"), "document type declaration"),
    ("a.odp", lambda: odt_with("<a>" * 1_000), "damaged or incomplete"),
    ("a.odt", lambda: files.archive({"mimetype": file_types.ODT}), "damaged or incomplete"),
    ("a.odt", lambda: files.odt(REPEATED * 3_000), "too many elements"),
    (
        "a.odt",
        lambda: files.odt(REPEATED.replace("<text:p>heron</text:p>", REPEATED)),
        "too many elements",
    ),
    (
        "a.rst",
        lambda: b"heron\n\n" + b"= " * 500 + b"=\n" + b"a\n" * 50_000,
        "too many elements",
    ),
    (
        "a.rtf",
        lambda: b"{\\rtf1" + b" a\\cell" * 500 + b"\\row" + b" a\\cell\\row" * 20_000,
        "too many elements",
    ),
    ("a.rtf", lambda: b"{\\rtf1" + b"{" * 100_000, "damaged or incomplete"),
    ("a.rtf", lambda: b"{\\rtf1{\\pict " + b"ab" * 1_000_000 + b"}}", "contains no text"),
    ("a.msg", lambda: MESSAGE[:600], "damaged or incomplete"),
    ("a.msg", lambda: MESSAGE[:30] + b"\xff" * 40 + MESSAGE[70:], "damaged or incomplete"),
    ("a.ipynb", lambda: b"[" * 1_000, "damaged or incomplete"),
    ("a.ipynb", lambda: b'{"cells": 1}', "contains no text"),
    ("a.html", lambda: b"<div>" * 100_000, "nested too deeply"),
    ("a.html", lambda: page_with(30_000, b"a%d"), "more than 500 attributes"),
    ("a.html", lambda: page_with(30_000, b"a%d='>'"), "more than 500 attributes"),
    ("a.eml", lambda: mail_typed(b"a=b; " * 20_000), "damaged or incomplete"),
    ("a.png", lambda: png(65_535, 65_535), "larger than 40 megapixels"),
    ("a.png", lambda: png(600, 600), "damaged or incomplete"),
    ("a.doc", lambda: file_types.OLE_MAGIC + b"\0" * 600, "damaged or incomplete"),
    ("a.doc", lambda: files.compound({"Contents": b"heron"}), "old Microsoft format"),
    ("a.doc", lambda: files.compound({"EncryptedPackage": b"x"}), "password-protected"),
    ("a.bin", lambda: bytes(range(256)) * 20, "isn't supported"),
    ("a.mp3", lambda: b"ID3\x04" + b"\0" * 100, "Audio and video"),
    ("a.pdf", lambda: files.pdf([[]]), "no text layer"),
    ("a.pdf", lambda: b"%PDF-1.4\n1 0 obj\n" + b"[" * 100_000, "damaged or incomplete"),
    ("a.epub", lambda: files.archive({"META-INF/container.xml": b"<a/>"}), "damaged"),
    ("a.heic", lambda: b"\0\0\0\x18ftypheic" + b"\xff" * 400, "damaged or incomplete"),
    ("a.avif", lambda: b"\0\0\0\x18ftypavif" + b"\0" * 400, "damaged or incomplete"),
    ("a.png", lambda: png(40, 40) + files.docx("heron"), "damaged or incomplete"),
    ("a.docx", lambda: png(40, 40) + files.docx("heron"), "the content is different (image)"),
    (
        "a.xlsx",
        lambda: files.docx(files.paragraph("heron")),
        "the content is different (Word document)",
    ),
]


@pytest.mark.parametrize(("name", "make", "reason"), one_in(2, REFUSED))
def test_a_hostile_file_is_refused_with_a_reason(
    name: str, make: Callable[[], bytes], reason: str
) -> None:
    data = make()
    began = time.process_time()
    with pytest.raises(parsing.UnreadableDocument, match=re.escape(reason)):
        parse(data, name)
    # Of CPU: a file of this size must not take a time that grows with its square.
    assert time.process_time() - began < 5


LONG_NAME = b"<html><p>heron</p><" + b"a" * 200_000
SCRIPT = b"<html><script>if (a<b c) {" + b"x " * 2_000 + b"}</script><p>heron</p>"
HERONS = files.pdf([[(10, "heron heron")]])
HARMLESS: list[tuple[str, Callable[[], bytes], str]] = [
    ("a.txt", lambda: b"<html><script>alert(1)</script><p>heron</p>", "heron"),
    ("a.svg", lambda: b"<html><p>heron<svg onload=alert(1)></svg>", "heron"),
    ("a.html", lambda: f"{PASSWORDS}<html><p>heron &x;</p>".encode(), "heron &x;"),
    ("a.csv", lambda: b'a,b\n"=HYPERLINK(""http://x"")",1\n', "=HYPERLINK"),
    ("a.csv", lambda: b"heron," * 1_000_000, "heron"),
    ("a.txt", lambda: "heron\u202e\U000e0041".encode(), "heron"),
    ("a.txt", lambda: "heron".encode("utf-16-le"), "heron"),
    ("a.pdf", lambda: HERONS + b"\n<script>alert(1)</script>", "heron"),
    ("a.pdf", lambda: HERONS.replace(b"startxref", b"startxxxx"), "heron"),
    ("a.msg", lambda: MESSAGE[:-512] + bytes(512), "heron"),
    ("a.rtf", lambda: b"{\\rtf1 heron" + b"{\\b x}" * 100_000, "heron"),
    ("a.rtf", lambda: b"{\\rtf1 heron" + b"\\s1" * 400_000, "heron"),
    ("a.rtf", lambda: b"{\\rtf1 heron\\bin99999999999 " + b"x" * 1_000, "heron"),
    ("a.tex", lambda: b"heron\n" + b"\\section{\\begin{tabular}" * 40_000, "heron"),
    ("a.rst", lambda: b"heron\n=====\n" + b"+--+\n|" * 40_000, "heron"),
    ("a.org", lambda: b"heron\n" + b"[[a][" * 100_000, "heron"),
    ("a.py", lambda: b"".join(b" " * n + b"if heron:\n" for n in range(1_500)), "heron"),
    ("a.ipynb", lambda: b'{"cells":[' + b'{"source":["heron"]},' * 9_999 + b"{}]}", "heron"),
    ("../../a.md", lambda: b"heron", "heron"),
    ("a.html", lambda: LONG_NAME, "heron"),
    ("a.html", lambda: SCRIPT, "heron"),
    ("a.html", lambda: page_with(400, b"a%d"), "heron"),
    ("a.eml", lambda: b"To: " + b"a@b.c," * 20_000 + b"\n" + mail_typed(b"a=b"), "heron"),
    ("a.eml", lambda: nested_mail(300), "**Subject:** x"),
    ("a.eml", lambda: mail_with(300, b"stork " * 10), "heron"),
]


@pytest.mark.parametrize(("name", "make", "text"), one_in(2, HARMLESS))
def test_a_hostile_file_is_read_without_harm(
    name: str, make: Callable[[], bytes], text: str
) -> None:
    document = parse(make(), name)
    written = "\n".join(part.text for part in document.parts)
    assert text in written
    assert "alert" not in written
    assert "root:" not in written
    assert len(written) < values.MAX_CHARS


def test_a_mark_of_our_own_in_a_file_is_no_table() -> None:
    text = b"\\begin{document}" + b"heron " * 20_000
    table = b"\\begin{tabular}{l} egret & 1 \\\\ ibis & 2 \\end{tabular}"
    [part] = parse(text + table + b"\0000\0 \000999\0", "a.tex").parts

    assert part.text.count("egret") == 1


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.py", b"def heron():\n" + b"  nest\n" * 100_000),
        ("a.org", b"* heron" + b" " * 100_000 + b"nest\n"),
    ],
)
def test_the_time_of_a_text_grows_with_its_length_only(name: str, data: bytes) -> None:
    started = time.process_time()

    assert "heron" in parse(data, name).parts[0].text
    assert time.process_time() - started < 5


def test_macros_are_ignored_and_said() -> None:
    data = files.docx(files.paragraph("heron"), **{"word/vbaProject.bin": b"x"})
    assert parse(data, "a.docm").notes == ["It contains macros, which were ignored."]


BOMBS = {
    "a.docx": lambda: files.docx(files.paragraph("x" * 300_000)),
    "a.pptx": lambda: files.pptx("x" * 300_000, "", ""),
    "a.xlsx": lambda: files.xlsx([["x" * 300_000]]),
    "a.odt": lambda: files.odt("<text:p>" + "x" * 300_000 + "</text:p>"),
    "a.epub": lambda: files.epub({"One": "<p>" + "x" * 300_000 + "</p>"}),
}


@pytest.mark.parametrize("name", BOMBS)
def test_what_unpacks_to_too_much_is_refused(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "MAX_BYTES", 200_000)
    with pytest.raises(parsing.UnreadableDocument, match="Unpacked, this file is larger"):
        parse(BOMBS[name](), name)


def repeated_epub(times: int) -> bytes:
    """Return a book whose list of chapters names the only one so many times."""
    with ZipFile(BytesIO(files.epub({"One": "<p>The heron nests.</p>"}))) as book:
        entries = {name: book.read(name) for name in book.namelist()}
    package = next(name for name in entries if name.endswith(".opf"))
    listed = re.sub(rb"(<itemref[^>]*/>)", lambda found: found[1] * times, entries[package])
    return files.archive({**entries, package: listed})


def repeated_pdf(times: int) -> bytes:
    """Return a PDF that has the same page so many times."""
    one = files.pdf([[(10, "The heron nests.")] * 20])
    more = re.sub(
        rb"/Kids \[(\d+ 0 R)\]", lambda m: b"/Kids [" + b"%s " % m[1] * times + b"]", one
    )
    return more.replace(b"/Count 1", b"/Count %d" % times)


def test_a_chapter_that_is_named_9000_times_is_read_once() -> None:
    [chapter] = parse(repeated_epub(9_000), "a.epub").parts
    assert chapter.text.count("heron") == 1


def work_of(data: bytes, name: str) -> int:
    source = parsers.SourceFile(data=data, name=name)
    parsers.parse(source)
    return values.MAX_STEPS - source.work.left


COUNTED: list[tuple[str, Callable[[int], bytes]]] = [
    ("a.docx", lambda n: files.docx(files.paragraph("heron") * n)),
    ("a.odt", lambda n: files.odt("<text:p>heron</text:p>" * n)),
    ("a.rtf", lambda n: b"{\\rtf1 " + b"heron\\par " * n),
    ("a.html", lambda n: b"<html>" + b"<p>heron</p>" * n),
    ("a.pdf", repeated_pdf),
    ("a.epub", lambda n: files.epub({f"{at}": "<p>heron</p>" * 9 for at in range(n)})),
]


@pytest.mark.parametrize(("name", "make"), COUNTED)
def test_the_work_of_a_file_is_counted_and_limited(
    name: str, make: Callable[[int], bytes]
) -> None:
    per_item = (work_of(make(40), name) - work_of(make(20), name)) / 20
    assert per_item > 0
    source = parsers.SourceFile(
        data=make(40), name=name, work=values.WorkLimit(int(per_item * 10))
    )
    if name == "a.pdf":
        document = parsers.parse(source)
        assert 0 < len(document.parts) < 12
        assert document.notes == [
            f"Only the first {len(document.parts)} of 40 pages were read."
        ]
        return
    with pytest.raises(parsing.UnreadableDocument, match="too many elements"):
        parsers.parse(source)


def test_a_claimed_size_is_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = archive.Archive(files.docx(files.paragraph("x" * 300_000)), values.WorkLimit())
    monkeypatch.setattr(opened, "_left", 100_000)
    with pytest.raises(parsing.UnreadableDocument, match="Unpacked, this file is larger"):
        opened.read("word/document.xml")


def test_a_pdf_that_contains_itself_ends() -> None:
    with pytest.raises(parsing.UnreadableDocument):
        parse(
            files.pdf([[(10, "The heron nests.")]]).replace(b"/Kids [4 0 R]", b"/Kids [2 0 R]"),
            "a.pdf",
        )


# The child process


@pytest.fixture
def parser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Replace the parsers in the child by code, and return a file for it."""

    def install(code: str) -> Path:
        folder = tmp_path / "program"
        (folder / "parsers").mkdir(parents=True)
        program = folder / process.PROGRAM.name
        shutil.copy(process.PROGRAM, program)
        shutil.copy(Path(parsers.__file__).with_name("values.py"), folder / "parsers")
        (folder / "parsers" / "__init__.py").write_text(
            "from .values import *\n"
            "def parse(source):\n    import os, socket, time\n"
            f"    {code}\n"
            "    return ParsedDocument(parts=[ParsedPart(text=str(found))])\n"
        )
        changed = replace(
            process.DOCUMENT_PARSER,
            program=str(program),
            readable=[str(folder), file_types.__file__],
            output_bytes=1_000_000,
        )
        monkeypatch.setattr(process, "DOCUMENT_PARSER", changed)
        path = tmp_path / "file.txt"
        path.write_text("heron")
        return path

    return install


def children() -> list[psutil.Process]:
    return psutil.Process().children(recursive=True)


ENDINGS = [
    ("bytearray(10**10)", "too much memory"),
    ("while True: pass", "took longer than 1 s"),
    ("time.sleep(60)", "took longer than 1 s"),
    ("os.abort()", "makes the parser crash"),
    ("os.kill(os.getpid(), 9)", "too much memory or time"),
    ("raise RuntimeError", "makes the parser crash"),
    ("f = lambda: f(); f()", "nested too deeply"),
    ("import signal; os.kill(os.getpid(), signal.SIGXCPU)", "too much memory or time"),
    ("while True: source.progress(1, 10**300)", "too much text"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("code", "reason"), one_in(2, ENDINGS))
def test_a_parser_that_gets_out_of_hand_is_ended(
    parser: Callable[[str], Path], code: str, reason: str
) -> None:
    path = parser(code)
    with pytest.raises(parsing.UnreadableDocument, match=re.escape(reason)):
        parsing.parse(path, "file.txt", deadline=1 if "longer" in reason else 20)
    assert children() == []


def test_a_canceled_parser_is_killed_with_its_children(parser: Callable[[str], Path]) -> None:
    class Canceled(Exception):
        pass

    def cancel(done: int, total: int) -> None:
        if done:
            raise Canceled

    path = parser("os.fork(); source.progress(1, 2); time.sleep(60)")
    with pytest.raises(Canceled):
        parsing.parse(path, "file.txt", progress=cancel)
    assert [child for child in children() if child.status() != psutil.STATUS_ZOMBIE] == []
