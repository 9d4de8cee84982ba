"""Agents: instructions, model, tools and limits under a name."""

from collections.abc import Collection

from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.engine.errors import BadSchema
from agents.engine.loop import HANDOFF_PREFIX, AskPersonTool, OutputSchema

from ..types import LazyText
from .rights import Restricted
from .tools import MAX_CACHE_SECONDS, ToolRegistration

MAX_NAME_CHARS = 59
MAX_EXAMPLE_QUESTIONS = 6
MAX_EXAMPLE_CHARS = 300
NAME_TOO_LONG = _(
    "Use %(limit)d characters or fewer. With the prefix ask_, this becomes a tool name."
)
NAME_RESERVED = _(
    "This name is reserved for the tool that asks users questions. Choose another name."
)
TOO_MANY_EXAMPLES = _(
    "Enter %(limit)d questions or fewer, one per line. You entered %(count)d."
)
EXAMPLE_TOO_LONG = _("Line %(line)d is too long. Use %(limit)d characters or fewer.")


class Agent(Restricted):
    class Dialect(models.TextChoices):
        NATIVE = "native", _("Native tool calls")
        REACT = "react", _("ReAct text")

    class Mode(models.TextChoices):
        REACT = "react", _("Step by step")
        PLAN = "plan", _("Plan and execute")
        PANEL = "panel", _("Panel")

    class Merge(models.TextChoices):
        VOTE = "vote", _("Majority vote")
        SYNTHESIS = "synthesis", _("Synthesis with attribution")
        JUDGE = "judge", _("Judge decides")
        SUM = "sum", _("Sum of the numbers")
        AVERAGE = "average", _("Average of the numbers")

    class Icon(models.TextChoices):
        __empty__ = _("Automatic")
        FOOTPRINTS = "footprints", _("Footprints")
        CHAT = "chat", _("Speech bubble")
        CHART = "chart", _("Chart")
        TABLE = "table", _("Table")
        BOOK = "book", _("Book")
        PLAN = "plan", _("Plan")
        PEOPLE = "people", _("Users")
        SCALES = "scales", _("Scales")
        SHIELD = "shield", _("Shield")
        LIFEBUOY = "lifebuoy", _("Lifebuoy")
        PEN = "pen", _("Pen")
        CODE = "code", _("Code")
        GLOBE = "globe", _("Globe")
        MAIL = "mail", _("Envelope")

    class PersonalData(models.TextChoices):
        SHOWN = "shown", _("Masked for reviewers only")
        HIDDEN = "hidden", _("Replaced before the model sees it, restored in the answer")
        UNKEPT = "unkept", _("Masked before the trace is saved")

    class AfterUntrusted(models.TextChoices):
        SUSPICIOUS = "suspicious", _("If the text contains instructions")
        ALWAYS = "always", _("Always")
        NEVER = "never", _("Never")

    class ToolSelection(models.TextChoices):
        AUTO = "auto", _("Only those relevant to the message, if there are many")
        ALL = "all", _("All tools")

    # Chosen by a user for a run, so they are no columns.
    effort = ""
    temperature: float | None = None

    name = models.SlugField(_("name"), max_length=64, unique=True)
    description = models.CharField(_("description"), max_length=200, blank=True)
    icon = models.CharField(
        _("icon"),
        max_length=20,
        choices=Icon,
        blank=True,
        default="",
        db_default="",
        help_text=_("Helps users recognize the agent. Each icon has its own color."),
    )
    example_questions = models.TextField(
        _("example questions"),
        blank=True,
        default="",
        db_default="",
        help_text=_(
            "One per line, up to 6. Users see them when they start a chat. Leave empty "
            "for questions that fit the agent's tools."
        ),
    )
    instructions = models.TextField(_("instructions"), blank=True)
    model = models.CharField(
        _("model"),
        max_length=200,
        blank=True,
        help_text=_(
            "A LiteLLM model name, e.g. anthropic/claude-sonnet-4-5, or demo. Leave "
            "empty for the default model."
        ),
    )
    allows_model_choice = models.BooleanField(
        _("users can choose the model"),
        default=False,
        db_default=False,
        help_text=_("Per chat, from the configured models that the user has access to."),
    )
    allows_parameter_choice = models.BooleanField(
        _("users can choose effort and temperature"),
        default=False,
        db_default=False,
        help_text=_("Per chat, as far as the model supports them."),
    )
    dialect = models.CharField(
        _("tool call format"), max_length=10, choices=Dialect, default=Dialect.NATIVE
    )
    mode = models.CharField(
        _("mode"),
        max_length=10,
        choices=Mode,
        default=Mode.REACT,
        db_default=Mode.REACT.value,
        help_text=_(
            "Plan and execute: writes a plan, runs it and checks the results. Panel: hands "
            "off to all handoff agents at once and merges their answers."
        ),
    )
    shows_plan = models.BooleanField(
        _("require plan approval"),
        default=False,
        db_default=False,
        help_text=_("When on, the plan waits until the user approves or edits it."),
    )
    max_replans = models.PositiveSmallIntegerField(
        _("max replans"),
        default=2,
        db_default=2,
        validators=[MaxValueValidator(10)],
        help_text=_("How many times the agent can replan when a result isn't as expected."),
    )
    merge = models.CharField(
        _("panel merge method"),
        max_length=10,
        choices=Merge,
        default=Merge.SYNTHESIS,
        db_default=Merge.SYNTHESIS.value,
        help_text=_(
            "Sum and average need one clear number per answer, or numeric fields of structured "
            "answers. Without them, a synthesis is written."
        ),
    )
    roles = models.CharField(
        _("roles"),
        max_length=200,
        blank=True,
        default="",
        db_default="",
        help_text=_(
            "Comma-separated, e.g. research, legal. Plan steps for a role go to "
            "agents with that role; a user's roles are their groups."
        ),
    )
    experts = models.ManyToManyField(
        Group,
        verbose_name=_("experts it can ask"),
        blank=True,
        related_name="agents_that_ask",
        help_text=_(
            "Groups this agent can send questions to. If none is selected, it can only ask "
            "the user."
        ),
    )
    collections = models.ManyToManyField(
        "agents.Collection",
        verbose_name=_("collections it can search"),
        blank=True,
        related_name="agents",
        limit_choices_to={"owner": None, "topic": ""},
        help_text=_(
            "Documents this agent searches, as far as the user can open them. If none is "
            "selected, it searches everything the user can open."
        ),
    )
    retrieves_first = models.BooleanField(
        _("search before the first step"),
        default=False,
        db_default=False,
        help_text=_(
            "When on, the documents are searched for every message before the model "
            "answers. Requires the search tool."
        ),
    )
    checks_figures = models.BooleanField(
        _("check figures before answering"),
        default=False,
        db_default=False,
        help_text=_(
            "When on, an answer with figures or names that aren't in any result goes back to "
            "the model once. This takes one more step."
        ),
    )
    after_untrusted = models.CharField(
        _("approval after reading untrusted text"),
        max_length=10,
        choices=AfterUntrusted,
        default=AfterUntrusted.SUSPICIOUS,
        db_default=AfterUntrusted.SUSPICIOUS.value,
        help_text=_(
            "Documents, files, web pages, database rows and results of HTTP and MCP tools "
            "are untrusted. Once a run has read any of them, tools with side effects need "
            "the user's approval, even if the user always allows them."
        ),
    )
    asker_approves_questions = models.BooleanField(
        _("user approves questions to experts"),
        default=True,
        db_default=True,
        help_text=_("The user reviews, and can edit, each question before it goes to experts."),
    )
    allows_sampling = models.BooleanField(
        _("MCP servers can use the model"),
        default=False,
        db_default=False,
        help_text=_(
            "When on, a server can have this agent's model answer requests during a tool call "
            "(sampling), within the run's limits. When off, such requests are refused."
        ),
    )
    tools = models.ManyToManyField(
        ToolRegistration,
        verbose_name=_("tools"),
        blank=True,
        related_name="agents",
        through="AgentTool",
    )
    tool_selection = models.CharField(
        _("tools sent to the model"),
        max_length=10,
        choices=ToolSelection,
        default=ToolSelection.AUTO,
        db_default=ToolSelection.AUTO.value,
        help_text=_(
            "Too many tools make models less accurate and requests more expensive. The "
            "model can search for the other tools. Change the limits in Settings."
        ),
    )
    auto_execute_tools = models.BooleanField(
        _("run tools automatically"),
        default=True,
        help_text=_("When off, every tool call waits for the user's approval."),
    )
    handoffs = models.ManyToManyField(
        "self",
        verbose_name=_("can hand off to"),
        symmetrical=False,
        blank=True,
        related_name="asked_by",
        help_text=_(
            "Agents this agent can hand off tasks to. Their results come back to this agent."
        ),
    )
    fallback_models = models.TextField(
        _("fallback models"),
        blank=True,
        help_text=_("One per line, tried in order when the model is unavailable."),
    )
    output_schema = models.JSONField(
        _("output schema"),
        null=True,
        blank=True,
        help_text=_("JSON Schema for the answer. Leave empty for plain text."),
    )
    max_steps = models.PositiveIntegerField(
        _("max steps"), default=10, validators=[MinValueValidator(1), MaxValueValidator(50)]
    )
    max_duplicate_tool_calls = models.PositiveIntegerField(
        _("max duplicate calls"),
        default=2,
        validators=[MinValueValidator(1), MaxValueValidator(50)],
        help_text=_("How many times a tool can be called with the same arguments."),
    )
    max_tool_calls_per_tool = models.PositiveIntegerField(
        _("max calls per tool"),
        default=5,
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text=_("Leave empty for no limit."),
    )
    max_seconds = models.PositiveIntegerField(
        _("timeout (seconds)"),
        default=600,
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text=_("Checked between steps. Leave empty for no limit."),
    )
    max_run_tokens = models.PositiveIntegerField(
        _("max tokens per run"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text=_("Input and output tokens of all turns. Leave empty for no limit."),
    )
    max_cost = models.FloatField(
        _("max cost per run (USD)"),
        null=True,
        blank=True,
        validators=[MinValueValidator(0)],
        help_text=_("Applies only if the model's price is known. Leave empty for no limit."),
    )
    max_raise = models.PositiveSmallIntegerField(
        _("users can raise limits up to (times)"),
        default=3,
        db_default=3,
        validators=[MaxValueValidator(100)],
        help_text=_(
            "A run in a chat asks before it passes its time, token or cost limit. 1 lets only "
            "administrators raise it. 0 ends the run without asking."
        ),
    )
    max_input_tokens = models.PositiveIntegerField(
        _("max input tokens"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text=_("Leave empty to use what the model's context window allows."),
    )
    max_output_tokens = models.PositiveIntegerField(
        _("max output tokens"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text=_("Longer answers stop here and can be continued. Leave empty for no limit."),
    )
    personal_data = models.CharField(
        _("personal data"),
        max_length=10,
        choices=PersonalData,
        default=PersonalData.SHOWN,
        db_default=PersonalData.SHOWN.value,
        help_text=_(
            "Covers email, postal and IP addresses; phone, card, account, passport, "
            "ID, license, pension and insurance numbers; dates of birth; keys and "
            "tokens."
        ),
    )
    accepts_custom_instructions = models.BooleanField(
        _("accepts users' custom instructions"),
        default=True,
        db_default=True,
        help_text=_("When off, what users say about themselves in their profile isn't sent."),
    )
    uses_memory = models.BooleanField(
        _("uses long-term memory"),
        default=True,
        db_default=True,
        help_text=_("When off, it neither reads nor saves memories about users."),
    )
    reply_cache = models.CharField(
        _("cache model responses"),
        max_length=8,
        choices=ToolRegistration.ResultCache,
        blank=True,
        default="",
        db_default="",
        help_text=_(
            "The same message with the same history and instructions gets the saved "
            "response, at no cost. Regenerated answers, reruns and experiments always call "
            "the model."
        ),
    )
    reply_cache_seconds = models.PositiveIntegerField(
        _("response cache lifetime (seconds)"),
        default=3_600,
        db_default=3_600,
        validators=[MinValueValidator(1), MaxValueValidator(MAX_CACHE_SECONDS)],
        help_text=_("How long a saved response is used, up to 7 days."),
    )
    learns = models.BooleanField(
        _("learns from feedback"),
        default=False,
        db_default=False,
        help_text=_(
            "When on, ratings and corrections become lessons for similar messages. Each "
            "user has their own; other users' lessons are used only after a review."
        ),
    )
    max_experience_tokens = models.PositiveIntegerField(
        _("max lesson tokens"),
        default=400,
        db_default=400,
        validators=[MinValueValidator(50), MaxValueValidator(4_000)],
        help_text=_("Per message, for up to 3 lessons."),
    )
    max_history_turns = models.PositiveIntegerField(
        _("max past turns"),
        default=20,
        db_default=20,
        validators=[MaxValueValidator(200)],
        help_text=_(
            "Earlier turns of a chat (message and answer) sent to the model. 0 sends none."
        ),
    )
    max_history_tokens = models.PositiveIntegerField(
        _("max history tokens"),
        null=True,
        blank=True,
        validators=[MinValueValidator(100)],
        help_text=_("Leave empty to use what the model's context window allows."),
    )
    summarizes_history = models.BooleanField(
        _("summarize older turns"),
        default=True,
        db_default=True,
        help_text=_(
            "When a chat exceeds these limits, the model summarizes older turns. When off, "
            "they are left out."
        ),
    )
    summary_threshold = models.PositiveSmallIntegerField(
        _("summarize at (%)"),
        default=80,
        db_default=80,
        validators=[MinValueValidator(10), MaxValueValidator(100)],
        help_text=_(
            "Older turns are summarized when the history reaches this share of its max tokens."
        ),
    )
    is_default = models.BooleanField(
        _("default"), default=False, help_text=_("Answers when no agent is selected.")
    )
    enabled = models.BooleanField(_("enabled"), default=True)
    version = models.PositiveIntegerField(
        _("version"),
        default=0,
        db_default=0,
        editable=False,
        help_text=_("Latest version number; 0 if none is saved yet."),
    )

    class Meta:
        verbose_name = _("agent")
        verbose_name_plural = _("agents")
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                fields=["is_default"],
                condition=models.Q(is_default=True),
                name="one_default_agent",
                violation_error_message=_("Another agent is already the default."),
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def role_names(self) -> set[str]:
        return {role.strip().lower() for role in self.roles.split(",")} - {""}

    @property
    def handoff_tool_name(self) -> str:
        """The tool with which other agents hand off to it."""
        return f"{HANDOFF_PREFIX}{self.name}"

    def validate_constraints(self, exclude: Collection[str] | None = None) -> None:
        """Look for another default agent only if this is one."""
        exclude = {*(exclude or ())} if self.is_default else {*(exclude or ()), "is_default"}
        super().validate_constraints(exclude)

    def clean(self) -> None:
        wrong: dict[str, LazyText] = {}
        if len(self.name) > MAX_NAME_CHARS:
            wrong["name"] = NAME_TOO_LONG % {"limit": MAX_NAME_CHARS}
        if self.handoff_tool_name == AskPersonTool.name:
            wrong["name"] = NAME_RESERVED
        if any(c.isspace() for c in self.model) or self.model.endswith("/"):
            wrong["model"] = _("Use the form provider/model, without spaces.")
        lines = self.example_lines
        too_long = [n for n, line in enumerate(lines, 1) if len(line) > MAX_EXAMPLE_CHARS]
        if len(lines) > MAX_EXAMPLE_QUESTIONS:
            facts = {"limit": MAX_EXAMPLE_QUESTIONS, "count": len(lines)}
            wrong["example_questions"] = TOO_MANY_EXAMPLES % facts
        elif too_long:
            facts = {"line": too_long[0], "limit": MAX_EXAMPLE_CHARS}
            wrong["example_questions"] = EXAMPLE_TOO_LONG % facts
        if isinstance(self.output_schema, dict):
            try:
                OutputSchema(self.output_schema)
            except BadSchema as error:
                wrong["output_schema"] = str(error)
        elif self.output_schema is not None:
            wrong["output_schema"] = _("Enter the JSON Schema as a JSON object: {…}.")
        if wrong:
            raise ValidationError(wrong)

    @property
    def example_lines(self) -> list[str]:
        """The example questions, without empty lines."""
        return [line for text in self.example_questions.splitlines() if (line := text.strip())]
