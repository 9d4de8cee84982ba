"""A setting of an agent is in its form, its versions and its exports.

See the recipe for an agent setting in CONTRIBUTING.md.
"""

import pytest
from django.contrib.admin.utils import flatten_fieldsets
from django.contrib.auth.models import Group
from django.urls import reverse

from agents.catalog import agent_spec
from agents.console.agent_admin.agent_editor.layout import TABS
from agents.console.agent_admin.agents import AgentAdmin
from agents.console.system.config_files.kinds import KINDS
from agents.models import Agent, Collection
from tests.conftest import select

COLUMNS = {field.name for field in (*Agent._meta.concrete_fields, *Agent._meta.many_to_many)}
# Which row it is, and how often it was changed: no settings.
EXCLUDED = {"id", "version"}
SETTINGS = COLUMNS - EXCLUDED


def test_every_setting_is_in_the_form():
    form = set(flatten_fieldsets(AgentAdmin.fieldsets))

    assert form - {"given"} | {"tools"} == SETTINGS  # the tools have inputs of their own


@pytest.mark.django_db
@pytest.mark.parametrize("tab", [tab for tab in TABS if tab.fields], ids=lambda tab: tab.key)
def test_every_setting_has_its_input_on_its_tab(admin_client, agent, tab):
    Agent.objects.create(name="other")  # to hand off to
    Collection.objects.create(name="Manuals")
    Group.objects.create(name="Experts")

    editor = admin_client.get(reverse("admin:agents_agent_change", args=[agent.pk]))

    inputs = {
        node.attributes.get("name") for node in select(editor, f"#panel-{tab.key} [name]")
    }
    assert {*tab.fields} - {"given"} - inputs == set()  # the tools have inputs of their own


def test_every_setting_is_in_a_version():
    assert {*agent_spec.build_spec(Agent(), [], {})} == SETTINGS


def test_every_setting_is_in_an_export():
    # Schedules belong to an agent without being a setting of it.
    keys = {*KINDS["agents"].allowed_keys({})} - {"schedules"}
    assert keys | {"name"} == SETTINGS
