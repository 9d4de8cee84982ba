"""What the engine, the models and the tools can say, listed for the translators.

The engine knows no gettext: its sentences are saved in English and translated when they are
displayed. A test compares these lists with the source: a sentence without a template fails, and
so does a template that nothing says any more.

The first template that fits is used, so a narrow one stands before a broad one. A place called
`words` (and others in `FOREIGN_PLACES`) holds text from outside; it isn't translated.
"""

from django.utils.translation import gettext_noop as _

from .attachments import ATTACHMENT_SENTENCES, ATTACHMENT_TEMPLATES
from .budgets import BUDGET_PARTS, BUDGET_SENTENCES, BUDGET_TEMPLATES
from .databases import DATABASE_SENTENCES, DATABASE_TEMPLATES
from .experiments import EXPERIMENT_SENTENCES, EXPERIMENT_TEMPLATES
from .guardrails import GUARDRAIL_SENTENCES, GUARDRAIL_TEMPLATES
from .mcp_servers import MCP_SENTENCES, MCP_TEMPLATES
from .models import MODEL_SENTENCES, MODEL_TEMPLATES, SETTING_WORDS
from .plans import DEFINITION_TEMPLATES, PLAN_SENTENCES, PLAN_TEMPLATES
from .questions import QUESTION_SENTENCES, QUESTION_TEMPLATES
from .requests import REQUEST_SENTENCES, REQUEST_TEMPLATES
from .runs import RUN_SENTENCES, RUN_TEMPLATES
from .tools import TOOL_SENTENCES, TOOL_TEMPLATES

# What is added to a sentence, the outermost addition first.
SUFFIX_TEMPLATES = (
    _("%(tool)s is failing. Answer without it."),
    _("%(sentence)s Partial result: %(answer)s"),
    _("%(sentence)s Last output: %(words)s"),
    _("%(sentence)s Don't repeat the call. Continue without it, or say what you need."),
    _("%(sentence)s Write the complete JSON again so that it matches the schema."),
    _("%(sentence)s Answer without it."),
    _("%(sentence)s Comment: “%(words)s”."),
    _("%(sentence)s Models tried: %(models)s."),
    _("%(sentence)s Available roles: %(names)s."),
    _("%(sentence)s It may or may not have completed."),
    _("%(sentence)s Request less data."),
    _(
        "%(sentence)s Put text in single quotes, and use the column names from the tool's "
        "description."
    ),
    _("%(sentence)s It wrote %(count)s lines that aren't MCP messages."),
    _("%(sentence)s If it is still downloading packages, increase its start timeout."),
    _("%(sentence)s The first start downloads its packages."),
    _("%(sentence)s Did you mean %(name)s?"),
    _("%(sentence)s Similar names: %(names)s."),
    _("%(sentence)s; put its arguments in args"),
)
# What others would be taken for, so they come last.
BROAD_TEMPLATES = (
    _("%(value)s doesn't match %(pattern)s"),
    _("“%(step)s”: %(reason)s"),
    _("%(tool)s failed: %(type)s: %(words)s"),
    _("%(reason)s (line %(line)s, column %(column)s)"),
)
# Plans stand before runs, because their sentences quote those of runs.
TEMPLATES = (
    *EXPERIMENT_TEMPLATES,
    *SUFFIX_TEMPLATES,
    *QUESTION_TEMPLATES,
    *BUDGET_TEMPLATES,
    *MODEL_TEMPLATES,
    *GUARDRAIL_TEMPLATES,
    *PLAN_TEMPLATES,
    *RUN_TEMPLATES,
    *ATTACHMENT_TEMPLATES,
    *MCP_TEMPLATES,
    *TOOL_TEMPLATES,
    *DATABASE_TEMPLATES,
    *REQUEST_TEMPLATES,
    *DEFINITION_TEMPLATES,
    *BROAD_TEMPLATES,
    *BUDGET_PARTS,
)
# Said word for word.
EXACT_SENTENCES = frozenset(
    {
        *MODEL_SENTENCES,
        *SETTING_WORDS,
        *RUN_SENTENCES,
        *GUARDRAIL_SENTENCES,
        *QUESTION_SENTENCES,
        *EXPERIMENT_SENTENCES,
        *ATTACHMENT_SENTENCES,
        *BUDGET_SENTENCES,
        *MCP_SENTENCES,
        *REQUEST_SENTENCES,
        *DATABASE_SENTENCES,
        *TOOL_SENTENCES,
        *PLAN_SENTENCES,
    }
)
