"""What was decided and by whom, in the few words that fit in the row of a step."""

from collections.abc import Callable, Mapping

from django.utils.translation import gettext as _

from agents.db.sentences import translate
from agents.models import Approval

from ..formats.formatting import one_line

Verdict = Approval.Verdict
# By verdict: what the viewer decided, and what another user did.
SENTENCES: Mapping[str, tuple[Callable[[], str], Callable[[], str]]] = {
    Verdict.APPROVED: (
        lambda: _("approved by you"),
        lambda: _("approved by %(name)s"),
    ),
    Verdict.EDITED: (
        lambda: _("edited and approved by you"),
        lambda: _("edited and approved by %(name)s"),
    ),
    Verdict.REJECTED: (
        lambda: _("rejected by you"),
        lambda: _("rejected by %(name)s"),
    ),
}
REASONED_REJECTION = (
    lambda: _("rejected: %(reason)s"),
    lambda: _("rejected by %(name)s: %(reason)s"),
)


def decision_words(approval: Approval, label: str, name: str, *, is_viewer: bool) -> str:
    """Return the words for a decision of this user; `label` is all there is without a name."""
    if approval.granted_scope:
        return _("always allowed")
    is_labeled = approval.is_unknown or approval.is_budget
    if not name or approval.verdict not in SENTENCES or (is_labeled and is_viewer):
        return label
    if is_labeled:
        return _("%(person)s: %(verdict)s") % {"person": name, "verdict": label}
    sentences = SENTENCES[approval.verdict]
    if approval.verdict == Verdict.REJECTED and approval.reason:
        sentences = REASONED_REJECTION
    own_sentence, others_sentence = sentences
    sentence = own_sentence if is_viewer else others_sentence
    return sentence() % {"name": name, "reason": one_line(translate(approval.reason))}
