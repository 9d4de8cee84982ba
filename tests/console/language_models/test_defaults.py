"""The page of defaults: a model for each purpose, from connections, with a test of each."""

import pytest
from django.db import connection
from django.urls import reverse

from agents import knowledge
from agents.access import audit
from agents.console.system.config_files.exporter import ExportSelection, export
from agents.console.system.config_files.importer import apply_file, preview_file
from agents.console.system.config_files.permissions import TerminalUser
from agents.db.installation import default_models
from agents.engine.errors import ModelError
from agents.knowledge import connected_models, embeddings, scope
from agents.knowledge.media import services
from agents.knowledge.retrieval import vector_index
from agents.models import AuditEntry, EmbeddingIndex, InstallationSetting, ModelConnection
from tests.conftest import as_staff
from tests.language_models import make_model
from tests.wire import Reply, fail, say, serve_in_thread

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "litellm_loop"),
    # Both are said of LiteLLM's own types and code.
    pytest.mark.filterwarnings("ignore:Item '.*' on TypedDict class:UserWarning"),
    pytest.mark.filterwarnings("ignore:Accessing the 'model_:DeprecationWarning"),
]
PAGE = reverse("admin:agents_languagemodel_defaults")
EFFECT = reverse("admin:agents_languagemodel_default_effect")
KEY = "sk-of-this-row-0123456789"
MP3 = b"ID3\x04" + bytes(500)


def vectors(request):
    """Answer with a vector for each text, of as many numbers as the model's name says."""
    length = int(request.body["model"].rpartition("-")[2])
    data = [
        {
            "object": "embedding",
            "index": at,
            "embedding": [1.0, len(text), *[0.5] * length][:length],
        }
        for at, text in enumerate(request.body["input"])
    ]
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return {"object": "list", "data": data, "model": "m", "usage": usage}


PAGES = {
    "/v1/embeddings": vectors,
    "/v1/audio/speech": Reply(
        parts=(MP3,),
        headers={"Content-Type": "audio/mpeg", "Content-Length": str(len(MP3))},
    ),
    "/v1/audio/transcriptions": {"text": "", "segments": []},
    "/v1/images/generations": fail(400, "No such image model"),
    "/v1/chat/completions": {"choices": [{"message": {"content": "Red."}}], "usage": {}},
}


@pytest.fixture
def server():
    with serve_in_thread(pages=dict(PAGES)) as server:
        yield server


@pytest.fixture(autouse=True)
def new_installation(settings):
    """Let the environment set no embedding model."""
    environment = settings.ENVIRONMENT.model_copy(update={"embedding_model": "local"})
    environment.model_fields_set.discard("embedding_model")
    settings.ENVIRONMENT = environment


@pytest.fixture
def connected(server):
    names = ["embed-4", "embed-8", "tts-1", "whisper-1", "gpt-image-2"]
    return ModelConnection.objects.create(
        name="Mine",
        provider="compatible",
        prefix="openai",
        base_url=server.url,
        api_key=KEY,
        listing={"models": [["gpt-4o-mini", ""], ["talker", ""]], "others": names},
    )


def form_values(client, **changes):
    """Return what the browser would send for this page."""
    sent = {}
    for bound in client.get(PAGE).context["form"]:
        value = bound.value()
        sent[bound.html_name] = "" if value is None else getattr(value, "pk", value)
        if bound.field.show_hidden_initial:
            sent[bound.html_initial_name] = sent[bound.html_name]
    return sent | changes


def save(client, **changes):
    return client.post(PAGE, form_values(client, **changes), follow=True)


def offered(client, name):
    """Return the values of a select."""
    groups = client.get(PAGE).context["form"].fields[name].choices
    return [
        value
        for choice, label in groups
        for value in ([v for v, _ in label] if isinstance(label, list) else [choice])
    ]


def test_each_select_offers_its_own_choices_and_fitting_models(admin_client, connected):
    def of(*names):
        return [*(f"{connected.pk}:openai/{name}" for name in names), f"{connected.pk}:"]

    assert offered(admin_client, "embedding_model") == [
        "local",
        "off",
        *of("embed-4", "embed-8"),
    ]
    assert offered(admin_client, "transcription_model") == ["", *of("whisper-1")]
    assert offered(admin_client, "speech_model") == ["", *of("tts-1")]
    assert offered(admin_client, "image_model") == ["", *of("gpt-image-2")]
    assert offered(admin_client, "vision_model") == ["", *of("gpt-4o-mini")]


def test_a_provider_that_was_not_asked_offers_what_the_price_list_has(admin_client):
    row = ModelConnection.objects.create(name="OpenAI", prefix="openai", api_key=KEY)
    models = offered(admin_client, "image_model")

    assert f"{row.pk}:openai/gpt-image-2" in models
    assert not any("1024" in model for model in models)  # prices of sizes
    assert f"{row.pk}:openai/text-embedding-3-small" in offered(admin_client, "embedding_model")


def test_all_are_saved_at_once_and_used_with_the_key_of_the_connection(
    admin_client, connected, server
):
    start = f"{connected.pk}:openai/"
    answer = save(
        admin_client,
        speech_model=f"{start}tts-1",
        speech_voice="nova",
        transcription_model=f"{start}whisper-1",
        transcription_language="ja",
        image_model=f"{connected.pk}:",
        image_model_name="my-own-images",
    )

    assert "Defaults saved." in answer.text
    found = services.find("speech")
    assert (found.model, found.url, found.key) == ("openai/tts-1", server.url, KEY)
    assert services.find("image").model == "openai/my-own-images"
    assert default_models.SPEECH_VOICE.value == "nova"
    assert default_models.TRANSCRIPTION_LANGUAGE.value == "ja"
    entries = AuditEntry.objects.filter(action=audit.SETTING_CHANGED)
    assert {entry.subject.partition(":")[2] for entry in entries} == {
        *("speech_model", "speech_voice", "image_model"),
        *("transcription_model", "transcription_language"),
    }
    assert KEY not in str(list(InstallationSetting.objects.values()))
    assert KEY not in answer.text
    assert f'value="{start}my-own-images" selected' in answer.text
    assert "Nothing to save." in save(admin_client).text


@pytest.mark.parametrize(
    ("name", "words"),
    [("", "Enter the name of the model."), ("no such name", "Enter it as provider/model")],
)
def test_a_typed_name_is_checked(admin_client, connected, name, words):
    sent = form_values(admin_client, speech_model=f"{connected.pk}:", speech_model_name=name)
    answer = admin_client.post(PAGE, sent)

    assert answer.status_code == 422
    assert words in answer.text
    assert not InstallationSetting.objects.exists()


def test_a_wrong_language_is_explained(admin_client):
    sent = form_values(admin_client, transcription_language="日本")
    assert "Enter a language code" in admin_client.post(PAGE, sent).text


def test_what_the_environment_sets_is_locked_and_wins(admin_client, connected, settings):
    start = f"{connected.pk}:openai/"
    save(admin_client, speech_model=f"{start}tts-1")
    update = {"speech_model": "openai/from-outside", "speech_url": "http://127.0.0.1:9/v1"}
    settings.ENVIRONMENT = settings.ENVIRONMENT.model_copy(update=update)

    assert services.find("speech").model == "openai/from-outside"
    page = admin_client.get(PAGE)
    assert "ASHIATO_SPEECH_MODEL" in page.text
    assert page.context["form"].fields["speech_model"].disabled
    save(admin_client, speech_model="")
    assert InstallationSetting.objects.get(key="speech_model").value == f"{start}tts-1"


def test_documents_are_indexed_again_while_the_old_model_answers(
    admin_client, connected, server
):
    other = ModelConnection.objects.create(
        name="Other", provider="compatible", prefix="openai", base_url=server.url, api_key="b"
    )
    save(admin_client, embedding_model=f"{connected.pk}:openai/embed-4")
    knowledge.ingest_text("The heron nests in reeds.", source="heron.md", title="heron.md")
    old = vector_index.active()
    new_model = f"{other.pk}:openai/embed-8"

    effect = admin_client.get(
        EFFECT, {"embedding_model": f"{other.pk}:", "embedding_model_name": "embed-8"}
    )
    assert "1 document (passages: 1) is indexed again" in effect.text
    assert "isn’t known" in effect.text
    answer = save(admin_client, embedding_model=f"{other.pk}:", embedding_model_name="embed-8")
    assert "indexed again" in answer.text
    assert embeddings.configured_model() == new_model
    assert vector_index.ensure().status == "building"
    server.requests.clear()
    assert knowledge.find("heron", scope=scope.everything(), minimum=0).passages
    assert {r.headers["authorization"] for r in server.requests} == {f"Bearer {KEY}"}
    EmbeddingIndex.objects.filter(model=new_model).update(done=1, total=3)
    assert "1 of 3 passages" in admin_client.get(PAGE).text

    assert vector_index.keep_up()
    assert (vector_index.active().model, vector_index.active().dimension) == (new_model, 8)
    assert vector_index.active().pk != old.pk


def test_the_price_of_indexing_again_is_said(admin_client, connected, configure):
    configure(embedding_model=f"{connected.pk}:openai/embed-4")
    knowledge.ingest_text("The heron nests in reeds.", source="heron.md", title="heron.md")
    paid = {
        "embedding_model": f"{connected.pk}:",
        "embedding_model_name": "text-embedding-3-small",
    }

    assert "That costs about &lt;$0.0001." in admin_client.get(EFFECT, paid).text
    assert "words only" in admin_client.get(EFFECT, {"embedding_model": "off"}).text
    local = admin_client.get(EFFECT, {"embedding_model": "local"}).text
    assert "indexed again" in local
    assert "cost" not in local


def test_an_embedding_model_that_does_not_answer_is_not_saved(admin_client, connected, server):
    server.pages["/v1/embeddings"] = fail(401, f"Bad key {KEY}")
    sent = form_values(admin_client, embedding_model=f"{connected.pk}:openai/embed-4")
    answer = admin_client.post(PAGE, sent)

    assert answer.status_code == 422
    assert "API key" in answer.text
    assert KEY not in answer.text
    assert embeddings.configured_model() == embeddings.LOCAL


@pytest.mark.parametrize(
    ("key", "model", "words"),
    [
        ("embedding_model", "embed-8", "a vector of 8 numbers"),
        ("speech_model", "tts-1", "504 bytes of sound"),
        ("transcription_model", "whisper-1", "heard no words"),
        ("vision_model", "gpt-4o-mini", "Red."),
        ("image_model", "gpt-image-2", "No such image model"),
    ],
)
def test_a_model_is_tested_before_it_is_saved(
    admin_client, connected, server, key, model, words
):
    place = reverse("admin:agents_languagemodel_default_test", args=[key])
    sent = form_values(admin_client, **{key: f"{connected.pk}:openai/{model}"})
    answer = admin_client.post(place, sent, headers={"HX-Request": "true"})

    assert words in answer.text.replace("\xa0", " ")
    assert KEY not in answer.text
    assert server.requests[-1].headers["authorization"] == f"Bearer {KEY}"
    assert not InstallationSetting.objects.exists()
    actions = list(AuditEntry.objects.values_list("action", flat=True).order_by("number"))
    assert actions[-2:] == [audit.MODEL_TESTED, audit.MODEL_TEST_ENDED]


def test_the_chat_model_is_tested_too(admin_client):
    place = reverse("admin:agents_languagemodel_default_test", args=["chat"])
    with serve_in_thread(lambda request: say("Hello there.")) as server:
        row = make_model("mine", "openai/talker", base_url=server.url, api_key=KEY)
        answer = admin_client.post(place, {"chat": row.pk}, headers={"HX-Request": "true"})
        without = admin_client.post(place, {"chat": ""}, follow=True)

    assert "The model responded." in answer.text
    row.refresh_from_db()
    assert row.last_test["works"]
    assert "The model responded." in without.text  # the demo model


def test_nothing_chosen_is_nothing_to_test(admin_client):
    place = reverse("admin:agents_languagemodel_default_test", args=["image_model"])
    answer = admin_client.post(place, {}, headers={"HX-Request": "true"})
    assert "Choose a model first." in answer.text
    nowhere = reverse("admin:agents_languagemodel_default_test", args=["user_runs"])
    assert admin_client.post(nowhere).status_code == 404


def test_a_deletion_says_what_falls_back_and_it_does(admin_client, connected, configure):
    row = make_model("talker", "openai/talker", base_url=connected.base_url, is_default=True)
    configure(speech_model=f"{connected.pk}:openai/tts-1")
    configure(embedding_model=f"{connected.pk}:openai/embed-4")
    delete = reverse("admin:agents_modelconnection_delete", args=[connected.pk])
    page = admin_client.get(delete).text

    assert "The browser’s voice will read answers aloud." in page
    assert "Search will use the local model" in page
    of_model = reverse("admin:agents_languagemodel_delete", args=[row.pk])
    assert "talker is the default model." in admin_client.get(of_model).text
    change = reverse("admin:agents_languagemodel_change", args=[row.pk])
    assert "talker is the default model." in admin_client.get(change).text

    admin_client.post(delete, {"post": "yes"})
    assert services.find("speech") is None
    assert embeddings.configured_model() == embeddings.LOCAL
    assert "The connection of the chosen model was deleted." in admin_client.get(PAGE).text


def test_a_key_that_cannot_be_decrypted_is_an_error_with_advice(connected, configure):
    configure(vision_model=f"{connected.pk}:openai/gpt-4o-mini")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE agents_modelconnection SET api_key = 'of another key'")
    default_models.CONNECTIONS.refresh()

    with pytest.raises(ModelError, match="can't be decrypted"):
        services.find("vision")


def test_configuration_files_name_the_connection(connected, configure):
    value = f"{connected.pk}:openai/tts-1"
    configure(speech_model=value, embedding_model="off")
    user = TerminalUser()
    text = export(user, ExportSelection(kinds=["settings", "connections"], names=[]))

    assert "connection: Mine" in text
    assert "model: openai/tts-1" in text
    assert KEY not in text
    configure(speech_model="", embedding_model="local")
    assert not preview_file(text, user).is_refused
    assert apply_file(text, user).is_done
    assert default_models.SPEECH.value == value
    assert default_models.EMBEDDING.value == "off"
    wrong = text.replace("connection: Mine", "connection: Nobody")
    assert "There is no connection “Nobody”." in str(preview_file(wrong, user).items)


def test_a_changed_connection_is_noticed_by_other_processes(connected, configure):
    configure(speech_model=f"{connected.pk}:openai/tts-1")
    assert services.find("speech").url == connected.base_url
    # As in another process, where no signal is sent.
    ModelConnection.objects.filter(pk=connected.pk).update(base_url="http://127.0.0.1:9/v1")
    default_models.CONNECTIONS.refresh()

    assert services.find("speech").url == "http://127.0.0.1:9/v1"


def test_only_who_can_change_settings_changes_these(person, connected):
    start = f"{connected.pk}:openai/"
    client = as_staff(person, "view_languagemodel", "change_languagemodel")
    save(client, speech_model=f"{start}tts-1")
    assert not InstallationSetting.objects.exists()
    place = reverse("admin:agents_languagemodel_default_test", args=["speech_model"])
    assert client.post(place, {"speech_model": f"{start}tts-1"}).status_code == 403

    both = ["view_languagemodel", "change_languagemodel", "change_installationsetting"]
    save(as_staff(person, *both), speech_model=f"{start}tts-1")
    assert InstallationSetting.objects.get().value == f"{start}tts-1"


def test_a_deleted_connection_has_no_settings():
    with pytest.raises(ModelError, match="was deleted"):
        services.find("speech", "999:openai/tts-1")


def test_a_key_is_not_sent_to_another_provider_than_its_connection():
    """The provider of a connection without chat models can be changed."""
    row = ModelConnection.objects.create(
        name="Fast", provider="other", prefix="groq", api_key=KEY
    )
    model = default_models.ConnectedModel(connection_id=row.pk, model="openai/whisper-1")

    with pytest.raises(ModelError, match="of another provider than its connection") as refusal:
        connected_models.find_settings(model)

    assert KEY not in str(refusal.value)
    row.prefix = "openai"
    row.save()
    assert connected_models.find_settings(model).api_key == KEY
