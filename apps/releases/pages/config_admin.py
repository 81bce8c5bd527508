"""Base of this app's admin pages: a tenant's rows, with the styles and scripts of our own pages."""

from apps.tenants.tenant_admin import TenantAdmin


class ConfigAdmin(TenantAdmin):
    # A list that leaves archived items out says so beside its count.
    show_full_result_count = True

    class Media:
        css = {"all": ("releases/admin.css",)}
        js = ("releases/forms.js",)
