"""The files in `deploy/`: what they pass to the product exists, and they fit each other."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from django.core.files.storage import storages

from agents.knowledge.files import folder_identity
from agents.models import PeriodicJob
from project.environment import Environment

DEPLOY = Path("deploy")
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
UNITS = sorted(DEPLOY.glob("*.service"))
OURS = ("setup", "web", "worker")


@pytest.mark.parametrize("name", ["compose.yaml", "example.env", *(u.name for u in UNITS)])
def test_every_variable_that_is_passed_exists(name):
    passed = set(re.findall(r"\bASHIATO_[A-Z0-9_]+", (DEPLOY / name).read_text()))
    assert passed <= {f"ASHIATO_{name.upper()}" for name in Environment.model_fields}


def test_every_variable_of_the_example_is_passed_on():
    example = set(re.findall(r"^#? ?([A-Z0-9_]+)=", (DEPLOY / "example.env").read_text(), re.M))
    used = set(re.findall(r"\$\{([A-Z0-9_]+)", (DEPLOY / "compose.yaml").read_text()))
    assert example <= used


@pytest.mark.parametrize("name", OURS)
def test_all_processes_share_the_data_folder_and_the_variables(name):
    service = COMPOSE["services"][name]
    assert service["volumes"] == ["data:/data"]
    assert service["environment"] == COMPOSE["x-ashiato"]["environment"]
    assert "ASHIATO_DATA=/data" in (DEPLOY / "Dockerfile").read_text()


def test_every_volume_and_dependency_is_declared():
    for service in COMPOSE["services"].values():
        volumes = [volume.partition(":")[0] for volume in service.get("volumes", [])]
        assert {name for name in volumes if not name.startswith(".")} <= set(COMPOSE["volumes"])
        assert set(service.get("depends_on", ())) <= set(COMPOSE["services"])


def test_the_image_has_what_the_compose_file_needs():
    image = (DEPLOY / "Dockerfile").read_text()
    server = COMPOSE["services"]["postgres"]["image"]
    assert f"postgresql-client-{re.search(r'[0-9]+', server)[0]} " in image
    copied = re.findall(r"^COPY (.+) \S+$", image, re.M)
    assert all(Path(source).exists() for line in copied for source in line.split())
    installed = re.findall(r"-r (requirements-\w+\.lock)", image)
    assert set(installed) >= {"requirements-scale.lock", "requirements-s3.lock"}


def test_commands_of_the_processes_exist():
    commands = [COMPOSE["services"][name].get("command", "") for name in OURS]
    commands += [line for unit in UNITS for line in unit.read_text().splitlines()]
    names = re.findall(r"manage\.py (\w+)", "\n".join(commands))
    assert set(names) == {"setup", "serve", "worker"}
    assert all(Path(f"agents/management/commands/{name}.py").exists() for name in names)


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs systemd")
def test_systemd_accepts_the_units(tmp_path):
    for unit in UNITS:
        python = "/opt/ashiato/.venv/bin/python"  # is installed by the administrator
        (tmp_path / unit.name).write_text(unit.read_text().replace(python, "/bin/true"))
    paths = [str(tmp_path / unit.name) for unit in UNITS]
    result = subprocess.run(
        ["systemd-analyze", "verify", *paths], capture_output=True, text=True, check=False
    )
    assert [line for line in result.stderr.splitlines() if str(tmp_path) in line] == []


def use_folder(settings, folder: Path) -> None:
    options = {**settings.STORAGES["files"], "OPTIONS": {"location": folder}}
    settings.STORAGES = {**settings.STORAGES, "files": options}


@pytest.mark.django_db
def test_a_process_with_another_data_folder_says_so(settings, tmp_path):
    use_folder(settings, tmp_path / "first")
    assert folder_identity.find_problem() == ""
    assert folder_identity.find_problem() == ""

    use_folder(settings, tmp_path / "second")
    assert "ASHIATO_DATA" in folder_identity.find_problem()

    folder_identity.mark()  # as a restored backup does
    assert folder_identity.find_problem() == ""
    assert PeriodicJob.objects.filter(name=folder_identity.NAME).count() == 1
    assert Path(storages["files"].location, folder_identity.MARKER).exists()
