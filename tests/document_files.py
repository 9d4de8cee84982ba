"""Small files of many formats, made by hand so that tests need no other package."""

import io
import struct
import zipfile
from collections.abc import Mapping, Sequence

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
A = "http://schemas.openxmlformats.org/drawingml/2006/main"
P = "http://schemas.openxmlformats.org/presentationml/2006/main"
R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
S = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
RELS = "http://schemas.openxmlformats.org/package/2006/relationships"
TYPES = "http://schemas.openxmlformats.org/package/2006/content-types"
CONTENT_TYPES = (
    f'<Types xmlns="{TYPES}"><Default Extension="rels" ContentType="application/vnd.'
    'openxmlformats-package.relationships+xml"/><Default Extension="xml" '
    'ContentType="application/xml"/>'
    '<Override PartName="/xl/workbook.xml" ContentType="application/vnd.openxmlformats-'
    'officedocument.spreadsheetml.sheet.main+xml"/></Types>'
)


def archive(files: Mapping[str, str | bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as target:
        for name, content in files.items():
            target.writestr(name, content)
    return buffer.getvalue()


def rels(**targets: tuple[str, str]) -> str:
    each = "".join(
        f'<Relationship Id="{key}" Type="{R}/{kind}" Target="{target}"/>'
        for key, (kind, target) in targets.items()
    )
    return f'<Relationships xmlns="{RELS}">{each}</Relationships>'


def docx(body: str = "", **more: str | bytes) -> bytes:
    """Return a Word document; `body` is WordprocessingML."""
    styles = (
        f'<w:styles xmlns:w="{W}"><w:style w:styleId="H1"><w:name w:val="heading 1"/></w:style>'
        '<w:style w:styleId="H2"><w:name w:val="heading 2"/></w:style></w:styles>'
    )
    files = {
        "[Content_Types].xml": CONTENT_TYPES,
        "_rels/.rels": rels(r1=("officeDocument", "word/document.xml")),
        "word/document.xml": f'<w:document xmlns:w="{W}"><w:body>{body}</w:body></w:document>',
        "word/styles.xml": styles,
    }
    return archive({**files, **more})


def paragraph(text: str, style: str = "") -> str:
    about = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{about}<w:r><w:t>{text}</w:t></w:r></w:p>"


def word_table(rows: Sequence[Sequence[str]]) -> str:
    lines = ("".join(f"<w:tc>{paragraph(cell)}</w:tc>" for cell in row) for row in rows)
    return f"<w:tbl>{''.join(f'<w:tr>{line}</w:tr>' for line in lines)}</w:tbl>"


def pptx(title: str, text: str, notes: str, *, chart: str = "") -> bytes:
    def shape(kind: str, content: str) -> str:
        return (
            f'<p:sp><p:nvSpPr><p:nvPr><p:ph type="{kind}"/></p:nvPr></p:nvSpPr><p:txBody>'
            f"<a:p><a:r><a:t>{content}</a:t></a:r></a:p></p:txBody></p:sp>"
        )

    names = f'xmlns:p="{P}" xmlns:a="{A}" xmlns:r="{R}"'
    tree = "<p:cSld><p:spTree>{}</p:spTree></p:cSld>"
    return archive(
        {
            "[Content_Types].xml": CONTENT_TYPES,
            "_rels/.rels": rels(r1=("officeDocument", "ppt/presentation.xml")),
            "ppt/presentation.xml": f'<p:presentation {names}><p:sldIdLst><p:sldId id="256" '
            'r:id="r1"/></p:sldIdLst></p:presentation>',
            "ppt/_rels/presentation.xml.rels": rels(r1=("slide", "slides/slide1.xml")),
            "ppt/slides/slide1.xml": f"<p:sld {names}>"
            + tree.format(shape("title", title) + shape("body", text) + shape("sldNum", "1"))
            + "</p:sld>",
            "ppt/slides/_rels/slide1.xml.rels": rels(
                r1=("notesSlide", "../notes/n1.xml"), r2=("chart", "../charts/c.xml")
            ),
            **({"ppt/charts/c.xml": chart} if chart else {}),
            "ppt/notes/n1.xml": f"<p:notes {names}>"
            + tree.format(shape("body", notes))
            + "</p:notes>",
        }
    )


def xlsx(
    rows: Sequence[Sequence[str | float]], sheet: str = "Sheet1", *, chart: str = ""
) -> bytes:
    def cell(value: str | float) -> str:
        if isinstance(value, str):
            return f'<c t="inlineStr"><is><t>{value}</t></is></c>'
        return f"<c><v>{value}</v></c>"

    lines = ("".join(map(cell, row)) for row in rows)
    data = "".join(f'<row r="{at}">{line}</row>' for at, line in enumerate(lines, start=1))
    return archive(
        {
            "[Content_Types].xml": CONTENT_TYPES,
            "_rels/.rels": rels(r1=("officeDocument", "xl/workbook.xml")),
            "xl/workbook.xml": f'<workbook xmlns="{S}" xmlns:r="{R}"><sheets><sheet '
            f'name="{sheet}" sheetId="1" r:id="r1"/></sheets></workbook>',
            "xl/_rels/workbook.xml.rels": rels(r1=("worksheet", "worksheets/sheet1.xml")),
            "xl/worksheets/_rels/sheet1.xml.rels": rels(r1=("drawing", "../drawings/d.xml")),
            "xl/drawings/d.xml": "<drawing/>",
            "xl/drawings/_rels/d.xml.rels": rels(r1=("chart", "../charts/c.xml")),
            **({"xl/charts/c.xml": chart} if chart else {}),
            "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{S}"><sheetData>{data}</sheetData>'
            "</worksheet>",
        }
    )


def epub(chapters: Mapping[str, str], title: str = "A book") -> bytes:
    items = "".join(
        f'<item id="c{at}" href="c{at}.xhtml" media-type="application/xhtml+xml"/>'
        for at in range(len(chapters))
    )
    spine = "".join(f'<itemref idref="c{at}"/>' for at in range(len(chapters)))
    files = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:'
        'container"><rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>',
        "OEBPS/book.opf": '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://'
        f'purl.org/dc/elements/1.1/"><metadata><dc:title>{title}</dc:title></metadata>'
        f"<manifest>{items}</manifest><spine>{spine}</spine></package>",
    }
    for at, (name, text) in enumerate(chapters.items()):
        page = f"<html><body><h1>{name}</h1><p>{text}</p></body></html>"
        files[f"OEBPS/c{at}.xhtml"] = page
    return archive(files)


def pdf(pages: Sequence[Sequence[tuple[float, str]]], trailer: str = "") -> bytes:
    """Return a PDF; each page is lines of text with their size."""
    count = len(pages)
    kids = " ".join(f"{4 + at * 2} 0 R" for at in range(count))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {count} >>",
        "<< /Type /Font /Subtype /Type0 /BaseFont /HeiseiMin-W3 /Encoding /UniJIS-UCS2-H "
        "/DescendantFonts [<< /Type /Font /Subtype /CIDFontType0 /BaseFont /HeiseiMin-W3 "
        "/CIDSystemInfo << /Registry (Adobe) /Ordering (Japan1) /Supplement 2 >> "
        "/DW 1000 /W [1 [278 299 353 614 614] 231 632 500] "
        "/FontDescriptor << /Type /FontDescriptor /FontName /HeiseiMin-W3 /Flags 4 /FontBBox "
        "[-123 -257 1001 910] /ItalicAngle 0 /Ascent 857 /Descent -143 /CapHeight 709 "
        "/StemV 69 >> >>] >>",
    ]
    for at, lines in enumerate(pages):
        content, top = [], 760.0
        for size, text in lines:
            letters = text.encode("utf-16-be").hex()
            content.append(f"BT /F1 {size} Tf 60 {top} Td <{letters}> Tj ET")
            top -= size * 1.4
        stream = "\n".join(content)
        objects.append(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 "
            f"3 0 R >> >> /Contents {5 + at * 2} 0 R >>"
        )
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    return _assemble(objects, trailer)


def drawn_pdf(*pages: str, **more: str) -> bytes:
    """Return a PDF whose pages are these drawing operators; /F1 is Helvetica."""
    count = len(pages)
    kids = " ".join(f"{4 + number * 2} 0 R" for number in range(count))
    objects = [
        f"<< /Type /Catalog /Pages 2 0 R {more.get('catalog', '')} >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {count} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, content in enumerate(pages):
        objects.append(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 "
            f"3 0 R >> >> /Contents {5 + number * 2} 0 R {more.get('page', '')} >>"
        )
        objects.append(f"<< /Length {len(content)} >>\nstream\n{content}\nendstream")
    return _assemble([*objects, *filter(None, [more.get("object")])], "")


def text_at(x: float, y: float, text: str, size: float = 10) -> str:
    """Return the operators that write a text at a place, for `drawn_pdf`."""
    return f"BT /F1 {size} Tf {x} {y} Td ({text}) Tj ET\n"


def line_from(x: float, y: float, to_x: float, to_y: float) -> str:
    """Return the operators that draw a line, for `drawn_pdf`."""
    return f"{x} {y} m {to_x} {to_y} l S\n"


def _assemble(objects: Sequence[str], trailer: str) -> bytes:
    data, places = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, start=1):
        places.append(len(data))
        data += f"{number} 0 obj\n{each}\nendobj\n".encode("latin-1")
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    size = len(objects) + 1
    end = f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer\n"
    end += f"<< /Size {size} /Root 1 0 R {trailer} >>\nstartxref\n{len(data)}\n%%EOF\n"
    return data + end.encode()


def scanned_pdf(image: bytes, pages: int = 1) -> bytes:
    """Return a PDF whose pages are this JPEG of 1,200 by 400 pixels."""
    picture = (
        "<< /Type /XObject /Subtype /Image /Width 1200 /Height 400 /ColorSpace /DeviceRGB "
        f"/BitsPerComponent 8 /Filter /DCTDecode /Length {len(image)} >>\nstream\n"
        f"{image.decode('latin-1')}\nendstream"
    )
    draw = "600 0 0 200 0 0 cm /I Do"
    return _assemble(
        [
            "<< /Type /Catalog /Pages 2 0 R >>",
            f"<< /Type /Pages /Kids [{'3 0 R ' * pages}] /Count {pages} >>",
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 200] /Resources << /XObject "
            "<< /I 5 0 R >> >> /Contents 4 0 R >>",
            f"<< /Length {len(draw)} >>\nstream\n{draw}\nendstream",
            picture,
        ],
        "",
    )


def picture(text: str, kind: str = "PNG") -> bytes:
    """Return an image of a line of text, 1,200 by 400 pixels."""
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("RGB", (1200, 400), "white")
    font = ImageFont.load_default(size=56)
    ImageDraw.Draw(image).text((60, 150), text, fill="black", font=font)
    buffer = io.BytesIO()
    image.save(buffer, kind)
    return buffer.getvalue()


OFFICE = "urn:oasis:names:tc:opendocument:xmlns:"


def odt(body: str, kind: str = "text") -> bytes:
    """Return an OpenDocument file; `body` is what is in `office:text` or its like."""
    names = " ".join(
        f'xmlns:{name}="{OFFICE}{space}:1.0"'
        for name, space in {
            "office": "office",
            "text": "text",
            "table": "table",
            "draw": "drawing",
            "presentation": "presentation",
        }.items()
    )
    content = (
        f"<office:document-content {names}><office:body><office:{kind}>{body}"
        f"</office:{kind}></office:body></office:document-content>"
    )
    mime_type = f"application/vnd.oasis.opendocument.{kind}"
    return archive({"mimetype": mime_type, "content.xml": content})


CHART = "http://schemas.openxmlformats.org/drawingml/2006/chart"


def chart(series: Mapping[str, Sequence[float]], categories: Sequence[str]) -> str:
    """Return a bar chart whose figures are saved with it."""

    def points(values: Sequence[object]) -> str:
        return "".join(
            f'<c:pt idx="{number}"><c:v>{value}</c:v></c:pt>'
            for number, value in enumerate(values)
        )

    each = "".join(
        f"<c:ser><c:tx>{points([name])}</c:tx><c:cat>{points(categories)}</c:cat>"
        f"<c:val>{points(values)}</c:val></c:ser>"
        for name, values in series.items()
    )
    return f'<c:chartSpace xmlns:c="{CHART}"><c:barChart>{each}</c:barChart></c:chartSpace>'


def compound(streams: Mapping[str, bytes]) -> bytes:
    """Return a compound file, as Outlook writes; a stream's path has its folder."""
    folders = list(dict.fromkeys(name.split("/")[0] for name in streams if "/" in name))
    sectors: list[bytes] = []
    chains: list[int] = []

    def store(data: bytes) -> int:
        first = len(sectors)
        pieces = [data[at : at + 512].ljust(512, b"\0") for at in range(0, len(data), 512)]
        sectors.extend(pieces)
        chains.extend([*range(first + 1, first + len(pieces)), 0xFFFFFFFE])
        return first

    def entry(name: str, kind: int, sibling: int, child: int, start: int, size: int) -> bytes:
        raw = name.encode("utf-16-le")
        head = struct.pack("<64sHBBIII", raw, len(raw) + 2, kind, 1, 2**32 - 1, sibling, child)
        return head + struct.pack("<36xIQ", start, size)

    rows: list[tuple[str, int, str, bytes]] = [(name, 1, "", b"") for name in folders]
    for path, data in streams.items():
        folder, _slash, name = path.rpartition("/")
        rows.append((name, 2, folder, data))
    nowhere = 2**32 - 1

    def of_folder(folder: str) -> list[int]:
        return [number for number, row in enumerate(rows, start=1) if row[2] == folder]

    entries = [
        entry("Root Entry", 5, nowhere, next(iter(of_folder("")), nowhere), 2**32 - 2, 0)
    ]
    for number, (name, kind, folder, data) in enumerate(rows, start=1):
        later = [other for other in of_folder(folder) if other > number]
        child = next(iter(of_folder(name)), nowhere) if kind == 1 else nowhere
        start = store(data) if kind == 2 else 0
        entries.append(entry(name, kind, next(iter(later), nowhere), child, start, len(data)))
    directory = store(b"".join(entries))
    table = struct.pack("<128I", *[*chains, 0xFFFFFFFD, *[2**32 - 1] * 127][:128])
    head = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16)
    head += struct.pack("<HHHHH6x", 62, 3, 0xFFFE, 9, 6)
    head += struct.pack("<9I", 0, 1, directory, 0, 0, 2**32 - 2, 0, 2**32 - 2, 0)
    head += struct.pack("<109I", len(sectors), *[2**32 - 1] * 108)
    return head + b"".join([*sectors, table])


def outlook(subject: str, body: str, **attachments: bytes) -> bytes:
    streams = {
        "__properties_version1.0": bytes(32),
        "__substg1.0_0037001F": subject.encode("utf-16-le"),
        "__substg1.0_0C1A001F": "Ann".encode("utf-16-le"),
        "__substg1.0_1000001F": body.encode("utf-16-le"),
    }
    for number, (name, data) in enumerate(attachments.items()):
        folder = f"__attach_version1.0_#{number:08X}"
        streams[f"{folder}/__substg1.0_3707001F"] = name.encode("utf-16-le")
        streams[f"{folder}/__substg1.0_37010102"] = data
    return compound(streams)
