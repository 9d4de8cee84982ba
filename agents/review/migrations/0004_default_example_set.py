from django.db import migrations


def put_into_default_set(apps, schema_editor):
    """Put the examples of earlier versions into one set."""
    examples = apps.get_model("review", "Example").objects.filter(example_set=None)
    if examples.exists():
        sets = apps.get_model("review", "ExampleSet").objects
        examples.update(example_set=sets.get_or_create(name="Saved examples")[0])


class Migration(migrations.Migration):
    dependencies = [
        ("review", "0003_example_sets"),
    ]

    operations = [
        migrations.RunPython(put_into_default_set, migrations.RunPython.noop),
    ]
