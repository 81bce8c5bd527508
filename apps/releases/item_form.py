"""What an item is called, who answers for it, and what the editor saw when they began."""

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from apps.releases import widgets
from apps.releases.content import slug_is_valid
from apps.releases.models import ConfigItem

TYPED = (forms.TextInput, forms.NumberInput, forms.Textarea)


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
        help_text=_("Kept with the revision and shown in the history."),
    )
    base = forms.IntegerField(widget=forms.HiddenInput, min_value=0)
    # A box that only a refused save shows: the number of the revision to be saved over.
    overwrite = forms.IntegerField(widget=forms.HiddenInput, min_value=1, required=False)

    def __init__(self, *args: Any, kind: str, new: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.kind = kind
        if not new:
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

    def lock(self) -> None:
        """Show everything and let nothing be changed."""
        form_lock(self)

    def error_list(self) -> list[tuple[str, str, str]]:
        """Return every error as (id of its field, label, message)."""
        return form_errors(self)


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
