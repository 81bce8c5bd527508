"""``manage.py config_apply FILES… --tenant SLUG``: one request for the files, submitted; for CI.

Exit codes: 0 done (or nothing differs), 3 not everybody who must has approved (``--publish``,
``--wait``), 1 an error.
"""

import json
from argparse import ArgumentParser
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from apps.releases.authority import setting_up
from apps.releases.change_models import ChangeRequest
from apps.releases.changes.selectors import request_view
from apps.releases.changes.services import (
    ApprovalsMissing,
    WrongState,
    request_publish,
    request_submit,
)
from apps.releases.changes.states import CLOSED, DRAFT, IN_REVIEW, LIVE
from apps.releases.environments.services import release_deploy
from apps.releases.models import Release
from apps.releases.portable.awaiting import decision_awaited, seconds_of
from apps.releases.portable.commands import (
    WAITING,
    FilesCommand,
    actor_check,
    leave,
    portable_of,
    reference_of,
    refusals_told,
    tenant_named,
    terms_given,
)
from apps.releases.portable.native import Portable
from apps.releases.portable.plan import plan_json, plan_text
from apps.releases.portable.proposing import Proposed, request_of_files
from apps.releases.portable.transfer import tenant_import
from apps.releases.services import release_publish
from apps.tenants.scope import tenant_scope, tenant_transaction

PUBLISHER = "command:config_apply"


class Command(FilesCommand):
    help = (
        "Make one change request of the files, or bring the open one of the same --ref to what they "
        "say, and submit it. With --publish it goes live once everybody who must has approved it."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--publish", action="store_true", help="publish the request if it is approved"
        )
        parser.add_argument(
            "--wait",
            type=seconds_of,
            default=0,
            metavar="SECONDS",
            help="wait so long for everybody who must to approve",
        )
        parser.add_argument(
            "--setup",
            action="store_true",
            help="first configuration of a tenant without any release: publish it without approvals",
        )
        parser.add_argument(
            "--deploy",
            action="append",
            default=[],
            choices=settings.RELEASE_ENVIRONMENTS,
            help="with --setup: environments that run it at once",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["deploy"] and not options["setup"]:
            raise CommandError("--deploy goes with --setup; else a release is deployed by people.")
        if options["wait"] and options["setup"]:
            raise CommandError("--setup asks nobody to approve: there is nothing to --wait for.")
        with refusals_told(), tenant_scope(tenant_named(options["tenant"])):
            actor_check(options["actor"])
            portable = portable_of(options["files"])
            if options["setup"]:
                self._set_up(portable, options)
            else:
                self._apply(portable, options)

    def _set_up(self, portable: Portable, options: dict[str, Any]) -> None:
        with tenant_transaction(), setting_up("config_apply --setup"):
            if Release.objects.exists():
                raise CommandError(
                    "--setup is for a tenant without a release; this one has some: "
                    "leave it out, and the files become a change request."
                )
            actor = options["actor"]
            tenant_import(portable=portable, actor=actor, replace=options["replace"])
            release = release_publish(actor=actor, note=options["title"] or "")
            for environment in options["deploy"]:
                release_deploy(release=release, environment=environment, actor=actor)
        self._say(
            {"release": release.number, "sha256": release.sha256, "deployed": options["deploy"]},
            f"published release #{release.number} {release.sha256}",
            options,
        )

    def _apply(self, portable: Portable, options: dict[str, Any]) -> None:
        with tenant_transaction():
            proposed = request_of_files(
                portable=portable,
                actor=options["actor"],
                reference=reference_of(options),
                terms=terms_given(options),
                unless_said=_named(options["files"], options["ref"]),
                replace=options["replace"],
            )
            request = proposed.request
            if request is not None and request.status == DRAFT:
                request = request_submit(request=request, actor=options["actor"])
        if request is None:
            self._say(plan_json(proposed), plan_text(proposed), options)
            return
        if options["wait"]:
            proposed = self._awaited(proposed, request, options["wait"])
        if options["publish"]:
            self._publish(proposed, options)
            return
        self._say(
            {**plan_json(proposed), "request": _shown(request)},
            f"{plan_text(proposed)}\nrequest #{request.number} is {request.status}",
            options,
        )
        if options["wait"] and request.status == IN_REVIEW:
            leave(WAITING)

    def _awaited(self, proposed: Proposed, request: ChangeRequest, seconds: int) -> Proposed:
        """Wait for the decision and return what it left. Raises ``CommandError`` when it is one that
        ends the request."""
        if request.status == IN_REVIEW:
            self.stderr.write(f"request #{request.number} waits for approval, at most {seconds} s")
        decision_awaited(request, seconds=seconds)
        if request.status in (DRAFT, *CLOSED):
            raise CommandError(
                f"Request #{request.number} is {request.status}: it was not approved; its page says why."
            )
        with tenant_transaction():
            return replace(proposed, request=request, view=request_view(request))

    def _publish(self, proposed: Proposed, options: dict[str, Any]) -> None:
        request = proposed.request
        assert request is not None
        if request.status in LIVE:  # By somebody else, meanwhile.
            with tenant_transaction():
                live = Release.objects.defer("manifest").get(pk=request.release_id)
            self._say_published(request, live, options)
            return
        try:
            # Not by the author, whose role may not cover it: by whoever runs the command.
            release = request_publish(request=request, actor=PUBLISHER)
        except (ApprovalsMissing, WrongState):
            with tenant_transaction():
                request.refresh_from_db()
                view = request_view(request)
            waiting = {"duties": list(view.missing), "people": view.more}
            self._say(
                {**plan_json(proposed), "request": _shown(request), "waiting_for": waiting},
                f"request #{request.number} is {request.status}; still to approve: "
                f"{view.more} people; duties: {', '.join(view.missing) or 'any'}",
                options,
            )
            leave(WAITING)
        self._say_published(request, release, options)

    def _say_published(
        self, request: ChangeRequest, release: Release, options: dict[str, Any]
    ) -> None:
        self._say(
            {"request": {"number": request.number}, "release": release.number,
             "sha256": release.sha256},
            f"published release #{release.number} {release.sha256}",
            options,
        )  # fmt: skip

    def _say(self, document: dict[str, Any], text: str, options: dict[str, Any]) -> None:
        shown = json.dumps(document, ensure_ascii=False, indent=2) if options["json"] else text
        self.stdout.write(shown)


def _named(files: list[Path], reference: str) -> dict[str, Any]:
    """Return a title and a reason, as submitting asks for them."""
    names = ", ".join(path.name for path in files)
    return {
        "title": (reference or names)[:200],
        "reason": f"Configuration files: {names}"[:2000],
    }


def _shown(request: Any) -> dict[str, Any]:
    return {"number": request.number, "status": request.status, "sha256": request.manifest_sha256}
