"""One class, one proxy, per kind."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

import pytest
from django.apps import apps
from django.core.checks.registry import registry

from apps.agents.models import Agent, Prompt
from apps.releases.kinds import kinds_check, proxies, proxy_of
from apps.releases.models import ConfigItem
from apps.releases.tests.conftest import save
from apps.runtime.config import KINDS, KindConfig
from apps.tenants.models import Tenant
from apps.tenants.scope import NoTenant, tenant_transaction


class Gadget(KindConfig):
    """A kind that only these tests know."""

    kind: ClassVar[str] = "gadget"
    label: ClassVar[str] = "Gadget"
    label_plural: ClassVar[str] = "Gadgets"


@contextmanager
def proxy(config: type[KindConfig], *names: str) -> Iterator[None]:
    """Register proxies of ``config`` while the block runs."""
    for name in names:
        meta = type("Meta", (), {"proxy": True, "app_label": "releases"})
        type(
            name,
            (ConfigItem,),
            {"config_class": config, "Meta": meta, "__module__": __name__},
        )
    try:
        yield
    finally:
        for name in names:
            del apps.all_models["releases"][name.lower()]
        apps.clear_cache()


def test_kinds__every_registered_kind__has_exactly_one_proxy() -> None:
    by_kind = {model.config_class.kind: model for model in proxies() if model.config_class}
    assert set(by_kind) == set(KINDS)
    assert len(by_kind) == 14
    assert by_kind["agent"] is Agent
    assert kinds_check() == []


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_kind__its_proxy__has_no_table_and_is_named_after_the_class(kind: str) -> None:
    model = proxy_of(kind)
    assert model._meta.proxy
    assert model._meta.db_table == "releases_configitem"
    assert model._meta.verbose_name == KINDS[kind].label
    assert model._meta.verbose_name_plural == KINDS[kind].label_plural
    assert model.__name__ == KINDS[kind].__name__.removesuffix("Config")


def test_proxy_of__unknown_kind__raises() -> None:
    with pytest.raises(LookupError):
        proxy_of("robot")


def test_proxy__objects__are_those_of_its_kind_and_tenant(acme: Tenant) -> None:
    save("prompt", "one", system="x")
    save("memory_policy", "default")
    with tenant_transaction(Tenant.objects.create(slug="other-releases", name="Other")):
        save("prompt", "theirs", system="x")

    assert [found.slug for found in Prompt.objects.all()] == ["one"]
    assert not Agent.objects.exists()
    assert ConfigItem.objects.count() == 2


@pytest.mark.django_db
def test_proxy__without_a_tenant__raises() -> None:
    with pytest.raises(NoTenant):
        Prompt.objects.count()


def test_kinds_check__kind_without_a_proxy__is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, "gadget", Gadget)
    (error,) = kinds_check()
    assert error.id == "releases.E002"
    assert error.msg == "The kind 'gadget' needs exactly one proxy of ConfigItem; found: none."


def test_kinds_check__kind_with_two_proxies__is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, "gadget", Gadget)
    with proxy(Gadget, "GadgetOne", "GadgetTwo"):
        (error,) = kinds_check()
    assert error.id == "releases.E002"
    assert "releases.GadgetOne, releases.GadgetTwo" in error.msg


def test_kinds_check__proxy_of_a_class_nobody_registered__is_an_error() -> None:
    with proxy(Gadget, "GadgetAlone"):
        (error,) = kinds_check()
    assert error.id == "releases.E001"


def test_kinds_check__system_checks__run_it() -> None:
    names = {getattr(check, "__name__", "") for check in registry.get_checks()}
    assert kinds_check.__name__ in names
