"""Paths of the console's door."""

from django.urls import path
from django.views.generic import RedirectView

from apps.gateway import views

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="console-home"), name="root"),
    path("console/", views.home, name="console-home"),
    path("console/chat/<str:agent>", views.chat_new, name="console-chat-new"),
    path("console/chat/<str:agent>/<str:name>", views.chat, name="console-chat"),
    path(
        "console/chat/<str:agent>/<str:name>/transcript",
        views.chat_transcript,
        name="console-chat-transcript",
    ),
    path("console/chat-turns/<uuid:turn_id>", views.chat_turn, name="console-chat-turn"),
]
