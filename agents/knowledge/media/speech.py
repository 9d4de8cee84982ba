"""Answers read aloud by a configured voice; each is saved with its run."""

import re
from collections.abc import AsyncIterator, Iterator
from hashlib import sha256

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Coalesce
from markdown_it import MarkdownIt

from agents.db import database
from agents.db.installation import default_models
from agents.knowledge.files import store
from agents.llm import media_prices
from agents.llm.media_models import MediaModel
from agents.metering.budgets import payer_of
from agents.metering.budgets.metered import metered_media
from agents.models import Agent, Run, RunAttachment

from . import services

MIME_TYPE = "audio/mpeg"
# Services accept 4,096 characters; an answer is a few requests at most.
MAX_REQUEST_CHARS = 3_500
MAX_CHARS = 20_000
MAX_BYTES = 40_000_000
# For prices per second, which are known before the sound is.
CHARACTERS_A_SECOND = 15
SENTENCE_END = re.compile(r"(?<=[.!?。！？\n])\s*")
UNSPOKEN = {"fence", "code_block", "html_block", "html_inline", "image"}


def find_voice(run: Run) -> MediaModel | None:
    """Return the voice for a run's answer; None if the browser has to read it.

    Raises ModelError if its key can't be read.
    """
    agent = run.agent
    if agent is not None and agent.personal_data == Agent.PersonalData.HIDDEN:
        return None  # another model must not read what the agent's own model may not
    return services.find("speech")


def spoken_text(answer: str) -> str:
    """Return an answer's words, without code and marks."""
    lines: list[str] = []
    for token in MarkdownIt("commonmark").enable("table").parse(answer[: MAX_CHARS * 2]):
        if token.type == "inline":
            texts = (
                " " if child.type in {"softbreak", "hardbreak"} else child.content
                for child in token.children or ()
                if child.type not in UNSPOKEN
            )
            lines.append("".join(texts).strip())
    return "\n".join(filter(None, lines))[:MAX_CHARS]


def split(text: str) -> Iterator[str]:
    """Yield pieces that fit into one request, cut between sentences where possible."""
    piece = ""
    for sentence in SENTENCE_END.split(text):
        while len(sentence) > MAX_REQUEST_CHARS:
            if piece:
                yield piece
                piece = ""
            yield sentence[:MAX_REQUEST_CHARS]
            sentence = sentence[MAX_REQUEST_CHARS:]
        if len(piece) + len(sentence) + 1 > MAX_REQUEST_CHARS:
            yield piece
            piece = ""
        piece = f"{piece} {sentence}".strip()
    if piece:
        yield piece


def saved_name(voice: MediaModel, text: str) -> str:
    """Return the name under which this text by this voice is saved."""
    key = "\0".join([voice.model, default_models.SPEECH_VOICE.value, text])
    return f"speech-{sha256(key.encode()).hexdigest()[:40]}.mp3"


def find_saved(run: Run, name: str) -> RunAttachment | None:
    rows = RunAttachment.objects.filter(run=run, name=name)
    return rows.select_related("file").first()


async def speak(run: Run, voice: MediaModel, text: str) -> AsyncIterator[bytes]:
    """Yield an MP3 of the text, and save it if it was heard to the end.

    What it costs is added to the run, also if the listener has left meanwhile.
    """
    sound = bytearray()
    for piece in split(text):
        voice_name = default_models.SPEECH_VOICE.value
        is_charged = False
        stream = metered_media.speak(voice, piece, voice=voice_name, payer=payer_of(run))
        async for data in stream:
            if not is_charged:  # a request that fails costs nothing
                await database.run(_charge, run, voice, len(piece))
                is_charged = True
            sound += data
            if len(sound) > MAX_BYTES:
                return
            yield data
    if sound:
        await database.run(_save, run, saved_name(voice, text), bytes(sound))


def _charge(run: Run, voice: MediaModel, characters: int) -> None:
    """Add what a request costs to the run's cost, if the price is known."""
    seconds = characters / CHARACTERS_A_SECOND
    cost = media_prices.speech_usage(voice.model, characters, seconds).cost
    if cost is not None:
        total = Coalesce(F("cost"), 0.0) + cost
        Run.objects.filter(pk=run.pk).update(cost=total)


def _save(run: Run, name: str, sound: bytes) -> None:
    with store.stage(sound, name=name, max_bytes=MAX_BYTES) as staged, transaction.atomic():
        if not Run.objects.filter(pk=run.pk).exists() or find_saved(run, name):
            return
        RunAttachment.objects.get_or_create(
            run=run,
            digest=staged.digest,
            defaults={
                "mime_type": MIME_TYPE,
                "name": name,
                "size": staged.size,
                "file": store.commit(staged, owner=None),
            },
        )
