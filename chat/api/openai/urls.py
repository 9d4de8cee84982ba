"""The addresses that OpenAI's clients call."""

from django.urls import path

from . import agent_models, completions, embeddings, responses

urlpatterns = [
    path("models", agent_models.models),
    path("models/<path:name>", agent_models.model),
    path("chat/completions", completions.completions),
    path("embeddings", embeddings.create),
    path("responses", responses.create),
    path("responses/compact", responses.compact),
    path("responses/<str:id>", responses.stored_response),
    path("responses/<str:id>/cancel", responses.cancel),
    path("responses/<str:id>/input_items", responses.input_items),
]
