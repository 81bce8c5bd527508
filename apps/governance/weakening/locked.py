"""Fields that decide whose data goes where: any touch is seen by a second role. Pure."""

from collections.abc import Iterator

from apps.governance.weakening.edited import Edited

LOCKED_FIELDS: frozenset[tuple[str, str]] = frozenset(
    {
        ("identity_key", "identifies_customer"),
        ("identity_key", "scope"),
        ("model_profile", "base_url"),
        ("model_profile", "credential"),
        ("model_profile", "provider"),
        ("parameter_mapping", "tool"),
        ("tool", "mcp_server"),
        ("tool", "remote_name"),
        ("tool", "tool_type"),
        ("tool_server", "credential"),
        ("tool_server", "endpoint"),
        ("tool_server", "transport"),
    }
)


def touched(edited: Edited) -> Iterator[str]:
    """A locked field of an item that was there has another value, milder or stricter."""
    if edited.is_new:
        return
    for kind, name in sorted(LOCKED_FIELDS):
        if kind == edited.kind and edited.changed(name):
            yield name


def archived(_edited: Edited) -> Iterator[str]:
    """The whole item leaves."""
    yield ""
