"""What ``check --deploy`` refuses."""

import pytest
from django.db import models

from apps.tenants import checks
from apps.tenants.owned import TenantOwned
from apps.tenants.services import tenant_create

pytestmark = pytest.mark.django_db


def ids(problems):
    return [problem.id for problem in problems]


def test_models__of_every_app__are_scoped():
    assert checks.owned_models_are_scoped() == []


def test_models__with_a_plain_manager__are_refused(monkeypatch):
    class Loose(TenantOwned):
        everything = models.Manager()

        class Meta:
            app_label = "tenants"
            abstract = True

    loose = type(
        "LooseRow",
        (Loose,),
        {"__module__": __name__, "Meta": type("Meta", (), {"app_label": "loose"})},
    )
    monkeypatch.setattr("django.apps.apps.get_models", lambda: [loose])
    assert ids(checks.owned_models_are_scoped()) == ["tenants.E001"]


@pytest.mark.parametrize(
    ("demo", "debug", "https", "found"),
    [
        (False, False, True, []),
        (False, False, False, ["tenants.W004"]),
        (True, False, False, ["tenants.E002"]),
        (True, True, False, ["tenants.E002", "tenants.E003"]),
    ],
)
def test_demo__in_production__is_refused(settings, demo, debug, https, found):
    settings.DEMO, settings.DEBUG, settings.HTTPS = demo, debug, https
    assert ids(checks.demo_is_off()) == found


def test_keyless_tenant__outside_the_demo__is_refused(settings, world):
    settings.DEMO = False
    assert checks.no_tenant_is_keyless() == []
    tenant_create(slug="default", name="Default", demo_keyless=True)
    assert ids(checks.no_tenant_is_keyless()) == ["tenants.E005"]
    settings.DEMO = True
    assert checks.no_tenant_is_keyless() == []


@pytest.mark.services
def test_application_role__is_bound__and_a_superuser_is_not(monkeypatch):
    import psycopg

    from conftest import ADMIN_URL

    assert checks.application_role_is_bound(databases=["default"]) == []

    class Superuser:
        vendor = "postgresql"

        def cursor(self):
            return psycopg.connect(ADMIN_URL).cursor()

    monkeypatch.setattr(checks, "connections", {"default": Superuser()})
    assert ids(checks.application_role_is_bound(databases=["default"])) == ["tenants.E006"]
