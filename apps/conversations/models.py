"""What was said: sessions, turns, messages, events; the only place a turn starts."""

import uuid

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from apps.conversations.config import IdentityKeyConfig
from apps.releases.models import ConfigItem
from apps.tenants.owned import TenantOwned


class Session(TenantOwned):
    """One conversation. ``key`` is ``tenant:requested agent:session`` and unique in its tenant.

    ``turn_number`` and ``event_sequence`` are the last ones given out, ``settled_number`` is the
    last turn that ended; all only rise. The turn to run next is ``settled_number + 1``.
    ``vault`` holds restricted values sealed; ``business_context`` is canonical text.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    key = models.CharField(_("session"), max_length=400)
    name = models.CharField(_("name"), max_length=200)
    agent = models.CharField(_("requested agent"), max_length=120)
    channel = models.CharField(_("channel"), max_length=40)
    principal = models.CharField(_("principal"), max_length=200)
    user_id = models.CharField(_("user"), max_length=200, blank=True)
    environment = models.CharField(_("environment"), max_length=20, default="production")
    turn_number = models.PositiveIntegerField(default=0)
    settled_number = models.PositiveIntegerField(default=0)
    event_sequence = models.PositiveBigIntegerField(default=0)
    next_state = models.CharField(_("next state"), max_length=120, blank=True)
    active_agent = models.CharField(_("answering agent"), max_length=120, blank=True)
    business_context = models.TextField(default="{}")
    vault = models.TextField(blank=True)
    # What is open beyond the words: ``apps/runtime/dialogue.py`` as canonical text.
    dialogue = models.TextField(default="{}")
    # What it last ran on, and since when: a pinned conversation stays there. ``pending``: something
    # was asked of the customer and is not answered yet, so this is no boundary.
    release = models.ForeignKey(
        "releases.Release", on_delete=models.PROTECT, null=True, related_name="+", db_index=False
    )
    pending = models.BooleanField(default=False)
    epoch = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    updated_at = models.DateTimeField(_("updated at"), auto_now=True)

    class Meta(TenantOwned.Meta):
        verbose_name = _("session")
        verbose_name_plural = _("sessions")
        ordering = ["-created_at"]
        constraints = [models.UniqueConstraint(fields=["tenant", "key"], name="session_key_once")]
        indexes = [
            # Nothing that a turn changes is indexed: PostgreSQL then rewrites the row in its page,
            # and a long conversation leaves no trail of dead index entries.
            models.Index(fields=["tenant", "-created_at"], name="session_recent"),
            models.Index(fields=["tenant", "name"], name="session_named"),
        ]

    def __str__(self) -> str:
        return self.key


class TurnRecord(TenantOwned):
    """One accepted message and everything that was decided about it.

    ``inbound`` is the message as it came, sealed, and emptied when the turn settles. ``record`` is
    canonical text. ``fence`` rises with every claim; every write of a turn checks it.
    """

    class Status(models.TextChoices):
        QUEUED = "queued", _("Queued")
        RUNNING = "running", _("Running")
        SETTLED = "settled", _("Settled")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    session = models.ForeignKey(
        Session, on_delete=models.PROTECT, related_name="turns", db_index=False
    )
    number = models.PositiveIntegerField(_("number"))
    status = models.CharField(
        _("status"), max_length=10, choices=Status.choices, default=Status.QUEUED
    )
    channel = models.CharField(_("channel"), max_length=40)
    user = models.CharField(_("user or principal"), max_length=200)
    message_id = models.CharField(_("message id"), max_length=200)
    body_digest = models.CharField(max_length=64)
    request_id = models.CharField(_("request id"), max_length=100, blank=True)
    release = models.ForeignKey(
        "releases.Release",
        on_delete=models.PROTECT,
        related_name="+",
        verbose_name=_("release"),
        db_index=False,
    )
    environment = models.CharField(_("environment"), max_length=20)
    bindings_version = models.PositiveIntegerField(default=1)
    inbound = models.TextField()
    fence = models.PositiveIntegerField(default=0)
    attempts = models.PositiveIntegerField(default=0)
    lease_until = models.DateTimeField(null=True)
    worker = models.CharField(_("worker"), max_length=100, blank=True)
    outcome = models.CharField(_("outcome"), max_length=20, blank=True)
    answer = models.TextField(_("answer"), blank=True)
    record = models.TextField(default="{}")
    accepted_at = models.DateTimeField(_("accepted at"), auto_now_add=True)
    claimed_at = models.DateTimeField(_("claimed at"), null=True)
    settled_at = models.DateTimeField(_("settled at"), null=True)

    class Meta(TenantOwned.Meta):
        verbose_name = _("turn")
        verbose_name_plural = _("turns")
        ordering = ["-accepted_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "channel", "user", "session", "message_id"],
                name="turn_message_once",
            ),
            models.UniqueConstraint(fields=["session", "number"], name="turn_number_once"),
            models.UniqueConstraint(
                fields=["session"], condition=Q(status="running"), name="turn_one_running"
            ),
        ]
        indexes = [
            # Partial, so that it never seems a good way to find one turn; see services._open_turns.
            models.Index(
                fields=["tenant", "accepted_at"], condition=~Q(status="settled"), name="turn_open"
            ),
            # In place of the one on ``release`` alone: how a canary fares, since it began.
            models.Index(fields=["release", "accepted_at"], name="turn_by_release"),
        ]

    def __str__(self) -> str:
        return f"{self.session_id} #{self.number}"


class Message(TenantOwned):
    """One line of a conversation: sanitised text only."""

    append_only = True

    session = models.ForeignKey(
        Session, on_delete=models.PROTECT, related_name="messages", db_index=False
    )
    turn = models.ForeignKey(TurnRecord, on_delete=models.PROTECT, related_name="messages")
    sequence = models.PositiveIntegerField()
    role = models.CharField(_("role"), max_length=10)
    text = models.TextField(_("text"))
    # Who said it, and in which sub-conversation; both empty for the customer in the main one.
    agent = models.CharField(_("agent"), max_length=120, blank=True, default="")
    thread = models.CharField(max_length=36, blank=True, default="")
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

    class Meta(TenantOwned.Meta):
        verbose_name = _("message")
        verbose_name_plural = _("messages")
        ordering = ["sequence"]
        constraints = [
            models.UniqueConstraint(fields=["session", "sequence"], name="message_sequence_once")
        ]

    def __str__(self) -> str:
        return f"{self.role} {self.sequence}"


class LedgerEntry(TenantOwned):
    """One tool or model call of a turn: started before it is sent, ended with its result."""

    turn = models.ForeignKey(
        TurnRecord, on_delete=models.PROTECT, related_name="ledger", db_index=False
    )
    key = models.CharField(max_length=64)
    kind = models.CharField(max_length=10)
    name = models.CharField(max_length=120)
    ordinal = models.PositiveIntegerField()
    contract = models.CharField(max_length=64)
    arguments = models.TextField()
    action = models.BooleanField(default=False)
    idempotent = models.BooleanField(default=False)
    starts = models.PositiveIntegerField(default=1)
    started_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True)
    result = models.TextField(blank=True)

    class Meta(TenantOwned.Meta):
        verbose_name = _("ledger entry")
        verbose_name_plural = _("ledger entries")
        constraints = [models.UniqueConstraint(fields=["turn", "key"], name="ledger_key_once")]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class Confirmation(TenantOwned):
    """A question of the runtime whose yes lets exactly one call happen, once.

    ``contract`` and ``arguments`` (sha256 of the canonical text) are those of the call that was
    described to the customer. ``asked_turn`` put the question, ``used_turn`` carried it out.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    session = models.ForeignKey(Session, on_delete=models.PROTECT, related_name="confirmations")
    release = models.ForeignKey(
        "releases.Release", on_delete=models.PROTECT, related_name="+", db_index=False
    )
    tool = models.CharField(_("tool"), max_length=120)
    contract = models.CharField(max_length=64)
    arguments = models.CharField(max_length=64)
    asked_turn = models.ForeignKey(
        TurnRecord, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    asked_at = models.DateTimeField(_("asked at"), auto_now_add=True)
    expires_at = models.DateTimeField(_("expires at"))
    used_turn = models.ForeignKey(
        TurnRecord, on_delete=models.PROTECT, null=True, related_name="+", db_index=False
    )
    used_at = models.DateTimeField(_("used at"), null=True)

    class Meta(TenantOwned.Meta):
        verbose_name = _("confirmation")
        verbose_name_plural = _("confirmations")

    def __str__(self) -> str:
        return f"{self.tool} {self.id}"


class Event(TenantOwned):
    """Something that happened in a session, in order. Written before it is announced."""

    append_only = True

    session = models.ForeignKey(
        Session, on_delete=models.PROTECT, related_name="events", db_index=False
    )
    turn = models.ForeignKey(TurnRecord, on_delete=models.PROTECT, null=True, related_name="events")
    sequence = models.PositiveBigIntegerField()
    event_type = models.CharField(max_length=60)
    payload = models.TextField(default="{}")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(TenantOwned.Meta):
        verbose_name = _("event")
        verbose_name_plural = _("events")
        ordering = ["sequence"]
        constraints = [
            models.UniqueConstraint(fields=["session", "sequence"], name="event_sequence_once")
        ]

    def __str__(self) -> str:
        return f"{self.sequence} {self.event_type}"


class OutboundMessage(TenantOwned):
    """A reply on its way to its channel: leaves once."""

    turn = models.OneToOneField(TurnRecord, on_delete=models.PROTECT, related_name="outbound")
    session = models.ForeignKey(Session, on_delete=models.PROTECT, related_name="+")
    channel = models.CharField(max_length=40)
    text = models.TextField()
    epoch = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    sent_at = models.DateTimeField(null=True)

    class Meta(TenantOwned.Meta):
        verbose_name = _("outbound message")
        verbose_name_plural = _("outbound messages")
        indexes = [
            models.Index(fields=["tenant"], condition=Q(sent_at=None), name="outbound_unsent")
        ]

    def __str__(self) -> str:
        return f"{self.channel} {self.turn_id}"


class IdentityKey(ConfigItem):
    config_class = IdentityKeyConfig

    class Meta:
        proxy = True
        verbose_name = _(IdentityKeyConfig.label)
        verbose_name_plural = _(IdentityKeyConfig.label_plural)
