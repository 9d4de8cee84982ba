"""Exports a chat: JSON for programs (docs/chat-schema.md), Markdown for people.

Markdown has the branch on the page, JSON the whole tree. Both are streamed, because a chat can
be too long for memory. With `masks_others`, personal data is masked in what other members wrote
and in its answers.
"""

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.access import masking
from agents.engine.attachments import format_size
from agents.models import Run
from agents.web.presentation import RunView
from agents.web.presentation.evidence_fragments import source_names
from agents.web.presentation.formats.formatting import MAX_SHOWN_CHARS
from chat import attachments
from chat.models import ChatSession, Message
from chat.sessions import branches, conversation
from chat.transfer.imports.export_ids import export_id
from chat.transfer.imports.formats.ashiato import SCHEMA
from chat.transfer.imports.values import code_block, cut

FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})", re.MULTILINE)
FILE_NAME_CHARS = re.compile(r"[^\w-]+")


def file_name(chat: ChatSession, ending: str) -> str:
    """Return a name from the title that every system and header accepts."""
    title = FILE_NAME_CHARS.sub("-", chat.title.encode("ascii", "ignore").decode()).strip("-")
    return f"{'-'.join(filter(None, [title.lower()[:40].strip('-'), str(chat.pk)]))}.{ending}"


def as_json(
    chat: ChatSession, user: User, *, has_steps: bool = True, masks_others: bool = False
) -> Iterator[str]:
    """Yield the whole tree with its answers and steps."""
    is_masked = masks_others and chat.user_id != user.pk
    hides_rules = not masking.sees_rules(user)
    path = branches.visible_path(chat, user)
    head = {
        "schema": SCHEMA,
        "exported_at": timezone.now().isoformat(),
        "chat": {
            "id": export_id(chat.pk),
            "title": masking.mask_row(chat).title if is_masked else chat.title,
            "owner": chat.user.get_username(),
            "created_at": chat.created_at.isoformat(),
            "updated_at": chat.updated_at.isoformat(),
            "current": path[-1] if path else None,
        },
    }
    yield f'{json.dumps(head, ensure_ascii=False)[:-1]},\n"messages": ['
    pks = list(branches.read(chat.pk).parents)
    for index, message in enumerate(conversation.messages_by_pk(pks)):
        is_masked = masks_others and message.author_id != user.pk
        transform = partial(masking.visible_row, is_masked=is_masked, hides_rules=hides_rules)
        run = message.run
        entry = {
            "id": message.pk,
            "parent": message.parent_id,
            "author": message.author.get_username(),
            "text": transform(message).text,
            **({"files": _files(message, is_masked)} if message.has_files else {}),
            "created_at": message.created_at.isoformat(),
            "run": None if run is None else _run_dict(run, transform, has_steps=has_steps),
        }
        yield f"{',' if index else ''}\n{json.dumps(entry, ensure_ascii=False)}"
    yield "]}\n"


def as_markdown(
    chat: ChatSession, user: User, *, has_steps: bool = False, masks_others: bool = False
) -> Iterator[str]:
    """Yield the branch on the user's page as a document."""
    is_masked = masks_others and chat.user_id != user.pk
    yield f"# {_escape_line(masking.mask_text(chat.title) if is_masked else chat.title)}\n\n"
    yield _("Exported on %(time)s.") % {"time": _time_text(timezone.now())} + "\n"
    for message in conversation.visible_messages(chat, user):
        is_masked = masks_others and message.author_id != user.pk
        author = _escape_line(message.author.get_username())
        yield f"\n---\n\n**{author}** · {_time_text(message.created_at)}\n\n"
        for file in _files(message, is_masked) if message.has_files else ():
            size = format_size(file["size"])
            yield f"> *{_escape_line(file['name'])}* ({size})\n>\n"
        text = masking.mask_text(message.text) if is_masked else message.text
        yield "\n".join(f"> {line}".rstrip() for line in text.splitlines()) + "\n"
        if message.run is not None:
            yield from _answer_markdown(message.run, has_steps=has_steps, is_masked=is_masked)


def _files(message: Message, is_masked: bool) -> list[dict[str, Any]]:
    """Return what was attached; the bytes are in *Download my data*."""
    return [
        {
            "name": masking.mask_text(row.name) if is_masked else row.name,
            "type": row.mime_type,
            "size": row.file.size,
            "digest": row.file.digest,
        }
        for row in attachments.sent_with(message.pk)
    ]


def _run_dict(run: Run, transform: Callable[[Any], Any], *, has_steps: bool) -> dict[str, Any]:
    steps = [
        {
            "number": step.number,
            "parent": step.parent,
            "depth": step.depth,
            "turn": step.turn,
            "kind": step.kind,
            "status": step.status,
            "thought": step.thought,
            "action": step.action,
            "action_input": step.action_input,
            "observation": step.observation,
            "agent": step.agent_name,
            "started_at": step.started_at.isoformat(),
            "ended_at": None if step.ended_at is None else step.ended_at.isoformat(),
        }
        for step in map(transform, run.steps.order_by("number") if has_steps else ())
    ]
    run = transform(run)
    return {
        "id": run.pk,
        "agent": run.agent_name,
        "model": run.model,
        "is_imported": run.is_imported,
        "status": run.status,
        "stopped_reason": run.stopped_reason,
        "answer": run.answer,
        "output": run.output,
        "detail": run.detail,
        "usage": {
            "prompt_tokens": run.prompt_tokens,
            "completion_tokens": run.completion_tokens,
            "cost_usd": run.cost,
        },
        "started_at": run.started_at.isoformat(),
        "ended_at": None if run.ended_at is None else run.ended_at.isoformat(),
        **({"steps": steps} if has_steps else {}),
    }


def _answer_markdown(run: Run, *, has_steps: bool, is_masked: bool) -> Iterator[str]:
    run = masking.mask_row(run) if is_masked else run
    view = RunView(run, place="trace", masker=masking.Masker() if is_masked else None)
    byline = " · ".join(filter(None, [run.agent_name, view.model_label, view.route_label]))
    yield f"\n**{_escape_line(byline)}**\n\n"
    if has_steps and view.steps:
        heading = ngettext("%(n)d step", "%(n)d steps", len(view.steps))
        yield f"<details>\n<summary>{heading % {'n': len(view.steps)}}</summary>\n\n"
        # Texts are in code blocks, so that none can pass as ours.
        for step in view.steps:
            yield f"{step.number}. {step.kind_label} · {_escape_line(step.intent)}\n\n"
            is_tool = step.kind == "tool"
            texts = [step.input_text, step.result_text] if is_tool else [step.thought]
            for text in filter(None, texts):
                yield f"{code_block(cut(text, MAX_SHOWN_CHARS))}\n\n"
        yield "</details>\n\n"
    if run.output is not None:
        yield f"{code_block(view.output_text, 'json')}\n"
    elif run.answer:
        yield f"{_close_fence(run.answer)}\n"
    for heading, names in source_names(view).items():
        lines = (f"- {_escape_line(name)}\n" for name in names)
        yield f"\n**{heading}**\n\n{''.join(lines)}"
    if view.sentence or not run.answer:
        yield f"\n*{_escape_line(view.sentence or _('No answer.'))}*\n"


def _close_fence(text: str) -> str:
    """Close a code block that is still open, so that the rest of the document stays text."""
    fence = ""
    for match in FENCE.finditer(text):
        mark = match[1]
        if not fence:
            fence = mark
        elif mark[0] == fence[0] and len(mark) >= len(fence):
            fence = ""
    return f"{text}\n{fence}" if fence else text


def _time_text(moment: Any) -> str:
    return timezone.localtime(moment).strftime("%Y-%m-%d %H:%M")


def _escape_line(text: str) -> str:
    """Escape Markdown and put the text on one line."""
    return re.sub(r"([\\`*_<>\[\]#|])", r"\\\1", " ".join(text.split()))
