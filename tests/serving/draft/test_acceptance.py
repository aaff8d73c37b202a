"""What a draft would have accepted, on rows drawn by hand."""

from __future__ import annotations

from orchestrator.serving.draft.acceptance import expected_acceptance

Y, N = True, False


def test_drafts_begin_after_what_the_last_one_brought() -> None:
    # Position 0: two accepted, and the target's own token: the next draft begins at 3. There none
    # is accepted: the next one begins at 4, and both of it are.
    rows = [[Y, Y], [N, N], [N, N], [N, Y], [Y, Y]]
    found = expected_acceptance([("chat/advice", rows)], 2)["all"]
    assert (found.answers, found.drafts) == (1, 3)
    assert found.acceptance_length == 1 + 4 / 3
    assert found.per_position == (2 / 3, 2 / 3)


def test_by_category_by_set_and_for_all() -> None:
    found = expected_acceptance(
        [("chat/advice", [[Y]]), ("chat/planning", [[N]]), ("code/fix", [[N]])], 1
    )
    assert list(found) == ["all", "chat", "chat/advice", "chat/planning", "code", "code/fix"]
    assert found["chat"].acceptance_length == 1.5
    assert found["all"].per_position == (1 / 3,)


def test_an_answer_too_short_for_a_draft_says_nothing() -> None:
    found = expected_acceptance([("chat/advice", [])], 3)["all"]
    assert (found.answers, found.drafts, found.acceptance_length) == (1, 0, None)
