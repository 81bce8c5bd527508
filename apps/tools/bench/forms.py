"""Forms of the bench: what is sent, and what a mock answers."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.releases.pages import widgets
from apps.runtime.turn import CANONICAL_KEYS, ToolCall
from apps.tools.bench.mocking import LONGEST_DELAY_MS, MOST_STEPS, MockStep
from apps.tools.config import Argument, ToolConfig

NONE = ("", "—")
SPARE_STEPS = 2
POLICY_FIELDS = {"policy.allowed_agents": "agent", "policy.allowed_channels": "channel"}
CONTEXT_LABELS = {
    "customer_key": gettext_lazy("Customer key"),
    "contract_key": gettext_lazy("Contract key"),
    "interaction_key": gettext_lazy("Interaction key"),
    "account_key": gettext_lazy("Account key"),
    "resource_key": gettext_lazy("Resource key"),
    "session_key": gettext_lazy("Session key"),
}


class BenchForm(forms.Form):
    """Arguments with a field of their type each, what the call is about, and who asks."""

    def __init__(
        self, *args: Any, tool: ToolConfig, agents: Sequence[str], channels: Sequence[str],
        has_mock: bool, may_live: bool, needs_tick: bool, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(*args, **kwargs)
        self.names = [name for name, argument in tool.args_schema.items() if _is_given(argument)]
        self.filled = [name for name, arg in tool.args_schema.items() if not _is_given(arg)]
        self._tool = tool
        for index, name in enumerate(self.names):
            argument = tool.args_schema[name]
            self.fields[f"arg_{index}"] = _field(name, argument, required=name in tool.requires)
            if argument.nullable:
                self.fields[f"null_{index}"] = forms.BooleanField(
                    label=_("%(name)s: send null") % {"name": name},
                    required=False,
                    widget=widgets.Switch(),
                )
        for key in CANONICAL_KEYS:
            self.fields[key] = forms.CharField(
                label=CONTEXT_LABELS[key], required=False, max_length=200, widget=widgets.Line()
            )
        self.fields["agent"] = _choice(_("Agent"), [NONE, *((slug, slug) for slug in agents)])
        self.fields["channel"] = _choice(_("Channel"), [NONE, *((name, name) for name in channels)])
        modes = [("mock", _("Mock: no server is asked"))] if has_mock else []
        if may_live:
            modes.insert(0, ("live", _("Live: the server is asked")))
        self.fields["mode"] = _choice(_("Answers"), modes, required=True)
        if needs_tick and may_live:
            self.fields["really"] = forms.BooleanField(
                label=_("This really changes something"),
                help_text=_(
                    "A live call of this tool acts in the system behind it. Tick to send it."
                ),
                required=False,
                widget=widgets.Switch(),
            )

    @property
    def argument_fields(self) -> list[Any]:
        """The fields of arguments, in order."""
        names = [f"{kind}_{n}" for n in range(len(self.names)) for kind in ("arg", "null")]
        return [self[name] for name in names if name in self.fields]

    @property
    def context_fields(self) -> list[Any]:
        """The fields of the business context, then who asks and over what."""
        return [self[name] for name in (*CANONICAL_KEYS, "agent", "channel")]

    @property
    def run_fields(self) -> list[Any]:
        """How it is run."""
        return [self[name] for name in ("mode", "really") if name in self.fields]

    def clean(self) -> dict[str, Any]:
        typed: dict[str, Any] = super().clean() or {}
        if typed.get("mode") == "live" and "really" in self.fields and not typed.get("really"):
            self.add_error("really", _("Tick this to send a call that changes something."))
        for index, name in enumerate(self.names):
            try:
                typed[f"arg_{index}"] = _value(
                    self._tool.args_schema[name], typed.get(f"arg_{index}") or ""
                )
            except ValueError:
                self.add_error(f"arg_{index}", _("This is not valid JSON."))
        return typed

    def arguments(self) -> dict[str, Any]:
        """Return the arguments that were given; an empty field is left out."""
        given: dict[str, Any] = {}
        for index, name in enumerate(self.names):
            if self.cleaned_data.get(f"null_{index}"):
                given[name] = None
            elif self.cleaned_data.get(f"arg_{index}") is not None:
                given[name] = self.cleaned_data[f"arg_{index}"]
        return given

    def context(self) -> dict[str, str]:
        """Return the canonical keys that were given."""
        typed = self.cleaned_data
        return {key: typed[key].strip() for key in CANONICAL_KEYS if typed.get(key, "").strip()}

    def refused(self, call: ToolCall) -> None:
        """Show what was wrong with an argument at its field."""
        for found in call.field_errors:
            name = found.get("field", "")
            text = _(found["message"])
            if found.get("accepted"):
                text = f"{text} ({found['accepted']})"
            field = self._field_of(name)
            self.add_error(field, text if field else f"{name}: {text}")

    def _field_of(self, name: str) -> str | None:
        """Return the form's field for what a refusal is about: an argument, or a part of the policy."""
        if name in self.names:
            return f"arg_{self.names.index(name)}"
        place = POLICY_FIELDS.get(name) or name.removeprefix("policy.required_business_keys.")
        return place if place in self.fields else None

    def error_list(self) -> list[tuple[str, str, str]]:
        """Return every error as (id of its field, label, message)."""
        found = []
        for name, messages in self.errors.items():
            field = self[name] if name in self.fields else None
            where = (field.id_for_label or "", str(field.label)) if field else ("", "")
            found += [(*where, str(message)) for message in messages]
        return found


def _is_given(argument: Argument) -> bool:
    """Return whether a person at the bench may say the argument's value."""
    return argument.source in ("auto", "model", "extraction")


def _choice(label: str, choices: Sequence[tuple[str, str]], required: bool = False) -> Any:
    return forms.ChoiceField(
        label=label, choices=choices, required=required, widget=widgets.Choice()
    )


def _field(name: str, argument: Argument, *, required: bool) -> forms.Field:
    """Return a field of the argument's type. None is required: leaving one out is what is tried."""
    more: dict[str, Any] = {
        "label": f"{name} *" if required else name,
        "required": False,
        "help_text": argument.description or argument.label,
    }
    if argument.type == "boolean":
        choices = [NONE, ("true", _("yes")), ("false", _("no"))]
        return forms.ChoiceField(choices=choices, widget=widgets.Choice(), **more)
    if argument.enum and argument.type != "array":
        choices = [NONE, *((value, value) for value in argument.enum)]
        return forms.ChoiceField(choices=choices, widget=widgets.Choice(), **more)
    if argument.type in ("array", "object"):
        hint = _("One entry per line.") if argument.type == "array" else _("A JSON object.")
        more["help_text"] = f"{more['help_text']} {hint}".strip()
        return forms.CharField(widget=widgets.Text({"rows": 3}), strip=False, **more)
    if argument.type in ("integer", "number"):
        mode = "numeric" if argument.type == "integer" else "decimal"
        return forms.CharField(widget=widgets.Line({"inputmode": mode}), **more)
    return forms.CharField(widget=widgets.Line(), strip=False, **more)


def _value(argument: Argument, typed: str) -> Any:
    """Return what was typed as JSON; ``None`` for nothing. What does not fit its type stays text: that
    it is refused, and how, is what the bench shows. Raises ``ValueError`` for an object that is none."""
    if not typed.strip():
        return None
    if argument.type == "object":
        return json.loads(typed)
    if argument.type == "array":
        if typed.lstrip().startswith("["):
            return json.loads(typed)
        lines = [line.strip() for line in typed.splitlines() if line.strip()]
        return [_scalar(argument.items or "string", line) for line in lines]
    return _scalar(argument.type, typed)


def _scalar(kind: str, typed: str) -> Any:
    if kind == "boolean" and typed in ("true", "false"):
        return typed == "true"
    if kind in ("integer", "number", "object"):
        try:
            return json.loads(typed)
        except ValueError:
            return typed
    return typed


# -- mocks -------------------------------------------------------------------------------------
class StepForm(forms.Form):
    """One answer of a mock."""

    KINDS = (
        ("result", gettext_lazy("Result")),
        ("error", gettext_lazy("Error of the tool")),
        ("unavailable", gettext_lazy("No answer")),
    )

    when = forms.CharField(
        label=gettext_lazy("When"),
        help_text=gettext_lazy("argument = value, one per line; * and ? stand for anything. Empty: always."),
        required=False,
        widget=widgets.Text({"rows": 2}),
    )  # fmt: skip
    kind = forms.ChoiceField(label=gettext_lazy("Answer"), choices=KINDS, widget=widgets.Choice())
    value = forms.CharField(
        label=gettext_lazy("Content"),
        help_text=gettext_lazy("The result as JSON, or the error's text."),
        required=False,
        widget=widgets.Text({"rows": 3}),
    )
    delay_ms = forms.IntegerField(
        label=gettext_lazy("After milliseconds"),
        required=False,
        min_value=0,
        max_value=LONGEST_DELAY_MS,
        widget=widgets.Number(),
    )

    @property
    def is_blank(self) -> bool:
        """Whether nothing was typed: a spare step."""
        typed = self.cleaned_data
        return not (typed.get("when") or typed.get("value") or typed.get("delay_ms")) and (
            typed.get("kind") != "unavailable"
        )

    def clean(self) -> dict[str, Any]:
        typed: dict[str, Any] = super().clean() or {}
        if typed.get("kind") == "result" and typed.get("value"):
            try:
                typed["parsed"] = json.loads(typed["value"])
            except ValueError:
                self.add_error("value", _("This is not valid JSON."))
        for line in (typed.get("when") or "").splitlines():
            if line.strip() and "=" not in line:
                self.add_error(
                    "when", _("Write argument = value: %(line)s") % {"line": line.strip()}
                )
        return typed

    def content(self, tool: ToolConfig) -> dict[str, Any]:
        """Return the step as ``steps_check`` takes it."""
        typed = self.cleaned_data
        step: dict[str, Any] = {"when": dict(_conditions(tool, typed.get("when") or ""))}
        if typed["kind"] == "unavailable":
            step["unavailable"] = True
        elif typed["kind"] == "error":
            step["error"] = typed.get("value") or _("The tool said no.")
        else:
            step["result"] = typed.get("parsed")
        return {**step, "delay_ms": typed.get("delay_ms") or 0}


def _conditions(tool: ToolConfig, text: str) -> Iterator[tuple[str, Any]]:
    for line in text.splitlines():
        name, equals, wanted = (part.strip() for part in line.partition("="))
        if equals:
            argument = tool.args_schema.get(name)
            yield name, _scalar(argument.type if argument else "string", wanted)


StepForms = forms.formset_factory(StepForm, extra=SPARE_STEPS, max_num=MOST_STEPS)


def steps_initial(steps: Sequence[MockStep]) -> list[dict[str, Any]]:
    """Return stored steps as the forms show them."""
    return [
        {
            "when": "\n".join(f"{name} = {_written(value)}" for name, value in step.when.items()),
            "kind": "unavailable" if step.unavailable else "error" if step.error else "result",
            "value": _content(step),
            "delay_ms": step.delay_ms or None,
        }
        for step in steps
    ]


def _content(step: MockStep) -> str:
    if step.unavailable:
        return ""
    return step.error or json.dumps(step.result, ensure_ascii=False, indent=2)


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
