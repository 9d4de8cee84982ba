"""What the demo model says of itself."""

import re

from . import schema as schemas
from . import words
from .history import Finding, Question, Situation

GREETING = re.compile(
    r"(?:hi|hello|hey|help|thanks|thank you|good (?:morning|afternoon|evening)|yo|test"
    r"|(?:what|which) tools (?:are there|do you have|can you use)"
    r"|どんなツールがあ(?:る|ります)か"
    r"|who are you|what are you|what can you do|what can i ask(?: you)?|how are you"
    r"|こんにち[はわ]|こんばんは|おはよう(?:ございます)?|はじめまして|ありがとう(?:ございます)?|ヘルプ|助けて"
    r"|(?:あなたは)?誰(?:ですか)?|何ができ(?:る|ます)(?:の|か|のですか)?|使い方(?:は|を教えて(?:ください)?)?)"
    r"(?:[ ,]+(?:there|everyone|ashiato|you))?[\s!?.。、!?]*"
)


def introduction(situation: Situation) -> str:
    """What this is, what it can do with these tools, and how to get a real model."""
    question = situation.question
    is_greeted = not question.text.strip() or GREETING.fullmatch(question.plain.strip())
    parts = [
        ""
        if is_greeted
        else question.say("I have no rule for this.", "これに答える規則を持っていません。"),
        question.say(
            "I am Ashiato's demo model: a small set of rules, not AI. I do plan and call tools "
            "for real, so that you can watch an agent think, act and observe without any key.",
            "Ashiato のデモモデルです。AI ではなく、決まった規則で動きます。ただし計画と"
            "ツールの実行は本物なので、キーがなくても、エージェントが考え、動き、観察する様子を見られます。",
        ),
        _abilities(situation),
        _connecting(question),
    ]
    return "\n\n".join(part for part in parts if part)


def planning(question: Question) -> str:
    """What this is, for somebody who asked nothing that needs a plan."""
    say = question.say
    examples = (
        say(
            "Compare this year's best month with last year's and explain.",
            "今年と去年の最高の月を比べて、理由も説明して",
        ),
        say("What was the revenue in 2019?", "2019年の売上は？"),
        say("How do I stop a run?", "実行を止めるには？"),
    )
    lines = [
        say(
            "I am Ashiato's demo model: a small set of rules, not AI. This agent works by a "
            "plan: it writes the steps down first, carries them out, checks each result, and "
            "plans anew where one is not as expected.",
            "Ashiato のデモモデルです。AI ではなく、決まった規則で動きます。"
            "このエージェントは、まず手順を計画として書き、実行し、結果を一つずつ確かめ、"
            "期待どおりでなければ計画を立て直します。",
        ),
        "\n".join([say("Try:", "たとえば:"), "", *(f"- {example}" for example in examples)]),
        _connecting(question),
    ]
    return "\n\n".join(lines)


def tables(description: str, question: Question) -> str:
    """What the database holds, from the tool's own description."""
    schema = schemas.read(description)
    names = [table.name for table in schema.tables] if schema else []
    lines = [
        f"- **{table.name}**: {', '.join(column.name for column in table.columns)}"
        for table in (schema.tables if schema else ())
    ]
    head = question.say(
        f"The database has {len(names)} tables:",
        f"データベースには {len(names)} つの表があります。",
    )
    return "\n".join([head, "", *lines])


def failure(finding: Finding, question: Question) -> str:
    """What went wrong, as the tool told it, or what a person said of the call."""
    tool, reason = finding.tool, finding.text.removeprefix("Error:").strip()
    if finding.is_settled:
        return _settled(finding, question) + _quoted(finding.text, question)
    if finding.word == "changed":
        return question.say(
            f"{as_changed(finding, question)} could not do this: {reason}",
            f"{as_changed(finding, question)}は失敗しました: {reason}",
        )
    return question.say(
        f"The `{tool}` tool could not do this: {reason}\n\n"
        "I follow rules and know no other way round it. Asking in other words may help.",
        f"`{tool}` ツールで失敗しました: {reason}\n\n"
        "規則で動くデモモデルなので、ほかの方法を知りません。"
        "言い方を変えると、うまくいくかもしれません。",
    )


def as_changed(finding: Finding, question: Question) -> str:
    """The beginning of a sentence about a call with a person's arguments."""
    tool, input = finding.tool, " ".join(finding.input.split())
    return question.say(
        f"With the arguments that a person gave it (`{input}`), `{tool}`",
        f"変更後の引数（`{input}`）で、`{tool}` ",
    )


def _settled(finding: Finding, question: Question) -> str:
    tool = finding.tool
    if finding.word == "declined":
        return question.say(
            f"A person declined the call of `{tool}`, so it was not made.",
            f"`{tool}` の呼び出しは却下されたため、実行していません。",
        )
    return question.say(
        f"A person says that the call of `{tool}` was made, but its result was lost.",
        f"`{tool}` の呼び出しは実行されたとのことですが、結果は失われました。",
    )


def _quoted(said: str, question: Question) -> str:
    return question.say(f" They said: “{said}”", f"コメント:「{said}」") if said else ""


def unknown(question: Question) -> str:
    """An honest sentence where there are neither tools nor results."""
    return question.say(
        "I am a demo model that follows rules, not AI; without tools I cannot answer this. ",
        "規則で動くデモモデルで、AI ではありません。"
        "ツールがないため、この質問には答えられません。",
    ) + _connecting(question)


def nature(question: Question) -> str:
    """What this is and how to get more, in short."""
    return question.say(
        "I am a demo model that follows rules, not AI; for questions like this, connect a real "
        "model: set a key such as `ANTHROPIC_API_KEY` and restart the server.",
        "私は規則で動くデモモデルで、AI ではありません。このような質問には、"
        "`ANTHROPIC_API_KEY` などのキーを設定してサーバーを再起動し、"
        "本物のモデルを使ってください。",
    )


def _abilities(situation: Situation) -> str:
    question = situation.question
    skills = [skill for skill in _skills(situation) if skill]
    if not skills:
        return question.say(
            "No tools are on offer to me here.", "ここで使えるツールはありません。"
        )
    lines = [f"- {what}" for what, _ in skills]
    examples = [example for _, several in skills for example in several]
    spread = sorted(examples, key=lambda example: _rank(example, skills))[:3]
    return "\n".join(
        [
            question.say("With the tools I have here I can:", "ここにあるツールでできること:"),
            "",
            *lines,
            "",
            question.say("Try:", "たとえば:"),
            "",
            *(f"- {example}" for example in spread),
        ]
    )


def _rank(example: str, skills: list[tuple[str, tuple[str, ...]]]) -> int:
    """The first example of every skill before the second of any."""
    return next(several.index(example) for _, several in skills if example in several)


def _skills(situation: Situation) -> list[tuple[str, tuple[str, ...]] | None]:
    own = [_arithmetic(situation), _data(situation), _handbook(situation)]
    return [*own, _others(situation)]


def _arithmetic(situation: Situation) -> tuple[str, tuple[str, ...]] | None:
    if situation.tool("calculator", "expression") is None:
        return None
    say = situation.question.say
    what = say("calculate, in figures and in words;", "計算（数字でも言葉でも）")
    return what, (
        say("What is 12.5% of 3480?", "3480の12.5%は？"),
        say("12 times 7 plus 3", "12かける7足す3"),
        say("What is 15% off 80?", "80の15%引きは？"),
    )


def _data(situation: Situation) -> tuple[str, tuple[str, ...]] | None:
    tool = situation.tool("database", "sql")
    schema = schemas.read(tool.description) if tool else None
    if schema is None:
        return None
    say, ledger = situation.question.say, schema.ledger
    names = ", ".join(table.name for table in schema.tables)
    what = say(f"ask the database about {names};", f"データベース（{names}）への質問")
    if ledger is None:
        noun = schema.tables[0].noun
        count = say(
            f"How many {words.plural(noun)} are there?", f"{words.japanese(noun)}は何件？"
        )
        return what, (count,)
    return what, (
        say("What was the revenue by month this year?", "今年の月別の売上は？"),
        say("Compare this year's best month with last year's.", "今年と去年の最高の月を比べて"),
    )


def _handbook(situation: Situation) -> tuple[str, tuple[str, ...]] | None:
    if situation.tool("search") is None:
        return None
    say = situation.question.say
    what = say("look things up in the documents, with sources.", "文書の検索（出典つき）")
    return what, (say("How do I connect a real model?", "本物のモデルに接続するには？"),)


def _others(situation: Situation) -> tuple[str, tuple[str, ...]] | None:
    agents = [tool.agent for tool in situation.tools if tool.agent]
    if not agents:
        return None
    say, names = situation.question.say, ", ".join(agents)
    what = say(
        f"give a task to another agent: {names}.", f"ほかのエージェントへの依頼（{names}）"
    )
    asks = [
        say("Ask {}: What is 12.5% of 3480?", "{}に聞いて: 3480の12.5%は？"),
        say("Ask {}: What is 6 times 7?", "{}に聞いて: 6かける7は？"),
        say(
            "Ask {}: Which five products brought in the most this year?",
            "{}に聞いて: 今年の売上上位5商品は？",
        ),
    ]
    return what, tuple(ask.format(agent) for ask, agent in zip(asks, agents, strict=False))


def _connecting(question: Question) -> str:
    return question.say(
        "To connect a real model, set a provider's key such as `ANTHROPIC_API_KEY` or "
        "`OPENAI_API_KEY`, run Ollama, or set `ASHIATO_MODEL`; then restart the server.",
        "本物のモデルを使うには、`ANTHROPIC_API_KEY` や `OPENAI_API_KEY` などのキーを設定する"
        "か、Ollama を起動するか、`ASHIATO_MODEL` を設定して、サーバーを再起動してください。",
    )
