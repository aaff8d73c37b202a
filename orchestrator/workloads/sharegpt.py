"""ShareGPT: `conversations` of `{"from": "human" | "gpt" | "system", "value": text}`.

Human messages become the turns, the model's answers the `reference` (for replayed histories).
"""

from __future__ import annotations

from orchestrator.plan.block import Prompt
from orchestrator.workloads.conversation import MessageShape, alternate, build_prompt, gather
from orchestrator.workloads.reading import Reading, Row

ROLE_OF = {
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "bard": "assistant",
    "bing": "assistant",
    "assistant": "assistant",
    "system": "system",
}
SHAPE = MessageShape(
    role_key="from",
    text_key="value",
    roles=ROLE_OF,
    read_text=lambda value: value if isinstance(value, str) else None,
    text_rule="must be text",
    blank_is_left_out=True,
)


def read_sharegpt(row: Row, reading: Reading) -> Prompt | None:
    """The conversation; one in which no human speaks is skipped and counted, not an error.

    The published collections hold many such remainders: they were cut to a length.
    """
    conversations = row.fields.get("conversations")
    if not isinstance(conversations, list):
        reading.fault(row, "conversations", "must be a list of messages", conversations)
        return None
    read = gather(row, reading, "conversations", conversations, SHAPE)
    if read is None:
        return None
    speeches, system = read
    turns, answers = alternate(speeches)
    if not turns:
        reading.skip("no message of a human in the conversation")
        return None
    return build_prompt(
        row,
        reading,
        identifier=row.fields.get("id"),
        category=row.fields.get("category") or "sharegpt",
        turns=turns,
        turns_key="conversations",
        system=system,
        reference=answers or None,
    )
