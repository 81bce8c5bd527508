"""What a person types to move an environment. Whether it may be done is the services' to say."""

from typing import Any

from django import forms
from django.conf import settings
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from apps.releases.change_models import ChangeRequest
from apps.releases.environments.rules import MOST_PIN_HOURS, MOST_REASON
from apps.releases.evidence.history import NoMoment, moment_parse
from apps.releases.models import Binding
from apps.releases.pages import widgets


class MomentForm(forms.Form):
    """A moment that lies behind, on the clock of a place. ``cleaned_data["moment"]``: aware."""

    ahead = False
    at = forms.CharField(
        label=_("Moment"), max_length=40, widget=widgets.Line({"type": "datetime-local"})
    )
    zone = forms.CharField(
        label=_("Time zone"), max_length=64, required=False, widget=widgets.Line()
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["zone"].initial = settings.TIME_ZONE

    def clean(self) -> dict[str, Any]:
        """Add ``moment``."""
        typed = super().clean() or {}
        if "at" in typed and "zone" in typed:
            try:
                typed["moment"] = moment_parse(typed["at"], typed["zone"])
            except NoMoment as error:
                self.add_error("at", str(error))
        return typed


class ReasonForm(forms.Form):
    """Why."""

    reason = forms.CharField(label=_("Reason"), max_length=MOST_REASON, widget=widgets.Line())


class ArriveForm(forms.Form):
    """How a release arrives: what becomes of open conversations, and why."""

    in_flight = forms.ChoiceField(
        label=_("Open conversations"),
        choices=ChangeRequest.InFlight.choices,
        widget=widgets.Choice(),
    )
    max_pin_hours = forms.IntegerField(
        label=_("Longest pin in hours"),
        min_value=1,
        max_value=MOST_PIN_HOURS,
        widget=widgets.Number(),
        help_text=_("For how long a conversation may stay on what it began with."),
    )
    reason = forms.CharField(
        label=_("Reason"), max_length=MOST_REASON, required=False, widget=widgets.Line()
    )


class RollBackForm(ReasonForm):
    """Why it goes back, and whether waiting messages move too."""

    force = forms.BooleanField(
        label=_("Everybody moves at once, waiting messages too"),
        required=False,
        widget=widgets.Switch(),
    )


class CanaryForm(ArriveForm):
    """A share of conversations first, and when it stops by itself."""

    share = forms.IntegerField(
        label=_("Share in per cent"), min_value=1, max_value=99, widget=widgets.Number()
    )
    min_turns = forms.IntegerField(
        label=_("Judged from so many turns"), min_value=1, initial=20, widget=widgets.Number()
    )
    max_error_rate = forms.FloatField(
        label=_("Stop above an error rate of"),
        min_value=0,
        max_value=1,
        required=False,
        initial=0.05,
        widget=widgets.Number({"step": "any"}),
        help_text=_("0.05 is five per cent; empty: it does not stop for that."),
    )
    max_block_rate = forms.FloatField(
        label=_("Stop above a block rate of"),
        min_value=0,
        max_value=1,
        required=False,
        initial=0.2,
        widget=widgets.Number({"step": "any"}),
    )
    max_cost_per_turn = forms.FloatField(
        label=_("Stop above a cost per turn of (USD)"),
        min_value=0,
        required=False,
        widget=widgets.Number({"step": "any"}),
    )

    RULES = ("min_turns", "max_error_rate", "max_block_rate", "max_cost_per_turn")

    def rules(self) -> dict[str, Any]:
        """Return the rules as ``canary_start`` takes them."""
        return {name: self.cleaned_data[name] for name in self.RULES}


class ShareForm(forms.Form):
    """Another share for the canary that runs."""

    share = forms.IntegerField(
        label=_("Share in per cent"), min_value=1, max_value=99, widget=widgets.Number()
    )
    reason = forms.CharField(
        label=_("Reason"), max_length=MOST_REASON, required=False, widget=widgets.Line()
    )


class OptionalReasonForm(forms.Form):
    """Perhaps why."""

    reason = forms.CharField(
        label=_("Reason"), max_length=MOST_REASON, required=False, widget=widgets.Line()
    )


class FreezeForm(ReasonForm):
    """From when until when nothing arrives, on the clock of a place."""

    starts = forms.CharField(
        label=_("From"), max_length=40, widget=widgets.Line({"type": "datetime-local"})
    )
    ends = forms.CharField(
        label=_("Until"), max_length=40, widget=widgets.Line({"type": "datetime-local"})
    )
    zone = forms.CharField(
        label=_("Time zone"), max_length=64, required=False, widget=widgets.Line()
    )
    field_order = ("starts", "ends", "zone", "reason")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["zone"].initial = settings.TIME_ZONE

    def clean(self) -> dict[str, Any]:
        """Make ``starts_at`` and ``ends_at`` of what was typed."""
        typed = super().clean() or {}
        for name in ("starts", "ends"):
            if name in typed and "zone" in typed:
                try:
                    typed[f"{name}_at"] = moment_parse(typed[name], typed["zone"], ahead=True)
                except NoMoment as error:
                    self.add_error(name, str(error))
        if "starts_at" in typed and "ends_at" in typed:
            if typed["ends_at"] <= typed["starts_at"]:
                self.add_error("ends", _("It ends after it starts."))
            elif typed["ends_at"] <= timezone.now():
                self.add_error("ends", _("It ends in the future."))
        return typed


class ProposalForm(ReasonForm):
    """What a name shall be bound to, or that it shall not be bound any more."""

    what = forms.ChoiceField(label=_("Type"), choices=Binding.What.choices, widget=widgets.Choice())
    name = forms.CharField(label=_("Name"), max_length=120, widget=widgets.Line())
    value = forms.CharField(
        label=_("Value"),
        max_length=500,
        required=False,
        widget=widgets.Line(),
        help_text=_(
            "A URL; or the name of the environment variable that holds the secret, never the secret itself."
        ),
    )
    remove = forms.BooleanField(
        label=_("Remove the binding instead"), required=False, widget=widgets.Switch()
    )
    field_order = ("what", "name", "value", "remove", "reason")


class DecideForm(forms.Form):
    """What is said about a proposal; required to reject it."""

    comment = forms.CharField(
        label=_("Comment"), max_length=MOST_REASON, required=False, widget=widgets.Line()
    )
