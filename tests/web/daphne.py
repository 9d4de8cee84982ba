"""Starts a program that serves with Daphne."""

from tests.bench.processes import child, free_port, wait_for_port


def run_server(program, log):
    port = free_port()
    environment = {"DJANGO_SETTINGS_MODULE": "project.settings", "PYTHONPATH": "."}
    code = f"import django; django.setup()\n{program}"
    with child("-c", code, port, env=environment, log=log) as process:
        wait_for_port(port, process, log)
        process.port = port
        yield process
    assert "Traceback" not in log.read_text()
