"""Any provider that LiteLLM supports, as one stream of OpenAI chunks.

LiteLLM takes seconds to import and most of a millisecond per chunk. So it is imported once in a
thread, and OpenAI-format responses inside it are read directly here.
"""

from .embedding import EmbeddingClient
from .loading import warm_up
from .model import LiteLLMModel
from .provider_warmup import warm_up_provider
from .rerank import RerankClient

__all__ = ["EmbeddingClient", "LiteLLMModel", "RerankClient", "warm_up", "warm_up_provider"]
