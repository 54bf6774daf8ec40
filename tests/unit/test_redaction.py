"""Secrets are found by their names and forms; what is none stays as it is."""

from __future__ import annotations

import random
import string

import pytest

from stoker.redaction import Redactor, is_random, is_secret_name, redacted_string, redacted_text

SECRET_NAMES = """password passwd pwd db_password dbPassword PGPASSWORD pass db_pass passphrase secret client_secret
    clientSecret token hf_token accessToken auth_token api_key apiKey apikey APIKEY key secret_key aws_secret_access_key
    AWSAccessKeyId account_key private_key auth authorization credential credentials creds sas sas_token signature sig
    X-Amz-Signature X-Amz-Credential cookie _password self.password"""
OTHER_NAMES = """root path image_key sort_key label_key keys tokens max_tokens num_tokens tokenizer pad_token mask_token
    eos_token author authors monkey compass bypass design signal n key_path keyword passes x1"""


@pytest.mark.parametrize("name", SECRET_NAMES.split())
def test_names_of_secrets(name):
    assert is_secret_name(name)


@pytest.mark.parametrize("name", OTHER_NAMES.split())
def test_names_of_other_things(name):
    assert not is_secret_name(name)


TEXTS = {
    "sql://me:hunter2@db/x": "sql://<redacted>@db/x",
    "sql://me:hun/ter2@db/x": "sql://<redacted>@db/x",
    "https://hunter2@github.example/a": "https://<redacted>@github.example/a",
    "https://a/b?sig=hunter2&x=1": "https://a/b?sig=<redacted>&x=1",
    "https://a/b?X-Amz-Signature=hunter2": "https://a/b?X-Amz-Signature=<redacted>",
    "Authorization: Bearer hunter2": "Authorization: <redacted>",
    "Authorization: Basic aHVudGVy": "Authorization: <redacted>",
    "got 'Bearer hunter2'": "got 'Bearer <redacted>'",
    "connect(password='hunter2', user='u')": "connect(password='<redacted>', user='u')",
    "connect(password='hun\\'ter2', user='u')": "connect(password='<redacted>', user='u')",
    '{"api_key": "hunter2", "n": 3}': '{"api_key": "<redacted>", "n": 3}',
    '{"token": "hunter2hunter2"}': '{"token": "<redacted>"}',
    "Server=x;Password=hunter2;User=y": "Server=x;Password=<redacted>;User=y",
    "PGPASSWORD=hunter2 psql": "PGPASSWORD=<redacted> psql",
    "a -----BEGIN RSA PRIVATE KEY-----\nhunter2\n-----END RSA PRIVATE KEY----- b": "a <redacted> b",
    "id AKIAIOSFODNN7EXAMPLE": "id <redacted>",
    "x ghp_0123456789abcdefghij0123456789abcdef y": "x <redacted> y",
}


@pytest.mark.parametrize("text", TEXTS)
def test_secrets_in_a_text(text):
    assert redacted_text(text) == TEXTS[text]


@pytest.mark.parametrize(
    "text",
    [
        "https://host:8080/a@b",
        "image 9f86d081884c7d659a2feaa0c55ad015.jpg is cut short",
        "KeyError: key: label_3",
        "Unexpected token: }",
        "token = self.tokenizer(text)",
        "the bearer of bad news, at 3:4",
        "password=None",
        "s3://bucket/data?versionId=3",
        "cannot identify image file",
    ],
)
def test_other_texts_stay_as_they_are(text):
    assert redacted_text(text) == text


def test_known_secrets_are_found_wherever_they_stand():
    assert redacted_text("user me, swordfish!", ["swordfish"]) == "user me, <redacted>!"
    assert redacted_text("swordfish2 swordfish", ["swordfish", "swordfish2"]) == "<redacted> <redacted>"


def test_long_random_tokens_are_secrets():
    generator = random.Random(0)
    letters = string.ascii_letters + string.digits
    found = sum(is_random("".join(generator.choices(letters, k=32))) for _ in range(1000))
    assert found > 950


@pytest.mark.parametrize(
    "text",
    [
        "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "550e8400-e29b-41d4-a716-446655440000",
        "Datasets/ImageNet2012/train",
        "ResNet50V2Cifar100Augmented",
        "/data/ILSVRC2012_val_00000001.JPEG",
        "a" * 100,
        "stoker.stores.fingerprint",
    ],
)
def test_hashes_and_names_are_no_random_tokens(text):
    assert not is_random(text)
    assert redacted_string(text) == text


def test_values_are_redacted_one_within_the_other():
    redactor = Redactor()
    value = {"url": "s3://a:bcde@c", "pwd": 4711, "n": 3, "cred": {"user": "me", "list": ["you", True, None]}}
    assert redactor.redacted(value, "", "options") == {
        "url": "s3://<redacted>@c",
        "pwd": "<redacted>",
        "n": 3,
        "cred": {"user": "<redacted>", "list": ["<redacted>", True, None]},
    }
    assert redactor.names == [
        f"options{one}" for one in ("['url']", "['pwd']", "['cred']['user']", "['cred']['list'][0]")
    ]
    assert redactor.secrets == {"bcde"}


@pytest.mark.parametrize("piece", ["a:", "://a:b", "a-", "password='", "Bearer ", "key=\\", "x: y=3, ", "-----BEGIN X"])
def test_a_long_text_is_done_in_linear_time(piece):
    """Quadratic, this would take hours."""
    redacted_text(piece * 30_000)
