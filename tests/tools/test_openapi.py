"""Operations of OpenAPI documents, and the requests of the tools that are made from them."""

import copy
import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.engine import json_schema
from agents.engine.privacy import MASK
from agents.tools.http import HttpTool
from agents.tools.openapi import BadDocument, read_document, tool_name
from tests.sampling import one_in
from tests.tools.openapi_documents import PETS, SHOP, YAML

BASE = "https://eu.shop.example/v1"


def read(document, url=""):
    return read_document(json.dumps(document), url)


def operation(name, document=SHOP):
    return next(each for each in read(document).operations if tool_name(each) == name)


def tool(name, document=SHOP, headers=None, **http):
    found = operation(name, document)
    definition = {
        "name": name,
        "description": "x",
        "parameters": found.parameters,
        "http": {**found.binding, **http},
    }
    endpoint = f"{BASE}{found.endpoint_path}"
    return HttpTool(definition, endpoint, method=found.method, headers=headers)


def request(name, arguments, document=SHOP, headers=None, **http):
    url, sent, content = tool(name, document, headers, **http)._request(arguments)
    return url.removeprefix(BASE), sent, content


# Documents


def test_a_document_is_read():
    shop = read(SHOP, "https://docs.example/api/openapi.json")

    assert (shop.title, shop.version) == ("Shop", "1.2")
    assert shop.servers == (BASE, "https://docs.example/relative")
    assert [(each.key, tool_name(each)) for each in shop.operations] == [
        ("GET /orders", "listOrders"),
        ("POST /orders", "orders_create"),
        ("GET /orders/{order-id}", "get_orders_order-id"),
        ("DELETE /orders/{order-id}", "deleteOrder"),
        ("POST /login", "login"),
        ("PUT /photo", "putPhoto"),
        ("HEAD /photo", "headPhoto"),
    ]
    assert {scheme.key: scheme.kind for scheme in shop.schemes} == {
        "key": "header",
        "query": "query",
        "oauth": "token",
        "basic": "basic",
    }


def test_an_unsupported_operation_has_a_reason_and_stops_no_other():
    reasons = {each.operation_id: each.reason for each in read(SHOP).operations if each.reason}

    assert reasons == {
        "putPhoto": "The request body must be JSON, a form or text, not image/png.",
        "headPhoto": "HEAD requests aren't supported.",
    }


def test_a_relative_server_needs_the_documents_url():
    assert read(SHOP).servers == (BASE,)
    without = {**SHOP, "servers": []}
    assert read(without).servers == ()
    assert read(without, "https://shop.example/docs/x.json").servers == (
        "https://shop.example",
    )


def test_yaml_and_openapi_31_are_read():
    [note] = read_document(YAML).operations

    assert note.parameters["properties"] == {"id": {"type": ["integer", "null"]}}


def test_swagger_20_is_read():
    pets = read(PETS)
    reasons = [each.reason for each in pets.operations if each.reason]

    assert pets.servers == ("https://pets.example/v2", "http://pets.example/v2")
    assert reasons == ["The request body must be JSON, a form or text, not a file."]
    url, _, _ = request("findPets", {"tags": ["a", "b"], "limit": 3}, PETS)
    assert url == "/pets?tags=a%2Cb&limit=3"
    _, _, content = request("addPet", {"body": {"name": "Rex"}}, PETS)
    assert content == b'{"name": "Rex"}'
    url, sent, content = request("renamePet", {"id": 1, "body": {"name": "R x"}}, PETS)
    assert (url, content) == ("/pets/1", b"name=R+x")
    assert sent["Content-Type"] == "application/x-www-form-urlencoded"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "Invalid JSON: Expecting property name enclosed in double quotes (line 1"),
        ("a: [", "Invalid YAML (line 2, column 1): Syntax error"),
        ("hello", "This isn't an OpenAPI document. It has no openapi or swagger field."),
        ('{"openapi": "4.0.0"}', "OpenAPI '4.0.0' isn't supported."),
        ('{"openapi": "3.0.0", "paths": {}}', "The document has no operations."),
        ('{"openapi": "3.0.0", "paths": []}', "'paths' must be an object."),
        ('{"openapi": "3.0.0", "paths": {"x": {}}}', "The path 'x' must start with /."),
        ('{"openapi": "3.0.0", "paths": {"/x": 1}}', "'paths./x' must be an object."),
        (
            '{"openapi": "3.0.0", "paths": {"/x": {"get": 1}}}',
            "'paths./x.get' must be an object.",
        ),
        (
            '{"openapi": "3.0.0", "paths": {"/x": {"$ref": "other.yaml"}}}',
            "The reference 'other.yaml' can't be resolved.",
        ),
        ("[" * 500_000, "This is nested too deeply."),
        (" " * 5_000_001, "The document is larger than 5,000,000 bytes."),
    ],
)
def test_a_bad_document_says_what_is_wrong_and_where(text, sentence):
    with pytest.raises(BadDocument) as refusal:
        read_document(text)

    assert str(refusal.value).startswith(sentence)


# Schemas


def test_schemas_are_converted_for_models():
    body = operation("orders_create").parameters["properties"]["body"]

    assert body["required"] == ["items"]
    assert {*body["properties"]} == {"customer", "items", "note", "pay"}
    assert body["properties"]["note"] == {"type": ["string", "null"]}
    assert body["properties"]["pay"] == {
        "anyOf": [
            {"type": "object", "properties": {"card": {"type": "string"}}},
            {"type": "string"},
        ]
    }
    assert body["properties"]["items"]["items"] == {
        "type": "object",
        "properties": {
            "price": {"type": "number", "exclusiveMinimum": 0},
            "parts": {"type": "array", "items": {}},
        },
    }


def test_descriptions_are_shortened():
    text = operation("orders_create").description

    assert len(text) <= 1_000
    assert text.endswith("…")


def test_an_exploding_schema_is_limited():
    wide = {f"p{n}": {"$ref": "#/components/schemas/A"} for n in range(40)}
    schemas = {"A": {"type": "object", "properties": {}}}
    for level in "BCDEFGH":
        schemas["A"]["properties"][level] = {"$ref": f"#/components/schemas/{level}"}
        schemas[level] = {"type": "object", "properties": wide, "description": "long " * 99}
    document = copy.deepcopy(SHOP)
    document["components"]["schemas"] = {**schemas, "Order": schemas["A"]}
    parameters = operation("orders_create", document).parameters

    assert len(json.dumps(parameters)) < 20_000
    assert {*parameters["properties"]["body"]["properties"]} == {*"BCDEFGH"}
    json_schema.validate_schema(parameters)


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ("users/list all", "users_list_all"),
        ("注文", "operation"),
        ("a" * 80, "a" * 64),
        ("__x__", "x"),
    ],
)
def test_names_are_safe(raw, name):
    document = {**SHOP, "paths": {"/x": {"get": {"operationId": raw}}}}

    assert tool_name(read(document).operations[0]) == name


def test_arguments_with_unusual_names_are_renamed_and_sent_as_they_are():
    listed = operation("listOrders")

    assert [*listed.parameters["properties"]] == ["X-Trace", "status", "sort", "range"]
    assert listed.notes == ("Skipped the parameter 'session' (cookie).",)
    assert listed.binding["parameters"]["status"] == {"in": "query", "name": "status[]"}


def test_an_unsupported_required_parameter_rejects_the_operation():
    cookie = {"name": "sid", "in": "cookie", "required": True, "schema": {"type": "string"}}
    document = {**SHOP, "paths": {"/x": {"get": {"parameters": [cookie]}}}}

    assert (
        read(document).operations[0].reason
        == "The required parameter 'sid' can't be sent (cookie)."
    )


# Requests


def test_arguments_are_sent_where_the_document_says():
    arguments = {
        "X-Trace": "t1",
        "status": ["open", "a&b"],
        "sort": ["date", "id"],
        "range": {"from": "1", "to": "2"},
    }
    url, headers, content = request("listOrders", arguments)

    assert url == (
        "/orders?status%5B%5D=open&status%5B%5D=a%26b&sort=date%7Cid"
        "&range%5Bfrom%5D=1&range%5Bto%5D=2"
    )
    assert headers["X-Trace"] == "t1"
    assert content is None


def test_bodies_are_json_or_forms():
    _, headers, content = request("orders_create", {"body": {"items": [], "note": None}})
    assert (headers["Content-Type"], json.loads(content)) == (
        "application/json",
        {"items": [], "note": None},
    )
    _, headers, content = request("login", {"body": {"user": "a&b=c", "tags": ["x", "y"]}})
    assert headers["Content-Type"] == "application/x-www-form-urlencoded"
    assert content == b"user=a%26b%3Dc&tags=x&tags=y"
    assert request("login", {})[2] is None


@pytest.mark.parametrize("value", ["../admin", "a/b", "..", "a%2fb", "\\x", "a\nb", "", "."])
def test_an_argument_cannot_leave_its_segment_of_the_path(value):
    with pytest.raises(ValueError, match=r"can't contain|segments|must be text"):
        request("get_orders_order-id", {"order-id": value})


@pytest.mark.parametrize("value", ["x?y", "x#y", "@evil.example", "x;y", "日本"])
def test_special_characters_are_encoded(value):
    url, _, _ = request("get_orders_order-id", {"order-id": value})

    assert url.startswith("/orders/")
    assert not {"?", "#", "@", ";"} & {*url}


def test_a_header_argument_cannot_add_or_replace_headers():
    with pytest.raises(ValueError, match="printable ASCII"):
        request("listOrders", {"X-Trace": "a\r\nX-Other: b"})
    _, headers, _ = request("listOrders", {"X-Trace": "mine"}, headers={"x-trace": "ours"})

    assert headers["x-trace"] == "ours"
    assert "X-Trace" not in headers


def test_a_secret_goes_into_the_query_and_is_masked():
    secret = {"api_key": "s3cret-value"}
    made = tool("listOrders", headers=secret, query_secrets=["api_key"])
    url, headers, _ = made._request({"status": ["x"]})

    assert url.endswith("?status%5B%5D=x&api_key=s3cret-value")
    assert "api_key" not in headers
    assert made._mask_secrets("It is s3cret-value.") == f"It is {MASK}."


def test_an_object_in_the_query_cannot_replace_a_secret():
    parameter = {"name": "filter", "in": "query", "schema": {"type": "object"}}
    document = {**SHOP, "paths": {"/x": {"get": {"parameters": [parameter]}}}}
    secret = {"api_key": "s3cret-value"}

    def sent(value):
        arguments = {"filter": value}
        return request("get_x", arguments, document, secret, query_secrets=["api_key"])

    assert sent({"a": 1, "b": [2, 3]})[0] == "/x?a=1&b=2&b=3&api_key=s3cret-value"
    with pytest.raises(ValueError, match="'api_key' is set automatically"):
        sent({"api_key": "mine"})


@pytest.mark.parametrize(
    ("binding", "sentence"),
    [
        ([], "must be an object"),
        ({"parameters": {"no": {"in": "query", "name": "x"}}}, "'no', which isn't a parameter"),
        ({"parameters": {"status": {"in": "query"}}}, "'status' needs a name"),
        ({"parameters": {"status": {"in": "cookie", "name": "x"}}}, "can only be sent in"),
        ({"parameters": {"status": {"in": "header", "name": "Host"}}}, "set automatically"),
        ({"body": {"argument": "no"}}, "The body needs an argument"),
        ({"query_secrets": "x"}, "must be a list of names"),
    ],
)
def test_an_invalid_binding_is_rejected(binding, sentence):
    found = operation("listOrders")
    definition = {"name": "x", "parameters": found.parameters, "http": binding}

    with pytest.raises(ValueError, match=sentence):
        HttpTool(definition, f"{BASE}/orders", method="GET")


# Arbitrary input


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *(
                        "type",
                        "properties",
                        "items",
                        "allOf",
                        "oneOf",
                        "$ref",
                        "enum",
                        "schema",
                    ),
                    *("name", "in", "parameters", "requestBody", "content", "required", "get"),
                    *("application/json", "nullable", "security", "servers", "url", "style"),
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(VALUES)
def test_any_operation_is_read_without_an_exception(value):
    document = {
        "openapi": "3.0.0",
        "paths": {"/x/{id}": {"get": value, "post": {"parameters": value}}},
        "servers": value,
        "security": value,
        "components": {"schemas": value, "securitySchemes": value},
    }
    with suppress(BadDocument):
        for each in read(document).operations:
            if not each.reason:
                tool = HttpTool(
                    {"name": "x", "parameters": each.parameters, "http": each.binding},
                    f"{BASE}{each.endpoint_path}",
                    method=each.method,
                )
                assert tool.parameters["type"] == "object"


@given(VALUES)
def test_any_schema_is_read_without_an_exception(value):
    document = copy.deepcopy(SHOP)
    document["components"]["schemas"]["Item"] = value
    parameters = operation("orders_create", document).parameters

    json_schema.validate_schema(parameters)
    assert parameters["type"] == "object"


def test_an_operation_with_too_many_parameters_is_rejected():
    many = [{"name": f"{'!' * n}", "in": "query", "schema": {}} for n in range(1, 500)]
    document = {"openapi": "3.0.0", "paths": {"/a": {"get": {"parameters": many}}}}

    [found] = read(document).operations
    assert found.reason == "It has more than 200 parameters."


def test_a_document_that_takes_too_long_is_rejected(monkeypatch):
    monkeypatch.setattr("agents.tools.openapi.schema.MAX_LOOKUPS", 1_000)
    hidden = {"properties": {f"p{n}": {"readOnly": True} for n in range(100)}}
    fields = {f"q{n}": {"$ref": "#/components/schemas/Hidden"} for n in range(100)}
    body = {"content": {"application/json": {"schema": {"properties": fields}}}}
    document = {
        "openapi": "3.0.0",
        "components": {"schemas": {"Hidden": hidden}},
        "paths": {"/a": {"post": {"requestBody": body}}},
    }

    with pytest.raises(BadDocument, match="The document is too complex"):
        read(document)


def places(value, path=()):
    parts = value.items() if isinstance(value, dict) else enumerate(value)
    for key, part in parts:
        yield (*path, key)
        if isinstance(part, dict | list):
            yield from places(part, (*path, key))


@pytest.mark.parametrize(
    "wrong", one_in(4, [5, None, [[]], [{}], "http://[", {"$ref": 5}, {"a": [[]]}])
)
@pytest.mark.parametrize("document", [SHOP, PETS])
def test_a_wrong_value_anywhere_is_skipped_or_named(document, wrong):
    for *path, last in places(document):
        broken = inside = copy.deepcopy(document)
        for key in path:
            inside = inside[key]
        inside[last] = wrong
        try:
            operations = read(broken).operations
        except BadDocument:
            continue
        assert all(each.reason or each.parameters for each in operations)


def test_huge_numbers_are_rejected_and_lone_surrogates_replaced():
    head = '{"openapi": "3.0.0", "info": {"title": "a\\ud800"}, "paths": {"/a": {"get": {}}}'
    with pytest.raises(BadDocument, match="Number with too many digits"):
        read_document(f'{head}, "x": {"1" * 5_000}}}')

    assert read_document(f"{head}}}").title == "a?"
