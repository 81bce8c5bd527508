"""Two tenants with a row in every tenant-owned table, each marked with its own canary."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.contenttypes.models import ContentType
from django.test import Client
from django.utils import timezone

from apps.conversations.models import (
    Confirmation,
    Event,
    LedgerEntry,
    Message,
    OutboundMessage,
    Session,
    TurnRecord,
)
from apps.governance.approval_models import (
    CompatibilityRow,
    ContractVersion,
    Duty,
    DutyAssignment,
    Evidence,
    GateLevel,
    Notification,
    RaciEntry,
    ReadinessCheck,
    RiskQuorum,
    WebhookDelivery,
    WebhookEndpoint,
)
from apps.releases.change_models import (
    Approval,
    BindingProposal,
    ChangeComment,
    ChangePatch,
    ChangeRequest,
    DeploymentEvent,
    FreezeWindow,
    HeadMove,
)
from apps.releases.environments.services import binding_set, release_deploy
from apps.releases.kinds import proxies
from apps.releases.models import Binding, Deployment, Reference, Release, Revision
from apps.releases.services import item_save, release_publish
from apps.routing.vector_models import ExampleVector, VectorWork
from apps.runtime.canonical import canonical_json, sha256_text
from apps.tenants.models import ApiKey, Role, User
from apps.tenants.scope import tenant_transaction
from apps.tenants.sealing import seal
from apps.tenants.services import audit_append, membership_grant
from apps.tools.contract_models import SeenTool, ServerState, ToolMock, ToolQuarantine
from apps.tools.models import (
    ToolAnswer,
    ToolClient,
    ToolConnection,
    ToolInvocation,
    ToolSignIn,
    WorkflowNodeRun,
    WorkflowRun,
)


@dataclass
class Side:
    """One tenant as the probes see it. ``rows``: a row of each table, by ``app.model``."""

    tenant: Any
    user: Any
    key: str
    rows: dict[str, Any] = field(default_factory=dict)

    @property
    def slug(self) -> str:
        return str(self.tenant.slug)

    @property
    def canary(self) -> str:
        """What only this tenant's answers may contain."""
        return f"canary-of-{self.slug}"

    @property
    def session_key(self) -> str:
        return f"{self.slug}:{self.item('agent')}:{self.canary}"

    def item(self, kind: str) -> str:
        """Return the slug of this side's item of ``kind``: no other side has it."""
        return f"{kind}-{self.slug}"

    def platform_row(self, label: str) -> str:
        """Return the id of this side in a table of the platform: tenants and people."""
        return str({"tenants.tenant": self.tenant, "tenants.user": self.user}[label].pk)

    def content_type(self, label: str) -> int:
        return int(ContentType.objects.get_for_model(type(self.rows[label])).pk)

    def browser(self) -> Client:
        client = Client()
        client.force_login(self.user)
        return client

    def bearer(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.key}"}


def contents(side: Side) -> dict[str, dict[str, Any]]:
    """Return the content of one item of every kind. A kind left out fails the matrix."""
    return {
        "model_profile": {"provider": "scripted"},
        "memory_policy": {},
        "rail_policy": {},
        "judge_policy": {},
        "identity_key": {"description": side.canary},
        "prompt": {"system": side.canary},
        "tool_server": {"endpoint": side.canary, "description": side.canary},
        "tool": {"mcp_server": side.item("tool_server"), "description": side.canary},
        "parameter_mapping": {"tool": side.item("tool")},
        "workflow": {"start": "one", "nodes": [{"id": "one", "tool": side.item("tool")}]},
        "agent": {
            "prompt": side.item("prompt"),
            "description": side.canary,
            "tools": [side.item("tool")],
        },
        "intent": {"agent": side.item("agent"), "description": side.canary},
        "state_policy": {"state": "waiting", "agent": side.item("agent")},
        "routing_policy": {"default_agent": side.item("agent")},
    }


# Named by the others when they name none.
DEFAULTS = ("model_profile", "memory_policy", "rail_policy", "judge_policy", "routing_policy")


def sides_make(world: Any) -> tuple[Side, Side]:
    """Fill the shared world's two tenants; return acme's and the other's side."""
    acme = Side(world.acme, world.alice, world.acme_key)
    other = Side(world.other, world.charlie, world.other_key)
    for side in (acme, other):
        with tenant_transaction(side.tenant):
            _access(side)
            _configuration(side)
            _conversation(side)
            _workflow_run(side)
            _changes(side)
            _governance(side)
            _vectors(side)
            _servers(side)
            _outside(side)
    return acme, other


def _access(side: Side) -> None:
    # A person of the side whose name is the canary: the reader's own is on every page.
    person = User.objects.create_user(f"person-{side.canary}")
    side.rows["tenants.membership"] = membership_grant(
        user=person, role=Role.OPERATOR, actor=side.canary
    )
    ApiKey.objects.update(name=side.canary)
    side.rows["tenants.apikey"] = ApiKey.objects.get()
    side.rows["tenants.auditentry"] = audit_append(
        actor=side.canary,
        action="matrix.marked",
        entity=side.canary,
        detail={"canary": side.canary},
    )


def _configuration(side: Side) -> None:
    filled = contents(side)
    for kind in DEFAULTS:
        item_save(kind=kind, slug="default", content=filled[kind], actor=side.canary)
    for kind, content in filled.items():
        item_save(
            kind=kind, slug=side.item(kind), content=content, actor=side.canary, name=side.canary
        )
    for proxy in proxies():
        assert proxy.config_class is not None
        kind = proxy.config_class.kind
        side.rows[proxy._meta.label_lower] = proxy.objects.get(slug=side.item(kind))
    agent = side.rows["agents.agent"]
    side.rows["releases.configitem"] = agent
    side.rows["releases.revision"] = Revision.objects.get(item=agent)
    side.rows["releases.headmove"] = HeadMove.objects.filter(item=agent).first()
    side.rows["releases.reference"] = Reference.objects.filter(revision__item=agent).first()
    side.rows["releases.binding"] = binding_set(
        environment=settings.DEFAULT_ENVIRONMENT,
        what=Binding.What.ADDRESS,
        name=side.canary,
        value=f"http://127.0.0.1:9/{side.canary}",
        actor=side.canary,
    )
    release = release_publish(actor=side.canary, note=side.canary)
    side.rows["releases.release"] = Release.objects.get(pk=release.pk)
    side.rows["releases.deployment"] = release_deploy(
        release=release, environment=settings.DEFAULT_ENVIRONMENT, actor=side.canary
    )
    assert Deployment.objects.count() == 1


def _conversation(side: Side) -> None:
    session = Session.objects.create(
        key=side.session_key,
        name=side.canary,
        agent=side.item("agent"),
        channel="web",
        principal=f"user:{side.user.username}",
        turn_number=1,
        event_sequence=1,
        business_context=canonical_json({"customer_key": side.canary}),
    )
    now = timezone.now()
    turn = TurnRecord.objects.create(
        session=session,
        number=1,
        status=TurnRecord.Status.SETTLED,
        channel="web",
        user=f"user:{side.user.username}",
        message_id="m1",
        body_digest="0" * 64,
        release=side.rows["releases.release"],
        environment=settings.DEFAULT_ENVIRONMENT,
        inbound="",
        outcome="answered",
        answer=side.canary,
        record=canonical_json(
            {"route": {"agent": side.item("agent"), "intent": side.canary, "method": "keyword"}}
        ),
        claimed_at=now,
        settled_at=now,
    )
    message = Message.objects.create(
        session=session, turn=turn, sequence=1, role="assistant", text=side.canary
    )
    ledger = LedgerEntry.objects.create(
        turn=turn,
        key="k",
        kind="tool",
        name=side.item("tool"),
        ordinal=0,
        contract="0" * 64,
        arguments="{}",
        result=canonical_json({"ok": True, "result": side.canary}),
    )
    event = Event.objects.create(
        session=session,
        turn=turn,
        sequence=1,
        event_type="message.completed",
        payload=canonical_json({"text": side.canary, "turn_id": str(turn.pk)}),
    )
    outbound = OutboundMessage.objects.create(
        turn=turn, session=session, channel="web", text=side.canary
    )
    confirmation = Confirmation.objects.create(
        session=session,
        release=side.rows["releases.release"],
        tool=side.item("tool"),
        contract="0" * 64,
        arguments="0" * 64,
        asked_turn=turn,
        expires_at=now,
    )
    answer = ToolAnswer.objects.create(
        key=sha256_text(side.canary),
        scope="0" * 64,
        tool=side.item("tool"),
        answer=seal({"text": canonical_json({"ok": True, "result": side.canary})}),
        expires_at=now + timedelta(hours=1),
    )
    for row in (session, turn, message, ledger, event, outbound, confirmation, answer):
        side.rows[row._meta.label_lower] = row


def _workflow_run(side: Side) -> None:
    """A run that ended, with its node; a tool's answer has the canary in it."""
    session, turn = (side.rows[f"conversations.{name}"] for name in ("session", "turnrecord"))
    run = WorkflowRun.objects.create(
        session_id=session.pk,
        workflow=side.item("workflow"),
        release=side.rows["releases.release"],
        definition=canonical_json(contents(side)["workflow"]),
        identity=side.slug,
        agent=side.canary,
        status=WorkflowRun.Status.FAILED,
        inputs=seal({"text": canonical_json({"order_id": side.canary})}),
        error=side.canary,
        began_turn=turn.pk,
        turn=turn.pk,
        turn_number=1,
        fence=1,
        ended_at=timezone.now(),
    )
    node = WorkflowNodeRun.objects.create(
        run=run,
        kind=WorkflowNodeRun.Kind.CALL,
        node="one",
        visit=1,
        status=WorkflowNodeRun.Status.FAILED,
        tool=side.item("tool"),
        result=seal({"text": canonical_json({"error": side.canary, "result": None})}),
        turn=turn.pk,
    )
    for row in (run, node):
        side.rows[row._meta.label_lower] = row


def _changes(side: Side) -> None:
    """A request in review that edits the prompt, and what stands around it.

    Rows by hand: they are there whatever the services think of who did what.
    """
    now, release = timezone.now(), side.rows["releases.release"]
    request = ChangeRequest.objects.create(
        number=1,
        title=side.canary,
        reason=side.canary,
        status=ChangeRequest.Status.IN_REVIEW,
        author=f"user:{side.canary}",
        editors=canonical_json([f"user:{side.canary}"]),
        manifest_sha256=release.sha256,
        submitted_at=now,
    )
    about = {"kind": "prompt", "slug": side.item("prompt")}
    edit = {"op": "set", "path": "system", "before": side.canary, "after": f"{side.canary} again"}
    patch = ChangePatch.objects.create(
        request=request,
        action=ChangePatch.Action.CHANGE,
        base=Revision.objects.get(item__kind="prompt", item__slug=side.item("prompt")),
        operations=canonical_json([edit]),
        edited_by=f"user:{side.canary}",
        **about,
    )
    approval = Approval.objects.create(
        request=request,
        person=f"user:{side.canary}-2",
        decision=Approval.Decision.APPROVE,
        manifest_sha256="0" * 64,
        terms="0" * 64,
        comment=side.canary,
    )
    comment = ChangeComment.objects.create(
        request=request, author=side.canary, text=side.canary, path="system", **about
    )
    where = {"environment": settings.DEFAULT_ENVIRONMENT}
    happened = DeploymentEvent.objects.create(
        verb=DeploymentEvent.Verb.DEPLOY,
        release=release,
        reason=side.canary,
        actor=side.canary,
        **where,
    )
    # Over: it would refuse what the other probes do.
    freeze = FreezeWindow.objects.create(
        starts_at=now - timedelta(days=2),
        ends_at=now - timedelta(days=1),
        reason=side.canary,
        created_by=side.canary,
        **where,
    )
    proposal = BindingProposal.objects.create(
        what="address",
        name=f"{side.canary}-2",
        value=f"http://127.0.0.1:9/{side.canary}",
        proposed_by=f"user:{side.canary}",
        **where,
    )
    for row in (request, patch, approval, comment, happened, freeze, proposal):
        side.rows[row._meta.label_lower] = row


def _governance(side: Side) -> None:
    """A row of every table that says who approves, what was proved and who is told."""
    person = User.objects.get(username=f"person-{side.canary}")
    by = {"updated_by": side.canary}
    endpoint = WebhookEndpoint.objects.create(
        name=side.canary,
        url=f"https://hooks.example.com/{side.canary}",
        secret_name="MATRIX_HOOK",
        created_by=side.canary,
    )
    rows = [
        endpoint,
        # Waits for no sweep: it is the matrix that is sent nowhere.
        WebhookDelivery.objects.create(
            endpoint=endpoint,
            event="change.submitted",
            payload=canonical_json({"subject": side.canary}),
        ),
        RaciEntry.objects.create(activity="security_review", duty=Duty.SRE, letters="C", **by),
        RiskQuorum.objects.create(risk="weakening", approvals=2, extra_duty=Duty.SECURITY, **by),
        DutyAssignment.objects.create(
            user=person, duty=Duty.SECURITY, reason=side.canary, granted_by=side.canary
        ),
        GateLevel.objects.create(gate="matrix", level=GateLevel.Level.WARN, **by),
        Evidence.objects.create(
            manifest_sha256=side.rows["releases.release"].sha256,
            what=Evidence.What.TESTS,
            passed=True,
            result_sha256="0" * 64,
            summary=side.canary,
            recorded_by=side.canary,
        ),
        ReadinessCheck.objects.create(
            agent=side.item("agent"), check_code="owner", note=side.canary, **by
        ),
        CompatibilityRow.objects.create(
            framework="2.1.x", runtime="2.1.x", agent_gateway="1.x", note=side.canary, **by
        ),
        ContractVersion.objects.create(name=side.canary, version=1, owner=side.canary, **by),
        Notification.objects.create(
            user=side.user, event="change.submitted", subject=side.canary, mailed_at=timezone.now()
        ),
    ]
    for row in rows:
        side.rows[row._meta.label_lower] = row


def _servers(side: Side) -> None:
    """What a tool server was seen to offer, a tool in quarantine, a mock."""
    where = {"environment": settings.DEFAULT_ENVIRONMENT, "server": side.item("tool_server")}
    contract = canonical_json({"name": side.canary, "description": side.canary})
    rows = [
        # Just asked: the chore of the matrix leaves it alone.
        ServerState.objects.create(**where, count=1, checked_at=timezone.now()),
        SeenTool.objects.create(**where, name=side.canary, sha256="0" * 64, contract=contract),
        ToolQuarantine.objects.create(
            **where,
            tool=side.item("tool"),
            reason="gone",
            pinned_sha256="0" * 64,
            pinned=contract,
            changed_at=timezone.now(),
            opened_by=side.canary,
        ),
        ToolMock.objects.create(
            tool=side.item("tool"),
            steps=canonical_json([{"result": side.canary}]),
            updated_by=side.canary,
        ),
    ]
    for row in rows:
        side.rows[row._meta.label_lower] = row


def _outside(side: Side) -> None:
    """A tool called by another system, and what is held at authorisation servers."""
    environment = {"environment": settings.DEFAULT_ENVIRONMENT}
    where = {**environment, "server": side.item("tool_server")}
    issuer = f"https://auth.example/{side.canary}"
    person = f"user:person-{side.canary}"
    rows = [
        ToolInvocation.objects.create(
            **where,
            caller=side.canary,
            agent=side.item("agent"),
            tool=side.item("tool"),
            door="rest",
            request_id=side.canary,
            body_digest="0" * 64,
            release=side.rows["releases.release"],
            status="ok",
            arguments=canonical_json({"canary": side.canary}),
            answer=seal({"ok": True, "data": side.canary}),
            lease_until=timezone.now(),
        ),
        ToolConnection.objects.create(
            **where,
            principal=person,
            resource=f"http://127.0.0.1:9/{side.canary}",
            issuer=issuer,
            state="valid",
            token=seal({"access": side.canary}),
        ),
        ToolSignIn.objects.create(
            **where,
            state_digest=sha256_text(side.canary),
            principal=person,
            resource=side.canary,
            issuer=issuer,
            token_endpoint=issuer,
            redirect_uri=issuer,
            client_id=side.canary,
            secrets=seal({"verifier": side.canary}),
            expires_at=timezone.now(),
        ),
        ToolClient.objects.create(
            **where, issuer=issuer, redirect_uri=issuer, client_id=side.canary
        ),
    ]
    for row in rows:
        side.rows[row._meta.label_lower] = row


def _vectors(side: Side) -> None:
    """A vector of an example, and how far making them is."""
    for row in (
        ExampleVector.objects.create(model=side.canary, digest="0" * 64, vector=b"\0" * 8),
        VectorWork.objects.create(model=side.canary, total=2, done=1),
    ):
        side.rows[row._meta.label_lower] = row
