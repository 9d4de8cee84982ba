"""A process that reads queued documents, started by `test_ingestion_processes`."""

import json
import os
import signal
import sys
import time
from datetime import timedelta
from typing import Any


def main(about: dict[str, Any], task: str) -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "project.settings"
    import django
    from django.conf import settings

    settings.DATABASES["default"] |= about["database"]
    settings.STORAGES["files"] = about["storage"]
    django.setup()
    from agents.knowledge.retrieval import vector_index
    from agents.models import Document

    vector_index.writable = lambda: None  # type: ignore[assignment]
    Document.LEASE = timedelta(seconds=about["lease"])
    settings.SOURCE_FOLDERS = about.get("folders", [])
    {"work": work, "die": die, "linger": linger, "check": check}[task]()


def work() -> None:
    """Read documents until none has come for two seconds, and say which."""
    from agents.knowledge.ingestion import leases, queue

    say("ready")
    end = time.monotonic() + 2
    while time.monotonic() < end:
        document = leases.claim()
        if document is None:
            time.sleep(0.05)
            continue
        queue.process(document)
        say(document.source)
        end = time.monotonic() + 2


def die() -> None:
    """Be killed while a document is read."""
    from agents.knowledge.ingestion import queue

    def parse(*args: Any, **kwargs: Any) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    queue.parse = parse  # type: ignore[assignment]
    queue.process_waiting()


def check() -> None:
    """Check the sources that are due; a fault that is set kills the process meanwhile."""
    from agents.knowledge import sources

    sources.check_due()


def linger() -> None:
    """Read a document slowly: say that it has begun, and go on when told."""
    from agents.knowledge.ingestion import queue

    parse = queue.parse

    def wait(*args: Any, **kwargs: Any) -> Any:
        parsed = parse(*args, **kwargs)
        say("read")
        sys.stdin.readline()
        return parsed

    queue.parse = wait
    queue.process_waiting()
    say("over")


def say(words: str) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), sys.argv[2])
