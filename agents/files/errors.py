class FileRefused(Exception):
    """A file isn't saved; the message is a sentence for the user."""
