"""Exports of other products become questions with answers, in branches."""

import json
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

import pytest

from chat.transfer.imports import formats, json_stream, trees, values
from chat.transfer.imports.formats import ashiato, chatgpt, librechat, open_webui
from chat.transfer.imports.values import (
    Node,
    NotImportable,
    Problem,
    SourceChat,
    code_block,
    parse_time,
)
from tests.sampling import one_in

EXPORTS = Path(__file__).parent / "exports"
NOW = datetime(2026, 11, 17, tzinfo=UTC)


def chats(name):
    with (EXPORTS / name).open("rb") as file:
        return [formats.read(value) for value in json_stream.elements(file) if is_chat(value)]


def is_chat(value):
    return "name" not in value or "chat_messages" in value


def outline(chat):
    """Return the turns: each question with its parent's place, its answer and its model."""
    turns = trees.build(chat, NOW).turns
    return [
        (
            turn.parent,
            turn.text,
            turn.answer and turn.answer.text,
            turn.answer and turn.answer.model,
        )
        for turn in turns
    ]


def build(*nodes, **about):
    chat = SourceChat(source="x", original_id="1", title="", nodes=list(nodes), **about)
    return trees.build(chat, NOW)


def user(pk, parent=None, **about):
    return Node(id=pk, parent=parent, role="user", text=f"Q {pk}", **about)


def assistant(pk, parent, **about):
    return Node(id=pk, parent=parent, role="assistant", text=f"A {pk}", **about)


def test_answers_repeated_in_thousands_of_branches_are_rejected():
    nodes = [user("q"), assistant("a0", "q")]
    nodes[1].text = "x" * 100_000
    for at in range(1, 1_000):
        nodes += [assistant(f"a{at}", f"a{at - 1}"), user(f"u{at}", f"a{at}")]

    with pytest.raises(NotImportable) as refused:
        build(*nodes)

    assert refused.value.problem == Problem.TOO_LARGE


@pytest.mark.parametrize(
    "clean",
    [
        lambda: open_webui.DETAILS.sub("", '<details type="reasoning"' * 50_000),
        lambda: open_webui.TAG.sub("", "<details" * 50_000),
        lambda: chatgpt.CITATION_MARK.sub("", "\ue200" * 500_000),
        lambda: code_block("`" * 1_000_000),
    ],
)
def test_unclosed_markup_takes_linear_time(clean):
    assert clean()


# Products


def test_chatgpt_keeps_branches_and_leaves_out_what_was_hidden():
    fuji, _untitled = chats("chatgpt.json")

    assert outline(fuji) == [
        (None, "How tall is Mount Fuji?", FUJI_ANSWER, "o3"),
        (0, "[image]\nAnd in feet? 計算して", "12,388 ft.", "gpt-4o"),
        (
            None,
            "How tall is Mount Fuji?",
            "About 3.8 km  ([Fuji](https://example.org/fuji))high.",
            "gpt-4o",
        ),
    ]
    assert trees.build(fuji, NOW).leaf == 1
    assert fuji.is_archived
    assert "Kamakura" not in str(trees.build(fuji, NOW))


FUJI_ANSWER = "It is **3,776 m** tall ([Mount Fuji](<https://example.org/fuji>))."


def test_chatgpt_thoughts_and_tools_are_notes_of_the_answer():
    fuji, _untitled = chats("chatgpt.json")
    first, second, _branch = trees.build(fuji, NOW).turns

    assert first.answer.notes == [
        "Recalling facts\nMount Fuji is in Japan.",
        "Thought for 4 seconds",
    ]
    assert second.answer.notes == [
        "python: print(3776 / 0.3048)",
        "python: 12388.45",
    ]


def test_chatgpt_without_a_title_a_time_or_a_known_type_of_content():
    _fuji, untitled = chats("chatgpt.json")

    assert untitled.title == ""
    assert outline(untitled) == [
        (
            None,
            "名前のない会話です。続きもあります。",
            "An answer of an unknown kind.",
            "",
        )
    ]


FJORD_ANSWER = "A valley flooded by the sea.\n\n<script>x</script>"  # text, never HTML


@pytest.mark.parametrize("name", ["librechat.json", "librechat_tree.json"])
def test_librechat_is_the_same_flat_and_as_a_tree(name):
    [chat] = chats(name)

    assert outline(chat) == [
        (None, "What is a fjord?", "A long inlet.", "gpt-4o"),
        (
            None,
            "What is a fjord?",
            "A valley flooded by the sea.\n\n<script>x</script>",
            "o3-mini",
        ),
        (1, "Where?\n[file: map.pdf]", "", "gpt-4o"),
    ]
    turns = trees.build(chat, NOW).turns
    assert turns[1].answer.notes == [
        "Glaciers carve valleys.",
        'web_search: {"q": "fjord"}\n\nNorway',
    ]
    assert turns[2].answer.error == "The provider didn't answer."
    assert turns[0].created_at == datetime(2026, 3, 1, 10, tzinfo=UTC)


@pytest.mark.parametrize("name", ["open_webui.json", "open_webui_legacy.json"])
def test_open_webui_is_read_from_its_history(name):
    [chat] = chats(name)

    assert outline(chat) == [
        (
            None,
            "Name three rivers\n[file: notes.txt]",
            "Rhine, Danube, Elbe [1].\n\n1. [Rivers](<https://example.org/rivers>)",
            "llama3.1:8b",
        ),
        (0, "Longest?", "The Danube.", "llama3.1:8b"),
        (None, "Name three rivers\n[file: notes.txt]", "", "llama3.1:8b"),
    ]
    conversation = trees.build(chat, NOW)
    assert conversation.leaf == 1
    assert conversation.turns[0].answer.notes == ["Thought for 3 seconds\n> Think of Europe."]
    assert "Internal Server Error" in conversation.turns[2].answer.error
    assert chat.is_pinned == (name == "open_webui.json")
    assert chat.original_id


def test_claude_follows_the_order_of_its_messages():
    [chat] = chats("claude.json")

    assert outline(chat) == [
        (None, "Write a haiku\n[file: theme.txt]", "Rain on the old roof", "")
    ]


@pytest.mark.parametrize(
    "value",
    [
        None,
        7,
        "text",
        [],
        {},
        {"mapping": []},
        {"conversationId": "x", "messages": {}},
        {"chat": {"history": {"messages": []}}},
        {"schema": "ashiato.trace/1"},
    ],
)
def test_anything_else_is_not_a_chat(value):
    with pytest.raises(NotImportable) as refused:
        formats.read(value)

    assert refused.value.problem == Problem.NOT_A_CHAT


WRONG = [None, 0, "x", [], {}, [None], {"a": None}, True, 1e308, float("nan")]


@pytest.mark.parametrize(
    "format", [each for each in formats.FORMATS if each.read is not ashiato.read]
)
def test_every_product_has_an_export_that_only_its_reader_takes(format):
    """Our own is written and read back in `test_imports.py`."""
    files = [path.read_bytes() for path in sorted(EXPORTS.glob("*.json"))]
    contents = [json.loads(file) for file in files]
    values = [
        value for each in contents for value in (each if isinstance(each, list) else [each])
    ]
    own = [value for value in values if is_chat(value) and format.read(value) is not None]

    assert own, f"No export of {format.name} in {EXPORTS.name}."
    for value in own:
        assert [each.name for each in formats.FORMATS if each.read(value)] == [format.name]


@pytest.mark.parametrize(
    "name", one_in(4, sorted(path.name for path in EXPORTS.glob("*.json")))
)
def test_any_invalid_value_is_skipped_or_rejected(name):
    """Replace each value of each export in turn: the chat is read or rejected."""
    whole = json.loads((EXPORTS / name).read_bytes())
    for place in places(whole):
        for wrong in WRONG:
            value = replaced(whole, place, wrong)
            for one in value if isinstance(value, list) else [value]:
                try:
                    turns = trees.build(formats.read(one), NOW).turns
                except NotImportable:
                    continue
                assert turns, place
                assert all(
                    turn.created_at <= NOW and isinstance(turn.text, str) for turn in turns
                )
                assert all((turn.parent or 0) <= at for at, turn in enumerate(turns))


def places(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else ()
    items = enumerate(value) if isinstance(value, list) else items
    for key, item in items:
        yield from places(item, (*path, key))


def replaced(value, path, new):
    if not path:
        return new
    copy = list(value) if isinstance(value, list) else dict(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], new)
    return copy


# Trees


def test_a_cycle_and_a_missing_parent_lose_no_message():
    turns = build(
        user("a", "b"), assistant("b", "a"), user("c", "gone"), assistant("d", "c")
    ).turns

    texts = [text for turn in turns for text in (turn.text, turn.answer and turn.answer.text)]
    assert {"Q a", "A b", "Q c", "A d"} <= set(texts)


def test_skipped_nodes_in_a_row_do_not_break_the_branch():
    hidden = [Node(id=f"h{at}", parent="a" if at == 0 else f"h{at - 1}") for at in range(3)]

    turns = build(user("q"), assistant("a", "q"), *hidden, user("r", "h2")).turns

    assert [(turn.parent, turn.text) for turn in turns] == [(None, "Q q"), (0, "Q r")]


def test_times_never_go_backwards_or_into_the_future():
    late, early = datetime(2025, 1, 2, tzinfo=UTC), datetime(2025, 1, 1, tzinfo=UTC)
    future = datetime(2099, 1, 1, tzinfo=UTC)

    turns = build(
        user("q", created_at=late),
        assistant("a", "q", created_at=early),
        user("r", "a"),
        assistant("b", "r", created_at=future),
    ).turns

    assert [turn.created_at for turn in turns] == [late, late]
    assert [turn.answer.created_at for turn in turns] == [late, NOW]


def test_questions_without_answers_and_answers_without_questions_stay():
    turns = build(assistant("hello", None), user("q", "hello"), user("r", "q")).turns

    assert [(turn.parent, turn.text, turn.answer is None) for turn in turns] == [
        (None, trees.NO_QUESTION, False),
        (0, "Q q", True),
        (1, "Q r", True),
    ]


def test_a_thousand_messages_in_a_row_are_read():
    nodes = [user("0")]
    for at in range(1, 5000):
        node = (assistant if at % 2 else user)(str(at), str(at - 1))
        nodes.append(node)

    assert len(build(*nodes).turns) == 2500


@pytest.mark.parametrize(
    ("nodes", "problem"),
    [
        ([], Problem.EMPTY),
        ([Node(id="a", parent=None)], Problem.EMPTY),
        ([Node(id="a", parent=None, role="user", text=" ")], Problem.EMPTY),
        ([user(str(at)) for at in range(20_001)], Problem.TOO_MANY_MESSAGES),
    ],
)
def test_a_chat_without_messages_or_with_too_many_is_rejected(nodes, problem):
    with pytest.raises(NotImportable) as refused:
        build(*nodes)

    assert refused.value.problem == problem


@pytest.mark.parametrize(
    ("value", "year"),
    [
        (1760000000.5, 2025),
        (1760000000000, 2025),
        (1760000000000000000, 2025),
        ("2026-03-01T10:00:00.000Z", 2026),
        ("2026-03-01 10:00:00", 2026),
        (None, None),
        (True, None),
        (-5, None),
        (float("inf"), None),
        (10**30, None),
        ("10:05:09 GMT", None),
        ("9999-12-31T23:59:59-14:00", None),
        ("0001-01-01T00:00:00Z", None),
    ],
)
def test_a_time_is_read_in_any_unit_or_not_at_all(value, year):
    found = parse_time(value)

    assert (found and found.year) == year


# Large files


def elements(text, size=None):
    data = text if isinstance(text, bytes) else text.encode()
    file = BytesIO(data)
    if size:
        read = file.read
        file.read = lambda _most: read(size)
    return [
        one.problem if isinstance(one, NotImportable) else one
        for one in json_stream.elements(file)
    ]


TRICKY = [{"a": 'x"]},\\'}, [], {}, "s,]", 1, None, {"日本": '\\\\"', "n": [[1], {"k": "}"}]}]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, None])
@pytest.mark.parametrize("is_ascii", [True, False])
def test_elements_are_separated_wherever_a_read_ends(size, is_ascii):
    text = json.dumps(TRICKY, ensure_ascii=is_ascii, indent=2)

    assert elements(text, size) == TRICKY
    assert elements(f"\ufeff {text}", size) == TRICKY
    assert elements(json.dumps(TRICKY[-1]), size) == [TRICKY[-1]]


def test_one_broken_element_does_not_lose_the_others():
    assert elements('[{"a": 1}, {"b": oops}, {"c": 3}]') == [{"a": 1}, Problem.BROKEN, {"c": 3}]


def test_a_truncated_file_gives_its_complete_chats():
    assert elements('[{"a": 1}, {"b": "unfinis') == [{"a": 1}, Problem.BROKEN]
    assert elements('{"a": 1') == [Problem.BROKEN]


@pytest.mark.parametrize("text", ["", "  ", "hello", "<html>", '"text"', "PK\x03"])
def test_a_file_that_is_not_json_is_rejected(text):
    with pytest.raises(json_stream.NotJson):
        elements(text)


def test_nesting_and_size_are_limited_per_element(monkeypatch):
    deep = f"{'[' * 5000}{']' * 5000}"
    assert elements(f"[1, {deep}, 2]") == [1, Problem.TOO_DEEP, 2]

    monkeypatch.setattr(json_stream, "MAX_ELEMENT_BYTES", 100)
    monkeypatch.setattr(json_stream, "CHUNK_BYTES", 64)
    large = json.dumps("x" * 1000)
    assert elements(f"[1, {large}, 2]") == [1, Problem.TOO_LARGE, 2]


def test_the_structure_of_an_element_is_limited(monkeypatch):
    monkeypatch.setattr(json_stream, "MAX_SIGNS", 50)
    monkeypatch.setattr(json_stream, "MAX_SKIPPED_SIGNS", 500)
    many = json.dumps([{}] * 20)
    assert elements(f"[1, {many}, 2]") == [1, Problem.TOO_LARGE, 2]
    assert elements(f"[1, {json.dumps([{}] * 200)}, 2]") == [1, Problem.TOO_LARGE]


def test_labels_of_citations_that_contain_each_other_do_not_grow():
    marks = [f"\ue200{chr(97 + at)}" for at in range(26)]
    references = [
        {"matched_text": mark, "alt": after * 2}
        for mark, after in zip(marks, marks[1:], strict=False)
    ]
    message = {
        "author": {"role": "assistant"},
        "content": {"content_type": "text", "parts": [marks[0]]},
        "metadata": {"content_references": references},
    }

    chat = chatgpt.read({"mapping": {"a": {"message": message}}})

    assert len(chat.nodes[0].text) < 100_000


@pytest.mark.parametrize(
    "chat",
    [
        {"mapping": dict.fromkeys(range(30))},
        {"history": {"messages": dict.fromkeys(range(30))}},
        {"chat_messages": [0] * 30},
        {"conversationId": "a", "messages": [0] * 30},
        {"schema": "ashiato.chat/1", "messages": [0] * 30},
    ],
)
def test_a_chat_with_too_many_messages_is_rejected_in_every_format(chat, monkeypatch):
    for module in (values, librechat, trees):
        monkeypatch.setattr(module, "MAX_MESSAGES", 20)

    with pytest.raises(NotImportable, match=Problem.TOO_MANY_MESSAGES):
        trees.build(formats.read(chat), NOW)
