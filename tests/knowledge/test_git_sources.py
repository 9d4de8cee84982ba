"""A collection follows a branch of a real Git server, over TLS."""

import os
import ssl
import subprocess
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from agents.knowledge import sources
from agents.knowledge.sources import git
from agents.models import Collection, DocumentSource

pytestmark = pytest.mark.django_db

TOKEN = "hunter2-of-the-team"
AUTHORS = {
    f"GIT_{role}_{part}": value
    for role in ("AUTHOR", "COMMITTER")
    for part, value in (("NAME", "ann"), ("EMAIL", "ann@example.com"))
}
ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    **AUTHORS,
}


def run(folder: Path, *arguments: str) -> None:
    command = ["git", "-C", str(folder), *arguments]
    subprocess.run(command, env=ENVIRONMENT, check=True, capture_output=True)


class Server:
    """Serves a repository, or answers with what a test says."""

    def __init__(self, folder: Path) -> None:
        self.work = folder / "work"
        self.port = 0
        self.redirect = ""
        self.needs_token = False
        self.requests: list[str] = []
        self.work.mkdir()
        run(self.work, "init", "--quiet", "--initial-branch=main")

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}/{self.work.name}/.git"

    def commit(self, **files: str | None) -> None:
        for name, text in files.items():
            path = self.work / name.replace("__", "/").replace("_md", ".md")
            path.parent.mkdir(exist_ok=True)
            if text is None:
                path.unlink()
            else:
                path.write_text(text)
        run(self.work, "add", "--all")
        run(self.work, "commit", "--quiet", "--message=more")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    names = [x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))]
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path_factory.mktemp("tls") / "server.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    file.write_bytes(private + signed.public_bytes(serialization.Encoding.PEM))
    return file


@pytest.fixture
def server(
    tmp_path: Path, certificate: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Server]:
    git_server = Server(tmp_path)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            git_server.requests.append(self.path)
            if git_server.redirect:
                self.send_response(302)
                self.send_header("Location", git_server.redirect)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            if git_server.needs_token and "Authorization" not in self.headers:
                self.send_response(401)
                self.send_header("WWW-Authenticate", "Basic")
                self.end_headers()
                return
            path, _mark, query = self.path.partition("?")
            length = int(self.headers.get("Content-Length") or 0)
            variables = {
                "GIT_PROJECT_ROOT": str(tmp_path),
                "GIT_HTTP_EXPORT_ALL": "1",
                "REQUEST_METHOD": self.command,
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "CONTENT_LENGTH": str(length),
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            }
            answer = subprocess.run(
                ["git", "http-backend"],
                env=ENVIRONMENT | variables,
                input=self.rfile.read(length),
                capture_output=True,
                check=True,
            ).stdout
            head, _blank, body = answer.partition(b"\r\n\r\n")
            fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
            self.send_response(int(fields.pop("Status", "200 OK").split()[0]))
            for field in fields.items():
                self.send_header(*field)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

        def log_message(self, *arguments: Any) -> None:
            pass

    served = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    served.socket = context.wrap_socket(served.socket, server_side=True)
    git_server.port = served.server_port
    threading.Thread(target=served.serve_forever, daemon=True).start()
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    settings.EGRESS_ALLOW = [f"localhost:{git_server.port}"]
    settings.STORAGES = settings.STORAGES | {
        "files": {
            "BACKEND": "django.core.files.storage.FileSystemStorage",
            "OPTIONS": {"location": tmp_path / "files"},
        }
    }
    git_server.commit(README_md="The heron.", docs__bittern_md="The bittern.")
    yield git_server
    served.shutdown()
    served.server_close()


@pytest.fixture
def source(server: Server) -> DocumentSource:
    return DocumentSource.objects.create(
        collection=Collection.objects.create(name="Birds"),
        kind="git",
        name="Docs",
        place={"url": server.url},
    )


def check(source: DocumentSource, **place: str) -> str:
    source.place |= place
    source.save(update_fields=["place"])
    sources.check_soon(source, **({"place_version": ""} if place else {}))
    assert sources.check_due() == 1
    source.refresh_from_db()
    return source.problem


def names(source: DocumentSource) -> list[str]:
    return sorted(source.documents.values_list("source", flat=True))


def test_a_branch_is_followed_without_links_submodules_and_lfs(
    server: Server, source: DocumentSource
) -> None:
    (server.work / "link.md").symlink_to("/etc/passwd")
    head = "160000,0123456789abcdef0123456789abcdef01234567,module.md"
    run(server.work, "update-index", "--add", "--cacheinfo", head)
    server.commit(_gitattributes="*.md filter=evil")
    assert check(source) == ""
    assert names(source) == ["Docs/README.md", "Docs/docs/bittern.md"]

    requests = len(server.requests)
    assert check(source) == ""
    assert len(server.requests) - requests <= 2  # the branch is where it was

    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
    server.commit(README_md=None, docs__bittern_md="The bittern booms.", large_md=pointer)
    assert check(source) == git_problem("large.md", git.IN_LFS)
    assert names(source) == ["Docs/docs/bittern.md"]
    [document] = source.documents.all()
    assert document.file is not None
    with document.file.open() as file:
        assert file.read() == b"The bittern booms."


def git_problem(name: str, reason: str) -> str:
    return sources.checking.FAILED_FILE.fill(count=1, name=name, reason=reason)


def test_a_folder_of_a_branch_is_followed(server: Server, source: DocumentSource) -> None:
    run(server.work, "switch", "--quiet", "--create=next")
    server.commit(docs__heron_md="The heron.")
    assert check(source, branch="next", folder="docs") == ""
    assert names(source) == ["Docs/bittern.md", "Docs/heron.md"]
    assert check(source, folder="papers") == git.NO_FOLDER.fill(name="papers")
    assert check(source, folder="../docs") == git.NO_FOLDER.fill(name="../docs")
    assert check(source, branch="gone") == git.NO_BRANCH.fill(name="gone")
    assert len(names(source)) == 2


def test_a_private_repository_needs_a_token_which_is_told_to_nobody(
    server: Server, source: DocumentSource, caplog: pytest.LogCaptureFixture
) -> None:
    server.needs_token = True
    assert "token can't read it" in check(source)
    source.secret = TOKEN
    source.save()
    assert check(source) == ""
    server.redirect = "https://169.254.169.254/latest/meta-data/"
    problem = check(source)
    assert "redirects to another address" in problem
    assert TOKEN not in problem + caplog.text


def test_private_addresses_other_protocols_and_names_that_move_are_refused(
    server: Server, source: DocumentSource, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.EGRESS_ALLOW = []
    assert "is blocked because its address" in check(source)
    requests = len(server.requests)
    settings.EGRESS_ALLOW = [f"localhost:{server.port}"]

    async def pin(url: Any) -> str:
        return f"localhost:{server.port}:127.0.0.9"

    for url in ("http://localhost/a.git", "file:///etc", "ext::sh -c id", "/etc", "git@a:b"):
        assert check(source, url=url)
    assert "user name or a password" in check(source, url="https://ann:pw@localhost/a.git")
    # The name has another address by now: Git uses the one that was checked.
    monkeypatch.setattr(git, "_pin", pin)
    assert "Couldn't connect" in check(source, url=server.url)
    assert len(server.requests) == requests


def test_a_branch_that_is_too_large_is_not_kept(
    server: Server, source: DocumentSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    monkeypatch.setattr(git, "GIT", replace(git.GIT, file_bytes=20_000))
    server.commit(noise_md=os.urandom(60_000).hex())
    assert check(source) == git.TOO_LARGE
    assert names(source) == []
