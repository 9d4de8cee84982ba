"""How a user likes answers: learned from ratings and from what they say in chats.

A value is learned when the user asks for it “from now on”, or says so in two chats or ratings
without saying the opposite as often. What they chose themselves always wins.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from agents.models import HiddenTopic, Personalization, Run, StyleSignal
from agents.models.types import LazyText

from . import policy, texts

MIN_SIGNALS = 2
SIGNAL_DAYS = 180
MAX_SIGNALS = 6  # the latest of a trait that count
# A longer message may contain a document, whose words aren't the user's.
MAX_MESSAGE_CHARS = 500
Trait = StyleSignal.Trait
Source = StyleSignal.Source
Values = Mapping[str, str]  # by trait


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """A value of a trait: its label, what agents are told, and the words that ask for it."""

    label: LazyText
    line: str
    pattern: re.Pattern[str]


def _pattern(english: str, japanese: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{english})\b|(?:{japanese})", re.IGNORECASE)


STYLES: dict[str, dict[str, Style]] = {
    Trait.LENGTH: {
        "short": Style(
            label=pgettext_lazy("answer style", "Short"),
            line="Keep answers short.",
            pattern=_pattern(
                r"(?:keep|make)\s+(?:it|this|that|them|(?:the\s+|your\s+)?answers?)\s+"
                r"(?:\w+\s+)?(?:short(?:er)?|brief(?:er)?|concise)|be\s+(?:\w+\s+)?"
                r"(?:brief(?:er)?|concise)|(?:too|very)\s+(?:long|wordy|verbose)|"
                r"shorter\s+(?:please|answers?)|answer\s+(?:briefly|concisely)",
                r"(?:短く|簡潔に|手短に|端的に)(?:して|答え|まとめ|お願い|回答)|長すぎ|簡潔な回答",
            ),
        ),
        "detailed": Style(
            label=pgettext_lazy("answer style", "Detailed"),
            line="Give detailed answers.",
            pattern=_pattern(
                r"(?:in\s+)?more\s+details?(?:ed)?|be\s+more\s+(?:detailed|thorough)|"
                r"(?:too|very)\s+(?:short|brief)|longer\s+(?:please|answers?)|"
                r"answer\s+in\s+detail|detailed\s+answers?",
                r"(?:もっと)?(?:詳しく|詳細に)(?:して|答え|教え|説明|お願い|回答)|短すぎ",
            ),
        ),
    },
    Trait.TONE: {
        "formal": Style(
            label=pgettext_lazy("answer style", "Formal"),
            line="Write in a formal tone.",
            pattern=_pattern(
                r"(?:be|sound|write)\s+more\s+(?:formal(?:ly)?|polite(?:ly)?)|"
                r"(?:in\s+a\s+|use\s+a\s+)(?:more\s+)?formal\s+tone|too\s+(?:casual|informal)",
                r"敬語で|丁寧(?:に|な言葉で)(?:して|答え|書|お願い|回答)|フォーマルに",
            ),
        ),
        "casual": Style(
            label=pgettext_lazy("answer style", "Casual"),
            line="Write in a casual, friendly tone.",
            pattern=_pattern(
                r"(?:be|sound|write)\s+(?:more\s+)(?:casual(?:ly)?|friendly|informal(?:ly)?)|"
                r"(?:in\s+a\s+|use\s+a\s+)(?:more\s+)?(?:casual|friendly)\s+tone|"
                r"(?:too|less)\s+formal",
                r"カジュアルに|くだけた(?:口調|言葉)|フレンドリーに|タメ口で|堅すぎ",
            ),
        ),
    },
    Trait.FORMAT: {
        "bullets": Style(
            label=pgettext_lazy("answer style", "Bullet points"),
            line="Prefer bullet points.",
            pattern=_pattern(
                r"(?:use|in|as|with)\s+(?:bullet\s+points|bullets|a\s+bullet(?:ed)?\s+list)",
                r"箇条書き(?:で|に|を使)",
            ),
        ),
        "prose": Style(
            label=pgettext_lazy("answer style", "Prose"),
            line="Write in prose, without bullet points.",
            pattern=_pattern(
                r"(?:no|without|avoid|don['’]?t\s+use)\s+(?:bullet\s+points|bullets|lists)|"
                r"in\s+(?:prose|full\s+sentences|paragraphs)",
                r"箇条書き(?:なし|は使わ|にしない|をやめ)|文章(?:で|の形で)(?:答え|書|お願い)",
            ),
        ),
    },
    Trait.LANGUAGE: {
        "en": Style(
            label=pgettext_lazy("answer style", "English"),
            line="Answer in English.",
            pattern=_pattern(
                r"(?:answer|reply|respond|write|speak)\s+(?:to\s+me\s+)?in\s+english",
                r"英語で(?:答え|回答|返信|お願い|書)",
            ),
        ),
        "ja": Style(
            label=pgettext_lazy("answer style", "Japanese"),
            line="Answer in Japanese.",
            pattern=_pattern(
                r"(?:answer|reply|respond|write|speak)\s+(?:to\s+me\s+)?in\s+japanese",
                r"日本語で(?:答え|回答|返信|お願い|書)",
            ),
        ),
    },
}
LASTING = _pattern(
    r"from\s+now\s+on|always|in\s+(?:the\s+)?future|going\s+forward|every\s+time|never",
    r"今後|これから(?:は|も)|いつも|常に|毎回",
)
# Words of custom instructions that already say something about a trait.
MENTIONS: dict[str, re.Pattern[str]] = {
    Trait.LENGTH: re.compile(
        r"\b(?:short|brief|concise|succinct|detail|thorough|long|length|verbose|terse|words?|"
        r"sentences?)|簡潔|短|詳し|詳細|長|文字",
        re.IGNORECASE,
    ),
    Trait.TONE: re.compile(
        r"\b(?:in)?formal|casual|polite|friendly|tone\b|humou?r|敬語|丁寧|カジュアル|口調|フレンドリー",
        re.IGNORECASE,
    ),
    Trait.FORMAT: re.compile(
        r"\bbullet|\blists?\b|\btables?\b|prose|paragraph|markdown|箇条書き|表で|文章で",
        re.IGNORECASE,
    ),
    Trait.LANGUAGE: re.compile(
        r"\benglish|japanese|\blanguage|german|french|spanish|chinese|korean|日本語|英語|言語|中国語",
        re.IGNORECASE,
    ),
}
RATED = {"long": (Trait.LENGTH, "short"), "brief": (Trait.LENGTH, "detailed")}
HEADING = "How the user likes answers, as learned from their ratings and chats:"
CHOSEN_HEADING = "How the user likes answers:"


def learn(since: datetime, until: datetime) -> None:
    """Save what ratings and messages of this period say about style."""
    users: set[int] = set()
    for signal in _signals(since, until):
        _row, is_new = StyleSignal.objects.get_or_create(
            run=signal.run,
            trait=signal.trait,
            source=signal.source,
            defaults={
                "user": signal.user,
                "value": signal.value,
                "is_lasting": signal.is_lasting,
                "quote": signal.quote,
            },
        )
        if is_new:
            users.add(signal.user_id)
    for user in users:
        if policy.is_excluded(user):
            StyleSignal.objects.filter(user=user).delete()
        else:
            update(user)


def _signals(since: datetime, until: datetime) -> Iterator[StyleSignal]:
    runs = Run.objects.filter(policy.learnable(), status=Run.Status.COMPLETED).exclude(
        user__personalization__learns_style=False
    )
    rated = runs.filter(ratings__rated_at__range=(since, until), ratings__user=F("user"))
    for run in rated.select_related("user").distinct()[:5_000]:
        rating = run.ratings.get(user=run.user_id)
        if rating.is_good:
            continue
        values = dict(stated(rating.comment))
        if rating.reason in RATED:
            trait, value = RATED[rating.reason]
            values[trait] = value
        quote = rating.comment or rating.get_reason_display()
        yield from _rows(run, values, Source.RATING, quote)
    for run in runs.filter(ended_at__range=(since, until)).select_related("user")[:5_000]:
        yield from _rows(run, dict(stated(run.query)), Source.STATED, run.query)


def _rows(run: Run, values: Values, source: str, quote: str) -> Iterator[StyleSignal]:
    quoted = texts.clean(texts.masked(texts.clean(quote, 1_000)), 200)
    for trait, value in values.items():
        yield StyleSignal(
            user=run.user,
            run=run,
            trait=trait,
            value=value,
            source=source,
            is_lasting=source == Source.STATED and LASTING.search(quote) is not None,
            quote=quoted,
        )


def stated(message: str) -> Iterator[tuple[str, str]]:
    """Yield the traits and values that a message asks for; none if it asks for both."""
    if not message or len(message) > MAX_MESSAGE_CHARS:
        return
    for trait, values in STYLES.items():
        matches = [value for value, style in values.items() if style.pattern.search(message)]
        if len(matches) == 1:
            yield str(trait), matches[0]


def infer(signals: Iterable[StyleSignal]) -> dict[str, str]:
    """Return what these signals teach, by trait; signals are the newest first."""
    learned: dict[str, str] = {}
    grouped: dict[str, list[StyleSignal]] = {}
    for signal in signals:
        grouped.setdefault(signal.trait, []).append(signal)
    for trait, rows in grouped.items():
        latest = rows[:MAX_SIGNALS]
        counts = Counter(row.value for row in latest)
        lasting = next((row.value for row in latest if row.is_lasting), None)
        value, count = counts.most_common(1)[0]
        is_clear = count >= MIN_SIGNALS and count > counts.total() - count
        if is_clear and (lasting is None or count > counts[lasting]):
            learned[trait] = value
        elif lasting is not None:
            learned[trait] = lasting
    return learned


def recent_signals(user: int) -> "list[StyleSignal]":
    since = timezone.now() - timedelta(days=SIGNAL_DAYS)
    rows = StyleSignal.objects.filter(user=user, created_at__gt=since)
    rows = rows.exclude(run__topic__in=HiddenTopic.objects.values("topic"))
    return list(rows.order_by("-created_at", "-pk").select_related("run"))


@transaction.atomic
def update(user: int) -> None:
    """Save what a user's signals teach now."""
    learned = infer(recent_signals(user))
    Personalization.objects.update_or_create({"learned": learned}, user_id=user)


@transaction.atomic
def forget(user: int, trait: str) -> None:
    """Delete the evidence of a trait, so that it has to be learned again."""
    StyleSignal.objects.filter(user=user, trait=trait).delete()
    update(user)


def clean_choice(values: Mapping[str, str]) -> dict[str, str]:
    """Return the known values of a form."""
    return {
        str(trait): values[trait]
        for trait, styles in STYLES.items()
        if values.get(trait) in styles
    }


def contradicted(custom: str) -> set[str]:
    """Return the traits that custom instructions already say something about."""
    return {str(trait) for trait, pattern in MENTIONS.items() if pattern.search(custom)}


def compose(chosen: Values | None, learned: Values | None, custom: str) -> list[str]:
    """Return the lines for the user's profile; custom instructions come first."""
    covered = contradicted(custom)
    lines: list[str] = []
    for heading, values in ((CHOSEN_HEADING, chosen), (HEADING, learned)):
        new = {trait: v for trait, v in (values or {}).items() if trait not in covered}
        if new:
            styles = (STYLES.get(trait, {}).get(value) for trait, value in new.items())
            sentences = [style.line for style in styles if style is not None]
            lines.append(f"{heading} {' '.join(sentences)}")
        covered.update(new)
    return lines


def label(trait: str, value: str) -> LazyText:
    style = STYLES.get(trait, {}).get(value)
    return style.label if style else value


TRAIT_HELP: dict[str, LazyText] = {
    Trait.LENGTH: _("E.g. after “Too long” ratings."),
    Trait.TONE: _("E.g. after “be more formal”."),
    Trait.FORMAT: _("E.g. after “use bullet points”."),
    Trait.LANGUAGE: _("E.g. after “always answer in Japanese”."),
}
