"""Builds the container image without a container engine: `python -m tests.image`, as root.

It carries out the steps of `deploy/Dockerfile` in a clean Debian root and starts its command.
Needs debootstrap. The root has Debian's own Python, in a virtual environment.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

BUILD_SECONDS = 1200
START_SECONDS = 120
PORT = "8765"
PACKAGES = "python3,python3-venv,ca-certificates"
# How this machine reaches the packages.
FROM_HERE = ("/etc/resolv.conf", "/etc/ssl/certs/ca-certificates.crt")
PASSED = re.compile(r"(?i)(https?|no)_proxy|(pip|ssl)_\w+|requests_ca_bundle")


class Image:
    """A root folder, with the environment and the user of the steps so far."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = "/"
        self.user = "root"
        self.environment = {name: v for name, v in os.environ.items() if PASSED.fullmatch(name)}
        self.environment["PATH"] = "/venv/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"

    def step(self, instruction: str, rest: str) -> list[str] | None:
        """Carry out a step; return the image's command if this names it."""
        print(instruction, rest, flush=True)
        if instruction == "FROM":
            self.start_from(rest.rpartition("-")[2])
        elif instruction == "ENV":
            self.environment |= dict(pair.split("=", 1) for pair in shlex.split(rest))
        elif instruction == "WORKDIR":
            self.folder = rest
            self.path(rest).mkdir(parents=True, exist_ok=True)
        elif instruction == "COPY":
            self.copy(*rest.split())
        elif instruction == "RUN":
            subprocess.run(self.command(["sh", "-ec", rest]), check=True, timeout=BUILD_SECONDS)
        elif instruction == "USER":
            self.user = rest
        elif instruction == "CMD":
            return json.loads(rest)
        elif instruction not in {"VOLUME", "EXPOSE", "STOPSIGNAL"}:
            raise ValueError(f"Unknown instruction: {instruction}")
        return None

    def start_from(self, release: str) -> None:
        create = [
            "debootstrap",
            "--variant=minbase",
            f"--include={PACKAGES}",
            release,
            self.root,
        ]
        subprocess.run(create, check=True, timeout=BUILD_SECONDS, stdout=subprocess.DEVNULL)
        for name in FROM_HERE:
            shutil.copy(name, self.path(name))
        subprocess.run(
            self.command(["python3", "-m", "venv", "/venv"]), check=True, timeout=300
        )

    def copy(self, *names: str) -> None:
        *sources, target = names
        for source in map(Path, sources):
            place = self.path(self.folder, target)
            if source.is_dir():
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(source, place, ignore=ignored, dirs_exist_ok=True)
            else:
                place.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, place)

    def path(self, *parts: str) -> Path:
        return self.root.joinpath(*(part.lstrip("/") for part in parts))

    def command(self, words: list[str]) -> list[str]:
        variables = [f"{name}={value}" for name, value in self.environment.items()]
        inside = f"cd {shlex.quote(self.folder)} && exec {shlex.join(words)}"
        chroot = ["chroot", f"--userspec={self.user}", str(self.root)]
        return [*chroot, "env", "-i", *variables, "sh", "-c", inside]


def instructions(text: str) -> Iterator[tuple[str, str]]:
    for line in re.sub(r"\\\n", " ", text).splitlines():
        if line and not line.startswith("#"):
            instruction, _, rest = line.partition(" ")
            yield instruction, rest


@contextmanager
def mounted(root: Path) -> Iterator[None]:
    """Give the root what every container has: /proc and /dev."""
    subprocess.run(["mount", "-t", "proc", "proc", root / "proc"], check=True)
    subprocess.run(["mount", "--rbind", "/dev", root / "dev"], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", root / "proc", root / "dev"], check=False)


def start(image: Image, command: list[str]) -> None:
    """Start the image's command, wait until it serves, and stop it."""
    image.environment |= {"ASHIATO_PORT": PORT, "ASHIATO_MODEL": "demo"}
    with mounted(image.root), subprocess.Popen(image.command(command)) as process:
        try:
            for _ in range(START_SECONDS):
                if process.poll() is not None:
                    sys.exit(f"The image's command ended with {process.returncode}.")
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/healthz") as answer:
                        print("GET /healthz:", answer.status, answer.read(200).decode())
                    return
                except OSError:
                    time.sleep(1)
            sys.exit("The image's command doesn't respond.")
        finally:
            process.terminate()


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="ashiato-image-"))
    folder.chmod(0o755)  # other users of the image look into it
    try:
        image = Image(folder)
        command = None
        for instruction, rest in instructions(Path("deploy/Dockerfile").read_text()):
            command = image.step(instruction, rest) or command
        assert command is not None
        start(image, command)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
