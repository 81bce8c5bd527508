"""Forms of who must approve what, and of duties."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import INPUT_CLASSES

from apps.governance.duties import may_decide
from apps.governance.duty_services import DELEGATION_DAYS, REASON_MAX
from apps.governance.governing import GovernanceRefused
from apps.governance.quorums import AT_LEAST, AT_MOST
from apps.governance.raci import DUTIES, LETTERS
from apps.governance.responsibility_selectors import DUTY_LABELS
from apps.releases.pages import widgets
from apps.tenants.models import User

LETTER_LABELS = {
    "": "—",
    "R": gettext_lazy("R · responsible: does it"),
    "A": gettext_lazy("A · accountable: approves it"),
    "C": gettext_lazy("C · consulted"),
    "I": gettext_lazy("I · informed"),
    "R/A": gettext_lazy("R/A · does it and approves it"),
}


class RulesForm(forms.Form):
    """Base: shows a service's refusal at the field it is about."""

    def refused(self, refusal: GovernanceRefused) -> None:
        """Show ``refusal`` at its field, or above the form."""
        name = getattr(refusal, "field", "")
        self.add_error(name if name in self.fields else None, str(refusal))

    def error_list(self) -> list[tuple[str, str, str]]:
        """Return every error as (id of its field, label, message)."""
        found = []
        for name, messages in self.errors.items():
            field = self[name] if name in self.fields else None
            where = (field.id_for_label or "", str(field.label)) if field else ("", "")
            found += [(*where, str(message)) for message in messages]
        return found


class ResponsibilityForm(RulesForm):
    """One row of the matrix: a letter for each duty."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for duty in DUTIES:
            self.fields[duty] = forms.ChoiceField(
                label=DUTY_LABELS[duty],
                choices=[(letter, LETTER_LABELS[letter]) for letter in LETTERS],
                required=False,
                widget=widgets.Choice(),
            )


class QuorumForm(RulesForm):
    """How many people approve a risk class, and which second duty."""

    approvals = forms.IntegerField(
        label=gettext_lazy("People who approve"),
        widget=widgets.Number(),
        help_text=gettext_lazy("More when more duties are accountable for what is changed."),
    )
    extra_duty = forms.ChoiceField(
        label=gettext_lazy("Second role"),
        required=False,
        widget=widgets.Choice(),
        help_text=gettext_lazy(
            "Approves beside whoever is accountable. Where it is accountable itself, platform does."
        ),
    )

    def __init__(self, *args: Any, risk: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        number: Any = self.fields["approvals"]
        number.min_value, number.max_value = AT_LEAST[risk], AT_MOST
        number.widget.attrs |= {"min": AT_LEAST[risk], "max": AT_MOST}
        choices = [(duty, DUTY_LABELS[duty]) for duty in DUTIES]
        field: Any = self.fields["extra_duty"]
        field.choices = choices if AT_LEAST[risk] > 1 else [("", "—"), *choices]


class DutyForm(RulesForm):
    """Base of granting and delegating: who, which duty, until when, why."""

    user = forms.ChoiceField(label=gettext_lazy("Member"), widget=widgets.Choice())
    duty = forms.ChoiceField(label=gettext_lazy("Duty"), widget=widgets.Choice())
    expires_at = forms.DateTimeField(
        label=gettext_lazy("Until"),
        widget=forms.DateTimeInput(
            {"type": "datetime-local", "class": " ".join(INPUT_CLASSES)},
            format="%Y-%m-%dT%H:%M",
        ),
    )
    reason = forms.CharField(
        label=gettext_lazy("Reason"), max_length=REASON_MAX, widget=widgets.Line()
    )

    def __init__(
        self, *args: Any, people: Iterable[User], duties: Sequence[str], **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._people = {person.get_username(): person for person in people}
        members: Any = self.fields["user"]
        members.choices = [("", "—"), *_named(self._people)]
        offered: Any = self.fields["duty"]
        offered.choices = [("", "—"), *((duty, DUTY_LABELS[duty]) for duty in duties)]

    def clean_user(self) -> User:
        return self._people[self.cleaned_data["user"]]

    def clean_expires_at(self) -> datetime | None:
        expires_at: datetime | None = self.cleaned_data["expires_at"]
        if expires_at is not None and expires_at <= timezone.now():
            raise forms.ValidationError(_("This is in the past."))
        return expires_at


def _named(people: Iterable[str]) -> list[tuple[str, str]]:
    """Return people as choices; it is said of whom no role lets them decide on a request."""
    people = list(people)
    deciding = may_decide(people)
    text = _("%(name)s (holds no role that may decide)")
    return [(name, name if name in deciding else text % {"name": name}) for name in people]


class GrantForm(DutyForm):
    """A duty for a member, by a governor."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        until, reason = self.fields["expires_at"], self.fields["reason"]
        until.required = reason.required = False
        until.help_text = _("Empty: until somebody ends it. Time zone: %(zone)s.") % {
            "zone": timezone.get_current_timezone_name()
        }


class DelegationForm(DutyForm):
    """A duty of one's own, for somebody who stands in."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        until = self.fields["expires_at"]
        latest = timezone.localtime(timezone.now() + timedelta(days=DELEGATION_DAYS))
        until.widget.attrs["max"] = f"{latest:%Y-%m-%dT%H:%M}"
        until.help_text = _("%(days)d days at most. Time zone: %(zone)s.") % {
            "days": DELEGATION_DAYS,
            "zone": timezone.get_current_timezone_name(),
        }
        self.fields["user"].help_text = _("Approves for you; you keep the duty yourself.")
