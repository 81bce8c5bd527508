"""Whatever is saved, archived, published, deployed and taken back, in any order."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apps.agents.config import AgentConfig, PromptConfig
from apps.releases import selectors
from apps.releases.environments.services import release_deploy
from apps.releases.models import ConfigItem, Deployment, Release
from apps.releases.services import (
    DanglingReferences,
    GateRefused,
    ItemInUse,
    item_archive,
    item_save,
    release_publish,
)
from apps.releases.tests.conftest import ALICE
from apps.runtime.canonical import sha256_text
from apps.runtime.config import KindConfig
from apps.runtime.release import manifest_text, release_parse
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction

SLUGS = st.sampled_from(["a", "b", "c"])
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\x00{%#"), max_size=12)
STEPS = st.one_of(
    st.tuples(st.just("prompt"), SLUGS, TEXTS),
    st.tuples(st.just("agent"), SLUGS, SLUGS),
    st.tuples(st.just("archive"), st.sampled_from(["prompt", "agent"]), SLUGS),
    st.tuples(st.just("publish")),
    st.tuples(st.just("deploy"), st.integers(0, 5)),
)


class World:
    """What a release must be, kept in plain Python beside the database."""

    def __init__(self) -> None:
        self.heads: dict[tuple[str, str], KindConfig] = {}
        self.releases: list[Release] = []
        self.deployed: Release | None = None

    def expected_manifest(self) -> str:
        return manifest_text({k: c.model_dump(mode="json") for k, c in self.heads.items()})

    def dangling(self) -> set[str]:
        """Return the agents' prompts that are not there. Their policies are called ``a`` too."""
        return {
            f"prompt:{config.prompt}"
            for config in self.heads.values()
            if isinstance(config, AgentConfig) and ("prompt", config.prompt) not in self.heads
        }

    def save(self, slug: str, config: KindConfig) -> None:
        item_save(kind=config.kind, slug=slug, content=config, actor=ALICE)
        self.heads[(config.kind, slug)] = config

    def prompt(self, slug: str, system: str) -> None:
        self.save(slug, PromptConfig(system=system))

    def agent(self, slug: str, prompt: str) -> None:
        no_policies: dict[str, Any] = dict.fromkeys(
            ["model_profile", "memory", "rails", "judges"], ""
        )
        self.save(slug, AgentConfig(prompt=prompt, **no_policies))

    def archive(self, kind: str, slug: str) -> None:
        item = ConfigItem.objects.filter(kind=kind, slug=slug).first()
        if item is None:
            return
        used = kind == "prompt" and any(
            isinstance(config, AgentConfig) and config.prompt == slug
            for config in self.heads.values()
        )
        if used and (kind, slug) in self.heads:
            with pytest.raises(ItemInUse):
                item_archive(item=item, actor=ALICE)
            return
        item_archive(item=item, actor=ALICE)
        self.heads.pop((kind, slug), None)

    def publish(self) -> None:
        if not self.heads:
            with pytest.raises(GateRefused):
                release_publish(actor=ALICE)
        elif self.dangling():
            with pytest.raises(DanglingReferences) as refused:
                release_publish(actor=ALICE)
            assert {problem.missing for problem in refused.value.references} == self.dangling()
        else:
            release = release_publish(actor=ALICE)
            assert release.sha256 == sha256_text(self.expected_manifest())
            if release not in self.releases:
                self.releases.append(release)

    def deploy(self, place: int) -> None:
        if self.releases:
            self.deployed = self.releases[place % len(self.releases)]
            release_deploy(release=self.deployed, environment="production", actor=ALICE)

    def check(self) -> None:
        stored = list(Release.objects.order_by("number"))
        assert [(r.pk, r.sha256) for r in stored] == [(r.pk, r.sha256) for r in self.releases]
        assert len({release.sha256 for release in stored}) == len(stored)
        deployment = Deployment.objects.select_related("release").first()
        assert (deployment.release if deployment else None) == self.deployed
        if deployment:
            parsed = release_parse(manifest=deployment.release.manifest)
            assert parsed.sha256 == deployment.release.sha256


@pytest.mark.django_db
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps=st.lists(STEPS, min_size=3, max_size=16))
def test_release__any_sequence_of_changes__depends_on_the_heads_only(
    steps: list[tuple[Any, ...]],
) -> None:
    with transaction.atomic():
        selectors.caches_clear()
        world = World()
        with tenant_transaction(Tenant.objects.create(slug="acme-releases", name="Acme")):
            for verb, *arguments in steps:
                step: Callable[..., None] = getattr(world, verb)
                step(*arguments)
                world.check()
        transaction.set_rollback(True)
