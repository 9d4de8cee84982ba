"""Models with connections of their own, as tests make them."""

from asgiref.sync import sync_to_async

from agents.llm.parameters import DESTINATION_OPTIONS
from agents.models import LanguageModel, ModelConnection

ACCESS = ("provider", "base_url", "api_key", "api_version", "region", "secrets")


def make_model(label, model, **columns):
    """Save a model with a connection, named like it, that has these columns of one."""
    is_taken = ModelConnection.objects.filter(name=label).exists()
    columns = {"name": f"{label} again" if is_taken else label, **columns}
    return _make(
        LanguageModel.objects.create, ModelConnection.objects.create, label, model, columns
    )


amake_model = sync_to_async(make_model)


def unsaved_model(label, model, **columns):
    """Return a model that isn't saved, and neither is its connection."""
    return _make(LanguageModel, ModelConnection, label, model, columns)


def _make(model_row, connection_row, label, model, columns):
    name = columns.pop("name", label)
    access = {key: columns.pop(key) for key in ACCESS if key in columns}
    options = columns.pop("options", {})
    access["options"] = {n: v for n, v in options.items() if n in DESTINATION_OPTIONS}
    columns["options"] = {n: v for n, v in options.items() if n not in DESTINATION_OPTIONS}
    prefix = model.partition("/")[0] if "/" in model else "openai"
    connection = connection_row(name=name, prefix=prefix, **access)
    return model_row(label=label, model=model, connection=connection, **columns)
