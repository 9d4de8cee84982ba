"""Masks keys and passwords in text from providers, servers and drivers."""

import re
from urllib.parse import quote

MASK = "***"
MIN_SECRET_CHARS = 4

_NAME = r"(?:key|token|secret|password|passwd|pwd|credentials?|signature)"
_TOKEN = r"(?=[A-Za-z*.+/=_-]*[\d*])[\w*.+/=-]"  # with a digit or a star, so not a word

# `kept` is the text before a secret. Repeatable quantifiers are bounded, or their matches start
# in one place only, so that long text doesn't take long.
_SECRET_PATTERNS = (
    # Authorization: Basic dXNlcjpwYXNz
    r"(?P<kept>authorization['\"]?\s{0,4}[:=]\s{0,4}['\"]?(?:\w{1,20}\s{1,4})?)[^\s'\",;]+",
    # Bearer abc.def, but not: a bearer token is needed
    r"(?P<kept>\bbearer\s{1,4})(?!tokens?\b|auth)[^\s'\",;]+",
    r"(?P<kept>\bbasic\s{1,4})(?=\S{0,200}?(?:\d|=|(?-i:[a-z][A-Z])))[\w+/=-]{8,}",
    # postgres://user:password@host
    r"(?P<kept>://)[^\s/@'\"]{1,400}(?=@)",
    # sk-…, gsk_…, ghp_…, and unmarked ones: AIza…, AKIA…, eyJ….….…
    r"(?P<kept>)(?<![A-Za-z0-9])(?:(?:sk|pk|rk|gsk|xai|csk|nvapi|pplx|tvly|xox[abceprs]"
    r"|gl(?:pat|dt|ptt|rt|oas|soat|agent|cbt))[-_]|(?-i:GOCSPX-|NRAK-|pypi-AgE|SG\.|hv[bs]\.)"
    r"|(?:hf|r8|fw|tgp|gh[opsur]|github_pat)_|(?-i:AIza|AKIA|ASIA|ya29\.|eyJ))[\w*.+/=-]{4,}",
    r"(?P<kept>)(?<![A-Za-z0-9])(?:npm|whsec|dop_v1|dckr_pat|lin_api|figd|shp(?:at|ca|pa|ss)"
    r"|sntry[su])_[A-Za-z0-9*+/=]{16,}",
    # Anyone who has a webhook's URL can post there
    r"(?P<kept>(?:hooks\.slack\.com/\w{1,20}|discord(?:app)?\.com/api/webhooks"
    r"|webhook\.office\.com/webhookb2)/)[^\s'\"<>]+",
    # key=…, "api_key": "…"
    rf"(?P<kept>{_NAME}['\"]?\s{{0,4}}=\s{{0,4}}['\"]?)[^\s&'\",;]+",
    r"(?P<kept>(?:\wkey|\w[-_ ]key|token|secret|password)['\"]\s{0,4}:\s{0,4}['\"])[^'\"]+",
    # key provided: 3f2a…, the key 3f2a… is wrong, and long ones a little further on
    rf"(?P<kept>\b{_NAME}(?:\s{{1,4}}\w{{1,12}}){{0,2}}\s{{0,4}}:\s{{0,4}}['\"`(]?){_TOKEN}{{8,}}",
    rf"(?P<kept>\b{_NAME}\s{{1,4}}['\"`(]?){_TOKEN}{{12,}}",
    rf"(?P<kept>\b{_NAME}\b[^\n]{{0,60}}?\b)(?=[A-Za-z]*\d)[A-Za-z0-9]{{20,}}",
    # Too many letters and digits for a word
    r"(?P<kept>)(?<![A-Za-z0-9])(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{32,}",
)
_SECRET_REGEXES = tuple(re.compile(kind, re.I) for kind in _SECRET_PATTERNS)


def mask_secrets(text: str, *secrets: str | None) -> str:
    """Mask these secrets and anything that looks like one."""
    for secret in secrets:
        if secret and len(secret) >= MIN_SECRET_CHARS:
            text = text.replace(secret, MASK).replace(quote(secret, safe=""), MASK)
    for regex in _SECRET_REGEXES:
        text = regex.sub(rf"\g<kept>{MASK}", text)
    return text
