"""Django's PostgreSQL backend, which retries connecting for a while, e.g. during a restart."""

from time import sleep
from typing import Any

from django.db.backends.postgresql import base

RETRY_SECONDS = (0.1, 0.2, 0.4, 0.8, 1.5, 2, 2, 2)


class DatabaseWrapper(base.DatabaseWrapper):
    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        for pause in RETRY_SECONDS:
            try:
                return super().get_new_connection(conn_params)
            except self.Database.OperationalError:
                sleep(pause)
        return super().get_new_connection(conn_params)
