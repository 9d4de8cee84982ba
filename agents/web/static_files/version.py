"""The version of all static files, which is part of their URLs. The settings use it."""

import hashlib
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from wsgiref.headers import Headers

PACKAGES = ("django", "django-htmx", "django-ninja")
FOREVER = "public, max-age=31536000, immutable"


def compute_version(folder: Path) -> str:
    """Return a digest of the product's static files and the versions of those of packages."""
    digest = hashlib.blake2b(digest_size=6)
    for package in PACKAGES:
        digest.update(version(package).encode())
    # Vendored packages have 9 MB; this file has their versions.
    digest.update((folder / "vendor" / "README.md").read_bytes())
    for path in sorted(folder.glob("[!v]*/**/*.*")):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(folder)} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def package_folder(package: str) -> Path:
    """Return where a package is, without importing it."""
    spec = find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def cache_forever(headers: Headers, path: str, url: str) -> None:
    """Set the header of files whose URL has their version."""
    headers["Cache-Control"] = FOREVER
