"""A small release with two servers and a few tools, for the tests of this app."""

from typing import Any

from apps.runtime.config import KindConfig
from apps.runtime.ports import RemoteResult
from apps.runtime.release import Release
from apps.runtime.testing import FakeLedger, FakeTransport, release_of, turn_of
from apps.runtime.turn import BusinessContext, Caller, Inbound, SessionState, Turn
from apps.tools.calling import ToolCaller
from apps.tools.config import Argument, ParameterMappingConfig, ToolConfig, ToolServerConfig

AGENT = "atendente"


class Agent(KindConfig):
    """As the kind of that name in another app."""

    kind = "agent"
    tools: list[str] = []


TRUSTED = Caller(principal="crm", may_name_customer=True)

INVOICE = ToolConfig(
    mcp_server="telecom",
    args_schema={
        "msisdn": Argument(type="string"),
        "invoice_id": Argument(type="string", aliases=["fatura"]),
        "mes": Argument(type="integer"),
        "detalhe": Argument(type="boolean"),
    },
    requires=["msisdn"],
)
EXCHANGE = ToolConfig(
    mcp_server="retail",
    tool_type="action",
    args_schema={
        "order_id": Argument(type="string", aliases=["pedido"]),
        "reason": Argument(type="string", enum=["defeito", "tamanho errado", "arrependimento"]),
        "confirmed": Argument(type="boolean"),
        "cpf": Argument(type="string", restricted=True),
    },
    requires=["order_id", "reason"],
)
INVOICE_MAPPING = ParameterMappingConfig(
    tool="consultar_fatura",
    map={"customer_key": "msisdn", "contract_key": "invoice_id", "session_key": "session_id"},
    defaults={"mes": 1, "msisdn": "00000000000", "use_mock": True},
)
EXCHANGE_MAPPING = ParameterMappingConfig(
    tool="solicitar_troca", map={"contract_key": "order_id"}, defaults={"reason": "defeito"}
)
BINDINGS = {
    "address:telecom_url": "http://telecom.test/mcp",
    "address:retail_url": "http://retail.test/mcp",
    "credential:retail_token": "RETAIL_TOKEN",
}


def release(
    *,
    tools: dict[str, ToolConfig] | None = None,
    mappings: dict[str, Any] | None = None,
    **kinds: Any,
) -> Release:
    """Return the release; ``tools`` and ``mappings`` replace or add entries.

    Its one agent, ``AGENT``, lists every tool there is unless ``agent`` says otherwise.
    """
    items: dict[str, dict[str, KindConfig]] = {
        "tool_server": {
            "telecom": ToolServerConfig(endpoint="telecom_url"),
            "retail": ToolServerConfig(endpoint="retail_url", credential="retail_token"),
        },
        "tool": {"consultar_fatura": INVOICE, "solicitar_troca": EXCHANGE, **(tools or {})},
        "parameter_mapping": {
            "consultar_fatura": INVOICE_MAPPING,
            "solicitar_troca": EXCHANGE_MAPPING,
            **(mappings or {}),
        },
    }
    items.update(kinds)
    items.setdefault("agent", {AGENT: Agent(tools=[*items["tool"], "solicitar_troca"])})
    return release_of(**items)


def turn(
    *,
    context: dict[str, str] | None = None,
    payload: dict[str, Any] | None = None,
    tool_arguments: dict[str, Any] | None = None,
    caller: Caller = TRUSTED,
    **changes: Any,
) -> Turn:
    """Return a turn of the release above; ``context`` is the resolved business context."""
    inbound = Inbound(
        channel="web", text="oi", agent=None, message_id="m1", session="s1",
        payload=payload or {}, tool_arguments=tool_arguments or {}, caller=caller,
    )  # fmt: skip
    changes.setdefault("release", release())
    changes.setdefault("bindings", BINDINGS)
    changes.setdefault("session", SessionState(id="1", key="default:agent:s1", agent=AGENT))
    return turn_of(
        "oi", inbound=inbound, business_context=BusinessContext(values=context or {}), **changes
    )


def caller_of(transport: Any, ledger: Any = None, **options: Any) -> ToolCaller:
    """Return a ``ToolCaller`` over fakes; the secret RETAIL_TOKEN is ``s3cret``."""
    secrets = {"RETAIL_TOKEN": "s3cret"}
    options.setdefault("tag_key", "key")
    return ToolCaller(
        transport, ledger or FakeLedger(), lambda name: secrets.get(name, ""), **options
    )


__all__ = [
    "BINDINGS",
    "FakeLedger",
    "FakeTransport",
    "RemoteResult",
    "caller_of",
    "release",
    "turn",
]
