"""Every path of the product."""

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerView

urlpatterns: list[URLPattern | URLResolver] = [
    path("", include("apps.gateway.urls")),
    path("", include("apps.gateway.console_urls")),
    path("", include("apps.conversations.urls")),
    path("", include("apps.tenants.urls")),
    path("", include("apps.releases.api.urls")),
    path("", include("apps.governance.urls")),
    path("api/schema", SpectacularAPIView.as_view(), name="schema"),
    path("api/schema/docs/", SpectacularSwaggerView.as_view(url_name="schema"), name="schema-docs"),
    path("admin/", admin.site.urls),
]

handler400 = "apps.gateway.problems.handler400"
handler404 = "apps.gateway.problems.handler404"
handler500 = "apps.gateway.problems.handler500"
