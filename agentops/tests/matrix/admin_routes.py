"""Probes of the admin's routes: a line for each model, and one for each page of a model.

A new kind of configuration needs no line: its proxy gets the pages of ``KIND``. Any other new
model or page fails the matrix until it is entered here.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta

from django.conf import settings
from django.test import Client
from django.utils import timezone

from agentops.tests.matrix.probes import (
    Call,
    Closed,
    Custom,
    Listing,
    Probe,
    Redirects,
    Shared,
    Thing,
    answer_of,
    leaks,
)
from agentops.tests.matrix.sides import Side
from apps.releases.kinds import proxies
from apps.tenants.scope import tenant_transaction
from apps.tools.models import ToolConnection

NO_NUMBER = "999999999"
NO_UUID = "00000000-0000-4000-8000-000000000000"
Pages = Mapping[str, Callable[[str], Probe]]


def pk(label: str) -> Callable[[Side], str]:
    return lambda side: str(side.rows[label].pk)


def thing(label: str, suffix: str, *, absent: str, **more: object) -> Probe:
    base, own = _base(label), pk(label)
    return Thing(lambda s: f"{base}{own(s)}/{suffix}", f"{base}{absent}/{suffix}", **more)  # type: ignore[arg-type]


def closed(label: str, suffix: str, *, absent: str, status: int = 403) -> Probe:
    base, own = _base(label), pk(label)
    return Closed(lambda s: f"{base}{own(s)}/{suffix}", f"{base}{absent}/{suffix}", status)


def _base(label: str) -> str:
    return f"/admin/{label.replace('.', '/')}/"


def standard(absent: str, *, adding: bool = True, changing: Call | None = None) -> Pages:
    """Return the five pages every admin has; nothing is deleted."""
    return {
        "": lambda label: Listing(_base(label)),
        "add/": lambda label: (
            Listing(_base(label) + "add/", shows=None)
            if adding
            else Closed(lambda _side: _base(label) + "add/", _base(label) + "add/")
        ),
        "<path:object_id>/": lambda label: Redirects(lambda row: f"{_base(label)}{row}/"),
        "<path:object_id>/change/": lambda label: thing(label, "change/", absent=absent),
        # Django's own log of an object, which nothing writes to.
        "<path:object_id>/history/": lambda label: thing(
            label, "history/", absent=absent, shows=None
        ),
        "<path:object_id>/delete/": lambda label: closed(label, "delete/", absent=absent),
    }


def _by_slug(label: str) -> Probe:
    base = _base(label) + "by-slug/"
    return Thing(
        lambda side: f"{base}{side.rows[label].slug}/", f"{base}nothing/", status=302, shows=None
    )


def _just_now() -> str:
    """Return the query of a page that shows what stands now as it stood at a moment."""
    at = timezone.now() + timedelta(seconds=5)
    return f"?at={at:%Y-%m-%dT%H:%M:%S}&zone=UTC"


KIND: Pages = {
    **standard(NO_NUMBER),
    "<path:object_id>/history/": lambda label: thing(label, "history/", absent=NO_NUMBER),
    "<path:object_id>/diff/": lambda label: thing(label, "diff/", absent=NO_NUMBER),
    "<path:object_id>/as-of/": lambda label: Thing(
        lambda side: f"{_base(label)}{pk(label)(side)}/as-of/{_just_now()}",
        f"{_base(label)}{NO_NUMBER}/as-of/",
    ),
    "<path:object_id>/reach/": lambda label: thing(label, "reach/", absent=NO_NUMBER),
    "<path:object_id>/used-by/": lambda label: thing(label, "used-by/", absent=NO_NUMBER),
    "<path:object_id>/archive/": lambda label: thing(label, "archive/", absent=NO_NUMBER),
    "<path:object_id>/restore/": lambda label: thing(
        label,
        "restore/",
        absent=NO_NUMBER,
        call=Call("post", data={"revision": "1"}),
        status=302,
        shows=None,
    ),
    "by-slug/<path:slug>/": _by_slug,
}


def _release_page(suffix: str, **more: object) -> Callable[[str], Probe]:
    return lambda label: thing(label, suffix, absent=NO_UUID, **more)


def _sha(side: Side) -> str:
    return str(side.rows["releases.release"].sha256[:12])


def _release_item(label: str) -> Probe:
    return Thing(
        lambda side: f"{_base(label)}{pk(label)(side)}/prompt/{side.item('prompt')}/",
        f"{_base(label)}{NO_UUID}/prompt/nothing/",
    )


RELEASE: Pages = {
    **standard(NO_UUID, adding=False),
    "as-of/": lambda label: Listing(_base(label) + "as-of/", shows=None),
    "import/": lambda label: Listing(_base(label) + "import/", shows=None),
    "export/": lambda label: Listing(_base(label) + "export/?format=yaml&values=1"),
    "options/<str:kind>/": lambda label: Listing(_base(label) + "options/agent/"),
    "<uuid:key>/deploy/": _release_page("deploy/", shows=_sha),
    "<uuid:key>/manifest.json": _release_page("manifest.json"),
    "<uuid:key>/record.json": _release_page("record.json"),
    "<uuid:key>/<str:kind>/<path:slug>/": _release_item,
}


def _change_page(page: str) -> Callable[[str], Probe]:
    return lambda label: thing(label, f"{page}/", absent=NO_NUMBER)


CHANGE: Pages = {
    **standard(NO_NUMBER),
    **{
        f"<path:object_id>/{page}/": _change_page(page)
        for page in ("facts", "rebase", "publish", "break-glass")
    },
    "<path:object_id>/act/<str:act>/": lambda label: thing(
        label,
        "act/comment/",
        absent=NO_NUMBER,
        call=Call("post", data={"text": "seen"}),
        status=302,
        shows=None,
    ),
}


def _environment(suffix: str) -> Callable[[str], Probe]:
    """The same address in every tenant: each sees its own rows only."""
    name = settings.DEFAULT_ENVIRONMENT
    return lambda label: Listing(f"{_base(label)}environment/{name}/{suffix}")


DEPLOYMENT: Pages = {
    **standard(NO_NUMBER, adding=False),
    # An environment has its page by name; a deployment's row leads there.
    "<path:object_id>/change/": lambda label: thing(
        label, "change/", absent=NO_NUMBER, status=302, shows=None
    ),
    "environment/<str:name>/": _environment(""),
    "environment/<str:name>/history/": _environment("history/"),
}
BINDING: Pages = {
    **standard(NO_NUMBER),
    "<path:object_id>/remove/": lambda label: thing(label, "remove/", absent=NO_NUMBER),
}

API_KEY: Pages = {
    **standard(NO_UUID),
    "<path:object_id>/revoke/": lambda label: thing(label, "revoke/", absent=NO_UUID),
}
WEBHOOK: Pages = {
    **standard(NO_UUID),
    "<path:object_id>/test/": lambda label: thing(
        label, "test/", absent=NO_UUID, call=Call("post"), status=302, shows=None
    ),
}
AUDIT: Pages = standard(NO_NUMBER, adding=False)
MEMBERSHIP: Pages = {
    **standard(NO_NUMBER),
    # The one row that is deleted; the trail says by whom.
    "<path:object_id>/delete/": lambda label: thing(label, "delete/", absent=NO_NUMBER),
}
RESPONSIBILITIES: Pages = {
    **standard(NO_NUMBER, adding=False),
    # A cell's page is that of its row.
    "<path:object_id>/change/": lambda label: thing(
        label, "change/", absent=NO_NUMBER, status=302, shows=None
    ),
    # Who changed it last is the tenant's own.
    "row/<slug:activity>/": lambda label: Listing(_base(label) + "row/security_review/"),
    "quorum/<slug:risk>/": lambda label: Listing(_base(label) + "quorum/weakening/"),
}
DUTIES: Pages = {
    **standard(NO_NUMBER),
    "add/": lambda label: Listing(_base(label) + "add/"),
    "delegate/": lambda label: Listing(_base(label) + "delegate/"),
}

# Pages over rows that stand in a list or a checklist: the row's own page leads there.
_STANDS_ELSEWHERE: Pages = {
    "<path:object_id>/change/": lambda label: thing(
        label, "change/", absent=NO_NUMBER, status=302, shows=None
    ),
}
GATES: Pages = {
    **standard(NO_NUMBER, adding=False),
    **_STANDS_ELSEWHERE,
    # The tenant's own levels stand beside the gates; the matrix has one of no gate.
    "": lambda label: Listing(_base(label), shows=None),
}
READINESS: Pages = {
    **standard(NO_NUMBER, adding=False),
    **_STANDS_ELSEWHERE,
    "": lambda label: Listing(_base(label), shows=None),
    "agent/<path:agent>/": lambda label: Thing(
        lambda side: f"{_base(label)}agent/{side.item('agent')}/",
        f"{_base(label)}agent/nothing/",
    ),
}


def _pressed(page: str) -> Callable[[str], Probe]:
    """A button of an item's page: it does something and leads back."""
    call = Call("post", data={"environment": settings.DEFAULT_ENVIRONMENT})
    return lambda label: thing(
        label, f"{page}/", absent=NO_NUMBER, call=call, status=302, shows=None
    )


TOOL_SERVER: Pages = {
    **KIND,
    "<path:object_id>/tools/": lambda label: thing(label, "tools/", absent=NO_NUMBER),
    **{f"<path:object_id>/{page}/": _pressed(page) for page in ("refresh", "connect", "take")},
}


def _posted(page: str) -> Callable[[str], Probe]:
    """The form names a server by name: a foreign one and none are refused alike, on one's own page."""
    return lambda label: Custom(_connection_act(_base(label) + page))


def _connection_act(address: str) -> Callable[[Side, Side, Client], list[str]]:
    def probe(me: Side, other: Side, browser: Client) -> list[str]:
        where = {
            "environment": settings.DEFAULT_ENVIRONMENT,
            "principal": f"user:person-{other.canary}",
        }
        answers = [
            answer_of(browser.post(address, {**where, "server": server}))
            for server in (other.item("tool_server"), "nothing")
        ]
        wrong = [] if {answer.status for answer in answers} == {302} else ["it was not refused"]
        with tenant_transaction(other.tenant):
            kept = ToolConnection.objects.filter(pk=other.rows["tools.toolconnection"].pk).exists()
        return wrong + ([] if kept else ["a foreign connection was ended"]) + leaks(other, *answers)

    return probe


CONNECTION: Pages = {
    **standard(NO_NUMBER, adding=False),
    "connect/": _posted("connect/"),
    "end/": _posted("end/"),
    # A state that is another tenant's, or nobody's: sent back with the same words.
    "callback/": lambda label: Shared(
        _base(label) + "callback/?state=1.x&code=x", "a state of one's own only", status=302
    ),
}
TOOL: Pages = {
    **KIND,
    **{f"<path:object_id>/{page}/": _change_page(page) for page in ("contract", "bench", "mock")},
}


def _platform(absent: str) -> Pages:
    """Return the pages that only a platform admin may open: a tenant's admin is refused alike."""

    def page(suffix: str) -> Callable[[str], Probe]:
        return lambda label: Closed(
            lambda side: f"{_base(label)}{side.platform_row(label)}/{suffix}",
            f"{_base(label)}{absent}/{suffix}",
        )

    def without_id(suffix: str) -> Callable[[str], Probe]:
        return lambda label: Closed(lambda _s: _base(label) + suffix, _base(label) + suffix)

    return {
        "": without_id(""),
        "add/": without_id("add/"),
        "<path:object_id>/": lambda label: Redirects(lambda row: f"{_base(label)}{row}/"),
        "<path:object_id>/change/": page("change/"),
        "<path:object_id>/history/": page("history/"),
        "<path:object_id>/delete/": page("delete/"),
        "<id>/password/": page("password/"),
    }


MODELS: dict[str, Pages] = {
    **{proxy._meta.label_lower: KIND for proxy in proxies()},
    "tools.toolserver": TOOL_SERVER,
    "tools.tool": TOOL,
    "releases.changerequest": CHANGE,
    "releases.release": RELEASE,
    "releases.deployment": DEPLOYMENT,
    "releases.binding": BINDING,
    "governance.notification": standard(NO_NUMBER, adding=False),
    "tools.toolinvocation": standard(NO_UUID, adding=False),
    "tools.toolconnection": CONNECTION,
    "tools.workflowrun": standard(NO_UUID, adding=False),
    "governance.webhookendpoint": WEBHOOK,
    "governance.racientry": RESPONSIBILITIES,
    "governance.dutyassignment": DUTIES,
    "governance.gatelevel": GATES,
    "governance.readinesscheck": READINESS,
    "governance.evidence": standard(NO_NUMBER),
    "governance.compatibilityrow": standard(NO_NUMBER),
    "governance.contractversion": standard(NO_NUMBER),
    "tenants.apikey": API_KEY,
    "tenants.auditentry": AUDIT,
    "tenants.membership": MEMBERSHIP,
    "tenants.tenant": _platform(NO_NUMBER),
    "tenants.user": _platform(NO_NUMBER),
}

SITE: dict[str, Probe] = {
    "": Listing("/admin/", shows=None),
    "search/": Shared("/admin/search/?s=agent", "finds pages of the admin, not rows"),
    "login/": Shared("/admin/login/", "sends a signed-in person on", status=302),
    "logout/": Shared("/admin/logout/", "POST only", status=405),
    "password_change/": Shared("/admin/password_change/", "one's own"),
    "password_change/done/": Shared("/admin/password_change/done/", "one's own"),
    "jsi18n/": Shared("/admin/jsi18n/", "texts of widgets"),
    "autocomplete/": Shared("/admin/autocomplete/", "no page offers it", status=403),
    # No model has an address on a public site: whatever is asked for is absent.
    "r/<path:content_type_id>/<path:object_id>/": Closed(
        lambda side: (
            f"/admin/r/{side.content_type('tenants.apikey')}/{pk('tenants.apikey')(side)}/"
        ),
        f"/admin/r/999999/{NO_UUID}/",
        404,
    ),
    "<app_label>/": Listing("/admin/tenants/", shows=None),
    "(?P<url>.*)$": Shared("/admin/nothing-here", "no such page", status=404),
}


def probe_for(route: str) -> Probe | None:
    """Return the probe of ``route`` (without ``admin/``), or None when it is not listed."""
    if route in SITE:
        return SITE[route]
    app, _slash, rest = route.partition("/")
    model, _slash, suffix = rest.partition("/")
    pages = MODELS.get(f"{app}.{model}", {})
    return pages[suffix](f"{app}.{model}") if suffix in pages else None
