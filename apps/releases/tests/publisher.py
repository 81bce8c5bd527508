"""A process of its own that publishes: ``python -m apps.releases.tests.publisher TENANT ACTOR``.

Says ``ready``; then for every line it reads: saves a prompt named after the actor when the line is
``save``, publishes, and prints number and sha256.
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
        with tenant_scope(tenant_id), setting_up("a test"):
            if line.strip() == "save":
                item_save(kind="prompt", slug=actor, content={"system": actor}, actor=actor)
            release = release_publish(actor=actor)
        print(release.number, release.sha256, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
