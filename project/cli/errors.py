"""Why a command ended without success."""

FAILED = 1
UNUSABLE = 2
WAITING = 3
STOPPED = 130  # as shells report Ctrl-C


class CommandFailed(Exception):
    """Raised to end the command with this message and exit code."""

    def __init__(self, message: str, code: int = FAILED) -> None:
        super().__init__(message)
        self.code = code


class ServerError(CommandFailed):
    """Raised when the server refuses a request; says why."""

    def __init__(self, message: str, status: int, code: int = FAILED) -> None:
        super().__init__(message, code)
        self.status = status
