"""Every key handler leaves the keys of an input method alone."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPTS = sorted(path for path in (ROOT / "static" / "js").rglob("*.js") if path.stem != "keys")
KEY_EVENT = r"key(?:down|up|press)"
LISTENER = re.compile(rf"""addEventListener\(\s*["'`]{KEY_EVENT}["'`]\s*,\s*""")


def problems(text: str) -> list[str]:
    """Return what the script does with keys without asking `isComposing` of keys.js."""
    found = [handler for handler in handlers(text) if "isComposing(" not in handler]
    if len(re.findall(rf"""["'`]{KEY_EVENT}["'`]|\bon{KEY_EVENT}\b""", text)) != len(
        LISTENER.findall(text)
    ):
        found.append("keys are listened to in a way this test doesn't know")
    if "keyCode" in text:
        found.append("keyCode is read outside keys.js")
    return found


def handlers(text: str) -> Iterator[str]:
    """Yield the source of every key handler."""
    for listener in LISTENER.finditer(text):
        named = re.compile(r"(\w+)\s*[,)]").match(text, listener.end())
        at = (
            re.search(rf"function {named[1]}\(|(?:const|let) {named[1]} =", text)
            if named
            else None
        )
        yield block(text, at.start() if at else listener.end())


def block(text: str, start: int) -> str:
    """Return a function from its first brace to the matching one."""
    depth = 0
    for at in range(text.index("{", start), len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if not depth:
            return text[start : at + 1]
    raise AssertionError(f"no end: {text[start : start + 60]}")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_key_handlers_check_for_text_composition(script: Path):
    assert problems(script.read_text()) == []


def test_a_handler_without_the_check_is_found():
    good = (
        'a.addEventListener("keydown", go);\nfunction go(event) { if (isComposing(event)) {} }'
    )
    assert problems(good) == []
    assert problems(good.replace("isComposing(event)", "event.isComposing"))
    assert problems('a.addEventListener("keyup", (e) => {\n  send();\n});')
    assert problems("a.onkeydown = go;")
    assert problems("if (event.keyCode === 13) send();")


def test_no_template_sends_requests_on_a_key():
    triggers = re.compile(rf'hx-trigger="[^"]*{KEY_EVENT}|\bon{KEY_EVENT}=')
    pages = (ROOT / "templates").rglob("*.html")
    assert [page.name for page in pages if triggers.search(page.read_text())] == []
