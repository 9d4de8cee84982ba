import string
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.engine.privacy.secrets import mask_secrets
from agents.llm.wire.provider_errors import explain
from tests.sampling import one_in

LETTERS = string.ascii_letters + string.digits
HEX = "0123456789abcdef"


def some(alphabet, least, most):
    """Return text that contains a digit, as keys do."""
    return st.text(alphabet, min_size=least, max_size=most).map(lambda text: f"{text}7q")


long = some(LETTERS, 30, 60)
keys = st.one_of(
    st.builds("sk-{}".format, some(LETTERS + "-_", 12, 48)),
    st.builds("sk-proj-{}".format, some(LETTERS + "-_", 40, 120)),
    st.builds("gsk_{}".format, some(LETTERS, 20, 52)),
    st.builds("hf_{}".format, some(LETTERS, 20, 34)),
    st.builds("AIza{}".format, some(LETTERS + "-_", 20, 35)),
    st.builds("ghp_{}".format, some(LETTERS, 20, 36)),
    st.builds("eyJ{}.{}.{}".format, long, long, long),
    some(HEX, 32, 64),
    long,
)
FORMS = [
    "Incorrect API key provided: {}.",
    "Invalid token '{}'",
    'HTTP 401: {{"error": {{"api_key": "{}"}}}}',
    "Authorization: Bearer {}",
    "headers={{'x-api-key': '{}'}}",
    "GET https://host/v1/models?key={}&alt=sse failed",
    "postgresql://ashiato:{}@db:5432/shop refused",
    "the key {} is not valid",
    "{} has expired",
]


@given(key=keys, form=st.sampled_from(FORMS))
def test_keys_are_masked_in_any_sentence(key, form):
    assert key not in mask_secrets(form.format(key))


@given(key=keys, form=st.sampled_from(FORMS))
def test_provider_messages_about_a_key_are_masked(key, form):
    told = explain(Exception(form.format(key)), model="openai/m")

    assert key not in str(told) + told.advice


@given(before=st.text(max_size=40), key=keys, after=st.text(max_size=40))
def test_keys_are_masked_between_any_words(before, key, after):
    assert key not in mask_secrets(f"{before} {key} {after}")


@given(
    key=st.text(min_size=4, max_size=80).filter(lambda key: key not in "***"),
    form=st.sampled_from(FORMS),
)
def test_a_known_key_is_masked_whatever_it_looks_like(key, form):
    said = form.format(key)

    assert said.count(key) - mask_secrets(said, key).count(key) >= 1


@given(st.text(max_size=300))
def test_masking_twice_changes_nothing(text):
    once = mask_secrets(text)

    assert mask_secrets(once) == once


@pytest.mark.parametrize(
    "said",
    [
        "A bearer token is needed.",
        "Basic authentication is switched off.",
        "The API key is missing: set OPENAI_API_KEY.",
        "Invalid API key for model claude-3-5-sonnet-20241022",
        "max_tokens=4096 is more than the model's limit of 2048.",
        "There is no column 'key' in table 'tokens_2024'.",
        "unknown key: 'text'",
        "Could not reach the model 'openai/gpt-4o-2024-08-06' at 127.0.0.1:8080.",
        "Run 6f1e4c52-9f0a-4f63-8a35-2f5b1ce3b0c1 was not found at https://host/a@b.",
        "パスワードが正しくありません。",
    ],
)
def test_a_sentence_without_a_secret_is_unchanged(said):
    assert mask_secrets(said) == said


def test_a_partly_starred_key_is_masked_whole():
    assert mask_secrets("Incorrect API key provided: abcd1234*****6789.") == (
        "Incorrect API key provided: ***"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece", one_in(4, ["key ", "key:", "sk-", "a" * 31, "://", "Bearer ", "key a1 "])
)
def test_a_long_text_takes_linear_time(piece):
    text = piece * (200_000 // len(piece))

    began = time.process_time()
    mask_secrets(text)

    assert time.process_time() - began < 5


MADE_UP = "madeUpOnlyForTestsMadeUpOnlyForTests"


@pytest.mark.parametrize(
    "key",
    [
        *(f"{prefix}{MADE_UP}" for prefix in ("hf_", "glpat-", "ghp_", "sk-proj-", "GOCSPX-")),
        *(f"{prefix}{MADE_UP}" for prefix in ("whsec_", "npm_", "pypi-AgE", "xoxb-", "gldt-")),
        f"https://hooks.slack.com/services/TMADEUP/BMADEUP/{MADE_UP}",
        f"https://discord.com/api/webhooks/123456789/{MADE_UP}",
        f"AccountKey={MADE_UP}==",
    ],
)
def test_a_key_without_a_digit_is_masked(key):
    assert MADE_UP not in mask_secrets(f"refused: {key}, sorry")


def test_a_name_that_begins_like_a_key_is_not_masked():
    assert mask_secrets("npm_config_registry is not set") == "npm_config_registry is not set"
