"""Forms of the tenants' admin pages, and of signing in."""

from datetime import datetime
from typing import Any

from django import forms
from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanSwitchWidget,
)

from apps.tenants.models import TENANT_SLUG, ApiKey, Membership, Tenant, User
from apps.tenants.roles import KEY_SCOPES
from apps.tenants.services import is_own_role, is_slug


def _environments() -> list[tuple[str, str]]:
    return [(name, name) for name in settings.RELEASE_ENVIRONMENTS]


class TenantForm(forms.ModelForm):  # type: ignore[type-arg]
    """A tenant's name; its slug is in session ids and never changes."""

    class Meta:
        model = Tenant
        fields = ("slug", "name", "demo_keyless")

    def clean_slug(self) -> str:
        slug: str = self.cleaned_data["slug"]
        if not TENANT_SLUG.fullmatch(slug):
            raise forms.ValidationError(
                _("Use lower-case letters, digits, “-” and “_”, beginning with a letter or digit.")
            )
        return slug


class MembershipForm(forms.ModelForm):  # type: ignore[type-arg]
    """A person, by user name, and a role. There is no list of people to pick from: it would show
    those of other tenants."""

    username = forms.CharField(
        label=_("user name"), max_length=150, widget=UnfoldAdminTextInputWidget()
    )

    # Who gives the role; the page sets it.
    actor = ""

    class Meta:
        model = Membership
        fields = ("username", "role")

    def clean_username(self) -> User:
        user = User.objects.filter(username=self.cleaned_data["username"], is_active=True).first()
        if user is None:
            raise forms.ValidationError(_("There is no active person with this user name."))
        if is_own_role(user=user, actor=self.actor):
            raise forms.ValidationError(
                _("Nobody gives a role to themselves: ask another tenant admin.")
            )
        return user

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        held = Membership.objects.filter(user=cleaned.get("username"), role=cleaned.get("role"))
        if cleaned.get("username") and held.exists():
            raise forms.ValidationError(_("This person has that role already."))
        return cleaned


class ApiKeyForm(forms.ModelForm):  # type: ignore[type-arg]
    """What a key may do. Only for new ones: a key is never edited, only revoked."""

    personal = forms.BooleanField(
        label=_("acts as me"),
        required=False,
        widget=UnfoldBooleanSwitchWidget(),
        help_text=_(
            "What is done with it is done by you, within your roles; it ends with your membership."
            " Without this it is a system's: it writes drafts and never approves."
        ),
    )
    scopes = forms.MultipleChoiceField(
        label=_("scopes"),
        choices=[(scope, scope) for scope in KEY_SCOPES],
        widget=UnfoldAdminCheckboxSelectMultipleWidget(),
    )
    environment = forms.ChoiceField(
        label=_("environment"), choices=_environments, widget=UnfoldAdminSelectWidget()
    )

    agent = forms.CharField(
        label=_("agent"),
        required=False,
        max_length=120,
        widget=UnfoldAdminTextInputWidget(),
        help_text=_(
            "Slug of the one agent it speaks to and whose tools it may call. Empty: a system that"
            " speaks to any agent; to call tools it also needs the scope agent:assert."
        ),
    )

    class Meta:
        model = ApiKey
        fields = ("name", "personal", "scopes", "environment", "agent", "expires_at")

    def clean_agent(self) -> str:
        agent: str = self.cleaned_data["agent"]
        if agent and not is_slug(agent):
            raise forms.ValidationError(
                _("Use letters, digits, “_”, “-”, “.” and “:”, beginning with a letter or digit.")
            )
        return agent

    def clean_expires_at(self) -> datetime | None:
        expires_at: datetime | None = self.cleaned_data["expires_at"]
        if expires_at is not None and expires_at <= timezone.now():
            raise forms.ValidationError(_("This is in the past: the key would never be valid."))
        return expires_at


class SignInForm(AuthenticationForm):
    """User name and password; a phone's keyboard neither capitalises nor corrects the name."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["username"].widget.attrs.update(
            {"autocapitalize": "none", "spellcheck": "false"}
        )
