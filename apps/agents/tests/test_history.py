"""What each model sees: rules that hold for every request, whatever models and customers do."""

import asyncio
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apps.agents.config import AgentConfig, PromptConfig
from apps.agents.delegation.functions import END
from apps.agents.history import (
    BrokenHistory,
    Exchange,
    History,
    Scene,
    calls_of,
    history_check,
    history_open,
    memory_of,
)
from apps.agents.providers.shapes import plain_shape, tools_shape
from apps.agents.tests.builders import Tools, asks, routed_turn
from apps.agents.tests.delegation_world import (
    Voices,
    calls,
    said,
    shape_check,
    step,
    world,
)
from apps.runtime.dialogue import Dialogue, Evidence, SubConversation, Transaction
from apps.runtime.ports import ModelFailed, ModelMessage, ModelToolCall
from apps.runtime.turn import ChatMessage, SessionState, ToolCall

SYSTEM = ModelMessage("system", "s")
USER = ModelMessage("user", "oi")
ASKS = ModelMessage("assistant", "", tool_calls=(ModelToolCall("a", "t", "{}"),))
RESULT = ModelMessage("tool", "1", tool_call_id="a", name="t")


def scene_of(turn, memory=(), **changes):
    agent = turn.release.get(AgentConfig, "billing")
    prompt = turn.release.get(PromptConfig, "p")
    return Scene("billing", agent, prompt, said=turn.text, memory=tuple(memory), **changes)


def unchanged(text):
    return text


# -- the rules themselves ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [USER],
        [SYSTEM],
        [SYSTEM, USER, SYSTEM],
        [SYSTEM, USER, USER],
        [SYSTEM, ModelMessage("assistant", "olá"), USER],
        [SYSTEM, USER, ModelMessage("assistant", "olá")],
        [SYSTEM, USER, ASKS],
        [SYSTEM, USER, ASKS, USER],
        [SYSTEM, USER, RESULT],
        [SYSTEM, USER, ASKS, RESULT, RESULT],
        [SYSTEM, USER, ASKS, RESULT, USER],
        [SYSTEM, USER, ASKS, ModelMessage("tool", "1", tool_call_id="b", name="t")],
        [SYSTEM, USER, ASKS, RESULT, ASKS, RESULT],
    ],
)
def test_check__history_no_provider_takes__is_refused(messages):
    with pytest.raises(BrokenHistory):
        history_check(messages)


def test_check__call_of_a_function_that_is_not_the_agents__is_refused():
    history_check([SYSTEM, USER, ASKS, RESULT], allowed={"t"})
    with pytest.raises(BrokenHistory, match="somebody else's"):
        history_check([SYSTEM, USER, ASKS, RESULT], allowed={"other"})


# -- building it: properties ---------------------------------------------------------------------

TEXTS = st.text(max_size=30)
LINES = st.lists(
    st.builds(ChatMessage, role=st.sampled_from(["user", "assistant"]), text=TEXTS,
              thread=st.sampled_from(["", "1-0", "2-0"])),
    max_size=12,
)  # fmt: skip
TOOL_CALLS = st.lists(
    st.builds(
        ToolCall, tool=st.sampled_from(["t", "crm.mail", "u"]), server=st.just("s"),
        arguments=st.dictionaries(st.text(max_size=5), st.one_of(st.integers(), TEXTS), max_size=2),
        status=st.sampled_from(["ok", "error", "refused", "unknown"]), result=TEXTS,
        agent=st.sampled_from(["", "billing", "expert"]),
    ),
    max_size=5,
)  # fmt: skip
EXCHANGES = st.lists(
    st.tuples(st.text(max_size=4), st.sampled_from(["t", "u", "made_up"]), TEXTS),
    min_size=1,
    max_size=4,
)


@settings(max_examples=300, deadline=None)
@given(
    memory=LINES,
    text=TEXTS,
    made=TOOL_CALLS,
    rounds=st.lists(EXCHANGES, max_size=3),
    thread=st.sampled_from(["", "1-0"]),
)
def test_compiler__any_memory_calls_and_rounds__make_a_request_every_shape_takes(
    memory, text, made, rounds, thread
):
    made = [ToolCall(**{**vars(call), "ordinal": n}) for n, call in enumerate(made)]
    turn = routed_turn(text, memory=tuple(memory), tool_calls=tuple(made))
    scene = scene_of(turn, memory_of(turn, thread=thread))
    history = history_open(turn, scene, calls_of(turn, "billing"), unchanged)
    for number, exchanges in enumerate(rounds):
        history.add_round(
            "",
            [Exchange(f"r{number}_{n}_{i}", name, "{}", content or "null")
             for n, (i, name, content) in enumerate(exchanges)],
        )  # fmt: skip
    messages = history.messages()
    shape_check(tools_shape(messages))
    shape_check(plain_shape(messages))
    shown = [c for m in messages for c in m.tool_calls if c.id.startswith("evidence_")]
    mine = [call for call in made if call.agent in ("", "billing")]
    assert [c.id for c in shown] == [f"evidence_{call.ordinal}" for call in mine]
    if thread:
        others = {line.text for line in memory if line.thread != thread and line.text.strip()}
        own = {line.text for line in memory if line.thread == thread} | {text}
        seen = {m.content for m in messages[1:]}
        assert not {t for t in others if len(t) > 8 and t not in own} & seen


ONE_LINE = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=20)


@settings(max_examples=200, deadline=None)
@given(
    memory=st.lists(
        st.builds(ChatMessage, role=st.sampled_from(["user", "assistant"]), text=ONE_LINE),
        max_size=12,
    ),
    text=ONE_LINE,
)
def test_compiler__everything_the_customer_saw__is_there_once_and_in_order(memory, text):
    turn = routed_turn(text, memory=tuple(memory))
    messages = history_open(turn, scene_of(turn, turn.memory), (), unchanged).messages()
    first = next((i for i, line in enumerate(memory) if line.role == "user"), len(memory))
    wanted = [line.text for line in memory[first:]]
    assert [part for m in messages[1:] for part in m.content.split("\n\n")] == [*wanted, text]


# -- the same for whole passes of the agent step: every agent, every kind -------------------------

NAMES = [
    "consult_expert", "delegate_mute", "delegate_loud", "request_specialist_sub_conversation",
    "end_specialist_sub_conversation", "report", "consultar_fatura", "solicitar_troca", "nope",
]  # fmt: skip
ARGUMENTS = st.sampled_from([
    "", "{}", '{"pergunta_interna":"q"}', '{"scopedRequest":"part"}', '{"answered":true}',
    '{"answered":false,"findings":"f","openQuestions":["o"]}',
    '{"specialist_role":"expert","initial_context":"c"}', '{"specialist_role":"x","initial_context":"c"}',
    '{"status":"completed","final_result":{},"last_user_message":""}', '{"status":"out_of_scope"', "[]",
])  # fmt: skip
REPLIES = st.one_of(
    st.sampled_from(["", "texto", "outro texto"]),
    st.builds(
        lambda asked, text, finish: calls(*asked, text=text, finish=finish),
        st.lists(st.tuples(st.sampled_from(NAMES), ARGUMENTS), min_size=1, max_size=4),
        st.sampled_from(["", "fala"]),
        st.sampled_from(["tool_calls", "tool_calls", "length", "content_filter"]),
    ),
    st.builds(lambda: ModelFailed("x", code="broken")),
)
OUTPUTS = ["answered", "findings", "openQuestions", "interactionSummary"]
EVERYBODY = world(
    main={
        "tools": ["consultar_fatura"],
        "delegates": [
            {"kind": "consult", "agent": "expert"},
            {"kind": "scoped", "agent": "mute"},
            {"kind": "scoped", "agent": "loud", "speaks": True},
            {"kind": "sub_conversation", "agent": "expert"},
        ],
    },
    expert={"tools": ["consultar_fatura"], "delegates": [{"kind": "consult", "agent": "mute"}]},
    mute={"outputs": OUTPUTS, "tools": ["consultar_fatura"]},
    loud={"outputs": OUTPUTS, "tools": ["solicitar_troca"]},
)


class Endless(Voices):
    """Gives the drawn replies to whoever asks; then everybody answers in words."""

    def __init__(self, replies):
        super().__init__()
        self.left = list(replies)
        self.made = {}

    async def complete(self, turn, request):
        reply = self.left.pop(0) if self.left else "fim"
        asked = getattr(reply, "tool_calls", ())
        self.made.setdefault(request.profile, set()).update(call.name for call in asked)
        self.replies = {request.profile: [reply]}
        return await super().complete(turn, request)


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(replies=st.lists(REPLIES, max_size=14))
def test_step__whatever_models_write__every_request_is_whole_and_nobody_sees_anothers_calls(
    replies,
):
    model = Endless(replies)  # checks each request in both shapes
    tools = Tools({"consultar_fatura": "R$ 1", "solicitar_troca": "P-1"})
    run = step(model, tools)
    try:
        turn = asyncio.run(run(said(EVERYBODY, tools=["consultar_fatura"])))
    except ModelFailed:
        return  # no model answered and nothing was collected
    assert turn.draft is not None or turn.outcome is not None
    for request in model.requests:
        mine = model.made.get(request.profile, set())
        for message in request.messages:
            for call in message.tool_calls:
                # A specialist's and a coordinator's evidence are their own calls as well.
                assert (call.name in mine) or call.name in {
                    t.tool for t in calls_of(turn, request.profile)
                }
    assert sum(d.status not in ("refused",) and d.tool != END for d in turn.delegations) <= 3


# -- what else is told ---------------------------------------------------------------------------


def test_memory__specialist__sees_its_own_slice_and_the_leader_all_of_it():
    lines = (
        ChatMessage("user", "a"), ChatMessage("assistant", "b"),
        ChatMessage("user", "c", thread="2-0"), ChatMessage("assistant", "d", thread="2-0"),
    )  # fmt: skip
    turn = routed_turn(memory=lines)
    assert [m.text for m in memory_of(turn, thread="2-0")] == ["c", "d"]
    assert [m.text for m in memory_of(turn)] == ["a", "b", "c", "d"]


@pytest.mark.parametrize("dialogue", [Dialogue(boundary=True), Dialogue(control="handed_over")])
def test_memory__flow_that_closed_with_the_last_turn__is_left_out_once(dialogue):
    line = ChatMessage("user", "quero falar com um atendente")
    turn = routed_turn(memory=(line,), session=SessionState(dialogue=dialogue))
    assert memory_of(turn) == ()
    assert memory_of(routed_turn(memory=(line,))) == (line,)


def test_ledger__actions_of_the_session__are_told_as_data():
    done = Evidence(tool="abrir_chamado", status="COMPLETED", turn=2, summary={"protocolo": "C-77"})
    last = Transaction(id="1", tool="solicitar_troca", status="CANCELLED", agent="a", reason="no")
    turn = routed_turn(
        "você já abriu o chamado?", dialogue=Dialogue(evidence=(done,), last_transaction=last)
    )
    system = history_open(turn, scene_of(turn), (), unchanged).messages()[0].content
    told = json.loads(system.split("Actions: ")[1].splitlines()[0])
    assert told == [
        {"tool": "abrir_chamado", "status": "COMPLETED", "protocolo": "C-77"},
        {"tool": "solicitar_troca", "status": "CANCELLED", "reason": "no"},
    ]
    quiet = history_open(turn, scene_of(turn, ledger=False), (), unchanged).messages()[0].content
    assert "C-77" not in quiet


def test_masking__of_memory_notes_ledger_and_evidence__is_complete():
    done = Evidence(tool="t", status="COMPLETED", summary={"nome": "Ana"})
    turn = routed_turn(
        "sou Ana", memory=(ChatMessage("user", "Ana aqui"), ChatMessage("assistant", "oi Ana")),
        dialogue=Dialogue(evidence=(done,)),
    )  # fmt: skip
    call = ToolCall(
        tool="t", server="s", arguments={"n": "Ana"}, status="ok", result={"Ana": "Ana"}
    )
    history = history_open(
        turn, scene_of(turn, turn.memory, notes=("nota Ana",)), [call],
        lambda text: text.replace("Ana", "<N_1>"),
    )  # fmt: skip
    assert "Ana" not in "".join(
        m.content + "".join(c.arguments for c in m.tool_calls) for m in history.messages()
    )


def test_plain_shape__results__stand_as_data_in_the_customers_place():
    shaped = plain_shape([SYSTEM, USER, ASKS, RESULT])
    assert [entry["role"] for entry in shaped] == ["system", "user"]
    assert shaped[1]["content"].startswith("oi\n\nData from tools")
    assert all("tool_calls" not in entry for entry in shaped)


def test_sub_conversation__dialogue__survives_its_canonical_text():
    sub = SubConversation(id="1-0", role="r", agent="a", coordinator="c", thread="1-0", turns=2)
    assert (
        Dialogue.model_validate_json(Dialogue(sub_conversation=sub).dump()).sub_conversation == sub
    )


def test_history__same_ids_in_every_reply__get_new_ones():
    model = Voices(
        main=[asks(("consultar_fatura", "")), asks(("consultar_fatura", '{"a":1}')), "fim"]
    )
    turn = said(world(main={"tools": ["consultar_fatura"]}), tools=["consultar_fatura"])
    asyncio.run(step(model, Tools({"consultar_fatura": 1}))(turn))
    ids = [c.id for m in model.requests[-1].messages for c in m.tool_calls]
    assert len(ids) == len(set(ids)) == 2


def test_history__grows_by_whole_rounds_only():
    history = History([SYSTEM, USER])
    history.add_round("", [Exchange("a", "t", "{}", "1"), Exchange("b", "t", "{}", "2")])
    assert [m.role for m in history.messages()] == ["system", "user", "assistant", "tool", "tool"]
