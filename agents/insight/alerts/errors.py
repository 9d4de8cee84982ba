class DeliveryFailed(Exception):
    """Raised when a message wasn't accepted; the message says why."""

    def __init__(self, reason: str, *, is_passing: bool = True) -> None:
        super().__init__(reason)
        self.is_passing = is_passing
