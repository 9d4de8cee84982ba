from .problem_admin import ProblemAdmin

__all__ = ["ProblemAdmin"]
