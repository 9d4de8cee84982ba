import pytest
from django.contrib.auth.models import Group

from agents.models import (
    Agent,
    AgentTool,
    DatabaseConnection,
    McpServer,
    Schedule,
    ToolRegistration,
)
from agents.web.workflows import versions
from tests.language_models import make_model

KEY, HEADER, VARIABLE = "sk-sentinel-key", "sentinel-header", "sentinel-variable"
PASSWORD = "sentinel-password"
SECRETS = (KEY, HEADER, VARIABLE, PASSWORD)
TEXT = """\
name: greeting
description: Says hello.
parameters:
  who: world
steps:
  - name: hello
    agent: helper
    arguments:
      task: "Say hello to ${parameters.who}."
"""


@pytest.fixture
def installation(agent, person):
    """One of everything, with a secret wherever possible."""
    group = Group.objects.create(name="Sales")
    DatabaseConnection.objects.create(
        name="sales",
        host="db.example.com",
        database="shop",
        username="reader",
        password=PASSWORD,
        tables={"orders": ["id", "total"]},
    )
    make_model(label="fast", model="openai/gpt-fast", api_key=KEY, options={"num_ctx": 8192})
    weather = ToolRegistration.objects.create(
        name="weather",
        source="http",
        endpoint="https://example.com/weather",
        description="Tells the weather.",
        headers={"Authorization": HEADER},
    )
    weather.groups.add(group)
    server = McpServer.objects.create(
        name="files", transport="stdio", command="python3", args=["-m", "files"]
    )
    McpServer.objects.filter(pk=server.pk).update(env={"TOKEN": VARIABLE})
    agent.instructions = "Be brief.\r\n\r\nBe kind."
    agent.save()
    asker = Agent.objects.create(name="asker", model="fast", max_cost=0.5)
    asker.handoffs.add(agent)
    AgentTool.objects.create(agent=asker, tool=weather, approval="always", timeout=9)
    workflow = versions.save(TEXT, person)
    Schedule.objects.create(workflow=workflow, user=person, cron="0 9 * * 1-5")
