"""The record of a release: complete, signed, verified to the byte, and importable again."""

import base64
import json
import random
from io import StringIO

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import override_settings
from django.utils import translation

from agentops.env import key_of_32_bytes
from apps.releases.change_models import Approval, ChangePatch, ChangeRequest, DeploymentEvent
from apps.releases.changes.policy import Risk
from apps.releases.environments.services import binding_set, release_deploy
from apps.releases.evidence.notes import notes_drafted
from apps.releases.evidence.record import (
    RecordRefused,
    record_sign,
    record_verify,
    release_notes,
    release_record,
)
from apps.releases.evidence.signing import public_key, signed_text
from apps.releases.models import Release
from apps.releases.patches.comparing import ItemChange, manifest_items
from apps.releases.patches.diff import content_diff
from apps.releases.selectors import release_load
from apps.releases.services import item_archive, item_save, release_publish
from apps.releases.tests.conftest import item, save, small_world
from apps.runtime.canonical import canonical_json, sha256_text
from apps.tenants.audit import entry_hash, trail_verify
from apps.tenants.models import AuditEntry, Tenant
from apps.tenants.scope import tenant_transaction

TAMPERINGS = 1000


@pytest.fixture
def published(billing) -> Release:
    """acme with two releases; the second changed a prompt, runs in dev, came by a request."""
    release_publish(actor="user:olga", note="First")
    before = item("prompt", "billing").head
    save("prompt", "billing", system="Be brief, e não mostre números.")
    release = release_publish(actor="user:ana", note="Second")
    request = ChangeRequest.objects.create(
        number=7,
        title="Shorter",
        reason="Customers read on phones",
        status="published",
        author="user:olga",
        editors=canonical_json(["user:olga"]),
        manifest_sha256=release.sha256,
        release=release,
    )
    ChangePatch.objects.create(
        request=request,
        kind="prompt",
        slug="billing",
        action="change",
        base=before,
        operations=canonical_json([{"op": "set", "path": "system", "before": "a", "after": "b"}]),
        edited_by="user:olga",
    )
    for person, sha in (("user:ana", release.sha256), ("user:zoe", "0" * 64)):
        Approval.objects.create(
            request=request,
            person=person,
            decision="approve",
            manifest_sha256=sha,
            terms="1" * 64,
            duties=canonical_json(["domain"]),
            on_behalf_of="user:otto",
            comment="Reads well.",
        )
    binding_set(
        environment="dev",
        what="address",
        name="telecom_mcp",
        value="http://127.0.0.1:9001/mcp",
        actor="user:alice",
    )
    release_deploy(release=release, environment="dev", actor="user:otto")
    return release


def record_bytes(release: Release) -> bytes:
    return record_sign(release_record(release)).encode("utf-8", "surrogatepass")


def test_record__of_a_release__holds_what_was_published_why_and_by_whom(published):
    record = record_verify(record_bytes(published))
    assert record["tenant"] == "acme-releases"
    assert record["release"]["number"] == 2
    assert sha256_text(record["manifest"]) == published.sha256 == record["release"]["sha256"]
    assert record["parent"] == {"number": 1, "sha256": Release.objects.get(number=1).sha256}
    (change,) = record["changes"]
    assert (change["kind"], change["slug"], change["change"]) == ("prompt", "billing", "changed")
    assert [field["path"] for field in change["fields"]] == ["system"]
    (request,) = record["requests"]
    assert (request["number"], request["author"], request["editors"]) == (
        7,
        "user:olga",
        ["user:olga"],
    )
    assert request["patches"][0]["base_revision"] == 1
    assert request["patches"][0]["operations"][0]["after"] == "b"
    assert [
        (a["person"], a["is_of_this_manifest"], a["duties"], a["on_behalf_of"])
        for a in request["approvals"]
    ] == [("user:ana", True, ["domain"], "user:otto"), ("user:zoe", False, ["domain"], "user:otto")]
    assert [gate for gate in record["gates"] if gate["level"] == "block"] == []
    (deployment,) = record["deployments"]
    assert (deployment["environment"], deployment["verb"], deployment["actor"]) == (
        "dev",
        "deploy",
        "user:otto",
    )
    assert [record[name] for name in ("turns", "evidence", "break_glass")] == [[], [], []]
    assert set(record["notes"]) == {"en", "pt-br"}
    assert len(record["audit_trail"]["hash"]) == 64


def test_record__of_an_emergency__says_who_broke_the_glass_and_who_ratified(published):
    request = ChangeRequest.objects.get()
    request.broken_glass_by, request.broken_glass_reason = "user:otto", "Wrong prices"
    request.ratified_by = "user:ana"
    request.save()
    (facts,) = release_record(published)["break_glass"]
    assert (facts["request"], facts["by"], facts["reason"], facts["ratified_by"]) == (
        7,
        "user:otto",
        "Wrong prices",
        "user:ana",
    )


def test_record__with_any_byte_changed__fails_verification(published):
    text = record_bytes(published)
    assert record_verify(text)
    draw, survived = random.Random(6), []
    places = [draw.randrange(len(text)) for _ in range(TAMPERINGS - 200)]
    # All of the signature, where a bit more or less could go unseen.
    places += range(len(text) - 200, len(text))
    for place in places:
        other = draw.choice([byte for byte in range(256) if byte != text[place]])
        changed = text[:place] + bytes([other]) + text[place + 1 :]
        try:
            record_verify(changed)
            survived.append((place, other))
        except RecordRefused:
            pass
    assert (len(places), survived) == (TAMPERINGS, [])


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text[:-1],
        lambda text: text + "\n",
        lambda text: text.replace(":", ": ", 1),
        lambda text: text[: len(text) // 2],
        lambda text: "",
        lambda text: "[]",
        lambda text: "{" * 100_000,
        lambda text: text.replace('{"document"', '{"again":1,"document"', 1),
        lambda text: text.replace('"user:ana"', '"user:bob"', 1),
        lambda text: text.replace('"Ed25519"', '"none"', 1),
    ],
)
def test_record__cut_reformatted_or_edited__is_refused(published, change):
    text = record_sign(release_record(published))
    with pytest.raises(RecordRefused):
        record_verify(change(text))


def test_record__signed_anew_with_another_key__is_not_trusted_here_but_where_it_is(published):
    record = release_record(published)
    foreign = base64.b64encode(bytes(range(32))).decode()
    with override_settings(RELEASE_SIGNING_KEY=foreign):
        text, theirs = record_sign(record), public_key()
        assert record_verify(text) == record
    with pytest.raises(RecordRefused, match="not trusted"):
        record_verify(text)
    assert record_verify(text, public_keys=[theirs]) == record
    with override_settings(RELEASE_TRUSTED_KEYS=[theirs]):
        assert record_verify(text) == record


def test_record__after_the_secret_key_changed__still_verifies_with_the_former_one(published):
    text = record_bytes(published)
    with override_settings(SECRET_KEY="another one"):
        from django.conf import settings

        with pytest.raises(RecordRefused):
            record_verify(text)
        former = settings.SECRET_KEY_FALLBACKS
        assert former == []
    from django.conf import settings

    with override_settings(SECRET_KEY="another one", SECRET_KEY_FALLBACKS=[settings.SECRET_KEY]):
        assert record_verify(text)


def test_record__well_signed_but_of_another_manifest_or_sort__is_refused(published):
    record = release_record(published)
    manifest = record["manifest"].replace("brief", "rude")
    with pytest.raises(RecordRefused, match="manifest"):
        record_verify(signed_text({**record, "manifest": manifest}))
    with pytest.raises(RecordRefused, match="no record"):
        record_verify(signed_text({"format": "something"}))


def test_record__its_manifest_in_an_empty_tenant__publishes_the_same_sha256(published, world):
    items = manifest_items(record_verify(record_bytes(published))["manifest"])
    with tenant_transaction(world.other):
        for (kind, slug), content in items.items():
            item_save(kind=kind, slug=slug, content=content, actor="user:charlie")
        assert release_publish(actor="user:charlie").sha256 == published.sha256


# -- commands --------------------------------------------------------------------------------------
def test_commands__write_and_verify_a_record(published, tmp_path):
    path = tmp_path / "release.json"
    call_command("release_record", "acme-releases", "2", str(path), stderr=StringIO())
    out = StringIO()
    call_command("verify_record", str(path), stdout=out)
    assert "genuine. Release #2 of acme-releases" in out.getvalue()
    assert "approved by user:ana (domain)" in out.getvalue()
    assert "zoe" not in out.getvalue()
    by_sha = StringIO()
    call_command("release_record", "acme-releases", published.sha256[:12], stdout=by_sha)
    assert record_verify(by_sha.getvalue())["release"]["number"] == 2
    manifest = StringIO()
    call_command("verify_record", str(path), manifest=True, stdout=manifest)
    assert sha256_text(manifest.getvalue()) == published.sha256


def test_verify_command__of_a_changed_or_absent_file__ends_with_a_sentence(published, tmp_path):
    path = tmp_path / "release.json"
    data = record_bytes(published)
    path.write_bytes(data.replace(b"user:ana", b"user:bob", 1))
    with pytest.raises(CommandError, match=r"NOT GENUINE. It was changed after it was signed\."):
        call_command("verify_record", str(path))
    with pytest.raises(CommandError, match="No such file"):
        call_command("verify_record", str(tmp_path / "nothing"))


@pytest.mark.once  # It changes rows, which the application's role may not.
def test_verify_command__with_the_trail_written_anew__says_which_entry_is_not_as_it_was(
    published, tmp_path
):
    """Somebody who owns the database rewrites the trail, every hash and its end: it verifies again,
    but no longer goes through the entry that a record outside of the database names."""
    path = tmp_path / "release.json"
    path.write_bytes(record_bytes(published))
    out = StringIO()
    call_command("verify_record", str(path), trail=True, stdout=out)
    assert "genuine" in out.getvalue()
    rewrite_trail()
    assert trail_verify(Tenant.objects.get(slug="acme-releases")).broken_at == 0
    with pytest.raises(CommandError, match=r"no longer has entry \d+ as it was then"):
        call_command("verify_record", str(path), trail=True)


def rewrite_trail() -> None:
    previous = ""
    with connection.cursor() as cursor:
        for entry in AuditEntry.objects.order_by("sequence"):
            fields = {
                name: getattr(entry, name)
                for name in ("sequence", "at", "action", "entity", "detail")
            }
            new = entry_hash(**fields, actor="user:nobody", previous_hash=previous)
            cursor.execute(
                "UPDATE tenants_auditentry SET actor = 'user:nobody', previous_hash = %s, hash = %s"
                " WHERE id = %s",
                [previous, new, entry.pk],
            )
            previous = new
        cursor.execute(
            "UPDATE tenants_tenant SET audit_hash = %s WHERE slug = 'acme-releases'", [previous]
        )


@pytest.mark.parametrize(
    ("tenant", "release"),
    [
        ("nobody", "1"),
        ("other", "1"),
        ("acme-releases", "9"),
        ("acme-releases", "abc"),
        ("acme-releases", "latest"),  # A release is named by what it is, never by a floating name.
        ("acme-releases", ""),
    ],
)
def test_record_command__of_what_is_not_there__says_so(published, world, tenant, release):
    with pytest.raises(CommandError, match=r"There is no tenant|has no release"):
        call_command("release_record", tenant, release)


@pytest.mark.parametrize(
    "value", ["x", "AAAA", "not base64!", base64.b64encode(b"x" * 31).decode()]
)
def test_signing_key__that_is_none__stops_the_process_with_its_name(value):
    with pytest.raises(ImproperlyConfigured, match="RELEASE_SIGNING_KEY must be 32 bytes"):
        key_of_32_bytes("RELEASE_SIGNING_KEY", value)
    made = base64.b64encode(Ed25519PrivateKey.generate().private_bytes_raw()).decode()
    assert key_of_32_bytes("RELEASE_SIGNING_KEY", made) == made


# -- notes -----------------------------------------------------------------------------------------
def sentences(groups):
    return {group.code: group.sentences for group in groups}


def test_notes__of_a_release__say_in_sentences_what_changed(published):
    notes = sentences(release_notes(published))
    (line,) = notes["changed"]
    assert line.startswith("Prompt billing: ")
    assert "words out" in line or "went from" in line
    assert set(notes) == {"changed"}


def test_notes__of_everything_that_can_happen__have_a_sentence_each(acme):
    small_world()
    first = release_publish(actor="a")
    save("intent", "bill_explain", agent="billing_agent", keywords=["bill", "fatura"])
    save("prompt", "more", system="x")
    save("agent", "billing_agent", prompt="billing", tools=[])
    item_archive(item=item("tool", "get_bill"), actor="a")
    second = release_publish(actor="a")
    assert second.parent_id == first.pk
    notes = sentences(release_notes(second))
    assert notes["added"] == ["Prompt more is new."]
    assert notes["removed"] == ["Tool get_bill is gone."]
    changed = notes["changed"]
    assert "Intent bill_explain: Keywords gained “fatura”." in changed
    assert "Intent bill_explain: Keywords lost “invoice”." in changed
    assert any(
        line.startswith("Agent billing_agent: ") and "lost “get_bill”" in line for line in changed
    )
    assert release_load(acme.pk, second.pk).sha256 == second.sha256


def test_notes__with_a_weakening__begin_with_it():
    change = ItemChange(
        "rail_policy", "default", "changed", content_diff({"a": [1, 2]}, {"a": [2, 1]})
    )
    risk = Risk("rail_policy", "default", "input", "weakening", "rail_removed", "A rail is gone.")
    first, second = notes_drafted([change], [risk])
    assert (first.code, len(first.sentences)) == ("weakening", 1)
    assert first.sentences == ["Rail policy default (input): A rail is gone."]
    assert second.sentences == ["Rail policy default: a stands in another order."]


def test_notes__of_an_entry_with_a_name__call_it_by_its_name():
    rails = [{"code": "MSK", "on_deny": ""}, {"code": "PINJ", "on_deny": ""}]
    fields = content_diff({"input": rails}, {"input": rails[:1]})
    (group,) = notes_drafted([ItemChange("rail_policy", "default", "changed", fields)])
    assert group.sentences == ["Rail policy default: Input rails lost “PINJ”."]


def test_notes__of_a_long_change__stop_at_a_dozen_lines():
    before = {f"f{n:02}": 1 for n in range(20)}
    change = ItemChange("prompt", "p", "changed", content_diff(before, {k: 2 for k in before}))
    (group,) = notes_drafted([change])
    assert len(group.sentences) == 13
    assert group.sentences[-1] == "Prompt p: 8 more changes."


def test_notes__in_portuguese__are_made_in_that_language(published):
    with translation.override("pt-br"):
        assert release_notes(published)[0].title == translation.gettext("Changed")


def test_deployments__of_a_canary__are_in_its_record_too(published):
    DeploymentEvent.objects.create(
        environment="dev",
        verb="canary_start",
        release=Release.objects.get(number=1),
        canary=published,
        canary_share=10,
        actor="user:otto",
        terms=json.dumps({}),
    )
    assert [d["verb"] for d in release_record(published)["deployments"]] == [
        "deploy",
        "canary_start",
    ]
