"""Settings whose names followed words that the product no longer uses."""

from django.db import migrations

NAMES = {
    "person_runs": "user_runs",
    "person_messages": "user_messages",
    "person_tokens": "user_tokens",
    "person_files_mb": "user_files_mb",
    "person_sockets": "user_sockets",
    "suggest_people": "suggest_users",
    "keep_runs_days": "run_retention_days",
    "keep_audit_days": "audit_retention_days",
}


def rename(apps, schema_editor):
    for old, new in NAMES.items():
        _rename(apps, old, new)


def rename_back(apps, schema_editor):
    for old, new in NAMES.items():
        _rename(apps, new, old)


def _rename(apps, old, new):
    setting = apps.get_model("agents", "InstallationSetting")
    setting.objects.filter(key=old).update(key=new)


class Migration(migrations.Migration):
    dependencies = [("agents", "0007_configuration_changes")]

    operations = [migrations.RunPython(rename, rename_back)]
