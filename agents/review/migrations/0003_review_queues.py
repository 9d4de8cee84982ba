"""Review queues with reviewers, a rubric and scores."""

import django.db.models.deletion
import django.db.models.functions.text
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("review", "0002_saved_view_grouping"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]
    operations = [
        migrations.CreateModel(
            name="ReviewQueue",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=64, verbose_name="name")),
                (
                    "instructions",
                    models.TextField(
                        blank=True,
                        help_text=(
                            "What reviewers of this queue look at, above its runs. "
                            "Markdown works."
                        ),
                        verbose_name="instructions",
                    ),
                ),
                (
                    "reviewers",
                    models.ManyToManyField(
                        blank=True,
                        help_text="If none is selected, all reviewers.",
                        related_name="review_queues",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="reviewers",
                    ),
                ),
            ],
            options={
                "verbose_name": "review queue",
                "verbose_name_plural": "review queues",
                "ordering": ["name"],
                "constraints": [
                    models.UniqueConstraint(
                        django.db.models.functions.text.Lower("name"),
                        name="one_queue_a_name",
                        violation_error_message="A review queue with this name already exists.",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Criterion",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "queue",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="criteria",
                        to="review.reviewqueue",
                        verbose_name="review queue",
                    ),
                ),
                ("name", models.CharField(max_length=64, verbose_name="name")),
                (
                    "about",
                    models.CharField(blank=True, max_length=200, verbose_name="description"),
                ),
                (
                    "scale",
                    models.CharField(
                        choices=[("points", "1 to 5"), ("yes_no", "Yes or no")],
                        default="points",
                        max_length=10,
                        verbose_name="scale",
                    ),
                ),
                (
                    "position",
                    models.PositiveSmallIntegerField(default=0, verbose_name="position"),
                ),
            ],
            options={
                "verbose_name": "criterion",
                "verbose_name_plural": "criteria",
                "ordering": ["position", "pk"],
            },
        ),
        migrations.AddField(
            model_name="review",
            name="queue",
            field=models.ForeignKey(
                blank=True,
                help_text="If empty, the general queue.",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="reviews",
                to="review.reviewqueue",
                verbose_name="review queue",
            ),
        ),
        migrations.CreateModel(
            name="Score",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "review",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="scores",
                        to="review.review",
                        verbose_name="review",
                    ),
                ),
                (
                    "criterion",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="scores",
                        to="review.criterion",
                        verbose_name="criterion",
                    ),
                ),
                ("value", models.PositiveSmallIntegerField(verbose_name="score")),
                (
                    "scored_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="scored by",
                    ),
                ),
                ("scored_at", models.DateTimeField(auto_now=True, verbose_name="scored")),
            ],
            options={
                "verbose_name": "score",
                "verbose_name_plural": "scores",
                "ordering": ["pk"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("review", "criterion"), name="one_score_a_criterion"
                    )
                ],
            },
        ),
    ]
