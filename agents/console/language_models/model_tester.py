"""Tests a model: streamed to the page, or as a whole page."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Literal

from asgiref.sync import async_to_sync, sync_to_async
from django.http import HttpRequest, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils import translation
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.access import audit
from agents.catalog.agent_factory import CIRCUITS
from agents.catalog.language_models import model_clients, model_setups
from agents.db.sentences import translate
from agents.engine.errors import AgentConnectionError, AgentError
from agents.llm.discovery.model_list import ModelsNotListed, list_models
from agents.llm.discovery.model_probe import ProbeResult, probe
from agents.llm.wire import error_causes
from agents.llm.wire.provider_errors import CHECK_KEY_ADVICE
from agents.metering.budgets import Payer
from agents.models import LanguageModel, ModelConnection
from agents.models.types import AnyUser
from agents.web.presentation.formats.formatting import cost, duration

from . import model_state

KEY_ADVICE = {CHECK_KEY_ADVICE, error_causes.CHECK_PROXY_KEY}
TOOL_ADVICE = {
    error_causes.VLLM_FLAGS,
    error_causes.LLAMA_SERVER_FLAG,
    error_causes.USE_REACT,
}
IMAGE_ADVICE = {error_causes.CHOOSE_VISION, error_causes.ADD_PROJECTOR}
NDJSON_TYPE = "application/x-ndjson"
TEMPLATE = "admin/agents/languagemodel/trial.html"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeLine:
    """One result of a test."""

    part: str
    is_good: bool
    sentence: str
    more: str = ""


def respond(
    request: HttpRequest, row: LanguageModel, shell: dict[str, Any], wrong: Sequence[ProbeLine]
) -> HttpResponseBase:
    """Return the results: streamed for a script, otherwise as a page.

    `wrong` are problems that must be fixed in the form first.
    """
    if request.accepts(NDJSON_TYPE) and not request.accepts("text/html"):
        pieces = _stream_lines(request.user, row, wrong, translation.get_language() or "en")
        # Proxies must not buffer it.
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingHttpResponse(pieces, content_type=NDJSON_TYPE, headers=headers)
    checked, reply_text, results = (
        (None, "", []) if wrong else async_to_sync(_collect_results)(request.user, row)
    )
    if checked is not None:
        record = model_state.test_record(checked.error, results)
        model_state.save_record(row, record)
    key_lines = [_key_line(checked)] if checked else []
    lines = [*wrong, *key_lines, *map(result_line, results), *_total_lines(results)]
    context = {**shell, "title": _("Test"), "words": reply_text, "lines": lines}
    return render(request, TEMPLATE, context)


async def _stream_lines(
    user: AnyUser, row: LanguageModel, wrong: Sequence[ProbeLine], language: str
) -> AsyncIterator[str]:
    """Yield text as it comes, and everything else as elements for the page."""
    results: list[ProbeResult] = []
    if wrong:
        yield _render_lines(wrong, language)
        return
    failure: AgentError | None = None
    async with aclosing(run_probe(user, row)) as pieces:
        async for piece in pieces:
            if isinstance(piece, str):
                yield _json_line(said=piece)
                continue
            if isinstance(piece, KeyCheck):
                failure = piece.error
                with translation.override(language):
                    key_line = _key_line(piece)
                yield _render_lines([key_line], language)
                continue
            results.append(piece)
            with translation.override(language):
                line = result_line(piece)
            yield _render_lines([line], language)
    with translation.override(language):
        total_lines = _total_lines(results)
    yield _render_lines(total_lines, language)
    record = model_state.test_record(failure, results)
    await sync_to_async(model_state.save_record, thread_sensitive=True)(row, record)
    # Saved with the model if this very connection is.
    yield _json_line(tested=model_state.sign(row, record))


def test_saved(user: AnyUser, row: LanguageModel) -> ProbeLine:
    """Test a saved model, save the result, and return the first thing to say about it."""
    checked, _reply_text, results = async_to_sync(_collect_results)(user, row)
    record = model_state.test_record(checked.error, results)
    model_state.save_record(row, record)
    if record["works"]:
        CIRCUITS.close(f"model:{row.label}")  # earlier failures no longer apply
    return result_line(results[0]) if results else _key_line(checked)


async def _collect_results(
    user: AnyUser, row: LanguageModel
) -> tuple["KeyCheck", str, list[ProbeResult]]:
    pieces = [piece async for piece in run_probe(user, row)]
    [checked] = [piece for piece in pieces if isinstance(piece, KeyCheck)]
    reply_text = "".join(piece for piece in pieces if isinstance(piece, str))
    return checked, reply_text, [piece for piece in pieces if isinstance(piece, ProbeResult)]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyCheck:
    """What could be found out without a paid request; `error` ends the test."""

    kind: Literal["accepted", "reached", "impossible", "failed"]
    error: AgentError | None = None


async def check_key(row: LanguageModel) -> KeyCheck:
    """Check the key and the URL by the server's list of models, free of charge."""
    try:
        listed = await list_models(model_setups.model_settings(row))
    except ModelsNotListed:
        return KeyCheck(kind="impossible")
    except AgentError as error:
        # Only these are sure to fail again; a server may just have no such list.
        is_final = isinstance(error, AgentConnectionError) or error.advice in KEY_ADVICE
        return KeyCheck(kind="failed", error=error) if is_final else KeyCheck(kind="impossible")
    return KeyCheck(kind="accepted" if listed.key == "accepted" else "reached")


async def run_probe(
    user: AnyUser, row: LanguageModel
) -> AsyncGenerator[str | KeyCheck | ProbeResult, None]:
    """Run the test; the result is recorded even if the page was left.

    A key that the free check finds rejected isn't tried in a paid request.
    """
    results: list[ProbeResult] = []
    stream = probe(
        model_clients.llm_from_row(row, Payer(user=user.pk)),
        row.label or row.model,
        row.parameters,
    )
    checked: KeyCheck | None = None
    try:
        checked = await check_key(row)
        yield checked
        if checked.error is None:
            async with aclosing(stream) as pieces:
                async for piece in pieces:
                    if isinstance(piece, ProbeResult):
                        results.append(piece)
                    yield piece
    finally:
        failed = checked.error if checked else None
        if failed is None and results:
            failed = results[0].error
        if failed:
            outcome = f"failed: {failed}"
        elif results:
            outcome = "answered" if results[0].works else "empty"
        else:
            outcome = "cancelled"
        record = sync_to_async(audit.record, thread_sensitive=True)
        await record(
            user,
            audit.MODEL_TEST_ENDED,
            audit_subject(row),
            **audit_details(row),
            outcome=outcome,
        )


def audit_subject(row: LanguageModel) -> Any:
    return row if row.pk else "languagemodel"


def audit_details(row: LanguageModel) -> dict[str, str]:
    """Return a model's details for the audit log, without secrets."""
    return {"model": row.model, **connection_details(row.connection)}


def connection_details(connection: ModelConnection) -> dict[str, str]:
    """Return where a connection leads for the audit log, without secrets."""
    endpoint = connection.options.get("aws_bedrock_runtime_endpoint") or connection.region
    details = {
        "provider": connection.provider,
        "address": connection.base_url or str(endpoint or ""),
    }
    return {name: value for name, value in details.items() if value}


def _render_lines(lines: Sequence[ProbeLine], language: str) -> str:
    with translation.override(language):
        fragments = [render_to_string(f"{TEMPLATE}#line", {"line": line}) for line in lines]
    return _json_line(html="".join(fragments))


def _json_line(**value: str) -> str:
    return json.dumps(value, ensure_ascii=False) + "\n"


def _key_line(checked: KeyCheck) -> ProbeLine:
    """Say what the free check found, and which kind of check it was."""
    if checked.error:
        sentence = translate(str(checked.error))
        note = f"{translate(checked.error.advice)} {_('Checked free of charge.')}"
    else:
        sentence, note = {
            "accepted": (_("The key was accepted."), _("Checked free of charge.")),
            "reached": (
                _("The server responded."),
                _("Checked free of charge, without a key."),
            ),
            "impossible": (
                _("This server has no free check."),
                _("The requests below check the key."),
            ),
        }[checked.kind]
    return ProbeLine(
        part=_("Connection"), is_good=checked.error is None, sentence=sentence, more=note
    )


def result_line(result: ProbeResult) -> ProbeLine:
    label, works, does_not = _part_texts()[result.part]
    if result.error:
        is_known = result.part == "reply" or result.error.advice in TOOL_ADVICE
        note = translate(result.error.advice) if is_known else does_not
        if result.error.advice in IMAGE_ADVICE:
            note = ""  # the sentence says it already
        return ProbeLine(
            part=label, is_good=False, sentence=translate(str(result.error)), more=note
        )
    figures: list[str] = []
    if result.part == "reply":
        if result.first is not None:
            delay = {"time": _format_seconds(result.first)}
            figures.append(_("Time to first token: %(time)s.") % delay)
        tokens = {"read": result.read, "written": result.written}
        figures.append(_("Tokens: %(read)d input, %(written)d output.") % tokens)
        price = cost(result.cost) if result.cost is not None else _("unknown")
        figures.append(_("Cost: %(price)s.") % {"price": price})
        if result.pieces > 1:
            figures.append(_("Streams its responses."))
    return ProbeLine(
        part=label,
        is_good=result.works,
        sentence=works if result.works else does_not,
        more=" ".join(figures),
    )


def _part_texts() -> dict[str, tuple[str, str, str]]:
    """Return the label and the two outcomes of each part."""
    return {
        "reply": (
            _("Response"),
            _("The model responded."),
            _("The model returned an empty response."),
        ),
        "tools": (
            _("Tools"),
            _("The model can call tools."),
            _(
                "The model didn't call a tool. In its agents, set the tool call format "
                "to “ReAct text”."
            ),
        ),
        "vision": (
            _("Images"),
            _("The model can read images."),
            _("The model can't read images."),
        ),
        "schema": (
            _("Structured output"),
            _("The model follows a JSON Schema."),
            _(
                "The model doesn't follow a JSON Schema. Agents with structured output "
                "ask again with instructions in the prompt."
            ),
        ),
    }


def _total_lines(results: Sequence[ProbeResult]) -> list[ProbeLine]:
    """Return the totals, if there was more than one part."""
    if len(results) < 2:
        return []
    seconds = sum(result.seconds for result in results)
    costs = [result.cost for result in results if result.cost is not None]
    requests = ngettext("%(count)d request", "%(count)d requests", len(results))
    facts = {"requests": requests % {"count": len(results)}, "time": _format_seconds(seconds)}
    sentence = _("%(requests)s in %(time)s.") % facts
    price_note = _("Cost: %(price)s.") % {"price": cost(sum(costs))} if costs else ""
    return [ProbeLine(part=_("Total"), is_good=True, sentence=sentence, more=price_note)]


def _format_seconds(seconds: float) -> str:
    return duration(seconds * 1000)
