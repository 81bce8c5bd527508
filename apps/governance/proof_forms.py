"""Forms of evidence, versions that work together, contracts, and an agent's checklist."""

from datetime import UTC, date, datetime, time
from typing import Any

from django import forms
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from unfold.widgets import INPUT_CLASSES

from apps.governance.approval_forms import RulesForm
from apps.governance.approval_models import ContractVersion, Evidence
from apps.governance.governing import GovernanceRefused
from apps.releases.pages import widgets


def _day(label: Any, **kwargs: Any) -> forms.DateField:
    widget = forms.DateInput({"type": "date", "class": " ".join(INPUT_CLASSES)}, format="%Y-%m-%d")
    return forms.DateField(label=label, required=False, widget=widget, **kwargs)


def _line(label: Any, **kwargs: Any) -> forms.CharField:
    return forms.CharField(label=label, widget=widgets.Line(), **kwargs)


class ProofForm(RulesForm):
    """Base: a refusal names one or more fields."""

    def refused(self, refusal: GovernanceRefused) -> None:
        """Show each of the refusal's sentences at its field, or above the form."""
        for name, message in getattr(refusal, "errors", {"": str(refusal)}).items():
            self.add_error(name if name in self.fields else None, message)


class EvidenceForm(ProofForm):
    """A result about one manifest."""

    manifest_sha256 = _line(
        _("Manifest"), help_text=_("sha256 of the release, or of what a request would make.")
    )
    what = forms.ChoiceField(
        label=_("Type"), choices=Evidence.What.choices, widget=widgets.Choice()
    )
    passed = forms.BooleanField(label=_("Passed"), required=False, widget=widgets.Switch())
    result_sha256 = _line(_("sha256 of the result"), help_text=_("Of the report, as a file."))
    summary = _line(_("Summary"), required=False)
    link = _line(_("Link"), required=False, help_text=_("Where the report is kept."))


class CompatibilityForm(ProofForm):
    """One row of the matrix."""

    framework = _line(_("Framework"), help_text=_("A version, or a pattern like 2.1.x."))
    runtime = _line(_("Runtime"))
    agent_gateway = _line(_("Agent gateway"))
    supported = forms.BooleanField(label=_("Supported"), required=False, widget=widgets.Switch())
    note = _line(_("Note"), required=False)


class ContractForm(ProofForm):
    """A contract and where it is in its life. Name and version of one that is there are fixed."""

    name = _line(_("Name"), help_text=_("Small letters, digits and hyphens: gateway-request."))
    version = forms.IntegerField(label=_("Version"), min_value=1, widget=widgets.Number())
    status = forms.ChoiceField(
        label=_("Status"), choices=ContractVersion.Status.choices, widget=widgets.Choice()
    )
    deprecated_on = _day(_("Deprecated on"))
    retired_on = _day(_("Retired on"))
    owner = _line(_("Owner"), required=False)
    schema = forms.CharField(
        label=_("JSON schema"),
        required=False,
        widget=widgets.Text(),
        help_text=_("A contract that is there keeps its schema: another one is the next version."),
    )

    def __init__(self, *args: Any, fixed: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("name", "version") if fixed else ():
            self.fields[name].disabled = True


class AnswerForm(ProofForm):
    """What shows that a point is done."""

    note = forms.CharField(required=False)
    link = forms.CharField(required=False)
    reason = forms.CharField(required=False)
    until = forms.DateField(required=False)
    seen = forms.CharField(required=False)

    def clean_seen(self) -> datetime:
        """Return when what was shown was changed last; a moment nothing has when it is not said."""
        try:
            return datetime.fromisoformat(self.cleaned_data["seen"])
        except ValueError:
            return datetime.min.replace(tzinfo=UTC)

    def expires_at(self) -> datetime | None:
        """Return the end of the day that was given, in the current time zone."""
        day: date | None = self.cleaned_data.get("until")
        return timezone.make_aware(datetime.combine(day, time.max)) if day else None
