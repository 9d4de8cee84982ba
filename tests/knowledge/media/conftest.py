import pytest


@pytest.fixture
def folder(tmp_path, settings):
    """An empty folder of stored files."""
    files = {**settings.STORAGES["files"]}
    files["OPTIONS"] = {**files["OPTIONS"], "location": tmp_path / "files"}
    settings.STORAGES = {**settings.STORAGES, "files": files}
    return tmp_path


@pytest.fixture
def configure(settings):
    """Set media settings, as the environment would."""

    def set_values(**values):
        settings.ENVIRONMENT = settings.ENVIRONMENT.model_copy(update=values)

    return set_values
