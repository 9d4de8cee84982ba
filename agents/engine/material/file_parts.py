"""The user's files as text in a request: how each is marked, found again and checked."""

import re
from dataclasses import dataclass

from agents.engine.guardrails.checks import GuardrailResult, Guardrails

OPENING = "<attached_files>"
CLOSING = "</attached_files>"
LEFT_OUT_PROMPT = "[The text of this file was left out because a guardrail blocks it.]"
_MARKS = re.compile(r"<(?=\s{0,3}/?\s{0,3}(?:attached_files|file|image_text)\b)", re.IGNORECASE)
_PART = re.compile(
    r'(?P<head><(?P<mark>file|image_text) name="(?P<name>[^"<>]*)"[^<>]*>\n)'
    r"(?P<text>.*?)\n</(?P=mark)>",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class FileFinding:
    """What a guardrail found in a file."""

    file: str
    finding: GuardrailResult


@dataclass(frozen=True, slots=True)
class ScreenedFiles:
    """The text of files as the guardrails allow it; `blocked_by` is the first that blocks."""

    text: str
    findings: tuple[FileFinding, ...] = ()
    blocked_by: FileFinding | None = None


def file_part(name: str, text: str, mark: str = "file", **attributes: str) -> str:
    """Return a file's text between marks that it can't close."""
    pairs = {"name": name, **attributes}
    head = " ".join([mark, *(f'{key}="{attribute(value)}"' for key, value in pairs.items())])
    return f"<{head}>\n{inert(text)}\n</{mark}>"


def attribute(text: str) -> str:
    """Return a name that stays within its quotes."""
    return re.sub(r'[\s"<>]+', " ", text).strip()


def inert(text: str) -> str:
    """Return text that can't close the marks around it."""
    return _MARKS.sub("‹", text)


def named_parts(text: str) -> list[tuple[str, str]]:
    """Return the names and texts of the files in a message."""
    return [(match["name"], match["text"]) for match in _PART.finditer(text)]


def screen_files(material: str, guardrails: Guardrails) -> ScreenedFiles:
    """Apply the rules for messages to the text of each file.

    The length limit is for what a person writes; long files aren't sent whole anyway.
    """
    rules = guardrails.without_length_limits()
    if not rules.applies_to("input"):
        return ScreenedFiles(material)
    findings: list[FileFinding] = []
    blocked: list[FileFinding] = []

    def screen(match: re.Match[str]) -> str:
        inspected = rules.inspect(match["text"], "input")
        findings.extend(FileFinding(match["name"], finding) for finding in inspected.findings)
        if inspected.is_blocked:
            blocked.append(FileFinding(match["name"], inspected.result))
        text = LEFT_OUT_PROMPT if inspected.is_blocked else inert(inspected.text)
        return f"{match['head']}{text}\n</{match['mark']}>"

    text = _PART.sub(screen, material)
    return ScreenedFiles(text, tuple(findings), next(iter(blocked), None))
