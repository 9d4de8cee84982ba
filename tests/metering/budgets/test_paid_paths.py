"""Everything that a provider bills passes the gate. A new client or caller fails here."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOTS = ("agents", "chat", "project")
# What reaches a provider, and the only modules that may name it: those that meter it, and what
# it is made of.
CLIENTS = {
    "DirectModel": {"agents/catalog/language_models/model_clients.py"},
    "LiteLLMModel": {"agents/catalog/language_models/model_clients.py"},
    "ConfiguredModel": {"agents/catalog/language_models/model_clients.py"},
    "EmbeddingClient": {
        "agents/metering/budgets/metered/metered_clients.py",
        "agents/knowledge/embeddings/__init__.py",
    },
    "RerankClient": {
        "agents/metering/budgets/metered/metered_clients.py",
        "agents/catalog/language_models/reranking.py",
    },
    # Free of requests: addresses, formats and reported costs.
    "media_api": {
        "agents/metering/budgets/metered/metered_media.py",
        "agents/knowledge/media/services.py",
        "agents/knowledge/media/transcription.py",
    },
    "litellm_media": set(),
}
MEDIA_REQUESTS = {"transcribe", "speak", "generate_image", "describe_image"}
# Calls that ask a provider; what they are called on must come from these modules.
REQUESTS = {
    "stream": {  # of a chat model
        "agents/engine/planner/react_planner.py",  # its `llm`, which the factory builds
        "agents/metering/budgets/metered/metered_model.py",
        "agents/catalog/language_models/reranking.py",  # a model of the factory
        "agents/llm/discovery/model_probe.py",  # a model of the factory
    },
    "order_now": {"agents/metering/budgets/metered/metered_clients.py"},
    "embed": {"agents/metering/budgets/metered/metered_clients.py"},
}
PARTS = ("agents/llm/litellm_model/", "agents/llm/configured_model.py")
EMBEDDERS = {"client", "_client"}  # names of clients, unlike the package `embeddings`


WORDS = re.compile(
    "|".join([*CLIENTS, "llm_by_name", r"\.stream\b", r"\.embed\(", "order_now"])
)


@cache
def modules():
    """Return the modules that may ask a provider; parsing all would take long."""
    paths = (path for root in ROOTS for path in sorted(Path(root).rglob("*.py")))
    texts = {str(path): path.read_text() for path in paths if "migrations" not in path.parts}
    return [(path, ast.parse(text)) for path, text in texts.items() if WORDS.search(text)]


def names_in(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom | ast.Import):
            yield from (alias.name.rpartition(".")[2] for alias in node.names)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_of_a_provider_is_only_used_behind_the_gate(client):
    users = {path for path, tree in modules() if client in names_in(tree)}
    own = {path for path in users if path.startswith("agents/llm/")}
    assert users - own == CLIENTS[client]


def test_chat_models_are_only_built_metered():
    tree = ast.parse(Path("agents/catalog/language_models/model_clients.py").read_text())
    makers = {
        node.name: ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and any(name in ast.unparse(node) for name in ("_llm_by_route(", "llm_by_name("))
    }
    metered = {name for name, text in makers.items() if "MeteredModel(" in text}
    assert metered == {"build_llm", "llm_from_row"}
    assert makers.keys() - metered == {"_llm_by_route", "llm_by_name"}


def test_clients_that_are_not_metered_have_one_caller():
    callers = {
        path
        for path, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute | ast.Name)
        and (getattr(node, "attr", "") or getattr(node, "id", "")) == "llm_by_name"
    }
    assert callers == {"agents/catalog/language_models/model_clients.py"}


def test_media_requests_are_only_made_by_the_metered_functions():
    found = {
        (path, node.attr)
        for path, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr in MEDIA_REQUESTS
        and ast.unparse(node.value) in {"media_api", "litellm_media"}
        and path != "agents/llm/media_api.py"
    }
    assert found == {
        ("agents/metering/budgets/metered/metered_media.py", name) for name in MEDIA_REQUESTS
    }


@pytest.mark.parametrize("request_name", REQUESTS)
def test_requests_are_only_made_where_they_are_counted(request_name):
    found = set()
    for path, tree in modules():
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Attribute) and node.attr == request_name):
                continue
            target = ast.unparse(node.value)
            is_model = "llm" in target or target == "model" or target.startswith("for_short")
            is_client = target.partition("(")[0].rpartition(".")[2] in EMBEDDERS
            if is_model if request_name == "stream" else is_client:
                found.add(path)
    # Parts of a client
    found = {path for path in found if not path.startswith(PARTS)}
    assert found
    assert found <= REQUESTS[request_name]
