"""OAuth at tool servers: real authorisation and MCP servers, real rows, two tenants, two people."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from apps.governance.approval_models import Notification
from apps.runtime.addresses import AllowList
from apps.runtime.ports import RemoteTool, ToolUnavailable
from apps.tenants.models import AuditEntry
from apps.tenants.scope import tenant_transaction
from apps.tenants.sealing import seal, unseal
from apps.tools.oauth import services
from apps.tools.oauth.asking import Refused
from apps.tools.oauth.services import NoSuchSignIn, Owner
from apps.tools.oauth.signing_in import sign_in_finish, sign_in_start
from apps.tools.oauth.source import OAuthTokens
from apps.tools.oauth_models import ToolConnection
from apps.tools.tests.oauth_server import oauth_world
from apps.tools.transports.dispatch import Transports

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]

LOCAL = AllowList.of(["127.0.0.1"])
BACK = "https://agentops.example/tools/oauth/callback"


@pytest.fixture
def oauth():
    with oauth_world() as running:
        yield running


@pytest.fixture
def client_tool(world, oauth):
    """acme's tool with client credentials."""
    return RemoteTool(
        server="crm", transport="streamable_http", address=oauth.server.url, name="whoami",
        credential="s3cret", auth="oauth_client", client_id="agentops", timeout_seconds=20,
        tenant=str(world.acme.pk), environment="production",
    )  # fmt: skip


@pytest.fixture
def user_tool(client_tool):
    """The same server where everybody signs in; Alice asks."""
    return replace(client_tool, auth="oauth_user", principal="user:alice")


@pytest.fixture
def call():
    """Return a function that calls a tool over transports (and tokens) of a process of its own."""

    async def call(tool, tokens=None):
        transports = Transports(allowed=LOCAL, tokens=tokens or OAuthTokens(LOCAL))
        try:
            return await transports.call(tool, {}, idempotency_key="")
        finally:
            await transports.aclose()

    return call


async def subject(call, tool, tokens=None):
    result = await call(tool, tokens)
    assert result.ok, result.error
    return result.result["subject"]


async def sign_in(oauth, tool, person):
    """Go through the whole sign-in as ``person``, as a browser does."""
    oauth.authority.person = person
    address = await sign_in_start(tool, redirect_uri=BACK, allowed=LOCAL)
    back = await follow(address)
    returned = await sync_to_async(services.sign_in_return)(
        tenant_id=int(tool.tenant), principal=tool.principal, state=back["state"]
    )
    await sign_in_finish(
        returned, code=back["code"], issuer=back["iss"], address=tool.address,
        actor=tool.principal, allowed=LOCAL,
    )  # fmt: skip
    return back


async def follow(address):
    async with httpx2.AsyncClient(trust_env=False) as browser:
        answer = await browser.get(address)
    assert answer.status_code == 302
    return {k: v[0] for k, v in parse_qs(urlsplit(answer.headers["location"]).query).items()}


def rows_sync(tenant):
    with tenant_transaction(tenant):
        return list(ToolConnection.objects.all())


async def rows(tenant):
    return await sync_to_async(rows_sync)(tenant)


async def change(tenant, **values):
    def write():
        with tenant_transaction(tenant):
            ToolConnection.objects.update(**values)

    await sync_to_async(write)()


async def refused(call, tool, tokens=None):
    with pytest.raises(ToolUnavailable) as failure:
        await call(tool, tokens)
    assert failure.value.sent is False
    return failure.value.code


class TestClientCredentials:
    async def test_token__is_fetched_once_and_kept_for_every_process(
        self, call, oauth, client_tool
    ):
        for _ in range(3):
            assert await subject(call, client_tool) == "client:agentops"
        assert oauth.authority.grants("client_credentials") == 1

    async def test_token__is_asked_for_this_server_alone(self, call, oauth, client_tool):
        await subject(call, client_tool)
        (form,) = oauth.authority.asked
        assert form["resource"] == client_tool.address

    async def test_token__is_in_the_table_as_ciphertext_only(self, world, call, oauth, client_tool):
        await subject(call, client_tool)
        (row,) = await rows(world.acme)
        (access,) = oauth.authority.tokens
        assert row.state == "valid"
        assert row.token
        for value in vars(row).values():
            assert access not in str(value)
            assert "s3cret" not in str(value)

    async def test_token__near_its_end__is_renewed_before_it_is_used(
        self, world, call, oauth, client_tool
    ):
        await subject(call, client_tool)
        (row,) = await rows(world.acme)
        an_hour_ago = (timezone.now() - timedelta(hours=1)).isoformat()
        kept = seal({**unseal(row.token), "fetched_at": an_hour_ago})
        await change(world.acme, token=kept, expires_at=timezone.now() + timedelta(seconds=5))
        assert await subject(call, client_tool) == "client:agentops"
        assert oauth.authority.grants("client_credentials") == 2
        assert oauth.server.verifier.refused == 0, "the old one was shown to nobody"

    async def test_token__revoked_in_mid_session__is_renewed_once(self, call, oauth, client_tool):
        tokens = OAuthTokens(LOCAL)
        transports = Transports(allowed=LOCAL, tokens=tokens)
        try:
            first = await transports.call(client_tool, {}, idempotency_key="")
            oauth.authority.tokens.clear()
            second = await transports.call(client_tool, {}, idempotency_key="")
        finally:
            await transports.aclose()
        assert first.ok
        assert second.ok
        assert oauth.authority.grants("client_credentials") == 2

    async def test_many_calls__at_once_in_two_processes__fetch_one_token(
        self, call, oauth, client_tool
    ):
        oauth.authority.delay = 0.3
        processes = [OAuthTokens(LOCAL), OAuthTokens(LOCAL)]
        said = await asyncio.gather(
            *(tokens.token(client_tool) for tokens in processes for _ in range(8))
        )
        assert len(set(said)) == 1
        assert oauth.authority.grants("client_credentials") == 1

    async def test_wrong_audience__needs_a_sign_in_and_does_not_loop(
        self, world, call, oauth, client_tool
    ):
        oauth.authority.audience = "https://elsewhere.example/mcp"
        codes = [await refused(call, client_tool) for _ in range(5)]
        assert codes == ["needs_sign_in"] * 5
        assert oauth.authority.grants("client_credentials") <= 2
        (row,) = await rows(world.acme)
        assert row.state == "needs_sign_in"
        assert "does not take the token" in row.error

    async def test_wrong_secret__is_told_to_the_admins_once(self, world, call, oauth, client_tool):
        wrong = replace(client_tool, credential="wrong")
        assert [await refused(call, wrong) for _ in range(4)] == ["needs_sign_in"] * 4
        assert oauth.authority.grants("client_credentials") == 1

        def told():
            with tenant_transaction(world.acme):
                people = Notification.objects.filter(event="tool.needs_sign_in")
                noted = AuditEntry.objects.filter(action="tool_connection.needs_sign_in")
                return [str(n.user) for n in people], noted.count()

        assert await sync_to_async(told)() == (["alice"], 1)

    async def test_failure__is_over_when_the_pause_is_and_the_secret_is_right(
        self, world, call, oauth, client_tool
    ):
        await refused(call, replace(client_tool, credential="wrong"))
        await change(world.acme, updated_at=timezone.now() - timedelta(minutes=2))
        assert await subject(call, client_tool) == "client:agentops"

    async def test_authority__that_is_down__is_no_sign_in(self, world, call, oauth, client_tool):
        oauth.authority.down = True
        assert await refused(call, client_tool) == "unreachable"
        oauth.authority.down = False
        assert await subject(call, client_tool) == "client:agentops"

    async def test_address__that_changed__gets_a_token_of_its_own(
        self, world, call, oauth, client_tool
    ):
        await subject(call, client_tool)
        (first,) = oauth.authority.tokens
        with oauth_world() as elsewhere:
            moved = replace(client_tool, address=elsewhere.server.url)
            assert await subject(call, moved) == "client:agentops"
            assert first not in elsewhere.authority.tokens

    async def test_tenants_and_environments__have_tokens_of_their_own(
        self, world, call, oauth, client_tool
    ):
        other = replace(client_tool, tenant=str(world.other.pk))
        staging = replace(client_tool, environment="staging")
        for tool in (client_tool, other, staging):
            await subject(call, tool)
        assert oauth.authority.grants("client_credentials") == 3
        assert [row.environment for row in await rows(world.acme)] == ["production", "staging"]
        assert [row.environment for row in await rows(world.other)] == ["production"]

    async def test_authority__inside_that_nobody_allowed__is_not_asked(self, oauth, client_tool):
        with pytest.raises(ToolUnavailable) as failure:
            await OAuthTokens(AllowList()).token(client_tool)
        assert failure.value.code == "unreachable"
        assert oauth.authority.asked == []

    @pytest.mark.parametrize("change_of", ["issuer", "resource"])
    async def test_metadata__that_names_another__is_not_trusted(
        self, monkeypatch, oauth, client_tool, change_of
    ):
        if change_of == "issuer":
            said = {**oauth.authority.metadata(), "issuer": "https://evil.example"}
            monkeypatch.setattr(oauth.authority, "metadata", lambda: said)
            tool = client_tool
        else:
            # Metadata of /mcp is found for a sibling path, and is not about it.
            tool = replace(client_tool, address=oauth.server.url.replace("/mcp", "/mcpx"))
        with pytest.raises(ToolUnavailable):
            await OAuthTokens(LOCAL).token(tool)
        assert oauth.authority.asked == []


class TestPeople:
    async def test_two_people__are_each_themselves(self, world, call, oauth, user_tool):
        bob = replace(user_tool, principal="user:bob")
        await sign_in(oauth, user_tool, "ana")
        assert await refused(call, bob) == "needs_sign_in", "the first person is not everybody"
        await sign_in(oauth, bob, "bento")
        shared = Transports(allowed=LOCAL, tokens=OAuthTokens(LOCAL))
        try:
            said = [
                (await shared.call(tool, {}, idempotency_key="")).result["subject"]
                for tool in (user_tool, bob, user_tool)
            ]
        finally:
            await shared.aclose()
        assert said == ["ana", "bento", "ana"]

    async def test_person__of_another_tenant_or_nobody__has_no_token(
        self, world, call, oauth, user_tool
    ):
        await sign_in(oauth, user_tool, "ana")
        for other in (
            replace(user_tool, tenant=str(world.other.pk)),
            replace(user_tool, environment="staging"),
            replace(user_tool, principal="key:0a1b2c3d"),
            replace(user_tool, principal=""),
        ):
            assert await refused(call, other) == "needs_sign_in"
        assert await subject(call, user_tool) == "ana"

    async def test_token__expired_in_mid_session__is_renewed_with_the_newest_refresh_token(
        self, world, call, oauth, user_tool
    ):
        await sign_in(oauth, user_tool, "ana")
        for renewed in (1, 2):
            await change(world.acme, expires_at=timezone.now() - timedelta(seconds=1))
            assert await subject(call, user_tool) == "ana"
            assert oauth.authority.grants("refresh_token") == renewed

    async def test_refresh__that_is_refused__asks_for_a_sign_in_and_is_over_after_it(
        self, world, call, oauth, user_tool
    ):
        await sign_in(oauth, user_tool, "ana")
        oauth.authority.refresh.clear()
        oauth.authority.tokens.clear()
        codes = [await refused(call, user_tool) for _ in range(3)]
        assert codes == ["needs_sign_in"] * 3
        assert oauth.authority.grants("refresh_token") == 1
        (row,) = await rows(world.acme)
        assert (row.state, row.token) == ("needs_sign_in", "")
        await sign_in(oauth, user_tool, "ana")
        assert await subject(call, user_tool) == "ana"

    async def test_connection__ended__is_ended_for_every_process(
        self, world, call, oauth, user_tool
    ):
        await sign_in(oauth, user_tool, "ana")
        tokens = OAuthTokens(LOCAL)
        assert await subject(call, user_tool, tokens) == "ana"
        owner = Owner.of(user_tool)
        assert await sync_to_async(services.connection_end)(owner, actor="user:alice") is True
        assert await refused(call, user_tool, tokens) == "needs_sign_in"
        assert await rows(world.acme) == []

    async def test_client__that_is_not_configured__is_registered_once(
        self, world, call, oauth, user_tool
    ):
        unnamed = replace(user_tool, client_id="", credential="")
        await sign_in(oauth, unnamed, "ana")
        await sign_in(oauth, replace(unnamed, principal="user:bob"), "bento")
        assert await subject(call, unnamed) == "ana"
        assert [name for name in oauth.authority.clients if name.startswith("reg")] == [
            "registered-1"
        ]


class TestSigningIn:
    async def begun(self, oauth, tool):
        return await follow(await sign_in_start(tool, redirect_uri=BACK, allowed=LOCAL))

    async def back(self, tool, state, *, principal="user:alice", tenant=None):
        return await sync_to_async(services.sign_in_return)(
            tenant_id=tenant or int(tool.tenant), principal=principal, state=state
        )

    async def test_address__asks_with_a_challenge_for_this_server(self, oauth, user_tool):
        address = await sign_in_start(user_tool, redirect_uri=BACK, allowed=LOCAL)
        asked = {k: v[0] for k, v in parse_qs(urlsplit(address).query).items()}
        assert asked["code_challenge_method"] == "S256"
        assert asked["resource"] == user_tool.address
        assert asked["redirect_uri"] == BACK
        assert len(asked["state"]) > 40

    async def test_state__counts_once(self, world, oauth, user_tool):
        back = await self.begun(oauth, user_tool)
        await self.back(user_tool, back["state"])
        with pytest.raises(NoSuchSignIn):
            await self.back(user_tool, back["state"])

    async def test_state__of_another_person_or_tenant_or_made_up__is_none(
        self, world, oauth, user_tool
    ):
        back = await self.begun(oauth, user_tool)
        for wrong in (
            {"principal": "user:bob"},
            {"tenant": world.other.pk},
            {"state": "1.made-up"},
        ):
            with pytest.raises(NoSuchSignIn):
                await self.back(user_tool, **{"state": back["state"], **wrong})
        await self.back(user_tool, back["state"])

    async def test_state__too_old__is_none(self, world, oauth, user_tool, monkeypatch):
        back = await self.begun(oauth, user_tool)
        later = timezone.now() + timedelta(minutes=16)
        monkeypatch.setattr("apps.tools.oauth.services.timezone.now", lambda: later)
        with pytest.raises(NoSuchSignIn):
            await self.back(user_tool, back["state"])

    @pytest.mark.parametrize("issuer", ["https://evil.example", ""])
    async def test_answer__of_another_issuer_or_of_none__is_refused(
        self, world, oauth, user_tool, issuer
    ):
        back = await self.begun(oauth, user_tool)
        returned = await self.back(user_tool, back["state"])
        with pytest.raises(Refused, match="issuer_mismatch"):
            await sign_in_finish(
                returned, code=back["code"], issuer=issuer, address=user_tool.address,
                actor="user:alice", allowed=LOCAL,
            )  # fmt: skip
        assert oauth.authority.asked == [], "the code is shown to nobody"
        assert await rows(world.acme) == []

    async def test_address__changed_on_the_way__its_token_is_not_kept_for_the_new_one(
        self, world, oauth, user_tool
    ):
        back = await self.begun(oauth, user_tool)
        returned = await self.back(user_tool, back["state"])
        with pytest.raises(Refused, match="resource_mismatch"):
            await sign_in_finish(
                returned, code=back["code"], issuer=back["iss"],
                address="https://elsewhere.example/mcp", actor="user:alice", allowed=LOCAL,
            )  # fmt: skip
        assert oauth.authority.asked == [], "the code is shown to nobody"
        assert await rows(world.acme) == []

    async def test_code__of_another_sign_in__is_worth_nothing(self, world, oauth, user_tool):
        mine, theirs = await self.begun(oauth, user_tool), await self.begun(oauth, user_tool)
        returned = await self.back(user_tool, mine["state"])
        with pytest.raises(Refused, match="invalid_grant"):
            await sign_in_finish(
                returned, code=theirs["code"], issuer=theirs["iss"], address=user_tool.address,
                actor="user:alice", allowed=LOCAL,
            )  # fmt: skip
