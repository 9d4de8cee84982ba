"""Detects a model that repeats the same text forever, as weak models do."""

MIN_CHARS = 3_000
MIN_REPEATS = 6
CHECKED_CHARS = 500
SAMPLE_CHARS = 100


class RepetitionDetector:
    """Checks the end of a streamed text now and then."""

    def __init__(self) -> None:
        self.is_repeating = False
        self._tail = ""
        self._pieces: list[str] = []
        self._size = 0

    def feed(self, text: str) -> None:
        self._pieces.append(text)
        self._size += len(text)
        if self._size < CHECKED_CHARS:
            return
        self._tail = "".join([self._tail, *self._pieces])[-MIN_CHARS:]
        self._pieces = []
        self._size = 0
        if len(self._tail) == MIN_CHARS:
            self.is_repeating = is_periodic(self._tail)


def is_periodic(text: str) -> bool:
    """Whether the text is nothing but the same piece again and again."""
    start = text.rfind(text[-SAMPLE_CHARS:], 0, len(text) - 1)
    period = len(text) - SAMPLE_CHARS - start
    if start < 0 or period * MIN_REPEATS > len(text):
        return False
    return text[period:] == text[:-period]
