"""Stored files in an S3-compatible bucket: with deadlines, in parts, and errors in words.

Only loaded if a bucket is configured, because boto3 takes a while to import.
"""

import io
import logging
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from django.core.files.base import File
from storages.backends.s3 import S3Storage

from .errors import StorageUnavailable

CONNECT_SECONDS = 5
READ_SECONDS = 20
ATTEMPTS = 2
MISSING = {"404", "NoSuchKey", "NotFound"}

logger = logging.getLogger(__name__)


class BucketStorage(S3Storage):  # type: ignore[misc]  # has no types
    """A bucket that answers within a deadline, or raises StorageUnavailable."""

    def __init__(self, **options: Any) -> None:
        config = Config(
            s3={"addressing_style": options.get("addressing_style")},
            signature_version=options.get("signature_version"),
            connect_timeout=CONNECT_SECONDS,
            read_timeout=READ_SECONDS,
            retries={"total_max_attempts": ATTEMPTS, "mode": "standard"},
        )
        super().__init__(client_config=config, **options)

    def _open(self, name: str, mode: str = "rb") -> File:
        with _errors():
            key = self._normalize_name(name)
            s3_object = self.bucket.Object(key)
            return File(
                io.BufferedReader(BucketReader(s3_object, s3_object.content_length)), name
            )

    def _save(self, name: str, content: Any) -> str:
        with _errors():
            return str(super()._save(name, content))

    def exists(self, name: str) -> bool:
        with _errors():
            return bool(super().exists(name))

    def delete(self, name: str) -> None:
        with _errors():
            super().delete(name)

    def size(self, name: str) -> int:
        with _errors():
            return int(super().size(name))

    def listdir(self, name: str) -> tuple[list[str], list[str]]:
        with _errors():
            folders, files = super().listdir(name)
            return folders, files

    def get_modified_time(self, name: str) -> Any:
        with _errors():
            return super().get_modified_time(name)


class BucketReader(io.RawIOBase):
    """Reads an object from where it is asked to: a video is played without loading it all."""

    def __init__(self, s3_object: Any, size: int) -> None:
        self._object = s3_object
        self._size = size
        self._at = 0
        self._body: Any = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        if start + offset != self._at:
            self._drop_body()
        self._at = max(0, start + offset)
        return self._at

    def readinto(self, buffer: Any) -> int:
        if self._at >= self._size:
            return 0
        with _errors():
            if self._body is None:
                self._body = self._object.get(Range=f"bytes={self._at}-")["Body"]
            piece: bytes = self._body.read(len(buffer))
        buffer[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)

    def close(self) -> None:
        self._drop_body()
        super().close()

    def _drop_body(self) -> None:
        if self._body is not None:
            with closing(self._body):
                self._body = None


@contextmanager
def _errors() -> Iterator[None]:
    """Turn the provider's errors into those of a file system."""
    try:
        yield
    except ClientError as error:
        code = str(error.response.get("Error", {}).get("Code", ""))
        if code in MISSING:
            raise FileNotFoundError(str(error)) from error
        logger.error("The file storage refused a request: %s", error)
        raise StorageUnavailable(str(error)) from error
    except (BotoCoreError, OSError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        logger.error("The file storage can't be reached: %s", error)
        raise StorageUnavailable(str(error)) from error
