"""How a change is seen before it goes live: request -> patches -> approvals. See ``models``."""

import uuid

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from apps.releases.changes.states import OPEN
from apps.releases.models import ConfigItem, Release, Revision, environment_choices
from apps.tenants.owned import TenantOwned


class ChangeRequest(TenantOwned):
    """A set of field patches on its way live. Its states are those of ``changes.states``.

    ``manifest_sha256`` is the manifest that publishing it would make, as it was when it was last
    submitted, rebased or edited: gate results, approvals and the publication are bound to it.
    ``editors`` holds, as canonical text, everybody who ever changed a patch: none of them approves.
    """

    class Status(models.TextChoices):
        DRAFT = "draft", _("Draft")
        IN_REVIEW = "in_review", _("In review")
        APPROVED = "approved", _("Approved")
        SCHEDULED = "scheduled", _("Scheduled")
        PUBLISHED = "published", _("Published")
        DEPLOYED = "deployed", _("Deployed")
        REJECTED = "rejected", _("Rejected")
        WITHDRAWN = "withdrawn", _("Withdrawn")
        SUPERSEDED = "superseded", _("Superseded")

    class Bump(models.TextChoices):
        PATCH = "patch", _("Patch: a correction")
        MINOR = "minor", _("Minor: something more")
        MAJOR = "major", _("Major: something works differently")

    class Risk(models.TextChoices):
        COSMETIC = "cosmetic", _("Cosmetic")
        BEHAVIOUR = "behaviour", _("Behaviour")
        WEAKENING = "weakening", _("Weakens safety")

    class InFlight(models.TextChoices):
        FOLLOW = "follow", _("Follow: open conversations take it with their next message")
        PIN = "pin", _("Pin: open conversations finish on what they began with")
        MIGRATE = "migrate", _("Migrate at a boundary: once nothing is pending")
        FORCE = "force", _("Force: at once, waiting messages too (safety fix)")

    number = models.PositiveIntegerField(_("number"))
    # What another system finds its open request by: a branch, for example.
    reference = models.CharField(_("reference"), max_length=200, blank=True, editable=False)
    title = models.CharField(_("title"), max_length=200, blank=True)
    reason = models.TextField(_("reason"), blank=True)
    status = models.CharField(
        _("status"), max_length=12, choices=Status.choices, default=Status.DRAFT
    )
    author = models.CharField(_("author"), max_length=200)
    editors = models.TextField(default="[]")
    reviewers = models.TextField(default="[]")
    bump = models.CharField(
        _("version step"), max_length=8, choices=Bump.choices, default=Bump.MINOR
    )
    declared_risk = models.CharField(
        _("declared risk"), max_length=12, choices=Risk.choices, default=Risk.BEHAVIOUR
    )
    risk = models.CharField(
        _("risk"), max_length=12, choices=Risk.choices, default=Risk.COSMETIC, editable=False
    )
    risks = models.TextField(default="[]", editable=False)
    environment = models.CharField(
        _("environment"), max_length=20, choices=environment_choices, default="staging"
    )
    in_flight = models.CharField(
        _("open conversations"), max_length=8, choices=InFlight.choices, default=InFlight.FOLLOW
    )
    max_pin_hours = models.PositiveIntegerField(_("longest pin in hours"), default=72)
    manifest_sha256 = models.CharField(max_length=64, blank=True, editable=False)
    bound_at = models.DateTimeField(null=True, editable=False)
    gate_results = models.TextField(default="[]", editable=False)
    scheduled_for = models.DateTimeField(_("scheduled for"), null=True, editable=False)
    schedule_zone = models.CharField(_("time zone"), max_length=64, blank=True, editable=False)
    release = models.ForeignKey(
        Release, on_delete=models.PROTECT, null=True, related_name="requests", editable=False
    )
    superseded_by = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, related_name="+", editable=False
    )
    broken_glass_by = models.CharField(max_length=200, blank=True, editable=False)
    broken_glass_reason = models.TextField(blank=True, editable=False)
    broken_glass_until = models.DateTimeField(null=True, editable=False)
    ratified_by = models.CharField(max_length=200, blank=True, editable=False)
    ratified_at = models.DateTimeField(null=True, editable=False)
    reverted_at = models.DateTimeField(null=True, editable=False)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    submitted_at = models.DateTimeField(_("submitted at"), null=True, editable=False)
    published_at = models.DateTimeField(_("published at"), null=True, editable=False)
    closed_at = models.DateTimeField(_("closed at"), null=True, editable=False)
    updated_at = models.DateTimeField(_("updated at"), auto_now=True)

    class Meta(TenantOwned.Meta):
        verbose_name = _("change request")
        verbose_name_plural = _("change requests")
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(fields=["tenant", "number"], name="change_number_once"),
            models.UniqueConstraint(
                fields=["tenant", "reference"],
                condition=Q(status__in=OPEN) & ~Q(reference=""),
                name="change_reference_open_once",
            ),
        ]
        indexes = [
            models.Index(fields=["tenant", "status", "-number"], name="change_by_status"),
            models.Index(fields=["tenant", "author", "status"], name="change_by_author"),
            models.Index(
                fields=["tenant", "-published_at"],
                condition=Q(published_at__isnull=False),
                name="change_published",
            ),
            models.Index(
                fields=["tenant", "broken_glass_until"],
                condition=Q(broken_glass_until__isnull=False),
                name="change_broken_glass",
            ),
        ]

    def __str__(self) -> str:
        return f"#{self.number} {self.title}".strip()


class ChangePatch(TenantOwned):
    """What a request changes of one item: operations against a base revision, never a copy.

    ``base`` is ``None`` for an item that is not there yet; ``base_archived``: it was archived, so the
    patch brings it back. ``operations`` and ``labels`` are
    canonical text: see ``patching`` and ``ConfigItem``. ``archive``: the item leaves the next
    release. ``carried``: paths whose last value came from a rebase, not from an editor.
    """

    class Action(models.TextChoices):
        CREATE = "create", _("Added")
        CHANGE = "change", _("Changed")
        ARCHIVE = "archive", _("Archived")

    request = models.ForeignKey(ChangeRequest, on_delete=models.PROTECT, related_name="patches")
    kind = models.CharField(_("kind"), max_length=40)
    slug = models.CharField(_("slug"), max_length=120)
    action = models.CharField(_("action"), max_length=8, choices=Action.choices)
    base = models.ForeignKey(Revision, on_delete=models.PROTECT, null=True, related_name="+")
    base_archived = models.BooleanField(default=False)
    operations = models.TextField(default="[]")
    labels = models.TextField(default="{}")
    carried = models.TextField(default="[]")
    note = models.CharField(_("note"), max_length=500, blank=True)
    edited_by = models.CharField(_("edited by"), max_length=200)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    updated_at = models.DateTimeField(_("updated at"), auto_now=True)

    class Meta(TenantOwned.Meta):
        verbose_name = _("change")
        verbose_name_plural = _("changes")
        ordering = ["kind", "slug"]
        constraints = [
            models.UniqueConstraint(fields=["request", "kind", "slug"], name="patch_once_per_item")
        ]
        indexes = [models.Index(fields=["tenant", "kind", "slug"], name="patch_target")]

    def __str__(self) -> str:
        return f"{self.kind}:{self.slug}"


class Approval(TenantOwned):
    """One person's decision on a request, about exactly one manifest. Append-only.

    ``terms`` is the sha256 of what else was decided on: environment, open conversations, version
    step. A decision about another manifest or other terms counts for nothing any more.
    ``duties``: the duties the person held then, as canonical text; ``on_behalf_of``: who delegated
    to them.
    """

    append_only = True

    class Decision(models.TextChoices):
        APPROVE = "approve", _("Approved")
        REQUEST_CHANGES = "request_changes", _("Changes requested")
        REJECT = "reject", _("Rejected")
        RATIFY = "ratify", _("Ratified afterwards")

    request = models.ForeignKey(ChangeRequest, on_delete=models.PROTECT, related_name="approvals")
    person = models.CharField(_("person"), max_length=200)
    decision = models.CharField(_("decision"), max_length=16, choices=Decision.choices)
    manifest_sha256 = models.CharField(max_length=64)
    terms = models.CharField(max_length=64)
    duties = models.TextField(default="[]")
    on_behalf_of = models.CharField(_("on behalf of"), max_length=200, blank=True)
    comment = models.TextField(_("comment"), blank=True)
    decided_at = models.DateTimeField(_("decided at"), auto_now_add=True)

    class Meta(TenantOwned.Meta):
        verbose_name = _("approval")
        verbose_name_plural = _("approvals")
        ordering = ["decided_at", "pk"]

    def __str__(self) -> str:
        return f"{self.person} {self.decision}"


class ChangeComment(TenantOwned):
    """One line of the discussion of a request, about one field or (empty) all of it."""

    request = models.ForeignKey(ChangeRequest, on_delete=models.PROTECT, related_name="comments")
    author = models.CharField(_("author"), max_length=200)
    kind = models.CharField(max_length=40, blank=True)
    slug = models.CharField(max_length=120, blank=True)
    path = models.CharField(max_length=300, blank=True)
    text = models.TextField(_("comment"))
    resolved_by = models.CharField(_("resolved by"), max_length=200, blank=True)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

    class Meta(TenantOwned.Meta):
        verbose_name = _("comment")
        verbose_name_plural = _("comments")
        ordering = ["created_at", "pk"]

    def __str__(self) -> str:
        return self.text[:80]


class HeadMove(TenantOwned):
    """An item's head went to ``revision``, or (``None``) the item was archived. Append-only.

    Written where a head moves, so the whole configuration is known as it was at any moment.
    """

    append_only = True

    item = models.ForeignKey(ConfigItem, on_delete=models.PROTECT, related_name="moves")
    revision = models.ForeignKey(Revision, on_delete=models.PROTECT, null=True, related_name="+")
    actor = models.CharField(_("by"), max_length=200)
    at = models.DateTimeField(_("at"), auto_now_add=True)

    class Meta(TenantOwned.Meta):
        verbose_name = _("move of a head")
        verbose_name_plural = _("moves of heads")
        ordering = ["-pk"]
        indexes = [
            models.Index(fields=["tenant", "at"], name="head_moves"),
            models.Index(fields=["item", "-at"], name="head_moves_of_item"),
        ]

    def __str__(self) -> str:
        return f"{self.item_id} → {self.revision_id}"


class DeploymentEvent(TenantOwned):
    """What an environment did at a moment: its history, and what it ran then. Append-only.

    ``terms``: in-flight policy, pin age and canary rules as canonical text.
    """

    append_only = True

    class Verb(models.TextChoices):
        DEPLOY = "deploy", _("Deployed")
        PROMOTE = "promote", _("Promoted")
        ROLL_BACK = "roll_back", _("Rolled back")
        CANARY_START = "canary_start", _("Canary started")
        CANARY_CHANGE = "canary_change", _("Canary share changed")
        CANARY_STOP = "canary_stop", _("Canary stopped")
        CANARY_FINISH = "canary_finish", _("Canary took over")
        BREAK_GLASS = "break_glass", _("Emergency deployment")
        REVERT = "revert", _("Emergency reverted")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    environment = models.CharField(_("environment"), max_length=20, choices=environment_choices)
    verb = models.CharField(_("what"), max_length=14, choices=Verb.choices)
    release = models.ForeignKey(Release, on_delete=models.PROTECT, related_name="deployment_events")
    previous = models.ForeignKey(Release, on_delete=models.PROTECT, null=True, related_name="+")
    canary = models.ForeignKey(Release, on_delete=models.PROTECT, null=True, related_name="+")
    canary_share = models.PositiveSmallIntegerField(_("canary share"), default=0)
    terms = models.TextField(default="{}")
    reason = models.CharField(_("reason"), max_length=500, blank=True)
    actor = models.CharField(_("by"), max_length=200)
    at = models.DateTimeField(_("at"), auto_now_add=True)

    class Meta(TenantOwned.Meta):
        verbose_name = _("deployment event")
        verbose_name_plural = _("deployment history")
        ordering = ["-at"]
        indexes = [models.Index(fields=["tenant", "environment", "-at"], name="deployment_history")]

    def __str__(self) -> str:
        return f"{self.environment} {self.verb} {self.release_id}"


class FreezeWindow(TenantOwned):
    """A time in which nothing is published or promoted into an environment.

    Rolling back and an emergency deployment stay possible.
    """

    environment = models.CharField(_("environment"), max_length=20, choices=environment_choices)
    starts_at = models.DateTimeField(_("starts at"))
    ends_at = models.DateTimeField(_("ends at"))
    reason = models.CharField(_("reason"), max_length=500)
    created_by = models.CharField(_("created by"), max_length=200, editable=False)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

    class Meta(TenantOwned.Meta):
        verbose_name = _("freeze window")
        verbose_name_plural = _("freeze windows")
        ordering = ["-starts_at"]
        indexes = [
            models.Index(fields=["tenant", "environment", "ends_at"], name="freeze_by_environment")
        ]

    def __str__(self) -> str:
        return f"{self.environment}: {self.reason}"


class BindingProposal(TenantOwned):
    """A change of a production binding that waits for a second person.

    ``remove``: the binding goes. Values are addresses and names of secrets, never secrets.
    """

    class Status(models.TextChoices):
        OPEN = "open", _("Open")
        APPROVED = "approved", _("Approved")
        REJECTED = "rejected", _("Rejected")
        WITHDRAWN = "withdrawn", _("Withdrawn")

    environment = models.CharField(_("environment"), max_length=20, choices=environment_choices)
    what = models.CharField(_("type"), max_length=12)
    name = models.CharField(_("name"), max_length=120)
    value = models.CharField(_("value"), max_length=500, blank=True)
    previous = models.CharField(_("value before"), max_length=500, blank=True)
    remove = models.BooleanField(_("remove"), default=False)
    reason = models.CharField(_("reason"), max_length=500, blank=True)
    status = models.CharField(
        _("status"), max_length=10, choices=Status.choices, default=Status.OPEN
    )
    proposed_by = models.CharField(_("proposed by"), max_length=200)
    proposed_at = models.DateTimeField(_("proposed at"), auto_now_add=True)
    decided_by = models.CharField(_("decided by"), max_length=200, blank=True)
    decided_at = models.DateTimeField(_("decided at"), null=True)
    comment = models.CharField(_("comment"), max_length=500, blank=True)

    class Meta(TenantOwned.Meta):
        verbose_name = _("binding proposal")
        verbose_name_plural = _("binding proposals")
        ordering = ["-proposed_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "environment", "what", "name"],
                condition=Q(status="open"),
                name="binding_proposal_open_once",
            )
        ]

    def __str__(self) -> str:
        return f"{self.environment} · {self.name}"
