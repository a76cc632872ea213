"""What credentials look like: one row for each kind, its name, and how it is found."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of credential."""

    name: str
    marks: tuple[bytes, ...]
    """One of these is in a word of every text that holds such a credential: looking for them is far
    cheaper than searching with the pattern."""
    pattern: str
    """Its named group is what is removed; the whole match where it has none."""
    means: Callable[[str], bool] = bool
    """Whether what stands in the place of a secret is one."""
    is_key: bool = False
    """Whether it is found by its own beginning, with a mark that is meant in this case only. The
    marks of the others, names and what stands around a secret, are meant in any case."""

    def find(self, text: str) -> Iterator[tuple[int, int]]:
        """Where such credentials are, in order."""
        # Compiled when a mark is first met: all of them would take a while.
        for match in _compiled(self.pattern).finditer(text):
            start, end = match.span(match.lastgroup or 0)
            if self.means(text[start:end]):
                yield start, end


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _key(name: str, prefix: str, rest: str, *marks: str) -> Rule:
    r"""A key that begins with a word of a fixed length, and is no part of a longer word.

    The letter of an escape, as in "\nsk-...", is no part of the word that follows it in JSON.
    """
    ends = (rf"(?<!\w{prefix})", rf"(?<=\\[bfnrt]{prefix})", rf"(?<=\\u[0-9a-f]{{4}}{prefix})")
    pattern = f"{prefix}(?:{'|'.join(ends)}){rest}"
    return Rule(name, _bytes(*(marks or (prefix,))), pattern, is_key=True)


def _bytes(*marks: str) -> tuple[bytes, ...]:
    return tuple(mark.encode() for mark in marks)


def _looks_random(value: str) -> bool:
    """Letters and digits mixed, and no name, path or placeholder that a program would write."""
    return (
        len(value) >= 16
        and _is_value(value)
        and sum(character.isdigit() for character in value) >= 2
        and not _NAME.fullmatch(value)
    )


def _looks_chosen(value: str) -> bool:
    """A password: letters and digits, and nothing that a program would fill in."""
    return len(value) >= 8 and _is_value(value) and not _NAME.fullmatch(value)


def _is_value(value: str) -> bool:
    if value[0] in "$%{<*[" or "${" in value or "{{" in value:
        return False
    return any(c.isdigit() for c in value) and any(c.isalpha() for c in value)


def _is_given(value: str) -> bool:
    """No placeholder that a program fills in, and no word that stands for one in examples."""
    return value[0] not in "$%{<*[" and not _EXAMPLE.fullmatch(value)


def _holds_a_key(value: str) -> bool:
    """More than the two markers that programs look for."""
    body = value.split("-----", 2)[-1]
    return not set(body) & set("\"'<_") or _LONG_BASE64.search(body) is not None


def _is_basic(value: str) -> bool:
    """`user:password` in base64."""
    try:
        text = base64.b64decode(value + "=" * (-len(value) % 4), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return False
    return ":" in text and text.isprintable()


_NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+|[a-z]+(?:[_-][a-z]+)*(?:[_-]?v?\d{1,2})?")
"""`settings.api_key_2`, `my_key_2`: what programs call a value."""

_EXAMPLE = re.compile(
    r"(?i:admin|changeme|example|hostname|none|null|pass|passwd|password|postgres|pwd|redacted|root"
    r"|secret|test|token|undefined|user|x+)"
)
_LONG_BASE64 = re.compile(r"[A-Za-z0-9+/]{32}")

_WORD = "[A-Za-z0-9_-]"
_BASE64 = "[A-Za-z0-9+/]"

_ASSIGNED = r"""(?:\\*["'])?\]?\s{0,4}(?:=>|:=|%3[Dd]|[:=])\s{0,4}(?:\\*["'])?"""
"""Between a name and its value, in JSON, JSON within JSON, TOML, YAML, shells and programs."""
_VALUE = (
    r"""(?:(?<=["'])(?P<quoted>[^\s"'\\]{8,}+)(?=\\*["'])"""
    r"""|(?P<plain>[^\s"'\\,;&<>(){}\[\]]{8,}+)(?![(\[{]))"""
)
"""Between quotes, or as far as programs and shells read it; a call or an index is none."""

_SECRET_NAMES = (
    r"(?i:api[_-]?key|access[_-]?key|secret[_-]?key|account[_-]?key|private[_-]?key"
    r"|signing[_-]?key|encryption[_-]?key|client[_-]?secret|webhook[_-]?secret|app[_-]?secret"
    r"|(?:access|auth|refresh|id|session|bearer|api|bot|security)[_-]?token)"
)
_SECRET_MARKS = tuple(
    f"{word}{dash}{last}".encode()
    for last, words in (
        ("key", "api access secret account private signing encryption"),
        ("secret", "client webhook app"),
        ("token", "access auth refresh id session bearer api bot security"),
    )
    for word in words.split()
    for dash in ("", "_", "-")
)
_PASSWORD_NAMES = r"(?i:passw(?:or)?d|passphrase)"
_PASSWORD_MARKS = (b"password", b"passwd", b"passphrase")

_PEM = r" [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"

RULES: tuple[Rule, ...] = (
    # Models
    _key("Anthropic key", "sk-ant-", rf"{_WORD}{{20,}}"),
    _key("OpenAI key, and others of its form", "sk-",
         rf"(?=[A-Za-z_-]{{0,99}}[0-9]){_WORD}{{20,}}"),
    _key("Google API key", "AIza", rf"{_WORD}{{35}}"),
    _key("Google authorization key", r"AQ\.", rf"{_WORD}{{40,}}", "AQ."),
    _key("Google OAuth token", r"ya29\.", rf"{_WORD}{{20,}}", "ya29."),
    _key("Google OAuth client secret", "GOCSPX-", rf"{_WORD}{{20,}}"),
    _key("Hugging Face token", "hf_", r"[A-Za-z0-9]{30,}"),
    _key("Groq key", "gsk_", r"[A-Za-z0-9]{40,}"),
    _key("xAI key", "xai-", r"[A-Za-z0-9]{60,}"),
    _key("Cerebras key", "csk-", r"[a-z0-9]{40,}"),
    _key("Perplexity key", "pplx-", r"[A-Za-z0-9]{40,}"),
    _key("Replicate token", "r8_", r"[A-Za-z0-9]{37,}"),
    _key("NVIDIA key", "nvapi-", rf"{_WORD}{{40,}}"),
    _key("LangSmith key", r"lsv2_[ps][tk]_", r"[0-9a-f]{32}_[0-9a-f]{10}", "lsv2_"),
    _key("Pinecone key", "pcsk_", r"[A-Za-z0-9_]{40,}"),
    _key("Tavily key", "tvly-", rf"{_WORD}{{20,}}"),
    # Clouds
    _key("AWS access key id", r"A[KSBC][IC]A", r"[A-Z0-9]{16}\b", "AKIA", "ASIA", "ABIA", "ACCA"),
    Rule(
        "AWS secret access key",
        (b"secret",),
        rf"(?i:secret_?(?:access_?)?key){_ASSIGNED}(?P<secret>{_BASE64}{{40}})(?!{_BASE64})",
    ),
    _key("AWS Bedrock key", "ABSK", rf"{_BASE64}{{100,}}={{0,2}}"),
    Rule(
        "Azure connection string",
        (b"accountkey=", b"accesskey="),
        rf"(?i:(?:account|sharedaccess|access)key)=(?P<secret>{_BASE64}{{32,}}={{0,2}})",
    ),
    Rule("Azure OpenAI key", (b"jqqj99",), r"[A-Za-z0-9]{40,52}JQQJ99[A-Za-z0-9]{20,30}"),
    Rule("Azure client secret", (b"q~",), r"[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,34}"),
    _key("DigitalOcean token", r"do[opr]_v1_", r"[0-9a-f]{64}", "_v1_"),
    _key("Databricks token", "dapi", r"[0-9a-f]{32}"),
    _key("Vault token", r"hvs\.", rf"{_WORD}{{24,}}", "hvs."),
    _key("Supabase token", "sbp_", r"[0-9a-f]{40}"),
    _key("age key", "AGE-SECRET-KEY-1", r"[A-Z0-9]{50,}"),
    # Code
    _key("GitHub token", "gh[pousr]_", r"[A-Za-z0-9_]{30,}",
         "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    _key("GitHub fine-grained token", "github_pat_", r"[A-Za-z0-9_]{22,}"),
    _key("GitLab token", "gl", r"(?:pat|ptt|dt|rt|rtr|cbt|ft|soat|agent|oas|imt|ffct)-[\w.-]{20,}",
         *(f"gl{kind}-" for kind in ("pat", "ptt", "dt", "rt", "rtr", "cbt", "ft", "soat", "agent",
                                     "oas", "imt", "ffct"))),
    _key("npm token", "npm_", r"[A-Za-z0-9]{36,}"),
    _key("PyPI token", "pypi-", rf"AgE{_WORD}{{40,}}"),
    _key("RubyGems key", "rubygems_", r"[0-9a-f]{48}"),
    _key("Docker token", "dckr_[a-z]at_", rf"{_WORD}{{27,}}", "dckr_"),
    _key("Postman key", "PMAK-", r"[0-9a-f]{24}-[0-9a-f]{34}"),
    _key("Sentry token", "sntry[su]_", r"[A-Za-z0-9+/=_]{40,}", "sntrys_", "sntryu_"),
    _key("Grafana service token", "glsa_", r"[A-Za-z0-9_]{32,}"),
    _key("Grafana cloud token", "glc_", r"[A-Za-z0-9+/=]{32,}"),
    # Messages, payment and the office
    _key("Slack token", "xox[abeoprs]", r"[.-][A-Za-z0-9.-]{10,}",
         *(f"xox{kind}" for kind in "abeoprs")),
    _key("Slack app token", "xapp-", r"\d-[A-Za-z0-9-]{20,}"),
    Rule(
        "Slack webhook",
        (b"hooks.slack.com/",),
        r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[A-Za-z0-9/_-]{20,})",
    ),
    Rule(
        "Discord webhook",
        (b"/api/webhooks/",),
        rf"/api/webhooks/\d{{15,}}/(?P<secret>{_WORD}{{60,}})",
    ),
    Rule("Telegram bot token", (b":aa",), rf"(?<!\d)\d{{8,10}}:AA{_WORD}{{33}}"),
    _key("Stripe key", "[rs]k_(?:live|test)_", r"[A-Za-z0-9]{16,}", "k_live_", "k_test_"),
    _key("Stripe webhook secret", "whsec_", r"[A-Za-z0-9+/]{24,}={0,2}"),
    _key("Twilio key", "SK", r"[0-9a-f]{32}\b"),
    _key("SendGrid key", r"SG\.", rf"{_WORD}{{16,}}\.{_WORD}{{16,}}", "SG."),
    _key("Mailgun key", "key-", r"[0-9a-f]{32}\b"),
    _key("Shopify token", "shp(?:at|ca|pa|ss)_", r"[0-9a-fA-F]{32}",
         "shpat_", "shpca_", "shppa_", "shpss_"),
    _key("Square token", "sq0[a-z]{3}-", rf"{_WORD}{{22,}}", "sq0"),
    _key("Linear key", "lin_api_", r"[A-Za-z0-9]{32,}"),
    _key("Notion token", "ntn_", r"[A-Za-z0-9]{40,}"),
    _key("Figma token", "figd_", rf"{_WORD}{{40,}}"),
    _key("Atlassian token", "ATATT3", r"[A-Za-z0-9_=-]{60,}"),
    # Whatever it opens
    _key("JSON Web Token", "eyJ", rf"{_WORD}{{10,}}\.{_WORD}{{10,}}\.{_WORD}{{10,}}"),
    Rule("bearer token", (b"bearer",), r"(?i:bearer) (?P<secret>[A-Za-z0-9._~+/-]{20,}=*)"),
    Rule(
        "basic authorization",
        (b"basic",),
        rf"(?i:basic) (?P<secret>{_BASE64}{{8,}}={{0,2}})",
        _is_basic,
    ),
    Rule(
        "private key",
        (b"private",),
        # Whole, or with its end cut away: then as far as it looks like one.
        rf"-----BEGIN{_PEM}(?:(?:[^-]|-(?!----BEGIN))*?-----END{_PEM}"
        rf"|(?:(?:\\+[nr]|\s)*[A-Za-z0-9+/=]{{16,}})+)",
        _holds_a_key,
    ),
    Rule(
        "password in a URL",
        (b"://",),
        r"""://[^\s/:@"'\\<>]*:(?P<secret>[^\s/@"'\\<>]{3,})@""",
        _is_given,
    ),
    Rule(
        "credential in a query",
        (b"password=", b"passwd=", b"api_key=", b"apikey=", b"api-key=", b"token=", b"secret=",
         b"signature=", b"sig="),
        r"(?i:[?&](?:[\w.-]*[_-])?(?:password|passwd|api[_-]?key|(?:access|auth|refresh|id|session"
        r"|security|api)[_-]?token|client[_-]?secret|secret|signature|sig)=)"
        r"""(?P<secret>[^\s&#"'\\<>(){}\[\]]{8,})""",
        _is_given,
    ),
    Rule(
        "random value in a query",
        (b"key=", b"token=", b"code=", b"auth="),
        r"""(?i:[?&](?:key|token|code|auth)=)(?P<secret>[^\s&#"'\\<>(){}\[\]]{16,})""",
        _looks_random,
    ),
    Rule(
        "value named as a secret",
        _SECRET_MARKS,
        rf"{_SECRET_NAMES}{_ASSIGNED}{_VALUE}",
        _looks_random,
    ),
    Rule(
        "secret in the environment",
        (b"_token", b"_secret"),
        rf"_(?:TOKEN|SECRET){_ASSIGNED}{_VALUE}",
        _looks_random,
    ),
    Rule(
        "value named as a password",
        _PASSWORD_MARKS,
        rf"{_PASSWORD_NAMES}{_ASSIGNED}{_VALUE}",
        _looks_chosen,
    ),
)  # fmt: skip
"""In order: of two that fit the same place, the first gives its name to what is found."""
