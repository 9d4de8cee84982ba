"""The product behind Debian's nginx, as deploy/ configures it."""

import re
import shutil
import socket
import urllib.request
from pathlib import Path

import pytest
from websockets.sync.client import connect

from tests.bench import bodies
from tests.bench.processes import ROOT, child, free_port, wait_for_port
from tests.bench.product import product

NGINX = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin")
DEPLOY = ROOT / "deploy"


def server_block(name):
    return (DEPLOY / name).read_text().partition("\nmap ")[2]


def test_both_configurations_of_nginx_serve_alike():
    assert server_block("nginx.conf") == server_block("nginx-systemd.conf")
    assert "client_max_body_size 0;" in server_block("nginx.conf")


class Site:
    """A product and the proxy in front of it."""

    def __init__(self, server, port):
        self.server, self.port = server, port
        self.cookie = server.people[0]["cookie"]
        self.chat = server.people[0]["chats"][0]
        self.origin = f"http://127.0.0.1:{port}"

    def request(self, path, data=None):
        csrf = f"csrftoken={bodies.CSRF}"
        headers = {"Cookie": f"{self.cookie}; {csrf}", "X-CSRFToken": bodies.CSRF}
        about = headers | {"Origin": self.origin}
        asked = urllib.request.Request(self.origin + path, data, about)
        return urllib.request.urlopen(asked, timeout=30)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder, port = tmp_path_factory.mktemp("nginx"), free_port()
    proxied = {"ASHIATO_ORIGINS": f"http://127.0.0.1:{port}", "ASHIATO_PROXIES": "127.0.0.1"}
    first_start = {"ASHIATO_DATA": str(folder / "data"), "ASHIATO_MODEL": "demo"}
    with child("manage.py", "setup", env=first_start) as setting_up:
        assert setting_up.wait() == 0
    with product(folder, 1, 1, proxied) as server:
        settings = write_settings(folder, server.port, port)
        with child("-c", settings, "-p", folder, program=NGINX, log=folder / "log") as nginx:
            wait_for_port(port, nginx, folder / "log")
            yield Site(server, port)


def write_settings(folder: Path, upstream: int, port: int) -> Path:
    text = (DEPLOY / "nginx-systemd.conf").read_text()
    text = text.replace("listen 80;", f"listen 127.0.0.1:{port};")
    text = re.sub(r"127\.0\.0\.1:800[12]", f"127.0.0.1:{upstream}", text)
    places = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    paths = "".join(f"{name}_temp_path {folder}/{name};\n" for name in places)
    settings = folder / "nginx.conf"
    settings.write_text(
        f"daemon off; pid {folder}/pid; error_log {folder}/error.log;\n"
        f"events {{}}\nhttp {{\naccess_log off;\n{paths}{text}}}\n"
    )
    return settings


@pytest.mark.thorough
@pytest.mark.skipif(NGINX is None, reason="nginx isn't installed")
def test_uploads_sockets_events_and_refusals_pass_through_nginx(site):
    size = 50 * bodies.MEGABYTE
    assert bodies.post(site.port, "/chat/files/", size, b"words\n", site.cookie) == 201

    socket_url = f"ws://127.0.0.1:{site.port}/ws/chat/{site.chat}/"
    with connect(
        socket_url, origin=site.origin, additional_headers={"Cookie": site.cookie}
    ) as page:
        assert "composer-state" in page.recv(30)

    site.request(f"/chat/{site.chat}/messages/", b"text=2+%2B+3&client_id=a").read()
    run = re.search(r'id="run-(\d+)"', site.request(f"/chat/{site.chat}/").read().decode())[1]
    with site.request(f"/api/runs/{run}/events/") as events:
        assert events.headers["Content-Type"] == "text/event-stream"
        assert events.readline().startswith(b"id: ")

    with socket.create_connection(("127.0.0.1", site.port), 30) as line:
        head = f"POST /login/ HTTP/1.1\r\nHost: 127.0.0.1:{site.port}\r\nConnection: close\r\n"
        line.sendall(f"{head}Content-Length: 9000000\r\n\r\n".encode() + b"\n" * 500_000)
        said = b""
        while piece := line.recv(65_536):
            said += piece
    assert said.startswith(b"HTTP/1.1 413")
    assert b"Ashiato" in said
