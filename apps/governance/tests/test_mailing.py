"""E-mails about changes: each once, retried within bounds, and nothing of the configuration in them."""

from datetime import timedelta

import pytest
from django.core import mail
from django.utils import timezone, translation

from apps.governance import mailing
from apps.governance.approval_models import Notification
from apps.governance.mailing import ATTEMPTS, CLAIM, mail_send
from apps.tenants.chores import chores_run
from apps.tenants.scope import tenant_transaction


@pytest.fixture(autouse=True)
def _settings(settings):
    settings.MAIL_ENABLED = True


def notice_make(user, **more) -> Notification:
    fields = {"event": "change.submitted", "subject": "#1 Warmer greeting", "link": "/admin/x/"}
    notice: Notification = Notification.objects.create(user=user, **{**fields, **more})
    return notice


def later(**delta):
    return timezone.now() + timedelta(**delta)


def test_mail__of_a_notification__says_what_happened_and_where(in_acme, settings):
    settings.PUBLIC_URL = "https://agents.example.com"
    notice = notice_make(in_acme.alice)
    mail_send(timezone.now())
    letter = mail.outbox[0]
    assert letter.to == ["alice@example.com"]
    assert letter.subject == "[Acme] Waits for your review: #1 Warmer greeting"
    assert "Hello alice," in letter.body
    assert "https://agents.example.com/admin/x/" in letter.body
    assert letter.extra_headers["Message-ID"].startswith("<notification-")
    notice.refresh_from_db()
    assert notice.mailed_at is not None


def test_mail__run_again__is_not_sent_again(in_acme):
    notice_make(in_acme.alice)
    for _ in range(3):
        mail_send(later(hours=1))
    assert len(mail.outbox) == 1


def test_mail__of_a_portuguese_installation__is_in_portuguese(in_acme, settings, monkeypatch):
    settings.MAIL_LANGUAGE = "pt-br"
    spoken = []
    real = translation.override

    def override(code):
        spoken.append(code)
        return real(code)

    monkeypatch.setattr(translation, "override", override)
    notice_make(in_acme.alice)
    mail_send(timezone.now())
    assert spoken == ["pt-br"]


@pytest.mark.parametrize("why", ["read", "old", "no address", "switched off"])
def test_mail__nobody_needs__is_not_sent(in_acme, settings, why):
    notice = notice_make(in_acme.alice)
    if why == "read":
        Notification.objects.update(read_at=timezone.now())
    if why == "no address":
        in_acme.alice.email = ""
        in_acme.alice.save()
    settings.MAIL_ENABLED = why != "switched off"
    mail_send(later(days=3) if why == "old" else timezone.now())
    assert mail.outbox == []
    notice.refresh_from_db()
    assert notice.mail_attempts == 0


def test_mail__that_is_refused__is_tried_five_times_with_pauses(in_acme, monkeypatch, caplog):
    tried = []

    def refuse(letter):
        tried.append(letter)
        raise ConnectionRefusedError("alice@example.com")

    monkeypatch.setattr("django.core.mail.EmailMessage.send", refuse)
    notice = notice_make(in_acme.alice)
    start = timezone.now()
    mail_send(start)
    mail_send(start + timedelta(seconds=59))
    assert len(tried) == 1
    for hours in range(1, 20):
        mail_send(start + timedelta(hours=hours * 2.5))
    assert len(tried) == ATTEMPTS
    notice.refresh_from_db()
    assert (notice.mailed_at, notice.mail_attempts) == (None, ATTEMPTS)
    assert "alice@example.com" not in caplog.text


def test_mail__whose_worker_died__is_sent_when_its_claim_runs_out(in_acme, monkeypatch):
    def die(letter):
        raise KeyboardInterrupt

    notice_make(in_acme.alice)
    start = timezone.now()
    with monkeypatch.context() as patched:
        patched.setattr("django.core.mail.EmailMessage.send", die)
        with pytest.raises(KeyboardInterrupt):
            mail_send(start)
    mail_send(start + CLAIM - timedelta(seconds=1))
    assert mail.outbox == []
    mail_send(start + CLAIM)
    assert len(mail.outbox) == 1


def test_mail__claimed_by_another_process_meanwhile__is_left_to_it(in_acme, monkeypatch):
    notice_make(in_acme.alice)
    now = timezone.now()
    stale = mailing._due(now)
    mail_send(now)
    monkeypatch.setattr(mailing, "_due", lambda _now: stale)
    mail_send(now)
    assert len(mail.outbox) == 1


def test_subject__with_a_line_break__makes_no_header_of_its_own(in_acme):
    notice_make(in_acme.alice, subject="#1 Hello\nBcc: somebody@example.com")
    mail_send(timezone.now())
    letter = mail.outbox[0]
    assert "\n" not in letter.subject
    assert letter.bcc == []


def test_mail__of_two_tenants__goes_to_each_ones_people(world, settings):
    settings.TENANT_CHORES = ["apps.governance.mailing.mail_send"]
    for tenant, person in ((world.acme, world.alice), (world.other, world.charlie)):
        with tenant_transaction(tenant):
            notice_make(person, subject=f"#1 of {tenant.slug}")
    chores_run()
    assert {(letter.to[0], letter.subject.split(" of ")[1]) for letter in mail.outbox} == {
        ("alice@example.com", "acme"),
        ("charlie@example.com", "other"),
    }
