"""Sign-ins to servers, in the user's config folder, readable by that user alone."""

import os
import tempfile
from pathlib import Path

from pydantic import BaseModel, ValidationError

from project import folders

from .errors import UNUSABLE, CommandFailed

FILE_NAME = "servers.json"


class SignIn(BaseModel):
    """What proves who we are: an API key, or a token that can be renewed."""

    token: str
    refresh_token: str = ""
    token_endpoint: str = ""
    client_id: str = ""


class Profiles(BaseModel):
    default: str = ""
    servers: dict[str, SignIn] = {}


def path() -> Path:
    return folders.config_folder() / FILE_NAME


def load() -> Profiles:
    try:
        text = path().read_text()
    except FileNotFoundError:
        return Profiles()
    except OSError as error:
        raise CommandFailed(f"Can't read {path()}: {error.strerror}.", UNUSABLE) from error
    try:
        return Profiles.model_validate_json(text)
    except ValidationError as error:
        raise CommandFailed(
            f"{path()} is damaged. Delete it and sign in again with “ashiato login”.", UNUSABLE
        ) from error


def save(profiles: Profiles) -> None:
    """Write the file as a whole, so that a crash leaves the old one."""
    target = path()
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Created with mode 0600.
        descriptor, draft = tempfile.mkstemp(dir=target.parent, prefix=f"{FILE_NAME}.")
        with os.fdopen(descriptor, "w") as file:
            file.write(profiles.model_dump_json(indent=1))
        os.replace(draft, target)
    except OSError as error:
        raise CommandFailed(f"Can't write {target}: {error.strerror}.", UNUSABLE) from error


def remember(url: str, sign_in: SignIn) -> None:
    """Save a sign-in, and use this server from now on."""
    profiles = load()
    profiles.servers[url] = sign_in
    profiles.default = url
    save(profiles)


def renew(url: str, sign_in: SignIn) -> None:
    """Save the renewed token of a server."""
    profiles = load()
    profiles.servers[url] = sign_in
    save(profiles)


def forget(url: str) -> SignIn | None:
    """Remove a server's sign-in, and return it."""
    profiles = load()
    sign_in = profiles.servers.pop(url, None)
    if profiles.default == url:
        profiles.default = next(iter(profiles.servers), "")
    save(profiles)
    return sign_in
