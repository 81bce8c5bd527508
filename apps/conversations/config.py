"""Kind: identity key."""

from typing import ClassVar

from pydantic import Field

from apps.runtime.config import KindConfig
from apps.runtime.i18n import gettext_noop as _


class IdentityKeyConfig(KindConfig):
    """Where one canonical key is found. The slug is the key, e.g. ``customer_key``."""

    kind: ClassVar[str] = "identity_key"
    label: ClassVar[str] = _("Identity key")
    label_plural: ClassVar[str] = _("Identity keys")

    description: str = Field("", title=_("Description"), description=_("What it identifies."))
    sources: list[str] = Field(
        default_factory=list,
        title=_("Sources"),
        description=_("Dotted paths in the payload, in order; the first that is not empty wins."),
    )
    required: bool = Field(
        False, title=_("Required"), description=_("Reported as missing when nothing fills it.")
    )
    identifies_customer: bool = Field(
        False,
        title=_("Identifies the customer"),
        description=_("Only a credential may set it; a changed value needs a new session."),
    )
    scope: str = Field(
        "session",
        title=_("Carried"),
        description=_("session: kept for the next turns. turn: forgotten after this one."),
        pattern="^(session|turn)$",
    )
