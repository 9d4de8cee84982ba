"""Sentences about experiments and runs on recorded results."""

from django.utils.translation import gettext_noop as _

EXPERIMENT_TEMPLATES = (
    _("Stopped at a call that wasn't recorded: %(words)s"),
    _("The experiment's timeout of %(seconds)s s was reached."),
)
EXPERIMENT_SENTENCES = (
    _("A call that wasn't recorded, so a run on recorded results stops there."),
    _("A tool call needs approval, which an experiment can't get."),
    _("The run took longer than the experiment allows."),
    _(
        "This run replays recorded tool results, and this call wasn't recorded, so nothing was "
        "done. Continue without it."
    ),
    _("The experiment of this run was deleted."),
    _("The example was deleted."),
    _("The run was deleted."),
    _("No judge model was chosen."),
    _("The judge's reply couldn't be read."),
)
