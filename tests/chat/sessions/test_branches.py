"""The branches of a chat: paths, forks, positions, and what the model gets of them."""

import pytest
from django.utils import timezone

from agents.models import Run, RunEvent
from chat import messages
from chat.messages import queue, run_factory
from chat.models import BranchPosition, Message
from chat.sessions import branches
from chat.sessions.branches import Tree

FORKED = Tree({1: None, 2: 1, 3: 2, 4: 1, 5: 4, 6: 1, 7: 3})


def post(chat, text, parent=None, answer="Yes."):
    """Save a message with a finished answer."""
    ended = {"status": "completed", "stopped_reason": "completed", "answer": answer}
    run = Run.objects.create(user=chat.user, topic=chat.topic, query=text, **ended)
    event = {"time": timezone.now(), "data": {"content": answer, "step": 1}}
    RunEvent.objects.create(run=run, seq=1, type="delta", agent="helper", **event)
    about = {"author": chat.user, "run": run, "client_id": f"c{run.pk}", "parent": parent}
    return Message.objects.create(session=chat, text=text, **about)


def heard(chat, leaf):
    tree = branches.read(chat.pk)
    said = run_factory.history(chat, tree.path(leaf and leaf.pk))
    return [line["content"] for line in said if line["role"] == "user"]


def test_a_path_leads_from_the_root_to_the_leaf():
    assert FORKED.path(7) == [1, 2, 3, 7]
    assert FORKED.path(5) == [1, 4, 5]
    assert FORKED.path(None) == []


def test_siblings_are_in_the_order_they_were_sent():
    assert FORKED.siblings(4) == [2, 4, 6]
    assert FORKED.siblings(1) == [1]
    assert Tree({1: None, 5: None}).siblings(5) == [1, 5]


def test_the_newest_leaf_is_the_latest_message_below():
    assert FORKED.newest_leaf() == 7
    assert FORKED.newest_leaf(4) == 5
    assert FORKED.newest_leaf(6) == 6
    assert Tree({}).newest_leaf() is None


def test_a_message_with_a_deleted_parent_is_a_root():
    tree = Tree({3: 2, 4: 3})

    assert tree.path(4) == [3, 4]
    assert tree.siblings(3) == [3]


def test_the_model_only_gets_the_messages_before_it_on_its_branch(chat):
    first = post(chat, "First")
    old = post(chat, "Old", first)
    later = post(chat, "Later", old)
    new = post(chat, "New", first)

    assert heard(chat, later) == ["First", "Old", "Later"]
    assert heard(chat, new) == ["First", "New"]
    assert heard(chat, None) == []


def test_the_last_runs_of_a_long_branch_are_its_own(chat):
    first = last = post(chat, "First")
    for at in range(run_factory.HISTORY_RUNS):
        last = post(chat, f"Old {at}", last)
    for at in range(3):
        post(chat, f"New {at}", first)

    said = heard(chat, last)

    assert len(said) == run_factory.HISTORY_RUNS
    assert said == [f"Old {at}" for at in range(run_factory.HISTORY_RUNS)]


@pytest.mark.usefixtures("agent")
def test_a_message_follows_the_branch_its_sender_sees(chat):
    first = post(chat, "First")
    old = post(chat, "Old", first)
    new = post(chat, "New", first)
    assert branches.visible_path(chat, chat.user) == [first.pk, new.pk]
    BranchPosition.objects.create(session=chat, user=chat.user, leaf=old)

    said = messages.save(chat, chat.user, "And then?", "a")

    assert said.parent_id == old.pk
    assert [line["content"] for line in said.run.history if line["role"] == "user"] == [
        *("First", "Old")
    ]


@pytest.mark.usefixtures("agent")
def test_queued_messages_follow_each_other_on_their_branch(chat):
    first = post(chat, "First")
    live = messages.save(chat, chat.user, "Live", "a")
    one, two = (messages.save(chat, chat.user, text, text) for text in ("One", "Two"))
    assert live.parent_id == first.pk
    assert {one.parent_id, two.parent_id} == {live.pk}

    for _ in range(2):
        Run.objects.filter(status__in=Run.LIVE).update(status="completed")
        messages.dispatching._claim_next(chat)

    texts = [Message.objects.get(pk=pk).text for pk in branches.visible_path(chat, chat.user)]
    assert texts == ["First", "Live", "One", "Two"]
    assert not queue.queued_messages(chat)


def test_messages_after_deleted_ones_are_attached_to_the_previous_one(chat):
    first = post(chat, "First")
    second = post(chat, "Second", first)
    third = post(chat, "Third", second)
    last = post(chat, "Last", third)

    branches.reattach_children([second.pk, third.pk], chat.pk)
    Message.objects.filter(pk__in=[second.pk, third.pk]).delete()

    assert branches.visible_path(chat, chat.user) == [first.pk, last.pk]
