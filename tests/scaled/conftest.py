import pytest
from django.db import connection


@pytest.fixture(autouse=True)
def workers(settings, transactional_db):
    """Runs are for workers, as ASHIATO_WORKERS says; nothing stands in line yet."""
    settings.WORKERS = True
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM procrastinate_jobs")
