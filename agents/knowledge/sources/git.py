"""A Git repository: its branch is fetched without history into a folder that is then deleted.

Git runs confined: it can write only that folder, and reaches only the addresses that the egress
policy allowed, over HTTPS and without redirects. Nothing of the repository is run or checked
out: files are read as blobs.
"""

import asyncio
import logging
import os
import re
import shutil
import tempfile
import time
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache
from ipaddress import ip_address
from pathlib import Path

import httpx2
from django.conf import settings

from agents.db.sanitize import visible_name
from agents.engine.errors import ToolError
from agents.engine.privacy import mask_secrets
from agents.engine.sentences import Sentence as _
from agents.models import DocumentSource
from agents.tools import sandbox
from agents.tools.addresses import AllowList
from agents.tools.egress import Egress, resolve_in_own_loop, validate_url

from .place import FileUnreadable, Heartbeat, Place, PlaceFile, PlaceUnreadable

logger = logging.getLogger(__name__)

FETCH_SECONDS = 300.0
READ_SECONDS = 30.0
LOOKUP_SECONDS = 10.0
MAX_PACK_BYTES = 1_000_000_000
MIN_VERSION = (2, 37)  # the first that connects to given addresses
REF = "refs/heads/source"
FILE_MODES = {"100644", "100755"}
LFS_POINTER = b"version https://git-lfs.github.com/spec/"
# For private certificate authorities, as other programs here.
CERTIFICATES = ("SSL_CERT_FILE", "CURL_CA_BUNDLE")
GIT = sandbox.Worker(
    name="git",
    has_network=True,
    # Without the settings of name servers: it only knows the addresses it is given.
    readable=("/etc/ssl", "/etc/pki", "/etc/ca-certificates"),
    memory_bytes=2_000_000_000,
    file_bytes=MAX_PACK_BYTES,
    open_files=256,
    output_bytes=100_000,
    nice=10,
)
# Reads what was fetched. Files that are larger than a document aren't read.
READER = replace(GIT, has_network=False, output_bytes=300_000_000)
# A few nested trees can list millions of files.
LISTER = replace(READER, output_bytes=40_000_000)
FOLDER_PREFIX = "ashiato-source-"
ABANDONED_SECONDS = 3_600.0  # of folders that a killed process has left
CONFIGURATION = {
    "protocol.allow": "never",
    "protocol.https.allow": "always",
    "http.followRedirects": "false",
    "http.proxy": "",
    "http.lowSpeedLimit": "1000",
    "http.lowSpeedTime": "30",
    "transfer.bundleURI": "false",
    "credential.helper": "",
    "core.hooksPath": "/dev/null",
    "core.alternateRefsCommand": "true",
    "fetch.recurseSubmodules": "false",
    "fetch.unpackLimit": "1",
    "gc.auto": "0",
    "maintenance.auto": "false",
}
TOO_OLD = _("Sources need Git 2.37 or newer on the server.")
NOT_HTTPS = _("The URL must start with https://.")
NO_BRANCH = _("The repository has no branch “%(name)s”.")
IS_EMPTY = _("The repository is empty.")
NO_FOLDER = _("The branch has no folder “%(name)s”.")
TOO_LARGE = _("The branch is larger than %(size)s MB.", size=MAX_PACK_BYTES // 1_000_000)
TOO_SLOW = _("%(host)s took longer than %(seconds)s s.")
TOO_LONG = _("The branch has too many files.")
IN_LFS = _("It is in Git LFS, which isn't read.")
# What Git and curl say, and what that means.
REASONS = {
    r"Authentication failed|could not read Username|error: 40[13]|returned error: 404"
    r"|repository '.*' not found": _(
        "%(host)s says that there is no such repository, or that the token can't read it."
    ),
    r"redirect|error: 30\d": _("%(host)s redirects to another address. Enter that URL."),
    r"certificate|SSL|TLS|gnutls": _("The TLS connection to %(host)s failed."),
    r"Could not resolve|Failed to connect|Connection refused|timed out|Couldn't connect": _(
        "Couldn't connect to %(host)s."
    ),
}
UNKNOWN = _("Git couldn't fetch the branch from %(host)s. Look at the server's log.")


@contextmanager
def open_repository(source: DocumentSource, heartbeat: Heartbeat) -> Iterator[Place]:
    program = find_program()
    if not program:
        raise PlaceUnreadable(TOO_OLD)
    try:
        url = validate_url(str(source.place.get("url", "")))
        if url.scheme != "https":
            raise PlaceUnreadable(NOT_HTTPS)
        pin = asyncio.run(_pin(url))
    except ToolError as error:
        raise PlaceUnreadable(str(error)) from error
    except (OSError, TimeoutError) as error:
        raise PlaceUnreadable(_("Couldn't connect to %(host)s.", host=url.host)) from error
    for left in Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}*"):
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > ABANDONED_SECONDS:
                shutil.rmtree(left)
    with tempfile.TemporaryDirectory(prefix=FOLDER_PREFIX) as folder:
        token = str(source.secret.reveal() or "")
        repository = _Repository(program, folder, url, heartbeat, token, source.place)
        repository.connect(pin)
        yield repository


@cache
def find_program() -> str:
    """Return where Git is; empty if it isn't there or too old."""
    program = shutil.which("git")
    if not program:
        return ""
    grant = sandbox.Grant(seconds=READ_SECONDS)
    said = sandbox.run(READER, {}, grant, program=[program, "--version"]).output.decode()
    numbers = re.findall(r"\d+", said)[:2]
    is_new = len(numbers) == 2 and (int(numbers[0]), int(numbers[1])) >= MIN_VERSION
    return program if is_new else ""


async def _pin(url: httpx2.URL) -> str:
    """Return the host with the addresses that Git may connect to, as curl writes it."""
    host = url.raw_host.decode()
    port = url.port or 443
    allow = AllowList.read(tuple(settings.EGRESS_ALLOW))
    policy = Egress(allow=allow, resolve=resolve_in_own_loop)
    async with asyncio.timeout(LOOKUP_SECONDS):
        addresses = await policy.addresses(host, port)
    hosts = [f"[{text}]" if ip_address(text).version == 6 else text for text in addresses]
    name = f"[{host}]" if ":" in host else host
    return f"{name}:{port}:{','.join(hosts)}"


class _Repository:
    def __init__(
        self,
        program: str,
        folder: str,
        url: httpx2.URL,
        heartbeat: Heartbeat,
        token: str,
        place: Mapping[str, str],
    ) -> None:
        self._program = program
        self._folder = folder
        self._url = url
        self._heartbeat = heartbeat
        self._token = token
        self._branch = place.get("branch", "")
        self._subfolder = place.get("folder", "").strip("/")
        self._environment: dict[str, str] = {}
        self._certificates = [os.environ[name] for name in CERTIFICATES if os.environ.get(name)]
        self.version = ""

    def connect(self, pin: str) -> None:
        """Look which commit the branch has."""
        values = {**CONFIGURATION, "http.curloptResolve": pin}
        if self._token:
            # A user name is required, and any will do; some hosts want their own.
            user = self._token if ":" in self._token else f"x-access-token:{self._token}"
            header = f"Authorization: Basic {b64encode(user.encode()).decode()}"
            values["http.extraHeader"] = header
        if self._certificates:
            values["http.sslCAInfo"] = self._certificates[0]
        self._environment = {
            "HOME": self._folder,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ALLOW_PROTOCOL": "https",
            "GIT_CONFIG_COUNT": str(len(values)),
        }
        for number, (key, value) in enumerate(values.items()):
            self._environment[f"GIT_CONFIG_KEY_{number}"] = key
            self._environment[f"GIT_CONFIG_VALUE_{number}"] = value
        self._git(READER, "init", "--quiet", "--bare", "--template=", str(self._path))
        listed = self._git(GIT, "ls-remote", "--quiet", str(self._url), self._remote_ref)
        # Other refs can end like this one.
        for line in listed.decode(errors="replace").splitlines():
            commit, _tab, ref = line.partition("\t")
            if ref == self._remote_ref:
                self.version = commit
        if not self.version:
            name = self._branch
            raise PlaceUnreadable(NO_BRANCH.fill(name=name) if name else IS_EMPTY)

    @property
    def _path(self) -> Path:
        return Path(self._folder, "repository")

    @property
    def _remote_ref(self) -> str:
        return f"refs/heads/{self._branch}" if self._branch else "HEAD"

    def files(self) -> Iterator[PlaceFile]:
        options = ("--quiet", "--depth=1", "--no-tags", "--no-write-fetch-head")
        refs = f"+{self._remote_ref}:{REF}"
        self._git(GIT, "fetch", *options, "--no-recurse-submodules", str(self._url), refs)
        tree = f"{REF}:{self._subfolder}" if self._subfolder else REF
        listed = self._git(LISTER, "ls-tree", "-r", "-z", "--long", "--full-tree", tree)
        for line in filter(None, listed.split(b"\0")):
            facts, _tab, raw_name = line.partition(b"\t")
            mode, _kind, blob, size = facts.decode().split()
            if mode in FILE_MODES:  # and no links or submodules
                name = os.fsdecode(raw_name)
                yield PlaceFile(key=name, version=blob, name=name, size=int(size))

    def read(self, file: PlaceFile) -> Iterator[bytes]:
        content = self._git(READER, "cat-file", "blob", file.version)
        if content.startswith(LFS_POINTER):
            raise FileUnreadable(IN_LFS)
        yield content

    def _git(self, worker: sandbox.Worker, *arguments: str) -> bytes:
        """Run Git confined and return its output; raise PlaceUnreadable."""
        grant = sandbox.Grant(
            seconds=FETCH_SECONDS if worker.has_network else READ_SECONDS,
            readable=self._certificates,
            writable=[self._folder],
            environment=self._environment,
        )
        command = [self._program, f"--git-dir={self._path}", *arguments]
        try:
            ended = sandbox.run(worker, {}, grant, program=command, report=self._heartbeat)
        except TimeoutError as error:
            sentence = TOO_SLOW.fill(host=self._url.host, seconds=f"{grant.seconds:g}")
            raise PlaceUnreadable(sentence) from error
        except sandbox.WorkerFailed as error:
            raise PlaceUnreadable(TOO_LONG) from error
        if ended.code:
            raise PlaceUnreadable(self._explain(arguments[0], ended.complaint))
        return ended.output

    def _explain(self, command: str, complaint: str) -> str:
        if command == "ls-tree":
            return NO_FOLDER.fill(name=self._subfolder)
        if "invalid index-pack output" in complaint:  # it can't write more
            return TOO_LARGE
        masked = mask_secrets(complaint[-2_000:], *filter(None, [self._token]))
        logger.warning("git %s failed: %s", command, visible_name(masked))
        for pattern, sentence in REASONS.items():
            if re.search(pattern, complaint, re.IGNORECASE):
                return sentence.fill(host=self._url.host)
        return UNKNOWN.fill(host=self._url.host)
