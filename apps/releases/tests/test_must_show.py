"""Change, publish, deploy, roll back, set back: the sha256 says what is the same."""

import hashlib

from apps.agents.config import PromptConfig
from apps.releases.environments.services import binding_set, release_deploy
from apps.releases.models import Deployment, Release
from apps.releases.selectors import release_load
from apps.releases.services import item_restore_head, release_publish
from apps.releases.tests.conftest import ALICE, item, save
from apps.routing.config import IntentConfig
from apps.tenants.models import Tenant


def stored_sha256(release: Release) -> str:
    """Recompute the hash from the bytes in the database."""
    text = Release.objects.values_list("manifest", flat=True).get(pk=release.pk)
    return hashlib.sha256(text.encode()).hexdigest()


def test_release__prompt_and_keyword_changed_and_taken_back__gives_the_same_sha256(
    billing: Tenant,
) -> None:
    binding_set(
        environment="production",
        what="address",
        name="telecom_mcp",
        value="http://127.0.0.1:9001/mcp",
        actor=ALICE,
    )
    first = release_publish(actor=ALICE)
    release_deploy(release=first, environment="production", actor=ALICE)
    prompt, intent = item("prompt", "billing"), item("intent", "bill_explain")
    old_prompt, old_intent = prompt.head, intent.head
    assert old_prompt is not None
    assert old_intent is not None

    save("prompt", "billing", system="You explain bills kindly.")
    save(
        "intent",
        "bill_explain",
        agent="billing_agent",
        keywords=["bill", "invoice", "charge"],
        mcp_tools=["get_bill"],
    )
    second = release_publish(actor=ALICE)
    release_deploy(release=second, environment="production", actor=ALICE)

    assert second.sha256 != first.sha256
    assert second.number == 2
    loaded = release_load(billing.pk, second.pk)
    assert loaded.get(PromptConfig, "billing").system == "You explain bills kindly."
    assert loaded.get(IntentConfig, "bill_explain").keywords == ["bill", "invoice", "charge"]

    release_deploy(release=first, environment="production", actor=ALICE)
    running = Deployment.objects.get(environment="production").release
    assert running.pk == first.pk
    assert stored_sha256(running) == first.sha256 == running.sha256

    item_restore_head(item=prompt, revision=old_prompt, actor=ALICE)
    item_restore_head(item=intent, revision=old_intent, actor=ALICE)
    again = release_publish(actor=ALICE)
    assert again.pk == first.pk
    assert stored_sha256(again) == first.sha256
    assert Release.objects.count() == 2
