"""Customers' data goes somewhere else, or in another way. Pure."""

from collections.abc import Iterator

from apps.governance.weakening.edited import Edited, Finder


def _moved(name: str) -> Finder:
    """Find another value of ``name``; that of a new item when it has one."""

    def find(edited: Edited) -> Iterator[str]:
        if edited.changed(name) and (edited.after.get(name) or not edited.is_new):
            yield name

    return find


profile_address_changed = _moved("base_url")
profile_credential_changed = _moved("credential")
server_address_changed = _moved("endpoint")
server_credential_changed = _moved("credential")


def provider_changed(edited: Edited) -> Iterator[str]:
    """Another sort of model reads what customers write; the scripted one is none."""
    if edited.changed("provider") and edited.after.get("provider") != "scripted":
        yield "provider"


def transport_changed(edited: Edited) -> Iterator[str]:
    """Tools are called in another protocol."""
    if not edited.is_new and edited.changed("transport"):
        yield "transport"


def authorisation_changed(edited: Edited) -> Iterator[str]:
    """Tools are called with somebody else's right, or with a wider one."""
    if edited.is_new:
        return
    for name in ("auth", "client_id", "scopes"):
        if edited.changed(name):
            yield name


PROFILE: tuple[Finder, ...] = (
    profile_address_changed,
    profile_credential_changed,
    provider_changed,
)
