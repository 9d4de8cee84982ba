"""Learning in the background, beside what users wait for."""

import threading

from agents.learning import background


async def test_a_pass_leaves_the_database_thread_to_users(monkeypatch):
    threads, done = [], threading.Event()

    def work():
        threads.append(threading.current_thread().name)
        done.set()

    monkeypatch.setattr(background, "work", work)
    monkeypatch.setattr(background, "_next_look", 0.0)

    await background.run_if_due(None)

    assert done.wait(5)
    assert threads == ["learning"]
