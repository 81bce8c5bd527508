"""Console pages of what was said."""

from django.urls import path

from apps.conversations import views

urlpatterns = [
    path("console/sessions/", views.session_list, name="console-sessions"),
    path("console/sessions/<uuid:session_id>/", views.session_detail, name="console-session"),
    path("console/turns/<uuid:turn_id>/", views.turn_detail, name="console-turn"),
]
