import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.engine.plans.definition.definition import read_definition
from agents.engine.plans.definition.graph import levels
from agents.engine.plans.definition.plan import STEP_FIELDS, ExecutionPlan, ExecutionStep
from agents.engine.plans.definition.validation import find_problems
from agents.engine.suggestions import suggest
from tests.sampling import one_in
from tests.web.workflows.pipeline import TEXT as PIPELINE


def problem_lines(text):
    return [f"{problem.line}: {problem.message}" for problem in read_definition(text).problems]


def workflow(*lines):
    return "\n".join(["name: w", "steps:", *(f"  {line}" for line in lines)])


def test_the_pipeline_in_the_handbook_is_read():
    definition = read_definition(PIPELINE)

    assert definition.problems == ()
    assert definition.name == "アンケート集計レポート"
    assert [step.name for step in definition.plan.steps] == [
        "回答収集",
        "重複除去",
        "集計",
        "報告書作成",
    ]
    assert definition.plan.steps[2] == ExecutionStep(
        tool="answer_counter", name="集計", depends_on=("重複除去",), parallel=True
    )


def test_json_and_yaml_definitions_are_equal():
    plan = read_definition(PIPELINE).plan
    written = json.dumps({"name": "同じ😀", **plan.to_dict()})

    definition = read_definition(written)

    assert definition.problems == ()
    assert definition.name == "同じ😀"
    assert definition.plan == plan


def test_every_field_is_read():
    text = """\
name: everything
description: All of it.
parameters: {month: 2026-11, cities: [Ueno, 秋葉原], limit: 3}
steps:
  - name: read
    tool: database
    arguments: {sql: "select 1 -- ${parameters.month}", n: 5}
    timeout: 1.5m
    retry: 2
    expected_outcome: A number.
  - name: each
    agent: Reader
    arguments: {task: "${item} of ${steps.read.output}"}
    for_each: ${parameters.cities}
    depends_on: read
    condition: len(steps.read.output) > 0
    until: output != ""
    rounds: 3
  - name: sure
    ask: Shall we?
    approves: yes please
    role: legal
  - name: inner
    plan:
      steps:
        - {tool: calculator, arguments: {input: "${parameters.limit} + 1"}}
"""
    definition = read_definition(text)

    assert problem_lines(text) == ["21: 'approves' must be true or false."]
    first, each, _, inner = definition.plan.steps
    assert (first.timeout, first.retry, first.arguments["n"]) == (90, 2, 5)
    assert (each.for_each, each.depends_on, each.rounds) == ("parameters.cities", ("read",), 3)
    assert inner.plan.steps[0].name == "step 1"
    assert definition.plan.parameters["month"] == "2026-11"


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (["- name: a", "  tol: x"], "4: " + suggest("Unknown field: 'tol'.", "tool")),
        (
            ["- {tool: x, when: 1}"],
            "3: " + suggest("Unknown field: 'when'.", "condition"),
        ),
        (["- name: a"], "3: The step 'a' needs one of: tool, agent, ask, plan."),
        (
            ["- {name: a, tool: x,", "  agent: y}"],
            "4: The step 'a' combines tool and agent. Use only one.",
        ),
        (
            ["- {name: a, tool: x}", "- {name: a, tool: y}"],
            "4: Two steps are named 'a'.",
        ),
        (
            ["- {name: load, tool: x}", "- {name: b, tool: y, depends_on: [laod]}"],
            "4: " + suggest("'b' depends on 'laod', which doesn't exist.", "load"),
        ),
        (
            ["- {tool: x, timeout: soon}"],
            "3: 'timeout' must be a number of seconds or a duration, e.g. 30s or 5m.",
        ),
        (
            ["- {name: a, tool: x, timeout: -1}"],
            "3: The step 'a' needs timeout between 0.001 and 86,400.",
        ),
        (
            ["- {name: a, tool: x, until: output, rounds: 0}"],
            "3: The step 'a' needs rounds between 1 and 100.",
        ),
        (["- {name: a, tool: x, retry: 99}"], "3: The step 'a' needs retry between 0 and 10."),
        (["- {name: a, tool: x, retry: no}"], "3: 'retry' must be a whole number."),
        (
            ["- {name: a, tool: x, approves: true}"],
            "3: The step 'a' has approves but no ask.",
        ),
        (
            ["- {name: a, ask: Well?, timeout: 5}"],
            "3: The step 'a' waits for a user, so it can't have a timeout.",
        ),
        (["- {name: a, tool: [x]}"], "3: 'tool' must be text."),
        (
            ["- {name: a, tool: x, arguments: 5}"],
            "3: 'arguments' must be a mapping of names to values.",
        ),
        (
            ["- {name: a, tool: x, condition: 1 +}"],
            "3: In 'condition' of step 'a', character 4: "
            "Expected a value, found the end of the expression.",
        ),
        (
            ["- name: a", "  tool: x", "  arguments:", "    q: [1, '${1 =}']"],
            "6: In 'q' of step 'a', character 5: Expected '}', found '='.",
        ),
        (
            ["- {name: a, tool: x, condition: steps.a.output}"],
            "3: Circular dependency: a → a.",
        ),
        (
            ["- {name: a, tool: x, condition: 'steps.c.output'}"],
            "3: 'a' refers to the step 'c', which doesn't exist.",
        ),
        (
            ["- {name: a, tool: x, condition: 'itme == 1', for_each: [1]}"],
            "3: 'a' refers to 'itme', which isn't available here.",
        ),
        (
            ["- {name: a, tool: x, expected_outcome: '${output ==}'}"],
            "3: In 'expected_outcome' of step 'a', character 10: "
            "Expected a value, found the end of the expression.",
        ),
        (
            ["- {name: a, tool: x, expected_outcome: '${ouput == 1}'}"],
            "3: " + suggest("'a' refers to 'ouput', which isn't available here.", "output"),
        ),
        (
            ["- {name: a, tool: x, arguments: {q: '${parameters.month}'}}"],
            "3: 'a' refers to the parameter 'month', which isn't declared.",
        ),
        (["- {name: a, name: b, tool: x}"], "3: 'name' is defined twice."),
        (
            ["- &a {name: a, tool: x}", "- *a"],
            "4: YAML aliases (*name) aren't supported. Write out the value.",
        ),
        (
            ["- !!python/name:os.system {tool: x}"],
            "3: YAML tags (tag:yaml.org,2002:python/name:os.system) aren't supported.",
        ),
        (
            ["- just text"],
            "3: A step must be a mapping with a name and an action (tool, agent, ask or plan).",
        ),
        (["- {name: a, plan: {steps: []}}"], "3: A plan needs at least one step."),
    ],
)
def test_each_problem_has_a_line_and_a_reason(lines, sentence):
    assert sentence in problem_lines(workflow(*lines))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "1: A workflow must be a mapping with a name and steps."),
        ("- 1", "1: A workflow must be a mapping with a name and steps."),
        ("name: a\nsteps: b", "2: 'steps' must be a list."),
        ("name: a", "1: A plan needs at least one step."),
        ("workflow: 5", "1: 'workflow' must be a mapping with a name and steps."),
        (
            "name: a\nsteps:\n  - b: c: d",
            "3: Syntax error: mapping values are not allowed in this context.",
        ),
        ("name: a\n\0", "2: Syntax error: control characters are not allowed."),
        (
            "---\nname: a\n---\nname: b",
            "3: Only one YAML document is allowed. A second one starts here.",
        ),
        ("name: a\n? [b]\n: c", "2: Keys must be text."),
    ],
)
def test_text_that_is_not_a_workflow_has_a_problem(text, sentence):
    assert sentence in problem_lines(text)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(
        ["a", "b", "always", "${steps.a.output}", "${", "steps.b.output > 1", "5m", "x" * 90]
    ),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([*STEP_FIELDS, "steps", "parameters", "workflow", "tol"]),
            inner,
            max_size=5,
        )
    ),
    max_leaves=25,
)


@given(VALUES)
def test_any_value_has_steps_or_problems(value):
    definition = read_definition(json.dumps(value))

    levels(definition.plan.steps)
    assert definition.problems or definition.plan.steps


@given(
    st.text(max_size=80) | st.text(alphabet="name:steps -[]{}&*!|>'\"#\n ,?%@`", max_size=80)
)
def test_any_text_is_read_without_an_exception(text):
    assert all(problem.message for problem in read_definition(text).problems)


def test_a_lone_surrogate_is_accepted():
    assert problem_lines("name: \ud800\nsteps: [{tool: x}]") == []


@pytest.mark.parametrize("spelt", [r"\0", r"\x00", r"\u0000"])
def test_null_characters_are_replaced(spelt):
    step = f'{{name: "x{spelt}", tool: y, arguments: {{"q{spelt}": "{spelt}"}}}}'

    definition = read_definition(f'name: "a{spelt}b"\nsteps: [{step}]')

    assert definition.name == "a\ufffdb"
    assert "\\u0000" not in json.dumps(definition.plan.to_dict())


@pytest.mark.parametrize("field", ["retry", "rounds"])
def test_counts_are_read_as_integers_in_any_notation(field):
    half, whole = (
        ExecutionPlan.from_dict({"steps": [{"name": "a", "tool": "x", field: count}]})
        for count in (2.5, 2.0)
    )

    found = [problem.message for problem in find_problems(half, {"x": {}}, [])]

    assert found == [f"The step 'a' needs a whole number in {field}."]
    assert not find_problems(whole, {"x": {}}, [])
    assert isinstance(getattr(whole.steps[0], field), int)


def test_a_cycle_is_reported_with_its_steps():
    pairs = ("ab", "bc", "ca", "da")
    lines = [f"- {{name: {a}, tool: x, depends_on: [{b}]}}" for a, b in pairs]

    assert problem_lines(workflow(*lines)) == ["3: Circular dependency: a → c → b → a."]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "words"),
    one_in(
        4,
        [
            ("a: &a [x]\nb: &b [*a,*a]\nc: &c [*b,*b]", "aliases"),
            ("name: " + "[" * 100_000, "nested more than 40 levels"),
            ("x" * 1_000_001, "longer than 1,000,000"),
            ("name: w\nsteps: [" + "[]," * 110_000 + "]", "more than 100,000 values"),
            ("name: w\nsteps:\n" + "- {tool: x}\n" * 2_001, "up to 2,000 steps"),
            (
                "name: w\nsteps:\n" + "- {tool: x, depends_on: [a, b, c, d, e, f]}\n" * 2_000,
                "doesn't exist",
            ),
        ],
    ),
)
def test_a_yaml_bomb_is_rejected_quickly(text, words):
    begun = time.process_time()

    found = problem_lines(text)

    assert any(words in sentence for sentence in found)
    assert len(found) <= 200
    assert time.process_time() - begun < 20


@pytest.mark.slow
def test_a_chain_of_two_thousand_steps_is_read():
    lines = [f"- {{name: s{n}, tool: x, depends_on: [s{n - 1}]}}" for n in range(1, 2_000)]
    text = workflow("- {name: s0, tool: x}", *lines)

    definition = read_definition(text)

    assert definition.problems == ()
    assert len(levels(definition.plan.steps)) == 2_000


def test_a_nested_plan_can_refer_to_earlier_steps():
    text = """\
name: w
steps:
  - {name: first, tool: x}
  - name: inner
    depends_on: [first]
    for_each: [1, 2]
    plan:
      steps:
        - {name: a, tool: x, arguments: {q: "${steps.first.output} ${item}"}}
        - {name: b, tool: x, arguments: {q: "${steps.inner.output}"}}
"""
    assert problem_lines(text) == [
        "10: 'b' refers to the step 'inner', which may not be finished yet. "
        "Add it to depends_on."
    ]


def test_a_reference_is_a_dependency():
    plan = read_definition(
        workflow(
            "- {name: end, tool: x, condition: steps.start.output > 1}",
            "- {name: start, tool: x}",
        )
    ).plan

    assert [[step.name for step in level] for level in levels(plan.steps)] == [
        ["start"],
        ["end"],
    ]


def test_an_expectation_depends_on_the_steps_it_refers_to():
    first = ExecutionStep("x", name="first")
    expected = "${output > steps.first.output and output != item}"
    second = ExecutionStep("x", name="second", expected_outcome=expected, for_each=[1])
    plan = ExecutionPlan(steps=(second, first))

    assert not find_problems(plan, {"x": {}}, [])
    assert [[s.name for s in level] for level in levels(plan.steps)] == [["first"], ["second"]]


def test_levels_put_each_step_after_its_dependencies():
    plan = read_definition(
        workflow(
            "- {name: end, tool: x, depends_on: [left, right]}",
            "- {name: left, tool: x, depends_on: [start]}",
            "- {name: start, tool: x}",
            "- {name: right, tool: x}",
        )
    ).plan

    names = [[step.name for step in level] for level in levels(plan.steps)]

    assert names == [["start", "right"], ["left"], ["end"]]


def test_a_plan_from_a_model_is_validated_against_the_available_tools():
    plan = ExecutionPlan(
        steps=(
            ExecutionStep("databse", {"sql": "select 1"}),
            ExecutionStep("calculator", {}, name="sum"),
            ExecutionStep(agent="Reeder", name="ask"),
            ExecutionStep("calculator", {"input": "1", "more": 2}, name="more"),
        )
    )
    schema = {"properties": {"input": {}}, "required": ["input"], "additionalProperties": False}

    found = find_problems(plan, {"database": {}, "calculator": schema}, ["Reader"])

    assert [problem.message for problem in found] == [
        suggest("'step 1' needs the tool 'databse', which isn't available.", "database"),
        "'sum' doesn't pass the required argument 'input' to 'calculator'.",
        suggest("'ask' needs the agent 'Reeder', which isn't available.", "Reader"),
        "'calculator' doesn't have an argument 'more'.",
    ]
    assert found[0].path == ("steps", 0, "tool")
