"""Admin of intents, state policies and routing policies."""

from django.contrib import admin

from apps.releases.pages.kind_admin import KindAdmin
from apps.routing.models import Intent, RoutingPolicy, StatePolicy


@admin.register(Intent)
class IntentAdmin(KindAdmin):
    icon = "lightbulb"


@admin.register(StatePolicy)
class StatePolicyAdmin(KindAdmin):
    icon = "signpost"


@admin.register(RoutingPolicy)
class RoutingPolicyAdmin(KindAdmin):
    icon = "alt_route"
