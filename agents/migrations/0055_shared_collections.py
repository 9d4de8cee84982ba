import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

ROLES = ("person", "reviewer", "administrator")


def accept_existing(apps, schema_editor):
    """Keep what administrators and groups share in everybody's search, and end role shares.

    A collection that another user shared by name is searched when its receiver accepts it. A
    role is everybody who has it: only an administrator may share with that.
    """
    Collection = apps.get_model("agents", "Collection")
    Acceptance = apps.get_model("agents", "CollectionAcceptance")
    Permission = apps.get_model("auth", "Permission")
    manage = Permission.objects.filter(
        content_type__app_label="agents", codename="change_collection"
    )
    administrators = {
        *apps.get_model("auth", "User").objects.filter(is_superuser=True).values_list("pk"),
        *manage.exclude(user=None).values_list("user"),
        *manage.exclude(group__user=None).values_list("group__user"),
    }
    for collection in Collection.objects.exclude(owner=None).order_by("pk"):
        is_administrators = (collection.owner_id,) in administrators
        if not is_administrators:
            collection.groups.remove(*collection.groups.filter(name__in=ROLES))
        rows = [
            Acceptance(collection=collection, group=group) for group in collection.groups.all()
        ]
        if is_administrators:
            rows += [
                Acceptance(collection=collection, user_id=share.user_id)
                for share in collection.shares.all()
            ]
        Acceptance.objects.bulk_create(rows)


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0054_learned_from_feedback_only"),
        ("auth", "0012_alter_user_first_name_max_length"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="CollectionAcceptance",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "is_accepted",
                    models.BooleanField(
                        default=True,
                        help_text="No if the user has dismissed it.",
                        verbose_name="searched",
                    ),
                ),
                (
                    "collection",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="acceptances",
                        to="agents.collection",
                        verbose_name="collection",
                    ),
                ),
                (
                    "group",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="auth.group",
                        verbose_name="group",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="user",
                    ),
                ),
            ],
            options={
                "verbose_name": "accepted collection",
                "verbose_name_plural": "accepted collections",
                "ordering": ["pk"],
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("collection", "user"), name="one_answer_a_person"
                    ),
                    models.UniqueConstraint(
                        fields=("collection", "group"), name="one_answer_a_group"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("user", None), ("group", None), _connector="XOR"),
                        name="user_or_group",
                    ),
                ],
            },
        ),
        migrations.RunPython(accept_existing, migrations.RunPython.noop, elidable=True),
    ]
