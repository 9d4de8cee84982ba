"""Files of every format become Markdown, with the places that citations need."""

from collections.abc import Callable
from datetime import datetime
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import pytest
from PIL import Image

from agents.knowledge import parsing
from agents.knowledge.parsing import parsers
from agents.knowledge.parsing.parsers import html, ocr, pdf, sniffing, spreadsheet
from agents.knowledge.parsing.parsers.values import WorkLimit
from tests import document_files as files


def parse(data: bytes, name: str, mime_type: str = "") -> parsing.ParsedDocument:
    """Parse without a child process, which is faster."""
    return parsers.parse(parsers.SourceFile(data=data, name=name, mime_type=mime_type))


def text_of(data: bytes, name: str) -> str:
    return "\n".join(part.text for part in parse(data, name).parts)


SAMPLES: dict[str, Callable[[], bytes]] = {
    "pdf": lambda: files.pdf([[(12, "Ten days")]]),
    "docx": lambda: files.docx(files.paragraph("Ten days")),
    "pptx": lambda: files.pptx("Leave", "Ten days", ""),
    "odt": lambda: files.odt("<text:p>Ten days</text:p>"),
    "rtf": lambda: rb"{\rtf1 Ten days\par}",
    "old_office": lambda: files.compound({"WordDocument": b"Ten days"}),
    "outlook": lambda: files.outlook("Leave", "Ten days"),
    "markup": lambda: b"Leave\n=====\n\nTen days",
    "notebook": lambda: b'{"cells": [{"cell_type": "markdown", "source": "Ten days"}]}',
    "code": lambda: b"# Ten days\n",
    "spreadsheet": lambda: files.xlsx([["Ten days"]]),
    "delimited": lambda: b"Leave,Note\nTen days,paid\n",
    "epub": lambda: files.epub({"Leave": "Ten days"}),
    "html": lambda: b"<!doctype html><p>Ten days</p>",
    "mail": lambda: b"From: a@example.com\nTo: b@example.com\nSubject: Leave\n\nTen days",
    "markdown_file": lambda: b"# Leave\n\nTen days",
    "image": lambda: files.picture("Ten days"),
    "plain": lambda: b"Ten days",
}


@pytest.mark.parametrize("type", sniffing.TYPES, ids=lambda type: type.parser)
def test_every_type_is_recognized_and_parsed(type: sniffing.DocumentType) -> None:
    data = SAMPLES[type.parser]()

    for ending in type.endings:
        source = parsers.SourceFile(data=data, name=f"a{ending}", recognizes=False)
        assert sniffing.sniff(source) is type, ending
    if type in (sniffing.IMAGE, sniffing.BINARY_OFFICE):
        with pytest.raises((parsers.NeedsRecognition, parsers.NeedsConversion)):
            parsers.parse(source)
    else:
        assert "Ten days" in "\n".join(part.text for part in parsers.parse(source).parts)


def test_no_two_types_have_the_same_ending_or_content() -> None:
    for table, column in (
        (sniffing.BY_ENDING, "endings"),
        (sniffing.BY_MIME_TYPE, "mime_types"),
        (sniffing.BY_CONTENT, "contents"),
    ):
        assert len(table) == sum(len(getattr(type, column)) for type in sniffing.TYPES), column


def test_a_word_document_keeps_its_headings_lists_and_tables() -> None:
    body = (
        files.paragraph("Travel policy", "H1")
        + files.paragraph("Applies to everyone.")
        + files.paragraph("日当", "H2")
        + files.word_table([["City", "Limit"], ["東京", "12,000"]])
    )
    document = parse(files.docx(body), "a.docx")
    assert document.title == "Travel policy"
    assert document.parts[0].text == (
        "# Travel policy\n\nApplies to everyone.\n\n## 日当\n\n"
        "| City | Limit |\n| --- | --- |\n| 東京 | 12,000 |"
    )


def test_deleted_text_of_a_word_document_is_left_out() -> None:
    deleted = "<w:del><w:r><w:delText>gone</w:delText></w:r></w:del>"
    body = f"<w:p><w:r><w:t>kept</w:t></w:r>{deleted}</w:p>"
    assert text_of(files.docx(body), "a.docx") == "kept"


def test_a_slide_has_its_title_text_and_notes() -> None:
    [slide] = parse(files.pptx("Plan", "First step", "Say hello"), "a.pptx").parts
    assert (slide.kind, slide.number, slide.label) == ("slide", 1, "Plan")
    assert slide.text == "## Plan\n\n- First step\n\n**Notes:** - Say hello"


def test_every_group_of_rows_has_the_header() -> None:
    rows: list[list[str | float]] = [["Report"], ["Day", "Amount"]]
    rows += [[f"day {at}", float(at)] for at in range(40)]
    [sheet] = parse(files.xlsx(rows, "売上"), "a.xlsx").parts
    assert (sheet.kind, sheet.label) == ("sheet", "売上")
    assert sheet.text.count("| Day | Amount |") == 2
    assert "### Rows 3–27" in sheet.text
    assert "| day 39 | 39 |" in sheet.text


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (12345678901.25, "12345678901.25"),
        (0.1 + 0.2, "0.3"),
        (1e-7, "1e-07"),
        (3.0, "3"),
        (1e300, "1e+300"),
        (datetime(2026, 1, 2), "2026-01-02"),
        (datetime(2026, 1, 2, 3, 4), "2026-01-02 03:04"),
        (datetime(2026, 1, 2, 3, 4, 5), "2026-01-02 03:04:05"),
        (None, ""),
        (True, "TRUE"),
    ],
)
def test_values_of_cells_keep_what_they_say(value: object, expected: str) -> None:
    assert spreadsheet._format(value) == expected


def test_a_workbook_with_spaces_or_text_in_cells_of_numbers_is_read() -> None:
    with ZipFile(
        BytesIO(files.xlsx([["Day", "Amount"], ["Monday", 12.5], ["Tuesday", 7.25]]))
    ) as book:
        entries = {name: book.read(name) for name in book.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    entries[sheet] = (
        entries[sheet]
        .replace(b"<c><v>12.5</v>", b'<c r="B2" t="n"><v>  12.5 </v>')
        .replace(b"<c><v>7.25</v>", b'<c r="B3" t="n"><f>A1 &lt; 2</f><v>none &amp; more</v>')
    )

    text = text_of(files.archive(entries), "a.xlsx")

    assert "| Monday | 12.5 |" in text
    assert "| Tuesday | none & more |" in text


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp932", "euc_jp", "utf-16"])
def test_a_japanese_csv_file_is_read_in_any_encoding(encoding: str) -> None:
    data = "商品;価格\nりんごジュース;100\n".encode(encoding)
    assert "| りんごジュース | 100 |" in text_of(data, "a.csv")


def test_a_book_has_one_part_per_chapter() -> None:
    book = parse(files.epub({"One": "The heron.", "Two": "The stork."}), "a.epub")
    assert book.title == "A book"
    assert [(part.kind, part.label) for part in book.parts] == [
        ("chapter", "One"),
        ("chapter", "Two"),
    ]


def test_an_email_has_its_headers_body_and_attachments() -> None:
    lines = [
        b"From: Ann <ann@example.com>",
        b"Subject: =?utf-8?b?5Ye65by1?=",
        b"Content-Type: multipart/mixed; boundary=b",
        b"\r\n--b\r\nContent-Type: text/html; charset=iso-2022-jp\r\n",
        "<p>出張</p>".encode("iso2022_jp"),
        b"--b\r\nContent-Disposition: attachment; filename=a.csv\r\n",
        b"Day,Amount\r\nMonday,3",
        b"--b\r\nContent-Disposition: attachment; filename=b.zip\r\n",
        b"PK\x05\x06\r\n--b--\r\n",
    ]
    data = b"\r\n".join(lines)
    document = parse(data, "a.eml")
    assert document.title == "出張"
    assert "**From:** Ann <ann@example.com>" in document.parts[0].text
    assert "出張\n\n**Attachments:** a.csv, b.zip" in document.parts[0].text
    assert document.parts[1].label == "a.csv: a"
    assert "'b.zip' wasn't read" in document.notes[0]


def test_a_pdf_has_pages_headings_and_joined_lines() -> None:
    first = "有給休暇は入社六か月後に十日付与されます。申請は三営業日前までに、上長に提出"
    pages = [[(20, "Leave policy"), (13, first), (13, "してください。")], [(13, "Page 2.")]]
    document = parse(files.pdf(pages), "a.pdf")
    assert (document.title, document.pages) == ("Leave policy", 2)
    assert [part.number for part in document.parts] == [1, 2]
    assert document.parts[0].text.startswith("# Leave policy\n\n有給休暇は")
    assert "提出してください。" in document.parts[0].text


def test_an_encrypted_pdf_is_refused_with_a_reason() -> None:
    locked = files.pdf([[(10, "x")]], ENCRYPTED)
    with pytest.raises(parsing.UnreadableDocument, match="password-protected"):
        parse(locked, "a.pdf")


ENCRYPTED = (
    "/ID [<00112233445566778899aabbccddeeff> <00112233445566778899aabbccddeeff>] /Encrypt "
    "<< /Filter /Standard /V 1 /R 2 /P -44 /O <" + "ab" * 32 + "> /U <" + "cd" * 32 + "> >>"
)


@pytest.mark.thorough
def test_an_image_is_read_by_ocr() -> None:
    [page] = parse(files.picture("Invoice 4711 is due in March"), "a.png").parts
    assert page.is_recognized
    assert page.text == "Invoice 4711 is due in March"


@pytest.mark.slow
@pytest.mark.parametrize("size", [(1, 1), (2_000, 3), (3, 1_000)])
def test_a_tiny_or_narrow_image_has_no_text(size: tuple[int, int]) -> None:
    picture = BytesIO()
    Image.new("RGB", size, "white").save(picture, "PNG")
    with pytest.raises(parsing.UnreadableDocument, match="No text"):
        parse(picture.getvalue(), "a.png")


@pytest.mark.slow
def test_a_scanned_pdf_is_read_by_ocr() -> None:
    data = files.scanned_pdf(files.picture("The heron nests here", "JPEG"))
    [page] = parse(data, "a.pdf").parts
    assert (page.is_recognized, page.text) == (True, "The heron nests here")


def test_front_matter_names_a_markdown_file() -> None:
    document = parse(b"---\ntitle: Leave\n---\nTen days.", "a.md")
    assert (document.title, document.parts[0].text) == ("Leave", "Ten days.")


PAGE = """<!doctype html><html lang="ja"><head><title>休暇 | Handbook</title></head><body>
<nav><a href="/">Home</a></nav><div class="sidebar"><ul><li><a href="/a">A</a></ul></div>
<main><h1>休暇<a class="headerlink" href="#x">¶</a></h1>
<ul class="toc"><li><a href="#a">a</a></ul>
<p>有給休暇は
十日です。<script>alert(1)</script></p><h2>期限</h2><table><tr><th>種類<th>日数</tr>
<tr><td rowspan=2>有給<td>10</tr><tr><td>20</tr></table><pre>run
  it</pre><ul><li>one<ul><li>two</ul></ul></main><footer>© 2026</footer></body></html>"""


@pytest.mark.parametrize("encoding", ["utf-8", "cp932", "euc_jp"])
def test_a_page_is_its_main_content_in_any_encoding(encoding: str) -> None:
    document = parse(PAGE.encode(encoding, "xmlcharrefreplace"), "a.html")
    assert (document.title, document.language) == ("休暇", "ja")
    assert document.parts[0].text == (
        "# 休暇\n\n有給休暇は十日です。\n\n## 期限\n\n| 種類 | 日数 |\n| --- | --- |\n"
        "| 有給 | 10 |\n| 有給 | 20 |\n\n```\nrun\n  it\n```\n\n- one\n  - two"
    )


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<p>a<br>b</p>", "a\nb"),
        ("<dl><dt>Term<dd>Meaning</dl>", "**Term**\n\nMeaning"),
        ("<div>loose <b>bold</b> text<p>para</div>", "loose bold text\n\npara"),
        ("<ol><li>x<p>y</p><li>z</ol>", "1. x\n\n   y\n2. z"),
        ("<p># not a heading</p>", "\\# not a heading"),
        ("<p>use <code>a | b</code></p>", "use `a | b`"),
        ("<ruby>漢字<rt>かんじ</rt></ruby>を読む", "漢字を読む"),
        ("<p style='display: none'>secret</p>shown", "shown"),
        ("<table><tr><td>layout</table>", "layout"),
        ("<a href=/x><h3>Card</h3><p>Text</p></a>", "### Card\n\nText"),
        ("<header><h1>Title</h1></header><p>Body text.</p>", "# Title\n\nBody text."),
        ("<div class=sidebar><p>A note in a box.</p></div>x", "A note in a box.\n\nx"),
        ("<div id=_sharing_files_at_work><p>Section</p></div>", "Section"),
        ("<ul><li>one<p>loose</p>two</ul>", "- one\n\n  loose\n\n  two"),
        ("<ul>bare<li>one</ul>", "- bare\n- one"),
        ("<dl><dt>T<dd>D</dd><p>loose</dl>", "**T**\n\nD\n\nloose"),
        ("<table><tr><td><img><th>Tip<tr><td><td>Do it.</table>", "Tip\n\nDo it."),
        ("<html xmlns='http://www.w3.org/1999/xhtml'><a id='x'/><p>a</p><div/>b", "a\n\nb"),
        ("<p>x</p><ul><li><a href=n>Next</a></ul>", "x"),
        ("<table><tr><td>name<td>a text</table>", "| name | a text |\n| --- | --- |"),
        (f"<table><tr><td>left<td>{'x ' * 150}</table>", f"left\n\n{'x ' * 149}x"),
        ("<p>See <img alt='A map of Kyoto'>.</p><img alt=logo>", "See A map of Kyoto."),
        ("<details><summary>More</summary>text</details>", "More\n\ntext"),
        ("<figure><img><figcaption>A heron</figcaption></figure>", "A heron"),
    ],
)
def test_html_elements_become_markdown(page: str, expected: str) -> None:
    assert html.convert(page, WorkLimit()).text == expected


@pytest.mark.parametrize(
    ("title", "heading", "expected"),
    [
        ("Leave – Handbook", "Leave", "Leave"),
        ("Leave - Staff - Handbook", "Leave", "Leave - Staff"),
        ("Handbook", "Leave", "Leave"),
        ("Leave | Handbook", "", "Leave"),
        ("e-mail", "", "e-mail"),
    ],
)
def test_a_page_is_named_without_its_site(title: str, heading: str, expected: str) -> None:
    page = f"<title>{title}</title>" + (f"<h1>{heading}</h1>" if heading else "") + "<p>x"
    assert html.convert(page, WorkLimit()).title == expected


def test_the_child_process_returns_what_the_parser_found(
    tmp_path: Path, saved: Callable[[bytes], Path]
) -> None:
    reports: list[tuple[int, int]] = []
    path = saved(files.pdf([[(10, "One page")]] * 3))
    document = parsing.parse(path, "a.pdf", progress=lambda *now: reports.append(now))
    assert [part.text for part in document.parts] == ["One page"] * 3
    assert document.pages == 3
    assert reports


@pytest.fixture
def saved(tmp_path: Path) -> Callable[[bytes], Path]:
    def save(data: bytes) -> Path:
        path = tmp_path / "file"
        path.write_bytes(data)
        return path

    return save


@pytest.mark.thorough
def test_long_lines_and_japanese_are_recognized() -> None:
    scan = Path(__file__).with_name("scans") / "policy.png"
    [page] = parse(scan.read_bytes(), "policy.png").parts
    assert page.text.splitlines()[1:4] == [
        "東京都内の宿泊費は一泊あたり一万八千円を上限とします。",
        "領収書は帰着後七日以内に提出してください。",
        "Hotel costs in Berlin are limited to 180 euros per night, "
        "and taxi rides need a receipt.",
    ]


@pytest.mark.thorough
def test_a_phones_heic_image_is_read_by_ocr() -> None:
    photo = Path(__file__).with_name("scans") / "photo.heic"
    assert parse(photo.read_bytes(), "photo.heic").parts[0].text == "Invoice 4711"


@pytest.mark.parametrize("name", ["a.pdf", "a.png"])
def test_a_file_that_needs_ocr_says_so_when_that_is_not_wanted_now(name: str) -> None:
    picture = files.picture("The heron nests here", "JPEG")
    data = files.scanned_pdf(picture) if name == "a.pdf" else picture
    source = parsers.SourceFile(data=data, name=name.replace("png", "jpg"), recognizes=False)
    with pytest.raises(parsing.NeedsRecognition):
        parsers.parse(source)


def test_scanned_pages_that_were_not_read_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ocr, "recognize", lambda pixels: ocr.Recognition(text="The heron"))
    monkeypatch.setattr(pdf, "MAX_RECOGNIZED", 1)
    data = files.scanned_pdf(files.picture("The heron", "JPEG"), pages=3)
    document = parse(data, "a.pdf")
    assert document.notes == ["Only the first 1 of 3 scanned pages were read."]


@pytest.mark.parametrize("name", ["a.pdf", "a.jpg"])
def test_a_page_that_text_recognition_cant_read_is_refused(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    doubtful = ocr.Recognition(text="0 SLULUNENLENC", certainty=0.6)
    monkeypatch.setattr(ocr, "recognize", lambda pixels: doubtful)
    picture = files.picture("The heron", "JPEG")
    data = files.scanned_pdf(picture) if name == "a.pdf" else picture
    with pytest.raises(parsing.UnreadableDocument, match="60 %.*Latin letters, Japanese"):
        parse(data, name)


def test_pages_have_the_certainty_of_recognition_and_others_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pages = iter(
        [
            ocr.Recognition(text="The heron", certainty=0.97),
            ocr.Recognition(text="", certainty=0.1),
        ]
    )
    monkeypatch.setattr(ocr, "recognize", lambda pixels: next(pages))
    document = parse(files.scanned_pdf(files.picture("The heron", "JPEG"), pages=2), "a.pdf")
    assert [(part.number, part.certainty) for part in document.parts] == [(1, 97)]
    assert "2 (10 %)" in document.notes[0]
