"""Notifications by e-mail: what happened and where to look, nothing of the configuration itself.

Each is sent once: a run claims the row by compare-and-set, sends outside every transaction, and
notes the result. A process that dies between sending and noting sends it again after ``CLAIM``.
"""

import logging
import time
from datetime import datetime, timedelta
from smtplib import SMTPException

from django.conf import settings
from django.core.mail import EmailMessage, get_connection
from django.db.models import F
from django.utils import translation
from django.utils.translation import gettext as _

from apps.governance.approval_models import Notification
from apps.governance.notices import TITLES
from apps.tenants.models import Tenant
from apps.tenants.scope import current_tenant_id, release_connection, tenant_transaction

logger = logging.getLogger(__name__)
ATTEMPTS = 5
CLAIM = timedelta(minutes=2)
PAUSES = (timedelta(minutes=1), timedelta(minutes=5), timedelta(minutes=30), timedelta(hours=2))
# Older ones are no news any more; a mail server that comes back after days sends no flood.
NEWS = timedelta(days=2)
AT_ONCE = 50
RUN_SECONDS = 30.0


def mail_send(now: datetime) -> None:
    """Send what is due of this tenant. A chore: see ``apps.tenants.chores``."""
    if not settings.MAIL_ENABLED:
        return
    until = time.monotonic() + RUN_SECONDS
    for notice in _due(now):
        if time.monotonic() > until:
            break
        if not _claim(notice, now):
            continue
        try:
            _mail(notice).send()
        except (SMTPException, OSError) as error:
            # Neither address nor text: who gets what is nobody's business who reads logs.
            logger.warning("notification %s not mailed: %s", notice.pk, type(error).__name__)
            _postponed(notice, now)
        else:
            with tenant_transaction():
                Notification.objects.filter(pk=notice.pk).update(mailed_at=now)
        release_connection()


def _due(now: datetime) -> list[Notification]:
    """Return what waits to be mailed. What was read in the product meanwhile is not."""
    with tenant_transaction():
        due = Notification.objects.filter(
            mailed_at=None,
            read_at=None,
            mail_attempts__lt=ATTEMPTS,
            mail_after__lte=now,
            created_at__gt=now - NEWS,
        ).exclude(user__email="")
        return list(due.select_related("user").order_by("created_at", "pk")[:AT_ONCE])


def _claim(notice: Notification, now: datetime) -> bool:
    with tenant_transaction():
        free = Notification.objects.filter(
            pk=notice.pk, mailed_at=None, mail_attempts=notice.mail_attempts
        )
        taken = free.update(mail_attempts=F("mail_attempts") + 1, mail_after=now + CLAIM)
    release_connection()
    notice.mail_attempts += 1
    return bool(taken)


def _postponed(notice: Notification, now: datetime) -> None:
    pause = PAUSES[min(notice.mail_attempts, len(PAUSES)) - 1]
    with tenant_transaction():
        own = Notification.objects.filter(pk=notice.pk, mail_attempts=notice.mail_attempts)
        own.update(mail_after=now + pause)


def _mail(notice: Notification) -> EmailMessage:
    with tenant_transaction():
        tenant = Tenant.objects.get(pk=current_tenant_id())
    with translation.override(settings.MAIL_LANGUAGE):
        title = str(TITLES[notice.event])
        where = f"{settings.PUBLIC_URL}{notice.link}" if settings.PUBLIC_URL else ""
        lines = [
            _("Hello %(name)s,")
            % {"name": notice.user.get_short_name() or notice.user.get_username()},
            f"{title}: {notice.subject}",
            where or _("Look under Notifications in AgentOps."),
            _("Tenant: %(name)s") % {"name": tenant.name},
        ]
    subject = " ".join(f"[{tenant.name}] {title}: {notice.subject}".split())[:200]
    return EmailMessage(
        subject=subject,
        body="\n\n".join(lines) + "\n",
        to=[notice.user.email],
        # The same id at every attempt: a mailbox that got it already can tell.
        headers={"Message-ID": f"<notification-{tenant.pk}-{notice.pk}@agentops>"},
        connection=get_connection(timeout=settings.EMAIL_TIMEOUT)
        if settings.EMAIL_BACKEND.endswith("smtp.EmailBackend")
        else None,
    )
