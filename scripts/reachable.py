"""Exit 0 when the PostgreSQL or Redis at the given address answers."""

import sys

address = sys.argv[1]
if address.startswith("postgres"):
    import psycopg

    psycopg.connect(address, connect_timeout=2).close()
else:
    import redis

    redis.Redis.from_url(address, socket_connect_timeout=2, socket_timeout=2).ping()
