"""Sentences about guardrails: patterns and checks by a model."""

from django.utils.translation import gettext_noop as _

GUARDRAIL_TEMPLATES = (
    _("The error message is hidden: %(sentence)s"),
    _("Matched rule %(rule)s."),
    _("Text matching rule %(rule)s was masked."),
    _("Rule %(rule)s would have allowed this."),
    _("Rule %(rule)s would have warned about this."),
    _("Rule %(rule)s would have masked this."),
    _("Rule %(rule)s would have blocked this."),
    _("The text is %(tokens)s tokens long; the limit is %(limit)s."),
    _("Rule %(rule)s wasn't checked: %(why)s"),
    _("Rule %(rule)s: no violation found."),
    _("The model didn't reply within %(seconds)s s."),
    _("The limit of %(count)s calls per run is reached."),
    _("The daily budget of $%(limit)s is spent."),
    _("Invalid regular expression (RE2): %(words)s."),
    _("Patterns can be up to %(limit)s characters long."),
)
GUARDRAIL_SENTENCES = (
    _("A guardrail blocked the question or the answer."),
    _("Enter a pattern."),
    _("Patterns can't contain \\C (single-byte match)."),
    _("This pattern matches everything, even empty text."),
    _("This pattern has zero-length matches. Make it match at least one character."),
    _("This pattern is too slow. Reduce its repetitions."),
    _("This pattern contains an invalid character."),
    _("This pattern isn't valid."),
    _("This looks like a private key. It wasn't sent to the model."),
    _("This asks the agent to ignore its instructions."),
    _("The model's reply isn't a valid verdict."),
    _("A limit of the check is reached."),
)
