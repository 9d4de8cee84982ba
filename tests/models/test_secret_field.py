import copy
import json
import pickle

import pytest
from django.contrib.admin.utils import display_for_field
from django.core import serializers
from django.core.exceptions import ValidationError
from django.db import models
from django.forms import modelform_factory
from django.test.utils import isolate_apps

from agents.models.secret import (
    MASK,
    EncryptedJSONField,
    EncryptedTextField,
    EncryptedValue,
    UnreadableSecret,
)

HEADERS = {"Authorization": "Bearer s3cret"}


@pytest.fixture
def keys(settings):
    def use(*phrases):
        settings.ENCRYPTION_KEYS = list(phrases)

    use("first")
    return use


@pytest.fixture
def server():
    """A model with encrypted fields."""
    with isolate_apps("agents"):

        class Server(models.Model):
            name = models.CharField(max_length=20)
            headers = EncryptedJSONField(default=dict, blank=True)
            password = EncryptedTextField()

            class Meta:
                app_label = "agents"

        yield Server


def stored_value(field, value):
    """Return the column's value."""
    return field.get_prep_value(value)


def read(field, token):
    return field.from_db_value(token, None, None)


@pytest.mark.parametrize(
    ("field", "value"),
    [(EncryptedTextField(), "pässword\n"), (EncryptedJSONField(), HEADERS)],
)
def test_a_secret_round_trips_and_is_encrypted_in_its_column(field, value, keys):
    token = stored_value(field, value)

    assert "s3cret" not in token
    assert "pässword" not in token
    assert read(field, token).reveal() == value


def test_the_same_secret_is_encrypted_differently_each_time(keys):
    assert stored_value(EncryptedTextField(), "x") != stored_value(EncryptedTextField(), "x")


@pytest.mark.parametrize(
    ("field", "empty"), [(EncryptedTextField(), ""), (EncryptedJSONField(), {})]
)
def test_an_empty_secret_is_saved_as_empty(field, empty, keys):
    assert stored_value(field, empty) == stored_value(field, None) == ""
    assert read(field, "").reveal() == read(field, None).reveal() == empty
    assert not read(field, "")


def test_a_secret_is_shown_as_a_mask(keys):
    secret = read(EncryptedJSONField(), stored_value(EncryptedJSONField(), HEADERS))

    assert str(secret) == repr(secret) == f"{secret}" == MASK
    assert display_for_field(secret, EncryptedJSONField(), "-") == MASK


def test_an_older_key_still_reads_and_the_newest_one_writes(keys):
    old = stored_value(EncryptedTextField(), "s3cret")
    keys("second", "first")
    new = stored_value(EncryptedTextField(), read(EncryptedTextField(), old))
    assert read(EncryptedTextField(), old).reveal() == "s3cret"

    keys("second")

    assert read(EncryptedTextField(), new).reveal() == "s3cret"
    with pytest.raises(UnreadableSecret):
        read(EncryptedTextField(), old).reveal()


@pytest.mark.parametrize("token", ["gAAAAAB", "not a token", "ü"])
def test_an_unreadable_secret_is_marked_and_does_not_crash_lists(token, keys):
    secret = read(EncryptedTextField(), token)

    assert str(secret) == str(UnreadableSecret())
    assert display_for_field(secret, EncryptedTextField(), "-") == str(UnreadableSecret())
    with pytest.raises(UnreadableSecret, match="Enter it again"):
        secret.reveal()


def test_saving_a_row_keeps_an_unreadable_secret(keys):
    token = stored_value(EncryptedTextField(), "s3cret")
    keys("other")

    assert stored_value(EncryptedTextField(), read(EncryptedTextField(), token)) == token


def test_a_row_wraps_a_secret_as_soon_as_it_is_assigned(keys, server):
    row = server(name="a", headers=HEADERS, password="w0rd")
    row.password = "other w0rd"

    assert isinstance(row.headers, EncryptedValue)
    assert (row.headers.reveal(), row.password.reveal()) == (HEADERS, "other w0rd")
    assert "w0rd" not in str(vars(row))


def test_a_secret_can_be_copied_and_pickled(keys):
    secret = EncryptedTextField().to_python("s3cret")

    assert copy.deepcopy(secret) == secret
    assert pickle.loads(pickle.dumps(secret)).reveal() == "s3cret"


def test_a_form_never_shows_a_secret(keys, server):
    row = server(name="a", headers=HEADERS, password="w0rd")

    page = modelform_factory(server, fields="__all__")(instance=row).as_p()

    assert "s3cret" not in page
    assert "w0rd" not in page
    assert row.headers.token not in page
    assert 'type="password"' in page


def test_an_empty_form_field_keeps_the_secret(keys, server):
    row = server(name="a", headers=HEADERS, password="w0rd")
    sent = {"name": "b", "headers": "", "password": "new"}

    form = modelform_factory(server, fields="__all__")(sent, instance=row)

    assert form.is_valid(), form.errors
    assert form.changed_data == ["name", "password"]
    assert (row.headers.reveal(), row.password.reveal()) == (HEADERS, "new")


@pytest.mark.parametrize(("sent", "headers"), [("{}", {}), ('{"a": "b"}', {"a": "b"})])
def test_a_form_field_replaces_the_secret(sent, headers, keys, server):
    row = server(name="a", headers=HEADERS, password="w0rd")

    form = modelform_factory(server, fields=["headers"])({"headers": sent}, instance=row)

    assert form.is_valid(), form.errors
    assert row.headers.reveal() == headers


def test_a_row_that_needs_a_secret_is_not_valid_without_one(keys, server):
    with pytest.raises(ValidationError) as refusal:
        server(name="a").full_clean()

    assert list(refusal.value.message_dict) == ["password"]


@pytest.mark.parametrize("form", ["json", "xml"])
def test_an_export_has_no_secret_in_it(form, keys, server):
    row = server(pk=1, name="a", headers=HEADERS, password="w0rd")

    export = serializers.serialize(form, [row])

    assert "s3cret" not in export
    assert row.headers.token not in export
    assert row.password.token not in export


def test_encryption_keys_can_have_any_length(keys):
    keys("鍵", "x" * 500)

    token = stored_value(EncryptedTextField(), "s3cret")

    assert read(EncryptedTextField(), token).reveal() == "s3cret"
    assert json.dumps("s3cret") not in token


def test_no_hidden_field_repeats_the_input(server):
    form = modelform_factory(server, fields=["headers"])({"headers": '{"a": "s3cret"}'})

    assert "initial-" not in str(form)
