"""How much a model can read, from the table that comes with LiteLLM, without importing it."""

import json
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

TABLE = "model_prices_and_context_window_backup.json"
UNKNOWN = 32_000


def window(model: str) -> int:
    """Tokens that fit into a request; a careful guess for a model that nobody has listed."""
    table = _table()
    names = (model, model.partition("/")[2], model.rpartition("/")[2])
    known = next((table[name] for name in names if name in table), {})
    size = known.get("max_input_tokens") or known.get("max_tokens")
    return size if isinstance(size, int) else UNKNOWN


@cache
def _table() -> dict[str, dict[str, Any]]:
    litellm = find_spec("litellm")
    if litellm is None or not litellm.submodule_search_locations:
        return {}
    path = Path(litellm.submodule_search_locations[0]) / TABLE
    table: dict[str, dict[str, Any]] = json.loads(path.read_bytes()) if path.exists() else {}
    return table
