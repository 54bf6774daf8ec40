"""Requests to the server of the page, as no browser would make them."""

from __future__ import annotations

import json
from http.client import HTTPConnection, HTTPResponse
from urllib.parse import urlsplit


def get(
    url: str,
    path: str = "/",
    *,
    token: str | None = None,
    headers: dict[str, str] | None = None,
    method: str = "GET",
) -> tuple[HTTPConnection, HTTPResponse]:
    """``token``: another than that of the URL."""
    asked = urlsplit(url)
    query = asked.query if token is None else f"token={token}"
    connection = HTTPConnection(asked.hostname, asked.port, timeout=20)
    connection.request(method, f"{path}?{query}", headers=headers or {})
    return connection, connection.getresponse()


def answer(*arguments, **options) -> tuple[int, bytes]:
    connection, response = get(*arguments, **options)
    try:
        return response.status, response.read()
    finally:
        connection.close()


def next_event(response: HTTPResponse) -> list[dict]:
    line = response.readline()
    assert line.startswith(b"data: "), line
    assert response.readline() == b"\n"
    return json.loads(line.removeprefix(b"data: "))
