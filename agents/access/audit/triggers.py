"""Database triggers that forbid changing entries, or deleting ones that aren't truncated.

They are created after every migration, because SQLite recreates a table to change it.
"""

from typing import Any

from django.db import connections

REFUSAL_SENTENCE = "The audit log is only added to."
TRUNCATED_THROUGH = "COALESCE((SELECT MAX(cut) FROM agents_audithead), 0)"
SQLITE = [
    f"""
    CREATE TRIGGER IF NOT EXISTS audit_unchanged BEFORE UPDATE ON agents_auditentry
    BEGIN SELECT RAISE(ABORT, '{REFUSAL_SENTENCE}'); END
    """,
    f"""
    CREATE TRIGGER IF NOT EXISTS audit_kept BEFORE DELETE ON agents_auditentry
    WHEN OLD.number > {TRUNCATED_THROUGH}
    BEGIN SELECT RAISE(ABORT, '{REFUSAL_SENTENCE}'); END
    """,
]
POSTGRESQL = [
    f"""
    CREATE OR REPLACE FUNCTION audit_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF TG_OP = 'DELETE' AND OLD.number <= {TRUNCATED_THROUGH} THEN RETURN OLD; END IF;
        RAISE EXCEPTION '{REFUSAL_SENTENCE}';
    END $$
    """,
    # Replaced, not dropped: that would wait for backups, and everyone else for it.
    """
    CREATE OR REPLACE TRIGGER audit_kept BEFORE UPDATE OR DELETE ON agents_auditentry
    FOR EACH ROW EXECUTE FUNCTION audit_refuse()
    """,
    """
    CREATE OR REPLACE TRIGGER audit_whole BEFORE TRUNCATE ON agents_auditentry
    FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse()
    """,
]
STATEMENTS = {"sqlite": SQLITE, "postgresql": POSTGRESQL}


def create_triggers(using: str, **_signal: Any) -> None:
    connection = connections[using]
    with connection.cursor() as cursor:
        tables = connection.introspection.table_names(cursor)
        if "agents_audithead" not in tables:
            return  # migrated back to before the chain existed
        for statement in STATEMENTS[connection.vendor]:
            cursor.execute(statement)
