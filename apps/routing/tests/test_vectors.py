"""Vectors of examples: made once, in the background, resumed, shown, and read once per release."""

from datetime import timedelta
from types import SimpleNamespace

import numpy as np
import pytest
from asgiref.sync import async_to_sync
from django.urls import reverse
from django.utils import timezone

from agentops import embeddings
from apps.agents.config import ModelProfileConfig
from apps.releases.environments.services import release_deploy
from apps.releases.selectors import release_load
from apps.releases.services import item_save, release_publish
from apps.routing import vector_chores
from apps.routing.embedding import source
from apps.routing.embedding.offloading import Busy
from apps.routing.embedding.remote import EmbeddingFailed
from apps.routing.embedding.source import DatabaseMeanings
from apps.routing.meaning import Compared, Silent
from apps.routing.vector_chores import BATCH, vectors_due
from apps.routing.vector_models import ExampleVector, VectorWork
from apps.routing.vector_selectors import digest_of, examples_of, vectors_of, work_shown
from apps.routing.vector_services import KEPT, work_claim, work_note
from apps.runtime.release import Release
from apps.tenants.chores import chores_run
from apps.tenants.scope import tenant_transaction

SENTENCES = [f"onde está o pedido {number}" for number in range(BATCH + 8)]


class Counting:
    """An ``EmbeddingPort`` that counts what it is asked and can be made to fail."""

    name, available = "counting", True

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.failure: Exception | None = None
        self.batches = 0

    async def embed(self, texts):
        self.batches += 1
        if self.failure is not None and self.batches > 1:
            raise self.failure
        self.asked += texts
        return [[float(len(text)), float(text.count("o")), 1.0] for text in texts]


@pytest.fixture
def port(monkeypatch) -> Counting:
    counting = Counting()
    for module in (vector_chores, source):
        monkeypatch.setattr(module, "embeddings_of", lambda release, bindings: counting)
    return counting


def compare(meanings, turn, examples):
    return async_to_sync(meanings.compare)(turn, examples)


def deploy(world, *, examples=SENTENCES, strategies=("keyword", "example", "semantic")):
    """Publish and deploy an agent with one intent."""
    items: dict[str, dict] = {
        "model_profile": {"provider": "scripted"},
        "memory_policy": {},
        "rail_policy": {},
        "judge_policy": {},
        "prompt": {"system": "p"},
        "agent": {"prompt": "default"},
        "intent": {"agent": "default", "examples": list(examples)},
        "routing_policy": {"default_agent": "default", "strategies": list(strategies)},
    }
    for kind, content in items.items():
        item_save(kind=kind, slug="default", content=content, actor="test")
    release = release_publish(actor="test", note="")
    release_deploy(release=release, environment="production", actor="test")
    return release


def run() -> None:
    vectors_due(timezone.now())


def turn_of(world, release, text="onde está o pedido 3"):
    parsed = release_load(world.acme.pk, release.pk)
    return SimpleNamespace(tenant=str(world.acme.pk), release=parsed, bindings={}, text=text)


def test_vectors__of_a_deployed_release__are_made_once(in_acme, port):
    deploy(in_acme)
    run()
    assert sorted(port.asked) == sorted(SENTENCES)
    assert ExampleVector.objects.count() == len(SENTENCES)
    work = VectorWork.objects.get()
    assert (work.done, work.total, work.claimed_until) == (len(SENTENCES), len(SENTENCES), None)
    run()
    assert len(port.asked) == len(SENTENCES)


def test_vectors__of_a_policy_without_semantic__are_not_made(in_acme, port):
    deploy(in_acme, strategies=("keyword", "example"))
    run()
    assert (port.asked, VectorWork.objects.count()) == ([], 0)


def test_vectors__of_a_new_release__only_what_is_new_is_made(in_acme, port):
    deploy(in_acme)
    run()
    port.asked.clear()
    deploy(in_acme, examples=[*SENTENCES, "a new one"])
    run()
    assert port.asked == ["a new one"]


@pytest.mark.parametrize("failure", [EmbeddingFailed("refused"), Busy("full")])
def test_vectors__a_run_that_breaks_off__is_shown_and_resumed(in_acme, port, failure):
    deploy(in_acme)
    port.failure = failure
    run()
    [work] = work_shown()
    assert (work.done, work.total, work.error) == (BATCH, len(SENTENCES), str(failure))
    port.failure = None
    run()
    [work] = work_shown()
    assert (work.done, work.error) == (len(SENTENCES), "")
    assert sorted(port.asked) == sorted(SENTENCES)


def test_vectors__no_time_left__goes_on_in_the_next_run(in_acme, port, monkeypatch):
    deploy(in_acme)
    clock = iter([0.0, 1.0, 2.0, 1000.0])
    monkeypatch.setattr(vector_chores, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    run()
    assert VectorWork.objects.get().done == BATCH
    assert VectorWork.objects.get().claimed_until is None


def test_vectors__claimed_by_another_process__are_left_alone(in_acme, port):
    deploy(in_acme)
    assert work_claim(model=port.name, now=timezone.now()) is not None
    assert work_claim(model=port.name, now=timezone.now()) is None
    run()
    assert port.asked == []
    # A process that died lets its claim run out.
    vectors_due(timezone.now() + timedelta(minutes=5))
    assert len(port.asked) == len(SENTENCES)


def test_claim__taken_over_meanwhile__the_slow_one_writes_nothing(in_acme, port):
    now = timezone.now()
    slow = work_claim(model=port.name, now=now)
    quick = work_claim(model=port.name, now=now + timedelta(minutes=5))
    assert slow is not None
    assert quick is not None
    assert not work_note(work=slow, releases="slow", done=1, total=2)
    assert work_note(work=quick, releases="quick", done=2, total=2, over=True)
    assert VectorWork.objects.get().releases == "quick"


def test_vectors__of_another_tenant__are_not_seen(world, port):
    with tenant_transaction(world.acme):
        deploy(world)
    with tenant_transaction(world.other):
        deploy(world, examples=["um só"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "django.conf.settings.TENANT_CHORES", ["apps.routing.vector_chores.vectors_due"]
        )
        chores_run()
    with tenant_transaction(world.other):
        assert [row.digest for row in ExampleVector.objects.all()] == [digest_of("um só")]
        assert vectors_of(port.name, {"default": SENTENCES}) is None


def test_vectors__that_nothing_needs__are_forgotten_after_a_while(in_acme, port):
    deploy(in_acme)
    run()
    ExampleVector.objects.update(created_at=timezone.now() - KEPT - timedelta(days=1))
    deploy(in_acme, examples=SENTENCES[:5])
    run()
    assert ExampleVector.objects.count() == 5


def test_vectors__are_read_in_the_order_of_the_examples(in_acme, port):
    release = deploy(in_acme)
    run()
    examples = examples_of(release_load(in_acme.acme.pk, release.pk))
    matrix = vectors_of(port.name, examples)
    assert matrix is not None
    assert matrix.dtype == np.float32
    assert matrix[:, 0].tolist() == [float(len(text)) for text in SENTENCES]


def test_compare__until_every_vector_is_there__is_preparing(in_acme, port):
    release = deploy(in_acme)
    turn = turn_of(in_acme, release)
    examples = examples_of(turn.release)
    found = compare(DatabaseMeanings(), turn, examples)
    assert found == Silent("preparing")
    assert port.asked == []


def test_compare__a_warm_turn__asks_the_database_nothing(in_acme, port, django_assert_num_queries):
    release = deploy(in_acme)
    vectors_due_in_thread(port, release, in_acme)
    turn = turn_of(in_acme, release)
    examples = examples_of(turn.release)
    meanings = DatabaseMeanings()
    first = compare(meanings, turn, examples)
    assert isinstance(first, Compared)
    assert first.model == "counting"
    with django_assert_num_queries(0):
        second = compare(meanings, turn, examples)
    assert isinstance(second, Compared)
    assert second.meanings is first.meanings
    assert float(np.linalg.norm(second.vector)) == pytest.approx(1.0)


def vectors_due_in_thread(port, release, world):
    """Fill the table as the chore does, without its loop inside ours."""
    from apps.routing.vector_services import vectors_add

    vectors_add(
        model=port.name,
        vectors={digest_of(text): [float(len(text)), 1.0, 1.0] for text in SENTENCES},
    )


@pytest.mark.parametrize(
    ("failure", "reason"), [(Busy("full"), "busy"), (EmbeddingFailed("refused"), "failed")]
)
def test_compare__a_model_that_fails__is_silent(in_acme, port, failure, reason):
    release = deploy(in_acme)
    vectors_due_in_thread(port, release, in_acme)
    turn = turn_of(in_acme, release)
    port.failure, port.batches = failure, 1
    assert compare(DatabaseMeanings(), turn, examples_of(turn.release)) == Silent(reason)


def test_compare__vectors_of_another_length__are_no_answer(in_acme, port, monkeypatch):
    release = deploy(in_acme)
    vectors_due_in_thread(port, release, in_acme)

    async def short(texts):
        return [[1.0] for _ in texts]

    monkeypatch.setattr(port, "embed", short)
    turn = turn_of(in_acme, release)
    assert compare(DatabaseMeanings(), turn, examples_of(turn.release)) == Silent("failed")


def test_compare__nothing_installed__is_unavailable(in_acme, monkeypatch):
    release = deploy(in_acme)
    monkeypatch.setattr(source, "embeddings_of", lambda release, bindings: None)
    turn = turn_of(in_acme, release)
    assert compare(DatabaseMeanings(), turn, examples_of(turn.release)) == Silent("unavailable")


def test_page__of_the_policies__says_how_far_the_vectors_are(world, port, as_alice):
    with tenant_transaction(world.acme):
        deploy(world)
        port.failure = EmbeddingFailed("the embedding server refused with HTTP 500")
        run()
    page = as_alice.get(reverse("admin:routing_routingpolicy_changelist")).content.decode()
    assert f"Vectors of examples: {BATCH} of {len(SENTENCES)} (counting)" in page
    assert "HTTP 500" in page


def test_page__no_model_is_installed__says_that_the_strategy_is_silent(
    world, port, as_alice, monkeypatch
):
    monkeypatch.setattr(vector_chores, "embeddings_of", lambda release, bindings: None)
    with tenant_transaction(world.acme):
        deploy(world)
        run()
    page = as_alice.get(reverse("admin:routing_routingpolicy_changelist")).content.decode()
    assert "no embedding model is installed or reachable here" in page


def test_target__of_a_model_profile__is_its_bound_address_and_key(in_acme, monkeypatch):
    profile = {
        "provider": "openai_compatible",
        "model": "e5",
        "base_url": "vectors",
        "credential": "vectors",
    }
    items = {("model_profile", "embed"): ModelProfileConfig(**profile)}
    release = Release(sha256="x", items=items)
    bound = {
        "address:vectors": "https://models.example/v1",
        "credential:vectors": "AGENTOPS_SECRET__ACME__V",
    }
    assert embeddings.target(release, "embed", bound) is None
    monkeypatch.setenv("AGENTOPS_SECRET__ACME__V", "k-1")
    found = embeddings.target(release, "embed", bound)
    assert found is not None
    assert (found.model, found.base_url, found.key) == ("e5", "https://models.example/v1", "k-1")
    assert embeddings.target(release, "absent", bound) is None
    assert embeddings.target(release, "embed", {}) is None
