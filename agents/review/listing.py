"""Runs one after the other, as a list of them is walked through."""

from agents.models import Run


def neighbours(user, query: str, pk: int) -> tuple[int | None, int | None]:
    """The next newer run and the next older one that this person may see."""
    runs = Run.objects.for_user(user)
    newer = runs.filter(pk__gt=pk).order_by("pk").values_list("pk", flat=True).first()
    older = runs.filter(pk__lt=pk).order_by("-pk").values_list("pk", flat=True).first()
    return newer, older
