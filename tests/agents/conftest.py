import pytest


@pytest.fixture
def scripted(monkeypatch):
    """Lets the runs of a test think with a script instead of the demo model."""
    from agents import assembly
    from tests.scripted import ScriptedModel

    def use(*script, model=None):
        model = model or ScriptedModel(*script)
        monkeypatch.setattr(assembly, "llm", lambda name: model)
        return model

    return use
