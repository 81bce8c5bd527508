"""Paths of the tenants app."""

from django.urls import path
from django.views.i18n import set_language

from apps.tenants import views

urlpatterns = [
    path("tenant/", views.tenant_pick, name="tenant-pick"),
    path("console/login", views.SignIn.as_view(), name="console-login"),
    path("console/logout", views.SignOut.as_view(), name="console-logout"),
    path("console/language", set_language, name="console-language"),
]
