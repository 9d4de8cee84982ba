"""A run as one person may read it: another's is masked, and every look at it is kept."""

from dataclasses import dataclass

from django.http import HttpRequest
from django.shortcuts import get_object_or_404

from agents.access import audit, masking
from agents.access.masking import Row, Veil
from agents.models import Run
from agents.web.presentation import RunView


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """`row` is the run as it is kept, `run` as it is shown."""

    row: Run
    run: Run
    is_own: bool
    may_decide: bool
    viewer: int
    veil: Veil | None = None

    @property
    def is_masked(self) -> bool:
        return self.veil is not None

    def shown(self, row: Row) -> Row:
        """Another row of this run, as it may be read."""
        return masking.masked(row) if self.is_masked else row

    def view(self) -> RunView:
        # What is masked cannot be agreed to: a person would not see what they agree to.
        may_decide = self.may_decide and self.veil is None
        return RunView(
            self.run,
            "trace",
            may_decide=may_decide,
            viewer=self.viewer,
            is_discussed=self.viewer in self.row.rights,
            veil=self.veil,
        )


def read(request: HttpRequest, pk: int | None, door: str = "page") -> Reading:
    """What is not this person's to see is a 404, as what is not there."""
    row = get_object_or_404(Run.objects.for_user(request.user), pk=pk)
    audit.viewed(request.user, row, door)
    user = request.user
    rights = {"is_own": row.is_of(user), "may_decide": row.is_decided_by(user)}
    rights["viewer"] = user.pk
    if not masking.hides(row, user, request.session):
        return Reading(row=row, run=row, **rights)
    return Reading(row=row, run=masking.masked(row), veil=Veil(), **rights)
