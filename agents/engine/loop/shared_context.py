"""What other agents get besides their task: the chat's files, and what was searched first."""

from collections.abc import Callable

from agents.engine.material import wrap_untrusted
from agents.engine.state import AgentState, Message

# The part of another agent's window that the files may take.
WINDOW_SHARE = 2
CUT_PROMPT = (
    "[… cut: this model's context is too small for the rest. Search for it if you can.]"
)
PASSAGES_OPENING = "<passages>"
PASSAGES_CLOSING = "</passages>"
PASSAGES_PROMPT = (
    "This was found in the documents for the question. Cite passages by their number, e.g. [1]."
)


def shared_files(state: AgentState) -> Message:
    """Return the files of the question and of the chat, as they come with another task."""
    messages = [m for m in state.get_messages() if m["role"] == "user"] + [state.question]
    texts = dict.fromkeys(m["material"] for m in messages if m.get("material"))
    refs = {ref["digest"]: ref for m in messages for ref in m.get("attachments", ())}
    shared: Message = {"material": "\n\n".join(texts)} if texts else {}
    if refs:
        shared["attachments"] = list(refs.values())
    if any(message.get("is_suspect") for message in messages):
        shared["is_suspect"] = True
    return shared


def with_passages(files: Message, state: AgentState, query: str, tool: str) -> Message:
    """Add what the search before the first step has found for the question."""
    messages = state.get_messages()
    question_positions = [
        position
        for position, m in enumerate(messages)
        if (m["role"], m["content"]) == ("user", query)
    ]
    since = messages[question_positions[-1] :] if tool and question_positions else []
    results = [
        m["content"] for m in since if m["role"] == "tool" and m.get("untrusted") == tool
    ]
    if not results:
        return files
    passages = wrap_untrusted(results[0], tool)
    text = "\n".join([PASSAGES_OPENING, PASSAGES_PROMPT, passages, PASSAGES_CLOSING])
    return {**files, "material": "\n\n".join(filter(None, [files.get("material"), text]))}


def fit_files(files: Message, window: int | None, count: Callable[[str], int]) -> Message:
    """Cut the text of files that would take too much of a small model's window."""
    text = files.get("material", "")
    if window is None or not text or (tokens := count(text)) <= window // WINDOW_SHARE:
        return files
    beginning = text[: len(text) * (window // WINDOW_SHARE) // tokens]
    return {**files, "material": f"{beginning}\n{CUT_PROMPT}"}
