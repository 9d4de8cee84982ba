"""Where files are: templates and the like, the user's data and the user's sign-ins."""

import os
import sys
from pathlib import Path

PACKAGE_DIR = Path(__file__).resolve().parent
# A wheel has in there what a checkout has beside its packages (pyproject.toml).
RESOURCES_DIR = PACKAGE_DIR / "resources"
IS_INSTALLED = RESOURCES_DIR.is_dir()
BASE_DIR = RESOURCES_DIR if IS_INSTALLED else PACKAGE_DIR.parent


def data_folder() -> Path:
    """Return where the database and files are, unless ASHIATO_DATA says otherwise."""
    if not IS_INSTALLED:
        return BASE_DIR / "var"
    return _user_folder("XDG_DATA_HOME", ".local/share")


def config_folder() -> Path:
    """Return where the command line keeps its sign-ins."""
    return _user_folder("XDG_CONFIG_HOME", ".config")


def _user_folder(variable: str, default: str) -> Path:
    home = Path.home()
    if sys.platform == "darwin":
        return home / "Library" / "Application Support" / "ashiato"
    configured = Path(os.environ.get(variable, ""))
    # The specification has relative paths ignored.
    parent = configured if configured.is_absolute() else home / default
    return parent / "ashiato"
