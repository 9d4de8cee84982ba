"""Takes the tokenizer out of an ONNX model, so that it runs on plain onnxruntime.

The sentence encoder starts with a SentencePiece operator that needs an extension of
onnxruntime, which isn't built for every Python. Its model is an attribute of that operator: it
is returned, and the operator's outputs become the inputs of the graph. Only the few fields of
the protocol buffer that change are read; the weights are passed through as they are.
"""

from collections.abc import Iterator
from dataclasses import dataclass

Bytes = memoryview | bytes

OPERATOR = b"SentencepieceTokenizer"
EXTENSION = b"ai.onnx.contrib"

# Field numbers of onnx.proto.
MODEL_GRAPH, MODEL_OPSET = 7, 8
GRAPH_NODE, GRAPH_INPUT = 1, 11
NODE_OUTPUT, NODE_TYPE, NODE_ATTRIBUTE = 2, 4, 5
ATTRIBUTE_NAME, ATTRIBUTE_STRING = 1, 4
INT32, INT64 = 6, 7

LENGTH = 2  # the wire type of strings and messages


class UnknownGraph(ValueError):
    """Raised when the model doesn't have the expected tokenizer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CutModel:
    """A model without its tokenizer, the tokenizer's model, and the inputs between them."""

    graph: bytes
    tokenizer: bytes
    token_input: str
    split_input: str


def cut_tokenizer(model: Bytes) -> CutModel:
    """Return the model in two: the tokenizer's own and the graph behind it."""
    rest: list[Bytes] = []
    found: tuple[bytes, list[bytes]] | None = None
    for number, value, raw in _fields(memoryview(model)):
        if number == MODEL_GRAPH:
            graph, found = _cut_graph(value)
            rest += [_header(MODEL_GRAPH, sum(map(len, graph))), *graph]
        elif number != MODEL_OPSET or EXTENSION not in bytes(value):
            rest.append(raw)
    if found is None:
        raise UnknownGraph("The model has no SentencePiece tokenizer.")
    tokenizer, (tokens, splits) = found
    return CutModel(
        graph=b"".join(rest),
        tokenizer=tokenizer,
        token_input=tokens.decode(),
        split_input=splits.decode(),
    )


def _cut_graph(graph: memoryview) -> tuple[list[Bytes], tuple[bytes, list[bytes]] | None]:
    kept: list[Bytes] = []
    found = None
    for number, value, raw in _fields(graph):
        if number == GRAPH_NODE and (read := _read_tokenizer(value)):
            found = read
        elif number != GRAPH_INPUT:
            kept.append(raw)
    if found:
        tokens, splits = found[1]
        kept += [_tensor_input(tokens, INT32), _tensor_input(splits, INT64)]
    return kept, found


def _read_tokenizer(node: memoryview) -> tuple[bytes, list[bytes]] | None:
    """Return the SentencePiece model and the outputs if this is the tokenizer."""
    fields = [(number, value) for number, value, _ in _fields(node)]
    if not any(number == NODE_TYPE and bytes(value) == OPERATOR for number, value in fields):
        return None
    outputs = [bytes(value) for number, value in fields if number == NODE_OUTPUT]
    for number, value in fields:
        if number == NODE_ATTRIBUTE:
            attribute = {name: content for name, content, _ in _fields(value)}
            if bytes(attribute[ATTRIBUTE_NAME]) == b"model":
                return bytes(attribute[ATTRIBUTE_STRING]), outputs
    return None


def _fields(message: memoryview) -> Iterator[tuple[int, memoryview, memoryview]]:
    """Yield the number, the content and the whole of each field."""
    at = 0
    while at < len(message):
        start = at
        key, at = _read_varint(message, at)
        match key & 7:
            case 0:
                content = at
                _, at = _read_varint(message, at)
            case 1:
                content, at = at, at + 8
            case 2:
                size, content = _read_varint(message, at)
                at = content + size
            case 5:
                content, at = at, at + 4
            case kind:
                raise UnknownGraph(f"Field type {kind} isn't known.")
        yield key >> 3, message[content:at], message[start:at]


def _read_varint(message: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def _header(number: int, size: int) -> bytes:
    return _varint(number << 3 | LENGTH) + _varint(size)


def _field(number: int, content: bytes) -> bytes:
    return _header(number, len(content)) + content


def _tensor_input(name: bytes, element: int) -> bytes:
    """Return a graph input: a list of numbers of unknown length."""
    dimension = _field(1, _field(2, b"n"))
    tensor = _varint(1 << 3) + _varint(element) + _field(2, dimension)
    return _field(GRAPH_INPUT, _field(1, name) + _field(2, _field(1, tensor)))
