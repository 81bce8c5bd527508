"""The states of a change request and what leads from one to the next. Pure."""

DRAFT, IN_REVIEW, APPROVED, SCHEDULED = "draft", "in_review", "approved", "scheduled"
PUBLISHED, DEPLOYED = "published", "deployed"
REJECTED, WITHDRAWN, SUPERSEDED = "rejected", "withdrawn", "superseded"

OPEN = (DRAFT, IN_REVIEW, APPROVED, SCHEDULED)
"""States in which patches may still be edited."""

LIVE = (PUBLISHED, DEPLOYED)
CLOSED = (REJECTED, WITHDRAWN, SUPERSEDED)

ACTS: dict[str, dict[str, str]] = {
    "submit": {DRAFT: IN_REVIEW},
    "approve": {IN_REVIEW: APPROVED},
    "request_changes": {IN_REVIEW: DRAFT, APPROVED: DRAFT, SCHEDULED: DRAFT},
    "reject": {IN_REVIEW: REJECTED, APPROVED: REJECTED, SCHEDULED: REJECTED},
    "withdraw": {state: WITHDRAWN for state in OPEN},
    "supersede": {state: SUPERSEDED for state in OPEN},
    # An edit, a rebase, a publication by somebody else: what was approved is no longer what it is.
    "void": {IN_REVIEW: IN_REVIEW, APPROVED: IN_REVIEW, SCHEDULED: IN_REVIEW},
    "schedule": {APPROVED: SCHEDULED, SCHEDULED: SCHEDULED},
    "unschedule": {SCHEDULED: APPROVED},
    "publish": {APPROVED: PUBLISHED, SCHEDULED: PUBLISHED},
    "break_glass": {state: PUBLISHED for state in OPEN},
    "deploy": {PUBLISHED: DEPLOYED},
    "leave": {DEPLOYED: PUBLISHED},
}
"""Act → state before → state after. What is not here is not possible."""


def state_after(act: str, state: str) -> str | None:
    """Return the state ``act`` leads to from ``state``, or None when it is not possible there."""
    return ACTS[act].get(state)
