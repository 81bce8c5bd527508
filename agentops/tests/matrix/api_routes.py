"""Probes of the configuration API. Adding an operation is one entry.

Requests and releases are numbered by tenant, so what is foreign is a number that only the other
tenant has.
"""

import json
from collections.abc import Callable, Iterable
from typing import Any

from django.test import Client

from agentops.tests.matrix.probes import (
    Answer,
    Call,
    Custom,
    Listing,
    Probe,
    Thing,
    answer_of,
    leaks,
)
from agentops.tests.matrix.sides import Side
from apps.releases.change_models import ChangeComment, ChangeRequest
from apps.releases.models import Release
from apps.tenants.scope import tenant_transaction

KEY = Call(by_key=True)
OWN, FOREIGN, ABSENT = "1", "77", "999999"
NO_WEBHOOK = "00000000-0000-4000-8000-000000000000"
Address = Callable[[str], str]


def send(side: Side, method: str, address: str, body: Any = None, browser: Any = None) -> Answer:
    """Call ``address`` with the side's key, or in ``browser``."""
    headers = {} if browser else side.bearer()
    text = "" if body is None else json.dumps(body)
    client = browser or Client()
    answer = client.generic(
        method.upper(), address, text, content_type="application/json", headers=headers
    )
    return answer_of(answer)


def judged(answers: Iterable[Answer], other: Side) -> list[str]:
    """Judge the answers to one's own, the other's and nobody's."""
    mine, foreign, absent = answers
    wrong = []
    if mine.status in (400, 404, 405) or mine.status >= 500:
        wrong.append(f"the owner got {mine.status}: {mine.body[:200]!r}")
    if foreign.status != 404:
        wrong.append(f"a foreign one got {foreign.status}, not 404")
    if foreign != absent:
        wrong.append("foreign and absent are answered differently")
    return wrong + leaks(other, mine, foreign, absent)


def _only_there(other: Side) -> None:
    """Give the other tenant a request and a release of a number that nobody else has."""
    with tenant_transaction(other.tenant):
        if ChangeRequest.objects.filter(number=int(FOREIGN)).exists():
            return
        manifest = {"number": FOREIGN, "title": other.canary, "author": other.canary}
        ChangeRequest.objects.create(**manifest)
        Release.objects.create(
            number=int(FOREIGN), manifest="{}", sha256="7" * 64, note=other.canary,
            published_by=other.canary,
        )  # fmt: skip


def numbered(
    address: Address, method: str = "get", body: Any = None, *, shows: bool = True
) -> Probe:
    """A route with a number of a request or release."""

    def probe(me: Side, other: Side, browser: Client) -> list[str]:
        _only_there(other)
        mine, foreign, absent = (
            send(me, method, address(number), body) for number in (OWN, FOREIGN, ABSENT)
        )
        wrong = judged((mine, foreign, absent), other)
        if shows and method == "get" and me.canary.encode() not in mine.body:
            wrong.append("the owner's canary is missing")
        return wrong

    return Custom(probe)


def several(*probes: Probe) -> Probe:
    """A route of several methods."""

    def probe(me: Side, other: Side, browser: Client) -> list[str]:
        return [wrong for each in probes for wrong in each(me, other, browser)]

    return Custom(probe)


def change(suffix: str = "", method: str = "post", body: Any = None) -> Probe:
    return numbered(lambda number: f"/v1/changes/{number}{suffix}", method, body)


def release(suffix: str = "", *, shows: bool = True) -> Probe:
    return numbered(lambda number: f"/v1/releases/{number}{suffix}", shows=shows)


def by_body(address: str, body: Callable[[str], Any], method: str = "post") -> Probe:
    """A route whose body names a release by number."""

    def probe(me: Side, other: Side, browser: Client) -> list[str]:
        _only_there(other)
        mine, foreign, absent = (
            send(me, method, address, body(number)) for number in (OWN, FOREIGN, ABSENT)
        )
        return judged((mine, foreign, absent), other)

    return Custom(probe)


def of_row(
    address: Callable[[Any], str], label: str, method: str = "post", body: Any = None
) -> Probe:
    """A route with the key of a row."""

    def probe(me: Side, other: Side, browser: Client) -> list[str]:
        mine, foreign, absent = (
            send(me, method, address(key), body)
            for key in (me.rows[label].pk, other.rows[label].pk, ABSENT)
        )
        return judged((mine, foreign, absent), other)

    return Custom(probe)


def item(suffix: str = "", *, kind: str = "prompt", shows: bool = True) -> Probe:
    return Thing(
        lambda side: f"/v1/items/{kind}/{side.item(kind)}{suffix}",
        f"/v1/items/{kind}/nothing{suffix}",
        call=KEY,
        **({} if shows else {"shows": None}),  # type: ignore[arg-type]
    )


def lands_in_own_draft(address: str, method: str, body: Any) -> Probe:
    """A write that names nothing of anybody: it is made, and the other tenant has nothing of it."""

    def probe(me: Side, other: Side, browser: Client) -> list[str]:
        answer = send(me, method, address, body)
        wrong = (
            [] if answer.status in (200, 201) else [f"got {answer.status}: {answer.body[:200]!r}"]
        )
        return wrong + leaks(other, answer)

    return Custom(probe)


def webhook(
    suffix: str = "", method: str = "get", body: Any = None, *, shows: bool = True
) -> Probe:
    """A route with the id of a webhook."""

    def probe(me: Side, other: Side, browser: Client) -> list[str]:
        mine, foreign, absent = (
            send(me, method, f"/v1/governance/webhooks/{key}{suffix}", body)
            for key in (
                me.rows["governance.webhookendpoint"].pk,
                other.rows["governance.webhookendpoint"].pk,
                NO_WEBHOOK,
            )
        )
        wrong = judged((mine, foreign, absent), other)
        if shows and me.canary.encode() not in mine.body:
            wrong.append("the owner's canary is missing")
        return wrong

    return Custom(probe)


def comment_resolve(me: Side, other: Side, browser: Client) -> list[str]:
    """A foreign comment under one's own request is absent too."""
    with tenant_transaction(other.tenant):
        theirs = ChangeComment.objects.get().pk
    with tenant_transaction(me.tenant):
        own = ChangeComment.objects.order_by("pk")[0].pk
    mine, foreign, absent = (
        send(me, "post", f"/v1/changes/1/comments/{key}/resolve", {})
        for key in (own, theirs, ABSENT)
    )
    return judged((mine, foreign, absent), other)


def member(address: str, body: Any) -> Probe:
    """A person by user name: another tenant's is refused like nobody's."""

    def probe(me: Side, other: Side, browser: Client) -> list[str]:
        mine, foreign, absent = (
            send(me, "post", address, {**body, "user": name}, browser)
            for name in (f"person-{me.canary}", f"person-{other.canary}", "nobody-at-all")
        )
        wrong = [] if mine.status == 201 else [f"the owner got {mine.status}: {mine.body[:200]!r}"]
        if foreign.status != 422 or foreign != absent:
            wrong.append("another tenant's person is not refused like nobody")
        return wrong + leaks(other, mine, foreign, absent)

    return Custom(probe)


CHANGE = "v1/changes/<int:number>"
CHANGE_ITEM = f"{CHANGE}/items/<str:kind>/<str:slug>"
ITEM = "v1/items/<str:kind>/<str:slug>"
RELEASE = "v1/releases/<int:number>"
HERE = "v1/environments/<str:environment>"
PROPOSAL = f"{HERE}/binding-proposals/<int:proposal>"
CHECK = "v1/governance/readiness/<str:agent>/<str:check>"
REASON = {"reason": "matrix"}
CONTENT = {"content": {"system": "x"}}
VERSIONS = {
    "framework": "2.2.x", "runtime": "2.2.x", "agent_gateway": "1.x", "supported": True,
}  # fmt: skip
HOOK = {"name": "matrix", "url": "https://hooks.example.com/", "secret_name": "HOOK"}
LATER = "2099-01-01T00:00:00Z"


def environment(suffix: str = "") -> str:
    return f"/v1/environments/production{suffix}"


API_ROUTES: dict[str, Probe] = {
    "v1/items": Listing("/v1/items?limit=200", call=KEY),
    ITEM: several(
        item(),
        lands_in_own_draft("/v1/items/prompt/matrix", "put", CONTENT),
    ),
    f"{ITEM}/revisions": item("/revisions"),
    # Named by an agent whose slug holds no canary.
    f"{ITEM}/uses": item("/uses", shows=False),
    f"{ITEM}/reach": item("/reach", kind="agent", shows=False),
    "v1/configuration": Listing("/v1/configuration", call=KEY),
    "v1/changes": several(
        Listing("/v1/changes", call=KEY), lands_in_own_draft("/v1/changes", "post", {})
    ),
    CHANGE: several(change(method="get"), change(method="patch", body={"reason": "matrix"})),
    CHANGE_ITEM: several(
        change("/items/prompt/matrix", "put", CONTENT), change("/items/prompt/matrix", "delete")
    ),
    f"{CHANGE_ITEM}/archive": Custom(
        lambda me, other, _b: judged(
            (
                send(me, "post", f"/v1/changes/1/items/prompt/{slug}/archive", {})
                for slug in (me.item("prompt"), other.item("prompt"), "nothing")
            ),
            other,
        )
    ),
    f"{CHANGE_ITEM}/restore": Custom(
        lambda me, other, _b: judged(
            (
                send(me, "post", f"/v1/changes/1/items/prompt/{slug}/restore", {"revision": 1})
                for slug in (me.item("prompt"), other.item("prompt"), "nothing")
            ),
            other,
        )
    ),
    f"{CHANGE}/comments": change("/comments", body={"text": "matrix"}),
    f"{CHANGE}/comments/<int:comment>/resolve": Custom(comment_resolve),
    f"{CHANGE}/submit": change("/submit"),
    f"{CHANGE}/decide": change("/decide", body={"decision": "approve", "sha256": "0" * 64}),
    f"{CHANGE}/withdraw": change("/withdraw"),
    f"{CHANGE}/supersede": several(
        change("/supersede", body={"by": 1}),
        by_body("/v1/changes/1/supersede", lambda number: {"by": int(number)}),
    ),
    f"{CHANGE}/rebase": change("/rebase", body={}),
    f"{CHANGE}/publish": change("/publish"),
    f"{CHANGE}/schedule": several(
        change("/schedule", "put", {"at": LATER}), change("/schedule", "delete")
    ),
    f"{CHANGE}/break-glass": change("/break-glass", body=REASON),
    f"{CHANGE}/ratify": change("/ratify", body={}),
    f"{CHANGE}/revert": change("/revert", body=REASON),
    "v1/releases": Listing("/v1/releases", call=KEY),
    RELEASE: release(),
    f"{RELEASE}/manifest": release("/manifest"),
    f"{RELEASE}/record": release("/record"),
    # Of a first release it names what was added, by slug.
    f"{RELEASE}/diff": release("/diff", shows=False),
    "v1/environments": Listing("/v1/environments", call=KEY),
    HERE: Listing(environment(), call=KEY),
    f"{HERE}/then": Listing(environment("/then"), call=KEY),
    f"{HERE}/history": Listing(environment("/history"), call=KEY),
    f"{HERE}/deploy": by_body(environment("/deploy"), lambda n: {"release": int(n)}),
    f"{HERE}/promote": by_body(environment("/promote"), lambda n: {"release": int(n)}),
    f"{HERE}/roll-back": by_body(
        environment("/roll-back"), lambda n: {"release": int(n), **REASON}
    ),
    f"{HERE}/canary": by_body(environment("/canary"), lambda n: {"release": int(n), "share": 5}),
    # No canary runs, and a key is nobody's duty: refused, and nothing of anybody is named.
    f"{HERE}/canary/finish": Listing(
        environment("/canary/finish"), Call("post", by_key=True, json=True), 409, shows=None
    ),
    f"{HERE}/canary/stop": Listing(
        environment("/canary/stop"),
        Call("post", by_key=True, data=REASON, json=True),
        409,
        shows=None,
    ),
    f"{HERE}/freezes": Listing(environment("/freezes"), call=KEY),
    f"{HERE}/freezes/<int:window>/end": of_row(
        lambda key: environment(f"/freezes/{key}/end"), "releases.freezewindow", body={}
    ),
    f"{HERE}/bindings": Listing(environment("/bindings"), call=KEY),
    f"{HERE}/bindings/<str:what>/<str:name>": lands_in_own_draft(
        "/v1/environments/dev/bindings/address/matrix", "put", {"value": "http://127.0.0.1:9/m"}
    ),
    f"{HERE}/binding-proposals": Listing(environment("/binding-proposals"), call=KEY),
    f"{PROPOSAL}/decide": of_row(
        lambda key: environment(f"/binding-proposals/{key}/decide"),
        "releases.bindingproposal",
        body={"approve": True},
    ),
    f"{PROPOSAL}/withdraw": of_row(
        lambda key: environment(f"/binding-proposals/{key}/withdraw"),
        "releases.bindingproposal",
        body={},
    ),
    # Letters, numbers and names of duties: nothing in these can hold a canary.
    "v1/governance/matrix": Listing("/v1/governance/matrix", call=KEY, shows=None),
    "v1/governance/matrix/<str:activity>": Listing(
        "/v1/governance/matrix/security_review",
        Call("put", by_key=True, data={"letters": {}}, json=True),
        shows=None,
    ),
    "v1/governance/quorums": Listing("/v1/governance/quorums", call=KEY, shows=None),
    "v1/governance/quorums/<str:risk>": Listing(
        "/v1/governance/quorums/weakening",
        Call("put", by_key=True, data={"approvals": 3, "extra_duty": "sre"}, json=True),
        shows=None,
    ),
    "v1/governance/duties": several(
        Listing("/v1/governance/duties", call=KEY),
        member("/v1/governance/duties", {"duty": "sre", "reason": "matrix"}),
    ),
    "v1/governance/duties/delegations": Listing(
        # A key holds no duty to delegate.
        "/v1/governance/duties/delegations",
        Call(
            "post",
            by_key=True,
            data={"user": "nobody", "duty": "sre", "expires_at": LATER, **REASON},
            json=True,
        ),
        403,
        shows=None,
    ),
    "v1/governance/duties/<int:assignment>/end": of_row(
        lambda key: f"/v1/governance/duties/{key}/end", "governance.dutyassignment", body={}
    ),
    "v1/governance/gates": Listing("/v1/governance/gates", call=KEY, shows=None),
    "v1/governance/gates/<str:gate>": Listing(
        "/v1/governance/gates/nothing",
        Call("put", by_key=True, data={"level": "warn"}, json=True),
        404,
        shows=None,
    ),
    "v1/governance/evidence": Custom(
        lambda me, other, _b: leaks(
            other,
            *(
                send(
                    me,
                    "get",
                    "/v1/governance/evidence?manifest_sha256="
                    + side.rows["releases.release"].sha256,
                )
                for side in (me, other)
            ),
        )
    ),
    "v1/governance/readiness/<str:agent>": Thing(
        lambda side: f"/v1/governance/readiness/{side.item('agent')}",
        "/v1/governance/readiness/nothing",
        call=KEY,
    ),
}


def _readiness(suffix: str, method: str, body: Any) -> Probe:
    def probe(me: Side, other: Side, browser: Client) -> list[str]:
        mine, foreign, absent = (
            send(me, method, f"/v1/governance/readiness/{agent}/owner{suffix}", body)
            for agent in (me.item("agent"), other.item("agent"), "nothing")
        )
        return judged((mine, foreign, absent), other)

    return Custom(probe)


API_ROUTES |= {
    "v1/governance/compatibility": Listing("/v1/governance/compatibility", call=KEY),
    "v1/governance/compatibility/<int:row>": Custom(
        lambda me, other, browser: judged(
            (
                send(me, "put", f"/v1/governance/compatibility/{key}", VERSIONS, browser)
                for key in (
                    me.rows["governance.compatibilityrow"].pk,
                    other.rows["governance.compatibilityrow"].pk,
                    ABSENT,
                )
            ),
            other,
        )
    ),
    # One's own; a key has none, so by login.
    "v1/notifications": Listing("/v1/notifications"),
    "v1/notifications/read": Custom(
        lambda me, other, browser: judged(
            (
                send(me, "post", "/v1/notifications/read", {"id": key}, browser)
                for key in (
                    me.rows["governance.notification"].pk,
                    other.rows["governance.notification"].pk,
                    int(ABSENT),
                )
            ),
            other,
        )
    ),
    "v1/governance/contracts": Listing("/v1/governance/contracts", call=KEY),
    # By name and version, which every tenant may give: there is no foreign one.
    "v1/governance/contracts/<str:name>/<int:version>": Listing(
        "/v1/governance/contracts/matrix/1",
        Call("put", by_key=True, data={"status": "active"}, json=True),
        shows=None,
    ),
    "v1/governance/webhooks": several(
        Listing("/v1/governance/webhooks", call=KEY),
        lands_in_own_draft("/v1/governance/webhooks", "post", HOOK),
    ),
    "v1/governance/webhooks/<uuid:webhook>": several(
        webhook(), webhook(method="patch", body={"enabled": False})
    ),
    "v1/governance/webhooks/<uuid:webhook>/deliveries": webhook("/deliveries", shows=False),
    CHECK: _readiness("", "put", {"state": "done", "note": "matrix"}),
    f"{CHECK}/exemption": _readiness("/exemption", "post", {**REASON, "expires_at": LATER}),
    f"{CHECK}/exemption/approve": _readiness("/exemption/approve", "post", {}),
}
