"""Conversations that were had, with everything a record can hold."""

import uuid
from typing import Any

from apps.conversations import services
from apps.conversations.tests.conftest import ENVIRONMENT, deploy, save
from apps.releases.selectors import release_load
from apps.runtime.outcomes import Answered, Outcome
from apps.runtime.turn import (
    BusinessContext,
    Caller,
    Candidate,
    Decision,
    Inbound,
    ModelCall,
    Route,
    Score,
    ToolCall,
    Turn,
    Usage,
)
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_scope

MARKUP = "<script>alert('x')</script>"
PATTERN = "secret-pattern-of-a-rail"


def release_run(tenant: Tenant) -> None:
    """Deploy a release with one agent, ``helper``, in ``tenant``."""
    with tenant_scope(tenant):
        save("prompt", "main", system="You help.")
        save("model_profile", "default", provider="scripted")
        for kind in ("memory_policy", "rail_policy", "judge_policy"):
            save(kind, "default")
        save("agent", "helper", prompt="main", description="Helps with bills.")
        save("routing_policy", "default", default_agent="helper", failure_text="Broken.")
        deploy()


def ask(tenant: Tenant, text: str = "oi", *, session: str = "s1", message_id: str = "") -> Any:
    """Accept a message of Alice's; return what ``turn_accept`` says."""
    with tenant_scope(tenant):
        return services.turn_accept(
            inbound=Inbound(
                channel="web",
                text=text,
                agent="helper",
                message_id=message_id or uuid.uuid4().hex,
                session=session,
                payload={"message": text},
                caller=Caller(principal="user:alice"),
            ),
            tenant_slug=tenant.slug,
            environment=ENVIRONMENT,
        )


def answer(tenant: Tenant, turn_id: uuid.UUID, outcome: Outcome) -> None:
    """Settle an accepted turn with ``outcome`` and a record of everything, and deliver it."""
    with tenant_scope(tenant):
        taken = services.turn_take(tenant_id=tenant.pk, turn_id=turn_id, worker="w1")
        assert taken is not None
        services.turn_settle(turn=_walked(taken, outcome), tenant_id=tenant.pk)
        services.turn_deliver(tenant_id=tenant.pk, turn_id=turn_id)


def told(tenant: Tenant, text: str = "oi", says: str = "Olá!", **asked: str) -> Any:
    """Ask and answer; return what ``turn_accept`` said."""
    accepted = ask(tenant, text, **asked)
    answer(tenant, accepted.turn_id, Answered(says))
    return accepted


def _walked(taken: services.Taken, outcome: Outcome) -> Turn:
    return Turn(
        id=str(taken.turn_id),
        tenant=str(taken.tenant_id),
        release=release_load(taken.tenant_id, taken.release_id),
        inbound=taken.inbound,
        session=taken.session,
        fence=taken.fence,
        text=taken.inbound.text,
        business_context=BusinessContext(
            values={"customer_key": "C-77"}, sources={"customer_key": "payload.customer_key"}
        ),
        route=Route(
            agent="helper",
            intent="bill_explained",
            method="keyword",
            confidence=0.8,
            domain="bills",
            reason="keywords: bill",
            threshold=0.65,
            margin=0.3,
            tools=("get_bill",),
            candidates=(
                Candidate("bill_explained", "helper", 0.8, ("bill",)),
                Candidate("order_status", "shop", 0.5, ("order",)),
            ),
        ),
        decisions=(
            Decision("identity", "IDENTITY_NOT_TRUSTED", "observe", "said by a visitor"),
            Decision("input", "MSK", "sanitize", "one CPF", metadata={"pattern": PATTERN}),
            Decision("output", "DLEX_OUT", "allow"),
        ),
        tool_calls=(
            ToolCall(
                tool="get_bill",
                server="telecom",
                arguments={"contract": "C-77"},
                status="ok",
                result={"amount": 214.37, "note": MARKUP},
                latency_ms=12.4,
            ),
            ToolCall(
                tool="get_payments",
                server="telecom",
                arguments={},
                status="refused",
                error="arguments",
                field_errors=({"field": "contract", "message": "is required"},),
            ),
        ),
        model_calls=(
            ModelCall("default", "scripted", "scripted", "agent.answer", Usage(448, 113), 3.2),
        ),
        scores=(Score("groundedness", 0.91, True, 0.6, "10 of 11 facts"),),
        outcome=outcome,
        next_state="",
        timings={"RunAgent": 20.5, "Identify": 0.2},
    )
