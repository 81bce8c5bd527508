"""Paths of the doors."""

from django.urls import path

from apps.gateway import api, debug, health, sessions, tools_api

urlpatterns = [
    path("gateway/message", api.message_post, name="message-post"),
    path("gateway/message/sse", api.message_stream, name="message-stream"),
    path("gateway/turns/<uuid:turn_id>", api.turn_get, name="turn-get"),
    path("gateway/events/<str:session_id>", sessions.session_events, name="session-events"),
    path("gateway/sessions/token", sessions.session_token, name="session-token"),
    path("sessions/<str:session_id>/messages", sessions.session_messages, name="session-messages"),
    path(
        "sessions/<str:session_id>/checkpoint",
        sessions.session_checkpoint,
        name="session-checkpoint",
    ),
    path("agents", sessions.agents_list, name="agents-list"),
    path("health", health.health, name="health"),
    path("ready", health.ready, name="ready"),
    path("version", health.version, name="version"),
    path("v1/tools", tools_api.tools_list, name="tools-list"),
    path("v1/tools/<str:name>", tools_api.tool_get, name="tool-get"),
    path("v1/tools/<str:name>/invoke", tools_api.tool_invoke, name="tool-invoke"),
    path("v1/discovery/servers", tools_api.servers_list, name="discovery-servers"),
    path("v1/discovery/sync", tools_api.discovery_sync, name="discovery-sync"),
    path("debug/route", debug.debug_route, name="debug-route"),
    path("debug/identity", debug.debug_identity, name="debug-identity"),
    path("debug/mcp/tools", debug.debug_tools, name="debug-tools"),
    path("debug/mcp/call/<str:tool>", debug.debug_tool_call, name="debug-tool-call"),
    path("debug/usage", debug.debug_usage, name="debug-usage"),
    path("debug/env", debug.debug_environment, name="debug-environment"),
]
