"""The rules for names, labels, annotations, ports and addresses, with the API server's sentences."""

import ipaddress
import re

PROTOCOLS = ("SCTP", "TCP", "UDP")

_SUBDOMAIN_FORM = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_LABEL_FORM = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_PLAIN_LABEL_FORM = r"[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED_FORM = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE_FORM = r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"
_ENV_FORM = r"[ -<>-~]+"
_CONFIG_KEY_FORM = r"[-._a-zA-Z0-9]+"

_KEY_RULE = (
    "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    f"'{_QUALIFIED_FORM}')"
)

_BLOCK_RULE = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"

_SUBDOMAIN = re.compile(_SUBDOMAIN_FORM)
_LABEL = re.compile(_LABEL_FORM)
_PLAIN_LABEL = re.compile(_PLAIN_LABEL_FORM)
_QUALIFIED = re.compile(_QUALIFIED_FORM)
_VALUE = re.compile(_VALUE_FORM)
_ENV = re.compile(_ENV_FORM)
_CONFIG_KEY = re.compile(_CONFIG_KEY_FORM)


def subdomain_faults(text: str) -> list[str]:
    """What keeps the text from being a DNS subdomain; empty when nothing does."""
    return _judged(
        text, 253, "characters", _SUBDOMAIN,
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
        "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
        f"'{_SUBDOMAIN_FORM}')",
    )  # fmt: skip


def label_faults(text: str) -> list[str]:
    """What keeps the text from being a DNS label."""
    if "." in text:
        return ["must not contain dots"]
    return _judged(
        text, 63, "characters", _LABEL,
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
        f"with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL_FORM}')",
    )  # fmt: skip


def plain_label_faults(text: str) -> list[str]:
    """What keeps the text from being a DNS label of the older kind, which begins with a letter."""
    return _judged(
        text, 63, "characters", _PLAIN_LABEL,
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
        "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation "
        f"is '{_PLAIN_LABEL_FORM}')",
    )  # fmt: skip


def port_name_faults(text: str) -> list[str]:
    """What keeps the text from being the name of a container's port."""
    found = []
    if len(text) > 15:
        found.append("must be no more than 15 characters")
    if not re.fullmatch(r"[-a-z0-9]+", text):
        found.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search(r"[a-z]", text):
        found.append("must contain at least one letter (a-z)")
    if "--" in text:
        found.append("must not contain consecutive hyphens")
    if text.startswith("-") or text.endswith("-"):
        found.append("must not begin or end with a hyphen")
    return found


def port_faults(port: int | str) -> list[str]:
    """What keeps this from being a port, by its number or its name."""
    if isinstance(port, str):
        return port_name_faults(port)
    return [] if 1 <= port <= 65535 else ["must be between 1 and 65535, inclusive"]


def address_faults(text: str) -> list[str]:
    """What keeps the text from being an IP address."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]
    return []


def block_faults(text: str) -> list[str]:
    """What keeps the text from being a block of addresses."""
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return [_BLOCK_RULE]
    return [] if "/" in text else [_BLOCK_RULE]


def qualified_name_faults(text: str) -> list[str]:
    """What keeps the text from being a label's or annotation's key, `prefix/name` or `name`."""
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        return [f"{_KEY_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    found = []
    if slash and not prefix:
        found.append("prefix part must be non-empty")
    elif prefix:
        found += [f"prefix part {fault}" for fault in subdomain_faults(prefix)]
    if not name:
        found.append("name part must be non-empty")
    elif len(name) > 63:
        found.append("name part must be no more than 63 bytes")
    if not _QUALIFIED.fullmatch(name):
        found.append(
            "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
            "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
            f"'{_QUALIFIED_FORM}')"
        )
    return found


def label_value_faults(text: str) -> list[str]:
    """What keeps the text from being a label's value."""
    return _judged(
        text, 63, "bytes", _VALUE,
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start "
        "and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
        f"validation is '{_VALUE_FORM}')",
    )  # fmt: skip


def environment_name_faults(text: str) -> list[str]:
    """What keeps the text from being the name of an environment variable."""
    if _ENV.fullmatch(text):
        return []
    return ["a valid environment variable name must consist only of printable ASCII characters other than '='"]


def data_key_faults(text: str) -> list[str]:
    """What keeps the text from being a key of a ConfigMap or Secret."""
    if text in (".", "..") or text.startswith(".."):
        return [f"must not be '{text}'" if text in (".", "..") else "must not start with '..'"]
    return _judged(
        text, 253, "characters", _CONFIG_KEY,
        "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME', "
        f" or 'key-name', regex used for validation is '{_CONFIG_KEY_FORM}')",
    )  # fmt: skip


def _judged(text: str, limit: int, unit: str, form: re.Pattern[str], sentence: str) -> list[str]:
    found = []
    if len(text) > limit:
        found.append(f"must be no more than {limit} {unit}")
    if not form.fullmatch(text):
        found.append(sentence)
    return found
