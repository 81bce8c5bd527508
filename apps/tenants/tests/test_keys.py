"""Names outside the database."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.tenants.keys import scoped_key
from apps.tenants.scope import NoTenant, tenant_scope

part = st.text(max_size=60)
parts = st.lists(
    part | st.sampled_from(["", ".", "_", "a.b", "..", "h", "é", "\ud800"]), max_size=5
)


def test_key__without_a_tenant__raises():
    with pytest.raises(NoTenant):
        scoped_key("session", "s1")


def test_key__in_a_scope__names_the_tenant():
    with tenant_scope(7):
        assert scoped_key("session", "acme:a:s1") == "t7.session.acme_3Aa_3As1"
    assert scoped_key("x", tenant_id=8) == "t8.x"


@given(parts, parts, st.integers(1, 99), st.integers(1, 99))
def test_key__of_different_parts_or_tenants__differs(left, right, one, two):
    same = (left, one) == (right, two)
    assert (scoped_key(*left, tenant_id=one) == scoped_key(*right, tenant_id=two)) is same


@given(parts)
def test_key__of_anything__is_a_group_name_and_a_file_name(given_parts):
    key = scoped_key(*given_parts, tenant_id=1)
    assert re.fullmatch(r"[A-Za-z0-9_.-]{1,95}", key)
    assert "/" not in key
    assert key not in (".", "..")


def test_key__too_long__is_hashed_apart_from_every_other():
    long, longer = scoped_key("a" * 200, tenant_id=1), scoped_key("a" * 201, tenant_id=1)
    assert len(long) < 100
    assert long != longer
    assert long.startswith("t1..")
    assert scoped_key("", long.removeprefix("t1.."), tenant_id=1) != long
