import pytest
from django.db import connection


@pytest.fixture(autouse=True)
def workers(settings, transactional_db):
    """Runs are for workers, as ASHIATO_WORKERS says; nothing stands in line yet."""
    settings.WORKERS = True
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM procrastinate_jobs")


def pytest_collection_modifyitems(items):
    """Real processes against the clock: what fails is tried once more, and said to be so."""
    for item in items:
        if item.path.parent.name == "scaled":
            item.add_marker(pytest.mark.flaky(reruns=1))
