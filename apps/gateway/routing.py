"""Websocket paths."""

from django.urls import re_path

from apps.gateway.consumers import NoSuchSocket, SessionConsumer

websocket_urlpatterns = [
    re_path(r"^ws/sessions/(?P<session_id>[^/]{1,400})/?$", SessionConsumer.as_asgi()),
    re_path(r"", NoSuchSocket.as_asgi()),
]
