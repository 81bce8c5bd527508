"""``manage.py config_plan FILES… --tenant SLUG``: what the files would change, for CI.

Exit codes: 0 nothing differs, 2 something does, 1 an error.
"""

import json
from argparse import ArgumentParser
from typing import Any

from apps.releases.portable.commands import (
    CHANGES,
    FilesCommand,
    actor_check,
    leave,
    portable_of,
    reference_of,
    refusals_told,
    tenant_named,
    terms_given,
)
from apps.releases.portable.plan import plan_json, plan_text
from apps.releases.portable.proposing import request_of_files
from apps.tenants.scope import tenant_scope


class Command(FilesCommand):
    help = (
        "Say what the files would change in a tenant, item by item and field by field, how risky it "
        "is, who must approve it and what the gates find. Nothing is written without --request."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--request", action="store_true", help="write the plan as a draft request"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        with refusals_told(), tenant_scope(tenant_named(options["tenant"])):
            actor_check(options["actor"])
            proposed = request_of_files(
                portable=portable_of(options["files"]),
                actor=options["actor"],
                reference=reference_of(options),
                terms=terms_given(options),
                replace=options["replace"],
                dry_run=not options["request"],
            )
        if options["json"]:
            plan = {"written": options["request"], **plan_json(proposed)}
            self.stdout.write(json.dumps(plan, ensure_ascii=False, indent=2))
        else:
            self.stdout.write(plan_text(proposed))
            if options["request"] and proposed.request:
                self.stdout.write(f"written as request #{proposed.request.number}")
        if not proposed.is_empty:
            leave(CHANGES)
