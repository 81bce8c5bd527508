"""From an edit to its record: what Olga asked for and Ana approved is what the record proves."""

import pytest
from django.utils import timezone

from apps.releases.changes.publishing import request_publish
from apps.releases.changes.services import request_decide
from apps.releases.evidence.blast_radius import blast_radius
from apps.releases.evidence.history import environment_at, item_at
from apps.releases.evidence.record import record_sign, record_verify, release_record
from apps.releases.tests.conftest import item
from apps.releases.tests.test_change_pages import ANA, OLGA, acme, drafted, submitted
from apps.tenants.scope import tenant_transaction

__all__ = ["acme"]
pytestmark = [pytest.mark.django_db, pytest.mark.governed]


def test_record__of_a_published_request__binds_the_approval_to_exactly_what_was_published(acme):
    request = submitted(acme, system="Shorter words.")
    with tenant_transaction(acme.acme):
        before = timezone.now()
        request_decide(
            request=request,
            actor=ANA,
            decision="approve",
            sha256=request.manifest_sha256,
            comment="Reads well.",
        )
        request.refresh_from_db()
        release = request_publish(request=request, actor=ANA)
        record = record_verify(record_sign(release_record(release)))
        (told,) = record["requests"]
        (approval,) = told["approvals"]
        assert (told["author"], told["editors"]) == (OLGA, [OLGA])
        assert (approval["person"], approval["comment"]) == (ANA, "Reads well.")
        assert approval["is_of_this_manifest"]
        assert approval["manifest_sha256"] == release.sha256 == record["release"]["sha256"]
        assert "domain" in approval["duties"]
        (patch,) = told["patches"]
        assert [operation["path"] for operation in patch["operations"]] == ["system"]
        assert [change["slug"] for change in record["changes"]] == ["billing"]
        assert [(d["environment"], d["verb"]) for d in record["deployments"]] == [
            ("staging", "deploy")
        ]
        # And the heads moved with it: before and after are both still known.
        prompt = item("prompt", "billing")
        then, now = item_at(prompt, before).revision, item_at(prompt, timezone.now()).revision
        assert then is not None
        assert now is not None
        assert (then.number, now.number) == (1, 2)
        staging = environment_at("staging", timezone.now()).release
        assert staging is not None
        assert staging.pk == release.pk


def test_reach__of_an_item_in_a_draft__names_the_request(acme):
    request = drafted(acme)
    with tenant_transaction(acme.acme):
        (patch,) = blast_radius("prompt", "billing").requests
        assert patch.request_id == request.pk
        assert blast_radius("prompt", "billing").agents == ("billing",)
