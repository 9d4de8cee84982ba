"""Bundles of static files: what they contain, who can have them built, how they are cached."""

import gzip
import html
import re
import shutil
import subprocess
import tempfile
from graphlib import TopologicalSorter
from pathlib import Path
from posixpath import join, normpath

import pytest
from django.contrib.staticfiles import finders
from django.template import Context, Template
from django.templatetags.static import static
from django.test import AsyncClient

from agents.web.static_files import bundles
from agents.web.static_files.script_modules import (
    EXPORT,
    IMPORT,
    UnsupportedModule,
    imported_modules,
    join_modules,
    module_function,
)
from agents.web.static_files.version import compute_version

STATIC = Path(__file__).parents[2] / "static"
MODULES = {
    path.relative_to(STATIC).as_posix(): path.read_text()
    for path in (STATIC / "js").rglob("*.js")
    if "sandbox" not in path.parts and path.name != "theme.js"
}
HEAD = """{% load ashiato django_htmx static %}{% bundled %}
<link rel="stylesheet" href="{% static 'css/base.css' %}">
<script type="module" src="{% static 'js/page.js' %}"></script>
<meta name="x">{% htmx_script extensions="hx-ws" %}
<link rel="stylesheet" href="{% static 'css/console_form.css' %}">
<script type="module" src="{% static 'js/console.js' %}"></script>{% endbundled %}"""


def urls(rendered: str) -> list[str]:
    return [html.unescape(url) for url in re.findall(r'(?:href|src)="([^"]+)"', rendered)]


def run_script(script: str, *options: str) -> str:
    """Run an ES module and return its output."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node.js isn't installed (Debian: apt-get install nodejs).")
    with tempfile.NamedTemporaryFile("w", suffix=".mjs") as file:
        file.write(script)
        file.flush()
        command = [node, *options, file.name]
        run = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.fixture
def head() -> str:
    return Template(HEAD).render(Context())


def test_every_module_can_be_joined():
    exported = {name: {each for _, each in EXPORT.findall(MODULES[name])} for name in MODULES}

    for name, source in MODULES.items():
        assert module_function(name, source).startswith(f'"{name}"() {{')
        imports = [names for names, _ in IMPORT.findall(source)]
        for names, other in zip(imports, imported_modules(name, source), strict=True):
            imported = {each.split(" as ")[0].strip() for each in names.split(",")} - {""}
            assert imported <= exported[other], (name, other)


def test_all_modules_joined_are_valid():
    script = join_modules(MODULES, MODULES.__getitem__)

    assert run_script(script, "--check") == ""


def test_modules_import_each_other_one_way():
    graph = {name: imported_modules(name, source) for name, source in MODULES.items()}

    TopologicalSorter(graph).prepare()  # raises for a cycle


@pytest.mark.parametrize(
    "source",
    [
        "export let count = 0;",
        "export default 1;",
        'export { a } from "./a.js";',
        'import a from "./a.js";',
        'import * as a from "./a.js";',
        'import { a } from "package";',
        'import { a } from "./a.js"; const b = a;',
        "const a = 1;\nexport { a };",
        "await start();",
    ],
)
def test_a_module_that_would_be_joined_wrongly_is_rejected(source):
    with pytest.raises(UnsupportedModule, match=r"js/x\.js"):
        module_function("js/x.js", source)


def test_joined_modules_run_once_and_in_order_even_if_one_fails():
    sources = {
        "js/first.js": 'import { log as print } from "./parts/log.js";\nprint("first");',
        "js/broken.js": 'throw new Error("broken");',
        "js/last.js": 'import "./first.js";\nimport { log, COUNT } from "./parts/log.js";\n'
        "log(`last ${COUNT}`);",
        "js/parts/log.js": 'import {\n  prefix,\n} from "../prefix.js";\n'
        "export function log(text) {\n  console.log(prefix(text));\n}\nexport const COUNT = 2;",
        "js/prefix.js": "export const prefix = (text) => `> ${text}`; // one line",
    }
    names = ["js/first.js", "js/broken.js", "js/last.js"]

    script = "globalThis.reportError = (error) => console.log(error.message);\n"
    script += join_modules(names, sources.__getitem__)
    assert run_script(script) == "> first\nbroken\n> last 2\n"


async def test_a_page_loads_one_file_of_each_kind_with_all_that_it_names(head):
    client = AsyncClient()
    styles, scripts, modules = urls(head)

    texts = [(await client.get(url)).content.decode() for url in (styles, scripts, modules)]

    assert '<meta name="x">' in head
    assert "@layer django" in texts[0]
    assert texts[0].index("@import") < texts[0].index("{")
    assert texts[1].index("htmx=function") < texts[1].index("ws-connect")
    assert 'for (const name of ["js/page.js", "js/console.js"])' in texts[2]


async def test_a_bundle_is_compressed_and_cached_for_good(head):
    client = AsyncClient()

    for url in urls(head):
        plain = await client.get(url)
        packed = await client.get(url, headers={"Accept-Encoding": "gzip, br"})
        assert gzip.decompress(packed.content) == plain.content
        assert packed.headers["Content-Encoding"] == "gzip"
        assert "Content-Encoding" not in plain.headers
        assert "immutable" in packed.headers["Cache-Control"]
        assert packed.headers["Vary"] == "Accept-Encoding"
        assert packed.headers["X-Content-Type-Options"] == "nosniff"


async def test_files_that_are_loaded_by_themselves_are_compressed_too(settings):
    for name in ("vendor/katex/katex.min.js", "js/theme.js", "vendor/katex/katex.min.css"):
        url = f"{settings.STATIC_URL}{name}"
        packed = await AsyncClient().get(url, headers={"Accept-Encoding": "gzip"})
        assert gzip.decompress(packed.content) == (STATIC / name).read_bytes()
        assert "immutable" in packed.headers["Cache-Control"]


@pytest.mark.parametrize("name", ["vendor/mermaid/mermaid.min.js", "js/page.js"])
async def test_a_client_that_cannot_unpack_gets_the_file_from_disk(settings, monkeypatch, name):
    # A large one takes 40 ms of the event loop.
    monkeypatch.setattr(gzip, "decompress", None)
    url = f"{settings.STATIC_URL}{name}"

    part = await AsyncClient().get(url, headers={"Range": "bytes=0-9"})
    head = await AsyncClient().head(url)

    assert part.status_code == 206
    assert int(head.headers["Content-Length"]) == (STATIC / name).stat().st_size
    for response in (part, head):
        assert "immutable" in response.headers["Cache-Control"]
        assert response.headers["Vary"] == "Accept-Encoding"


async def test_static_files_can_only_be_read(settings):
    for name in ("js/page.js", "img/favicon.svg"):
        assert (await AsyncClient().post(f"{settings.STATIC_URL}{name}")).status_code == 405


def test_urls_in_the_stylesheets_of_packages_still_lead_to_their_files():
    joined = bundles.join_styles(["css/base.css", "admin/css/forms.css"])

    urls = re.findall(r"""\burl\(["']?([^"')]+)""", joined)
    files = [normpath(join("css", url)) for url in urls if not url.startswith("data:")]
    assert {"admin/css/widgets.css", "admin/img/search.svg"} <= {*files}
    assert all(map(finders.find, files))


async def test_nobody_else_can_have_bundles_built(head):
    styles = urls(head)[0]

    for url in (
        styles.replace("base.css", "chat.css"),
        re.sub("key=.*", "key=", styles),
        styles.partition("?")[0],
    ):
        assert (await AsyncClient().get(url)).status_code == 404, url


def head_of(*names: str) -> str:
    return "".join(f'<link rel="stylesheet" href="{static(name)}">' for name in names)


async def test_a_page_of_another_version_gets_what_this_one_has(settings, head):
    client, styles = AsyncClient(), urls(head)[0]
    single = f"{settings.STATIC_URL}js/page.js"

    older = await client.get(re.sub("/[0-9a-f]{12}/", "/0123456789ab/", styles))
    assert older.content == (await client.get(styles)).content
    newer = bundles.bundle_elements(head_of("css/base.css", "css/newer.css"))
    assert (await client.get(urls(newer)[0])).status_code == 404
    assert older.headers["Cache-Control"] == "no-cache"
    for url in ("/static/0123456789ab/js/page.js", "/static/js/page.js"):
        assert (await client.get(url)).headers["Location"] == single
    assert "immutable" in (await client.get(single)).headers["Cache-Control"]
    assert (await client.get(f"{single}x")).status_code == 404


def test_a_developer_gets_the_files_themselves(settings):
    settings.DEBUG = True

    loaded = urls(Template(HEAD).render(Context()))

    assert f"{settings.STATIC_URL}js/page.js" in loaded
    assert not any("?" in url for url in loaded)


def test_the_version_changes_with_a_file(tmp_path):
    folder = tmp_path / "static"
    for name in ("js", "css", "img"):
        shutil.copytree(STATIC / name, folder / name)
    (folder / "vendor").mkdir()
    shutil.copy(STATIC / "vendor" / "README.md", folder / "vendor")
    before = compute_version(folder)
    assert before == compute_version(STATIC)

    (folder / "js" / "page.js").write_text("changed")

    assert compute_version(folder) != before


def test_a_missing_file_is_an_error_with_its_name():
    with pytest.raises(FileNotFoundError, match=r"css/missing\.css"):
        bundles.join_styles(["css/missing.css"])
