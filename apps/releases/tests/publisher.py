"""A process of its own that publishes: ``python -m apps.releases.tests.publisher TENANT ACTOR``.

Says ``ready``; then for every line it reads: saves a prompt named after the actor when the line is
``save``, publishes, and prints number and sha256. ``request 7`` publishes change request 7 as anybody
would, without an authority, and prints the name of the refusal when there is one.
"""

import sys

import django


def main(tenant_id: int, actor: str) -> None:
    django.setup()
    from apps.releases.authority import setting_up
    from apps.releases.services import item_save, release_publish
    from apps.tenants.scope import tenant_scope

    print("ready", flush=True)
    for line in sys.stdin:
        if line.startswith("request "):
            print(*_request(tenant_id, actor, int(line.split()[1])), flush=True)
            continue
        with tenant_scope(tenant_id), setting_up("a test"):
            if line.strip() == "save":
                item_save(kind="prompt", slug=actor, content={"system": actor}, actor=actor)
            release = release_publish(actor=actor)
        print(release.number, release.sha256, flush=True)


def _request(tenant_id: int, actor: str, number: int) -> tuple[object, ...]:
    from apps.releases.change_models import ChangeRequest
    from apps.releases.changes.publishing import request_publish
    from apps.releases.changes.refusals import ChangeRefused
    from apps.tenants.scope import tenant_scope, tenant_transaction

    with tenant_scope(tenant_id):
        with tenant_transaction():
            request = ChangeRequest.objects.get(number=number)
        try:
            release = request_publish(request=request, actor=actor)
        except ChangeRefused as refusal:
            return (type(refusal).__name__,)
    return release.number, release.sha256


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
