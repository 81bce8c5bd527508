"""Addresses and names of credentials, per environment."""

import json

import pytest

from apps.releases.binding_values import InvalidBinding, binding_check
from apps.releases.environment_services import (
    BindingInUse,
    UnknownEnvironment,
    binding_remove,
    binding_set,
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
