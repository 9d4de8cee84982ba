"""A backtest with a model server that speaks the wire format: tokens, judge and score."""

import json

import pytest
from asgiref.sync import sync_to_async

from agents.models import Agent
from agents.review.experiments.models import Experiment
from tests.language_models import amake_model
from tests.wire import USAGE, WireServer, call, say

from .conftest import finish, results_of, run_set

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]


async def test_a_set_is_answered_and_judged_by_a_model_server(example):
    example.checks = [
        {"kind": "number", "value": "42", "tolerance": "0"},
        {"kind": "judge", "value": "Names the result."},
    ]
    await sync_to_async(example.save)()
    verdict = json.dumps({"score": 0.75, "reason": "It names it."})
    script = [
        call(("calculator", '{"expression": "6 * 7"}')),
        say("It is 42."),
        say(f"```json\n{verdict}\n```"),
    ]
    async with WireServer(script) as server:
        await amake_model(label="wired", model="openai/test", base_url=server.url, api_key="k")
        await Agent.objects.filter(is_default=True).aupdate(model="wired")

        experiment = await run_set(example.example_set, judge_model="wired")

    (result,) = await results_of(await finish(experiment))
    assert (result.state, result.score) == ("passed", 0.875)
    assert result.checks[1]["detail"] == "It names it."
    assert "Names the result." in str(server.requests[2].body["messages"])
    assert result.run.total_tokens == 3 * USAGE["total_tokens"]
    assert experiment.state == Experiment.State.DONE
