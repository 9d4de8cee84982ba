"""Registers the pages of alerts with the console."""

from .pages.channel_admin import AlertChannelAdmin
from .pages.delivery_admin import DeliveryAdmin
from .pages.rule_admin import AlertRuleAdmin
from .pages.summary_admin import SummaryScheduleAdmin

__all__ = ["AlertChannelAdmin", "AlertRuleAdmin", "DeliveryAdmin", "SummaryScheduleAdmin"]
