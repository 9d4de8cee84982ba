import pytest
from django.db import connection


@pytest.fixture(autouse=True)
def workers(settings, transactional_db):
    """Let workers drive the runs, as with ASHIATO_WORKERS, with an empty queue."""
    settings.WORKERS = True
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM procrastinate_jobs")
