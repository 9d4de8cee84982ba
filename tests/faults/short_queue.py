"""Lets two new pages wait for their first frames; loaded into the server with its tools."""

from agents.web.consumers import first_frames

first_frames.MAX_WAITING = 2
