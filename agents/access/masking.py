"""Masks personal data in rows for reviewers."""

from collections.abc import Hashable, Iterable, MutableMapping
from copy import copy
from functools import lru_cache
from typing import Any, TypeVar

from django.db import models

from agents.db.fast_writes import concrete_field
from agents.engine import prompt_parts
from agents.engine.events import DELTA_TYPES, EventType
from agents.engine.privacy import ALIAS, StreamingMasker, mask
from agents.engine.sentences import Sentence
from agents.models import Agent, AgentStep, Approval, Membership, Run, RunEvent
from agents.models.types import AnyUser

UNMASK_PERMISSION = "agents.see_personal_data"
UNMASKED_SESSION_KEY = "unmasked"
ANSWER_STEP = 0  # steps start at 1
MAX_LABELLED_CHARS = 200
HIDDEN = "…"
MASKED_COLUMNS: dict[type[models.Model], tuple[str, ...]] = {
    Run: (
        "query",
        "parameters",
        "history",
        "files",
        "answer",
        "output",
        "detail",
        "advice",
        "overrides",
    ),
    AgentStep: (
        "thought",
        "action",
        "action_input",
        "observation",
        "request",
        "notes",
        "attachments",
        "sources",
    ),
    Approval: ("arguments", "new_arguments", "reason"),
    RunEvent: ("data",),
}
# What contains the instructions, and so the profile and the memory of who asked.
PRIVATE_COLUMNS: dict[type[models.Model], tuple[str, ...]] = {
    AgentStep: ("request", "notes"),
    RunEvent: ("data",),
}
PRIVATE_EVENTS = {
    EventType.RUN_STARTED,
    EventType.HANDOFF,
    EventType.STEP_STARTED,
    EventType.STATUS,
}
RULE_FIELDS = {"rule", "id"}
Row = TypeVar("Row", bound=models.Model)
Session = MutableMapping[str, Any]


def is_masked_for(run: Run, user: AnyUser, session: Session) -> bool:
    """Whether the run is masked for this user: unless it is theirs, or they gave a reason.

    Members of a shared chat see it unmasked.
    """
    if run.user_id is not None and is_participant(run, user):
        return False
    return run.pk not in session.get(UNMASKED_SESSION_KEY, ()) or not user.has_perm(
        UNMASK_PERMISSION
    )


def is_own(run: Run, user: AnyUser) -> bool:
    """Whether the run's text is this user's; runs from a terminal have no user."""
    owner = asker_id(run)
    return owner is not None and owner == user.pk


def is_participant(run: Run, user: AnyUser) -> bool:
    """Whether the run's text is this user's, or in a chat shared with them."""
    if is_own(run, user):
        return True
    root = _root_run(run)
    return root is not None and root.topic in Membership.objects.shared_topics(user)


def hides_private_parts(run: Run, user: AnyUser) -> bool:
    """Whether the user reads another's run as a member of its chat: not as a reviewer."""
    return not is_own(run, user) and is_participant(run, user)


def hide_private_parts(row: Row) -> Row:
    """Return a copy without what only the user who asked can read: profile, memory, project."""
    if isinstance(row, RunEvent) and row.type not in PRIVATE_EVENTS:
        return row
    columns = [name for name in PRIVATE_COLUMNS.get(type(row), ()) if name in row.__dict__]
    if not columns:
        return row
    hidden = copy(row)
    for name in columns:
        setattr(hidden, name, prompt_parts.remove_personal(row.__dict__[name]))
    return hidden


def sees_rules(user: AnyUser) -> bool:
    """Whether the user can read which guardrail rule matched: its name can be a secret."""
    return user.has_perm("agents.review_runs")


def hide_rules(row: Row) -> Row:
    """Return a copy of a guardrail's finding that doesn't say which rule it was."""
    is_finding = (isinstance(row, AgentStep) and row.kind == AgentStep.Kind.GUARDRAIL) or (
        isinstance(row, RunEvent) and row.type == EventType.GUARDRAIL
    )
    if not is_finding:
        return row
    hidden = copy(row)
    if isinstance(hidden, AgentStep):
        hidden.action_input = _without_rule(hidden.action_input)
        hidden.notes = [_without_reason(note) for note in hidden.notes]
    elif isinstance(hidden, RunEvent):
        hidden.data = _without_rule(hidden.data)
    return hidden


def _without_rule(details: Any) -> Any:
    if not isinstance(details, dict):
        return details
    visible = {key: value for key, value in details.items() if key not in RULE_FIELDS}
    if "judge" in visible:
        visible["judge"] = _without_reason(visible["judge"])
    if "details" in visible:
        visible["details"] = _without_rule(visible["details"])
    return visible


def _without_reason(judge: dict[str, Any]) -> dict[str, Any]:
    """Return a verdict without the judge's reason, which explains the rule."""
    return {key: value for key, value in judge.items() if key != "reason"}


def visible_row(
    row: Row, *, is_masked: bool = False, hides_private: bool = False, hides_rules: bool = False
) -> Row:
    """Return a row as a reader sees it."""
    if is_masked:
        row = mask_row(row)
    elif hides_private:
        row = hide_private_parts(row)
    return hide_rules(row) if hides_rules else row


def asker_id(run: Run) -> int | None:
    """Return the author of the run's question, also for a rerun by someone else.

    If the origin is deleted, the author is unknown: None.
    """
    root = _root_run(run)
    return None if root is None else root.user_id


def _root_run(run: Run) -> Run | None:
    while run.origin_step is not None:
        if run.origin is None:
            return None
        run = run.origin
    return run


def load_origins(runs: Iterable[Run]) -> list[Run]:
    """Return runs with everything `asker_id` needs, loaded in few queries."""
    loaded = list(runs)
    reruns = [run for run in loaded if run.origin_id is not None]
    while reruns:
        origins = Run.objects.only("user", "topic", "origin", "origin_step").in_bulk(
            {run.origin_id for run in reruns}
        )
        for run in reruns:
            run.origin = origins.get(run.origin_id)
        reruns = [run for run in origins.values() if run.origin_id is not None]
    return loaded


def unmask(run: Run, session: Session) -> None:
    """Unmask this run for the rest of the browser session."""
    session[UNMASKED_SESSION_KEY] = sorted({*session.get(UNMASKED_SESSION_KEY, ()), run.pk})


def remask(run: Run, session: Session) -> None:
    session[UNMASKED_SESSION_KEY] = [
        pk for pk in session.get(UNMASKED_SESSION_KEY, ()) if pk != run.pk
    ]


def masked_columns(model: type[models.Model]) -> tuple[str, ...]:
    """Return the columns of this model that are masked for others."""
    own: tuple[str, ...] = getattr(model, "personal", ())
    return MASKED_COLUMNS.get(model, own)


def mask_row(row: Row) -> Row:
    """Return a masked copy; models list their own `personal` columns.

    Deferred columns are emptied, because they would be loaded unmasked.
    """
    row = hide_private_parts(row)
    masked = copy(row)
    for name in masked_columns(type(row)):
        default = concrete_field(type(row), name).get_default()
        setattr(masked, name, _mask_column(row, name, row.__dict__.get(name, default)))
    masked.__dict__.pop("found", None)
    return masked


def _mask_column(row: models.Model, name: str, value: Any) -> Any:
    if name == "observation" and row.__dict__.get("found_size", 0) > len(value):
        return StreamingMasker().feed(value)  # may be cut in the middle of personal data
    if name in {"attachments", "files"}:
        # The content can't be masked, so it isn't reachable; what kind of file it is stays.
        hidden = {"digest": "", "is_masked": True}
        return [{**file, "name": mask_text(file.get("name", "")), **hidden} for file in value]
    if name == "sources":
        # A passage's number and place stay: ids and digests are no personal data.
        texts = ("title", "heading", "label")
        return [
            {
                **{name: item for name, item in source.items() if name != "links"},
                **{text: mask_text(str(source.get(text, ""))) for text in texts},
                **({"url": mask_text(str(source["url"]))} if "url" in source else {}),
            }
            for source in value
        ]
    if isinstance(row, RunEvent) and row.type in DELTA_TYPES:
        return {**value, "content": HIDDEN}  # a single delta doesn't show what it is part of
    return mask_value(value)


def mask_for_storage(agent: Agent, value: Any) -> Any:
    """Mask the value if this agent stores no personal data."""
    return mask_value(value) if agent.personal_data == Agent.PersonalData.UNKEPT else value


def mask_text(text: str) -> str:
    return mask(text).text


_mask_key = lru_cache(maxsize=4096)(mask_text)  # the same few names are frequent


def mask_value(value: Any, label: str = "") -> Any:
    """Mask every string and number; a field's name can identify its value."""
    if isinstance(value, Sentence):
        return value.map(lambda text: _mask_leaf(text, label))
    if isinstance(value, str):
        return _mask_leaf(value, label)
    if isinstance(value, dict):
        masked: dict[str, Any] = {}
        for key, item in value.items():
            name = _mask_key(key)
            # Names that become equal get a number.
            name = f"{name} {len(masked)}" if name in masked else name
            # A field named by an alias contains what the model wasn't sent.
            masked[name] = HIDDEN if ALIAS.fullmatch(key) else mask_value(item, key)
        return masked
    if isinstance(value, list):
        return [mask_value(item, label) for item in value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    text = _mask_leaf(str(value), label)
    return value if text == str(value) else text


def _mask_leaf(text: str, label: str) -> str:
    prefix = f"{label}: "
    if label and len(text) <= MAX_LABELLED_CHARS:
        labelled = mask_text(f"{prefix}{text}")
        if labelled.startswith(prefix):
            return labelled.removeprefix(prefix)
    return mask_text(text)


class Masker:
    """Masks text that is still being streamed, with a short delay."""

    def __init__(self) -> None:
        self._maskers: dict[Hashable, StreamingMasker] = {}

    def begin(self, step: Hashable, text: str) -> str:
        """Start with the text so far and return what can be displayed."""
        self._maskers[step] = StreamingMasker()
        return self._maskers[step].feed(text)

    def add(self, step: Hashable, text: str) -> str:
        """Add text and return what else can be displayed."""
        return self._maskers.setdefault(step, StreamingMasker()).feed(text)

    def event(self, row: RunEvent) -> RunEvent:
        """Mask an event; text held back is in the event that ends the step."""
        if row.type not in DELTA_TYPES:
            return mask_row(row)
        masked = copy(row)
        content = self.add((row.type, row.data["step"]), row.data["content"])
        masked.data = {**row.data, "content": content}
        return masked
