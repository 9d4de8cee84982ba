"""Web processes, each on a port, and workers; they end together with this process."""

import os
import subprocess
import sys

COMMAND = [sys.executable, "manage.py"]


def start(ports: list[str], workers: int) -> list[subprocess.Popen]:
    subprocess.run([*COMMAND, "setup"], check=True)
    webs = [
        subprocess.Popen([*COMMAND, "serve"], env=os.environ | {"PORT": port}) for port in ports
    ]
    return webs + [subprocess.Popen([*COMMAND, "worker"]) for _ in range(workers)]


if __name__ == "__main__":
    for process in start(sys.argv[2:], int(sys.argv[1])):
        process.wait()
