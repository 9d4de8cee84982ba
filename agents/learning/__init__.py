"""What agents learn from outcomes and feedback.

`extraction` makes experiences from ratings, corrections and examples, `policy`
decides who may use them, `recall` finds those that fit a question, `outcomes` counts how that
went, and `style` learns how a user likes answers.
"""

from .errors import ExperienceRejected
from .policy import Reach
from .recall import RecalledExperience, recall

__all__ = ["ExperienceRejected", "Reach", "RecalledExperience", "recall"]
