"""A check that was cut off is not made again, and its row has an end."""

from agents.engine.events import Type
from tests.engine.conftest import Echo
from tests.engine.plans import of, step, told, workflow
from tests.engine.test_approval import _kept, collected


async def test_a_check_cut_off_after_its_finding_is_ended():
    def build():
        checked = step("one", expected_outcome="${output == 'one'}")
        return workflow(checked, tools=[Echo()])

    whole = await told(build())
    cut = next(at for at, event in enumerate(whole, 1) if event.type is Type.EVALUATION)
    past = [_kept(event) for event in whole[:cut]]

    events = [*past, *await collected(build().resume(past))]

    ends = [data["step"] for data in of(events, Type.STEP) if data["kind"] == "evaluation"]
    assert ends == [of(events, Type.EVALUATION)[0]["step"]]
    assert len(of(events, Type.EVALUATION)) == 1
