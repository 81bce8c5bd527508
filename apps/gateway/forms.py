"""Forms of the console's chat."""

from django import forms
from django.utils.translation import gettext_lazy as _


class IdentityForm(forms.Form):
    """Who the tester says the customer is; sent with every message, kept nowhere in the browser."""

    customer_key = forms.CharField(label=_("Customer key"), max_length=200, required=False)
    contract_key = forms.CharField(label=_("Contract key"), max_length=200, required=False)

    def __init__(self) -> None:
        super().__init__(auto_id="identity-%s")
        for field in self.fields.values():
            field.widget.attrs.update({"autocomplete": "off", "spellcheck": "false"})
