class FileRefused(Exception):
    """A file isn't saved; the message is a sentence for the user."""


class StorageUnavailable(OSError):
    """Raised when the bucket with the files doesn't answer, or refuses a request."""
