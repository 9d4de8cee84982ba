"""Opens a run for one user: another's run is masked, and every view is audited."""

from dataclasses import dataclass

from django.shortcuts import get_object_or_404

from agents.access import audit, masking
from agents.access.masking import Masker, Row
from agents.access.requests import UserRequest
from agents.models import Run
from agents.web.presentation import RunView


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadableRun:
    """A run for a reader; `row` is as saved, `run` as displayed."""

    row: Run
    run: Run
    is_own: bool
    may_decide: bool
    viewer: int
    masker: Masker | None = None
    hides_private: bool = False  # if it is another member's
    hides_rules: bool = False  # if the reader isn't a reviewer

    @property
    def is_masked(self) -> bool:
        return self.masker is not None

    def visible_row(self, row: Row) -> Row:
        """Return another row of this run, masked if needed."""
        return masking.visible_row(
            row,
            is_masked=self.is_masked,
            hides_private=self.hides_private,
            hides_rules=self.hides_rules,
        )

    def view(self) -> RunView:
        # Masked calls can't be approved: the user wouldn't see what they approve.
        may_decide = self.may_decide and self.masker is None
        return RunView(
            self.run,
            "trace",
            may_decide=may_decide,
            viewer=self.viewer,
            is_discussed=self.viewer in self.row.rights,
            masker=self.masker,
        )


def open_run(request: UserRequest, pk: int | None, source: str = "page") -> ReadableRun:
    """Return the run; one the user can't see is a 404, like a missing one."""
    row = get_object_or_404(Run.objects.for_user(request.user), pk=pk)
    audit.record_view(request.user, row, source)
    user = request.user
    is_masked = masking.is_masked_for(row, user, request.session)
    return ReadableRun(
        row=row,
        run=masking.mask_row(row) if is_masked else row,
        is_own=row.is_owned_by(user),
        may_decide=row.is_decidable_by(user),
        viewer=user.pk,
        masker=Masker() if is_masked else None,
        hides_private=masking.hides_private_parts(row, user),
        hides_rules=not masking.sees_rules(user),
    )
