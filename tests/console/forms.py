"""Forms as a browser sends them."""

from django.forms.models import model_to_dict

from agents.models import Agent


def agent_form(**changes):
    """What a browser sends for a new agent: the defaults of its columns, and `changes`."""
    writer = model_to_dict(Agent(name="writer", personal_data="hidden"), exclude=["tools"])
    sent = {name: value for name, value in writer.items() if value not in (None, False, [])}
    return {name: "on" if value is True else value for name, value in sent.items()} | changes
