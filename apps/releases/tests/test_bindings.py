"""Addresses and names of credentials, per environment."""

import json
from typing import Any

import pytest

from apps.releases.authority import setting_up
from apps.releases.change_models import BindingProposal
from apps.releases.content import InvalidContent
from apps.releases.environments.binding_values import InvalidBinding, binding_check
from apps.releases.environments.services import (
    BindingInUse,
    BindingNeedsApproval,
    NotResponsible,
    ProposalRefused,
    UnknownEnvironment,
    binding_decide,
    binding_propose,
    binding_remove,
    binding_set,
    binding_withdraw,
    canary_start,
    canary_stop,
    release_deploy,
)
from apps.releases.models import Binding, Deployment
from apps.releases.selectors import bindings_load
from apps.releases.services import release_publish
from apps.releases.tests.conftest import ALICE, audited, save
from apps.tenants.models import AuditEntry, Tenant
from apps.tenants.scope import tenant_transaction

ADDRESS = "http://127.0.0.1:9001/mcp"


def bind(name: str = "telecom_mcp", value: str = ADDRESS, what: str = "address") -> Binding:
    return binding_set(environment="production", what=what, name=name, value=value, actor=ALICE)


@pytest.mark.parametrize(
    "value",
    [
        "http://127.0.0.1:9001/mcp",
        "https://models.example.com/v1",
        "https://models.example.com/v1?api-version=2026-01-01",
        "http://[::1]:8080",
        "https://exemplo.com.br/ção",
    ],
)
def test_address__http_url_without_secrets__is_accepted(value: str) -> None:
    binding_check(what="address", name="x", value=value)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "telecom",
        "ftp://host/x",
        "file:///etc/passwd",
        "//host/x",
        "http://",
        "http:///path",
        "http://user:hunter2@host/",
        "http://hunter2@host/",
        "https://host/v1?api_key=hunter2",
        "https://host/v1?X-Access-Token=hunter2",
        "https://host/v1?a=1&sig=hunter2",
        "https://host/#hunter2",
        "http://host:99999/",
        "http://host:port/",
        "http://[::1/",
        "http://ho st/",
        "http://host/\n",
        "http://host/\x00",
        "http://host/" + "x" * 500,
    ],
)
def test_address__anything_else__is_refused_without_repeating_it(value: str) -> None:
    with pytest.raises(InvalidBinding) as invalid:
        binding_check(what="address", name="x", value=value)
    assert "hunter2" not in str(invalid.value)


@pytest.mark.parametrize("value", ["OPENAI_API_KEY", "TELECOM_MCP_TOKEN", "K", "A1_B2", "S3_KEY"])
def test_credential__name_of_a_variable__is_accepted(value: str) -> None:
    binding_check(what="credential", name="x", value=value)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "openai_api_key",
        "sk-proj-abcdef",
        "1KEY",
        "_KEY",
        "KEY ",
        "KEY\n",
        "CHAVE_É",
        "A" * 121,
        "AKIAIOSFODNN7EXAMPLE",
        "ASIAIOSFODNN7EXAMPLE",
        "X9Q2ZK7J4M1N8B5V3C6T",
        "KEY_X9Q2ZK7J4M1N8B5V3C6T",
        "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    ],
)
def test_credential__a_secret_or_no_name__is_refused_without_repeating_it(value: str) -> None:
    with pytest.raises(InvalidBinding) as invalid:
        binding_check(what="credential", name="x", value=value)
    assert not value.strip() or value.strip() not in str(invalid.value)


@pytest.mark.parametrize(
    "value", ["SECRET_KEY", "DATABASE_URL", "MIGRATION_DATABASE_URL", "REDIS_URL", "PGPASSWORD"]
)
def test_credential__the_platforms_own_secret__is_refused(value: str) -> None:
    # Bound to a model at an address of one's own, it would be sent there.
    with pytest.raises(InvalidBinding, match="belongs to the platform"):
        binding_check(what="credential", name="x", value=value)


@pytest.mark.parametrize(
    ("what", "name"), [("password", "x"), ("", "x"), ("address", ""), ("address", "a b")]
)
def test_binding__unknown_type_or_bad_name__is_refused(what: str, name: str) -> None:
    with pytest.raises(InvalidBinding):
        binding_check(what=what, name=name, value=ADDRESS)


def test_binding_set__new__is_stored_and_audited(acme: Tenant) -> None:
    binding = bind()
    assert (binding.environment, binding.what, binding.name) == (
        "production",
        "address",
        "telecom_mcp",
    )
    assert (binding.value, binding.updated_by) == (ADDRESS, ALICE)
    assert audited() == [(ALICE, "binding.set", "binding:production/address:telecom_mcp")]
    assert json.loads(AuditEntry.objects.get().detail) == {"previous": "", "value": ADDRESS}


def test_binding_set__same_value__writes_nothing(acme: Tenant) -> None:
    first = bind()
    assert bind() == first
    assert len(audited()) == 1


def test_binding_set__same_name_as_address_and_credential__are_two(acme: Tenant) -> None:
    bind(name="llm")
    bind(name="llm", what="credential", value="OPENAI_API_KEY")
    assert Binding.objects.count() == 2


def test_binding_set__deployed_environment__raises_its_version_only(billing: Tenant) -> None:
    bind()
    release = release_publish(actor=ALICE)
    binding_set(environment="dev", what="address", name="telecom_mcp", value=ADDRESS, actor=ALICE)
    for environment in ("dev", "production"):
        release_deploy(release=release, environment=environment, actor=ALICE)
    before = bindings_load(billing.pk, "production", 1)

    bind(value="http://127.0.0.1:9999/mcp")
    versions = dict(Deployment.objects.values_list("environment", "bindings_version"))
    assert versions == {"dev": 1, "production": 2}
    assert before == {"address:telecom_mcp": ADDRESS}
    assert bindings_load(billing.pk, "production", 2) == {
        "address:telecom_mcp": "http://127.0.0.1:9999/mcp"
    }
    assert bindings_load(billing.pk, "production", 1) == {"address:telecom_mcp": ADDRESS}


def test_binding_set__unknown_environment__is_refused(acme: Tenant) -> None:
    with pytest.raises(UnknownEnvironment):
        binding_set(environment="moon", what="address", name="x", value=ADDRESS, actor=ALICE)


def test_binding_remove__needed_by_the_deployed_release__is_refused(billing: Tenant) -> None:
    binding = bind()
    release_deploy(release=release_publish(actor=ALICE), environment="production", actor=ALICE)
    with pytest.raises(BindingInUse) as in_use:
        binding_remove(binding=binding, actor=ALICE)
    assert [(n["kind"], n["slug"]) for n in in_use.value.needed_by] == [("tool_server", "telecom")]
    assert Binding.objects.count() == 1


def test_binding_remove__not_needed__is_removed_and_audited(billing: Tenant) -> None:
    bind()
    spare = bind(name="spare")
    release_deploy(release=release_publish(actor=ALICE), environment="production", actor=ALICE)
    binding_remove(binding=spare, actor=ALICE)
    assert list(Binding.objects.values_list("name", flat=True)) == ["telecom_mcp"]
    assert audited()[-1] == (ALICE, "binding.removed", "binding:production/address:spare")
    assert Deployment.objects.get().bindings_version == 2


def test_binding_remove__needed_by_heads_only__is_removed(billing: Tenant) -> None:
    save("tool_server", "telecom", endpoint="other")
    binding_remove(binding=bind(), actor=ALICE)
    assert not Binding.objects.exists()


def test_binding_remove__another_tenants__is_as_absent(acme: Tenant) -> None:
    binding = bind()
    with (
        tenant_transaction(Tenant.objects.create(slug="other-releases", name="Other")),
        pytest.raises(Binding.DoesNotExist),
    ):
        binding_remove(binding=binding, actor="user:charlie")
    assert Binding.objects.get() == binding


# -- production: a second person ----------------------------------------------------------------

OTTO, ANA = "user:otto", "user:ana"
OTHER = "https://tools.example.com/mcp"


@pytest.fixture
def duties(acme: Tenant, settings: Any) -> Tenant:
    """acme with one address bound in production; duties by name (``policies``)."""
    settings.CHANGE_POLICY = "apps.releases.tests.policies.POLICY"
    settings.CHANGE_LISTENERS = []
    with setting_up("a test's world"):
        bind()
    return acme


def propose(actor: str = OTTO, **given: Any) -> BindingProposal:
    values: dict[str, Any] = {
        "environment": "production", "what": "address", "name": "telecom_mcp", "value": OTHER,
        "reason": "moved", **given,
    }  # fmt: skip
    return binding_propose(actor=actor, **values)


def bound(name: str = "telecom_mcp") -> str:
    found = Binding.objects.filter(environment="production", name=name)
    return str(found.values_list("value", flat=True).first() or "")


@pytest.mark.governed
def test_binding__of_production__is_not_changed_by_one_person(duties: Tenant) -> None:
    with pytest.raises(BindingNeedsApproval, match="propose"):
        binding_set(
            environment="production", what="address", name="telecom_mcp", value=OTHER, actor=OTTO
        )
    with pytest.raises(BindingNeedsApproval):
        binding_remove(binding=Binding.objects.get(), actor=OTTO)
    # The same again is no change, and the other environments have no customers.
    bind()
    binding_set(environment="staging", what="address", name="x", value=OTHER, actor=OTTO)
    assert bound() == ADDRESS


@pytest.mark.governed
def test_proposal__approved_by_another_person__holds_at_once(duties: Tenant) -> None:
    proposal = propose()
    assert bound() == ADDRESS
    decided = binding_decide(proposal=proposal, actor=ANA, approve=True)
    assert (decided.status, decided.decided_by, decided.previous) == ("approved", ANA, ADDRESS)
    assert bound() == OTHER
    assert [entry[:2] for entry in audited()[-3:]] == [
        (OTTO, "binding.proposed"),
        (OTTO, "binding.set"),
        (ANA, "binding.decided"),
    ]


@pytest.mark.governed
@pytest.mark.parametrize("actor", [OTTO, "user:proxy", ALICE, "user:bob", "key:ab", ""])
def test_proposal__decided_by_who_may_not__stays_open(duties: Tenant, actor: str) -> None:
    proposal = propose()
    for approve in (True, False):
        with pytest.raises(NotResponsible):
            binding_decide(proposal=proposal, actor=actor, approve=approve, comment="x")
    proposal.refresh_from_db()
    assert (proposal.status, bound()) == ("open", ADDRESS)


@pytest.mark.governed
def test_proposal__of_something_new_and_of_a_removal__are_applied(duties: Tenant) -> None:
    new = propose(what="credential", name="model", value="MODEL_KEY")
    binding_decide(proposal=new, actor=ANA, approve=True)
    assert bound("model") == "MODEL_KEY"
    gone = propose(what="credential", name="model", value="ignored", remove=True)
    assert (gone.value, gone.previous) == ("", "MODEL_KEY")
    binding_decide(proposal=gone, actor=ANA, approve=True)
    assert bound("model") == ""
    assert audited()[-2][1] == "binding.removed"


@pytest.mark.governed
def test_proposal__whose_value_changed_since__is_refused(duties: Tenant) -> None:
    proposal = propose()
    with setting_up("an operator was quicker"):
        bind(value="http://third.test/mcp")
    with pytest.raises(ProposalRefused, match="changed since"):
        binding_decide(proposal=proposal, actor=ANA, approve=True)
    assert bound() == "http://third.test/mcp"
    proposal.refresh_from_db()
    assert proposal.status == "open"
    binding_decide(proposal=proposal, actor=ANA, approve=False, comment="stale")


@pytest.mark.governed
def test_proposal__decided_or_withdrawn__is_not_decided_again(duties: Tenant) -> None:
    proposal = propose()
    with pytest.raises(NotResponsible):
        binding_withdraw(proposal=proposal, actor=ANA)
    with pytest.raises(InvalidContent):
        binding_decide(proposal=proposal, actor=ANA, approve=False)
    binding_decide(proposal=proposal, actor=ANA, approve=False, comment="not there")
    for call in (
        lambda: binding_decide(proposal=proposal, actor=ANA, approve=True),
        lambda: binding_withdraw(proposal=proposal, actor=OTTO),
    ):
        with pytest.raises(ProposalRefused, match="decided"):
            call()
    assert bound() == ADDRESS
    withdrawn = binding_withdraw(proposal=propose(), actor=OTTO)
    assert withdrawn.status == "withdrawn"


@pytest.mark.governed
def test_proposal__that_changes_nothing_or_is_open_already__is_refused(duties: Tenant) -> None:
    with pytest.raises(ProposalRefused, match="so already"):
        propose(value=ADDRESS)
    with pytest.raises(ProposalRefused, match="so already"):
        propose(name="never", remove=True)
    propose()
    with pytest.raises(ProposalRefused, match="open"):
        propose(ANA, value="http://third.test/mcp")
    assert BindingProposal.objects.count() == 1


@pytest.mark.governed
@pytest.mark.parametrize(
    ("given", "refusal"),
    [
        ({"value": "http://user:hunter2@host/"}, InvalidBinding),
        ({"value": ""}, InvalidBinding),
        ({"what": "secret"}, InvalidBinding),
        ({"name": "no blanks"}, InvalidBinding),
        ({"reason": ""}, InvalidContent),
        ({"reason": "x" * 501}, InvalidContent),
        ({"environment": "moon"}, UnknownEnvironment),
    ],
)
def test_proposal__bad_input__is_refused_and_nothing_is_kept(
    duties: Tenant, given: dict[str, Any], refusal: type[Exception]
) -> None:
    with pytest.raises(refusal) as found:
        propose(**given)
    assert "hunter2" not in str(found.value)
    assert not BindingProposal.objects.exists()


@pytest.mark.governed
def test_proposal__another_tenants__is_as_absent(duties: Tenant) -> None:
    proposal = propose()
    with tenant_transaction(Tenant.objects.create(slug="other-proposals", name="Other")):
        with pytest.raises(BindingProposal.DoesNotExist):
            binding_decide(proposal=proposal, actor=ANA, approve=True)
        assert not BindingProposal.objects.exists()
    assert bound() == ADDRESS


def test_binding_remove__needed_by_a_canary_or_a_pinned_release__is_refused(
    billing: Tenant,
) -> None:
    bind()
    needing = release_publish(actor=ALICE)
    save("tool_server", "telecom", endpoint="other")
    bind(name="other")
    without = release_publish(actor=ALICE)
    release_deploy(release=needing, environment="production", actor=ALICE)
    release_deploy(release=without, environment="production", actor=ALICE, in_flight="pin")
    binding = Binding.objects.get(name="telecom_mcp")
    with pytest.raises(BindingInUse):
        binding_remove(binding=binding, actor=ALICE)
    release_deploy(release=without, environment="production", actor=ALICE)
    canary_start(release=needing, environment="production", share=1, actor=ALICE)
    with pytest.raises(BindingInUse):
        binding_remove(binding=binding, actor=ALICE)
    canary_stop(environment="production", actor=ALICE, reason="x")
    binding_remove(binding=binding, actor=ALICE)
    assert bound() == ""
