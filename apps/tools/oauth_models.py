"""What this product holds at other people's authorisation servers. Tables; secrets are sealed."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from apps.tenants.owned import TenantOwned


class ToolConnection(TenantOwned):
    """The right to call one tool server in one environment, of the tenant or of one person.

    ``principal`` is whose it is, empty for the tenant's own (client credentials). ``resource`` is the
    address the token was asked for; it is never sent to another. ``version`` rises with every change;
    ``refreshing_until`` is set while one process fetches the next token.
    """

    class State(models.TextChoices):
        EMPTY = "empty", _("Not connected")
        VALID = "valid", _("Connected")
        NEEDS_SIGN_IN = "needs_sign_in", _("Needs a sign-in")

    environment = models.CharField(_("environment"), max_length=20)
    server = models.CharField(_("tool server"), max_length=120)
    principal = models.CharField(_("whose"), max_length=200, blank=True)
    resource = models.CharField(_("address"), max_length=2000)
    issuer = models.CharField(_("authorisation server"), max_length=500, blank=True)
    client_id = models.CharField(_("OAuth client"), max_length=500, blank=True)
    scope = models.CharField(_("OAuth scopes"), max_length=2000, blank=True)
    token = models.TextField(blank=True)
    expires_at = models.DateTimeField(_("token valid until"), null=True)
    state = models.CharField(_("state"), max_length=20, choices=State.choices, default=State.EMPTY)
    error = models.CharField(_("error"), max_length=500, blank=True)
    version = models.PositiveIntegerField(default=0)
    refreshing_until = models.DateTimeField(null=True)
    connected_at = models.DateTimeField(_("connected at"), null=True)
    updated_at = models.DateTimeField(_("updated at"), auto_now=True)

    class Meta(TenantOwned.Meta):
        verbose_name = _("connection to a tool server")
        verbose_name_plural = _("connections to tool servers")
        ordering = ["environment", "server", "principal"]
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "environment", "server", "principal"],
                name="tool_connection_once",
            )
        ]

    def __str__(self) -> str:
        return f"{self.environment} · {self.server}"


class ToolSignIn(TenantOwned):
    """A person on their way to an authorisation server and back: one try, used once.

    ``state_digest`` is the sha256 of the state that travels; ``secrets`` holds verifier and client
    secret, sealed.
    """

    state_digest = models.CharField(max_length=64)
    principal = models.CharField(_("whose"), max_length=200)
    environment = models.CharField(_("environment"), max_length=20)
    server = models.CharField(_("tool server"), max_length=120)
    resource = models.CharField(max_length=2000)
    issuer = models.CharField(max_length=500)
    issuer_named = models.BooleanField(default=False)
    token_endpoint = models.CharField(max_length=2000)
    redirect_uri = models.CharField(max_length=500)
    client_id = models.CharField(max_length=500)
    secrets = models.TextField()
    created_at = models.DateTimeField(_("at"), auto_now_add=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)

    class Meta(TenantOwned.Meta):
        verbose_name = _("sign-in at a tool server")
        verbose_name_plural = _("sign-ins at tool servers")
        constraints = [
            models.UniqueConstraint(fields=["tenant", "state_digest"], name="tool_sign_in_once")
        ]

    def __str__(self) -> str:
        return f"{self.server} {self.principal}"


class ToolClient(TenantOwned):
    """An OAuth client that an authorisation server registered for us when none was configured."""

    environment = models.CharField(_("environment"), max_length=20)
    server = models.CharField(_("tool server"), max_length=120)
    issuer = models.CharField(_("authorisation server"), max_length=500)
    redirect_uri = models.CharField(max_length=500)
    client_id = models.CharField(_("OAuth client"), max_length=500)
    secret = models.TextField(blank=True)
    registered_at = models.DateTimeField(_("registered at"), auto_now_add=True)

    class Meta(TenantOwned.Meta):
        verbose_name = _("registered OAuth client")
        verbose_name_plural = _("registered OAuth clients")
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "environment", "server", "issuer", "redirect_uri"],
                name="tool_client_once",
            )
        ]

    def __str__(self) -> str:
        return self.client_id
