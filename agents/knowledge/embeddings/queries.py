"""Vectors of questions: saved for a moment, and requests that come together are joined.

A message embeds its question for memories and again for the search, and several people ask at
once. Only memory of this process is used, and nothing is saved longer than KEEP_SECONDS.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout

from .errors import EmbeddingUnavailable
from .vectors import Vector, Vectors

KEEP_SECONDS = 300.0
MAX_KEPT = 500
# How long the first of several requests waits for others; a provider takes 50 ms and more.
JOIN_SECONDS = 0.005
WAIT_SECONDS = 70.0

Embed = Callable[[list[str]], Vectors]


class QueryVectors:
    """The newest vectors of questions by model, and the questions that are being embedded."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, str], tuple[float, Vector]] = OrderedDict()
        self._waiting: dict[str, dict[str, Future[Vector]]] = {}
        self._in_flight: dict[tuple[str, str], Future[Vector]] = {}

    def embed(self, texts: Sequence[str], model: str, embed: Embed, *, joins: bool) -> Vectors:
        """Return a vector for each text; those that aren't known are embedded in one request.

        With `joins`, a request waits a moment for others.
        """
        vectors, futures, is_first = self._claim(texts, model)
        if is_first:
            if joins:
                time.sleep(JOIN_SECONDS)
            self._embed_waiting(model, embed)
        try:
            for text, future in futures.items():
                vectors[text] = future.result(timeout=WAIT_SECONDS)
        except FutureTimeout:
            raise EmbeddingUnavailable("The embedding model didn't respond in time.") from None
        return [vectors[text] for text in texts]

    def forget(self) -> None:
        with self._lock:
            self._kept.clear()

    def _claim(
        self, texts: Sequence[str], model: str
    ) -> tuple[dict[str, Vector], dict[str, Future[Vector]], bool]:
        """Return saved vectors, those to wait for, and whether this call makes the request."""
        now = time.monotonic()
        saved: dict[str, Vector] = {}
        futures: dict[str, Future[Vector]] = {}
        with self._lock:
            for text in dict.fromkeys(texts):
                kept = self._kept.get((model, text))
                if kept is not None and kept[0] > now:
                    self._kept.move_to_end((model, text))
                    saved[text] = kept[1]
            is_first = False
            for text in dict.fromkeys(texts):
                if text in saved:
                    continue
                pending = self._in_flight.get((model, text))
                if pending is None:
                    pending = self._in_flight[model, text] = Future()
                    is_first |= not self._waiting.get(model)
                    self._waiting.setdefault(model, {})[text] = pending
                futures[text] = pending
        return saved, futures, is_first

    def _embed_waiting(self, model: str, embed: Embed) -> None:
        with self._lock:
            waiting = self._waiting.pop(model, {})
        texts = list(waiting)
        try:
            vectors = embed(texts)
        except BaseException as error:
            self._finish(model, texts)
            for future in waiting.values():
                future.set_exception(error)
            if not isinstance(error, Exception):
                raise
            return
        self._finish(model, texts, vectors)
        for future, vector in zip(waiting.values(), vectors, strict=True):
            future.set_result(vector)

    def _finish(self, model: str, texts: list[str], vectors: Vectors | None = None) -> None:
        now = time.monotonic()
        with self._lock:
            for key in [key for key, (expires_at, _) in self._kept.items() if expires_at < now]:
                del self._kept[key]
            for index, text in enumerate(texts):
                self._in_flight.pop((model, text), None)
                if vectors is not None:
                    self._kept[model, text] = now + KEEP_SECONDS, vectors[index]
            while len(self._kept) > MAX_KEPT:
                self._kept.popitem(last=False)


QUERIES = QueryVectors()
