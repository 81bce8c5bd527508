"""Probes of the console's pages."""

from collections.abc import Callable

from agentops.tests.matrix.admin_routes import NO_UUID
from agentops.tests.matrix.probes import Call, Listing, Probe, Shared, Thing
from agentops.tests.matrix.sides import Side


def _row(label: str, before: str, after: str = "") -> Callable[[Side], str]:
    return lambda side: f"{before}{side.rows[label].pk}{after}"


def _chat(suffix: str = "") -> Probe:
    return Thing(
        lambda side: f"/console/chat/{side.item('agent')}/{side.canary}{suffix}",
        f"/console/chat/nobody/nothing{suffix}",
    )


ROUTES: dict[str, Probe] = {
    "": Shared("/", "sends on to the console", status=302),
    "console/": Listing("/console/"),
    "console/login": Shared("/console/login", "sends a signed-in person on", status=302),
    "console/logout": Shared("/console/logout", "POST only", status=405),
    "console/language": Shared(
        "/console/language", "one's own choice", call=Call("post", {"language": "en"}), status=302
    ),
    "console/chat/<str:agent>": Thing(
        lambda side: f"/console/chat/{side.item('agent')}",
        "/console/chat/nobody",
        status=302,
        shows=None,
    ),
    "console/chat/<str:agent>/<str:name>": _chat(),
    "console/chat/<str:agent>/<str:name>/transcript": _chat("/transcript"),
    "console/chat-turns/<uuid:turn_id>": Thing(
        _row("conversations.turnrecord", "/console/chat-turns/"), f"/console/chat-turns/{NO_UUID}"
    ),
    "console/sessions/": Listing("/console/sessions/"),
    "console/sessions/<uuid:session_id>/": Thing(
        _row("conversations.session", "/console/sessions/", "/"), f"/console/sessions/{NO_UUID}/"
    ),
    # The details show what was decided; the agent's answer itself is beside them.
    "console/turns/<uuid:turn_id>/": Thing(
        _row("conversations.turnrecord", "/console/turns/", "/"),
        f"/console/turns/{NO_UUID}/",
        shows=lambda side: str(side.rows["conversations.turnrecord"].pk),
    ),
}
