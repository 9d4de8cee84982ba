"""The Japanese catalog: complete, compiled, and in sync with the code."""

import ast
import gettext
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOMS = ("agents", "chat")
CATALOGUE = Path("locale/ja/LC_MESSAGES")
# A call `_("…")` or `gettext_noop("…")`: its text, also in several parts.
MARKED = re.compile(
    r"""\b(?:_|gettext_noop)\(\s*((?:"(?:[^"\\\n]|\\.)*"\s*|'(?:[^'\\\n]|\\.)*'\s*)+)[,)]"""
)
ENTRY = re.compile(r'^msgid((?: ?".*"\n)+)(?:msgid_plural(?: ?".*"\n)+)?msgstr', re.M)


def catalogue_text() -> str:
    return (CATALOGUE / "django.po").read_text()


def messages() -> set[str]:
    found = ENTRY.findall(catalogue_text())
    return {"".join(re.findall(r'"(.*)"', entry)).replace(r"\"", '"') for entry in found} - {""}


def test_every_message_is_translated_and_not_fuzzy():
    assert "#, fuzzy" not in catalogue_text()
    assert not re.search(r'msgstr(?:\[0\])? ""\n(?!")', catalogue_text())


def test_the_compiled_catalogue_is_up_to_date():
    with (CATALOGUE / "django.mo").open("rb") as file:
        compiled = gettext.GNUTranslations(file)
    keys = [key[0] if isinstance(key, tuple) else key for key in compiled._catalog]
    known = {key.rpartition("\x04")[2] for key in keys}

    assert {
        message.replace(r"\n", "\n").replace("\\\\", "\\") for message in messages()
    } <= known


def test_every_string_of_the_templates_is_in_the_catalogue():
    said = set()
    for template in Path("templates").rglob("*.html"):
        text = template.read_text()
        said |= set(re.findall(r"""{% translate "([^"]+)" %}""", text))
        said |= set(re.findall(r"""{% translate '([^']+)' %}""", text))

    assert len(said) > 50
    assert said - messages() == set()


def test_every_string_of_the_code_is_in_the_catalogue():
    files = (path for room in ROOMS for path in Path(room).rglob("*.py"))
    found = [text for path in files for text in MARKED.findall(path.read_text())]
    said = {ast.literal_eval(f"({text})") for text in found}

    assert len(said) > 100
    assert (
        said - {message.replace(r"\n", "\n").replace("\\\\", "\\") for message in messages()}
        == set()
    )


def test_every_term_has_one_translation():
    """レビュアー, 事例, 呼び出し形式 and ビュー are the names of what these were called."""
    said = catalogue_text() + Path("docs/handbook/ja/using.md").read_text()

    for other in ("レビュー担当者", "用例", "方言", "保存した表示", "例として保存"):
        assert not re.search(f"(?<!事){other}", said), other


def test_kana_and_latin_letters_stand_without_a_space():
    translations = "".join(re.findall(r'^(?:msgstr.*|)"(.*)"$', catalogue_text(), re.M))
    # Apart stay "p95", the name of a column, and a value after its name: モデル %(model)s は
    spaced = re.compile(r"[ぁ-ん、。] (?!p\d)[A-Za-z0-9%{].{,20}|(?<!\))[A-Za-z0-9] [ぁ-ん]")

    assert spaced.findall(translations) == []


@pytest.mark.thorough
@pytest.mark.skipif(not shutil.which("msgmerge"), reason="needs gettext")
def test_collecting_the_translations_again_changes_nothing(tmp_path):
    for name in ("agents", "chat", "project", "templates", "static", "locale"):
        shutil.copytree(name, tmp_path / name)
    for name in ("manage.py", "Makefile", "pyproject.toml"):
        shutil.copy(name, tmp_path)
    (tmp_path / ".venv").symlink_to(Path(".venv").resolve())
    [command] = re.findall(r"manage\.py (makemessages .+)", Path("Makefile").read_text())
    environment = {**os.environ, "ASHIATO_DATA": str(tmp_path / "var")}
    subprocess.run(
        [sys.executable, "manage.py", *command.split()],
        cwd=tmp_path,
        env=environment,
        check=True,
        capture_output=True,
    )
    collected = (tmp_path / CATALOGUE / "django.po").read_text()
    assert without_brace_flags(collected) == without_brace_flags(catalogue_text())


def without_brace_flags(catalogue: str) -> str:
    """Leave out which messages have braces: versions of gettext disagree on it."""
    return re.sub(r"^#\n", "", catalogue.replace(", python-brace-format", ""), flags=re.M)
