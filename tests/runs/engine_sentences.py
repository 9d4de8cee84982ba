"""Every sentence of the engine, the models and the tools, read from their source.

A sentence is a string of at least two words that isn't marked for translation. An f-string or a
format string is a sentence with placeholders; its skeleton is the text between them. Text that
only a model or a program reads isn't one: log lines, patterns, SQL, prompts, descriptions.
"""

import ast
import re
import string
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from django.conf import settings

ROOMS = ("agents/engine", "agents/llm", "agents/tools")
NOT_READ = (
    "agents/engine/fault_injection.py",  # for developers
    "agents/engine/testing.py",
    "agents/engine/planner/react_action.py",  # its errors are caught where they are raised
    "agents/engine/privacy/",  # patterns and their keywords
    "agents/llm/demo/",  # speaks English and Japanese itself
    "agents/llm/wire/json_codec.py",
    "agents/llm/discovery/model_probe.py",  # questions to a model
    "agents/llm/providers.py",  # brand names
    "agents/llm/wire/sse.py",
    "agents/tools/sandbox/unconfined.py",  # reasons for developers
)
# Names whose text users don't read: variables, keyword arguments and dictionary keys.
NOT_FOR_PEOPLE = re.compile(
    r"_?(?:\w+_)?(?:INSTRUCTIONS|PROMPT|TEMPLATE|HELP|LABELS|SCHEMA|ACTIONS|PLAN|FUNCTIONS)"
    r"|_?SAMPLE_\w+|description|example|gives|label|name|parameters|[A-Z][a-z]+(?:-[A-Z][a-z]+)*"
)
# Calls whose text users don't read (they log, search a text, or read a list of options), and
# what is marked for the translators where it is.
NOT_SAYING = re.compile(
    r"(?:logger|re2?)\..+|_flags|_|Sentence|"
    r"(?:.+\.)?(?:startswith|endswith|removeprefix|execute|_execute)"
)
# Text that only a model, a program or a developer reads.
NOT_SAID = {
    # of the command that measures tool selection
    "{} did nothing.",
    "part {} of {} of ",
    "You can use these tools:",
    "You can use this tool:",
    # of a child process, for the log
    "The sandbox couldn't be applied: {}.",
    "ended with {}: {}",
    "wrote more than {} bytes",
    "Line {} of {} isn't a tool.",
    "Line {} of {} isn't a question.",
    "Can't read {}: {}.",
    "A rehearsal.",
    "Earlier turns of this conversation were replaced by this summary. It is a record, not a "
    "new request.",
    "Tool result: {}",
    " The provider rewrote the prompt: {}",
    "These figures aren't in any result: {}. Correct or remove them, or say that they are "
    "estimates. Then give the complete answer again, in the language of the question.",
    "a reply that is not an object",
    "a reply that is too large",
    "a reply without text",
    "multipart/form-data; boundary={}",
    "Action Input: {}",
    "Final Answer: {}",
    "LM Studio",
    "Number with too many digits",
    "The name has no address.",
    "What was wrong: {}",
    "a document that is too large",
    "a line without an end",
    "a person",
    "an event that is not a chunk",
    "no name server answered",
    "the answer is too large for a list of models",
    "the name is not known",
    " (declared as {}, which it isn't)",
    "{} has *{}, but tools need named arguments.",
    "{} on port {} did not answer with 200",
    "… and {} more",
}
WORD = re.compile(r"[^\W\d_]+")
SQL = re.compile(r"\s*(?:SELECT|PRAGMA|CREATE|WITH) ")
PATTERN = re.compile(r"\[…|\(\?|\\[a-z]| \| None$|^[A-Z][A-Za-z-]+: |^not in$")
ERROR_PREFIX = "Error: "  # in a tool's result for the model; the sentence follows it
Skeleton = tuple[str, ...]


def template_skeleton(template: str) -> Skeleton:
    """Return the fixed text between a template's placeholders."""
    return tuple(re.split(r"%\(\w+\)s", template.replace("%%", "%")))


@cache
def strings(*rooms: str) -> dict[Skeleton, str]:
    """Return the skeletons of all strings in these folders, with a location each."""
    found: dict[Skeleton, str] = {}
    for room in rooms:
        for path in sorted((settings.BASE_DIR / room).rglob("*.py")):
            name = path.relative_to(settings.BASE_DIR).as_posix()
            if not name.startswith(NOT_READ):
                for line, said in _strings_of(path):
                    found.setdefault(said, f"{name}:{line}")
    return found


@cache
def _strings_of(path: Path) -> list[tuple[int, Skeleton]]:
    return [*_Reader(path).strings()]


def sentences(*rooms: str) -> dict[Skeleton, str]:
    return {said: where for said, where in strings(*rooms).items() if is_sentence(said)}


class _Reader(ast.NodeVisitor):
    def __init__(self, path: Path) -> None:
        self.found: list[tuple[int, Skeleton]] = []
        self.tree = ast.parse(path.read_text("utf-8"))

    def strings(self) -> Iterator[tuple[int, Skeleton]]:
        self.visit(self.tree)
        for line, (first, *rest) in self.found:
            yield line, (first.removeprefix(ERROR_PREFIX), *rest)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for statement in node.body:
            self.visit(statement)

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if not NOT_SAYING.fullmatch(_name(node.func)):
            self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for statement in node.body:
            self.visit(statement)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        for statement in node.body:
            self.visit(statement)

    def visit_Assign(self, node: ast.Assign) -> None:
        if not any(_is_hidden(target) for target in node.targets):
            self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value and not _is_hidden(node.target):
            self.visit(node.value)

    def visit_keyword(self, node: ast.keyword) -> None:
        if not NOT_FOR_PEOPLE.fullmatch(node.arg or ""):
            self.generic_visit(node)

    def visit_Dict(self, node: ast.Dict) -> None:
        for key, value in zip(node.keys, node.values, strict=True):
            if not (isinstance(key, ast.Constant) and NOT_FOR_PEOPLE.fullmatch(str(key.value))):
                self.visit(value)

    def visit_Compare(self, node: ast.Compare) -> None:
        """Skip comparisons: their text is searched for, not displayed."""

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self.found.append((node.lineno, format_skeleton(node.value)))

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        parts = [""]
        for value in node.values:
            if isinstance(value, ast.Constant):
                parts[-1] += str(value.value)
            elif isinstance(value, ast.FormattedValue):
                parts.append("")
                self.visit(value.value)
        self.found.append((node.lineno, tuple(parts)))


def _name(called: ast.expr) -> str:
    """Return what is called; names are put together here, because unparsing takes long."""
    if isinstance(called, ast.Name):
        return called.id
    if isinstance(called, ast.Attribute):
        return f"{_name(called.value)}.{called.attr}"
    return ast.unparse(called)


def _is_hidden(target: ast.expr) -> bool:
    name = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")
    # Administrators read a tool's description; text in a schema is for models.
    return name != "description" and bool(NOT_FOR_PEOPLE.fullmatch(name))


def format_skeleton(text: str) -> Skeleton:
    """Split a format string at its placeholders; other strings stay whole."""
    if "%(" in text:  # said by a package that translates by itself
        return template_skeleton(text)
    try:
        fields = list(string.Formatter().parse(text))
    except ValueError:
        return (text,)
    names = [name for _, name, _, _ in fields if name is not None]
    if not names or not all(name.isidentifier() for name in names):
        return (text,)
    parts = [""]
    for words, name, _, _ in fields:
        parts[-1] += words
        if name is not None:
            parts.append("")
    return tuple(parts)


def is_sentence(said: Skeleton) -> bool:
    """Whether it has two words, or one and a full stop; multi-line text is for a model."""
    text = "{}".join(said)
    words = len(WORD.findall(" ".join(said)))
    is_text = words >= 2 or (words == 1 and text.endswith("."))
    is_plain = "\n" not in text and not SQL.match(text) and not PATTERN.search(text)
    return is_text and " " in text and is_plain and text not in NOT_SAID
