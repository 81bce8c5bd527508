"""What an item is called, who answers for it, and what the editor saw when they began."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from apps.releases.change_models import ChangePatch
from apps.releases.changes.refusals import ChangeRefused
from apps.releases.content import slug_is_valid
from apps.releases.models import ConfigItem
from apps.releases.pages import widgets

TYPED = (forms.TextInput, forms.NumberInput, forms.Textarea)
NEW_REQUEST = "new"


class ItemForm(forms.Form):
    """What an item is called, who answers for it, and what the editor saw when they began."""

    slug = forms.CharField(
        label=_("Slug"),
        max_length=120,
        widget=widgets.Line(),
        help_text=_("The name used by references and by the API. It cannot be changed later."),
    )
    name = forms.CharField(label=_("Name"), max_length=200, required=False, widget=widgets.Line())
    owner = forms.CharField(
        label=_("Owner"),
        max_length=200,
        required=False,
        widget=widgets.Line(),
        help_text=_("Who decides about its content."),
    )
    technical_owner = forms.CharField(
        label=_("Technical owner"),
        max_length=200,
        required=False,
        widget=widgets.Line(),
        help_text=_("Who is asked when it breaks."),
    )
    note = forms.CharField(
        label=_("What changed"),
        max_length=500,
        required=False,
        widget=widgets.Line(),
        help_text=_("Kept with the change and shown in the history."),
    )
    request = forms.ChoiceField(
        label=_("Change request"),
        widget=widgets.Choice(),
        help_text=_(
            "What you save waits there until it is approved and published."
            " It voids the approvals of a request that was submitted."
        ),
    )
    # The request whose version of the item is shown, and when that was last saved; else empty.
    shown = forms.IntegerField(widget=forms.HiddenInput, min_value=1, required=False)
    shown_at = forms.CharField(widget=forms.HiddenInput, max_length=40, required=False)
    base = forms.IntegerField(widget=forms.HiddenInput, min_value=0)
    # A box that only a refused save shows: the number of the revision to be saved over.
    overwrite = forms.IntegerField(widget=forms.HiddenInput, min_value=1, required=False)

    def __init__(
        self,
        *args: Any,
        kind: str,
        slug: str = "",
        requests: Sequence[tuple[str, str]] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.kind, self.item_slug = kind, slug
        self.fields["request"].choices = [*requests, (NEW_REQUEST, _("A new change request"))]  # type: ignore[attr-defined]
        if slug:
            del self.fields["slug"]

    def clean_slug(self) -> str:
        slug = str(self.cleaned_data["slug"])
        if not slug_is_valid(slug):
            raise ValidationError(
                _("Use letters, digits, and . _ : - (the first one a letter, digit or _).")
            )
        if ConfigItem.objects.filter(kind=self.kind, slug=slug).exists():
            raise ValidationError(_("There is already an item with this slug."))
        return slug

    def clean_request(self) -> int | None:
        """Return the number of the chosen request; ``None`` for a new one."""
        chosen = str(self.cleaned_data["request"])
        return None if chosen == NEW_REQUEST else int(chosen)

    def clean(self) -> dict[str, Any]:
        """Refuse to overwrite what a request already has of this item and was not shown here."""
        typed = super().clean() or {}
        if unseen := self._unseen(typed):
            self.add_error("request", unseen)
        return typed

    def seen_check(self) -> None:
        """Raise ``ChangeRefused`` when saving would overwrite what was not shown here.

        ``clean`` has said so where it could; this is for under the lock.
        """
        if unseen := self._unseen(self.cleaned_data):
            raise ChangeRefused(unseen)

    def _unseen(self, typed: dict[str, Any]) -> str:
        """Return what the chosen request has of the item that this page did not show; "" if nothing."""
        slug, number = self.item_slug or typed.get("slug"), typed.get("request")
        if not slug or not number:
            return ""
        patch = ChangePatch.objects.filter(kind=self.kind, slug=slug, request__number=number)
        found = patch.first()
        if found is None:
            return ""
        if number != typed.get("shown"):
            return _elsewhere(number)
        return _saved_since(found) if moment(found) != typed.get("shown_at") else ""

    def lock(self) -> None:
        """Show everything and let nothing be changed."""
        form_lock(self)

    def error_list(self) -> list[tuple[str, str, str]]:
        """Return every error as (id of its field, label, message)."""
        return form_errors(self)


def moment(patch: ChangePatch | None) -> str:
    """Return when ``patch`` was last saved, as the form carries it; "" without one."""
    return patch.updated_at.isoformat() if patch else ""


def _elsewhere(number: int) -> str:
    return gettext(
        "Change request #%(number)s already changes this item. Open the item there and edit that"
        " version, or choose another request."
    ) % {"number": number}


def _saved_since(patch: ChangePatch) -> str:
    return gettext(
        "%(person)s changed this item in the same request after you opened this page. Open the"
        " request in a new tab to see it, then open the item there again."
    ) % {"person": patch.edited_by}


def form_lock(form: forms.Form) -> None:
    """Let nothing of ``form`` be changed: text stays readable and can be copied, the rest is off."""
    for field in form.fields.values():
        key = "readonly" if isinstance(field.widget, TYPED) else "disabled"
        field.widget.attrs[key] = True


def form_errors(form: forms.Form) -> list[tuple[str, str, str]]:
    """Return every error of ``form`` as (id of its field, label, message)."""
    found = [("", "", str(message)) for message in form.non_field_errors()]
    for name, messages in form.errors.items():
        if name in form.fields:
            bound = form[name]
            target = bound.field.widget.id_for_label(bound.auto_id) or bound.auto_id
            found += [(target, str(bound.label), str(message)) for message in messages]
    return found
