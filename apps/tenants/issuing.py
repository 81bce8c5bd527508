"""Who stands behind a system's key: the person who issued it saw its text and can act with it."""

from apps.tenants.models import ApiKey

_KEY = "key:"


def issuer_of(actor: str) -> str:
    """Return who issued the key that ``actor`` (``key:ab12cd34``) is, e.g. ``user:alice``.

    "" for everybody else and for a key that is not known. Inside a tenant's scope.
    """
    if not actor.startswith(_KEY):
        return ""
    issuers = ApiKey.objects.filter(prefix=actor.removeprefix(_KEY))
    return issuers.values_list("created_by", flat=True).first() or ""


def with_issuer(actor: str) -> tuple[str, ...]:
    """Return ``actor`` and, of a system's key, who issued it: what one did, both did."""
    issuer = issuer_of(actor)
    return (actor, issuer) if issuer else (actor,)
