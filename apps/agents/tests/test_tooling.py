"""Tools as a model is offered them."""

from apps.agents.tooling import Offers, ToolInfo


def test_offers__slugs_that_look_alike_on_the_wire__have_names_of_their_own_and_lead_back():
    infos = {
        slug: ToolInfo(slug=slug) for slug in ("crm.send_email", "crm:send_email", "send_email")
    }

    offers = Offers(infos)

    assert len(set(offers.names)) == 3
    assert [info.slug for name in offers.names if (info := offers.find(name))] == list(infos)
    assert [entry["function"]["name"] for entry in offers.functions] == offers.names
    assert all(len(name) <= 64 for name in offers.names)
