"""Queues a PDF of text in a server's database, as an upload does."""

import json
import os
import sys
import time

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
django.setup()

from django.db import transaction  # noqa: E402

from agents.knowledge import default_collection, ingestion  # noqa: E402
from agents.knowledge.files import save  # noqa: E402
from tests.document_files import pdf  # noqa: E402

SUBJECTS = ("heron", "stork", "crane", "egret", "ibis", "bittern", "spoonbill")
LINE = "The {0} of section {1} nests in reeds near {2} and is counted every spring by {3}."


def pages(count: int) -> list[list[tuple[float, str]]]:
    """Return pages with a heading and 45 lines each."""
    return [[(18, f"Chapter {page + 1}"), *_lines(page)] for page in range(count)]


def _lines(page: int) -> list[tuple[float, str]]:
    names = [SUBJECTS[(page + at) % len(SUBJECTS)] for at in range(48)]
    return [
        (10, LINE.format(names[at], page, names[at + 1], names[at + 3])) for at in range(45)
    ]


if __name__ == "__main__":
    began = time.time()
    with transaction.atomic():
        stored = save(pdf(pages(int(sys.argv[1]))), name="bench.pdf", owner=None)
        document = ingestion.add_file(default_collection(), None, "bench.pdf", stored)
    print(json.dumps({"pk": document.pk, "queued": began}))
