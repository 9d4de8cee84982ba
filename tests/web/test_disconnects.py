"""Clients that leave before their response."""

from project.asgi import QuietHandler


async def test_a_client_that_leaves_is_no_error():
    """An exception would be logged if Daphne cancels the request at the same moment."""

    async def receive():
        return {"type": "http.disconnect"}

    assert await QuietHandler().listen_for_disconnect(receive) is None
