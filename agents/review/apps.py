from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ReviewConfig(AppConfig):
    name = "agents.review"
    verbose_name = _("Review")

    def ready(self) -> None:
        # These need the models, which are only loaded now.
        from django.contrib.auth import get_user_model
        from django.db.models.signals import post_delete, post_save, pre_delete

        from agents.metering.figures import facts

        from .annotations import feedback_figures, queues
        from .models import Rating, Review

        facts.feedback.append(feedback_figures.count_feedback)
        for model in (Rating, Review):
            post_save.connect(feedback_figures.on_feedback, sender=model)
            post_delete.connect(feedback_figures.on_feedback, sender=model)
        pre_delete.connect(queues.keep_closed, sender=get_user_model())
