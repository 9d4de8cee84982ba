"""The prompt library: who sees what, variables, and what happens to bad input."""

import pytest
from django.contrib.auth.models import Group, Permission
from django.urls import reverse

from chat.models import Prompt
from chat.prompts import prompt_text
from tests.sampling import one_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def person(django_user_model):
    return django_user_model.objects.create_user("ken")


@pytest.fixture
def other(django_user_model):
    return django_user_model.objects.create_user("mia")


@pytest.fixture
def browser(person_client):
    return person_client


def make(user, name="summary", sharing="private", groups=(), text="Summarize this."):
    prompt = Prompt.objects.create(
        user=user, name=name, title=name.title(), text=text, sharing=sharing
    )
    prompt.groups.set(groups)
    return prompt


def fields(**more):
    return {"title": "Weekly mail", "name": "mail", "text": "Write to {{name}}.", **more}


def test_a_text_is_split_at_its_variables():
    parsed = prompt_text.parse(
        "Dear {{ name }}, {{tone: formal | casual}}: {{topic: tea}} {{name}}"
    )
    assert parsed.pieces == ["Dear ", 0, ", ", 1, ": ", 2, " ", 0]
    assert [(v.name, v.default, v.options) for v in parsed.variables] == [
        ("name", "", ()),
        ("tone", "formal", ("formal", "casual")),
        ("topic", "tea", ()),
    ]


def test_japanese_names_and_full_width_signs_are_understood():
    parsed = prompt_text.parse("{{宛先}}へ {{口調：丁寧｜カジュアル}}")
    assert [v.name for v in parsed.variables] == ["宛先", "口調"]
    assert parsed.variables[1].options == ("丁寧", "カジュアル")


@pytest.mark.parametrize(
    "text", ["{{}}", "{{ }}", "{ {a} }", "{{a", "}}{{", "{{{{}}}}", "{{:a}}"]
)
def test_braces_that_are_no_variable_stay_text(text):
    assert prompt_text.parse(text).variables == []
    assert prompt_text.parse(text).pieces == [text]


def test_hostile_braces_take_linear_time():
    assert prompt_text.parse("{{" * 10_000).variables == []
    assert prompt_text.parse("{{" + " " * 19_000 + "}}").variables == []
    assert prompt_text.parse("{{a" + " :" * 9_000).variables == []


def test_dates_and_the_name_are_filled_in(browser, person):
    prompt = make(person, text="{{user_name}}: {{current_date}} {{x}}")
    about = browser.get(reverse("chat:prompt_parts", args=[prompt.pk])).json()
    assert about["pieces"][0] == "ken"
    assert [v["name"] for v in about["variables"]] == ["x"]


def test_own_and_shared_prompts_are_listed_and_private_ones_of_others_are_not(
    browser, person, other
):
    team, secret = Group.objects.create(name="Sales"), Group.objects.create(name="Board")
    person.groups.add(team)
    make(person, "mine")
    make(other, "private-one")
    make(other, "all", "everyone")
    make(other, "team", "groups", [team])
    make(other, "board", "groups", [secret])
    names = {
        p["name"] for p in browser.get(reverse("chat:prompt_completions")).json()["prompts"]
    }
    assert names == {"mine", "all", "team"}
    page = browser.get(reverse("chat:prompts")).text
    assert [name in page for name in ("/team", "/board", "/private-one")] == [
        True,
        False,
        False,
    ]


def test_a_group_that_is_deleted_leaves_its_prompts_private(browser, person, other):
    team = Group.objects.create(name="Sales")
    person.groups.add(team)
    prompt = make(other, "team", "groups", [team])
    team.delete()
    assert browser.get(reverse("chat:prompt_parts", args=[prompt.pk])).status_code == 404


def restore(browser, prompt):
    url = f"{reverse('people:restore_deleted')}?items=prompt:{prompt.pk}"
    return browser.post(url, follow=True)


def test_the_name_of_a_deleted_prompt_is_free(browser, person):
    prompt = make(person, "mail")
    browser.post(reverse("chat:delete_prompt", args=[prompt.pk]))
    make(person, "mail")

    restore(browser, prompt)

    names = Prompt.objects.for_user(person).values_list("name", flat=True)
    assert set(names) == {"mail", "mail-2"}


def test_a_prompt_is_created_found_edited_duplicated_deleted_and_restored(browser, person):
    browser.post(reverse("chat:new_prompt"), fields(name="", text="A\r\nB {{x}}"))
    prompt = Prompt.objects.get()
    assert (prompt.user, prompt.name, prompt.text) == (person, "weekly-mail", "A\nB {{x}}")
    found = browser.get(reverse("chat:prompts"), {"q": "/weekly b"}).text
    assert "Weekly mail" in found
    assert "No prompts match" in browser.get("/prompts/?q=nowhere").text

    edit = reverse("chat:edit_prompt", args=[prompt.pk])
    assert "B {{x}}" in browser.get(edit).text
    browser.post(edit, fields(name="／週報", title="Report"))
    prompt.refresh_from_db()
    assert (prompt.name, prompt.title) == ("週報", "Report")

    browser.post(reverse("chat:duplicate_prompt", args=[prompt.pk]))
    copy = Prompt.objects.exclude(pk=prompt.pk).get()
    assert (copy.name, copy.title, copy.text) == ("週報-2", "Copy of Report", prompt.text)

    browser.post(reverse("chat:delete_prompt", args=[prompt.pk]))
    assert list(Prompt.objects.for_user(person)) == [copy]
    assert "“Report” was deleted." in browser.get(reverse("chat:prompts")).text
    restore(browser, prompt)
    assert Prompt.objects.for_user(person).filter(name="週報", title="Report").exists()


@pytest.mark.parametrize(
    ("given", "sentence"),
    one_in(
        4,
        [
            ({"title": " "}, "Enter a title."),
            ({"text": "\n"}, "Enter the text of the prompt."),
            ({"name": "a b/c"}, "Use only letters"),
            ({"name": "workflow"}, "/workflow is a command."),
            ({"text": "a" * 20_001}, "The limit is 20,000."),
            ({"text": "".join(f"{{{{v{n}}}}}" for n in range(21))}, "The limit is 20."),
            ({"text": "{{" + "v" * 61 + "}}"}, "can have 60 characters"),
            ({"sharing": "everyone"}, "Only administrators can share with everyone."),
            ({"sharing": "groups"}, "Select at least one group."),
        ],
    ),
)
def test_a_bad_prompt_is_not_saved_and_its_text_stays(browser, given, sentence):
    answer = browser.post(reverse("chat:new_prompt"), fields(**given))
    assert answer.status_code == 422
    page = answer.text
    assert sentence in page
    assert given.get("title", "Weekly mail") in page
    assert not Prompt.objects.exists()


def test_two_prompts_of_a_person_have_different_names(browser, person, other):
    make(person, "mail")
    make(other, "mail")
    page = browser.post(reverse("chat:new_prompt"), fields()).text
    assert "You already have a prompt with this name." in page


def test_the_number_of_prompts_is_limited(browser, person, monkeypatch):
    monkeypatch.setattr(prompt_text, "MAX_PROMPTS", 1)
    prompt = make(person)
    assert (
        "reached the limit of 1 prompts."
        in browser.post(reverse("chat:new_prompt"), fields()).text
    )
    browser.post(reverse("chat:duplicate_prompt", args=[prompt.pk]))
    assert Prompt.objects.count() == 1


def test_prompts_can_be_shared_only_with_own_groups(browser, person):
    team, foreign = Group.objects.create(name="Sales"), Group.objects.create(name="Board")
    person.groups.add(team)
    about = fields(sharing="groups", groups=[foreign.pk])
    assert browser.post(reverse("chat:new_prompt"), about).status_code == 422
    browser.post(reverse("chat:new_prompt"), about | {"groups": [team.pk]})
    assert list(Prompt.objects.get().groups.all()) == [team]


def test_users_who_share_with_everyone_can_edit_shared_prompts(browser, person, other):
    shared, private = make(other, "all", "everyone"), make(other, "own")
    assert browser.post(reverse("chat:delete_prompt", args=[shared.pk])).status_code == 404
    person.user_permissions.add(Permission.objects.get(codename="share_prompts"))
    assert browser.post(reverse("chat:delete_prompt", args=[private.pk])).status_code == 404
    assert browser.post(reverse("chat:delete_prompt", args=[shared.pk])).status_code == 302
    restore(browser, shared)
    assert Prompt.objects.present().get(name="all").user == other
    browser.post(reverse("chat:new_prompt"), fields(sharing="everyone"))
    assert Prompt.objects.get(user=person).sharing == "everyone"


def test_a_prompt_is_restored_with_current_permissions(browser, person):
    person.user_permissions.add(Permission.objects.get(codename="share_prompts"))
    prompt = make(person, sharing="everyone")
    browser.post(reverse("chat:delete_prompt", args=[prompt.pk]))
    person.user_permissions.clear()

    page = restore(browser, prompt).text

    assert "was restored, but you can no longer share it." in page
    assert Prompt.objects.get().sharing == "private"


def test_a_prompt_beyond_the_limit_is_not_restored_and_not_lost(browser, person, monkeypatch):
    prompt = make(person)
    browser.post(reverse("chat:delete_prompt", args=[prompt.pk]))
    other = make(person, "other")
    monkeypatch.setattr(prompt_text, "MAX_PROMPTS", 1)

    assert "reached the limit of" in restore(browser, prompt).text
    other.delete()
    restore(browser, prompt)
    assert Prompt.objects.present().get().name == "summary"


def test_a_sent_message_becomes_the_text_of_a_new_prompt(browser):
    page = browser.post(reverse("chat:prompt_from_text"), {"text": "Compare\r\n<b> & c"})
    assert "Compare\n&lt;b&gt; &amp; c</textarea>" in page.text
    assert not Prompt.objects.exists()
