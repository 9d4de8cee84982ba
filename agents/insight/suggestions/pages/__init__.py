from . import suggestion_admin

__all__ = ["suggestion_admin"]
