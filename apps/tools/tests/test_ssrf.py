"""No tool request reaches what is inside, whatever a tenant writes as address."""

import asyncio
import contextlib
import datetime
import ipaddress
import ssl

import httpcore2
import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from apps.runtime.addresses import AddressRefused, AllowList, addresses_check, host_check
from apps.runtime.ports import RemoteTool, ToolUnavailable
from apps.tools.transports import guarding
from apps.tools.transports.dispatch import Transports
from apps.tools.transports.guarding import AddressForbidden, GuardedBackend, GuardedTransport

INSIDE = [
    "127.0.0.1", "127.8.8.8", "0.0.0.0", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1",
    "169.254.169.254", "169.254.170.2", "100.64.0.1", "100.100.100.200", "168.63.129.16",
    "192.0.0.192", "192.88.99.1", "198.18.0.1", "192.0.2.1", "203.0.113.9", "224.0.0.1", "239.255.255.250",
    "240.0.0.1", "255.255.255.255", "::", "::1", "fe80::1", "fe80::1%eth0", "fd00:ec2::254",
    "fc00::1", "fec0::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1",
    "::ffff:169.254.169.254", "::127.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe", "64:ff9b:1::7f00:1", "2002:7f00:1::", "2002:a9fe:a9fe::",
    "2001:db8::1", "2001:0:7f00:1::", "3fff::1",
]  # fmt: skip
OUTSIDE = ["93.184.216.34", "8.8.8.8", "2606:4700::1111", "64:ff9b::808:808", "::ffff:8.8.8.8"]
NOBODY = AllowList()
CONTRACTS = ["streamable_http", "sse", "http"]


class Listener:
    """Counts who connects to it on 127.0.0.1, and answers with ``response``."""

    def __init__(self, response: bytes = b"HTTP/1.1 204 No Content\r\n\r\n") -> None:
        self.response = response
        self.requests: list[bytes] = []
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError):
            self.requests.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(self.response)
            await writer.drain()
        writer.close()


@contextlib.asynccontextmanager
async def listening(response: bytes = b"HTTP/1.1 204 No Content\r\n\r\n", tls=None):
    listener = Listener(response)
    server = await asyncio.start_server(listener.serve, "127.0.0.1", 0, ssl=tls)
    listener.port = server.sockets[0].getsockname()[1]
    async with server:
        yield listener


def resolving(*addresses: str):
    """Return a resolver that always finds ``addresses``."""

    async def resolve(host: str, port: int) -> list[str]:
        return list(addresses)

    return resolve


# -- what is inside ----------------------------------------------------------------------------


@pytest.mark.parametrize("address", INSIDE)
def test_address__inside__is_refused_alone_among_others_and_as_host(address):
    for resolved in ([address], ["8.8.8.8", address]):
        with pytest.raises(AddressRefused, match="private_address"):
            addresses_check("tools.example.com", 443, resolved, NOBODY)
    with pytest.raises(AddressRefused, match="private_address"):
        host_check(address, 443, NOBODY)


@pytest.mark.parametrize("address", OUTSIDE)
def test_address__outside__is_reached(address):
    assert addresses_check("tools.example.com", 443, [address], NOBODY) == (address,)
    host_check(address, 443, NOBODY)


@pytest.mark.parametrize("resolved", [[], ["not an address"]])
def test_address__that_is_none__is_refused(resolved):
    with pytest.raises(AddressRefused):
        addresses_check("tools.example.com", 443, resolved, NOBODY)


# -- what an operator allows -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "host", "port", "resolved", "reached"),
    [
        ("tools.internal", "tools.internal", 80, "10.0.0.1", True),
        ("tools.internal", "Tools.Internal.", 80, "10.0.0.1", True),
        ("tools.internal", "evil.tools.internal", 80, "10.0.0.1", False),
        ("tools.internal", "tools.internal.evil.com", 80, "10.0.0.1", False),
        ("tools.internal:8100", "tools.internal", 8100, "10.0.0.1", True),
        ("tools.internal:8100", "tools.internal", 22, "10.0.0.1", False),
        ("10.0.0.0/8", "tools.internal", 80, "10.9.9.9", True),
        ("10.0.0.0/8", "tools.internal", 80, "11.0.0.1", True),
        ("10.0.0.0/8", "tools.internal", 80, "192.168.0.1", False),
        ("10.0.0.0/8", "tools.internal", 80, "::ffff:10.0.0.1", True),
        ("127.0.0.1", "127.0.0.1", 80, "127.0.0.1", True),
        ("127.0.0.1", "127.0.0.2", 80, "127.0.0.2", False),
        ("127.0.0.1:80", "127.0.0.1", 80, "127.0.0.1", True),
        ("127.0.0.1:80", "127.0.0.1", 81, "127.0.0.1", False),
        ("::1", "::1", 80, "::1", True),
        ("[::1]:80", "::1", 80, "::1", True),
        ("fd00::/8", "tools.internal", 80, "fd00::7", True),
    ],
)
def test_allowed__host_port_or_network__and_nothing_beside(entry, host, port, resolved, reached):
    allowed = AllowList.of([entry])
    if reached:
        assert addresses_check(host, port, [resolved], allowed) == (resolved,)
    else:
        with pytest.raises(AddressRefused):
            addresses_check(host, port, [resolved], allowed)


@pytest.mark.parametrize(
    "entry", ["", "http://a", "10.0.0.0/99", "a/8", "a:b", "a:0", "a:99999", "a b", "a@b", "10.0/x"]
)
def test_allowed__entry_that_is_none__is_said_by_its_name(entry):
    with pytest.raises(ValueError, match=entry or "''"):
        AllowList.of([entry])


# -- connecting --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("allowed", "reached"),
    [([], False), (["tools.test"], True), (["127.0.0.0/8"], True), (["other.test"], False)],
)
async def test_connect__name_that_leads_inside__only_where_an_operator_allows_it(allowed, reached):
    async with listening() as listener:
        transport = GuardedTransport(AllowList.of(allowed), resolving("127.0.0.1"))
        async with httpx2.AsyncClient(transport=transport, trust_env=False) as client:
            address = f"http://tools.test:{listener.port}/"
            if reached:
                assert (await client.get(address)).status_code == 204
                assert f"host: tools.test:{listener.port}".encode() in listener.requests[0].lower()
            else:
                with pytest.raises(AddressForbidden):
                    await client.get(address)
                assert listener.requests == []


async def test_connect__name_that_answers_differently_each_time__goes_to_what_was_checked():
    asked, dialled = [], []

    async def rebinding(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["93.184.216.34"] if len(asked) == 1 else ["127.0.0.1"]

    class Inner(httpcore2.AsyncNetworkBackend):
        async def connect_tcp(self, host, port, *_args, **_more):
            dialled.append(host)
            raise httpcore2.ConnectError("refused")

    backend = GuardedBackend(NOBODY, rebinding)
    backend._inner = Inner()

    with pytest.raises(httpcore2.ConnectError):
        await backend.connect_tcp("tools.test", 443)
    with pytest.raises(AddressForbidden):
        await backend.connect_tcp("tools.test", 443)

    assert (asked, dialled) == (["tools.test"] * 2, ["93.184.216.34"])


async def test_connect__first_address_is_dead__the_next_checked_one_is_taken():
    async with listening() as listener:
        allowed = AllowList.of(["127.0.0.0/8"])
        transport = GuardedTransport(allowed, resolving("127.0.0.9", "127.0.0.1"))
        async with httpx2.AsyncClient(transport=transport, trust_env=False) as client:
            response = await client.get(f"http://tools.test:{listener.port}/")

    assert (response.status_code, len(listener.requests)) == (204, 1)


async def test_connect__name_that_does_not_answer__ends_with_the_connect_deadline():
    async def silent(host: str, port: int) -> list[str]:
        await asyncio.sleep(30)
        return []

    with pytest.raises(httpcore2.ConnectTimeout):
        await GuardedBackend(NOBODY, silent).connect_tcp("tools.test", 443, timeout=0.1)


def certified(name: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return the server's and the client's TLS context for a certificate of ``name`` only."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    return _contexts(made.public_bytes(serialization.Encoding.PEM), _pem(key))


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _contexts(certificate: bytes, key: bytes) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    import tempfile

    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile() as file:
        file.write(certificate + key)
        file.flush()
        server.load_cert_chain(file.name)
    return server, ssl.create_default_context(cadata=certificate.decode())


@pytest.mark.parametrize(("host", "works"), [("tools.test", True), ("other.test", False)])
async def test_connect__over_tls__the_certificate_must_be_of_the_name(monkeypatch, host, works):
    server, client_side = certified("tools.test")
    monkeypatch.setattr(guarding, "tls_context", lambda: client_side)
    async with listening(tls=server) as listener:
        transport = GuardedTransport(AllowList.of([host]), resolving("127.0.0.1"))
        async with httpx2.AsyncClient(transport=transport, trust_env=False) as client:
            address = f"https://{host}:{listener.port}/"
            if works:
                assert (await client.get(address)).status_code == 204
            else:
                with pytest.raises(httpx2.ConnectError, match="certificate"):
                    await client.get(address)
                assert listener.requests == []


def is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


# -- whole requests ----------------------------------------------------------------------------


@pytest.mark.parametrize("contract", CONTRACTS)
@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "2130706433", "0x7f000001", "127.1", "0177.0.0.1", "0",
     "[::1]", "[::ffff:127.0.0.1]", "[::]", "0.0.0.0", "127.0.0.1."],
)  # fmt: skip
async def test_call__this_machine_in_any_spelling__nothing_is_sent(contract, host):
    async with listening() as listener:
        transports = Transports()
        remote = RemoteTool(
            server="x", transport=contract, address=f"http://{host}:{listener.port}/mcp", name="t",
            timeout_seconds=5,
        )  # fmt: skip

        with pytest.raises(ToolUnavailable) as refused:
            await transports.call(remote, {}, idempotency_key="")
        with pytest.raises(ToolUnavailable):
            await transports.list_tools(remote)
        await transports.aclose()

    assert refused.value.sent is False
    # A spelling that the resolver does not know leads nowhere at all.
    assert refused.value.code in ("forbidden_address", "unreachable")
    assert listener.requests == []
    if is_address(host):
        assert refused.value.code == "forbidden_address"


@pytest.mark.parametrize("contract", CONTRACTS)
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_call__redirected_elsewhere__is_not_followed(contract, status):
    async with listening() as secret:
        location = f"http://127.0.0.1:{secret.port}/latest/meta-data/"
        redirect = f"HTTP/1.1 {status} Moved\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n"
        async with listening(redirect.encode()) as bound:
            transports = Transports(allowed=AllowList.of([f"127.0.0.1:{bound.port}"]))
            remote = RemoteTool(
                server="x", transport=contract, address=f"http://127.0.0.1:{bound.port}/mcp",
                name="t", timeout_seconds=5,
            )  # fmt: skip
            with contextlib.suppress(ToolUnavailable):
                answer = await transports.call(remote, {}, idempotency_key="")
                assert not answer.ok
            await transports.aclose()

        assert len(bound.requests) >= 1
        assert secret.requests == []


async def test_call__proxy_and_passwords_of_the_environment__are_not_used(monkeypatch, tmp_path):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login admin password s3cret\n")
    async with listening() as proxy, listening() as server:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv("ALL_PROXY", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv("NETRC", str(netrc))
        client = guarding.client_create(AllowList.of(["127.0.0.1"]))
        async with client:
            await client.get(f"http://127.0.0.1:{server.port}/")

    assert proxy.requests == []
    assert b"authorization" not in server.requests[0].lower()
