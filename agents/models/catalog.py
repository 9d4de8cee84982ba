"""What an administrator sets up."""

from collections.abc import Iterable
from copy import copy
from typing import Any

from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.engine.errors import BadSchema
from agents.engine.loop import HANDOFF_PREFIX, AskPersonTool, OutputSchema

from .rights import Restricted
from .tools import ToolRegistration

MAX_NAME_CHARS = 59
NAME_TOO_LONG = _(
    "At most %(limit)d characters: with ask_ before it, it is the name of a tool."
)
NAME_RESERVED = _("With ask_ before it, it is the tool that asks people. Take another name.")


class Agent(Restricted):
    class Dialect(models.TextChoices):
        NATIVE = "native", _("tool calls of the model")
        REACT = "react", _("ReAct text")

    class Mode(models.TextChoices):
        REACT = "react", _("step by step")
        PLAN = "plan", _("by a plan")
        PANEL = "panel", _("as a panel")

    class Merge(models.TextChoices):
        VOTE = "vote", _("majority vote")
        SYNTHESIS = "synthesis", _("synthesis with attribution")
        JUDGE = "judge", _("a judge decides")

    class PersonalData(models.TextChoices):
        SHOWN = "shown", _("Masked only when it is shown to reviewers")
        HIDDEN = "hidden", _("Replaced before the model sees it, restored in the answer")
        UNKEPT = "unkept", _("Masked before the trace keeps it")

    name = models.SlugField(_("name"), max_length=64, unique=True)
    description = models.CharField(_("description"), max_length=200, blank=True)
    instructions = models.TextField(_("instructions"), blank=True)
    model = models.CharField(
        _("model"),
        max_length=200,
        blank=True,
        help_text=_(
            "A LiteLLM model name such as anthropic/claude-sonnet-4-5, or demo. "
            "Empty takes the model of this installation."
        ),
    )
    dialect = models.CharField(
        _("dialect"), max_length=10, choices=Dialect, default=Dialect.NATIVE
    )
    mode = models.CharField(
        _("works"),
        max_length=10,
        choices=Mode,
        default=Mode.REACT,
        db_default=Mode.REACT.value,
        help_text=_(
            "By a plan: it writes one first, carries it out and checks what came of it. "
            "As a panel: it asks all agents that it may ask at once, and merges their answers."
        ),
    )
    shows_plan = models.BooleanField(
        _("shows its plan first"),
        default=False,
        db_default=False,
        help_text=_("A plan then waits until the person has approved or changed it."),
    )
    max_replans = models.PositiveSmallIntegerField(
        _("most new plans"),
        default=2,
        db_default=2,
        validators=[MaxValueValidator(10)],
        help_text=_("How often it may plan anew where a result is not what was expected."),
    )
    merge = models.CharField(
        _("how a panel agrees"),
        max_length=10,
        choices=Merge,
        default=Merge.SYNTHESIS,
        db_default=Merge.SYNTHESIS.value,
    )
    roles = models.CharField(
        _("roles"),
        max_length=200,
        blank=True,
        default="",
        db_default="",
        help_text=_(
            "What it is good for, with commas between: steps of a plan that are meant for a "
            "role are given to it. People have the roles of their groups."
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
    asker_approves_questions = models.BooleanField(
        _("user approves questions to experts"),
        default=True,
        db_default=True,
        help_text=_("The user reviews, and can edit, each question before it goes to experts."),
    )
    tools = models.ManyToManyField(
        ToolRegistration,
        verbose_name=_("tools"),
        blank=True,
        related_name="agents",
        through="AgentTool",
    )
    auto_execute_tools = models.BooleanField(
        _("calls tools by itself"),
        default=True,
        help_text=_("Switched off, every call is shown and waits for the person who asked."),
    )
    handoffs = models.ManyToManyField(
        "self",
        verbose_name=_("may ask"),
        symmetrical=False,
        blank=True,
        related_name="asked_by",
        help_text=_("Agents that this one may give a task to; they answer to it."),
    )
    fallback_models = models.TextField(
        _("models to fall back to"),
        blank=True,
        help_text=_("One a line, asked in this order where the model cannot be used."),
    )
    output_schema = models.JSONField(
        _("output schema"),
        null=True,
        blank=True,
        help_text=_("A JSON Schema that the answer has to fit. Empty: the answer is text."),
    )
    max_steps = models.PositiveIntegerField(
        _("most steps"), default=10, validators=[MinValueValidator(1), MaxValueValidator(50)]
    )
    max_duplicate_tool_calls = models.PositiveIntegerField(
        _("most equal calls"),
        default=2,
        validators=[MinValueValidator(1), MaxValueValidator(50)],
        help_text=_("How often the same tool may be called with the same input."),
    )
    max_tool_calls_per_tool = models.PositiveIntegerField(
        _("most calls a tool"),
        default=5,
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text=_("Empty means no limit."),
    )
    max_seconds = models.PositiveIntegerField(
        _("most seconds"),
        default=600,
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text=_("Asked between two steps. Empty means no limit."),
    )
    max_run_tokens = models.PositiveIntegerField(
        _("most tokens a run"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text=_("Read and written, in all turns together. Empty means no limit."),
    )
    max_cost = models.FloatField(
        _("most dollars a run"),
        null=True,
        blank=True,
        validators=[MinValueValidator(0)],
        help_text=_("Where the price of the model is known. Empty means no limit."),
    )
    max_input_tokens = models.PositiveIntegerField(
        _("most input tokens"), default=4096, validators=[MinValueValidator(1)]
    )
    max_output_tokens = models.PositiveIntegerField(
        _("most output tokens"), default=4096, validators=[MinValueValidator(1)]
    )
    personal_data = models.CharField(
        _("personal data"),
        max_length=10,
        choices=PersonalData,
        default=PersonalData.SHOWN,
        db_default=PersonalData.SHOWN.value,
        help_text=_(
            "What happens to e-mail, postal and IP addresses; phone, card, account, passport, "
            "ID, licence, pension and insurance numbers; dates of birth; keys and tokens."
        ),
    )
    is_default = models.BooleanField(
        _("default"), default=False, help_text=_("Answers where no agent was chosen.")
    )
    enabled = models.BooleanField(_("enabled"), default=True)
    version = models.PositiveIntegerField(
        _("version"),
        default=0,
        db_default=0,
        editable=False,
        help_text=_("The number of its newest version; 0 where none was kept yet."),
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
                violation_error_message=_("Another agent is the default already."),
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def role_names(self) -> set[str]:
        return {role.strip().lower() for role in self.roles.split(",")} - {""}

    @property
    def handoff_tool_name(self) -> str:
        """The tool that other agents ask it with."""
        return f"{HANDOFF_PREFIX}{self.name}"

    def set_tools(self, links: "Iterable[AgentTool]") -> None:
        """Have exactly these tools from now on, each as it is set up there."""
        wanted = {link.tool.pk: link for link in links}
        self.links.exclude(tool__in=wanted).delete()
        for link in wanted.values():
            self.links.update_or_create(tool=link.tool, defaults=link.settings)

    def clean(self) -> None:
        wrong = {}
        if len(self.name) > MAX_NAME_CHARS:
            wrong["name"] = NAME_TOO_LONG % {"limit": MAX_NAME_CHARS}
        if self.handoff_tool_name == AskPersonTool.name:
            wrong["name"] = NAME_RESERVED
        if any(c.isspace() for c in self.model) or self.model.endswith("/"):
            wrong["model"] = _("Write it as provider/model, without spaces.")
        if sentence := self._output_schema_error():
            wrong["output_schema"] = sentence
        if wrong:
            raise ValidationError(wrong)

    def _output_schema_error(self) -> str:
        if self.output_schema is None:
            return ""
        if not isinstance(self.output_schema, dict):
            return _("A JSON Schema is a JSON object: {…}.")
        try:
            OutputSchema(self.output_schema)
        except BadSchema as error:
            return str(error)
        return ""


class AgentTool(models.Model):
    """A tool that an agent has. What is empty is as the tool itself is set up."""

    class Approval(models.TextChoices):
        AS_SET_UP = "", _("as the tool is set up")
        ALWAYS = "always", _("always")
        NEVER = "never", _("never")

    class Effect(models.TextChoices):
        AS_SET_UP = "", _("as the tool is set up")
        READ = "read", _("only reads")
        IDEMPOTENT = "idempotent", _("may be repeated")
        AT_MOST_ONCE = "at_most_once", _("must not be repeated")

    agent = models.ForeignKey(
        Agent, verbose_name=_("agent"), on_delete=models.CASCADE, related_name="links"
    )
    tool = models.ForeignKey(
        ToolRegistration,
        verbose_name=_("tool"),
        on_delete=models.CASCADE,
        related_name="links",
        db_column="toolregistration_id",
    )
    approval = models.CharField(
        _("asks a person first"),
        max_length=10,
        choices=Approval,
        blank=True,
        default="",
        db_default="",
    )
    effect = models.CharField(
        _("effect"), max_length=12, choices=Effect, blank=True, default="", db_default=""
    )
    timeout = models.PositiveIntegerField(
        _("timeout"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(600)],
    )
    max_calls = models.PositiveIntegerField(
        _("most calls"), null=True, blank=True, validators=[MinValueValidator(1)]
    )

    class Meta:
        verbose_name = _("tool of an agent")
        verbose_name_plural = _("tools of agents")
        db_table = "agents_agent_tools"
        ordering = ["tool__name"]
        unique_together = [("agent", "tool")]

    def __str__(self) -> str:
        """As the audit log tells of it, also before there is an agent."""
        told = ", ".join(f"{name} {value}" for name, value in self.settings.items() if value)
        return f"{self.tool} ({told})" if told else str(self.tool)

    @property
    def settings(self) -> dict[str, Any]:
        """What may be different for this agent."""
        names = ("approval", "effect", "timeout", "max_calls")
        return {name: getattr(self, name) for name in names}

    def given(self) -> ToolRegistration:
        """The tool as this agent has it; the tool's own row stays as it is."""
        own = {name: getattr(self, name) for name in ("approval", "effect", "timeout")}
        different = {name: value for name, value in own.items() if value}
        tool = copy(self.tool) if different else self.tool
        vars(tool).update(different)
        return tool
