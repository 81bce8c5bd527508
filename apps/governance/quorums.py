"""How many people approve a change of each risk class, and which duty beside the accountable one."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from apps.governance.raci import PLATFORM, SECURITY

AT_LEAST: Mapping[str, int] = {"cosmetic": 1, "behaviour": 1, "weakening": 2}
"""No tenant goes below."""

AT_MOST = 5
"""More people than a tenant has would mean that nothing is ever approved."""


@dataclass(frozen=True)
class Quorum:
    """So many different people; ``extra_duty`` "" for none."""

    approvals: int
    extra_duty: str = ""

    def second_duty(self, duties: Collection[str]) -> str:
        """Return the duty that approves beside ``duties``; "" when the quorum asks for none.

        Where the extra one is accountable itself, a second role still looks: platform, or security
        when that is platform.
        """
        if self.extra_duty not in duties:
            return self.extra_duty
        other = SECURITY if self.extra_duty == PLATFORM else PLATFORM
        return "" if other in duties else other


DEFAULTS: Mapping[str, Quorum] = {
    "cosmetic": Quorum(1),
    "behaviour": Quorum(1),
    "weakening": Quorum(2, SECURITY),
}
