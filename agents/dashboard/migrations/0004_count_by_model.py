from django.db import migrations

CALLS = (
    *("model_calls", "input_tokens", "output_tokens", "cache_read_tokens"),
    *("cache_write_tokens", "reasoning_tokens", "answer_cost", "replan_cost"),
    *("retry_cost", "check_cost", "title_cost", "saved_cost", "unpriced_calls", "unpriced"),
)


def count_by_model(apps, schema_editor):
    """Count by the models that runs started with.

    So figures are complete at once, and right as soon as the periodic job has summarized each
    run again: their summaries have no version yet.
    """
    tables = {
        name: apps.get_model("dashboard", name)
        for name in ("RunSummary", "ModelSummary", "DailyFigures", "DeletedFigures")
    }
    summaries = tables["RunSummary"]._meta.db_table
    _copy(schema_editor, tables["ModelSummary"], ("run_id", "model", *CALLS), summaries)
    for name in ("DailyFigures", "DeletedFigures"):
        columns = [f.column for f in tables[name]._meta.concrete_fields if not f.primary_key]
        table = tables[name]._meta.db_table
        _copy(schema_editor, tables[name], columns, table, "grain = 'agent'", grain="'model'")


def _copy(schema_editor, model, columns, source, where="1 = 1", **values):
    """Insert rows of a table into another one; `values` are SQL in place of a column."""
    quote = schema_editor.quote_name
    names = ", ".join(map(quote, columns))
    given = ", ".join(values.get(name, quote(name)) for name in columns)
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {quote(model._meta.db_table)} ({names}) "
            f"SELECT {given} FROM {quote(source)} WHERE {where}"
        )


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0003_models_called")]

    operations = [migrations.RunPython(count_by_model, migrations.RunPython.noop)]
