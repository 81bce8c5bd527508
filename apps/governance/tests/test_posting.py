"""What may be posted to, and how it is signed."""

import base64
import hashlib
import hmac
import socket
from typing import Any

import pytest

from apps.governance.posting import address_parse, post_signed, signature
from apps.governance.tests.hooks import receiving
from apps.runtime.addresses import AddressRefused

SENT: dict[str, Any] = {
    "secret": "a secret of acme",
    "identity": "d1",
    "timestamp": 1_700_000_000,
    "body": b"{}",
}
HERE = ("127.0.0.1",)


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("http://example.com/hook", "https_only"),
        ("ftp://example.com/hook", "not_an_address"),
        ("https:///hook", "not_an_address"),
        ("https://example.com:99999/", "not_an_address"),
        ("https://user:pass@example.com/", "credentials_in_address"),
        ("https://example.com/#part", "credentials_in_address"),
    ],
)
def test_address__that_is_not_plain_https__is_refused(url, code):
    with pytest.raises(AddressRefused, match=code):
        address_parse(url, private=())


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1",
        "0.0.0.0", "224.0.0.1", "::1", "fd00::1", "fe80::1", "::ffff:127.0.0.1",
        "::ffff:169.254.169.254", "2002:7f00:1::", "fec0::1",
    ],
)  # fmt: skip
def test_address__whose_name_leads_inside__is_refused_before_anything_is_sent(monkeypatch, address):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    found = [(family, socket.SOCK_STREAM, 6, "", (address, 443))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_more: found)
    monkeypatch.setattr(socket, "create_connection", lambda *_args: pytest.fail("it connected"))
    with pytest.raises(AddressRefused, match="private_address"):
        post_signed("https://hooks.example.com/", **SENT)


def test_address__with_one_inside_among_public_ones__is_refused(monkeypatch):
    found = [
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 443))
        for address in ("93.184.216.34", "10.0.0.1")
    ]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_more: found)
    with pytest.raises(AddressRefused, match="private_address"):
        post_signed("https://hooks.example.com/", **SENT)


def test_post__of_a_name__goes_to_the_address_that_was_checked(monkeypatch):
    asked = []

    def answer(*args, **more):
        asked.append(args[0])
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("93.184.216.34", 443))]

    def connect(address, *_rest):
        raise ConnectionRefusedError(address[0])

    monkeypatch.setattr(socket, "getaddrinfo", answer)
    monkeypatch.setattr(socket, "create_connection", connect)
    with pytest.raises(ConnectionRefusedError, match=r"93\.184\.216\.34"):
        post_signed("https://hooks.example.com/", **SENT)
    assert asked == ["hooks.example.com"]


def test_post__to_a_server__is_signed_over_id_time_and_body():
    with receiving() as receiver:
        status = post_signed(receiver.url, private=HERE, **{**SENT, "body": b'{"a":"\xc3\xa9"}'})
    assert status == 200
    headers, body = receiver.posts[0]
    assert (headers["webhook-id"], headers["webhook-timestamp"]) == ("d1", "1700000000")
    expected = hmac.new(b"a secret of acme", b"d1.1700000000." + body, hashlib.sha256).digest()
    assert headers["webhook-signature"] == "v1," + base64.b64encode(expected).decode()
    assert headers["content-type"] == "application/json"


def test_signature__with_another_secret_body_or_time__is_another():
    base: dict[str, Any] = {"secret": "s", "identity": "i", "timestamp": 1, "body": b"b"}
    changed: list[dict[str, Any]] = [
        {"secret": "t"},
        {"identity": "j"},
        {"timestamp": 2},
        {"body": b"c"},
    ]
    assert len({signature(**{**base, **change}) for change in [{}, *changed]}) == 5


def test_signature__of_the_standards_own_example__is_the_one_it_gives():
    made = signature(
        secret="whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        identity="msg_p5jXN8AQM9LWM0D4loKWxJek",
        timestamp=1614265330,
        body=b'{"test": 2432232314}',
    )
    assert made == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_post__answered_with_a_redirect__is_not_followed():
    with receiving() as receiver:
        receiver.answers = [307]
        assert post_signed(receiver.url, private=HERE, **SENT) == 307
        assert len(receiver.posts) == 1
