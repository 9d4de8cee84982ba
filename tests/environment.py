"""The tests' own world: the demo model at full speed, and a folder that goes with them.

Loaded with `-p`, because pytest-django reads the settings before any conftest.
"""

import atexit
import os
import shutil
import tempfile

_folder = tempfile.mkdtemp(prefix="ashiato-test-")
atexit.register(shutil.rmtree, _folder, ignore_errors=True)

for _name in [name for name in os.environ if name.startswith("ASHIATO_")]:
    del os.environ[_name]
os.environ |= {
    "ASHIATO_DATA": _folder,
    "ASHIATO_MODEL": "demo",
    "ASHIATO_DEMO_DELAY": "0",
    "ASHIATO_MODEL_RETRIES": "0",
    "ASHIATO_ORIGINS": "http://testserver",
    "ASHIATO_SECRET_KEY": "for-tests-only",
}
