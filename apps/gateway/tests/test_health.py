"""Whether the process lives and can work."""


def test_ready__of_the_running_product__names_every_dependency(live):
    with live.client() as client:
        answer = client.get("/ready")
    assert answer.status_code == 200
    assert answer.json() == {
        "status": "ready",
        "checks": dict.fromkeys(
            ("database", "migrations", "channel_layer", "broker", "runtime"), "ok"
        ),
    }
