"""OpenDocument, RTF, Outlook, notebooks, code, markup and charts become Markdown."""

import json

import pytest

from agents.knowledge import chunking, parsing
from agents.knowledge.parsing import parsers
from tests import document_files as files


def parse(data: bytes, name: str) -> parsing.ParsedDocument:
    return parsers.parse(parsers.SourceFile(data=data, name=name))


def text_of(data: bytes | str, name: str) -> str:
    data = data.encode() if isinstance(data, str) else data
    return "\n".join(part.text for part in parse(data, name).parts)


CITIES = "| City | Limit |\n| --- | --- |\n| 東京 | 12,000 |"


def test_an_opendocument_text_keeps_headings_lists_tables_and_notes() -> None:
    body = (
        '<text:h text:outline-level="1">Travel</text:h><text:p>Ask<text:s text:c="2"/>first'
        "<text:note><text:note-body><text:p>In writing.</text:p></text:note-body></text:note>"
        ".</text:p><text:list><text:list-item><text:p>one</text:p><text:list><text:list-item>"
        "<text:p>two</text:p></text:list-item></text:list></text:list-item></text:list>"
        "<table:table><table:table-row><table:table-cell><text:p>City</text:p>"
        "</table:table-cell><table:table-cell><text:p>Limit</text:p></table:table-cell>"
        "</table:table-row><table:table-row><table:table-cell><text:p>東京</text:p>"
        "</table:table-cell><table:table-cell><text:p>12,000</text:p></table:table-cell>"
        "</table:table-row></table:table>"
        "<text:tracked-changes><text:p>gone</text:p></text:tracked-changes>"
    )
    document = parse(files.odt(body), "a.odt")
    assert document.title == "Travel"
    assert document.parts[0].text == (
        f"# Travel\n\nAsk first[^1].\n\n- one\n  - two\n\n{CITIES}\n\n[^1]: In writing."
    )


def test_an_opendocument_presentation_has_slides_with_notes() -> None:
    body = (
        '<draw:page><draw:frame presentation:class="title"><draw:text-box><text:p>Plan</text:p>'
        "</draw:text-box></draw:frame><draw:frame><draw:text-box><text:p>First</text:p>"
        "</draw:text-box></draw:frame><presentation:notes><text:p>Say hello</text:p>"
        "</presentation:notes></draw:page>"
    )
    [slide] = parse(files.odt(body, "presentation"), "a.odp").parts
    assert (slide.kind, slide.label) == ("slide", "Plan")
    assert slide.text == "## Plan\n\nFirst\n\n**Notes:** Say hello"


def test_an_rtf_document_keeps_headings_tables_and_characters() -> None:
    data = (
        rb"{\rtf1\ansi\ansicpg932{\fonttbl{\f0\fcharset128 Mincho;}}"
        rb"{\stylesheet{\s1 heading 1;}}{\info{\title Policy}}\pard\s1 Travel\par\pard "
        rb"\u26481?\u20140? \f0\'93\'8c\'8b\'9e\par{\pict 0011}"
        rb"\trowd\pard\intbl City\cell Limit\cell\row"
        rb"\intbl Osaka\cell 150\cell\row\pard End\par}"
    )
    document = parse(data, "a.rtf")
    assert document.title == "Policy"
    assert document.parts[0].text == (
        "# Travel\n\n東京 東京\n\n| City | Limit |\n| --- | --- |\n| Osaka | 150 |\n\nEnd"
    )


def test_an_outlook_message_has_its_headers_body_and_attachments() -> None:
    data = files.outlook("出張", "The heron nests.", **{"a.csv": b"Day,Amount\nMonday,3"})
    document = parse(data, "a.msg")
    assert document.title == "出張"
    assert "**From:** Ann" in document.parts[0].text
    assert "The heron nests.\n\n**Attachments:** a.csv" in document.parts[0].text
    assert document.parts[1].label == "a.csv: a"


def test_a_notebook_has_its_text_its_code_and_what_it_printed() -> None:
    page = "<table><tr><th>City<th>Limit<tr><td>Osaka<td>150</table>"
    cells = [
        {"cell_type": "markdown", "source": ["# Herons\n", "They nest."]},
        {
            "cell_type": "code",
            "source": "print(1)",
            "outputs": [{"text": ["1\n"]}, {"data": {"text/html": page, "image/png": "x"}}],
        },
    ]
    book = {"cells": cells, "metadata": {"language_info": {"name": "python"}}}
    document = parse(json.dumps(book).encode(), "a.ipynb")
    assert document.title == "Herons"
    assert document.parts[0].text == (
        "# Herons\nThey nest.\n\n```python\nprint(1)\n```\n\n```\n1\n```\n\n"
        "| City | Limit |\n| --- | --- |\n| Osaka | 150 |"
    )


def test_passages_of_code_keep_functions_together() -> None:
    functions = [
        f"@cached\ndef heron_{n}(reeds):\n" + "    nest(reeds)\n" * 30 + f"    return {n}\n"
        for n in range(6)
    ]
    document = parse("\n\n".join(functions).encode(), "birds.py")
    chunks = chunking.split_parts(document.parts, title=document.title)
    assert (document.title, document.parts[0].label) == ("birds.py", "Python")
    for number in range(6):
        [chunk] = [chunk for chunk in chunks if f"def heron_{number}(" in chunk.text]
        assert f"return {number}\n" in chunk.text
        assert "```python" in chunk.text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "a.rst",
            "Travel\n======\n\n.. code-block:: sh\n\n   run it\n\n"
            "+------+--------+\n| City | Limit  |\n+======+========+\n| 東京 | 12,000 |\n"
            "+------+--------+\n",
        ),
        (
            "a.org",
            "* Travel\n#+begin_src sh\nrun it\n#+end_src\n"
            "| City | Limit |\n|------+-------|\n| 東京 | 12,000 |\n",
        ),
    ],
)
def test_markup_becomes_headings_code_and_tables(name: str, text: str) -> None:
    assert text_of(text, name) == f"# Travel\n\n```sh\nrun it\n```\n\n{CITIES}"


def test_latex_is_read_without_its_commands() -> None:
    text = (
        r"\documentclass{a}\title{Herons}\begin{document}\section{Travel} % not this" + "\n"
        r"A \emph{fine} day\cite{x}, 5\% off." + "\n"
        r"\begin{tabular}{l|r}\hline City & Limit \\ \hline 東京 & 12,000 \\ \end{tabular}"
        r"\end{document}"
    )
    document = parse(text.encode(), "a.tex")
    assert document.title == "Herons"
    assert document.parts[0].text == f"## Travel\n\nA fine day, 5% off.\n\n{CITIES}"


@pytest.mark.parametrize("folder", ["word", "ppt/slides"])
def test_a_chart_is_a_table_of_its_figures(folder: str) -> None:
    chart = files.chart({"2025": [1.5, 2], "2026": [3, 4]}, ["Osaka", "Berlin"])
    if folder == "word":
        links = {"word/_rels/document.xml.rels": files.rels(c1=("chart", "charts/c.xml"))}
        data = files.docx(files.paragraph("Costs"), **links, **{"word/charts/c.xml": chart})
        text = text_of(data, "a.docx")
    else:
        data = files.pptx("Costs", "", "", chart=chart)
        text = text_of(data, "a.pptx")
    table = "|  | 2025 | 2026 |\n| --- | --- | --- |\n| Osaka | 1.5 | 3 |\n| Berlin | 2 | 4 |"
    assert table in text


def test_a_chart_of_a_workbook_is_on_its_sheet() -> None:
    data = files.xlsx([["Costs"]], chart=files.chart({"2025": [1.5]}, ["Osaka"]))
    [sheet] = parse(data, "a.xlsx").parts
    assert "|  | 2025 |\n| --- | --- |\n| Osaka | 1.5 |" in sheet.text


def test_formulas_of_latex_keep_their_commands() -> None:
    text = text_of(
        r"Costs are \$5 \emph{each}: $x_1 = \frac{1}{2}$ \begin{align}a &= \{b\}\end{align}",
        "a.tex",
    )

    assert r"Costs are $5 each: $x_1 = \frac{1}{2}$" in text
    assert r"\begin{align}a &= \{b\}\end{align}" in text
