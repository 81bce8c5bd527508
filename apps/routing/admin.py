"""Admin of intents, state policies and routing policies."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.template.response import TemplateResponse

from apps.releases.pages.kind_admin import KindAdmin
from apps.routing.models import Intent, RoutingPolicy, StatePolicy
from apps.routing.vector_chores import meaning_unavailable
from apps.routing.vector_selectors import work_shown


@admin.register(Intent)
class IntentAdmin(KindAdmin):
    icon = "lightbulb"


@admin.register(StatePolicy)
class StatePolicyAdmin(KindAdmin):
    icon = "signpost"


@admin.register(RoutingPolicy)
class RoutingPolicyAdmin(KindAdmin):
    icon = "alt_route"
    list_before_template = "routing/_vectors.html"

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> TemplateResponse:
        """The list, and above it how far the vectors of the strategy semantic are."""
        context = {
            "vectors": work_shown(),
            "vectors_unavailable": meaning_unavailable(),
            **(extra_context or {}),
        }
        return super().changelist_view(request, context)
