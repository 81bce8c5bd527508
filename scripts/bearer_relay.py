"""Passes requests on to an MCP server with a key, for clients that cannot send one.

python scripts/bearer_relay.py http://127.0.0.1:8000/mcp KEY: prints its own address. Only for this
machine: whoever reaches it acts with the key.
"""

import http.client
import http.server
import sys
from urllib.parse import urlsplit


def relay(target: str, key: str) -> http.server.ThreadingHTTPServer:
    """Return a server on a free port of this machine that is ``target``, with ``key``."""
    place = urlsplit(target)

    class Relay(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def passed_on(self) -> None:
            size = int(self.headers.get("content-length") or 0)
            body = self.rfile.read(size)
            own = f"127.0.0.1:{made.server_port}"
            headers = {
                name: value.replace(own, place.netloc).replace(
                    own.replace("127.0.0.1", "localhost"), place.netloc
                )
                for name, value in self.headers.items()
                if name.lower() not in ("connection", "content-length", "authorization")
            }
            connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=60)
            connection.request(
                self.command, place.path or "/", body, {**headers, "Authorization": f"Bearer {key}"}
            )
            response = connection.getresponse()
            answer = response.read()
            self.send_response(response.status)
            for name, value in response.getheaders():
                if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                    self.send_header(name, value)
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)
            connection.close()

        do_GET = do_POST = do_DELETE = do_OPTIONS = passed_on

        def log_message(self, *args: object) -> None:
            """Say nothing of each request."""

    made = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Relay)
    return made


if __name__ == "__main__":
    server = relay(sys.argv[1], sys.argv[2])
    print(f"http://127.0.0.1:{server.server_port}/mcp", flush=True)
    server.serve_forever()
