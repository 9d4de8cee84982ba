"""Limits text search in others' runs to what the reader can see.

Otherwise a masked address could be guessed letter by letter.
"""

from collections.abc import Iterable

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet

from agents.access.masking import UNMASK_PERMISSION, asker_id, load_origins, mask_text
from agents.models import Run

from . import filter_queries
from .filter_language import Filter, Term

SEARCHED_COLUMNS = {"": ("query", "answer"), "error": ("detail",)}


def is_needed(user: User, run_filter: Filter) -> bool:
    return any(_is_text_term(term) for term in run_filter.terms) and not user.has_perm(
        UNMASK_PERMISSION
    )


def prefilter(user: User, run_filter: Filter, runs: QuerySet[Run]) -> QuerySet[Run]:
    """Return runs that may match; `readable_pks` checks those of others."""
    runs = runs.alias(**filter_queries.QUERY_ALIASES)
    is_of_others = ~Q(user=user, origin_step=None)
    for term in run_filter.terms:
        is_open = term.is_not and _is_text_term(term)
        runs = runs.filter(is_of_others | term.condition if is_open else term.condition)
    return runs


def readable_pks(user: User, run_filter: Filter, pks: Iterable[int]) -> set[int]:
    """Return which of these match in the form this user can read."""
    runs = Run.objects.filter(pk__in=list(pks))
    own = set(runs.filter(user=user, origin_step=None).values_list("pk", flat=True))
    terms = [term for term in run_filter.terms if _is_text_term(term)]
    runs_of_others = runs.exclude(pk__in=own).only(
        "user", "origin", "origin_step", "query", "answer", "detail"
    )
    return own | {
        run.pk
        for run in load_origins(runs_of_others)
        if all(_matches(term, run, user) for term in terms)
    }


def _is_text_term(term: Term) -> bool:
    return term.field in SEARCHED_COLUMNS


def _matches(term: Term, run: Run, user: User) -> bool:
    is_own = run.user_id == user.pk and asker_id(run) == user.pk
    texts = [getattr(run, name) for name in SEARCHED_COLUMNS[term.field]]
    # Masked only if needed, because it is slow.
    is_match = any(
        _contains(text, searched) and (is_own or _contains(mask_text(text), searched))
        for searched in term.values
        for text in texts
    )
    return is_match != term.is_not


def _contains(text: str, searched: str) -> bool:
    """Search like the databases: ignoring case for Latin letters only."""
    return searched.encode().lower() in text.encode(errors="replace").lower()
