"""Fault points trigger only where and when a test requests it."""

import subprocess
import sys
import time

import pytest

from agents.engine import fault_injection

ARMED = {"ASHIATO_FAULTS": "1"}


@pytest.fixture(autouse=True)
def _disarmed():
    yield
    fault_injection.arm({})


@pytest.mark.parametrize("more", [{}, {"ASHIATO_FAULTS": "0"}, {"ASHIATO_FAULTS": ""}])
def test_a_fault_needs_both_variables(more):
    fault_injection.arm({"ASHIATO_FAULT": "before_model_call:raise"} | more)

    assert not fault_injection._armed
    fault_injection.point("before_model_call")


def test_a_fault_is_raised_once_at_its_point_and_logged_on_arming(caplog):
    fault_injection.arm(ARMED | {"ASHIATO_FAULT": "during_model_stream:2:raise"})
    fault_injection.point("before_model_call")
    fault_injection.point("during_model_stream")

    with pytest.raises(fault_injection.InjectedFault, match="during_model_stream"):
        fault_injection.point("during_model_stream")

    fault_injection.point("during_model_stream")
    assert "A fault is set at during_model_stream:2:raise" in caplog.text


def test_a_fault_can_sleep():
    fault_injection.arm(ARMED | {"ASHIATO_FAULT": "before_message_save:sleep=0.05"})
    began = time.monotonic()

    fault_injection.point("before_message_save")

    assert time.monotonic() - began >= 0.05


def test_a_fault_kills_the_process_by_default():
    kill = (
        "from agents.engine import fault_injection as faults;"
        "faults.arm({'ASHIATO_FAULTS': '1', 'ASHIATO_FAULT': 'after_tool_call:2'});"
        "faults.point('after_tool_call'); print('once', flush=True);"
        "faults.point('after_tool_call'); print('twice')"
    )
    done = subprocess.run([sys.executable, "-c", kill], capture_output=True, text=True)

    assert (done.returncode, done.stdout) == (-9, "once\n")


@pytest.mark.parametrize(
    "text",
    [
        "before_lunch",
        "P4",
        "before_model_call:0",
        "before_model_call:sometimes",
        "before_model_call:sleep",
        "before_model_call:1:kill:1",
        "before_model_call:kill=1",
        "4",
    ],
)
def test_an_invalid_fault_is_rejected_with_the_known_points(text):
    with pytest.raises(ValueError, match="ASHIATO_FAULT must be one of after_approval"):
        fault_injection.arm(ARMED | {"ASHIATO_FAULT": text})
