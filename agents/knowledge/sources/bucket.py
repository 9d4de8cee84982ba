"""An S3-compatible bucket. Its requests are boto3's, sent through the egress function.

Without the extra `s3` there is no boto3, so it is imported when a bucket is opened.
"""

import asyncio
import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings

from agents.db.installation import configured
from agents.engine.errors import ToolError
from agents.engine.sentences import Sentence as _
from agents.models import DocumentSource
from agents.tools.addresses import AllowList
from agents.tools.egress import Egress, fetch, resolve_in_own_loop

from .place import FileUnreadable, Heartbeat, Place, PlaceFile, PlaceUnreadable

TIMEOUT_SECONDS = 60.0
ATTEMPTS = 2
MAX_PAGES = 1_000  # of up to 1,000 files
MAX_LIST_BYTES = 8_000_000
MAX_TAGS = 100_000  # five times what a page of 1,000 files has
DEFAULT_REGION = "us-east-1"
NO_BUCKET = _("There is no bucket “%(name)s”.")
NO_ACCESS = _("The access key can't read the bucket “%(name)s”.")
REFUSED = _("The server of the bucket returned the error %(code)s.")
UNREACHABLE = _("Couldn't read the bucket “%(name)s”.")
UNREADABLE = _("The server of the bucket sent a response that can't be read.")
ENDLESS = _("The bucket lists its files without an end.")
CHANGED = _("The file changed while it was read.")
ACCESS_CODES = {
    "AccessDenied",
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "AllAccessDisabled",
    "403",
}
GONE_CODES = {"NoSuchKey", "PreconditionFailed", "412", "404"}


@contextmanager
def open_bucket(source: DocumentSource, heartbeat: Heartbeat) -> Iterator[Place]:
    yield _Bucket(source.place, str(source.secret.reveal() or ""), heartbeat)


class _Bucket:
    version = ""

    def __init__(self, place: dict[str, str], secret: str, heartbeat: Heartbeat) -> None:
        self._name = place.get("bucket", "")
        prefix = place.get("key_prefix", "").strip("/")
        self._prefix = f"{prefix}/" if prefix else ""
        self._heartbeat = heartbeat
        with self._errors():
            self._client = _create_client(place, secret)

    def files(self) -> Iterator[PlaceFile]:
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=self._name, Prefix=self._prefix
        )
        with self._errors():
            for number, page in enumerate(pages, start=1):
                self._heartbeat()
                if number > MAX_PAGES:
                    raise PlaceUnreadable(ENDLESS)
                # A proxy's page or half a list must not look like a bucket with fewer files.
                is_whole = page["IsTruncated"] is False or page.get("NextContinuationToken")
                if page["Name"] != self._name or not is_whole:
                    raise PlaceUnreadable(UNREADABLE)
                for row in page.get("Contents", ()):
                    key = row["Key"]
                    if key.startswith(self._prefix) and not key.endswith("/"):
                        name = key.removeprefix(self._prefix)
                        yield PlaceFile(
                            key=key, version=row["ETag"], name=name, size=row["Size"]
                        )

    def read(self, file: PlaceFile) -> Iterator[bytes]:
        with self._errors():
            answer = self._client.get_object(
                Bucket=self._name, Key=file.key, IfMatch=file.version
            )
            yield answer["Body"].read()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn the provider's errors into sentences."""
        from botocore.exceptions import BotoCoreError, ClientError
        from botocore.parsers import ResponseParserError

        try:
            yield
        except ToolError as error:
            raise PlaceUnreadable(str(error)) from error
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code", ""))[:60]
            if error.operation_name == "GetObject" and code in GONE_CODES:
                raise FileUnreadable(CHANGED) from error
            if code in ACCESS_CODES:
                raise PlaceUnreadable(NO_ACCESS.fill(name=self._name)) from error
            if code == "NoSuchBucket":
                raise PlaceUnreadable(NO_BUCKET.fill(name=self._name)) from error
            raise PlaceUnreadable(REFUSED.fill(code=code)) from error
        except (BotoCoreError, ResponseParserError, KeyError, ValueError) as error:
            raise PlaceUnreadable(UNREACHABLE.fill(name=self._name)) from error


def _create_client(place: dict[str, str], secret: str) -> Any:
    """Return a client of boto3 that only sends what egress allows, with the source's key."""
    import boto3
    from botocore import UNSIGNED
    from botocore.config import Config

    endpoint = place.get("endpoint")
    key_id = place.get("key_id")
    config = Config(
        # Without a key the bucket is public: the server's own key is for its own files.
        signature_version=None if key_id else UNSIGNED,
        s3={"addressing_style": "path" if endpoint else "auto"},
        retries={"total_max_attempts": ATTEMPTS, "mode": "standard"},
        response_checksum_validation="when_required",
        ignore_configured_endpoint_urls=True,
    )
    client = boto3.client(
        "s3",
        endpoint_url=endpoint or None,
        region_name=place.get("region") or DEFAULT_REGION,
        aws_access_key_id=key_id or None,
        aws_secret_access_key=secret if key_id else None,
        config=config,
    )
    client.meta.events.register("before-send.s3", _send)
    return client


def _send(request: Any, **_event: Any) -> Any:
    """Send a request of boto3 through egress, and return the response as boto3 expects it."""
    from botocore.awsrequest import AWSResponse

    is_list = "list-type=2" in request.url
    most_bytes = MAX_LIST_BYTES if is_list else configured.DOCUMENT_MB.value * 1_000_000 + 1
    policy = Egress(
        allow=AllowList.read(tuple(settings.EGRESS_ALLOW)),
        timeout=TIMEOUT_SECONDS,
        most_bytes=most_bytes,
        resolve=resolve_in_own_loop,
    )
    headers = {
        name: value.decode() if isinstance(value, bytes) else str(value)
        for name, value in request.headers.items()
    }
    response = asyncio.run(fetch("GET", request.url, policy=policy, headers=headers))
    content = response.content
    if is_list and response.status in range(201, 300):
        raise PlaceUnreadable(UNREADABLE)
    if is_list or response.status >= 300:
        # boto3 parses it here: no entities, and no more elements than a list has.
        is_odd = b"<!" in content or b"\0" in content or content.count(b"<") > MAX_TAGS
        if is_odd or len(content) > MAX_LIST_BYTES:
            raise PlaceUnreadable(UNREADABLE)
    headers = {**response.headers, "content-length": str(len(content))}
    return AWSResponse(request.url, response.status, headers, _Content(content))


class _Content(io.BytesIO):
    """What boto3 needs of a response's content."""

    def stream(self, *_size: Any, **_options: Any) -> Iterator[bytes]:
        yield self.read()
