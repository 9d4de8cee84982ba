"""Files: stored once by their content, read by their real type, served so that nothing runs."""

from .errors import FileRefused
from .serving import serve
from .store import release, save

__all__ = ["FileRefused", "release", "save", "serve"]
