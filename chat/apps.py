from django.apps import AppConfig
from django.db.models.signals import post_delete, pre_delete
from django.utils.translation import gettext_lazy as _


class ChatConfig(AppConfig):
    name = "chat"
    verbose_name = _("Chat")

    def ready(self) -> None:
        from agents import runs
        from agents.db.jobs import register as register_job
        from agents.knowledge.files import store
        from agents.metering.budgets import recorded
        from agents.metering.figures import facts
        from agents.review.run_details import turns
        from agents.web.workflows import automatic
        from chat import messages
        from chat.api import push_deliveries  # noqa: F401  (has a periodic job)
        from chat.attachments import binding, reading
        from chat.embedding import retention as visitors  # noqa: F401  (has a periodic job)
        from chat.live import run_news
        from chat.messages import automatic_chats
        from chat.models import Attachment, ChatSession, Message
        from chat.people_data import retention  # noqa: F401  (has periodic jobs)
        from chat.prompts import deleted_prompts  # noqa: F401  (registers what can be restored)
        from chat.sessions import (
            branches,
            deletion,
            message_deletion,  # noqa: F401  (registers what can be restored)
            temporary,  # noqa: F401  (has periodic jobs)
            titles,
            usage,
        )
        from chat.transfer.imports import jobs

        turns.register(branches.run_tree)
        facts.regenerations.append(branches.regenerated_runs)
        automatic.use_chats(automatic_chats.start)
        runs.on_finished(messages.answer_waiting)
        runs.on_finished(run_news.announce)
        register_job(jobs.KIND, jobs.work_claimed)
        recorded.sources.extend([titles.TITLE_USAGE, usage.MESSAGE_USAGE])
        pre_delete.connect(usage.keep_messages, sender=Message)
        store.uploads.append(binding.stored_for)
        pre_delete.connect(reading.forget_table, sender=Attachment)
        post_delete.connect(reading.forget_attachment, sender=Attachment)
        post_delete.connect(reading.forget_chat, sender=ChatSession)
        post_delete.connect(deletion.forget_outside_text, sender=ChatSession)
        pre_delete.connect(titles.keep_usage, sender=ChatSession)
