"""Every path of the product."""

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path

urlpatterns: list[URLPattern | URLResolver] = [
    path("", include("apps.gateway.urls")),
    path("", include("apps.tenants.urls")),
    path("admin/", admin.site.urls),
]

handler404 = "apps.gateway.problems.handler404"
handler500 = "apps.gateway.problems.handler500"
