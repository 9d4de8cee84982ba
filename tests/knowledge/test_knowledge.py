import random
import re
from pathlib import PurePath

import pytest
from channels.db import database_sync_to_async
from django.core.management import call_command
from django.db import connection

from agents import knowledge
from agents.catalog.samples import sample_data
from agents.catalog.tools.search_library import ScopedLibrary
from agents.engine import fault_injection
from agents.engine.material import format_passages
from agents.knowledge import scope
from agents.knowledge.chunking import find_title
from agents.knowledge.retrieval import fts5
from agents.knowledge.retrieval.query import parse_query
from agents.knowledge.retrieval.tokenizer import MAX_TERMS
from agents.models import Chunk, Document
from agents.tools.search import SearchTool

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]

ENGLISH = [
    ("How do I stop a run?", "en/using.md", "How do I stop a run?"),
    ("Can I close the browser tab?", "en/using.md", "close the tab"),
    ("Where are traces?", "en/using.md", "see what the agent did"),
    ("what happens if the server restarts", "en/using.md", "server restarts"),
    ("How do I connect a real model?", "en/configuration.md", "connect a real model"),
    ("change port", "en/configuration.md", "port"),
    ("Where is my data stored?", "en/configuration.md", "Where is the data stored?"),
    ("ASHIATO_ORIGINS", "en/configuration.md", "other computers"),
    ("how can I add my own documents", "en/configuration.md", "add my own documents"),
    ("making backups", "en/configuration.md", "backup"),
    ("Where are my secrets kept?", "en/security.md", "Where are my secrets kept?"),
    ("Who can see my conversations?", "en/security.md", "Who can see"),
    ("are passwords hashed?", "en/security.md", "passwords"),
    ("what data leaves the machine", "en/security.md", "What leaves my machine?"),
    ("Can I change a tool without a restart?", "en/tools.md", "without a restart"),
    ("How many steps may a run take at most? limits", "en/tools.md", "limits"),
    ("RE2 pattern syntax", "en/tools.md", "Which syntax"),
    ("What happens when tools fail?", "en/tools.md", "when a tool fails"),
]
JAPANESE = [
    ("実行を停止するには？", "ja/using.md", "実行を停止"),
    ("タブを閉じたらどうなりますか", "ja/using.md", "タブを閉じ"),
    ("デモモデルとは何ですか？", "ja/using.md", "デモモデル"),
    ("トレースはどこで見られますか", "ja/using.md", "どこで見られますか"),
    ("本物のモデルを接続する方法を教えてください", "ja/configuration.md", "本物のモデル"),
    ("ポート番号を変更したい", "ja/configuration.md", "ポート番号"),
    ("データの保存場所は？", "ja/configuration.md", "データはどこ"),
    ("ASHIATO_MODEL_DISCOVERY とは", "ja/configuration.md", "自動検出"),
    ("ｱｼｱﾄのバックアップ", "ja/configuration.md", "バックアップ"),
    ("秘密鍵はどこにありますか", "ja/security.md", "秘密情報"),
    ("鍵", "ja/security.md", "秘密情報"),
    ("会話は誰に見られますか？", "ja/security.md", "誰に見られ"),
    ("パスワードの保存", "ja/security.md", "パスワードはどのように"),
    ("外部に送信されるものはありますか", "ja/security.md", "外部に送信"),
    ("再起動しないでツールを変えられる？", "ja/tools.md", "再起動せずに"),
    ("実行の上限を教えて", "ja/tools.md", "実行の上限"),
    ("正規表現の構文", "ja/tools.md", "構文"),
    ("計算機で何ができる？", "ja/tools.md", "計算機"),
]


@pytest.fixture(autouse=True)
def _words_only(settings):
    """Full text alone: what vectors add is tested in test_retrieval.py."""
    words_only = {"embedding_model": "off"}
    settings.ENVIRONMENT = settings.ENVIRONMENT.model_copy(update=words_only)


def search(query, top_k=5):
    """Return what has any of the words, however few."""
    return knowledge.find(query, top_k, scope=scope.open_to_everyone(), minimum=0).passages


@pytest.fixture
def handbook():
    return sample_data.ingest_handbook()


# Each of these asks one handbook many things: to take it in is most of the work.


def test_a_question_finds_its_section_of_the_handbook(handbook):
    for question, source, heading in ENGLISH + JAPANESE:
        passages = search(question)
        found = [("/".join(PurePath(p.path).parts[-2:]), p.heading) for p in passages]

        assert any(s == source and heading in h for s, h in found), (question, found)


NOTHING = [
    *("", "  \n", '"', "*", "- ( ) : ^", "\x00\ud800", "%"),
    *("what is the", "それは何ですか？"),
]


def test_a_query_without_terms_finds_nothing(handbook):
    assert [query for query in NOTHING if search(query)] == []


OPERATORS = [
    *('stop"', "stop*", "title:stop", "NEAR(stop run, 2)", "-stop", "stop'); --", "{stop}"),
    "ｓｔｏｐ",
]


def test_operators_in_a_query_are_plain_words(handbook):
    missed = [
        query
        for query in OPERATORS
        if not any("stop a run" in passage.heading for passage in search(query))
    ]

    assert missed == []


def test_a_huge_query_is_limited_to_its_first_terms(handbook):
    query = "stop " + " ".join(f"word{n}" for n in range(12_000))

    assert len(parse_query(query).groups) == MAX_TERMS
    assert knowledge.find(query, scope=scope.everything()).candidates


def test_a_search_returns_the_requested_number_of_passages(handbook):
    assert len(search("model", top_k=2)) == 2
    assert len(search("model")) == 5
    assert search("model", top_k=0) == []


def test_a_passage_with_every_term_ranks_above_one_with_a_frequent_term():
    for n in range(10):
        knowledge.ingest_text("A stork nests here.", source=f"stork {n}", title="Birds")
    knowledge.ingest_text("heron " * 50, source="often", title="Birds")
    knowledge.ingest_text(f"{'filler ' * 80} heron nests here.", source="both", title="Birds")

    found = search("heron nest")

    assert [passage.name for passage in found[:2]] == ["both", "often"]


def test_rare_terms_weigh_more_than_common_ones():
    for n in range(10):
        knowledge.ingest_text("A stork nests here.", source=f"stork {n}", title="Birds")
    knowledge.ingest_text("A heron sits here.", source="heron", title="Birds")

    assert search("nesting herons")[0].name == "heron"


@pytest.mark.parametrize(
    "better",
    [
        "## Heron\n\nIt nests here. A stork sits there.",
        "A heron nests. A heron sits.",
        "A heron.",
    ],
    ids=["in its heading", "twice", "and little else"],
)
def test_passages_rank_by_frequency_length_and_title(better):
    knowledge.ingest_text(
        "A heron nests here. A stork sits there.", source="plain", title="Birds"
    )
    knowledge.ingest_text(better, source="better", title="Birds")

    assert [passage.name for passage in search("heron")] == ["better", "plain"]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Caf\u00e9 au lait", "CAFE"),
        ("A cafe", "cafe\u0301"),
        ("It is said once, and no more.", "once"),
        ("It's the heron's nest", "heron"),
        ("see en/using.md:12 and a@example.org", "example"),
        ("from 192.168.1.10 on", "192.168.1.10"),
        ("\U00010330" * 1_100, "\U00010330" * 1_100),
        ("あいうえおかきくけこ" * 100, "あいうえおかきくけこ" * 100),
        ("ガギグ", "ｶﾞｷﾞｸﾞ"),
    ],
)
def test_a_word_is_found_in_any_spelling(text, query):
    knowledge.ingest_text(text, source="a.md", title="A")

    assert [passage.text for passage in search(query)] == [text]


@pytest.mark.parametrize("query", ["blue_heron", "heron_blue", "blue_nests", "とうあり"])
def test_the_parts_of_a_word_must_be_adjacent(query):
    knowledge.ingest_text(
        "## Heron\n\nNests. A heron is blue. ありがとう", source="a", title="Blue"
    )

    assert search(query) == []
    assert search("is_blue") != []


@pytest.mark.parametrize(("query", "language"), [("HOST PORT", "en"), ("HOST と PORT", "ja")])
def test_a_passage_in_the_language_of_the_question_comes_first(handbook, query, language):
    assert Document.objects.get(pk=search(query)[0].document).language == language


@pytest.mark.parametrize(
    "source", ["/srv/secret/place/manual.md", "docs/manual.md", "C:\\secret\\manual.md"]
)
def test_a_passage_does_not_reveal_the_server_path(source):
    knowledge.ingest_text(
        "# Manual\n\nThe heron is under the mat.", source=source, title="ignored"
    )

    [passage] = search("herons")

    assert format_passages([passage]).startswith("[1] Manual (manual.md #1)\n")


def test_a_passage_names_its_section():
    text = "# Manual\n\n## Security\n\n### Secrets\n\nThe heron is under the mat.\n"
    knowledge.ingest_text(text, source="manual.md", title="ignored")

    [passage] = search("herons")

    assert (passage.title, passage.name, passage.ordinal) == ("Manual", "manual.md", 1)
    assert passage.heading == "Security › Secrets"
    assert passage.text == "The heron is under the mat."


@pytest.mark.django_db(transaction=True)
async def test_the_search_tool_searches_the_documents():
    await database_sync_to_async(knowledge.ingest_text)(
        "The heron nests.", source="a.md", title="A"
    )

    result = await SearchTool(ScopedLibrary()).execute("heron")

    assert "The heron nests." in result.output
    assert "a.md" in result.output


def test_a_document_ingested_twice_is_stored_once(handbook):
    before = Chunk.objects.count()

    again = sample_data.ingest_handbook()

    assert {done.outcome for done in handbook} == {"added"}
    assert {done.outcome for done in again} == {"unchanged"}
    assert Chunk.objects.count() == before == rows_in_index()


def test_a_changed_file_replaces_the_old_version(tmp_path):
    file = tmp_path / "note.md"
    file.write_text("The heron nests in the reeds.\n\n# Later\n\nIt leaves in autumn.")
    knowledge.ingest(file)
    file.write_text("The stork nests on the roof.")

    done = knowledge.ingest(file)

    assert done.outcome == "updated"
    assert search("heron") == []
    assert [passage.text for passage in search("stork")] == [file.read_text()]
    assert Document.objects.count() == Chunk.objects.count() == rows_in_index() == 1


def test_a_deleted_document_is_gone_from_the_index(handbook):
    Document.objects.all().delete()

    assert rows_in_index() == 0
    assert search("stop a run") == []


def flush():
    """Flush the database; PostgreSQL refuses to truncate the audit log."""
    if connection.vendor == "sqlite":
        call_command("flush", interactive=False, verbosity=0)
    else:
        connection.ops.execute_sql_flush(["TRUNCATE agents_document RESTART IDENTITY CASCADE"])


def test_words_of_deleted_passages_leave_the_index_whatever_its_parts_are():
    """SQLite 3.53 keeps them when it merges parts of which an upper level is empty."""
    if connection.vendor != "sqlite":
        pytest.skip("PostgreSQL's vacuum removes them")
    numbers = random.Random(0)
    columns = "rowid, title, heading, terms"
    insert = f"INSERT INTO agents_chunk_index ({columns}) VALUES (%s, '', '', %s)"
    with connection.cursor() as cursor:
        for rowid in range(1, 226):
            words = [f"{numbers.randrange(10**6):x}" for _ in range(30)]
            cursor.execute(insert, [rowid, " ".join(words)])
        cursor.execute("DELETE FROM agents_chunk_index")
        for rowid in range(1, 7):
            cursor.execute(insert, [rowid, "markmark" if rowid % 2 else "tea"])
        cursor.execute("DELETE FROM agents_chunk_index WHERE rowid % 2 = 1")

        assert fts5.drop_deleted_words()

        cursor.execute("SELECT block FROM agents_chunk_index_data")
        assert not any(b"arkmark" in bytes(block) for (block,) in cursor.fetchall())
        cursor.execute("DELETE FROM agents_chunk_index")


@pytest.mark.django_db(transaction=True)
def test_index_entries_of_a_flushed_database_are_not_found():
    herons = "\n\n".join(f"# Nest {n}\n\nA heron." for n in range(100))
    knowledge.ingest_text(herons, source="herons.md", title="Herons")
    flush()
    knowledge.ingest_text("The stork nests.", source="storks.md", title="Storks")

    found = search("nest")

    assert [passage.name for passage in found] == ["storks.md"]
    assert search("heron") == []


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "shift_jis", "cp932", "euc_jp"]
)
def test_japanese_is_read_in_its_usual_encodings(tmp_path, encoding):
    text = "# 就業規則\n\n有給休暇は年に二十日です。カタカナとABCも混ざります。\n"
    file = tmp_path / "rules.md"
    file.write_bytes(text.replace("\n", "\r\n").encode(encoding))

    assert knowledge.read_file(file) == text
    assert knowledge.ingest(file).document.language == "ja"


@pytest.mark.parametrize("encoding", ["cp932", "euc_jp"])
def test_japanese_without_kana_is_still_japanese(encoding):
    assert knowledge.decode("東京都庁、大阪府庁".encode(encoding)) == "東京都庁、大阪府庁"


def test_western_text_is_not_read_as_japanese(tmp_path):
    file = tmp_path / "menu.txt"
    file.write_bytes("Später gibt es Käse, señor — café später".encode("cp1252"))

    assert knowledge.read_file(file) == "Später gibt es Käse, señor — café später"
    assert knowledge.ingest(file).document.language == ""


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"%PDF-1.7\n\x93\x8c\x8b\x9e\n1 0 obj\x00", "isn't a text file."),
        (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "isn't a text file."),
        (b"a" * (knowledge.MAX_BYTES + 1), "is larger than 5 MB."),
        (b" \n\n", "contains no text"),
    ],
)
def test_a_file_that_is_not_a_document_is_rejected_with_a_message(tmp_path, content, sentence):
    file = tmp_path / "file.txt"
    file.write_bytes(content)

    with pytest.raises(knowledge.UnreadableDocument, match=re.escape(sentence)):
        knowledge.ingest(file)


def split(text, title=""):
    return knowledge.split_parts([knowledge.ParsedPart(text=text)], title=title)


def test_a_long_section_is_split_between_paragraphs():
    paragraphs = [f"Paragraph {n}. " + "word " * 100 for n in range(6)]
    sections = split("# Title\n\n" + "\n\n".join(paragraphs), title="Title")

    assert [section.text.count("Paragraph") for section in sections] == [2, 2, 2]
    assert all(section.text.startswith("Paragraph") for section in sections)


@pytest.mark.parametrize("text", ["これは文です。" * 900, "x" * 5_000, "word\n" * 2_000])
def test_an_endless_paragraph_is_split(text):
    sections = split(text)

    assert max(len(section.text) for section in sections) <= knowledge.CHUNK_SIZE
    assert "".join(re.sub(r"\s", "", s.text) for s in sections) == re.sub(r"\s", "", text)


def test_a_comment_in_a_code_block_is_not_a_heading():
    text = "---\ntags: x\n---\n# Set-up\n\n```\n# not a heading\nmake run\n```\n"
    title = find_title(text)
    [section] = split(text, title=title)

    assert (title, section.heading) == ("Set-up", "")
    assert "# not a heading" in section.text


TABLE = "| Item | Price |\n|---|---|\n" + "".join(
    f"| Bowl {n} | {n}.00 |\n" for n in range(200)
)


def test_a_passage_knows_its_place_in_the_part():
    text = (
        f"---\nx: y\n---\n# Title\n\nFirst. {'word ' * 300}\n\n## Next\n\nLast one.\n\n{TABLE}"
    )

    sections = split(text, title="Title")

    assert all(one.text.endswith(text[one.start : one.end]) for one in sections)
    assert {one.heading for one in sections} == {"", "Next"}


def test_rows_of_a_long_table_have_its_header():
    sections = split(TABLE)

    assert len(sections) > 2
    assert all(one.text.startswith("| Item | Price |\n|---|---|\n| Bowl") for one in sections)


def test_pages_continue_a_section_and_sheets_begin_one():
    part = knowledge.ParsedPart
    pages = [
        part(kind="page", number=1, text="## Rent\n\nDue monthly."),
        part(kind="page", number=2, text="Late fees apply."),
        part(kind="sheet", number=3, label="Fees", text="| a |\n|---|\n| 1 |"),
    ]

    sections = knowledge.split_parts(pages, title="Lease")

    assert [(one.part, one.heading) for one in sections] == [
        (1, "Rent"),
        (2, "Rent"),
        (3, "Fees"),
    ]


def test_the_parts_of_a_document_are_replaced_with_its_passages():
    done = knowledge.ingest_text("# A\n\nOne heron.", source="a.md", title="A")
    pages = [
        knowledge.ParsedPart(kind="page", number=n, text=f"Page {n}\r\n\0") for n in (1, 2)
    ]

    assert knowledge.index_document(done.document, pages) == 2

    assert [row.text for row in done.document.parts.all()] == [
        "Page 1\n\ufffd",
        "Page 2\n\ufffd",
    ]
    assert search("heron") == []
    assert [found.part for found in search("page 2")][:1] == [2]


def test_the_command_ingests_files_and_folders(tmp_path, capsys):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a.md").write_text("# Alpha\n\nText.")
    (tmp_path / "b.txt").write_text("Text.")
    (tmp_path / "c.exe").write_bytes(b"MZ\x00")

    call_command("ingest", tmp_path)

    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["added", "added"]
    assert set(Document.objects.values_list("title", flat=True)) == {"Alpha", "b"}


def test_the_command_continues_after_an_unreadable_file(tmp_path, capsys):
    (tmp_path / "good.md").write_text("Text.")
    (tmp_path / "empty").mkdir()

    with pytest.raises(SystemExit) as stopped:
        call_command("ingest", tmp_path / "no.md", tmp_path / "empty", tmp_path / "good.md")

    said = capsys.readouterr()
    assert stopped.value.code == 1
    assert "no.md': No such file or directory." in said.err
    assert "There are no files in it that can be read." in said.err
    assert said.out.startswith("added")


def rows_in_index():
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM agents_chunk_index")
        return cursor.fetchone()[0]


def test_a_failure_while_indexing_leaves_no_document():
    fault_injection.arm({"ASHIATO_FAULTS": "1", "ASHIATO_FAULT": "before_document_index:raise"})
    try:
        with pytest.raises(fault_injection.InjectedFault):
            knowledge.ingest_text(
                "# Tea\n\nGreen tea is steamed.", source="tea.md", title="tea"
            )
    finally:
        fault_injection.arm({})

    assert not Document.objects.exists()
    assert (
        knowledge.ingest_text("# Tea\n\nGreen tea.", source="tea.md", title="tea").outcome
        == "added"
    )
