"""What all tests of programs' ways in have."""

import pytest

from agents.catalog.attachments import file_context


@pytest.fixture(autouse=True)
def _documents_are_not_awaited(monkeypatch):
    """No process reads documents here, and a run waits two minutes for one."""
    monkeypatch.setattr(file_context, "WAIT_SECONDS", 0.1)
