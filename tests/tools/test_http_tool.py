import base64
import json

import pytest

from agents.engine.loop.tool_calls.approval import fingerprint
from agents.engine.tool import Tool, specification, timeout_message, uncertain_message
from agents.tools.addresses import AllowList
from agents.tools.egress import Egress
from agents.tools.http import HttpTool
from agents.tools.http.response_text import MAX_OUTPUT_CHARS
from tests.wire import HANG, Reply, WireServer, closed_port

LOCAL = Egress(allow=AllowList.read(["127.0.0.1"]))
WEATHER = {
    "name": "weather",
    "description": "Tells the weather of a city.",
    "parameters": {
        "type": "object",
        "properties": {
            "city": {"type": "string", "minLength": 1},
            "days": {"type": "integer", "maximum": 14},
            "units": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["city"],
    },
}
WRAPPED = {"type": "function", "function": WEATHER}
JSON = {"Content-Type": "application/json"}


def answer(body, status=200, **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Reply(parts=(body,), status=status, headers=JSON | named)


class Pages(dict):
    """One response for every path."""

    def __init__(self, reply):
        super().__init__(any=reply)

    def __contains__(self, path):
        return True

    def __getitem__(self, path):
        return self.get("any")


def tool_server(reply, status=200):
    is_made = isinstance(reply, Reply) or callable(reply)
    return WireServer(pages=Pages(reply if is_made else answer(reply, status)))


def definition_with(schema):
    """Return a definition with one parameter, `a`."""
    parameters = {"type": "object", "properties": {"a": schema}}
    return {"name": "x", "parameters": parameters}


def create_tool(server, path="/v1", definition=WRAPPED, **options):
    url = f"http://127.0.0.1:{server.port}{path}"
    return HttpTool(definition, url, egress=LOCAL, **options)


@pytest.mark.parametrize("definition", [WEATHER, WRAPPED, {"type": "function", **WEATHER}])
def test_a_definition_in_any_format_becomes_a_tool(definition):
    tool = HttpTool(definition, "https://api.example/v1")

    assert isinstance(tool, Tool)
    assert specification(tool)["function"]["name"] == "weather"
    assert tool.description == "Tells the weather of a city."
    assert tool.parameters == {**WEATHER["parameters"], "additionalProperties": False}


def test_a_definition_without_parameters_takes_no_arguments():
    tool = HttpTool({"name": "now"}, "https://api.example/")

    assert tool.parameters["properties"] == {}
    assert tool.parameters["additionalProperties"] is False


def test_get_is_read_only_and_other_methods_are_at_most_once():
    assert HttpTool(WEATHER, "https://api.example/", method="GET").effect == "read"
    assert HttpTool(WEATHER, "https://api.example/").effect == "at_most_once"
    assert HttpTool(WEATHER, "https://api.example/", effect="idempotent").effect == "idempotent"


@pytest.mark.parametrize(
    ("definition", "words"),
    [
        ({}, "Invalid function name"),
        ({"name": "two words"}, "name 'two words'"),
        ({"function": "weather"}, "must be an object"),
        ({"name": "x", "description": 3}, "function description must be text"),
        ({"name": "x", "parameters": {"type": "array"}}, "JSON Schema of type object"),
        ({"name": "x", "parameters": []}, "of type object"),
        (
            {"name": "x", "parameters": {"type": "object", "required": "a"}},
            "Invalid JSON Schema",
        ),
        (definition_with({"pattern": "("}), "isn't a valid regular expression"),
        (definition_with({"$ref": "https://other.example/"}), "can't be resolved"),
    ],
)
def test_an_unusable_definition_is_rejected_with_a_message(definition, words):
    with pytest.raises(ValueError, match=words):
        HttpTool(definition, "https://api.example/")


@pytest.mark.parametrize(
    ("endpoint", "words"),
    [
        ("ftp://api.example/", "start with http"),
        ("api.example/v1", "start with http"),
        ("https://key:word@api.example/", "password"),
        ("https://{city}.example/", "in the path"),
        ("https://api.example:{days}/", "in the path"),
        ("https://api.example/?city={city}", "in the path"),
        ("https://api.example/#top", "can't contain #"),
        ("https://api.example/{city", "don't match"),
        ("https://api.example/{place}", "'place', which isn't a parameter"),
        ("https://api.example/{days}", "'days', so the parameter must be required"),
        ("https://api.example/a/../{city}", "can't contain . or .. segments"),
        ("https://api.example/.{city}/%2e%2e/", "can't contain . or .. segments"),
    ],
)
def test_an_unusable_endpoint_is_rejected_with_a_message(endpoint, words):
    with pytest.raises(ValueError, match=words):
        HttpTool(WEATHER, endpoint)


@pytest.mark.parametrize(
    "headers", [{"X Key": "s3cret"}, {"X-Key": "s3cret\r\nX: y"}, {"Host": "s3cret"}]
)
def test_an_invalid_header_is_rejected_without_quoting_it(headers):
    with pytest.raises(ValueError, match="header|value") as refusal:
        HttpTool(WEATHER, "https://api.example/", headers=headers)

    assert "s3cret" not in str(refusal.value)


def test_an_unknown_method_is_rejected():
    with pytest.raises(ValueError, match="GET, POST, PUT, PATCH, DELETE, not 'CONNECT'"):
        HttpTool(WEATHER, "https://api.example/", method="CONNECT")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_post_arguments_are_sent_as_a_json_body(method):
    async with tool_server({"sky": "晴れ"}) as server:
        result = await create_tool(server, method=method).execute({"city": "東京", "days": 2})

    request = server.requests[0]
    assert result.output == '{\n  "sky": "晴れ"\n}'
    assert (request.method, request.path) == (method, "/v1")
    assert request.body == {"city": "東京", "days": 2}
    assert request.headers["content-type"] == "application/json"


async def test_get_arguments_are_sent_in_the_query():
    async with tool_server({}) as server:
        tool = create_tool(server, "/v1?lang=ja", method="GET")
        await tool.execute({"city": "a&b=ü", "days": 2, "units": ["C", "mm"]})

    request = server.requests[0]
    assert request.path == "/v1?lang=ja&city=a%26b%3D%C3%BC&days=2&units=C&units=mm"
    assert request.body is None


async def test_an_argument_fills_its_placeholder_in_the_path():
    async with tool_server({}) as server:
        tool = create_tool(server, "/of/{city}/now", method="DELETE")
        await tool.execute({"city": "a?b#c dé"})
        await tool.execute({"city": "Kyoto", "days": 1})

    assert [request.path for request in server.requests] == [
        "/of/a%3Fb%23c%20d%C3%A9/now",
        "/of/Kyoto/now",
    ]
    assert [request.body for request in server.requests] == [None, {"days": 1}]


@pytest.mark.parametrize(
    ("input", "words"),
    [
        ({"city": 3}, "city: 3 is not of type 'string'"),
        ({"city": ""}, "city: "),
        ({"days": 2}, "'city' is a required property"),
        ({"city": "x", "days": 99}, "days: 99 is greater than the maximum of 14"),
        ({"city": "x", "units": ["C", 4]}, "units[1]: 4 is not of type 'string'"),
        ({"city": "x", "admin": True}, "unknown property 'admin'"),
        ({"city": "x" * 300_000}, "larger than 200,000 bytes"),
        ({"city": "\ud800"}, "can't be written as JSON"),
        ({"city": ".."}, "can't contain . or .. segments"),
        ({"city": "..;x"}, "can't contain . or .. segments"),
        ({"city": "7/keys"}, "'city' can't contain /, \\, % or control characters"),
        ({"city": "../../admin"}, "can't contain /"),
        ({"city": "..\\admin"}, "can't contain /"),
        ({"city": "%2e%2e%2fadmin"}, "can't contain /"),
        ({"city": "x\r\nHost: y"}, "can't contain /"),
        ({"city": "x", "lang": "en"}, "unknown property 'lang'"),
        ({"city": "x" * 9_000}, "longer than 8,000 characters"),
        ({}, "required"),
    ],
)
async def test_invalid_input_is_never_sent(input, words):
    async with tool_server({}) as server:
        result = await create_tool(server, "/{city}?lang=ja", method="GET").execute(input)

    assert result.mendable
    assert result.error.startswith("Invalid arguments for weather: ")
    assert words in result.error
    assert server.requests == []


async def test_an_argument_does_not_override_the_endpoints_query():
    async with tool_server({}) as server:
        tool = create_tool(server, "/?a=1", definition_with({"type": "string"}), method="GET")
        result = await tool.execute({"a": "2"})

    assert "'a' is already part of the endpoint URL" in result.error
    assert server.requests == []


async def test_a_pattern_with_catastrophic_backtracking_is_fast():
    definition = definition_with({"type": "string", "pattern": "^(a+)+$"})
    async with tool_server({}) as server:
        result = await create_tool(server, definition=definition).execute(
            {"a": "a" * 5_000 + "!"}
        )

    assert result.mendable
    assert server.requests == []


async def test_a_plain_string_is_the_first_argument():
    async with tool_server({}) as server:
        await create_tool(server).execute("Kyoto")

    assert server.requests[0].body == {"city": "Kyoto"}


@pytest.mark.parametrize(
    ("status", "mendable"),
    [(400, True), (404, True), (408, False), (429, False), (500, False), (599, False)],
)
async def test_the_status_says_whether_other_input_could_help(status, mendable):
    async with tool_server({"detail": "No such   city"}, status) as server:
        result = await create_tool(server).execute({"city": "x"})

    assert result.error.startswith(f"127.0.0.1 returned HTTP {status}")
    assert result.error.endswith('{"detail": "No such city"}')
    assert result.mendable is mendable


async def test_a_long_error_body_is_truncated():
    async with tool_server(answer(b"x" * 100_000, 500)) as server:
        result = await create_tool(server).execute({"city": "x"})

    assert len(result.error) < 600
    assert result.error.endswith("x…")


@pytest.mark.parametrize(
    ("kind", "body", "output"),
    [
        ("text/plain; charset=Shift_JIS", "晴れ".encode("shift_jis"), "晴れ"),
        ("text/html", "晴れ".encode(), "晴れ"),
        ("text/plain; charset=punycode", b"plain", "plain"),
        ("text/plain; charset=nonsense", b"\xff\0", "\ufffd\ufffd"),
        ("application/xml", b"<a/>", "<a/>"),
        ("application/problem+json", b'{"a":[1]}', '{\n  "a": [\n    1\n  ]\n}'),
        ("application/json", b'{"a":', '{"a":'),
        ("application/json", b'"\\ud800"', '"?"'),
        ("application/json", b"[" * 50_000, "[" * 50_000),
        ("application/json", b"[" * 300 + b"1," * 9_000 + b"1" + b"]" * 300, None),
    ],
)
async def test_a_response_is_read_by_its_content_type(kind, body, output):
    async with tool_server(answer(body, Content_Type=kind)) as server:
        result = await create_tool(server).execute({"city": "x"})

    assert result.error is None
    assert result.output == (body.decode() if output is None else output)


async def test_a_binary_response_is_not_returned():
    async with tool_server(answer(b"\x89PNG", Content_Type="image/png")) as server:
        result = await create_tool(server).execute({"city": "x"})

    assert result.error == "127.0.0.1 returned image/png, which isn't text."


async def test_an_empty_response_is_reported_as_done():
    async with tool_server(Reply(status=204, headers={"Content-Length": "0"})) as server:
        result = await create_tool(server).execute({"city": "x"})

    assert result.output == "Done. The response was empty (204 No Content)."


async def test_a_long_response_is_truncated_with_a_note():
    async with tool_server(answer(b"x" * 150_000, Content_Type="text/plain")) as server:
        result = await create_tool(server).execute({"city": "x"})

    assert result.output.startswith("x" * MAX_OUTPUT_CHARS + "\n")
    assert result.output.endswith("[… 50,000 more characters cut]")


async def test_a_response_that_is_too_large_is_not_retried():
    async with tool_server(Reply(parts=(bytes(1_000_000),) * 9, headers=JSON)) as server:
        result = await create_tool(server, method="GET").execute({"city": "x"})

    assert result.error.endswith("is larger than 5,000,000 bytes. Request less data.")
    assert result.mendable


BASIC = base64.b64encode(b'user:pa"ss/word').decode()


@pytest.mark.parametrize("status", [200, 401])
async def test_an_echoed_secret_is_masked(status):
    headers = {
        "Authorization": f"Basic {BASIC}",
        "X-Key": "k3y-of-mine",
        "X-Version": "2026-01-01",
    }

    def echo(request):
        seen = [request.headers, 'pa"ss/word', "pa%22ss%2Fword", request.path]
        return answer({"seen": seen}, status)

    async with tool_server(echo) as server:
        tool = create_tool(server, "/?token=s3cr3t-value", headers=headers)
        result = await tool.execute({"city": "x"})

    for secret in (BASIC, "k3y-of-mine", "s3cr3t-value", "word"):
        assert secret not in result.text
    assert "2026-01-01" in result.text
    assert server.requests[0].headers["x-key"] == "k3y-of-mine"


async def test_a_configured_header_replaces_the_default():
    async with tool_server({}) as server:
        await create_tool(server, headers={"accept": "text/csv"}).execute({"city": "x"})

    assert server.requests[0].headers["accept"] == "text/csv"


async def test_equal_calls_are_sent_without_an_idempotency_key():
    async with tool_server({}) as server:
        for _ in range(2):
            await create_tool(server, effect="idempotent").execute({"city": "x"})

    assert len(server.requests) == 2
    assert not any("idempotency-key" in request.headers for request in server.requests)


def test_a_tool_exposes_its_method_and_url():
    tool = HttpTool(WEATHER, "https://api.example/of/{city}?lang=ja", method="PUT")
    moved = HttpTool(WEATHER, "https://evil.example/of/{city}?lang=ja", method="PUT")

    assert tool.reaches == "PUT https://api.example/of/{city}?lang=ja"
    assert fingerprint(tool) != fingerprint(moved)


async def test_a_write_that_times_out_has_an_uncertain_result():
    async with tool_server(Reply(parts=(HANG,), headers=JSON)) as server:
        writing = await create_tool(server, timeout=0.3).execute({"city": "x"})
        reading = await create_tool(server, timeout=0.3, method="GET").execute({"city": "x"})

    late = timeout_message("127.0.0.1", 0.3)
    assert writing.error == uncertain_message(late)
    assert reading.error == late


async def test_a_call_that_could_not_connect_was_not_made():
    tool = HttpTool(WEATHER, f"http://127.0.0.1:{closed_port()}/", egress=LOCAL)

    result = await tool.execute({"city": "x"})

    assert result.error == "Couldn't connect to 127.0.0.1: the connection was refused."
    assert not result.mendable


async def test_a_private_endpoint_is_rejected_unless_allowed():
    async with tool_server({}) as server:
        result = await HttpTool(WEATHER, f"http://127.0.0.1:{server.port}/").execute("x")

    assert "ASHIATO_EGRESS_ALLOW" in result.error
    assert server.requests == []


async def test_a_redirect_of_a_write_is_not_followed():
    async with tool_server(Reply(status=307, headers={"Location": "/other"})) as server:
        result = await create_tool(server).execute({"city": "x"})

    assert result.error == "127.0.0.1 returned HTTP 307 Temporary Redirect."
    assert len(server.requests) == 1
