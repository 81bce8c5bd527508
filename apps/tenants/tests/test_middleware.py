"""The scope of a signed-in person's request."""

import pytest
from asgiref.sync import sync_to_async
from django.db import connection
from django.http import JsonResponse
from django.template import engines
from django.template.response import TemplateResponse
from django.test import AsyncClient, Client
from django.urls import path

from apps.tenants.models import Membership, Tenant
from apps.tenants.scope import current_tenant_id, has_tenant, in_tenant

pytestmark = pytest.mark.django_db


def names():
    return list(Membership.objects.order_by("pk").values_list("user__username", flat=True))


def plain(request):
    shown = names() if has_tenant() else None
    return JsonResponse([shown, request.tenant and request.tenant.slug], safe=False)


def templated(request):
    template = engines["django"].from_string(
        "{% for m in rows %}{{ m.user.username }},{% endfor %}"
    )
    return TemplateResponse(request, template, {"rows": Membership.objects.order_by("pk")})


def breaking(request):
    Tenant.objects.filter(pk=current_tenant_id()).update(name="half done")
    raise RuntimeError("after a write")


async def waiting(request):
    in_transaction = await sync_to_async(lambda: connection.in_atomic_block)()
    shown = await in_tenant(None, names)
    return JsonResponse([shown, in_transaction, request.tenant.slug], safe=False)


urlpatterns = [
    path("plain", plain),
    path("templated", templated),
    path("breaking", breaking),
    path("waiting", waiting),
]


@pytest.fixture(autouse=True)
def here(settings):
    settings.ROOT_URLCONF = __name__


def test_request__signed_out__has_no_tenant_and_asks_nothing(client, django_assert_num_queries):
    with django_assert_num_queries(0):
        assert client.get("/plain").json() == [None, None]


def test_request__of_alice__is_in_her_tenant(world, as_alice):
    assert as_alice.get("/plain").json() == [["alice", "bob"], "acme"]
    assert not has_tenant()


def test_request__with_a_lazy_template__renders_inside_the_transaction(world, as_alice):
    assert as_alice.get("/templated").content == b"alice,bob,"


def test_request__that_breaks__is_rolled_back(world):
    browser = Client(raise_request_exception=False)
    browser.force_login(world.alice)
    assert browser.get("/breaking").status_code == 500
    assert Tenant.objects.get(pk=world.acme.pk).name == "Acme"


async def signed_in(user):
    browser = AsyncClient()
    await browser.aforce_login(user)
    return browser


async def test_sync_view__under_asgi__is_in_her_tenant(world):
    browser = await signed_in(world.alice)
    assert (await browser.get("/plain")).json() == [["alice", "bob"], "acme"]
    assert (await browser.get("/templated")).content == b"alice,bob,"


@pytest.mark.django_db(transaction=True)
async def test_async_view__has_the_scope_and_holds_no_transaction(world):
    browser = await signed_in(world.charlie)
    assert (await browser.get("/waiting")).json() == [["charlie"], False, "other"]


async def test_async_request__signed_out__has_no_tenant(world):
    assert (await AsyncClient().get("/plain")).json() == [None, None]
