"""Sentences about limits that refuse a call."""

from django.utils.translation import gettext_noop as _

BUDGET_TEMPLATES = (
    _("You've reached your limit of %(most)s (used: %(used)s)."),
    _("The limit of %(most)s for %(scope)s is used up (used: %(used)s)."),
    _(
        "Calls in progress have reserved the rest of the limit of %(most)s for %(scope)s "
        "(used: %(used)s, reserved: %(held)s)."
    ),
    _(
        "This request needs at least %(needed)s, more than the whole limit of %(most)s for "
        "%(scope)s."
    ),
    _(
        "%(model)s has no known price, so it can't be used under the limit of %(most)s for "
        "%(scope)s."
    ),
    _("The limit resets on %(when)s."),
)
# Parts of these sentences. They fit others, too, so they come last of all.
BUDGET_PARTS = (
    _("the group %(name)s"),
    _("the agent %(name)s"),
    _("the model %(name)s"),
    _("the tool %(name)s"),
    _("$%(amount)s per %(window)s"),
    _("%(count)s runs per %(window)s"),
    _("%(count)s run per %(window)s"),
    _("%(count)s messages per %(window)s"),
    _("%(count)s message per %(window)s"),
    _("%(count)s calls per %(window)s"),
    _("%(count)s call per %(window)s"),
    _("%(count)s tokens per %(window)s"),
    _("%(count)s token per %(window)s"),
    _("%(count)s s of active time per %(window)s"),
)
BUDGET_SENTENCES = (
    _("A usage limit is reached."),
    _("Try again when they have finished."),
    _(
        "Waiting doesn't help. Start a new chat or send less, or ask an administrator to raise "
        "the limit."
    ),
    _(
        "Ask an administrator to enter its price under Models (0 if it's free), or choose "
        "another model."
    ),
    _("all users together"),
)
