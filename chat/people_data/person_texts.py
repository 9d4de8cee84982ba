"""Everything a user wrote, and its replacement in other users' data."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Model, Q

from agents.access import audit
from agents.accounts.models import Profile
from agents.console.admin_classes import deleted_rows
from agents.engine.events import EventType
from agents.models import (
    AgentStep,
    Approval,
    Deletion,
    Experience,
    Memory,
    Project,
    Run,
    RunEvent,
    StyleSignal,
)
from agents.review.models import Comment, Note, Rating, Review
from chat.models import ChatSession, Message, Prompt, PublicLink

from . import erasure_scope, quotations
from .quotation_matcher import REDACTED, SENTENCE_ENDS, QuotationMatcher, is_distinctive
from .text_columns import TEXT_COLUMNS

PAGE_SIZE = 200
DECISION_WORDS = ("approved", "declined")


class PersonTexts:
    """A user's texts, as far as known, and where to search for them."""

    def __init__(self, user: User) -> None:
        self.person = audit.person(user)
        self.topics = erasure_scope.shared_topics(user)
        own = set(_authored_texts(user))
        own -= quotations.texts_by_others(user, own)
        quoted = {text.rstrip(SENTENCE_ENDS) for text in own}
        own |= quoted - quotations.texts_by_others(user, quoted)
        runs = Run.objects.filter(message__author=user).exclude(message__session__user=user)
        answers = set(runs.exclude(answer="").values_list("answer", flat=True))
        name = user.get_username()
        self.matcher = QuotationMatcher(
            own | answers,
            phrases=[f"{name} {decision}" for decision in DECISION_WORDS],
            answers=dict(erasure_scope.decisions(user).values_list("call_id", "reason")),
            quotable=own,
        )
        self._distinctive_matcher = QuotationMatcher(filter(is_distinctive, own))
        self._decided = list(
            erasure_scope.decisions(user).exclude(reason="").values("run", "step", "reason")
        )

    def redact(
        self, run_pks: set[int], after_pks: dict[Any, int], excluded: dict[type[Model], Q]
    ) -> Counter:
        """Replace the texts: all of them in related rows, long ones everywhere."""
        run_rows = quotations.run_rows(sorted(run_pks))
        topic_parts = (topic.partition(".") for topic in sorted(self.topics))
        chats = [int(pk) for kind, _dot, pk in topic_parts if kind == "chat" and pk.isdecimal()]
        chat_rows = quotations.session_rows(chats)
        counts = quotations.redact_rows(self.matcher, chain(run_rows, chat_rows), excluded)
        counts[RunEvent] += quotations.redact_deltas(self.matcher, sorted(run_pks))
        counts[AgentStep] += self._replace_answers()
        if self._distinctive_matcher:
            matching_runs: set[int] = set()
            counts += quotations.redact_rows(
                self._distinctive_matcher,
                quotations.all_rows(after_pks),
                excluded,
                matching_runs,
            )
            counts[RunEvent] += quotations.redact_deltas(
                self._distinctive_matcher, sorted(matching_runs - run_pks)
            )
        return counts

    def redact_deleted(self, user: User) -> Counter:
        """Erase the user from what was deleted in the console and can still be restored."""
        redact = self._distinctive_matcher.without
        return Counter({Deletion: deleted_rows.erase_person(user, TEXT_COLUMNS, redact)})

    def left(self) -> Counter:
        if not self._distinctive_matcher:
            return Counter()
        counts = quotations.count_in_config(self._distinctive_matcher)
        counts[Deletion] += deleted_rows.count_matching(self._distinctive_matcher.matches)
        return +counts

    def _replace_answers(self) -> int:
        """Replace answers to questions in their steps, even short ones."""
        count = 0
        for decision in self._decided:
            steps = AgentStep.objects.filter(run=decision["run"], number=decision["step"])
            for step in steps.filter(observation__contains=decision["reason"]):
                text = step.observation.replace(decision["reason"], REDACTED)
                count += AgentStep.objects.filter(pk=step.pk).update(observation=text)
            events = RunEvent.objects.filter(run=decision["run"], type=EventType.STEP)
            for event in events.filter(data__step=decision["step"]):
                observation = str(event.data.get("observation", ""))
                redacted = observation.replace(decision["reason"], REDACTED)
                data = {**event.data, "observation": redacted}
                if observation and data != event.data:
                    RunEvent.objects.filter(pk=event.pk).update(data=data)
        return count


def source_rows(user: User) -> dict[type[Model], Q]:
    """Return the rows the texts are known from, which are deleted or cleared later."""
    theirs = Run.objects.filter(erasure_scope.runs_filter(user)).values("pk")
    return {
        Message: Q(author=user) | Q(session__user=user),
        ChatSession: Q(user=user),
        PublicLink: Q(session__user=user),
        Run: Q(pk__in=theirs),
        RunEvent: Q(run__in=theirs),
        AgentStep: Q(run__in=theirs),
        Approval: Q(run__in=theirs) | Q(decided_by=user),
        Comment: Q(author=user),
        Rating: Q(user=user),
        Note: Q(author=user),
        Review: Q(flagged_by=user) | Q(corrected_by=user),
        Profile: Q(user=user),
        Prompt: Q(user=user),
        Memory: Q(user=user),
        Experience: Q(user=user),
        StyleSignal: Q(user=user),
        Project: Q(owner=user),
    }


def _authored_texts(user: User) -> Iterator[str]:
    """Yield everything the user wrote that others may have seen."""
    runs = Run.objects.filter(user=user)
    guardrail_steps = AgentStep.objects.filter(run__user=user, kind=AgentStep.Kind.GUARDRAIL)
    decided = Approval.objects.filter(decided_by=user)
    for rows, column in (
        (Message.objects.filter(author=user), "text"),
        (runs, "query"),
        (decided, "reason"),
        (decided, "new_arguments"),
        (Comment.objects.filter(author=user), "text"),
        (Rating.objects.filter(user=user), "comment"),
        (Note.objects.filter(author=user), "text"),
        (Prompt.objects.filter(user=user), "text"),
        (Memory.objects.filter(user=user), "text"),
        (Project.objects.filter(owner=user), "instructions"),
        (Profile.objects.filter(user=user), "about_me"),
        (Profile.objects.filter(user=user), "answer_style"),
        (Review.objects.filter(flagged_by=user), "why"),
        (Review.objects.filter(corrected_by=user), "correction"),
    ):
        yield from rows.values_list(column, flat=True).iterator(PAGE_SIZE)
    for action_input in guardrail_steps.values_list("action_input", flat=True).iterator(
        PAGE_SIZE
    ):
        if isinstance(action_input, dict) and isinstance(action_input.get("text"), str):
            yield action_input["text"]
    for arguments_json in decided.exclude(new_arguments="").values_list(
        "new_arguments", flat=True
    ):
        yield from _string_values(json.loads(arguments_json))


def _string_values(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    items: Iterable[Any] = value.values() if isinstance(value, dict) else value
    if isinstance(value, dict | list):
        for item in items:
            yield from _string_values(item)
