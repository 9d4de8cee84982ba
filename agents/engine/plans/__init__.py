"""Plans, written by a model or by hand: validation, execution, and merging in a panel."""

from .definition.definition import PlanDefinition, read_definition
from .definition.graph import dependencies, diff_steps, levels, precedence, topological_order
from .definition.plan import ALWAYS, FAILURE, SUCCESS, ExecutionPlan, ExecutionStep
from .definition.validation import Schemas, missing_resources
from .definition.yaml_reader import (
    MAX_DEPTH,
    MAX_PROBLEMS,
    LocatedValue,
    PlanProblem,
    ValuePath,
    parse_scalar,
    read_yaml,
)
from .execution.evaluation import MONITOR
from .execution.evaluation import OUTPUT_SCHEMA as EVALUATION_SCHEMA
from .merging.answer_merging import JUDGE, MODERATOR, QUESTION_TEMPLATE, MergeStrategy
from .merging.similarity import normal_form
from .orchestrator import RESULTS_PROMPT, Orchestrator
from .panel import SYNTHESIS_PROMPT, Panel
from .plan_writer import (
    INVALID_PLAN,
    PLAN_SCHEMA,
    PLANNER,
    STEP_FAILED,
    STEP_UNEXPECTED,
    TRIED_PLAN,
)
from .workflow import WorkflowRuntime

__all__ = [
    "ALWAYS",
    "EVALUATION_SCHEMA",
    "PLAN_SCHEMA",
    "ExecutionPlan",
    "ExecutionStep",
    "FAILURE",
    "INVALID_PLAN",
    "JUDGE",
    "LocatedValue",
    "MAX_DEPTH",
    "MAX_PROBLEMS",
    "MODERATOR",
    "MONITOR",
    "MergeStrategy",
    "Orchestrator",
    "PLANNER",
    "Panel",
    "ValuePath",
    "PlanDefinition",
    "PlanProblem",
    "QUESTION_TEMPLATE",
    "RESULTS_PROMPT",
    "STEP_FAILED",
    "STEP_UNEXPECTED",
    "SUCCESS",
    "SYNTHESIS_PROMPT",
    "Schemas",
    "TRIED_PLAN",
    "WorkflowRuntime",
    "dependencies",
    "diff_steps",
    "levels",
    "missing_resources",
    "normal_form",
    "parse_scalar",
    "precedence",
    "read_definition",
    "read_yaml",
    "topological_order",
]
