import pytest


@pytest.fixture
def folder(tmp_path, settings):
    """An empty folder of stored files."""
    files = {**settings.STORAGES["files"]}
    files["OPTIONS"] = {**files["OPTIONS"], "location": tmp_path}
    settings.STORAGES = {**settings.STORAGES, "files": files}
    return tmp_path
