"""Over https the certificate must be the name's, though the connection goes to a checked address."""

import datetime
import socket
import ssl
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from apps.governance.posting import post_signed

HOST = "hooks.example.test"


@pytest.fixture
def server(tmp_path):
    """An https server on this machine with a certificate for ``HOST``; yields port and certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(HOST)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, SHA256())
    )
    chain = tmp_path / "server.pem"
    chain.write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        + certificate.public_bytes(Encoding.PEM)
    )
    trusted = tmp_path / "trusted.pem"
    trusted.write_bytes(certificate.public_bytes(Encoding.PEM))

    class Answering(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(204 if self.headers["host"].split(":")[0] == HOST else 400)
            self.end_headers()

        def log_message(self, *_args):
            return None

    served = HTTPServer(("127.0.0.1", 0), Answering)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain)
    served.socket = context.wrap_socket(served.socket, server_side=True)
    thread = threading.Thread(target=served.serve_forever, daemon=True)
    thread.start()
    yield served.server_port, trusted
    served.shutdown()
    served.server_close()
    thread.join(5)


@pytest.fixture
def resolved(monkeypatch):
    """Every name is this machine."""

    def found(_host, port, *_args, **_more):
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(socket, "getaddrinfo", found)


def post(host: str, port: int) -> int:
    return post_signed(
        f"https://{host}:{port}/hook",
        secret="s",
        identity="i",
        timestamp=1,
        body=b"{}",
        private=(host,),
    )


def trust(monkeypatch, trusted) -> None:
    real = ssl.create_default_context
    monkeypatch.setattr(ssl, "create_default_context", lambda: real(cafile=str(trusted)))


def test_https__with_the_names_certificate__is_posted_to(server, resolved, monkeypatch):
    port, trusted = server
    trust(monkeypatch, trusted)
    assert post(HOST, port) == 204


def test_https__with_the_certificate_of_another_name__is_not(server, resolved, monkeypatch):
    port, trusted = server
    trust(monkeypatch, trusted)
    with pytest.raises(ssl.SSLCertVerificationError):
        post("other.example.test", port)


def test_https__with_a_certificate_nobody_vouches_for__is_not(server, resolved):
    with pytest.raises(ssl.SSLCertVerificationError):
        post(HOST, server[0])
