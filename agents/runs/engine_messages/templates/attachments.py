"""What is wrong with an attachment, after its name."""

from django.utils.translation import gettext_noop as _

ATTACHMENT_TEMPLATES = (
    _("too large to save (limit %(limit)s)"),
    _("too large for models (limit %(limit)s)"),
    _("not saved: the limit per run is %(limit)s"),
    _("not saved: the limit per result is %(limit)s attachments"),
    _("not saved: the limit per result is %(limit)s"),
)
ATTACHMENT_SENTENCES = (
    _("The attachment couldn't be saved."),
    _("this agent hides personal data from models, and images can't be masked"),
    _("this model can't see images"),
    _("this model can't hear audio"),
    _("models can only hear WAV and MP3"),
    _("this model can't read files"),
    _("left out of this request for lack of space"),
    _("no longer available"),
    _("the server's base64 is invalid"),
    _("it is empty"),
    _("not saved: this agent stores no personal data, and files can't be masked"),
    _("not saved: the database didn't respond"),
)
