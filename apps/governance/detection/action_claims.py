"""Claims that something was done, and what in a turn proves them.

A claim is a finished form ("foi cancelado", "solicitei a troca", "has been refunded", "Pedido
cancelado"); negations, conditions, futures and questions are none. It belongs to a *family* of
actions, so that an exchange does not prove a cancellation.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from apps.runtime.text import fold
from apps.runtime.turn import ToolCall


@dataclass(frozen=True)
class Family:
    """One kind of action: its finished forms, first-person forms, and stems of its words."""

    name: str
    finished: str
    first_person: str
    stems: str


GENERIC = "action"
REQUEST = "request"

FAMILIES = (
    Family("cancellation", r"cancelad[oa]s?|anulad[oa]s?|encerrad[oa]s?|cancell?ed|terminated", r"cancelei|cancelamos|encerrei|encerramos|cancell?ed|terminated", r"cancel|anula|encerr|terminat"),
    Family("refund", r"estornad[oa]s?|reembolsad[oa]s?|ressarcid[oa]s?|creditad[oa]s?|refunded|credited|reimbursed", r"estornei|estornamos|reembolsei|reembolsamos|creditei|refunded|credited|reimbursed", r"estorn|reembols|ressarc|credit|refund|reimburs"),
    Family("exchange", r"trocad[oa]s?|substituid[oa]s?|exchanged|replaced|swapped", r"troquei|trocamos|substitui|exchanged|replaced|swapped", r"troc|substitu|exchang|replac|swap"),
    Family("return", r"devolvid[oa]s?|recolhid[oa]s?|returned", r"devolvi|devolvemos|returned", r"devol|recolh|return|colet"),
    Family("payment", r"pag[oa]s?|quitad[oa]s?|liquidad[oa]s?|compensad[oa]s?|baixad[oa]s?|paid|settled", r"paguei|pagamos|quitei|paid|settled", r"\bpag|pagament|quita|liquid|compens|\bpaid|\bpay|settl"),
    Family("delivery", r"enviad[oa]s?|entregues?|despachad[oa]s?|postad[oa]s?|sent|delivered|shipped|dispatched|e-?mailed", r"enviei|enviamos|despachei|despachamos|mandei|sent|shipped|dispatched|e-?mailed", r"envi|entreg|despach|postad|sent|send|deliver|ship|dispatch|mail"),
    Family("change", r"alterad[oa]s?|atualizad[oa]s?|modificad[oa]s?|migrad[oa]s?|corrigid[oa]s?|ajustad[oa]s?|reajustad[oa]s?|renovad[oa]s?|updated|changed|modified|upgraded|downgraded|corrected|adjusted|renewed", r"alterei|alteramos|atualizei|atualizamos|mudei|mudamos|corrigi|ajustei|migrei|renovei|updated|changed|modified|upgraded|corrected|adjusted|renewed", r"alter|atualiz|modific|migr|corrig|ajust|renov|\bmud|updat|chang|upgrad|downgrad|correct|adjust|renew"),
    Family("activation", r"ativad[oa]s?|desativad[oa]s?|habilitad[oa]s?|contratad[oa]s?|(?:des)?bloquead[oa]s?|suspens[oa]s?|reativad[oa]s?|activated|deactivated|enabled|disabled|(?:un)?blocked|suspended|reactivated", r"ativei|ativamos|desativei|habilitei|contratei|(?:des)?bloqueei|(?:des)?bloqueamos|suspendi|activated|deactivated|enabled|disabled|(?:un)?blocked|suspended", r"ativ|habilit|contrat|bloque|suspen|activ|enabl|disabl|block"),
    Family("request", r"solicitad[oa]s?|registrad[oa]s?|abert[oa]s?|protocolad[oa]s?|agendad[oa]s?|encaminhad[oa]s?|cadastrad[oa]s?|criad[oa]s?|requested|registered|opened|submitted|scheduled|booked|filed|created|escalated", r"solicitei|solicitamos|registrei|registramos|abri|abrimos|protocolei|agendei|agendamos|encaminhei|encaminhamos|acionei|cadastrei|criei|requested|registered|opened|submitted|scheduled|booked|filed|created|escalated", r"solicit|registr|\babr(?:i|ir|e|indo)\b|abert|protocol|agend|encaminh|cadastr|\bcria|request|regist|open|submit|schedul|book|\bfile|creat|escalat|troc|devol|cancel"),
    Family(GENERIC, r"feit[oa]s?|realizad[oa]s?|efetuad[oa]s?|concluid[oa]s?|processad[oa]s?|confirmad[oa]s?|aprovad[oa]s?|resolvid[oa]s?|finalizad[oa]s?|efetivad[oa]s?|done|made|processed|completed|confirmed|approved|resolved|finali[sz]ed", r"fiz|fizemos|realizei|realizamos|efetuei|efetuamos|conclui|processei|processamos|confirmei|resolvi|resolvemos|finalizei|processed|completed|approved|resolved|finali[sz]ed", r""),
)  # fmt: skip

_SPECIFIC = frozenset(f.name for f in FAMILIES) - {GENERIC, REQUEST, "delivery", "payment"}
# How far behind "solicitei" the thing asked for may stand.
_OBJECT_REACH = 40
_LONGEST_CLAUSE = 200

_FINISHED = "|".join(f"(?P<f{i}>{family.finished})" for i, family in enumerate(FAMILIES))
_FIRST = "|".join(f"(?P<p{i}>{family.first_person})" for i, family in enumerate(FAMILIES))
_THINGS = (
    r"(?:cancelamento|troca|devolucao|estorno|reembolso|pagamento|solicitacao|alteracao|atualizacao|ativacao|"
    r"desbloqueio|bloqueio|agendamento|chamado|pedido|servico|plano|linha|assinatura|contrato|reclamacao|visita|"
    r"mudanca|migracao|cancellation|exchange|return|refund|payment|request|order|subscription|service|plan|ticket|"
    r"appointment|change|update|complaint)"
)
_FIRST_PERSON = re.compile(rf"\b(?:ja |eu |nos )?(?:{_FIRST})\b")
_CLAIMS = (
    _FIRST_PERSON,
    re.compile(rf"\b(?:foi|foram|esta|estao|ficou|ficaram|acaba de ser|has(?: \w+)? been|have(?: \w+)? been|was|were|(?:is|are) (?:now|already))\b(?: (?:ja|tudo|devidamente|agora|already|now|just|successfully|fully|automaticamente)){{0,2}} (?:{_FINISHED})\b"),
    re.compile(rf"\b{_THINGS}s? (?:(?:de|do|da|of|for) (?:\w+ ){{1,3}})?(?:ja )?(?:{_FINISHED.replace('(?P<f', '(?P<g')})\b"),
    re.compile(rf"\bsuccessfully (?:{_FINISHED.replace('(?P<f', '(?P<h')})\b|\b(?:{_FINISHED.replace('(?P<f', '(?P<k')}) com sucesso\b"),
)  # fmt: skip
# English past forms are also participles and adjectives: there, the speaker must be named.
_ENGLISH_FIRST = re.compile(
    rf"\b(?:i|we)(?:'ve| have|'ll have)?(?: already| just| now)? (?:{_FIRST})\b"
)
_PORTUGUESE_ENDING = re.compile(r"(?:ei|i|iz)$|^ja .*mos$")  # "solicitamos" alone is a present
# "A loja está aberta" tells of a state that nobody brought about.
_STATE = re.compile(r"^(?:esta|estao|ficou|was|were)\b.*\b(?:abert[oa]s?|opened)$")
_PROTOCOL = re.compile(
    r"\b(?:protocolo|protocol)\b(?: (?:n|numero|number|e|is|de atendimento|gerado))*\W{0,4}(\d{4,20})"
)

_SENTENCE = re.compile(r"[^.!?\n;]+[.!?\n;]*|[.!?\n;]+")
_CLAUSE_START = re.compile(r"[,:(\u2013\u2014]| mas | porem | but | e que | and ")
_NOT_DONE = re.compile(
    r"\b(?:nao|nunca|nem|se|caso|quando|assim que|apos|depois|antes|para que|ate que|sera|serao|seria|pode|"
    r"podem|podera|deve|devera|precisa|vai|vou|vamos|not|never|if|when|once|after|before|unless|until|would|will|"
    r"can|could|may|might|should|must|whether|cannot|to be)\b|n't\b"
)
_REPORTED = re.compile(
    r"\b(?:voce|o senhor|a senhora) (?:disse|informou|mencionou|relatou|comentou|falou)|"
    r"\b(?:you|as you) (?:said|told|mentioned|reported|wrote)"
)


def claims_find(text: str) -> set[str]:
    """Return the families of finished actions that ``text`` claims."""
    found: set[str] = set()
    for sentence in _SENTENCE.findall(fold(text)):
        if sentence.rstrip().endswith("?") or _REPORTED.search(sentence):
            continue
        for match in _claims(sentence):
            clause = _clause_start(sentence, match.start())
            if not _NOT_DONE.search(sentence, clause, match.start()):
                found.add(_family(match, sentence, clause))
    return found


def protocols_find(text: str) -> set[str]:
    """Return the protocol numbers that ``text`` names."""
    return set(_PROTOCOL.findall(fold(text)))


def _claims(sentence: str) -> Iterator[re.Match[str]]:
    for pattern in (*_CLAIMS, _ENGLISH_FIRST):
        for match in pattern.finditer(sentence):
            bare = pattern is _FIRST_PERSON and not _PORTUGUESE_ENDING.search(match.group())
            if not bare and not _STATE.search(match.group()):
                yield match


def _family(match: re.Match[str], sentence: str, clause: int) -> str:
    """Return what was done. For "foi confirmado" the clause's nouns say it, and "solicitei o
    cancelamento" is a request *for* a cancellation: ``request/cancellation``."""
    group = next(name for name, value in match.groupdict().items() if value)
    family = FAMILIES[int(group[1:])].name
    if family == GENERIC:
        return _named(sentence[clause : match.end()]) or GENERIC
    if family == REQUEST:
        subject = _named(sentence[clause : match.end() + _OBJECT_REACH], _SPECIFIC)
        return f"{REQUEST}/{subject}" if subject else REQUEST
    return family


def _named(words: str, names: frozenset[str] | None = None) -> str:
    return next(
        (
            family.name
            for family in FAMILIES
            if family.stems
            and (names is None or family.name in names)
            and re.search(family.stems, words)
        ),
        "",
    )


def _clause_start(sentence: str, start: int) -> int:
    clause = max(0, start - _LONGEST_CLAUSE)
    for boundary in _CLAUSE_START.finditer(sentence, clause, start):
        clause = boundary.end()
    return clause


# -- evidence ----------------------------------------------------------------------------------

_WORDS = re.compile(r"[a-z0-9']+")
# "ATIVO" is the status of what was activated; in an answer it claims nothing.
_STATUS_WORDS = {"activation": "|ativ[oa]s?|active"}
_FINISHED_WORD = {f.name: re.compile(f.finished + _STATUS_WORDS.get(f.name, "")) for f in FAMILIES}
_STEMS = {f.name: re.compile(f.stems) for f in FAMILIES if f.stems}
_UNDONE = frozenset(
    [
        "nao",
        "not",
        "sem",
        "un",
        "falta",
        "aguardando",
        "awaiting",
        "pendente",
        "pending",
        "nunca",
        "never",
        "sera",
    ]
)
# A value longer than this is a document that talks about actions, not a status.
_STATUS_LENGTH = 240


def proven(family: str, calls: tuple[ToolCall, ...]) -> bool:
    """Tell whether the turn's tools show that an action of ``family`` was done."""
    return any((_did if call.action else _states)(family, call) for call in calls if call.ok)


def _did(family: str, call: ToolCall) -> bool:
    """An action supports claims of its own family; one whose words name no family, any claim."""
    if family == GENERIC:
        return True
    words = fold(f"{call.tool} {call.arguments} {call.result}").replace("_", " ")
    family, _, subject = family.partition("/")
    if _STEMS[subject or family].search(words):
        return True
    named = {name for name, stems in _STEMS.items() if stems.search(fold(call.tool))}
    return not named or (bool(subject) and named == {REQUEST})


def _states(family: str, call: ToolCall) -> bool:
    """Tell whether a result says so itself: ``status: ENTREGUE``, ``pago_em: 2026-05-10``."""
    family, _, subject = family.partition("/")
    if subject and not _STEMS[subject].search(fold(f"{call.tool} {call.result}")):
        return False
    if family == "payment" and _payment_recorded(call.result):
        return True
    tool = fold(call.tool).replace("_", " ")
    return any(_leaf_states(family, tool, keys, value) for keys, value in leaves(call.result))


def leaves(value: Any, keys: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield (folded words of its keys, value) of every leaf that is not empty, zero or false."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, (*keys, *_words(str(key))))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from leaves(item, keys)
    elif value not in (None, False, "", 0):
        yield keys, value


def _words(text: str) -> list[str]:
    return _WORDS.findall(fold(text).replace("_", " "))


def _leaf_states(family: str, tool: str, keys: tuple[str, ...], value: Any) -> bool:
    if isinstance(value, str) and len(value) > _STATUS_LENGTH:
        return False
    said = _words(value) if isinstance(value, str) else []
    if _finished(family, said) or (_UNDONE.isdisjoint(said) and _finished(family, list(keys))):
        return True
    if family == GENERIC:
        return any(_finished(other, said) for other in _FINISHED_WORD)
    about = _STEMS[family].search(f"{tool} {' '.join(keys)}") is not None
    return about and _finished(GENERIC, said)


def _payment_recorded(value: Any) -> bool:
    """Tell whether a list of payments holds one without a status: what is recorded was paid."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key in ("pagamentos", "payments") and isinstance(item, list):
                return any(
                    isinstance(r, dict) and not {"status", "situacao"} & set(r) for r in item
                )
            if _payment_recorded(item):
                return True
    return isinstance(value, list) and any(_payment_recorded(item) for item in value)


def _finished(family: str, said: list[str]) -> bool:
    pattern = _FINISHED_WORD[family]
    return any(
        pattern.fullmatch(word) and _UNDONE.isdisjoint(said[max(0, i - 2) : i])
        for i, word in enumerate(said)
    )
