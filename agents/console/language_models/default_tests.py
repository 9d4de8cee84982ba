"""Tests a model of the page of defaults with one tiny request, and says how it went."""

import math
import struct
import tempfile
import wave
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from time import monotonic

from asgiref.sync import async_to_sync
from django.template.defaultfilters import filesizeformat
from django.utils.translation import gettext as _

from agents.access import audit
from agents.catalog.language_models import model_clients, model_setups
from agents.catalog.language_models.discovered_model import discovered_model
from agents.db.installation import default_models
from agents.db.sentences import translate
from agents.engine.errors import AgentError
from agents.engine.planner import LLM
from agents.engine.text import shorten
from agents.knowledge import embeddings
from agents.knowledge.media import image_models, services, transcription
from agents.knowledge.parsing import UnreadableDocument
from agents.llm.discovery.model_probe import ProbeResult, probe, solid_png
from agents.llm.media_models import MediaModel, Upload
from agents.metering.budgets import Payer, current_payer, paying
from agents.metering.budgets.metered import metered_media
from agents.models import LanguageModel
from agents.models.types import AnyUser
from agents.web.presentation.formats.formatting import duration

from . import model_tester
from .model_tester import ProbeLine

TONE_SECONDS = 1
TONE_RATE = 16_000
TONE_HERTZ = 440
SPOKEN_TEXT = "Hello."
IMAGE_PROMPT = "A small red circle on a white background."
IMAGE_COLOR = "red"
IMAGE_QUESTION = "Which color is this? Answer with one word."
MAX_SHOWN_CHARS = 200


def test_chat(user: AnyUser, row: LanguageModel | None) -> ProbeLine:
    """Test the default chat model; without a row it is the one of the environment."""
    if row is not None:
        audit.record(user, audit.MODEL_TESTED, row, **model_tester.audit_details(row))
        return model_tester.test_saved(user, row)
    name = discovered_model().model
    audit.record(user, audit.MODEL_TESTED, "languagemodel", model=name)
    llm = model_clients.build_llm(model_setups.find_setup(name), Payer(user=user.pk))
    result = async_to_sync(_reply)(llm, name)
    outcome = f"failed: {result.error}" if result.error else "answered"
    audit.record(user, audit.MODEL_TEST_ENDED, "languagemodel", model=name, outcome=outcome)
    return model_tester.result_line(result)


def test_model(user: AnyUser, key: str, model: str, extra: Mapping[str, str]) -> ProbeLine:
    """Test a model for a purpose; `extra` are the voice and the language of the form."""
    setting = default_models.MODELS[key]
    label = str(setting.label)
    if model == embeddings.OFF or (not model and not has_own(key)):
        return ProbeLine(part=label, is_good=False, sentence=_("Choose a model first."))
    connected = default_models.parse(model)
    connection = connected.connection if connected else None
    subject = connection or f"setting:{key}"
    details = {"model": connected.model if connected else model, "check": key}
    if connection is not None:
        details |= model_tester.connection_details(connection)
    # Recorded before it starts, because it sends the key.
    audit.record(user, audit.MODEL_TESTED, subject, **details)
    began = monotonic()
    try:
        with paying(user=user.pk):
            sentence = TESTS[key](model, extra)
    except (AgentError, embeddings.EmbeddingUnavailable, UnreadableDocument) as error:
        outcome = f"failed: {error}"
        advice = translate(error.advice) if isinstance(error, AgentError) else ""
        line = ProbeLine(part=label, is_good=False, sentence=translate(str(error)), more=advice)
    else:
        outcome = "answered"
        took = _("It took %(time)s.") % {"time": duration((monotonic() - began) * 1000)}
        line = ProbeLine(part=label, is_good=True, sentence=sentence, more=took)
    audit.record(user, audit.MODEL_TEST_ENDED, subject, **details, outcome=outcome)
    return line


async def _reply(llm: LLM, name: str) -> ProbeResult:
    async with aclosing(probe(llm, name)) as pieces:
        return await anext(piece async for piece in pieces if isinstance(piece, ProbeResult))


def has_own(key: str) -> bool:
    """Whether this server transcribes without a model of a connection."""
    return key == default_models.TRANSCRIPTION.key and services.can_transcribe_here()


def _test_embedding(model: str, extra: Mapping[str, str]) -> str:
    return _("The model returned a vector of %(count)d numbers.") % {
        "count": embeddings.dimension(model)
    }


def _test_transcription(model: str, extra: Mapping[str, str]) -> str:
    if not model:
        return _test_whisper()
    language = extra.get(default_models.TRANSCRIPTION_LANGUAGE.key, "")
    sound = Upload(name="tone.wav", mime_type="audio/wav", data=_tone())
    reply = async_to_sync(metered_media.transcribe)(
        _service("transcription", model), sound, seconds=TONE_SECONDS, language=language
    )
    text = shorten(str(reply.get("text") or "").strip(), MAX_SHOWN_CHARS)
    if not text:
        return _("The model listened to a tone and heard no words, as it should.")
    return _("The model listened to a tone. Its transcript: “%(text)s”") % {"text": text}


def _test_whisper() -> str:
    with tempfile.TemporaryDirectory(prefix="test-") as folder:
        path = Path(folder, "tone.wav")
        path.write_bytes(_tone())
        try:
            transcription.transcribe(path, "audio/wav", is_private=True)
        except UnreadableDocument as error:
            if str(error) != transcription.NO_SPEECH:
                raise
    return _("The model listened to a tone and heard no words, as it should.")


def _test_speech(model: str, extra: Mapping[str, str]) -> str:
    setting = default_models.SPEECH_VOICE
    voice = extra.get(setting.key) or setting.value
    size = async_to_sync(_spoken_bytes)(_service("speech", model), voice)
    return _("The model returned %(size)s of sound.") % {"size": filesizeformat(size)}


async def _spoken_bytes(service: MediaModel, voice: str) -> int:
    pieces = metered_media.speak(service, SPOKEN_TEXT, voice=voice, payer=current_payer())
    return sum([len(piece) async for piece in pieces])


def _test_image(model: str, extra: Mapping[str, str]) -> str:
    # Not repeated: a request that was lost may have been paid for.
    service = replace(_service("image", model), max_retries=0)
    size = image_models.size_for(service.model, "square")
    image = async_to_sync(metered_media.generate_image)(service, IMAGE_PROMPT, size=size)
    return _("The model returned an image of %(size)s.") % {
        "size": filesizeformat(len(image.data))
    }


def _test_vision(model: str, extra: Mapping[str, str]) -> str:
    description = async_to_sync(metered_media.describe_image)(
        _service("vision", model),
        solid_png(IMAGE_COLOR),
        "image/png",
        question=IMAGE_QUESTION,
    )
    text = shorten(description.text, MAX_SHOWN_CHARS)
    return _("The model looked at a red square. Its answer: “%(text)s”") % {"text": text}


def _service(service: services.Service, model: str) -> MediaModel:
    media_model = services.find(service, model)
    assert media_model is not None  # there is a model
    return media_model


def _tone() -> bytes:
    """Return a recording of one second that isn't silent."""
    samples = (
        int(8_000 * math.sin(2 * math.pi * TONE_HERTZ * index / TONE_RATE))
        for index in range(TONE_SECONDS * TONE_RATE)
    )
    recording = BytesIO()
    with wave.open(recording, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(TONE_RATE)
        file.writeframes(b"".join(struct.pack("<h", sample) for sample in samples))
    return recording.getvalue()


TESTS: dict[str, Callable[[str, Mapping[str, str]], str]] = {
    "embedding_model": _test_embedding,
    "transcription_model": _test_transcription,
    "speech_model": _test_speech,
    "image_model": _test_image,
    "vision_model": _test_vision,
}
