"""Workflow runs: the way through, failures and compensation, questions, and what is never done twice."""

from dataclasses import replace
from typing import Any

import pytest

from apps.runtime.ports import RemoteResult, ToolUnavailable
from apps.runtime.testing import FakeLedger
from apps.runtime.turn import BusinessContext, SessionState
from apps.tools.tests.workflow_world import (
    FAILS,
    Died,
    MemoryStore,
    Server,
    engine,
    tool,
    turn,
    workflow,
)
from apps.tools.workflows.interface import Code, Confirmed
from apps.tools.workflows.walking import MAX_STEPS

RUN = "00000000-0000-4000-8000-000000000001"
INPUTS = {"order_id": "PED-1"}
ELSEWHERE = SessionState(id="s2", key="default:a:s2", agent="a")
RESERVE = {
    "id": "reserva", "tool": "reservar", "next": "troca", "at_most_once": True,
    "params": {"order_id": "$.input.order_id"},
    "compensate_tool": "liberar",
    "compensate_params": {"reservation": "$.nodes.reserva.id"},
}  # fmt: skip
EXCHANGE = {
    "id": "troca", "tool": "trocar", "next": "aviso",
    "params": {"order_id": "$.input.order_id", "reservation": "$.nodes.reserva.id"},
}  # fmt: skip
NOTICE = {"id": "aviso", "tool": "avisar", "at_most_once": True, "params": {"x": "texto fixo"}}
STRAIGHT = workflow(RESERVE, EXCHANGE, NOTICE, done_text="Reserva {nodes.reserva.id} feita.")
ASK = {
    "id": "pergunta", "next": "troca",
    "pause": {
        "key": "motivo", "question": "Qual o motivo?", "allowed_values": ["Defeito", "Não serviu"],
        "reprompt": "Responda Defeito ou Não serviu.",
    },
}  # fmt: skip
ASKING = workflow(
    {**RESERVE, "next": "pergunta"},
    ASK,
    {**EXCHANGE, "params": {"reason": "$.input.motivo"}},
    NOTICE,
)
RESULTS = {"reservar": {"id": "R-9"}}


async def begin(config, server=None, store=None, **changes):
    """Start the run; return turn, result, server and store."""
    server, store = server or Server(dict(RESULTS)), store or MemoryStore()
    now = turn(config, **changes)
    after, result = await engine(server, store).start(now, "troca", INPUTS, RUN)
    return after, result, server, store


# -- the way through ---------------------------------------------------------------------------


async def test_start__every_node_ends__completed_with_outputs_and_closing_text():
    after, result, server, _store = await begin(STRAIGHT)
    assert (result.status, result.execution_id, result.workflow) == ("COMPLETED", RUN, "troca")
    assert result.text == "Reserva R-9 feita."
    assert result.outputs["reserva"] == {"id": "R-9"}
    assert [entry.status for entry in result.trace] == ["ok", "ok", "ok"]
    sent = [(name, arguments) for name, arguments, _key in server.calls]
    assert sent == [
        ("reservar", {"order_id": "PED-1"}),
        ("trocar", {"order_id": "PED-1", "reservation": "R-9"}),
        ("avisar", {"x": "texto fixo"}),
    ]
    assert [call.tool for call in after.tool_calls] == ["reservar", "trocar", "avisar"]
    assert [signal.code for signal in after.signals] == [
        "IC.TRANSACTIONAL_WORKFLOW_STARTED",
        "IC.TRANSACTIONAL_WORKFLOW_COMPLETED",
    ]


@pytest.mark.parametrize(
    ("when", "called"),
    [
        ("$.nodes.ver.valor == 10", True),
        ("$.nodes.ver.valor == 11", False),
        ("$.nodes.ver.status != PAGA", True),
        ("$.nodes.ver.status == 'em aberto'", True),
        ("$.nodes.ver.pago", False),
        ("$.nodes.ver.nada", False),
        ("$.nodes.ver.itens.0.id == A", True),
    ],
)
async def test_condition__of_a_result__decides_whether_the_node_runs(when, called):
    config = workflow(
        {"id": "ver", "tool": "consultar", "next": "troca"},
        {"id": "troca", "tool": "trocar", "when": when, "next": "fim", "otherwise": "outro"},
        {"id": "outro", "tool": "avisar", "at_most_once": True},
        {"id": "fim", "tool": "consultar"},
    )
    seen = {"valor": 10, "status": "Em Aberto", "pago": False, "itens": [{"id": "A"}]}
    _turn, result, server, _store = await begin(config, Server({"consultar": seen}))
    assert result.status == "COMPLETED"
    assert ("trocar" in server.effects) is called
    assert ("avisar" in server.effects) is not called
    assert ("skipped" in [entry.status for entry in result.trace]) is not called


async def test_literal__of_a_boolean_argument__is_sent_as_a_boolean():
    from apps.tools.config import Argument

    flagged = tool(
        args_schema={"x": Argument(type="boolean"), "order_id": Argument(type="integer")}
    )
    config = workflow({"id": "a", "tool": "avisar", "params": {"x": "true", "order_id": "77"}})
    _turn, _result, server, _store = await begin(config, tools={"avisar": flagged})
    assert server.calls[0][1] == {"x": True, "order_id": 77}


async def test_start__of_a_workflow_that_is_off_or_absent__is_refused_and_nothing_is_recorded():
    _turn, off, server, store = await begin(STRAIGHT.model_copy(update={"enabled": False}))
    now = turn(STRAIGHT)
    _turn, absent = await engine(server, store).start(now, "nenhum", INPUTS, RUN)
    assert (off.code, absent.code) == (Code.UNKNOWN_WORKFLOW, Code.UNKNOWN_WORKFLOW)
    assert server.calls == []
    assert store.runs == {}


# -- failures ----------------------------------------------------------------------------------


async def test_failure__without_a_way_out__takes_back_what_was_done_newest_first():
    twice = {
        **RESERVE,
        "id": "outra",
        "next": "troca",
        "compensate_params": {"x": "$.nodes.outra.id"},
    }
    config = workflow({**RESERVE, "next": "outra"}, twice, EXCHANGE, NOTICE)
    server = Server({"reservar": [{"id": "R-1"}, {"id": "R-2"}], "trocar": FAILS})
    _turn, result, server, store = await begin(config, server)
    assert (result.status, result.code, result.node) == ("FAILED", Code.NODE_FAILED, "troca")
    assert result.error == "Fora do prazo."
    details = result.error_details
    assert (details.status_code, details.body, details.attempts) == (422, {"code": "LATE"}, 1)
    assert result.compensated == ("outra", "reserva")
    assert result.uncompensated == ()
    assert [call[1] for call in server.calls[-2:]] == [{"x": "R-2"}, {"reservation": "R-1"}]
    assert server.effects == ["reservar", "reservar", "liberar", "liberar"]
    assert store.runs[RUN].status == "COMPENSATED"


async def test_failure__with_a_way_out__goes_there_and_takes_nothing_back():
    config = workflow(RESERVE, {**EXCHANGE, "next": "", "on_failure": "aviso"},
                      {**NOTICE, "params": {"x": "$.nodes.troca.error"}})  # fmt: skip
    _turn, result, server, _store = await begin(config, Server({**RESULTS, "trocar": FAILS}))
    assert result.status == "COMPLETED"
    assert server.effects == ["reservar", "avisar"]
    assert server.calls[-1][1] == {"x": "Fora do prazo."}


async def test_retries__of_an_idempotent_tool__same_key_each_time_and_longer_pauses():
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    config = workflow({**EXCHANGE, "next": "", "params": {}, "retries": 3, "backoff_ms": 100})
    server, store = Server({"trocar": [FAILS, FAILS, {"id": 1}]}), MemoryStore()
    _turn, result = await engine(server, store, sleep=sleep).start(
        turn(config), "troca", INPUTS, RUN
    )
    assert result.status == "COMPLETED"
    assert result.trace[0].attempts == 3
    assert len({key for _name, _arguments, key in server.calls}) == 1
    assert slept == [0.1, 0.2]


async def test_retries__used_up__failed_with_the_number_of_attempts():
    config = workflow({**EXCHANGE, "next": "", "params": {}, "retries": 2})
    _turn, result, server, _store = await begin(config, Server({"trocar": FAILS}))
    assert result.error_details.attempts == 3
    assert len(server.calls) == 3


async def test_retries__of_an_action_that_is_not_idempotent__are_none():
    config = workflow({"id": "a", "tool": "avisar", "retries": 5})
    _turn, result, server, _store = await begin(config, Server({"avisar": FAILS}))
    assert len(server.calls) == 1
    assert result.error_details.attempts == 1


async def test_refused_call__is_a_failure_without_a_retry():
    strict = tool(idempotent=True, requires=["order_id"])
    config = workflow({**EXCHANGE, "next": "", "params": {}, "retries": 5})
    _turn, result, server, _store = await begin(config, tools={"trocar": strict})
    assert (result.status, server.calls, result.trace[0].status) == ("FAILED", [], "refused")


async def test_timeout_of_a_node__less_than_the_tools__is_the_one_that_is_kept():
    asked: list[float] = []

    class Timed(Server):
        async def call(self, tool, arguments, *, idempotency_key):
            asked.append(tool.timeout_seconds)
            return await super().call(tool, arguments, idempotency_key=idempotency_key)

    config = workflow({"id": "a", "tool": "consultar", "timeout_seconds": 2.5, "next": "b"},
                      {"id": "b", "tool": "consultar", "timeout_seconds": 90})  # fmt: skip
    await begin(config, Timed())
    assert asked == [2.5, 30]


async def test_unknown_end_of_an_action__stops_without_compensation_or_repetition():
    server = Server({**RESULTS, "avisar": ToolUnavailable("gone", sent=True)})
    _turn, result, server, store = await begin(STRAIGHT, server)
    assert (result.status, result.unknown, result.code) == ("FAILED", True, Code.NODE_UNKNOWN)
    assert result.compensated == ()
    assert server.effects == ["reservar", "trocar", "avisar"]
    assert store.runs[RUN].status == "UNKNOWN"
    # The same request again is answered from the record: the notice is not sent a second time.
    _turn, again, _server, _store = await begin(STRAIGHT, server, store, id="t2")
    assert again.unknown
    assert again.replayed
    assert server.effects.count("avisar") == 1


async def test_compensation_that_fails__is_told_and_the_others_still_run():
    twice = {**RESERVE, "id": "outra", "next": "troca", "compensate_params": {}}
    config = workflow({**RESERVE, "next": "outra"}, twice, EXCHANGE, NOTICE)
    server = Server({"reservar": {"id": 1}, "liberar": [FAILS, {"ok": True, "result": 1}], "trocar": FAILS})  # fmt: skip
    _turn, result, _server, store = await begin(config, server)
    assert (result.compensated, result.uncompensated) == (("reserva",), ("outra",))
    assert store.runs[RUN].status == "FAILED"


# -- several items -----------------------------------------------------------------------------

ITEMS = {"results": [{"id": "A", "success": True}, {"id": "B", "success": False}]}
BATCH = workflow(
    {**EXCHANGE, "id": "trocar", "params": {}, "next": "aviso", "compensate_tool": "liberar"},
    NOTICE,
)


async def test_items__one_bad_and_the_notice_fails__stay_with_the_second_error_beside_them():
    """Fault 38: a partial batch is no failure, and what fails later does not erase it."""
    server = Server(
        {"trocar": RemoteResult(ok=False, error="1 de 2", result=ITEMS), "avisar": FAILS}
    )
    server.keeps = ()
    _turn, result, server, _store = await begin(BATCH, server)
    items = result.items
    assert (items.status, items.count, items.succeeded, items.failed) == (
        "PARTIAL_SUCCESS",
        2,
        1,
        1,
    )
    assert items.items[1] == {"id": "B", "success": False}
    assert items.original_ok is False
    assert (result.status, result.secondary_error) == ("COMPLETED", "Fora do prazo.")
    assert result.compensated == ()
    assert "liberar" not in server.effects


async def test_items__all_bad__the_node_failed_and_tells_each():
    bad = {"results": [{"id": "A", "ok": False}, {"id": "B", "ok": False}]}
    _turn, result, server, _store = await begin(BATCH, Server({"trocar": bad}))
    assert (result.status, result.items.status, result.items.failed) == ("FAILED", "FAILED", 2)
    assert "avisar" not in server.effects


async def test_items__of_a_node_with_another_name__are_not_those_of_the_tool():
    config = workflow({**EXCHANGE, "id": "outra_coisa", "params": {}, "next": ""})
    _turn, result, _server, _store = await begin(config, Server({"trocar": ITEMS}))
    assert result.items is None
    assert result.status == "COMPLETED"


# -- questions ---------------------------------------------------------------------------------


async def test_pause__asks_once_and_the_nodes_before_it_never_run_again():
    after, result, server, store = await begin(ASKING)
    assert (result.status, result.node, result.question) == ("PAUSED", "pergunta", "Qual o motivo?")
    assert result.allowed_values == ("Defeito", "Não serviu")
    assert not result.final
    assert [signal.code for signal in after.signals] == ["IC.TRANSACTIONAL_WORKFLOW_STARTED"]
    again = engine(server, store)
    second = turn(ASKING, id="t2")
    assert await again.expects(second, RUN, "nao serviu!") == "Não serviu"
    assert await again.expects(second, RUN, "quero minha fatura") == ""
    _turn, done = await again.resume(second, RUN, " NAO SERVIU ")
    assert done.status == "COMPLETED"
    assert server.effects == ["reservar", "trocar", "avisar"]
    assert server.calls[1][1] == {"reason": "Não serviu"}


async def test_pause__answer_that_is_none__is_asked_again_in_other_words():
    _turn, _result, server, store = await begin(ASKING)
    waiting = await engine(server, store).pause_of(turn(ASKING, id="t2"), RUN)
    assert waiting is not None
    assert waiting.allowed_values == ["Defeito", "Não serviu"]
    _turn, again = await engine(server, store).resume(turn(ASKING, id="t2"), RUN, "talvez")
    assert (again.status, again.reprompted) == ("PAUSED", True)
    assert again.question == "Responda Defeito ou Não serviu."
    _turn, done = await engine(server, store).resume(turn(ASKING, id="t3"), RUN, "defeito")
    assert done.status == "COMPLETED"
    assert server.effects.count("reservar") == 1


async def test_resume__of_a_run_that_ended__replays_its_result_and_reads_no_answer():
    """Fault 36: a terminal workflow does not stay latched."""
    _turn, _result, server, store = await begin(STRAIGHT)
    _turn, again = await engine(server, store).resume(turn(STRAIGHT, id="t2"), RUN, "ah espera")
    assert again.final
    assert again.replayed
    assert again.text == "Reserva R-9 feita."
    assert await engine(server, store).expects(turn(STRAIGHT, id="t2"), RUN, "sim") == ""
    assert await engine(server, store).pause_of(turn(STRAIGHT, id="t2"), RUN) is None
    assert len(server.effects) == 3


async def test_resume__of_another_session__finds_no_run():
    _turn, _result, server, store = await begin(ASKING)
    stranger = turn(ASKING, id="t2", session=ELSEWHERE)
    _turn, result = await engine(server, store).resume(stranger, RUN, "defeito")
    assert result.code == Code.UNKNOWN_RUN
    assert server.effects == ["reservar"]


async def test_pause_after_the_tool_of_the_same_node__its_effect_never_runs_again():
    node = {
        **RESERVE,
        "next": "",
        "pause": {"key": "ok", "question": "Reserva {nodes.reserva.id}?"},
    }
    config = workflow(node)
    _turn, result, server, store = await begin(config)
    assert result.question == "Reserva R-9?"
    _turn, done = await engine(server, store).resume(turn(config, id="t2"), RUN, "sim")
    assert done.status == "COMPLETED"
    assert server.effects == ["reservar"]


async def test_circle_through_a_question__each_pass_is_a_visit_with_its_own_key():
    config = workflow(
        {"id": "ver", "tool": "consultar", "params": {"x": "$.input.v"}, "next": "pergunta"},
        {"id": "pergunta", "next": "fim", "pause": {"key": "v", "question": "Outro?"}},
        {"id": "fim", "when": "$.input.v != nao", "next": "ver", "otherwise": "acabou"},
        {"id": "acabou", "tool": "avisar", "at_most_once": True},
    )
    _turn, _result, server, store = await begin(config)
    for number, answer in enumerate(("a", "b", "nao")):
        now = turn(config, id=f"t{number + 2}")
        _turn, result = await engine(server, store).resume(now, RUN, answer)
    assert result.status == "COMPLETED"
    assert [call[1] for call in server.calls] == [{}, {"x": "a"}, {"x": "b"}, {}]
    assert len({call[2] for call in server.calls}) == 4


async def test_abandon__while_it_waits__takes_back_and_stays_ended():
    _turn, _result, server, store = await begin(ASKING)
    _turn, result = await engine(server, store).abandon(turn(ASKING, id="t2"), RUN)
    assert (result.status, result.code) == ("FAILED", Code.ABANDONED)
    assert server.effects == ["reservar", "liberar"]
    assert store.runs[RUN].status == "COMPENSATED"
    _turn, late = await engine(server, store).resume(turn(ASKING, id="t3"), RUN, "defeito")
    assert late.code == Code.ABANDONED
    assert len(server.effects) == 2


async def test_version__changed_while_it_waits__the_run_keeps_the_one_it_began_with():
    _turn, _result, server, store = await begin(ASKING)
    newer = workflow({**ASK, "next": ""})
    _turn, done = await engine(server, store).resume(turn(newer, id="t2"), RUN, "defeito")
    assert server.effects == ["reservar", "trocar", "avisar"]
    assert done.status == "COMPLETED"


# -- the same request --------------------------------------------------------------------------


async def test_same_request__after_it_completed__is_answered_from_the_record():
    _turn, first, server, store = await begin(STRAIGHT)
    other = RUN.replace("0001", "0002")
    elsewhere = turn(STRAIGHT, id="t9", session=ELSEWHERE)
    _turn, again = await engine(server, store).start(elsewhere, "troca", INPUTS, other)
    assert again.replayed
    assert again.execution_id == first.execution_id
    assert again.text == first.text
    assert len(server.effects) == 3


@pytest.mark.parametrize(
    "changes",
    [
        {"business_context": BusinessContext(values={"customer_key": "C-2"})},
        {"inputs": {"order_id": "PED-2"}},
        {"tenant": "other"},
    ],
)
async def test_other_request__of_customer_resource_or_tenant__runs_on_its_own(changes):
    _turn, _first, server, store = await begin(STRAIGHT)
    inputs = changes.pop("inputs", INPUTS)
    other = RUN.replace("0001", "0002")
    elsewhere = turn(STRAIGHT, id="t9", session=ELSEWHERE, **changes)
    _turn, second = await engine(server, store).start(elsewhere, "troca", inputs, other)
    assert not second.replayed
    assert len(server.effects) == 6


async def test_same_placeholder__of_another_value__is_another_request():
    config = workflow({"id": "a", "tool": "avisar", "params": {"x": "$.input.cpf"}})
    server, store = Server(), MemoryStore()
    for number, cpf in enumerate(("529.982.247-25", "111.444.777-35")):
        now = turn(config, id=f"t{number}", vault={"<CPF_1>": cpf})
        await engine(server, store).start(now, "troca", {"cpf": "<CPF_1>"}, f"run {number}")
    assert len(server.effects) == 2


# -- a worker that dies ------------------------------------------------------------------------


@pytest.mark.parametrize("dies_at", range(8))
async def test_worker_dies_before_a_record__redelivered_turn__each_effect_once(dies_at):
    """Before every single write of the run: the ledger of the turn knows what the row does not."""
    server, store, ledger = Server(dict(RESULTS)), MemoryStore(), FakeLedger()
    store.dies_at = dies_at
    now = turn(STRAIGHT)
    with pytest.raises(Died):
        await engine(server, store, ledger).start(now, "troca", INPUTS, RUN)
    store.dies_at = None
    after, result = await engine(server, store, ledger).start(now, "troca", INPUTS, RUN)
    assert result.status == "COMPLETED"
    assert server.effects == ["reservar", "trocar", "avisar"]
    assert sorted(call.tool for call in after.tool_calls) == ["avisar", "reservar", "trocar"]


@pytest.mark.parametrize(("dies_at", "status"), [(1, "UNKNOWN"), (2, "COMPLETED"), (3, "UNKNOWN")])
async def test_worker_dies_in_a_call__redelivered__unknown_or_repeated_under_its_key(
    dies_at, status
):
    server, store, ledger = Server(dict(RESULTS)), MemoryStore(), FakeLedger()
    server.dies_at = dies_at
    now = turn(STRAIGHT)
    with pytest.raises(Died):
        await engine(server, store, ledger).start(now, "troca", INPUTS, RUN)
    _turn, result = await engine(server, store, ledger).start(now, "troca", INPUTS, RUN)
    assert result.run_status == status
    assert len(server.effects) == len(set(server.effects))
    keys = [key for name, _arguments, key in server.calls if name == "trocar"]
    assert len(set(keys)) <= 1


async def test_worker_dies_in_a_call__a_later_turn_goes_on__an_action_is_unknown_not_repeated():
    """The later turn has a ledger of its own: only the run's rows know that the call was begun."""
    server, store = Server(dict(RESULTS)), MemoryStore()
    server.dies_at = 1
    with pytest.raises(Died):
        await engine(server, store).start(turn(STRAIGHT), "troca", INPUTS, RUN)
    _turn, result = await engine(server, store).start(turn(STRAIGHT, id="t2"), "troca", INPUTS, RUN)
    assert result.unknown
    assert server.effects == ["reservar"]


async def test_worker_dies_in_a_call__a_later_turn_goes_on__an_idempotent_one_has_the_same_key():
    server, store = Server(dict(RESULTS)), MemoryStore()
    server.dies_at = 2
    with pytest.raises(Died):
        await engine(server, store).start(turn(STRAIGHT), "troca", INPUTS, RUN)
    _turn, result = await engine(server, store).start(turn(STRAIGHT, id="t2"), "troca", INPUTS, RUN)
    assert result.status == "COMPLETED"
    assert server.effects == ["reservar", "trocar", "avisar"]
    assert len({key for name, _a, key in server.calls if name == "trocar"}) == 1


@pytest.mark.parametrize("dies_at", range(3, 8))
async def test_worker_dies_while_taking_back__each_compensation_at_most_once(dies_at):
    config = workflow(
        {**RESERVE, "compensate_tool": "avisar", "compensate_params": {}}, EXCHANGE, NOTICE
    )
    server, store, ledger = Server({**RESULTS, "trocar": FAILS}), MemoryStore(), FakeLedger()
    store.dies_at = dies_at
    now = turn(config)
    with pytest.raises(Died):
        await engine(server, store, ledger).start(now, "troca", INPUTS, RUN)
    store.dies_at = None
    _turn, result = await engine(server, store, ledger).start(now, "troca", INPUTS, RUN)
    assert result.compensated == ("reserva",)
    assert server.effects == ["reservar", "avisar"]


@pytest.mark.parametrize("dies_at", [4, 5])
async def test_worker_dies_after_an_answer__it_is_not_given_to_the_next_question(dies_at):
    second = {"id": "certeza", "next": "troca", "pause": {"key": "certo", "question": "Certeza?"}}
    config = workflow({**RESERVE, "next": "pergunta"}, {**ASK, "next": "certeza"}, second,
                      {**EXCHANGE, "params": {"x": "$.input.certo"}}, NOTICE)  # fmt: skip
    _turn, _result, server, store = await begin(config)
    ledger = FakeLedger()
    store.dies_at = dies_at
    answering = turn(config, id="t2")
    with pytest.raises(Died):
        await engine(server, store, ledger).resume(answering, RUN, "defeito")
    store.dies_at = None
    _turn, result = await engine(server, store, ledger).resume(answering, RUN, "defeito")
    assert (result.status, result.node) == ("PAUSED", "certeza")
    assert server.effects == ["reservar"]


async def test_answer__to_a_run_that_a_lost_turn_left_behind__is_not_taken_for_a_later_question():
    second = {"id": "certeza", "next": "troca", "pause": {"key": "certo", "question": "Certeza?"}}
    config = workflow({**ASK, "next": "certeza"}, second, {**EXCHANGE, "params": {}}, NOTICE)
    _turn, _result, server, store = await begin(config)
    store.dies_at = store.writes + 1
    with pytest.raises(Died):
        await engine(server, store).resume(turn(config, id="t2"), RUN, "defeito")
    store.dies_at = None
    _turn, result = await engine(server, store).resume(turn(config, id="t3"), RUN, "sim")
    assert (result.status, result.node, server.effects) == ("PAUSED", "certeza", [])


async def test_too_many_steps__the_run_ends_with_a_reason():
    nodes: list[dict[str, Any]] = [
        {"id": "p", "next": "q", "pause": {"key": "v", "question": "?"}},
        {"id": "q", "when": "$.input.v", "next": "p", "otherwise": "p"},
    ]
    config = workflow(*nodes)
    _turn, result, server, store = await begin(config)
    for number in range(MAX_STEPS // 2 + 1):
        now = turn(config, id=f"t{number + 2}")
        _turn, result = await engine(server, store).resume(now, RUN, "x")
    assert (result.status, result.code) == ("FAILED", Code.TOO_LONG)


# -- the customer's yes ------------------------------------------------------------------------


class Yes:
    """A ``ConfirmationPort`` that knows one recorded yes."""

    def __init__(self, **grant) -> None:
        self.grant = grant
        self.used: list[Any] = []

    async def use(self, turn, grant):
        fits = all(getattr(grant, name) == value for name, value in self.grant.items())
        self.used.append(grant)
        return "granted" if fits else "absent"


CONFIRMED = {
    "solicitar": tool(
        confirmation_required=True, execution={"mode": "workflow", "workflow": "troca"}
    ),
    "avisar": tool(confirmation_required=True),
}
YES = Confirmed(tool="solicitar", confirmation="q1")


async def confirm(config, yes, confirmed, tools=CONFIRMED):
    server, store = Server(dict(RESULTS)), MemoryStore()
    workflows = engine(server, store, confirmations=yes)
    now = turn(config, tools=tools)
    _turn, result = await workflows.start(now, "troca", INPUTS, RUN, confirmed=confirmed)
    return result, server


async def test_confirmed_execution__its_nodes_are_covered_by_that_one_yes():
    yes = Yes(id="q1", tool="solicitar", arguments='{"order_id":"PED-1"}')
    result, server = await confirm(STRAIGHT, yes, YES)
    assert result.status == "COMPLETED"
    assert server.effects == ["reservar", "trocar", "avisar"]
    assert len(yes.used) == 1


async def test_yes_that_is_not_recorded__nothing_begins():
    result, server = await confirm(STRAIGHT, Yes(id="another"), YES)
    assert (result.code, server.calls) == (Code.NOT_CONFIRMED, [])


async def test_yes_to_a_tool_with_another_execution__covers_nothing():
    tools = {**CONFIRMED, "solicitar": tool(confirmation_required=True)}
    result, server = await confirm(STRAIGHT, Yes(), YES, tools)
    assert (result.code, server.calls) == (Code.NOT_ITS_WORKFLOW, [])


async def test_workflow_without_a_recorded_yes__its_node_that_needs_one_is_refused():
    for confirmed in (None, Confirmed(tool="solicitar")):
        unasked = replace_tool(CONFIRMED, confirmation_required=False)
        result, server = await confirm(STRAIGHT, Yes(), confirmed, unasked)
        assert (result.node, result.trace[2].status) == ("aviso", "refused")
        assert server.effects == ["reservar", "trocar", "liberar"]


def replace_tool(tools, **changes):
    return {**tools, "solicitar": tools["solicitar"].model_copy(update=changes)}


async def test_run_id_that_is_no_uuid__is_one_of_the_session_only():
    server, store = Server(dict(RESULTS)), MemoryStore()
    _turn, first = await engine(server, store).start(turn(STRAIGHT), "troca", INPUTS, "tx-1")
    _turn, again = await engine(server, store).start(turn(STRAIGHT, id="t2"), "troca", {}, "tx-1")
    other = turn(STRAIGHT, session=ELSEWHERE)
    _turn, foreign = await engine(server, store).resume(other, "tx-1", "sim")
    assert again.execution_id == first.execution_id
    assert foreign.code == Code.UNKNOWN_RUN


def test_result__is_final_unless_it_waits():
    from apps.tools.workflows.interface import WorkflowResult

    paused = WorkflowResult("PAUSED", RUN, "troca")
    assert not paused.final
    assert replace(paused, status="COMPLETED").final
