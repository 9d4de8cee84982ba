"""Creates the run that answers a message: its agent, its history, its workflow."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Case, F, QuerySet, When
from django.utils import translation
from django.utils.translation import gettext as _

from agents import runs
from agents.catalog import agent_factory
from agents.catalog.language_models import model_setups, planner_factory
from agents.db.compiled_queries import compiled_query
from agents.db.sanitize import sanitize_text
from agents.db.sentences import translate
from agents.engine.errors import AgentError
from agents.engine.history_summary import summary_messages
from agents.engine.state import Message as HistoryMessage
from agents.llm import tokens
from agents.metering import budgets
from agents.models import Agent, Project, Run
from agents.runs import event_store
from agents.web.workflows import start
from chat import attachments
from chat.errors import MessageRejected, MessageTooLong
from chat.models import Attachment, ChatSession, Message
from chat.sessions import branches

from . import history_screening, run_options
from .run_options import RunOptions

logger = logging.getLogger(__name__)

AGENT_DEFAULTS = RunOptions()
HISTORY_RUNS = 20
SMALLEST_WINDOW = 1_500  # tokens of a question that every model can be sent
# Of exchanges that no guardrail has checked, newest first: the database's thread does it.
MAX_SCREENED_CHARS = 400_000
# Only what the history needs: loading whole runs takes three times as long.
HISTORY_FIELDS = [
    "query",
    "files",
    "answer",
    "status",
    "stopped_reason",
    "detail",
    "step_types",
    "tool_calls",
    "route",
    "agent",
    "review__correction",
    "project",
    "summary__text",
    "summary__kept",
]


def history(
    session: ChatSession,
    path: Sequence[int] | None = None,
    agent: Agent | None = None,
    project: int | None = None,
) -> list[HistoryMessage]:
    """Return the history as a model gets it: of the messages on this or the newest path.

    What no guardrail has checked yet passes those of the agent that answers now. What tools
    returned while the chat was in another project isn't sent again.
    """
    if path is None:
        tree = branches.read(session.pk)
        path = tree.path(tree.newest_leaf())
    max_runs = HISTORY_RUNS if agent is None else agent.max_history_turns
    messages: list[HistoryMessage] = []
    if (
        agent is not None
        and agent.summarizes_history
        and agent.mode == Agent.Mode.REACT
        and max_runs > 0
    ):
        # With some more than the agent's limit, the run can summarize them.
        history_runs = _runs_of(session.pk, path, max_runs + max_runs // 2 + 2)
        # The newest summary stands for the runs that it includes.
        for index, run in reversed(list(enumerate(history_runs))):
            summary = getattr(run, "summary", None)
            if summary is not None and run.project_id == project:
                messages = summary_messages(summary.text)
                history_runs = history_runs[max(0, index - summary.kept) :]
                break
    else:
        history_runs = _runs_of(session.pk, path, max_runs)
    guardrails = None
    checked: set[int] = set()
    dropped: set[int] = set()
    # No guardrail has seen what was imported, or corrected when its agent no longer existed.
    unchecked = [
        run
        for run in history_runs
        if run.is_imported or (vars(run)["corrected"] is not None and run.agent_id is None)
    ]
    if agent is not None and unchecked:
        guardrails = agent_factory.build_guardrails(agent)
        chars_left = MAX_SCREENED_CHARS
        for run in reversed(unchecked):
            chars_left -= len(run.query) + len(run.answer)
            (checked if chars_left >= 0 else dropped).add(run.pk)
    for run in history_runs:
        if run.pk not in dropped:
            messages += history_screening.screen(
                _transcript(run, project), guardrails if run.pk in checked else None
            )
    return messages


def _transcript(run: Run, project: int | None) -> list[HistoryMessage]:
    """Return a run's messages, with the question as it was corrected.

    What was imported or corrected is marked: no model check has judged it.
    """
    messages = event_store.transcript(run)
    corrected = vars(run)["corrected"]
    if run.project_id != project:
        messages = [m for m in messages if m["role"] != "tool" and not m.get("tool_calls")]
    if corrected is not None and messages:
        messages[0] |= {"content": corrected, "is_unjudged": True}
    if run.is_imported:
        messages = [{**message, "is_unjudged": True} for message in messages]
    return messages


def _runs_of(session: int, path: Sequence[int], max_runs: int) -> list[Run]:
    """Return the last runs of a path, the oldest first."""
    newest = _recent_runs(max_runs)(session) if path and max_runs else []
    if {vars(run)["message_pk"] for run in newest} <= set(path):
        return newest[::-1]  # as usual: nothing in the chat is newer than the path
    on_path = _history_runs().filter(message__in=path, message__session=session)
    return list(on_path.order_by("-message__pk")[:max_runs])[::-1]


@cache
def _recent_runs(max_runs: int) -> Callable[[int], list[Run]]:
    """Return a compiled query: its limit is a part of the SQL."""

    @compiled_query
    def recent(session: int) -> QuerySet[Run]:
        history_runs = _history_runs().filter(message__session=session)
        return history_runs.order_by("-message__pk")[:max_runs]

    return recent


def _history_runs() -> QuerySet[Run]:
    rows = Run.objects.select_related("review", "summary").only(*HISTORY_FIELDS)
    corrected = When(message__edited_at__isnull=False, then="message__text")
    return rows.annotate(message_pk=F("message__pk"), corrected=Case(corrected))


def select_agent(name: str, user: User) -> Agent:
    """Return the agent with this name, or the user's default."""
    with reject_agent_errors():
        agent = find_agent(name, user) if name else agent_factory.default_agent(user.pk)
    if agent is None:
        raise MessageRejected(_("This agent is no longer available. Choose another one."))
    return agent


def find_agent(name: str, user: User) -> Agent | None:
    return next(iter(_agents_by_name(user.pk, sanitize_text(name))), None)


@compiled_query
def _agents_by_name(user: int, name: str) -> QuerySet[Agent]:
    return Agent.objects.open_to(user).filter(name=name, enabled=True)


def requested_workflow(text: str, user: User) -> start.StartRequest | None:
    """Return the workflow that a message starts, if any."""
    try:
        return start.parse_command(text, user)
    except start.WorkflowNotStarted as reason:
        raise MessageRejected(str(reason)) from reason


def prepare(
    session: ChatSession,
    user: User,
    text: str,
    agent: Agent,
    path: Sequence[int] = (),
    options: RunOptions = AGENT_DEFAULTS,
    files: Sequence[Attachment] = (),
    *,
    is_repeated: bool = False,
) -> Run:
    """Create the run for a text after this path: of an agent, a workflow, or a stopped plan.

    It `is_repeated` if the text is that of an earlier message, by whomever.
    """
    if not files and text in _continue_phrases():
        path_runs = Run.objects.filter(message__session=session, message__in=path)
        last = path_runs.order_by("-message__pk").first()
        if last is not None and last.can_continue:
            with reject_agent_errors():
                return runs.prepare_continuation(last, topic=session.topic, user=user)
    request = requested_workflow(text, user)
    if files:
        check_files(agent, is_workflow=request is not None)
    overrides = run_options.overrides(agent, options, user)
    if is_repeated:
        overrides["repeats"] = True
    if request is None:
        check_length(agent, overrides.get("model", ""), text)
    project = project_for(session, user)
    with reject_agent_errors():
        return runs.prepare(
            query=text,
            history=history(session, path, agent, project.pk if project else None),
            topic=session.topic,
            user=user,
            agent=agent,
            workflow=request.version if request else None,
            parameters=dict(request.parameters) if request else None,
            overrides=overrides,
            files=attachments.refs_of(files),
            project=project,
        )


def check_files(agent: Agent, *, is_workflow: bool = False) -> None:
    """Raise MessageRejected if files can't be sent to this agent."""
    if agent.personal_data == Agent.PersonalData.UNKEPT:
        raise MessageRejected(
            _(
                "%(agent)s stores no personal data, and files can't be masked. "
                "Remove the files or choose another agent."
            )
            % {"agent": agent.name}
        )
    if is_workflow:
        raise MessageRejected(
            _("A workflow can't read attached files. Remove them and send again.")
        )


def check_length(agent: Agent, model: str, text: str) -> None:
    """Raise MessageTooLong if the agent's model can't read a text of this length."""
    size = len(text.encode())
    # A token has at least one byte, so nothing needs to be looked up for a usual message.
    if size <= min(agent.max_input_tokens or SMALLEST_WINDOW, SMALLEST_WINDOW):
        return
    max_tokens = planner_factory.max_question_tokens(agent, model)
    if max_tokens is None or size <= max_tokens:
        return
    count = tokens.count(text)
    if count <= max_tokens:
        return
    sentence = _(
        "This message is too long (about %(tokens)s tokens). The limit for %(model)s is "
        "%(most)s here. Attach it as a file, or shorten it."
    ) % {
        "tokens": f"{count:,}",
        "most": f"{max_tokens:,}",
        "model": model or model_setups.model_name(agent),
    }
    raise MessageTooLong(sentence, 100 * max_tokens // count)


def project_for(session: ChatSession, user: User) -> Project | None:
    """Return the chat's project if this user is a member of it."""
    if session.project_id is None:
        return None
    return Project.objects.for_user(user).filter(pk=session.project_id).first()


@cache
def _continue_phrases() -> set[str]:
    """Return the button's text in each language."""
    phrases = set()
    for language, _name in settings.LANGUAGES:
        with translation.override(language):
            phrases.add(_("Continue where you left off."))
    return phrases


def blocked_reason(message: Message) -> str:
    """Return why a queued message couldn't be answered now; usually empty."""
    try:
        agent = select_agent(message.agent_name, message.author)
        requested_workflow(message.text, message.author)
        options = RunOptions.load(message.options)
        chosen = run_options.overrides(agent, options, message.author).get("model")
        check_length(agent, chosen or "", message.text)
        with reject_agent_errors():
            model_setups.ensure_usable(
                agent, chosen or model_setups.model_name(agent), message.author
            )
            budgets.check_run(message.author, agent)
    except MessageRejected as reason:
        return str(reason)
    except Exception:  # the page must render, or the message couldn't be withdrawn
        logger.exception("Can't check whether message %s can be answered.", message.pk)
        return _("This message can't be answered. Remove it from the queue.")
    return ""


@contextmanager
def reject_agent_errors() -> Iterator[None]:
    """Turn agent errors into a rejection with its reason."""
    try:
        yield
    except AgentError as error:
        raise MessageRejected(f"{translate(str(error))} {translate(error.advice)}") from error
