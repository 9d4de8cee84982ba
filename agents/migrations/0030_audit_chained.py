from types import SimpleNamespace

from django.conf import settings
from django.db import migrations

from agents.models.audit import ANONYMOUS_TOKEN, GENESIS

NAMED = ("who", "to")
A_PAGE = 500


def chained(apps, schema_editor):
    """Seal what was kept before there were seals; the first entry says how many those are."""
    from agents.access.audit import hash_chain

    entries = apps.get_model("agents", "AuditEntry").objects.order_by("pk")
    if not (count := entries.count()):
        return
    people, head = _people(apps), SimpleNamespace(number=0, seal=GENESIS)
    first = entries.model(
        action="audit.begun",
        subject="audit",
        detail={"entries": count},
        person=people[None, ""],
    )
    hash_chain.seal(first, first.person.token, head)
    for page in _pages(entries.filter(number=None)):
        for entry in page:
            entry.person = people[entry.actor_id, entry.actor_name]
            entry.detail = _told(entry.detail, people)
            hash_chain.seal(entry, entry.person.token, head)
        entries.bulk_update(page, ["person", "detail", "number", "key", "previous", "seal"])
    first.save()
    heads = apps.get_model("agents", "AuditHead").objects
    heads.create(pk=1, number=head.number, seal=head.seal)


def _pages(entries):
    last = 0
    while page := list(entries.filter(pk__gt=last)[:A_PAGE]):
        yield page
        last = page[-1].pk


def _people(apps):
    """Whoever did anything, and whoever has an account and so may be named."""
    rows = apps.get_model("agents", "AuditPerson").objects
    done = apps.get_model("agents", "AuditEntry").objects.order_by()
    accounts = apps.get_model(settings.AUTH_USER_MODEL).objects
    found = set(done.values_list("actor_id", "actor_name").distinct())
    found |= set(accounts.values_list("pk", "username")) | {(None, "")}
    known, people = {}, {}
    for pk, name in sorted(found, key=lambda pair: (pair[0] is None, pair)):
        key = pk or name
        if key not in known:
            about = {"token": ANONYMOUS_TOKEN} if not key else {}
            known[key] = rows.create(user_id=pk, name=name, **about)
        people[pk, name] = known[key]
        people.setdefault(name, known[key])
    return people


def _told(detail, people):
    named = {key: people[detail[key]] for key in NAMED if detail.get(key) in people}
    return detail | {key: f"person:{person.token}" for key, person in named.items()}


class Migration(migrations.Migration):
    """By itself: PostgreSQL changes no table in a transaction that has just written to it."""

    dependencies = [("agents", "0029_audit_chain")]

    operations = [migrations.RunPython(chained, migrations.RunPython.noop)]
