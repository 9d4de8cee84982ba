from agents.engine import (
    BudgetPolicy,
    DuplicateDetectionPolicy,
    StandardTerminationPolicy,
    StopReason,
)
from agents.engine.loop.termination import (
    ContinueWithThinking,
    ContinueWithTools,
    Progress,
    TerminateImmediately,
    TerminateWithOutput,
    ToolCallLimitPolicy,
    canonical_json,
    standard_policy,
)
from agents.engine.turn.assembly import PlanResult, ToolCall, Turn


def plan_with_calls(*names, arguments="{}"):
    calls = tuple(
        ToolCall(id=str(n), name=name, arguments=arguments) for n, name in enumerate(names)
    )
    return PlanResult(action=names[0], calls=calls, turn=Turn(finish_reason="stop"))


def after(*calls):
    history = Progress()
    for name in calls:
        history.record(ToolCall(id="x", name=name))
    return history


def test_calls_continue_the_run_whatever_the_stop_reason():
    decision = StandardTerminationPolicy().decide(plan_with_calls("echo"), Progress())

    assert isinstance(decision, ContinueWithTools)


def test_text_without_calls_is_the_answer():
    decision = StandardTerminationPolicy().decide(PlanResult(final_answer="42"), Progress())

    assert decision == TerminateWithOutput("42")


def test_a_thought_without_an_answer_continues_the_run():
    decision = StandardTerminationPolicy().decide(PlanResult(thought="Hm."), Progress())

    assert decision == ContinueWithThinking()


def test_the_same_call_is_allowed_twice():
    policy = DuplicateDetectionPolicy()

    assert isinstance(policy.decide(plan_with_calls("echo"), after("echo")), ContinueWithTools)
    decision = policy.decide(plan_with_calls("echo"), after("echo", "echo"))
    assert isinstance(decision, TerminateImmediately)
    assert decision.reason is StopReason.DUPLICATE


def test_a_policy_may_wrap_another():
    class Never:
        def decide(self, plan, history):
            return TerminateImmediately(StopReason.BUDGET)

    decision = DuplicateDetectionPolicy(Never()).decide(
        plan_with_calls("echo"), after("echo", "echo")
    )

    assert decision == TerminateImmediately(StopReason.BUDGET)


def test_a_tool_may_be_called_five_times_by_default():
    policy = standard_policy(max_duplicate_tool_calls=99)

    assert isinstance(policy.decide(plan_with_calls("a"), after(*"aaaa")), ContinueWithTools)
    decision = policy.decide(plan_with_calls("a"), after(*"aaaaa"))
    assert decision.reason is StopReason.TOOL_LIMIT


def test_without_a_limit_a_tool_can_be_called_any_number_of_times():
    policy = ToolCallLimitPolicy(max_calls_per_tool=None)

    assert isinstance(policy.decide(plan_with_calls("a"), after(*"a" * 100)), ContinueWithTools)


def test_equal_inputs_are_duplicates_in_any_notation():
    assert canonical_json('{"b": 1, "a": [1, 2]}') == canonical_json('{ "a":[1,2],"b":1 }')
    assert canonical_json('{"a": 1}') != canonical_json('{"a": 2}')
    assert canonical_json("not json ") == "not json"


def test_a_run_over_its_budget_ends_before_the_next_request():
    history = Progress()
    history.used.add({"prompt_tokens": 90, "completion_tokens": 10, "cost": 0.5})

    for policy, limit in [
        (BudgetPolicy(max_tokens=100), "100 tokens"),
        (BudgetPolicy(max_cost=0.5), "$0.5"),
        (BudgetPolicy(max_seconds=0), "0 s"),
    ]:
        decision = policy.decide(plan_with_calls("a"), history)
        assert decision.reason is StopReason.BUDGET
        assert limit in decision.detail


def test_an_answer_over_budget_is_not_discarded():
    history = Progress()
    history.used.add({"prompt_tokens": 90, "completion_tokens": 10, "cost": 0.5})

    decision = BudgetPolicy(max_tokens=1).decide(PlanResult(final_answer="42"), history)

    assert decision == TerminateWithOutput("42")


def test_a_run_within_its_budget_continues():
    policy = BudgetPolicy(max_tokens=100, max_cost=1, max_seconds=60)

    assert isinstance(policy.decide(plan_with_calls("a"), Progress()), ContinueWithTools)
