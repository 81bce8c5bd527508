"""The responsibility matrix: which duty is responsible, accountable, consulted, informed. Pure.

``DEFAULTS`` is what a tenant starts with; its own rows (``RaciEntry``) take the place of these.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.releases.changes.policy import ItemEdit

PLATFORM, DOMAIN, INTEGRATION = "platform", "domain", "integration"
SRE, SECURITY = "sre", "security"
DUTIES = (PLATFORM, DOMAIN, INTEGRATION, SRE, SECURITY)

LETTERS = ("", "R", "A", "C", "I", "R/A")
"""What a cell may hold: nothing, or responsible, accountable, consulted, informed."""

FRAMEWORK_CHANGE, NEW_AGENT, NEW_MCP_TOOL = "framework_change", "new_agent", "new_mcp_tool"
PROMPT_CHANGE, GUARDRAIL_CHANGE = "prompt_change", "guardrail_change"
MODEL_PROFILE_CHANGE, PRODUCTION_DEPLOY = "model_profile_change", "production_deploy"
SECURITY_REVIEW, CERTIFICATION = "security_review", "certification"

ACTIVITIES: dict[str, Any] = {
    FRAMEWORK_CHANGE: gettext_lazy("Framework or runtime change"),
    NEW_AGENT: gettext_lazy("New agent"),
    NEW_MCP_TOOL: gettext_lazy("New MCP tool"),
    PROMPT_CHANGE: gettext_lazy("Prompt change"),
    GUARDRAIL_CHANGE: gettext_lazy("Guardrail change"),
    MODEL_PROFILE_CHANGE: gettext_lazy("Model profile change"),
    PRODUCTION_DEPLOY: gettext_lazy("Production deploy"),
    SECURITY_REVIEW: gettext_lazy("Security review"),
    CERTIFICATION: gettext_lazy("Certification"),
}

Row = Mapping[str, str]
Matrix = Mapping[str, Row]


def _row(*letters: str) -> dict[str, str]:
    return dict(zip(DUTIES, letters, strict=True))


DEFAULTS: Matrix = {
    #                          platform domain integration sre security
    FRAMEWORK_CHANGE: _row("R/A", "C", "I", "C", "C"),
    NEW_AGENT: _row("C", "R/A", "C", "I", "I"),
    NEW_MCP_TOOL: _row("C", "C", "R/A", "I", "C"),
    PROMPT_CHANGE: _row("I", "R/A", "I", "I", "C"),
    GUARDRAIL_CHANGE: _row("R", "C", "I", "I", "A"),
    # Nobody is accountable for it where the table comes from: ``raci_problems`` says so.
    MODEL_PROFILE_CHANGE: _row("R", "C", "I", "I", "C"),
    PRODUCTION_DEPLOY: _row("I", "C", "C", "R/A", "C"),
    SECURITY_REVIEW: _row("I", "C", "C", "C", "R/A"),
    CERTIFICATION: _row("R/A", "C", "C", "I", "I"),
}

ACTIVITY_OF_KIND: Mapping[str, str] = {
    # What an agent is made of; a change of it counts like a new one.
    "agent": NEW_AGENT,
    "intent": NEW_AGENT,
    "routing_policy": NEW_AGENT,
    "state_policy": NEW_AGENT,
    "memory_policy": NEW_AGENT,
    "prompt": PROMPT_CHANGE,
    "tool": NEW_MCP_TOOL,
    "tool_server": NEW_MCP_TOOL,
    "parameter_mapping": NEW_MCP_TOOL,
    "workflow": NEW_MCP_TOOL,
    # What a tool is told about the customer.
    "identity_key": NEW_MCP_TOOL,
    "rail_policy": GUARDRAIL_CHANGE,
    "model_profile": MODEL_PROFILE_CHANGE,
    # Thresholds decide what is certified.
    "judge_policy": CERTIFICATION,
}


@dataclass(frozen=True)
class RaciProblem:
    """What is wrong with one activity. ``code``: ``nobody_accountable``, ``many_accountable``,
    ``nobody_responsible``, ``nobody_holds``."""

    activity: str
    code: str
    message: str


def activity_of(edit: ItemEdit) -> str:
    """Return the activity that ``edit`` is. A kind the table does not know changes the framework."""
    return ACTIVITY_OF_KIND.get(edit.kind, FRAMEWORK_CHANGE)


def activities_of(edits: Iterable[ItemEdit]) -> tuple[str, ...]:
    """Return the activities of ``edits``, each once, in the matrix's order."""
    touched = {activity_of(edit) for edit in edits}
    return tuple(activity for activity in ACTIVITIES if activity in touched)


def accountable(row: Row) -> tuple[str, ...]:
    """Return the duties with an A; exactly one, in a sound row."""
    return tuple(duty for duty in DUTIES if "A" in row.get(duty, ""))


def responsible(row: Row) -> tuple[str, ...]:
    """Return the duties with an R."""
    return tuple(duty for duty in DUTIES if "R" in row.get(duty, ""))


def approving(row: Row) -> tuple[str, ...]:
    """Return the duties that approve: the accountable ones, else those responsible, else platform.

    Two accountable duties (which no service writes) both approve.
    """
    return accountable(row) or responsible(row) or (PLATFORM,)


def row_problems(activity: str, row: Row) -> list[RaciProblem]:
    """Return what is wrong with one row of the matrix."""
    answerable, found = accountable(row), []
    name = {"activity": ACTIVITIES[activity]}
    if not answerable:
        text = _(
            "“%(activity)s” has nobody accountable: give one duty an A. Until then whoever is "
            "responsible approves it, and one more person."
        )
        found.append(RaciProblem(activity, "nobody_accountable", text % name))
    if len(answerable) > 1:
        text = _(
            "“%(activity)s” has more than one accountable duty: leave one A. Until then each of "
            "them approves it."
        )
        found.append(RaciProblem(activity, "many_accountable", text % name))
    if not responsible(row):
        text = _("“%(activity)s” has nobody responsible: give one duty an R.")
        found.append(RaciProblem(activity, "nobody_responsible", text % name))
    return found


def raci_problems(matrix: Matrix) -> list[RaciProblem]:
    """Return what is wrong with ``matrix``, in its order."""
    return [
        problem for activity in ACTIVITIES for problem in row_problems(activity, matrix[activity])
    ]
