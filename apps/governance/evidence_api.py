"""Operations on what a release is judged by: gate levels, results about a manifest, readiness."""

from typing import Any

from django.http import Http404
from rest_framework import serializers

from apps.governance import readiness
from apps.governance.approval_models import Evidence, GateLevel
from apps.governance.evidence import evidence_of, evidence_record
from apps.governance.gate_levels import gate_level_set, gates_shown
from apps.releases.api.inputs import Given, Nothing, Paging
from apps.releases.api.operations import Operation, Page, page_of
from apps.releases.api.shapes import Shape

SHA256 = r"^[0-9a-f]{64}$"


# -- gates -----------------------------------------------------------------------------------------
class GateShape(Shape):
    """``own``: what the tenant set, "" for nothing. A locked gate blocks in every tenant."""

    gate = serializers.CharField(source="info.code")
    title = serializers.CharField(source="info.title")
    description = serializers.CharField(source="info.description")
    locked = serializers.BooleanField(source="info.locked")
    level = serializers.CharField()
    own = serializers.CharField()
    updated_by = serializers.CharField()


class GateList(Operation):
    """The gates a release must pass, and what their findings do in this tenant."""

    tag = "governance"

    class Output(Shape):
        gates = GateShape(many=True)

    def answer(self, **given: Any) -> dict[str, Any]:
        return {"gates": gates_shown()}


class GateLevelSet(Operation):
    """Let a gate block, warn or be off; "" gives it back its own level."""

    scope = "governance:write"
    tag = "governance"
    Output = GateShape

    class Input(Given):
        level = serializers.ChoiceField(GateLevel.Level.choices, allow_blank=True)

    def answer(self, **given: Any) -> Any:
        gate = self.named["gate"]
        if gate not in {found.info.code for found in gates_shown()}:
            raise Http404
        gate_level_set(gate=gate, level=given["level"], actor=self.actor)
        return next(found for found in gates_shown() if found.info.code == gate)


# -- evidence --------------------------------------------------------------------------------------
class EvidenceShape(Shape):
    manifest_sha256 = serializers.CharField()
    what = serializers.CharField()
    passed = serializers.BooleanField()
    result_sha256 = serializers.CharField()
    summary = serializers.CharField()
    link = serializers.CharField()
    recorded_by = serializers.CharField()
    recorded_at = serializers.DateTimeField()


class EvidenceList(Operation):
    """What was brought about a manifest, newest first."""

    tag = "governance"
    many = True
    Output = EvidenceShape

    class Query(Paging):
        manifest_sha256 = serializers.RegexField(SHA256)

    def answer(self, **given: Any) -> Page:
        return page_of(evidence_of(given["manifest_sha256"]), given)


class EvidenceRecord(Operation):
    """Record that tests, an evaluation … of a manifest passed or failed.

    `result_sha256` is that of the report, wherever it is kept; `link` says where. A gate may ask for
    it before a request of that manifest is published.
    """

    scope = "evidence:write"
    tag = "governance"
    status = 201
    Output = EvidenceShape

    class Input(Given):
        manifest_sha256 = serializers.RegexField(SHA256)
        what = serializers.ChoiceField(Evidence.What.choices)
        passed = serializers.BooleanField()
        result_sha256 = serializers.RegexField(SHA256)
        summary = serializers.CharField(default="", allow_blank=True, max_length=500)
        link = serializers.CharField(default="", allow_blank=True, max_length=500)

    def answer(self, **given: Any) -> Evidence:
        return evidence_record(actor=self.actor, **given)


# -- readiness -------------------------------------------------------------------------------------
class ReadinessShape(Shape):
    """An agent's checklist: `asked` waits for a second person; `why`: what the product saw itself."""

    class Topic(Shape):
        code = serializers.CharField()
        title = serializers.CharField()
        state = serializers.CharField()
        exemptible = serializers.BooleanField()
        why = serializers.SerializerMethodField()
        note = serializers.CharField(source="row.note", default="")
        link = serializers.CharField(source="row.link", default="")
        reason = serializers.CharField(source="row.reason", default="")
        approved_by = serializers.CharField(source="row.approved_by", default="")
        expires_at = serializers.DateTimeField(source="row.expires_at", default=None)

        def get_why(self, topic: readiness.ShownTopic) -> str:
            return str(topic.fact.why) if topic.fact else ""

    agent = serializers.CharField()
    settled = serializers.IntegerField()
    total = serializers.IntegerField()
    topics = serializers.SerializerMethodField()

    def get_topics(self, found: readiness.Readiness) -> list[dict[str, Any]]:
        shown: list[dict[str, Any]] = list(self.Topic(list(found.topics.values()), many=True).data)
        return shown


class ReadinessGet(Operation):
    """How far an agent is on the readiness checklist."""

    tag = "governance"
    Output = ReadinessShape

    def answer(self, **given: Any) -> readiness.Readiness:
        return readiness.readiness_of(self.named["agent"])


class ReadinessOperation(Operation):
    """Base of what changes one topic: the checklist is shown afterwards."""

    scope = "evidence:write"
    tag = "governance"
    Input = Nothing
    Output = ReadinessShape

    def answer(self, **given: Any) -> readiness.Readiness:
        self.act(agent=self.named["agent"], check=self.named["check"], actor=self.actor, **given)
        return readiness.readiness_of(self.named["agent"])

    def act(self, **given: Any) -> None:
        """Do it."""
        raise NotImplementedError


class ReadinessSet(ReadinessOperation):
    """Answer a topic: done, with a note or a link to the evidence, or open again."""

    class Input(Given):
        state = serializers.ChoiceField(["open", "done"])
        note = serializers.CharField(default="", allow_blank=True, max_length=4000)
        link = serializers.CharField(default="", allow_blank=True, max_length=500)

    def act(self, **given: Any) -> None:
        readiness.readiness_set(**given)


class ExemptionAsk(ReadinessOperation):
    """Ask that an agent may go without a topic until a day; a second person approves it."""

    class Input(Given):
        reason = serializers.CharField(max_length=500)
        expires_at = serializers.DateTimeField()

    def act(self, **given: Any) -> None:
        readiness.exemption_ask(**given)


class ExemptionApprove(ReadinessOperation):
    """Approve what was asked for: a second person who holds a duty."""

    scope = "change:review"

    def act(self, **given: Any) -> None:
        readiness.exemption_approve(**given)
