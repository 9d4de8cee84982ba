from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from agents.db.installation import default_models
from agents.knowledge import embeddings
from agents.knowledge.retrieval import vector_index
from agents.models import EmbeddingIndex


class Command(BaseCommand):
    help = "Embeds passages that have no vector yet, or all of them for a new embedding model."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--all", action="store_true", help="compute all vectors again; searches go on"
        )

    def handle(self, **options: Any) -> None:
        if embeddings.configured_model() == embeddings.OFF:
            self.stdout.write("Search by meaning is off: the embedding model is “Words only”.")
            return
        if options["all"]:
            vector_index.rebuild()
        is_done = vector_index.keep_up()
        for index in EmbeddingIndex.objects.all():
            count = index.vectors.filter(window=0).count()
            note = f"  {index.problem}" if index.problem else ""
            model = default_models.label_of(index.model)
            self.stdout.write(f"{model}  {index.status}  {count} passages{note}")
        if not is_done:
            self.stderr.write("Not complete: another process is at it, or the model failed.")
