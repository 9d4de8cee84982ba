"""Fault points trigger where and when a test asks, and never otherwise."""

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
def test_one_word_alone_sets_no_fault(more):
    fault_injection.arm({"ASHIATO_FAULT": "P4:raise"} | more)

    assert not fault_injection._armed
    fault_injection.point("P4")


def test_a_fault_strikes_once_at_its_own_point_and_says_that_it_is_set(caplog):
    fault_injection.arm(ARMED | {"ASHIATO_FAULT": "P5:2:raise"})
    fault_injection.point("P4")
    fault_injection.point("P5")

    with pytest.raises(fault_injection.InjectedFault, match="P5"):
        fault_injection.point("P5")

    fault_injection.point("P5")
    assert "A fault is set at P5:2:raise" in caplog.text


def test_a_fault_may_hold_everything_up():
    fault_injection.arm(ARMED | {"ASHIATO_FAULT": "P1:sleep=0.05"})
    began = time.monotonic()

    fault_injection.point("P1")

    assert time.monotonic() - began >= 0.05


def test_a_fault_kills_unless_it_is_told_otherwise():
    kill = (
        "from agents.engine import fault_injection as faults;"
        "faults.arm({'ASHIATO_FAULTS': '1', 'ASHIATO_FAULT': 'P9:2'});"
        "faults.point('P9'); print('once', flush=True); faults.point('P9'); print('twice')"
    )
    done = subprocess.run([sys.executable, "-c", kill], capture_output=True, text=True)

    assert (done.returncode, done.stdout) == (-9, "once\n")


@pytest.mark.parametrize(
    "text", ["P99", "P14", "P4:0", "P4:sometimes", "P4:sleep", "P4:1:kill:1", "P4:kill=1", "4"]
)
def test_a_fault_that_cannot_be_read_is_refused_in_words(text):
    with pytest.raises(ValueError, match="ASHIATO_FAULT must be P1 to P15"):
        fault_injection.arm(ARMED | {"ASHIATO_FAULT": text})
