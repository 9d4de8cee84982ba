"""Identity providers: sign-in and sign-out in a browser."""

import json

from tests.compat.packages import ROOT
from tests.compat.rows import row
from tests.compat.suite import run_tests

LOCK = ROOT / "tests" / "browser" / "oidc_provider" / "package-lock.json"
PACKAGE = json.loads(LOCK.read_text())["packages"]["node_modules/oidc-provider"]


@row(
    "Identity providers",
    "oidc-provider with default settings",
    PACKAGE["version"],
    real="the provider, Ashiato, a browser",
)
async def check_oidc_provider() -> str:
    passed = await run_tests(
        "tests/browser/test_identity_provider.py", "-c", "tests/browser/pytest.ini"
    )
    return f"sign-in with name, email address and role, refusals and sign-out ({passed})"
