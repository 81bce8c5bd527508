"""What a person types about a change request. Whether it may be done is the services' to say."""

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from apps.releases.change_models import ChangeRequest
from apps.releases.models import environment_choices
from apps.releases.pages import widgets
from apps.runtime.canonical import canonical_json
from apps.tenants.models import Membership

PERSON = "user:"


def person_name(actor: str) -> str:
    """Return how an actor is called on a page: a person without the prefix."""
    return actor.removeprefix(PERSON)


class FactsForm(forms.Form):
    """What a request is about, how risky it is said to be, where it goes and how it arrives."""

    title = forms.CharField(label=_("Title"), max_length=200, widget=widgets.Line())
    reason = forms.CharField(
        label=_("Reason"),
        max_length=4000,
        required=False,
        widget=widgets.Text(),
        help_text=_("Why this is needed: reviewers read it first. Required to submit."),
    )
    bump = forms.ChoiceField(
        label=_("Version step"), choices=ChangeRequest.Bump.choices, widget=widgets.Choice()
    )
    declared_risk = forms.ChoiceField(
        label=_("Declared risk"),
        choices=ChangeRequest.Risk.choices,
        widget=widgets.Choice(),
        help_text=_("It cannot be milder than what the changes do."),
    )
    environment = forms.ChoiceField(
        label=_("Target environment"),
        choices=environment_choices,
        widget=widgets.Choice(),
        help_text=_("Production is reached by promotion from the environment before it."),
    )
    in_flight = forms.ChoiceField(
        label=_("Open conversations"),
        choices=ChangeRequest.InFlight.choices,
        widget=widgets.Choice(),
    )
    max_pin_hours = forms.IntegerField(
        label=_("Longest pin in hours"), min_value=1, max_value=24 * 90, widget=widgets.Number()
    )
    reviewers = forms.CharField(
        label=_("Reviewers"),
        max_length=1000,
        required=False,
        widget=widgets.Line(),
        help_text=_("Who is asked to look: usernames, separated by commas."),
    )

    @staticmethod
    def initial_of(request: ChangeRequest, reviewers: list[str]) -> dict[str, Any]:
        """Return what the form begins with for ``request``."""
        fields = ("title", "reason", "bump", "declared_risk", "environment", "in_flight")
        return {
            **{field: getattr(request, field) for field in (*fields, "max_pin_hours")},
            "reviewers": ", ".join(person_name(name) for name in reviewers),
        }

    def clean_reviewers(self) -> list[str]:
        """Return the reviewers as actors; a name that is no member's is an error."""
        typed = self.cleaned_data["reviewers"].split(",")
        names = list(dict.fromkeys(name.strip() for name in typed if name.strip()))
        members = Membership.objects.filter(user__username__in=names)
        known = set(members.values_list("user__username", flat=True))
        if strangers := [name for name in names if name not in known]:
            raise ValidationError(
                gettext("Not a member of this tenant: %(names)s.") % {"names": ", ".join(strangers)}
            )
        return [PERSON + name for name in names]


class DecisionForm(forms.Form):
    """A decision about the manifest that was shown."""

    decision = forms.ChoiceField(choices=[(d, d) for d in ("approve", "request_changes", "reject")])
    sha256 = forms.RegexField(r"^[0-9a-f]{64}$", required=False)
    comment = forms.CharField(max_length=4000, required=False)


class CommentForm(forms.Form):
    """A remark about the request, an item of it, or one field."""

    text = forms.CharField(label=_("Comment"), max_length=4000, required=False)
    kind = forms.CharField(max_length=40, required=False)
    slug = forms.CharField(max_length=120, required=False)
    path = forms.CharField(max_length=300, required=False)


class ScheduleForm(forms.Form):
    """A moment on the clock of a place."""

    date = forms.DateField(
        label=_("Date"), widget=widgets.Line({"type": "date"}), input_formats=["%Y-%m-%d"]
    )
    time = forms.TimeField(label=_("Time"), widget=widgets.Line({"type": "time"}))
    zone = forms.CharField(label=_("Time zone"), max_length=64, widget=widgets.SuggestedLine())

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["zone"].widget.suggestions = sorted(available_timezones())
        self.fields["zone"].initial = settings.TIME_ZONE

    def clean_zone(self) -> str:
        zone = str(self.cleaned_data["zone"])
        if zone not in available_timezones():
            raise ValidationError(
                gettext("There is no time zone of that name; write it like America/Sao_Paulo.")
            )
        return zone

    def clean(self) -> dict[str, Any]:
        """Add ``at``; refuse a time that the clock leaves out that day."""
        typed = super().clean() or {}
        if {"date", "time", "zone"} <= typed.keys():
            zone = ZoneInfo(typed["zone"])
            at = datetime.combine(typed["date"], typed["time"], zone)
            if at.astimezone(ZoneInfo("UTC")).astimezone(zone).replace(tzinfo=None) != at.replace(
                tzinfo=None
            ):
                self.add_error(
                    "time", gettext("The clock leaves this time out that day; take another one.")
                )
            elif at <= timezone.now():
                self.add_error("time", gettext("This time has passed; take a later one."))
            typed["at"] = at
        return typed


class SupersedeForm(forms.Form):
    """The request that takes over."""

    by = forms.IntegerField(label=_("Superseded by request no."), min_value=1, max_value=10**9)


class ReasonForm(forms.Form):
    """Why."""

    reason = forms.CharField(label=_("Reason"), max_length=500, widget=widgets.Text())


class BreakGlassForm(ReasonForm):
    """An emergency: why, where, and that one knows what one does."""

    environment = forms.ChoiceField(
        label=_("Environment"),
        choices=environment_choices,
        widget=widgets.Choice(),
        initial="production",
    )
    sure = forms.BooleanField(
        label=_("I know that this goes live without approval and is shown for ever."),
        error_messages={"required": _("Confirm that you know what this does.")},
    )


def own_value(text: str, like: Any) -> Any:
    """Return what somebody typed for a place, as a value of the type of ``like``.

    A text is taken as it is, a list of texts is one per line; anything else is written as JSON.
    Raises ``ValidationError``.
    """
    text = text.replace("\r\n", "\n")
    if isinstance(like, str):
        return text
    if isinstance(like, list) and all(isinstance(entry, str) for entry in like):
        return [line.strip() for line in text.split("\n") if line.strip()]
    try:
        return forms.JSONField().clean(text)
    except ValidationError:
        raise ValidationError(
            gettext("Write a value like %(example)s.") % {"example": canonical_json(like)[:80]}
        ) from None
