"""The ASGI application: HTTP, websockets, and the life of this process's runtime."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentops.settings")
http = get_asgi_application()

from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from channels.security.websocket import AllowedHostsOriginValidator  # noqa: E402

from agentops.doorway import Doorway  # noqa: E402
from agentops.lifespan import Lifespan  # noqa: E402
from agentops.mcp_door import McpDoor  # noqa: E402
from apps.gateway.routing import websocket_urlpatterns  # noqa: E402

mcp = McpDoor()
application = ProtocolTypeRouter(
    {
        "http": Doorway(http, mcp),
        "websocket": AllowedHostsOriginValidator(URLRouter(websocket_urlpatterns)),
        "lifespan": Lifespan(mcp),
    }
)
