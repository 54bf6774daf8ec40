"""Secrets are not written to disk or to the log: what looks like one, or lies under the name of one, is redacted.

A name is judged by its words (``api_key``, ``dbPassword``), a value by its form (a URL with a password, a private key,
a long random token). Hashes and UUIDs are no secrets, nor are the words of language models (``pad_token="<pad>"``).
"""

from __future__ import annotations

import functools
import re
import string
from collections.abc import Iterable, Mapping
from typing import Any

REDACTED = "<redacted>"

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_SECRET_WORDS = frozenset(
    {
        *("password", "passwords", "passwd", "pwd", "passphrase", "passcode", "secret", "secrets", "apikey"),
        *("credential", "credentials", "cred", "creds", "auth", "authorization", "bearer", "sas", "sig"),
        *("signature", "cookie", "cookies"),
    }
)
_SECRET_PARTS = (  # of names without any border between words
    *("password", "passwd", "passphrase", "secret", "apikey", "credential", "privatekey", "accesskey", "accountkey"),
    *("authtoken", "accesstoken", "apitoken", "refreshtoken", "sessiontoken", "securitytoken"),
)
_AMBIGUOUS = {"key", "token", "pass", "auth", "sig", "signature", "sas", "cookie", "cookies"}  # in a running text
_OWNERS_OF_KEYS = frozenset(
    {
        *("api", "access", "secret", "private", "account", "encryption", "signing", "auth", "ssh", "license"),
        *("shared", "master", "storage", "aws", "azure", "gcp", "gcs", "s3", "hmac", "rsa", "service"),
        *("subscription", "client", "consumer", "session", "host", "server", "app", "project", "user", "my"),
    }
)
_WORDS_OF_MODELS = frozenset(
    {
        *("pad", "unk", "sep", "cls", "mask", "bos", "eos", "eod", "eot", "eom", "special", "start", "end"),
        *("stop", "image", "audio", "video", "prefix", "suffix", "begin", "blank", "sos", "go", "oov", "boundary"),
        *("prompt", "task", "language", "lang", "added", "extra", "next", "last", "first"),
    }
)
_SPECIAL_TOKEN = re.compile(r"<.*>|\[.*\]", re.DOTALL)  # "<pad>", "[CLS]"

# All repetitions have a limit where they could begin anywhere: an error may be 100,000 characters long.
_USER = re.compile(r"(?<=://)(?:[^/\s'\"@]{1,512}|[^\s'\"/:@]{1,256}:(?!\d+/)[^\s'\"@]{1,256})@")
_PASSWORD = re.compile(r"://[^\s'\"/:@]*:([^\s'\"@]+)@")
_PAIR_OF_A_QUERY = re.compile(r"([?&;])([\w.%\-]{1,64})=([^&;\s'\"#]+)")
_PAIR = re.compile(
    r"(?P<name>(?P<quote>['\"]?)\b[A-Za-z][\w.\-]{0,64}(?P=quote)\s{0,4}[:=]\s{0,4})"
    r"(?:b?(?P<mark>['\"])(?P<quoted>(?:\\.|(?!(?P=mark))[^\\]){0,4096})(?P=mark)|(?P<bare>(?![<\[{(])[^\s,;&)\]}'\"]+))"
)
_CREDENTIALS = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|\b(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{16}\b"
    r"|\bAIza[\w\-]{30,}"
    r"|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w\-]{16,}|\bdckr_pat_[\w\-]{16,}"
    r"|\bhf_[A-Za-z0-9]{20,}|\bsk-[\w\-]{16,}|\b[rs]k_(?:live|test)_\w{10,}|\bxox[abeoprs]-[\w\-]{10,}"
    r"|\bnpm_[A-Za-z0-9]{30,}|\bpypi-[\w\-]{30,}"
    r"|\beyJ[\w\-]{8,}\.[\w\-]{8,}\.[\w\-]*",
    re.DOTALL,
)
_SCHEME = re.compile(r"\b(Bearer|Basic)(\s+)(?=[\w\-.~+/=]*\d|[\w\-.~+/=]{16,})[\w\-.~+/=]{6,}", re.IGNORECASE)
_HEADER = re.compile(r"\b(authorization['\"]?\s{0,4}[:=]\s{0,4}['\"]?)[^'\"\r\n,}<][^'\"\r\n,}]*", re.IGNORECASE)
_TOKEN = re.compile(r"[A-Za-z0-9_\-+/.~=]{20,512}")
_UPPER, _DIGIT = re.compile(r"[A-Z]"), re.compile(r"[0-9]")
_KINDS = str.maketrans(string.ascii_letters + string.digits, "a" * 26 + "A" * 26 + "1" * 10)
_CHANGES = 0.45  # of a random token's neighbours are of another kind (A, a, 1): 0.62 on average; of names, 0.1 to 0.25
_CHANGES_OF_40 = 0.3
# What a secret has in it; most texts have none of it, and are done at once.
_MARKS = (
    *(":", "=", "-----BEGIN", "AKIA", "ASIA", "AROA", "AIDA", "AIza", "gh", "_pat_", "glpat", "hf_", "sk-", "k_live_"),
    *("k_test_", "xox", "npm_", "pypi-", "eyJ", "earer", "EARER", "asic", "ASIC"),
)
_MOST_ITEMS = 10_000  # of a list that is looked through
_LEAST_KNOWN = 4  # characters of a secret that is searched for in texts: shorter ones are in many words


@functools.lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Whether an argument, attribute or key of that name holds a secret."""
    words = [word.lower() for word in _WORDS.findall(name)]
    if not words:
        return False
    if not _SECRET_WORDS.isdisjoint(words) or any(part in "".join(words) for part in _SECRET_PARTS):
        return True
    *before, last = words
    if last in ("key", "keys"):
        return not _OWNERS_OF_KEYS.isdisjoint(before) or words == ["key"]
    if last == "token":
        return _WORDS_OF_MODELS.isdisjoint(before)
    return last == "pass" or (last == "tokens" and not {"api", "access", "refresh", "session"}.isdisjoint(before))


def is_random(text: str) -> bool:
    """Whether a value is a long token of random letters in both cases and digits. A hash, in hex, is none."""
    if not (_UPPER.search(text) and _DIGIT.search(text) and _TOKEN.fullmatch(text)):
        return False
    kinds = text.translate(_KINDS)
    changes = sum(map(kinds.count, ("Aa", "aA", "A1", "1A", "a1", "1a")))
    most = _CHANGES_OF_40 if len(text) == 40 and len(set(text)) >= 24 else _CHANGES  # 40: as Amazon's are
    return "a" in kinds and changes >= most * (sum(map(kinds.count, "Aa1")) - 1)


def redacted_text(text: str, known: Iterable[str] = ()) -> str:
    """The text (an error, a traceback, a value) without the secrets in it.

    ``known``: secrets of the dataset, which are redacted wherever they stand.
    """
    for secret in sorted(set(known), key=len, reverse=True):
        text = text.replace(secret, REDACTED)
    if not any(map(text.__contains__, _MARKS)):
        return text
    text = _CREDENTIALS.sub(REDACTED, text)
    if "://" in text:
        text = _USER.sub(f"{REDACTED}@", text)
    text = _SCHEME.sub(rf"\1\2{REDACTED}", _HEADER.sub(rf"\1{REDACTED}", text))
    if "=" in text or ":" in text:
        text = _PAIR.sub(_redacted_pair, _PAIR_OF_A_QUERY.sub(_redacted_query, text))
    return text


def redacted_string(text: str, name: str = "", *, is_secret: bool = False) -> str:
    """A value that stands under that name, or (``is_secret``) somewhere in a thing of a secret name."""
    if is_secret or is_secret_name(name):
        return REDACTED if text and not _SPECIAL_TOKEN.fullmatch(text) else text
    return REDACTED if is_random(text) else redacted_text(text)


class Redactor:
    """Redacts values as JSON has them.

    Attributes:
        names: The paths of what was redacted: ``password``, ``options['url']``.
        secrets: The strings themselves, for ``redacted_text``.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.secrets: set[str] = set()

    def redacted(self, value: Any, name: str, path: str, above: str = "") -> Any:
        """The same value without the secrets in it. ``above``: the secret name of what it is within."""
        hidden_by = above or (name if is_secret_name(name) else "")
        if isinstance(value, str | bytes):
            return self._string(value, path, hidden_by)
        if isinstance(value, Mapping):
            return {key: self.redacted(one, str(key), f"{path}[{key!r}]", hidden_by) for key, one in value.items()}
        if isinstance(value, list | tuple) and len(value) <= _MOST_ITEMS:
            return [self.redacted(one, "", f"{path}[{k}]", hidden_by) for k, one in enumerate(value)]
        if hidden_by and isinstance(value, int | float) and not isinstance(value, bool):
            self.names.append(path)
            return REDACTED
        return value

    def _string(self, value: str | bytes, path: str, hidden_by: str) -> str | bytes:
        text = value if isinstance(value, str) else value.decode("latin-1")
        told = redacted_string(text, is_secret=bool(hidden_by))
        if told == text:
            return value
        self.names.append(path)
        pairs = _PAIR_OF_A_QUERY.findall(text)
        parts = [*_PASSWORD.findall(text), *(part for _, name, part in pairs if is_secret_name(name))]
        # A URL is found by its form, its password by itself; key="image" would be found in many a text.
        if told == REDACTED and (hidden_by.lower() not in _AMBIGUOUS or not text.isalpha()):
            parts.append(text)
        self.secrets.update(part for part in parts if len(part) >= _LEAST_KNOWN)
        return told


def _redacted_query(found: re.Match[str]) -> str:
    before, name, value = found.groups()
    return f"{before}{name}={REDACTED if is_secret_name(name) else value}"


def _redacted_pair(found: re.Match[str]) -> str:
    """``password='hunter2'``, ``"token": "..."``. A name that means other things, too, needs a value that looks so."""
    name, value = found["name"].rstrip(" \t\n:=").strip("'\""), found["quoted"] or found["bare"] or ""
    if not is_secret_name(name) or value in ("", "None", "True", "False", REDACTED):
        return found[0]
    is_sure = name.rpartition(".")[2].lower() not in _AMBIGUOUS
    looks_so = len(value) >= 12 and any(map(str.isdigit, value)) and any(map(str.isalpha, value)) and " " not in value
    if not is_sure and not looks_so:
        return found[0]
    mark = found["mark"] or ""
    return f"{found['name']}{mark}{REDACTED}{mark}"
