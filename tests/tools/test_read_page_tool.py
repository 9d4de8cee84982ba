import pytest

from agents.engine.call_context import CallContext, use_context
from agents.engine.errors import ToolError
from agents.engine.material import Passage, RunMaterial
from agents.tools.web import Page, ReadPageTool

URL = "https://kyoto.example/guide"


class InRun(CallContext):
    """The context of a call in a run that has read this much."""

    def __init__(self, material):
        self.material = material

    def find_page(self, url):
        return self.material.find_page(url)

    def number_sources(self, passages):
        return self.material.number(passages)


def passages(count, chars=100):
    return [
        Passage(title="Guide", text=f"Part {n} " + "x" * chars, url=URL, ordinal=n)
        for n in range(count)
    ]


async def read(url, *, material=None, page=None, offset=0, **options):
    """Call the tool in a run; return its result and the addresses that were opened."""
    opened = []

    async def reader(address):
        opened.append(address)
        return page or Page(url=address, passages=passages(1))

    with use_context(InRun(material or RunMaterial())):
        tool = ReadPageTool(reader, **options)
        result = await tool.execute({"url": url, "offset": offset})
    return result, opened


def named_by_user(text):
    return RunMaterial.of_history([{"role": "user", "content": text}])


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("Read https://kyoto.example/guide, please.", "https://kyoto.example/guide"),
        ("See kyoto.example/guide", "https://kyoto.example/guide/"),
        ("https://kyoto.example/guideを読んでください", "https://kyoto.example/guide"),
        ("(https://kyoto.example/a_(b))", "https://kyoto.example/a_(b)"),
        ("https://kyoto.example/?q=1&p=2#top", "https://kyoto.example/?q=1&p=2"),
        ("京都「https://kyoto.example/京都」", "https://kyoto.example/京都"),
    ],
)
async def test_a_page_that_the_user_named_is_read(text, url):
    result, opened = await read(url, material=named_by_user(text))

    assert not result.is_error
    assert len(opened) == 1


@pytest.mark.parametrize(
    "url",
    [
        "https://kyoto.example/guide?data=secret",
        "https://secret.kyoto.example/guide",
        "https://kyoto.example/guide/secret",
        "https://kyoto.example:444/guide",
        "https://evil.example/",
    ],
)
async def test_an_address_that_nobody_named_is_not_opened(url):
    result, opened = await read(url, material=named_by_user(f"Read {URL}"))

    assert result.mendable
    assert opened == []


async def test_the_address_is_opened_as_it_was_named():
    # How a model writes an address could carry data.
    _result, opened = await read(
        "HTTPS://KYOTO.example/%67uide/", material=named_by_user(f"Read {URL}")
    )

    assert opened == [URL]


async def test_what_a_model_or_a_file_says_names_no_page():
    messages = [
        {"role": "assistant", "content": URL},
        {"role": "tool", "content": URL, "untrusted": "search"},
        {"role": "user", "content": "Summarize this.", "material": URL},
    ]
    _result, opened = await read(URL, material=RunMaterial.of_history(messages))

    assert opened == []


async def test_results_of_a_search_and_links_of_a_page_can_be_read():
    material = RunMaterial()
    links = ("https://kyoto.example/map",)
    listed = [
        Passage(title="Guide", url=URL, number=1, id="a"),
        Passage(title="Links", url=URL, links=links, number=2, id="b"),
    ]
    # As the run saves them, so that a resumed run knows them, too.
    material.record({"sources": [passage.to_dict() for passage in listed]})

    _result, opened = await read("https://kyoto.example/map", material=material)

    assert opened == ["https://kyoto.example/map"]


async def test_a_text_that_is_no_address_finds_no_page():
    material = RunMaterial()
    material.number([Passage(title="a", url="https://example.com/" + "a" * 3_000)])

    assert material.find_page("https://[") == ""


async def test_any_page_is_read_if_the_tool_allows_it():
    _result, opened = await read("docs.example/x?y=1", any_page=True)

    assert opened == ["https://docs.example/x?y=1"]


@pytest.mark.parametrize("url", ["file:///etc/passwd", "https://user:pw@a.example/", ""])
async def test_only_addresses_of_pages_are_opened(url):
    result, opened = await read(url, any_page=True)

    assert result.is_error
    assert opened == []


async def test_a_long_page_is_read_in_parts():
    page = Page(url=URL, passages=passages(50, chars=1_000))

    first, _opened = await read(URL, any_page=True, page=page)
    rest, _opened = await read(URL, any_page=True, page=page, offset=11)
    after, _opened = await read(URL, any_page=True, page=page, offset=50)

    assert len(first.sources) == 11
    assert "offset 11" in first.text
    assert rest.sources[0].text.startswith("Part 11 ")
    assert after.mendable


async def test_a_page_s_links_can_be_cited_and_followed():
    page = Page(url=URL, passages=passages(1), links=[("Map", "https://kyoto.example/map")])

    result, _opened = await read(URL, any_page=True, page=page)

    assert result.output.endswith(
        "[2] Guide › Links (https://kyoto.example/guide)\n- Map: https://kyoto.example/map"
    )


async def test_why_a_page_cannot_be_read_is_said():
    async def reader(address):
        raise ToolError("The server returned status 404.")

    result = await ReadPageTool(reader, any_page=True).execute(URL)

    assert result.error == "The server returned status 404."
