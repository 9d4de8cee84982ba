"""Push notifications: configurations of a task as the protocol has them."""

from uuid import uuid4

from a2a.types import AuthenticationInfo, TaskPushNotificationConfig
from a2a.utils.errors import InvalidParamsError
from django.utils.translation import gettext as _

from agents.engine.errors import AgentError
from agents.models import PushTarget, Run
from agents.models.runs.push_targets import NAME_CHARS, SCHEME_CHARS
from agents.tools.egress import validate_url

MAX_TARGETS = 10
MAX_URL_CHARS = 2_000
MAX_SECRET_CHARS = 4_000


def save(run: Run, config: TaskPushNotificationConfig) -> TaskPushNotificationConfig:
    """Save where to tell of this run, instead of what has the same id."""
    name = config.id or uuid4().hex
    authentication = config.authentication
    is_short = (
        len(name) <= NAME_CHARS
        and len(config.url) <= MAX_URL_CHARS
        and len(authentication.scheme) <= SCHEME_CHARS
        and max(len(config.token), len(authentication.credentials)) <= MAX_SECRET_CHARS
    )
    headers = f"{config.token}{authentication.scheme}{authentication.credentials}"
    if not is_short or not headers.isprintable():
        raise InvalidParamsError(_("The push notification isn’t valid."))
    try:
        validate_url(config.url)
    except AgentError as reason:
        raise InvalidParamsError(str(reason)) from reason
    if run.push_targets.exclude(name=name).count() >= MAX_TARGETS:
        sentence = _("A task can have at most %(most)d push notifications.")
        raise InvalidParamsError(sentence % {"most": MAX_TARGETS})
    target, _is_new = PushTarget.objects.update_or_create(
        run=run,
        name=name,
        defaults={
            "url": config.url,
            "token": config.token,
            "scheme": authentication.scheme,
            "credentials": authentication.credentials,
            # The program has just seen it work.
            "sent_status": Run.Status.RUNNING,
            "attempts": 0,
            "next_at": None,
        },
    )
    return _config(target)


def configs_of(run: Run) -> list[TaskPushNotificationConfig]:
    return [_config(target) for target in run.push_targets.all()]


def _config(target: PushTarget) -> TaskPushNotificationConfig:
    """Return the configuration without what proves anything to the receiver."""
    config = TaskPushNotificationConfig(
        id=target.name, task_id=str(target.run_id), url=target.url.reveal()
    )
    if target.scheme:
        config.authentication.CopyFrom(AuthenticationInfo(scheme=target.scheme))
    return config
