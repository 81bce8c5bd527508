"""Who is told of a change, in the product: the right people once, nobody of another tenant."""

import json

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.governance.approval_models import Notification
from apps.governance.audiences import AUDIENCE
from apps.governance.notices import TITLES, change_noticed, notices_read, unread_count
from apps.releases.change_models import Approval, ChangeComment, ChangeRequest
from apps.releases.changes.events import EVENTS, ChangeEvent
from apps.tenants.models import Role, User
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import membership_grant

LIST = "admin:governance_notification_changelist"
ONE = "admin:governance_notification_change"


@pytest.fixture
def people(in_acme):
    """Olga edits, Ana approves, Otto operates, Rita is asked to look; Alice is there already."""
    roles = {
        "olga": Role.BUSINESS_OWNER,
        "ana": Role.APPROVER,
        "otto": Role.OPERATOR,
        "rita": Role.BUSINESS_OWNER,
    }
    for name, role in roles.items():
        membership_grant(user=User.objects.create_user(name), role=role, actor="world")
    return in_acme


def request_make(**more) -> ChangeRequest:
    fields = {
        "title": "Warmer greeting",
        "author": "user:olga",
        "editors": json.dumps(["user:olga"]),
        "reviewers": json.dumps(["user:rita"]),
        **more,
    }
    number = ChangeRequest.objects.count() + 1
    request: ChangeRequest = ChangeRequest.objects.create(number=number, **fields)
    return request


def told(event: str, *, actor: str = "user:olga", request=None, **more) -> set[str]:
    """Tell of ``event``; return who has a new notification."""
    before = set(Notification.objects.values_list("pk", flat=True))
    change_noticed(ChangeEvent(event=event, actor=actor, subject="x", request=request, **more))
    new = Notification.objects.exclude(pk__in=before)
    return set(new.values_list("user__username", flat=True))


def test_table__has_a_line_and_a_title_for_every_event():
    assert set(AUDIENCE) == set(EVENTS)
    assert set(EVENTS) <= set(TITLES)


def test_submitted__with_a_missing_duty__tells_who_holds_it_and_the_named_reviewers(people):
    request = request_make()
    assert told("change.submitted", request=request, detail={"missing": ["domain"]}) == {
        "ana",
        "rita",
    }
    notice = Notification.objects.filter(user__username="ana").get()
    assert notice.subject == f"#{request.number} Warmer greeting"


def test_submitted__without_a_word_of_what_is_missing__tells_every_approver(people):
    assert told("change.submitted", request=request_make()) == {"ana", "otto", "alice", "rita"}


@pytest.mark.parametrize(
    "event",
    [
        "change.approved", "change.decided", "change.changes_requested", "change.rejected",
        "change.stale", "change.scheduled", "change.schedule_failed", "change.published",
        "change.deployed",
    ],
)  # fmt: skip
def test_outcome__of_a_request__tells_author_and_editors(people, event):
    request = request_make(editors=json.dumps(["user:olga", "user:otto"]))
    assert told(event, actor="user:ana", request=request) == {"olga", "otto"}


def test_whoever_did_it__is_never_told(people):
    assert told("change.published", actor="user:olga", request=request_make()) == set()


def test_comment__tells_author_and_whoever_took_part(people):
    request = request_make()
    ChangeComment.objects.create(request=request, author="user:otto", text="Why?")
    Approval.objects.create(
        request=request, person="user:ana", decision="approve", manifest_sha256="", terms=""
    )
    assert told("change.commented", actor="user:rita", request=request) == {"olga", "otto", "ana"}


def test_voided__tells_whoever_had_approved(people):
    request = request_make()
    Approval.objects.create(
        request=request, person="user:ana", decision="approve", manifest_sha256="", terms=""
    )
    assert told("change.voided", actor="user:olga", request=request) == {"ana"}


def test_broken_glass__tells_every_approver_and_admin(people):
    request = request_make()
    assert told("change.broken_glass", actor="user:otto", request=request) == {
        "alice",
        "ana",
        "olga",
    }


def test_binding__proposed_and_decided__tells_who_may_decide_and_who_asked(people):
    asked = told("binding.proposed", actor="user:otto", environment="production")
    assert asked == {"alice", "ana"}
    detail = {"proposed_by": "user:otto"}
    assert told("binding.decided", actor="user:ana", detail=detail) == {"otto"}


def test_key_or_command__as_author__is_nobody_to_tell(people):
    request = request_make(author="key:ab12cd34", editors='["command:config_apply"]')
    assert told("change.published", actor="user:ana", request=request) == set()


def test_person__who_left_or_belongs_to_another_tenant__is_not_told(people):
    User.objects.filter(username="rita").update(is_active=False)
    request = request_make(reviewers=json.dumps(["user:rita", "user:charlie"]))
    assert told("change.submitted", request=request, detail={"missing": ["domain"]}) == {"ana"}


def test_same_thing__while_it_is_unread__is_said_once(people):
    request = request_make()
    assert told("change.commented", actor="user:rita", request=request) == {"olga"}
    assert told("change.commented", actor="user:rita", request=request) == set()
    notices_read(user=User.objects.get(username="olga"))
    assert told("change.commented", actor="user:rita", request=request) == {"olga"}


def test_telling__more_people__costs_no_more_queries(people):
    request = request_make()

    def cost() -> int:
        Notification.objects.all().delete()
        with CaptureQueriesContext(
            connection,
        ) as queries:
            told("change.submitted", request=request)
        return len(queries)

    few = cost()
    for number in range(20):
        user = User.objects.create_user(f"approver{number}")
        membership_grant(user=user, role=Role.APPROVER, actor="world")
    assert cost() == few


# -- pages ---------------------------------------------------------------------------------------


def notice_make(world, user: User, subject: str = "#1 Warmer greeting", link: str = "") -> int:
    with tenant_transaction(world.acme):
        return int(
            Notification.objects.create(
                user=user, event="change.submitted", subject=subject, link=link
            ).pk
        )


def test_page__shows_ones_own_and_marks_them_as_read(world, as_alice, as_bob):
    mine = notice_make(world, world.alice, link="/admin/")
    notice_make(world, world.bob, "#2 For Bob")
    page = as_alice.get(reverse(LIST)).content.decode()
    assert "#1 Warmer greeting" in page
    assert "#2 For Bob" not in page
    opened = as_alice.get(reverse(ONE, args=[mine]))
    assert (opened.status_code, opened.headers["location"]) == (302, "/admin/")
    with tenant_transaction(world.acme):
        assert (unread_count(world.alice), unread_count(world.bob)) == (0, 1)
    assert as_bob.post(reverse(LIST)).status_code == 302
    with tenant_transaction(world.acme):
        assert unread_count(world.bob) == 0


def test_notification__of_somebody_else_or_another_tenant__is_absent(
    world, as_alice, as_bob, as_charlie
):
    mine = notice_make(world, world.alice)
    assert as_bob.get(reverse(ONE, args=[mine])).status_code == 404
    assert as_charlie.get(reverse(ONE, args=[mine])).status_code == 404
    assert "Warmer" not in as_charlie.get(reverse(LIST)).content.decode()
    with tenant_transaction(world.acme):
        assert unread_count(world.alice) == 1
    assert as_alice.get(reverse(ONE, args=[mine])).status_code == 200


def test_page__with_more_notifications__costs_no_more_queries(world, as_alice):
    notice_make(world, world.alice)

    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            assert as_alice.get(reverse(LIST)).status_code == 200
        return len(queries)

    cost()
    few = cost()
    for number in range(30):
        notice_make(world, world.alice, f"#{number} more")
    assert cost() == few
