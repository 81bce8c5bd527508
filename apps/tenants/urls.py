"""Paths of the tenants app."""

from django.urls import path

from apps.tenants import views

urlpatterns = [path("tenant/", views.tenant_pick, name="tenant-pick")]
