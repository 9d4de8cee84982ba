"""Sentences about questions of running tools, and why they have no answer."""

from django.utils.translation import gettext_noop as _

QUESTION_TEMPLATES = (
    _("Nobody answered within %(minutes)s min."),
    _("The answer was blocked: %(reason)s"),
    _("The question was blocked: %(reason)s"),
    _("A call can ask up to %(most)s questions."),
    _("A call can use the model up to %(most)s times."),
    _("The model's reply was blocked: %(reason)s"),
    _("The request was blocked: %(reason)s"),
    _("A choice needs 1 to %(most)s options."),
    _("The form has more than %(most)s fields."),
    _("The question is longer than %(most)s characters."),
    _("The field %(name)s has no usable schema."),
    _("The field %(name)s has a type that forms don't have."),
    _("The field %(name)s is a list without choices."),
)
QUESTION_SENTENCES = (
    _("The call ended before the question was answered."),
    _("The server restarted, so the question was closed."),
    _("This run has no user to ask."),
    _("Nobody can be asked here."),
    _("The model can't be used here."),
    _("Nobody can be asked outside a chat."),
    _("There is no model to ask outside a run."),
    _("The question has no text."),
    _("This agent doesn't let servers use its model."),
    _("The request has no messages."),
    _("Only text can be sent to the model this way."),
    _("The form is too large."),
    _("The form's schema isn't an object with properties."),
    _("The address of the page isn't valid."),
    _("The page must have an https address without a user name."),
    _("No one can be asked here."),
)
