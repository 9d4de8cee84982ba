from itertools import groupby

from django.db import migrations, models

A_BATCH = 1000
NAMED = {"tool", "guardrail"}


def fill_marks(apps, schema_editor):
    """What the steps of runs are found by that ended before this was kept."""
    runs = apps.get_model("agents", "Run").objects
    steps = apps.get_model("agents", "AgentStep").objects
    ended = runs.filter(ended_at__isnull=False).only("pk").order_by("pk")
    last = 0
    while batch := list(ended.filter(pk__gt=last)[:A_BATCH]):
        last = batch[-1].pk
        rows = steps.filter(run__in=batch).order_by("run")
        said = rows.values_list("run", "kind", "action", "status")
        marks = {run: marked(its) for run, its in groupby(said, lambda row: row[0])}
        for run in batch:
            run.marks = marks.get(run.pk, "||")
        runs.bulk_update(batch, ["marks"])


def marked(steps):
    found = set()
    for _, kind, action, status in steps:
        found.add(kind)
        if kind in NAMED:
            found.add(f"{kind}={action[:64].replace('|', ' ').lower()}")
        if status == "failed":
            found.add(status)
    return f"|{'|'.join(sorted(found)[:100])}|"


class Migration(migrations.Migration):
    dependencies = [("agents", "0015_effects")]

    operations = [
        migrations.AddField(
            model_name="run",
            name="marks",
            field=models.TextField(
                blank=True,
                db_default="",
                help_text="Of a run that is over: the kinds of its steps, to find it by.",
                verbose_name="marks",
            ),
        ),
        migrations.RunPython(fill_marks, migrations.RunPython.noop),
    ]
