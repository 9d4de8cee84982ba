"""What agents get again in later runs: notes, found by the question.

A *memory* is stated by a user (`statements`, `user_requests`, `tool`) and kept by `memories`;
an *experience* is learned from feedback (`learning`), kept by `experiences` and judged by its
`outcomes`. `store` saves, deletes and restores both, `candidates` decides which ones a run may
use, and `recall` finds those that fit. `style` learns how a user likes answers.
"""

from .errors import NoteRejected
from .recall import RecalledNote, recall
from .tool import RememberTool

__all__ = ["NoteRejected", "RecalledNote", "RememberTool", "recall"]
