"""Conversations of the demo in which agents ask each other, against the real demo servers.

Each is played turn by turn through the whole pipeline over the database: accepted, claimed, walked,
settled. What the customer reads is compared with what was recorded.
"""

import json
import re
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.conf import settings

from agentops import wiring
from agentops.demo_data import FOLDER
from agentops.runtime import turn_take_open
from apps.agents.delegation.wording import sentences
from apps.conversations.accepting import turn_accept
from apps.conversations.models import LedgerEntry, TurnRecord
from apps.releases.authority import setting_up
from apps.releases.environments.services import binding_set, release_deploy
from apps.releases.portable.native import Portable, native_parse
from apps.releases.portable.transfer import tenant_import
from apps.releases.portable.yaml_source import source_read
from apps.releases.services import release_publish
from apps.runtime.text import fold
from apps.runtime.turn import Caller, Inbound, Turn
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_scope, tenant_transaction
from apps.tenants.services import tenant_create
from apps.tools.tests.servers import running

pytestmark = pytest.mark.django_db
LINE = "11999999999"


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The two demo servers, as processes."""
    folder = tmp_path_factory.mktemp("servers")
    with running("telecom", folder / "t.db") as telecom, running("retail", folder / "r.db") as shop:
        yield {
            "telecom_mcp": f"http://127.0.0.1:{telecom.port}/mcp",
            "retail_mcp": f"http://127.0.0.1:{shop.port}/mcp",
        }


@pytest.fixture
def demo(servers: dict[str, str], db: None, settings: Any) -> Tenant:
    """The demo tenant with its delegating agent, published and deployed."""
    return built("default", servers, settings)


def built(slug: str, servers: dict[str, str], settings: Any) -> Tenant:
    """Return one of the demo's tenants over these servers."""
    settings.TOOL_ALLOW_PRIVATE = ["127.0.0.1"]
    path = FOLDER / f"{slug}.yaml"
    items = native_parse([source_read(path, path.name)]).items
    with setting_up("a test's world"):
        tenant: Tenant = tenant_create(slug=slug, name="Demo", actor="test")
        with tenant_transaction(tenant):
            tenant_import(portable=Portable(items=items), actor="test", note="demo")
            environment = settings.DEFAULT_ENVIRONMENT
            for name, address in servers.items():
                binding_set(
                    environment=environment, what="address", name=name, value=address, actor="test"
                )
            release = release_publish(actor="test", note="demo")
            release_deploy(release=release, environment=environment, actor="test")
    return tenant


@dataclass
class Talk:
    """One customer's conversation with the central."""

    tenant: Tenant
    agent: str = "central"
    customer: str = LINE
    session: str = field(default_factory=lambda: uuid.uuid4().hex)
    turns: list[Turn] = field(default_factory=list)
    heard: list[str] = field(default_factory=list)

    def say(self, text: str) -> str:
        """Send ``text`` and return the answer that left."""
        return self.said(self.walked(self.accept(text)))

    def accept(self, text: str) -> uuid.UUID:
        inbound = Inbound(
            channel="web",
            text=text,
            agent=self.agent,
            message_id=f"m{len(self.turns) + 1}",
            session=self.session,
            payload={"message": text, "business_context": {"customer_key": self.customer}},
            caller=Caller(principal="demo", may_name_customer=True, demo=True),
        )
        with tenant_transaction(self.tenant):
            accepted = turn_accept(
                inbound=inbound,
                tenant_slug=self.tenant.slug,
                environment=settings.DEFAULT_ENVIRONMENT,
            )
        return accepted.turn_id

    def walked(self, turn_id: uuid.UUID, *, dies: bool = False) -> Turn:
        """Walk the turn; a worker that ``dies`` does so before anything of it is settled."""
        opened = turn_take_open(self.tenant.pk, turn_id, "w1")
        assert opened is not None

        async def walk(turn: Turn) -> Turn:
            pipeline, close = wiring.build()
            try:
                if not dies:
                    return await pipeline.run(turn)
                for step in pipeline.steps:
                    turn = await step(turn)
                return turn
            finally:
                await close()

        with tenant_scope(self.tenant.pk):
            return async_to_sync(walk)(opened[1])

    def said(self, turn: Turn) -> str:
        assert turn.outcome is not None
        self.turns.append(turn)
        self.heard.append(turn.outcome.text)
        return turn.outcome.text

    @property
    def delegated(self) -> list[tuple[str, str, str]]:
        """Return kind, agent and status of the last turn's delegations."""
        return [(d.kind, d.agent, d.status) for d in self.turns[-1].delegations]


@pytest.fixture
def talk(demo: Tenant) -> Talk:
    return Talk(demo)


def test_consult__plan__is_answered_by_the_central_from_a_colleagues_text(talk: Talk) -> None:
    answer = talk.say("Qual é o meu plano?")
    assert answer.startswith("Consta na sua linha: ")
    assert "Controle 60 GB" in answer
    assert talk.delegated == [("consult", "product_agent", "ok")]
    asked = talk.turns[0].delegations[0]
    assert asked.request == "Que plano e serviços a linha tem?"
    assert "Controle 60 GB" in asked.outputs["text"]


def test_scoped__silent_colleague_that_tries_to_speak__is_not_heard(talk: Talk) -> None:
    answer = talk.say("Explique a minha fatura")
    assert answer.startswith("Olhei a sua fatura. ")
    assert "214,37" in answer
    assert "Prezado" not in answer
    assert talk.delegated == [("scoped", "analista_fatura", "ok")]
    assert talk.turns[0].delegations[0].spoke is False


def test_scoped__speaking_colleague__is_heard_once_before_the_central(talk: Talk) -> None:
    answer = talk.say("Onde está o pedido PED-1001?")
    told, rest = answer.split("\n\n")
    assert "TR123456789BR" in told
    assert rest == "Se precisar de outra coisa, é só dizer."
    assert talk.delegated == [("scoped", "rastreio_agent", "ok")]
    assert talk.turns[0].delegations[0].spoke is True


def test_sub_conversation__specialist_holds_it_and_gives_it_back(talk: Talk) -> None:
    assert talk.say("Quero negociar a minha fatura") == (
        "Dá para dividir em duas ou em três vezes. Como prefere?"
    )
    assert talk.delegated == [("sub_conversation", "negociador_agent", "started")]
    assert (talk.say("Em três vezes")).startswith("Então fica a divisão em três vezes.")
    route = talk.turns[-1].route
    assert route is not None
    assert (route.method, route.agent) == ("delegation", "negociador_agent")
    assert (talk.say("Combinado")).startswith("Anotei a sua preferência de parcelas.")
    assert talk.delegated == [("sub_conversation", "negociador_agent", "completed")]
    details = talk.turns[-1].delegations[0].outputs["details"]
    assert (details["final_result"], details["last_user_message"]) == ({"parcelas": 3}, "Combinado")
    talk.say("E o meu plano?")
    route = talk.turns[-1].route
    assert route is not None
    assert route.agent == "central"


def test_sub_conversation__customer_changes_the_subject_or_gives_up__is_left(
    talk: Talk,
) -> None:
    talk.say("Quero negociar a minha fatura")
    talk.say("Esquece isso")
    assert talk.delegated == [("sub_conversation", "negociador_agent", "user_cancelled")]
    assert talk.turns[-1].dialogue.sub_conversation is None


def test_action__whose_order_the_model_chose__is_put_to_the_customer(talk: Talk) -> None:
    assert talk.say("Quero trocar o pedido").startswith("Confirma a troca do pedido PED-1002?")
    refused = talk.say("Não")
    assert refused.startswith("Tudo bem, não vou fazer isso.")


RECORDED: dict[str, list[dict[str, Any]]] = json.loads(
    Path(__file__).with_name("recorded_conversations.json").read_text()
)
PASSING = ((r"\d{2}/\d{2}/\d{4} \d{2}:\d{2}", "<when>"), (r"TRO-\d+", "<protocol>"))
"""What differs from run to run."""


def settled(answer: str) -> str:
    for pattern, name in PASSING:
        answer = re.sub(pattern, name, answer)
    return answer


@pytest.mark.parametrize("name", RECORDED)
def test_recorded__played_again__is_word_for_word_the_same(name: str, talk: Talk) -> None:
    for turn in RECORDED[name]:
        answer = settled(talk.say(turn["customer"]))
        assert answer == turn["answer"], turn["customer"]
        assert ["/".join(entry) for entry in talk.delegated] == turn["asked"], turn["customer"]
    assert all(
        t.outcome is not None and t.outcome.kind in ("answered", "waiting") for t in talk.turns
    )


def test_ten_turns__across_all_kinds__say_nothing_twice_and_drop_nothing(talk: Talk) -> None:
    turns = RECORDED["all kinds in ten turns"]
    kinds = {asked.split("/")[0] for turn in turns for asked in turn["asked"]}
    assert (len(turns), kinds) == (10, {"consult", "scoped", "sub_conversation"})
    said = Counter(
        fold(sentence).strip()
        for turn in turns
        for sentence in sentences(turn["answer"])
        if re.search(r"\w", sentence)
    )
    assert [sentence for sentence, times in said.items() if times > 1] == []
    # Every question has its own answer, both halves of a double one included.
    wanted = (
        "Controle 60 GB", "R$ 214,37", "TR123456789BR", "duas ou em três vezes",
        "divisão em três vezes", "preferência de parcelas", "TR123450001BR", "R$ 157,70",
        "Confirma a troca do pedido PED-1002", "<protocol>", "troca do PED-1002 consta",
    )  # fmt: skip
    answers = "\n".join(turn["answer"] for turn in turns)
    assert [part for part in wanted if part not in answers] == []
    for internal in ("_agent", "consultar_", "delegate_", "specialist", "Prezado", "negociação."):
        assert internal not in answers


def test_delegating_turn__taken_again_by_another_worker__makes_no_new_call(
    talk: Talk,
) -> None:
    turn_id = talk.accept("Que pagamentos constam, e onde anda o pedido PED-1002?")
    turn = talk.walked(turn_id, dies=True)
    with tenant_transaction(talk.tenant):
        TurnRecord.objects.filter(pk=turn_id).update(status="queued", lease_until=None)
        before = LedgerEntry.objects.filter(turn_id=turn_id).count()
    assert before == len(turn.model_calls) + len(turn.tool_calls)
    again = talk.walked(turn_id)
    with tenant_transaction(talk.tenant):
        entries = list(LedgerEntry.objects.filter(turn_id=turn_id).values_list("starts", flat=True))
    assert entries == [1] * before
    assert all(call.replayed for call in again.model_calls)
    assert all(call.replayed for call in again.tool_calls)
    assert again.draft == turn.draft


def test_workflow_of_the_shop__asks_on_its_way_and_opens_the_return_once(
    servers: dict[str, str], db: None, settings: Any
) -> None:
    talk = Talk(built("loja", servers, settings), agent="retail_orders", customer="C-500")
    assert talk.say("Quero devolver o pedido PED-5003") == "Qual é o motivo?"
    question = talk.say("não serviu")
    assert question.startswith("Confirma a devolução do pedido PED-5003?")
    assert talk.say("sim") == "Em que embalagem está o produto: original ou outra?"
    assert talk.say("azul").startswith("Preciso saber só isto")
    answer = talk.say("original")
    last = talk.turns[-1].dialogue.last_transaction
    assert last is not None
    assert last.status == "COMPLETED"
    assert "DEV-" in answer
    actions = [call for turn in talk.turns for call in turn.tool_calls if call.action]
    assert [(call.tool, call.status) for call in actions] == [("solicitar_devolucao", "ok")]
