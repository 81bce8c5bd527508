"""What the runtime itself says to a customer about an action, in the language of the conversation.

Tenants replace the question (``ToolConfig.confirmation_text``) and the text of a cancellation
(routing policy). Portuguese, Spanish, else English.
"""

import re
from collections.abc import Collection, Mapping
from typing import Any

from apps.tools.config import ToolConfig

_SAYINGS: Mapping[str, Mapping[str, str]] = {
    "confirm": {
        "pt": "Você confirma: {what}? Responda sim ou não.",
        "es": "¿Confirma: {what}? Responda sí o no.",
        "en": "Do you confirm: {what}? Please answer yes or no.",
    },
    "ask": {
        "pt": "Para continuar, preciso de: {what}.",
        "es": "Para continuar necesito: {what}.",
        "en": "To go on I need: {what}.",
    },
    "unclear": {
        "pt": "Não entendi se posso seguir. {question}",
        "es": "No entendí si puedo continuar. {question}",
        "en": "I did not understand whether to go on. {question}",
    },
    "expired": {
        "pt": "A confirmação anterior expirou. {question}",
        "es": "La confirmación anterior expiró. {question}",
        "en": "The earlier confirmation has expired. {question}",
    },
    "changed": {
        "pt": "Os dados mudaram desde a pergunta. {question}",
        "es": "Los datos cambiaron desde la pregunta. {question}",
        "en": "Something changed since I asked. {question}",
    },
    "not_eligible": {
        "pt": "Não é possível fazer isso agora.",
        "es": "No es posible hacerlo ahora.",
        "en": "This cannot be done now.",
    },
    "unchecked": {
        "pt": "Não consegui verificar se isso é possível, por isso não segui adiante. Tente de novo em instantes.",
        "es": "No pude verificar si es posible, por eso no seguí adelante. Intente de nuevo en un momento.",
        "en": "I could not check whether this is possible, so I did not go on. Please try again shortly.",
    },
    "refused": {
        "pt": "Não posso fazer isso neste atendimento.",
        "es": "No puedo hacer eso en esta conversación.",
        "en": "I cannot do that in this conversation.",
    },
    "failed": {
        "pt": "Não foi possível concluir: {reason}",
        "es": "No fue posible concluir: {reason}",
        "en": "It could not be done: {reason}",
    },
    "failed_plain": {
        "pt": "Não foi possível concluir.",
        "es": "No fue posible concluir.",
        "en": "It could not be done.",
    },
    "unknown": {
        "pt": "Não recebi a confirmação de que deu certo e não vou repetir por conta própria. Confira antes de pedir de novo.",
        "es": "No recibí la confirmación de que funcionó y no lo repetiré por mi cuenta. Verifique antes de pedirlo de nuevo.",
        "en": "No confirmation came that it worked, and I will not repeat it by myself. Please check before asking again.",
    },
    "given_up": {
        "pt": "Não consegui entender sua resposta, então não fiz nada. Se quiser, comece de novo.",
        "es": "No pude entender su respuesta, así que no hice nada. Si quiere, empiece de nuevo.",
        "en": "I could not understand your answer, so I did nothing. You can start again.",
    },
    "done": {"pt": "Pronto.", "es": "Listo.", "en": "Done."},
    "items": {
        "pt": "{ok} de {all} concluídos.",
        "es": "{ok} de {all} concluidos.",
        "en": "{ok} of {all} done.",
    },
}


def say(key: str, language: str, **values: Any) -> str:
    """Return the saying ``key`` in ``language`` (a tag such as pt-BR)."""
    short = language.lower()[:2]
    sayings = _SAYINGS[key]
    return sayings.get(short, sayings["en"]).format(**values)


def confirmation_question(
    slug: str,
    tool: ToolConfig,
    values: Mapping[str, Any],
    language: str,
    *,
    quiet: Collection[str] = (),
) -> str:
    """Return the question for a yes to ``tool`` with ``values``: every value that will be sent.

    What the tenant's own text leaves out is added to it, but for ``quiet``, which the platform knows
    by itself: nobody says yes to what was not told.
    """
    shown = {name: _shown(value) for name, value in values.items()}
    if tool.confirmation_text:
        text = _filled(
            tool.confirmation_text, {name: shown.get(name, "") for name in tool.args_schema}
        )
        named = set(_NAME.findall(tool.confirmation_text))
        left = {n: value for n, value in shown.items() if n not in named and n not in quiet}
        details = _details(tool, left)
        return f"{text} ({details})" if details else text
    what = tool.description.rstrip(". ") or slug.replace("_", " ")
    details = _details(tool, shown)
    return say("confirm", language, what=f"{what} ({details})" if details else what)


def _details(tool: ToolConfig, shown: Mapping[str, str]) -> str:
    return "; ".join(
        f"{argument.label or name.replace('_', ' ')}: {shown[name]}"
        for name, argument in tool.args_schema.items()
        if name in shown
    )


def parameter_question(tool: ToolConfig, name: str, language: str) -> str:
    """Return the question for one missing argument: the tool's own, else one built from its label."""
    argument = tool.args_schema[name]
    if argument.user_prompt:
        return argument.user_prompt
    label = argument.label or argument.description.rstrip(".") or name.replace("_", " ")
    choices = f" ({', '.join(argument.enum)})" if argument.enum else ""
    return say("ask", language, what=f"{label}{choices}")


_PLACE = re.compile(r"\{((?:result|arguments)(?:\.[A-Za-z0-9_]+)+)\}")


def result_text(template: str, result: Any, arguments: Mapping[str, Any]) -> str:
    """Return a tenant's presentation of a result: ``{result.FIELD}``, ``{arguments.NAME}`` filled.

    "" when a place leads nowhere: half a sentence is never said, the agent composes then.
    """
    values = {"result": result, "arguments": arguments}
    missing = False

    def filled(found: re.Match[str]) -> str:
        nonlocal missing
        value: Any = values
        for name in found[1].split("."):
            value = value.get(name) if isinstance(value, Mapping) else None
        missing = missing or value is None
        return _shown(value)

    text = _PLACE.sub(filled, template).strip()
    return "" if missing else text


_NAME = re.compile(r"\{(\w+)\}")


def _filled(template: str, values: Mapping[str, str]) -> str:
    """Fill {name} places; anything else in braces stays as it is written."""
    return _NAME.sub(lambda place: values.get(place[1], place[0]), template)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "✓" if value else "✗"
    if isinstance(value, (list, tuple)):
        return ", ".join(_shown(item) for item in value)
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_shown(item)}" for key, item in value.items())
    return str(value)
