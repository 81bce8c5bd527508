"""Paths of the doors."""

from django.urls import path

from apps.gateway import api

urlpatterns = [
    path("gateway/message", api.message_post, name="message-post"),
    path("gateway/message/sse", api.message_stream, name="message-stream"),
    path("gateway/turns/<uuid:turn_id>", api.turn_get, name="turn-get"),
    path("gateway/events/<str:session_id>", api.session_events, name="session-events"),
    path("sessions/<str:session_id>/messages", api.session_messages, name="session-messages"),
    path("sessions/<str:session_id>/checkpoint", api.session_checkpoint, name="session-checkpoint"),
    path("agents", api.agents_list, name="agents-list"),
]
