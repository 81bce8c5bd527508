"""The narrow reads that happen before a tenant is known: see ``apps/tenants/lookups.py``.

The owner of the tables is bound by their policies too (FORCE), so a SECURITY DEFINER function of
the owner would see nothing. Each function therefore sets ``app.lookup`` for its own duration, and
the policies of ``apps/tenants/row_security.py`` let the owner, and nobody else, see a row by it.
(A SET clause would read better; for a setting of our own it asks for a superuser.)
"""

from django.db import migrations

KEY_FIND = """
CREATE OR REPLACE FUNCTION agentops_key_find(wanted text)
RETURNS TABLE (
    id uuid, tenant_id bigint, tenant_slug text, prefix text, digest text, scopes jsonb,
    environment text, expires_at timestamptz, revoked_at timestamptz, last_used_at timestamptz
)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp
AS $$
BEGIN
    PERFORM set_config('app.lookup', 'on', true);
    RETURN QUERY SELECT k.id, k.tenant_id, t.slug::text, k.prefix::text, k.digest::text, k.scopes,
           k.environment::text, k.expires_at, k.revoked_at, k.last_used_at
    FROM public.tenants_apikey k JOIN public.tenants_tenant t ON t.id = k.tenant_id
    WHERE k.prefix = wanted;
    PERFORM set_config('app.lookup', '', true);
END
$$
"""

KEY_USED = """
CREATE OR REPLACE FUNCTION agentops_key_used(used uuid) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp
AS $$
BEGIN
    PERFORM set_config('app.lookup', 'on', true);
    UPDATE public.tenants_apikey SET last_used_at = now()
    WHERE id = used AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute');
    PERFORM set_config('app.lookup', '', true);
END
$$
"""

MEMBERSHIPS_OF = """
CREATE OR REPLACE FUNCTION agentops_memberships_of(person bigint)
RETURNS TABLE (tenant_id bigint, slug text, name text, role text)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp
AS $$
BEGIN
    PERFORM set_config('app.lookup', 'on', true);
    RETURN QUERY SELECT m.tenant_id, t.slug::text, t.name::text, m.role::text
    FROM public.tenants_membership m JOIN public.tenants_tenant t ON t.id = m.tenant_id
    WHERE m.user_id = person;
    PERFORM set_config('app.lookup', '', true);
END
$$
"""

SIGNATURES = (
    "agentops_key_find(text)",
    "agentops_key_used(uuid)",
    "agentops_memberships_of(bigint)",
)

AUDIT_GUARD = """
CREATE OR REPLACE FUNCTION agentops_append_only() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME;
END
$$;
DROP TRIGGER IF EXISTS audit_append_only ON tenants_auditentry;
CREATE TRIGGER audit_append_only BEFORE UPDATE OR DELETE ON tenants_auditentry
    FOR EACH ROW EXECUTE FUNCTION agentops_append_only();
"""


def create(apps, schema_editor):
    if schema_editor.connection.vendor != "postgresql":
        return
    for function in (KEY_FIND, KEY_USED, MEMBERSHIPS_OF, AUDIT_GUARD):
        schema_editor.execute(function, params=None)
    for signature in SIGNATURES:
        schema_editor.execute(f"REVOKE ALL ON FUNCTION {signature} FROM PUBLIC", params=None)


def drop(apps, schema_editor):
    if schema_editor.connection.vendor != "postgresql":
        return
    for signature in SIGNATURES:
        schema_editor.execute(f"DROP FUNCTION IF EXISTS {signature}", params=None)
    schema_editor.execute("DROP TRIGGER IF EXISTS audit_append_only ON tenants_auditentry")
    schema_editor.execute("DROP FUNCTION IF EXISTS agentops_append_only()")


class Migration(migrations.Migration):
    dependencies = [("tenants", "0001_initial")]

    operations = [migrations.RunPython(create, drop, elidable=False)]
