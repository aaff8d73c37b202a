"""ShareGPT: `conversations` of `{"from": "human" | "gpt" | "system", "value": text}`.

Human messages become the turns, the model's answers the `reference` (for replayed histories).
"""

from __future__ import annotations

from orchestrator.plan.block import Prompt
from orchestrator.workloads.conversation import Speech, alternate, build_prompt
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


def read_sharegpt(row: Row, reading: Reading) -> Prompt | None:
    """The conversation; one in which no human speaks is skipped and counted, not an error.

    The published collections hold many such remainders: they were cut to a length.
    """
    conversations = row.fields.get("conversations")
    if not isinstance(conversations, list):
        reading.fault(row, "conversations", "must be a list of messages", conversations)
        return None
    speeches: list[Speech] = []
    system: list[str] = []
    sound = True
    for index, message in enumerate(conversations):
        key = f"conversations[{index}]"
        speaker = message.get("from") if isinstance(message, dict) else None
        role = ROLE_OF.get(speaker) if isinstance(speaker, str) else None
        text = message.get("value") if isinstance(message, dict) else None
        if role is None:
            known = ", ".join(ROLE_OF)
            reading.fault(row, f"{key}.from", f"must be one of {known}", speaker or message)
            sound = False
        elif not isinstance(text, str):
            reading.fault(
                row, f"{key}.value", "must be text", text if text is not None else message
            )
            sound = False
        elif role == "system":
            system.append(text)
        elif text.strip():
            speeches.append((role, text))
    if not sound:
        return None
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
        system="\n\n".join(system) or None,
        reference=answers or None,
    )
