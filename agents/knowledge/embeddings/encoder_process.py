"""The child process: holds the local embedding model and turns texts into vectors.

It is Universal Sentence Encoder Multilingual 3 with 512 dimensions. The weights are in a
package, so nothing is downloaded. It is started by path in a sandbox, takes a second to load
and about 210 MB, and reads texts and writes vectors until the end of its input.
"""

import json
import mmap
import os
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import sentencepiece
from numpy.typing import NDArray

from agents.knowledge.embeddings.onnx_graph import cut_tokenizer

MODEL_VARIABLE = "ENCODER_MODEL"
HEADER_BYTES = 4
DIMENSION = 512
ERRORS_ONLY = 3
GIVE_BACK = ("memory.enable_memory_arena_shrinkage", "cpu:0")


class Encoder:
    """The loaded model. One thread is enough for it, so that others stay free for chats."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            model = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        cut_model = cut_tokenizer(memoryview(model))
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
        tokens = self._tokenizer.encode(texts, add_bos=True, add_eos=True)
        splits = np.cumsum([0, *map(len, tokens)], dtype=np.int64)
        flat = np.concatenate([np.asarray(ids, np.int32) for ids in tokens])
        inputs = dict(zip(self._inputs, (flat, splits), strict=True))
        options = self._batch_options if len(texts) > 1 else None
        [vectors] = self._session.run(None, inputs, options)
        return vectors


def main() -> None:
    requests = sys.stdin.buffer
    # Whatever a library prints must not end up between the replies.
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    encoder = Encoder(Path(os.environ[MODEL_VARIABLE]))
    while header := requests.read(HEADER_BYTES):
        texts = json.loads(requests.read(int.from_bytes(header, "little")))
        vectors = encoder.embed(texts).tobytes()
        replies.write(len(vectors).to_bytes(HEADER_BYTES, "little") + vectors)
        replies.flush()


if __name__ == "__main__":
    main()
