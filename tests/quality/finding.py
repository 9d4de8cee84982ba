"""How often and how high search finds the right document, on three sets of questions."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "var" / "quality"
if "ASHIATO_DATA" not in os.environ:
    os.environ["ASHIATO_DATA"] = tempfile.mkdtemp(prefix="ashiato-finding-")

from django.apps import apps  # noqa: E402

if not apps.ready:
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    django.setup()

from django.core.management import call_command  # noqa: E402

from agents.knowledge import evaluation  # noqa: E402
from agents.knowledge.evaluation import Outcome  # noqa: E402
from agents.knowledge.retrieval.confidence import confidence  # noqa: E402
from agents.knowledge.retrieval.finder import Mode  # noqa: E402
from agents.management.commands.evaluate_search import documents_of  # noqa: E402
from tests.quality import search_documents  # noqa: E402

TITLE = "Finding documents"
INTRO = """\
The set of the product, and 240 questions by an author who hadn't seen the search, about 468
pages of manuals in English and Japanese (Postfix, Borg, restic, Docker, Apache, LibreOffice).
Half of these were looked at while the certainty was fitted (*development*); the others
(*unseen*) were only measured. All with the local encoder alone, without a model that re-ranks.
AUC is how well the certainty tells questions with an answer from those without one; *withheld*
is how many right documents in first place were reported as nothing found.
"""
MODES: dict[str, Mode] = {
    "words alone": "words",
    "vectors alone": "vectors",
    "both": "hybrid",
}
MINIMUM = 0.04  # as installed


def measure() -> str:
    call_command("migrate", verbosity=0)
    documents = FOLDER / "search"
    shutil.rmtree(documents, ignore_errors=True)
    search_documents.lay_out(documents)
    sets = {
        "of the product": (evaluation.OWN_SET / "questions.jsonl", evaluation.OWN_SET),
        "development": (search_documents.QUESTIONS / "development.jsonl", None),
        "unseen": (search_documents.QUESTIONS / "unseen.jsonl", None),
    }
    lines = [
        "| set | search | questions | recall@5 | recall@10 | MRR | AUC | withheld |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, (path, folder) in sets.items():
        questions = evaluation.read_questions(path)
        with documents_of(folder / "documents" if folder else documents) as where:
            for label, mode in MODES.items():
                outcomes = list(evaluation.ask(questions, where, mode))
                lines.append(f"| {name} | {label} | {_figures(outcomes)} |")
                if mode == "hybrid":
                    lines += _kinds(outcomes)
    return "\n".join(lines)


def _kinds(outcomes: list[Outcome]) -> Iterator[str]:
    for kind in dict.fromkeys(one.question.kind for one in outcomes if one.question.documents):
        of_kind = [outcome for outcome in outcomes if outcome.question.kind == kind]
        yield f"| | {kind} | {_figures(of_kind)} |"


def _figures(outcomes: list[Outcome]) -> str:
    answerable = [outcome for outcome in outcomes if outcome.question.documents]
    unanswerable = [outcome for outcome in outcomes if not outcome.question.documents]
    auc = f"{evaluation.separation(answerable, unanswerable):.2f}" if unanswerable else ""
    first = [outcome for outcome in answerable if outcome.rank == 1]
    withheld = sum(confidence(one.certainty, MINIMUM) == "none" for one in first)
    return (
        f"{len(answerable)} | {evaluation.recall(answerable, 5):.2f} "
        f"| {evaluation.recall(answerable, 10):.2f} "
        f"| {evaluation.reciprocal_rank(answerable):.2f} | {auc} | {withheld}"
    )
