"""The one agent a key is bound to: its column, and the caller's row with it.

Beside ``agentops_key_caller``, which processes of the version before still call.
"""

from django.db import migrations, models

KEY_SENDER = """
CREATE OR REPLACE FUNCTION agentops_key_sender(wanted text)
RETURNS TABLE (
    id uuid, tenant_id bigint, tenant_slug text, prefix text, digest text, scopes jsonb,
    environment text, expires_at timestamptz, revoked_at timestamptz, last_used_at timestamptz,
    person text, person_active boolean, person_platform boolean, person_roles text[], agent text
)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp
AS $$
BEGIN
    PERFORM set_config('app.lookup', 'on', true);
    RETURN QUERY SELECT k.id, k.tenant_id, t.slug::text, k.prefix::text, k.digest::text, k.scopes,
           k.environment::text, k.expires_at, k.revoked_at, k.last_used_at,
           u.username::text, u.is_active, u.is_superuser,
           ARRAY(SELECT m.role::text FROM public.tenants_membership m
                 WHERE m.user_id = k.person_id AND m.tenant_id = k.tenant_id),
           k.agent::text
    FROM public.tenants_apikey k JOIN public.tenants_tenant t ON t.id = k.tenant_id
    LEFT JOIN public.tenants_user u ON u.id = k.person_id
    WHERE k.prefix = wanted;
    PERFORM set_config('app.lookup', '', true);
END
$$
"""
SIGNATURE = "agentops_key_sender(text)"


def create(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(KEY_SENDER, params=None)
        schema_editor.execute(f"REVOKE ALL ON FUNCTION {SIGNATURE} FROM PUBLIC", params=None)


def drop(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(f"DROP FUNCTION IF EXISTS {SIGNATURE}", params=None)


class Migration(migrations.Migration):
    dependencies = [("tenants", "0004_person_of_a_key")]

    operations = [
        migrations.AddField(
            model_name="apikey",
            name="agent",
            # With a default in the database, too: processes of the version before issue keys.
            field=models.CharField(
                blank=True, db_default="", default="", max_length=120, verbose_name="agent"
            ),
        ),
        migrations.RunPython(create, drop, elidable=False),
    ]
