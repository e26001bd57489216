"""Base URLs of endpoints, as people write them."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import SplitResult, urlsplit

from enginebench.model.request import ENDPOINT_PATHS, EndpointKind

_LOCAL_SUFFIXES = (".localhost", ".local", ".internal", ".lan", ".home.arpa")


def base_url(text: str, endpoint: EndpointKind) -> str:
    """`text` as a base URL with its version path and no slash at its end.

    `http://host:8000`, `http://host:8000/v1/` and `http://host:8000/v1/chat/completions` all become
    `http://host:8000/v1`: a bare host gets the `/v1` that every supported engine serves under, and
    a full address loses the path that `endpoint` stands for. Raises ValueError, in words for the
    person, when it cannot be used.
    """
    parts = _split(text)
    path = parts.path.rstrip("/")
    for kind, tail in ENDPOINT_PATHS.items():
        # "/chat/completions" ends in "/completions" too; the longer one comes first.
        if path.endswith(tail):
            if kind != endpoint:
                raise ValueError(f"it ends in {tail}, but `endpoint` is {endpoint}; end it before that")
            path = path.removesuffix(tail)
            break
    return f"http://{parts.netloc}{path or '/v1'}"


def is_public(url: str) -> bool:
    """Whether the host may belong to someone else: not this machine, not a private address, not a
    name that only a local network knows. Nothing is resolved, so a private host under a public name
    counts as public."""
    host = (urlsplit(url).hostname or "").rstrip(".").partition("%")[0]
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        # 134744072 and 0x8080808 are spellings of 8.8.8.8 that resolvers accept.
        is_odd_number = host.rpartition(".")[2][:1].isdigit()
        is_local_name = "." not in host or host.endswith(_LOCAL_SUFFIXES)
        return is_odd_number or not is_local_name
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_global


def _split(text: str) -> SplitResult:
    if not re.match(r"https?://", text):
        raise ValueError(
            f"it must begin with http://, such as http://{text.rpartition('://')[2] or 'host:8000/v1'}"
        )
    if text.startswith("https:"):
        raise ValueError(
            "https is not in this version yet; measure the engine's own http port, "
            "or put a proxy that ends TLS in front of it"
        )
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
        if host and ":" in host:
            ipaddress.IPv6Address(host.partition("%")[0])
    except ValueError as error:
        raise ValueError(f"it is not a URL ({error})") from error
    if not host or port == 0 or re.search(r"[\s\\]", text):
        raise ValueError("it is not a URL; write it as http://host:port/v1")
    if "@" in parts.netloc:
        raise ValueError("it holds a user name or password; use `api_key_env` or `api_key_file`")
    if parts.query or parts.fragment:
        raise ValueError("a query (?...) or fragment (#...) is not in this version yet; end it before that")
    return parts
