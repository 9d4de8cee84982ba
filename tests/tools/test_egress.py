import asyncio
import gzip
import socket
import ssl
import tracemalloc
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from ipaddress import ip_address

import httpcore2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from agents.engine.tool import timeout_message
from agents.tools.addresses import AllowList
from agents.tools.egress import (
    Egress,
    EgressFailed,
    EgressRefused,
    ResponseTooLarge,
    create_client,
    fetch,
)
from tests.wire import CUT, HANG, Reply, WireServer, closed_port, silent_port

LOCAL = Egress(allow=AllowList.read(["127.0.0.1"]), timeout=10)
TEXT = {"Content-Type": "text/plain"}

NOT_TO_BE_ASKED = """
    http://127.0.0.1/ http://127.0.0.1:22/ https://127.0.0.1/ http://127.1/ http://127.0.1/
    http://2130706433/ http://0x7f000001/ http://0x7f.1/ http://017700000001/
    http://0177.0.0.1/ http://0x7f.0.0.1/ http://00000177.0.0.1/ http://127.255.255.254/
    http://0/ http://0.0.0.0/ http://0.1.2.3/ http://10.0.0.1/ http://10.255.255.255/
    http://167772161/ http://0xa000001/ http://172.16.0.1/ http://172.31.255.255/
    http://192.168.0.1/ http://3232235521/ http://0300.0250.1/ http://169.254.169.254/
    http://169.254.169.254/latest/meta-data/ http://2852039166/ http://0xa9fea9fe/
    http://0251.0376.0251.0376/ http://169.254.170.2/v2/credentials http://100.64.0.1/
    http://100.100.100.200/ http://168.63.129.16/ http://192.0.0.192/ http://192.0.0.170/
    http://192.0.2.1/ http://198.18.0.1/ http://198.51.100.1/ http://203.0.113.1/
    http://192.88.99.1/ http://224.0.0.1/ http://239.255.255.250/ http://240.0.0.1/
    http://255.255.255.255/ http://[::]/ http://[::1]/ http://[::1]:6379/
    http://[0:0:0:0:0:0:0:1]/ http://[::127.0.0.1]/ http://[::7f00:1]/
    http://[::ffff:127.0.0.1]/ http://[::ffff:7f00:1]/ http://[::ffff:169.254.169.254]/
    http://[0:0:0:0:0:ffff:a00:1]/ http://[::ffff:0:127.0.0.1]/ http://[64:ff9b::127.0.0.1]/
    http://[64:ff9b::a9fe:a9fe]/ http://[64:ff9b:1::1]/ http://[64:ff9b:1::a9fe:a9fe]/
    http://[2002:7f00:1::]/ http://[2002:a9fe:a9fe::1]/ http://[2002:c0a8:1::1]/
    http://[2001:0:7f00:1::]/ http://[2001:0:808:808:0:0:80ff:fffe]/
    http://[2002:808:808::1]/ http://[2001:1::1]/ http://[2001:20::1]/
    http://[2001:4860::5efe:10.0.0.1]/ http://[2001:4860::200:5efe:7f00:1]/
    http://[fe80::1]/ http://[fe80::1%25eth0]/ http://[2606:4700::1%251]/ http://[fec0::1]/
    http://[fc00::1]/ http://[fd00:ec2::254]/ http://[ff02::1]/ http://[2001:db8::1]/
    http://[3fff::1]/ http://[100::1]/ http://[5f00::1]/ http://[4000::1]/
    http://\uff11\uff12\uff17.\uff10.\uff10.\uff11/ http://127\u30020\u30020\u30021/
    http://\u2460\u2461\u2466.0.0.1/ http://127.0.0.1%2f@8.8.8.8/ http://8.8.8.8@127.0.0.1/
    http://name:word@8.8.8.8/ http://name@8.8.8.8/ http://8.8.8.8:0/ http://8.8.8.8:65536/
    http://8.8.8.8:-1/ http://8.8.8.8:port/ http:///path http://?x http:8.8.8.8 //8.8.8.8/
    8.8.8.8 ftp://8.8.8.8/ file:///etc/passwd gopher://8.8.8.8/ dict://8.8.8.8/
    ws://8.8.8.8/ data:text/plain,x javascript:x http://8.8.8.8\\@127.0.0.1/
    http://127.0.0.1\\.example.org/ http://exam%70le.org/ http://[8.8.8.8]/ http://[v1.x]/
    http://*.example.org/ http://..example.org/ http://a..b/
    http://xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx.org/
"""

PUBLIC = ["8.8.8.8", "2606:4700::1111", "64:ff9b::808:808"]


def found(*addresses):
    """Return a resolver with one answer, which records its calls."""

    async def resolve(host, port):
        resolve.asked.append(host)
        return addresses

    resolve.asked = []
    return resolve


@pytest.fixture
def no_connections(monkeypatch):
    async def connect_tcp(self, host, port, *args, **options):
        pytest.fail(f"there was a connection to {host}")

    monkeypatch.setattr(httpcore2.AnyIOBackend, "connect_tcp", connect_tcp)


@pytest.mark.parametrize("url", NOT_TO_BE_ASKED.split())
async def test_non_public_urls_are_rejected(url, no_connections):
    with pytest.raises(EgressRefused):
        await fetch("GET", url, policy=Egress())


@pytest.mark.parametrize("address", PUBLIC)
async def test_a_public_address_is_allowed(address):
    policy = Egress(resolve=found(address))

    assert await policy.addresses("api.example", 443) == [address]


async def test_a_rejection_names_host_and_remedy_but_not_the_address(no_connections):
    policy = Egress(resolve=found("8.8.8.8", "64:ff9b::10.0.0.5"))

    with pytest.raises(EgressRefused) as refusal:
        await fetch("GET", "http://api.example:8080/", policy=policy)

    assert str(refusal.value) == (
        "api.example is blocked because its address is a tunnel to a private address. "
        "An administrator can add 'api.example:8080' to ASHIATO_EGRESS_ALLOW."
    )


async def test_a_host_is_resolved_once_per_connection():
    answers = iter([["127.0.0.1"], ["127.0.0.2"]])
    asked = []

    async def rebinding(host, port):
        asked.append(host)
        return next(answers)

    policy = Egress(allow=AllowList.read(["127.0.0.1/32"]), resolve=rebinding)
    async with WireServer(pages={"/": {"fine": True}}) as server:
        url = f"http://api.example:{server.port}/"
        response = await fetch("GET", url, policy=policy)
        assert (response.status, asked) == (200, ["api.example"])
        with pytest.raises(EgressRefused, match="its address is this server itself"):
            await fetch("GET", url, policy=policy)

    assert [r.headers["host"] for r in server.requests] == [f"api.example:{server.port}"]


async def test_the_next_address_is_tried_when_the_first_is_unreachable():
    allow = AllowList.read(["127.0.0.0/8"])
    policy = Egress(allow=allow, resolve=found("127.0.0.9", "127.0.0.1"))
    async with WireServer(pages={"/": {}}) as server:
        url = f"http://api.example:{server.port}/"

        assert (await fetch("GET", url, policy=policy)).status == 200


@pytest.mark.parametrize(
    ("entry", "fitting", "other"),
    [
        ("Api.Example", ("api.example.", 80, "10.0.0.1"), ("x.api.example", 80, "10.0.0.1")),
        ("api.example:80", ("api.example", 80, "10.0.0.1"), ("api.example", 81, "10.0.0.1")),
        ("10.1.0.0/16", ("any.example", 1, "10.1.2.3"), ("any.example", 1, "10.2.2.3")),
        ("10.1.2.3", ("any.example", 1, "10.1.2.3"), ("any.example", 1, "10.1.2.4")),
        ("10.1.2.3:80", ("any.example", 80, "10.1.2.3"), ("any.example", 81, "10.1.2.3")),
        ("[::1]:80", ("any.example", 80, "::1"), ("any.example", 81, "::1")),
        ("fd00::/8", ("any.example", 1, "fd00::1"), ("any.example", 1, "fe80::1")),
        ("b\u00fccher.example", ("xn--bcher-kva.example", 1, "10.0.0.1"), ("b", 1, "10.0.0.1")),
    ],
)
def test_the_allow_list_takes_hosts_ports_and_networks(entry, fitting, other):
    allow = AllowList.read([f" {entry} "])

    assert allow.allows(*fitting[:2], ip_address(fitting[2]))
    assert not allow.allows(*other[:2], ip_address(other[2]))


@pytest.mark.parametrize(
    "entry", ["", "*", "*.example", "http://x", "x/y", "10.1.2.3/8", "a@b", "x:0", "x:y", "a b"]
)
def test_an_ambiguous_allow_list_entry_is_rejected_with_a_message(entry):
    with pytest.raises(ValueError, match=r"Enter a host, host:port or a network"):
        AllowList.read([entry])


async def test_a_response_is_returned_whole_and_decompressed():
    headers = {**TEXT, "Content-Encoding": "gzip", "X-More": "1"}
    packed = gzip.compress(b"one ") + gzip.compress("二".encode() * 100_000)
    page = Reply(parts=(packed[:30], packed[30:]), headers=headers)
    async with WireServer(pages={"/": page}) as server:
        response = await fetch("GET", f"http://127.0.0.1:{server.port}/", policy=LOCAL)

    assert response.content == b"one " + "二".encode() * 100_000
    assert response.headers["x-more"] == "1"
    assert "content-encoding" not in response.headers


async def test_a_decompression_bomb_is_rejected():
    bomb = gzip.compress(bytes(100_000_000))
    page = Reply(parts=(bomb,), headers={**TEXT, "Content-Encoding": "gzip"})
    async with WireServer(pages={"/": page}) as server:
        tracemalloc.start()
        with pytest.raises(ResponseTooLarge, match="larger than 5,000,000 bytes"):
            await fetch("GET", f"http://127.0.0.1:{server.port}/", policy=LOCAL)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()

    assert peak < 20_000_000


async def test_a_response_of_fifty_megabytes_is_rejected():
    page = Reply(parts=(bytes(1_000_000),) * 50, headers=TEXT)
    async with WireServer(pages={"/": page}) as server:
        with pytest.raises(ResponseTooLarge):
            await fetch("GET", f"http://127.0.0.1:{server.port}/", policy=LOCAL)
        await asyncio.wait_for(server.left(), 10)


@pytest.mark.parametrize(
    ("page", "words"),
    [
        (Reply(parts=(b"not gzip",), headers={"Content-Encoding": "gzip"}), "be decompressed"),
        (
            Reply(parts=(gzip.compress(b"x" * 99)[:-9],), headers={"Content-Encoding": "gzip"}),
            "was cut off",
        ),
        (
            Reply(parts=(b"x",), headers={"Content-Encoding": "gzip, gzip"}),
            "unsupported encoding",
        ),
        (Reply(parts=(b"x",), headers={"Content-Encoding": "br"}), "unsupported encoding 'br'"),
        (Reply(headers={f"X-{n}": "x" for n in range(200)}), "too many headers"),
        (Reply(headers={"X-Long": "x" * 50_000}), "too many headers"),
        (Reply(headers={f"X-{n}": "x" * 1000 for n in range(500)}), "unreadable"),
        (Reply(parts=(b"x", CUT), headers=TEXT), "was cut off"),
    ],
)
async def test_an_unusable_response_is_an_error_with_a_message(page, words):
    async with WireServer(pages={"/": page}) as server:
        with pytest.raises(EgressFailed, match=words):
            await fetch("GET", f"http://127.0.0.1:{server.port}/", policy=LOCAL)


@pytest.mark.parametrize("parts", [(HANG,), (b"x", 0.05) * 2_000])
async def test_a_slow_response_times_out_even_if_it_drips(parts):
    policy = Egress(allow=LOCAL.allow, timeout=0.5)
    async with WireServer(pages={"/": Reply(parts=parts, headers=TEXT)}) as server:
        with pytest.raises(EgressFailed) as failure:
            await fetch("GET", f"http://127.0.0.1:{server.port}/", policy=policy)
        await asyncio.wait_for(server.left(), 10)

    assert str(failure.value) == timeout_message("127.0.0.1", 0.5)
    assert failure.value.was_sent


async def test_a_hanging_name_server_times_out():
    async def hangs(host, port):
        await asyncio.Event().wait()

    with pytest.raises(EgressFailed, match="the connection timed out") as failure:
        await fetch("GET", "http://api.example/", policy=Egress(resolve=hangs, timeout=0.4))

    assert not failure.value.was_sent


async def test_an_unreachable_host_is_reported_with_the_reason():
    async def unknown(host, port):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    with pytest.raises(
        EgressFailed, match=r"Couldn't connect to 127\.0\.0\.1: the connection was"
    ):
        await fetch("GET", f"http://127.0.0.1:{closed_port()}/", policy=LOCAL)
    for resolve in (unknown, found()):
        with pytest.raises(EgressFailed, match="the host name couldn't be resolved"):
            await fetch("GET", "http://api.example/", policy=Egress(resolve=resolve))


@pytest.mark.parametrize(
    "place", ["http://169.254.169.254/latest/", "//10.0.0.1/", "file:///etc/passwd", "http://["]
)
async def test_a_redirect_is_checked_like_any_address(place):
    page = Reply(status=302, headers={"Location": place})
    async with WireServer(pages={"/": page}) as server:
        with pytest.raises(EgressRefused):
            await fetch("GET", f"http://127.0.0.1:{server.port}/", policy=LOCAL)


async def test_a_secret_does_not_follow_a_redirect_to_another_origin():
    secret = {"Authorization": "Bearer x", "X-Key": "y", "Accept": "text/plain"}
    async with WireServer(pages={"/there": {}}) as other:
        away = Reply(status=307, headers={"Location": f"http://127.0.0.1:{other.port}/there"})
        near = Reply(status=301, headers={"Location": "/away"})
        async with WireServer(pages={"/": near, "/away": away}) as server:
            url = f"http://127.0.0.1:{server.port}/"
            await fetch("GET", url, policy=LOCAL, headers=secret)

    assert [r.headers.get("x-key") for r in server.requests] == ["y", "y"]
    assert not {"authorization", "x-key"} & set(other.requests[0].headers)
    assert other.requests[0].headers["accept"] == "text/plain"


async def test_three_redirects_are_followed_and_none_for_writes():
    around = Reply(status=308, headers={"Location": "/"})
    async with WireServer(pages={"/": around}) as server:
        url = f"http://127.0.0.1:{server.port}/"
        with pytest.raises(EgressFailed, match="more than 3"):
            await fetch("GET", url, policy=LOCAL)
        assert len(server.requests) == 4
        response = await fetch("POST", url, policy=LOCAL, content=b"{}")

    assert response.status == 308
    assert len(server.requests) == 5


async def test_proxies_and_cookies_are_ignored(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{closed_port()}")
    monkeypatch.setenv("ALL_PROXY", f"http://127.0.0.1:{closed_port()}")
    page = Reply(parts=(b"x",), headers={**TEXT, "Set-Cookie": "a=b; Path=/"})
    async with WireServer(pages={"/": page}) as server, create_client(LOCAL) as http:
        for _ in range(2):
            assert (await http.get(f"http://127.0.0.1:{server.port}/")).status_code == 200

    assert "cookie" not in server.requests[1].headers


async def test_the_host_header_matches_the_url():
    async with WireServer(pages={"/": {}}) as server:
        url = f"http://127.0.0.1:{server.port}/"
        await fetch("GET", url, policy=LOCAL, headers={"Host": "intranet.example"})

    assert server.requests[0].headers["host"] == f"127.0.0.1:{server.port}"


@pytest.mark.parametrize("value", ["secret\r\nvalue", "secret\u9375", "secret\0"])
async def test_a_malformed_header_is_not_quoted(value):
    headers = {"X-Key": value}
    async with silent_port() as port:
        with pytest.raises(EgressFailed) as failure:
            await fetch("GET", f"http://127.0.0.1:{port}/", policy=LOCAL, headers=headers)

    assert "secret" not in str(failure.value)
    assert not failure.value.was_sent


async def test_a_client_follows_no_redirect_even_if_asked_to():
    page = Reply(status=302, headers={"Location": "http://169.254.169.254/"})
    made = partial(create_client, LOCAL)(headers={"X-Key": "y"}, follow_redirects=True)
    async with WireServer(pages={"/": page}) as server, made as http:
        response = await http.get(f"http://127.0.0.1:{server.port}/")

    assert response.status_code == 302
    assert server.requests[0].headers["x-key"] == "y"


async def test_tls_certificates_are_checked_against_the_host_name(tmp_path):
    trust, server = create_certificate("api.example", tmp_path)
    allow = AllowList.read(["127.0.0.1"])
    policy = Egress(allow=allow, resolve=found("127.0.0.1"), trust=trust)
    async with tls_server(server) as (port, names):
        response = await fetch("GET", f"https://api.example:{port}/", policy=policy)
        with pytest.raises(EgressFailed, match="the TLS connection failed"):
            await fetch("GET", f"https://other.example:{port}/", policy=policy)

    assert response.content == b"fine"
    assert names == ["api.example", "other.example"]


async def test_https_does_not_redirect_to_http(tmp_path):
    trust, server = create_certificate("api.example", tmp_path)
    allow = AllowList.read(["127.0.0.1"])
    policy = Egress(allow=allow, resolve=found("127.0.0.1"), trust=trust)
    answer = b"HTTP/1.1 302 Found\r\nLocation: http://api.example/\r\nContent-Length: 0\r\n\r\n"
    async with tls_server(server, answer) as (port, _):
        with pytest.raises(EgressRefused, match="from https to http"):
            await fetch("GET", f"https://api.example:{port}/", policy=policy)


def create_certificate(name, folder):
    """Return contexts that trust and present a new certificate for this name."""
    key, subject = ec.generate_private_key(ec.SECP256R1()), x509.NameAttribute
    names = x509.Name([subject(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(names, names, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    unlocked = serialization.NoEncryption()
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, unlocked)
    (folder / "server.pem").write_bytes(pem + key.private_bytes(*form))
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "server.pem")
    return ssl.create_default_context(cadata=pem.decode()), server


@asynccontextmanager
async def tls_server(context, answer=b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine"):
    """Start a server with this certificate; yield the names it was called by."""
    names = []
    context.sni_callback = lambda connection, name, _: names.append(name)

    async def serve(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1], names
    finally:
        server.close()
        await server.wait_closed()
