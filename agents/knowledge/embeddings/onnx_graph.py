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
MODEL_GRAPH = 7
MODEL_OPSET = 8
GRAPH_NODE = 1
GRAPH_INPUT = 11
NODE_OUTPUT = 2
NODE_TYPE = 4
NODE_ATTRIBUTE = 5
ATTRIBUTE_NAME = 1
ATTRIBUTE_STRING = 4
INT32 = 6
INT64 = 7

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
    model_fields: list[Bytes] = []
    operator: tuple[bytes, list[bytes]] | None = None
    for number, value, raw in _fields(memoryview(model)):
        if number == MODEL_GRAPH:
            graph, operator = _cut_graph(value)
            model_fields += [_header(MODEL_GRAPH, sum(map(len, graph))), *graph]
        elif number != MODEL_OPSET or EXTENSION not in bytes(value):
            model_fields.append(raw)
    if operator is None:
        raise UnknownGraph("The model has no SentencePiece tokenizer.")
    tokenizer, (tokens, splits) = operator
    return CutModel(
        graph=b"".join(model_fields),
        tokenizer=tokenizer,
        token_input=tokens.decode(),
        split_input=splits.decode(),
    )


def _cut_graph(graph: memoryview) -> tuple[list[Bytes], tuple[bytes, list[bytes]] | None]:
    graph_fields: list[Bytes] = []
    operator = None
    for number, value, raw in _fields(graph):
        if number == GRAPH_NODE and (tokenizer := _read_tokenizer(value)):
            operator = tokenizer
        elif number != GRAPH_INPUT:
            graph_fields.append(raw)
    if operator:
        tokens, splits = operator[1]
        graph_fields += [_tensor_input(tokens, INT32), _tensor_input(splits, INT64)]
    return graph_fields, operator


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
    start = 0
    while start < len(message):
        key, content = _read_varint(message, start)
        match key & 7:
            case 0:
                _, end = _read_varint(message, content)
            case 1:
                end = content + 8
            case 2:
                size, content = _read_varint(message, content)
                end = content + size
            case 5:
                end = content + 4
            case kind:
                raise UnknownGraph(f"Field type {kind} isn't known.")
        yield key >> 3, message[content:end], message[start:end]
        start = end


def _read_varint(message: memoryview, position: int) -> tuple[int, int]:
    """Return a number, and the position behind it."""
    value = shift = 0
    while True:
        byte = message[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
        shift += 7


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    return bytes([*encoded, value])


def _header(number: int, size: int) -> bytes:
    return _varint(number << 3 | LENGTH) + _varint(size)


def _field(number: int, content: bytes) -> bytes:
    return _header(number, len(content)) + content


def _tensor_input(name: bytes, element: int) -> bytes:
    """Return a graph input: a list of numbers of unknown length."""
    dimension = _field(1, _field(2, b"n"))
    tensor = _varint(1 << 3) + _varint(element) + _field(2, dimension)
    return _field(GRAPH_INPUT, _field(1, name) + _field(2, _field(1, tensor)))
