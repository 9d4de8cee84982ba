"""Embedding indexes: which one is searched, and filling those that lack vectors.

A new model gets a new index. It is filled in the background while the old one answers, and then
replaces it. Filling can stop at any time: it continues with the passages that have no vector.
"""

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import chain

from django.db import connection, transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from agents.db import claims
from agents.db.installation import default_models
from agents.db.periodic import periodic, stopping
from agents.models import Chunk, ChunkVector, EmbeddingIndex

from .. import embeddings
from . import pgvector
from .windows import VERSION, texts_to_embed

logger = logging.getLogger(__name__)

FILL_BATCH = 24  # passages per transaction
REMOTE_BATCH = 120  # passages per call of a provider's client

Progress = Callable[[int, int], None]
ChunkTexts = tuple[str, str, str]  # title, heading, text
Blobs = list[list[bytes]]  # for each passage: of the whole, and of its windows


def active() -> EmbeddingIndex | None:
    """Return the index that is searched."""
    return EmbeddingIndex.objects.filter(status=EmbeddingIndex.Status.ACTIVE).first()


def writable() -> EmbeddingIndex | None:
    """Return the index that new passages are embedded for, or None if it is switched off."""
    if embeddings.configured_model() == embeddings.OFF:
        return None
    return active() or ensure()


def ensure() -> EmbeddingIndex | None:
    """Return the index of the configured model, new if it has none.

    The very first is active at once; full text finds what it doesn't have yet.
    """
    model = embeddings.configured_model()
    if model == embeddings.OFF:
        return None
    indexes = EmbeddingIndex.objects.filter(model=model, version=VERSION)
    if newest := indexes.order_by("pk").last():
        return newest
    dimension = embeddings.dimension(model)
    with transaction.atomic():
        is_first = not EmbeddingIndex.objects.exists()
        return EmbeddingIndex.objects.create(
            model=model,
            dimension=dimension,
            version=VERSION,
            status=EmbeddingIndex.Status.ACTIVE if is_first else EmbeddingIndex.Status.BUILDING,
            activated_at=timezone.now() if is_first else None,
        )


def embed_texts(
    index: EmbeddingIndex, passages: Sequence[ChunkTexts], progress: Progress | None = None
) -> Blobs:
    """Return the vectors of passages and their windows; raises EmbeddingUnavailable."""
    blobs: Blobs = []
    # A provider takes as long for many texts as for a few; its client keeps to its limits.
    step = FILL_BATCH if index.model in {embeddings.LOCAL, embeddings.DEMO} else REMOTE_BATCH
    for start in range(0, len(passages), step):
        texts = [texts_to_embed(*passage) for passage in passages[start : start + step]]
        vectors = embeddings.embed(list(chain(*texts)), model=index.model)
        for dimension in {len(vector) for vector in vectors}:
            check_dimension(index, dimension)
        halves = map(embeddings.to_half_floats, vectors)
        blobs += [[next(halves) for _ in own] for own in texts]
        if progress:
            progress(len(blobs), len(passages))
    return blobs


def check_dimension(index: EmbeddingIndex, dimension: int) -> None:
    """Start a new index if the model's vectors have another length than they had.

    A provider can replace a model under its name. Raises EmbeddingUnavailable: until the new
    index is complete, words answer.
    """
    if dimension == index.dimension:
        return
    EmbeddingIndex.objects.get_or_create(
        model=index.model, version=VERSION, dimension=dimension, status=index.Status.BUILDING
    )
    raise embeddings.EmbeddingUnavailable(
        f"{default_models.label_of(index.model)} now returns {dimension} numbers per text "
        f"instead of {index.dimension}. All documents are being indexed again."
    )


def save(index: EmbeddingIndex, chunks: Iterable[int], blobs: Blobs) -> None:
    """Save the vectors of these passages; those that are there already stay."""
    ChunkVector.objects.bulk_create(
        [
            ChunkVector(index=index, chunk_id=chunk, window=window, vector=blob)
            for chunk, own in zip(chunks, blobs, strict=True)
            for window, blob in enumerate(own)
        ],
        batch_size=500,
        ignore_conflicts=True,
    )
    pgvector.fill(index)


def missing(index: EmbeddingIndex) -> QuerySet[Chunk]:
    """Return passages without a vector in this index."""
    own = ChunkVector.objects.filter(index=index, chunk=OuterRef("pk"), window=0)
    return Chunk.objects.filter(~Exists(own))


def rebuild() -> None:
    """Start a new index of the configured model; the old one answers until it is complete."""
    EmbeddingIndex.objects.filter(status=EmbeddingIndex.Status.BUILDING).delete()
    model = embeddings.configured_model()
    EmbeddingIndex.objects.create(
        model=model, dimension=embeddings.dimension(model), version=VERSION
    )


def keep_up(is_over: Callable[[], bool] = lambda: False) -> bool:
    """Fill the index of the configured model and switch to it; return whether all is done.

    Only one process does this at a time. It stops early if `is_over` says so.
    """
    index = ensure()
    if index is None or not claims.take(index):
        return index is None
    try:
        pgvector.prepare()
        if current := active():
            pgvector.fill(current, is_over)
        _fill(index, is_over)
    except embeddings.EmbeddingUnavailable as error:
        _update(index, problem=str(error))
        logger.warning("Can't embed documents: %s", error)
        return False
    except claims.ClaimLost:
        return False
    finally:
        claims.release(index)
    if is_over():
        return False
    if index.status != EmbeddingIndex.Status.ACTIVE:
        activate(index)
    # Others are deleted in small steps that let others write in between.
    for unused in EmbeddingIndex.objects.exclude(pk=index.pk):
        vectors = ChunkVector.objects.filter(index=unused).order_by("pk")
        while ids := list(vectors.values_list("pk", flat=True)[:2_000]):
            ChunkVector.objects.filter(pk__in=ids).delete()
            time.sleep(0.01)
        unused.delete()
    return True


@periodic("embedding index", every=20, delay=3)
def keep_index_current() -> None:
    """Embed passages that have no vector yet, and rebuild the index for a new model."""
    try:
        keep_up(stopping.is_set)
    except RuntimeError as error:
        # While the process exits, no thread can start the model.
        if "shutdown" not in str(error):
            raise


def activate(index: EmbeddingIndex) -> None:
    """Search this index from now on."""
    with transaction.atomic():
        EmbeddingIndex.objects.filter(status=EmbeddingIndex.Status.ACTIVE).update(
            status=EmbeddingIndex.Status.RETIRED
        )
        _update(
            index, status=EmbeddingIndex.Status.ACTIVE, activated_at=timezone.now(), problem=""
        )


def _fill(index: EmbeddingIndex, is_over: Callable[[], bool]) -> None:
    """Embed the passages that have no vector, a few per transaction."""
    waiting = missing(index).count()
    if not waiting:
        return
    total = Chunk.objects.count()
    _update(index, total=total, done=total - waiting)
    last = 0
    chunks = missing(index).select_related("document").order_by("pk")
    while not is_over() and (batch := list(chunks.filter(pk__gt=last)[:FILL_BATCH])):
        last = batch[-1].pk
        texts = [(chunk.document.title, chunk.heading, chunk.text) for chunk in batch]
        blobs = dict(zip((chunk.pk for chunk in batch), embed_texts(index, texts), strict=True))
        with transaction.atomic():
            # Lock the passages that weren't replaced meanwhile.
            rows = Chunk.objects.filter(pk__in=blobs)
            if connection.features.has_select_for_update:
                rows = rows.select_for_update(of=("self",))
            present = set(rows.values_list("pk", flat=True))
            blobs = {pk: own for pk, own in blobs.items() if pk in present}
            save(index, blobs, list(blobs.values()))
        done = min(index.done + len(batch), index.total)
        claims.renew(index, done=done, problem="")


def _update(index: EmbeddingIndex, **fields: object) -> None:
    for name, value in fields.items():
        setattr(index, name, value)
    index.save(update_fields=list(fields))
