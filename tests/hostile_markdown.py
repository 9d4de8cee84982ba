"""Texts that are slow to parse as Markdown, next to ordinary ones of the same length."""

ORDINARY = (
    "Sales rose by **12 %** in [March](https://example.org/march), mostly in `Osaka`.\n\n"
    "- Tea: *4,490* yen\n- Rice: 1,200 yen\n\n"
)
REPEATED = {
    "brackets": "[",
    "images": "![",
    "links": "[a](",
    "references": "[a][",
    "stars": "*a ",
    "underscores": "_a ",
    "strong": "**a",
    "mixed emphasis": "*_",
    "strikes": "~~a ",
    "backticks": "`a",
    "angles": "<http://a",
    "entities": "&",
    "quotes in a line": "> ",
    "lists in a line": "- ",
    "quotes in lists": "> - ",
    "headings": "# ",
    "list items": "- a\n",
    "loose items": "- a\n\n",
    "lines": "a\n",
    "quoted lines": "> a\n",
    "definitions": "[a]: b\n",
    "half definitions": "[a]: <\n",
    "underlined": "a\n===\n",
    "fences": "```\n",
    "one plain line": "word ",
    "dollars": "$ ",
    "math": "$$a",
    "open math": "\\(a ",
    "math lines": "\\[\na\n",
    "footnotes": "[^a] ",
    "footnote definitions": "[^a]: [^b] c\n",
    "tasks": "- [ ] a\n",
}


def hostile_texts(length: int) -> dict[str, str]:
    """Return one of each kind, about this long."""
    side = int(length**0.5)
    texts = {name: part * (length // len(part)) for name, part in REPEATED.items()}
    return texts | {
        "deep list": "\n".join("  " * depth + "- a" for depth in range(side)),
        "deep quote": "\n".join(">" * depth + " a" for depth in range(1, side)),
        "wide table": "|a" * (length // 4) + "\n" + "|-" * (length // 4),
        "long table": "|a|b|\n|-|-|\n" + "|1|2|\n" * (length // 6),
        "short rows": "|a" * 100 + "\n" + "|-" * 100 + "\n" + "|\n" * (length // 2),
        "runs of backticks": " ".join("`" * size for size in range(1, side)),
        "runs of stars": " ".join("*" * size + "a" for size in range(1, side)),
        "code": "```java\n" + "a " * (length // 2) + "\n```\n",
        "defined and used": "[a]: b\n\n" + "[a] " * (length // 4),
    }


def ordinary_text(length: int) -> str:
    return (ORDINARY * (length // len(ORDINARY) + 1))[:length]
