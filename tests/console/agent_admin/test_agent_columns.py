"""A setting of an agent is in its form, its versions and its exports.

See the recipe for an agent setting in CONTRIBUTING.md.
"""

from django.contrib.admin.utils import flatten_fieldsets

from agents.catalog import agent_spec
from agents.console.agent_admin.agents import AgentAdmin
from agents.console.system.config_files.kinds import KINDS
from agents.models import Agent

COLUMNS = {field.name for field in (*Agent._meta.concrete_fields, *Agent._meta.many_to_many)}
# Which row it is, and how often it was changed: no settings.
EXCLUDED = {"id", "version"}
SETTINGS = COLUMNS - EXCLUDED


def test_every_setting_is_in_the_form():
    form = set(flatten_fieldsets(AgentAdmin.fieldsets))

    assert form - {"given"} | {"tools"} == SETTINGS  # the tools have inputs of their own


def test_every_setting_is_in_a_version():
    assert {*agent_spec.build_spec(Agent(), [], {})} == SETTINGS


def test_every_setting_is_in_an_export():
    assert {*KINDS["agents"].allowed_keys({}), "name"} == SETTINGS
