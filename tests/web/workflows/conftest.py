import pytest
from django.contrib.auth.models import Permission

from agents.catalog.tools import tool_factory
from agents.models import ToolRegistration
from agents.web.workflows import versions
from tests.web.workflows import pipeline


@pytest.fixture
def pipeline_tools(db, settings):
    """An installation with the pipeline's tools."""
    settings.TOOL_MODULES = ["tests.web.workflows.pipeline"]
    tool_factory.code_tools.cache_clear()
    for name in tool_factory.code_tools():
        ToolRegistration.objects.create(name=name, approval="never")
    yield
    tool_factory.code_tools.cache_clear()


@pytest.fixture
def workflow(pipeline_tools, editor):
    return versions.save(pipeline.TEXT, editor)


@pytest.fixture
def editor(django_user_model):
    user = django_user_model.objects.create_user("ed")
    user.user_permissions.add(Permission.objects.get(codename="change_workflow"))
    return user
