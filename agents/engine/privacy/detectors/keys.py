"""Detectors of keys, tokens, passwords and secret URLs."""

from .. import validators
from .detector import PiiKind, make_detector

# The prefix identifies a key, so the rest needs no digit.
ISSUED_KEYS = (
    r"(?:sk|pk)-(?:proj|svcacct|admin|ant|or|lf)-[A-Za-z0-9_-]{16,}|sk-[A-Za-z0-9]{24,}|hf_[A-Za-z0-9]{16,}"
    r"|(?:glpat|gldt|glptt|glrt|gloas|glsoat|glagent|glcbt)-[A-Za-z0-9_.-]{16,}"
    r"|gh[opsur]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,}|GOCSPX-[A-Za-z0-9_-]{16,}"
    r"|whsec_[A-Za-z0-9+/=]{16,}|xox[abceprs]-[A-Za-z0-9-]{10,}|xapp-[0-9]-[A-Za-z0-9-]{10,}"
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}|AIza[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9_-]{16,}"
    r"|npm_[A-Za-z0-9]{30,}|pypi-AgE[A-Za-z0-9_-]{16,}|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"
    r"|(?:gsk|fw|r8|rg|tgp_v1|dop_v1|doo_v1|dckr_pat|lin_api|ntn|figd|sntry[su]|shp(?:at|ca|pa|ss)"
    r"|sk_live|sk_test|rk_live|rk_test|pk_live|pk_test)_[A-Za-z0-9]{16,}"
    r"|(?:xai|nvapi|pplx|csk|tvly|NRAK|tskey-(?:auth|api))-[A-Za-z0-9_-]{16,}"
    r"|hv[bs]\.[A-Za-z0-9_-]{20,}|ATATT3[A-Za-z0-9_=-]{20,}|[0-9]{8,10}:AA[A-Za-z0-9_-]{33}"
    r"|[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}"
    r"|rubygems_[a-f0-9]{40,}|PMAK-[a-f0-9]{24}-[a-f0-9]{30,}|AGE-SECRET-KEY-1[A-Z0-9]{20,}|sq0(?:atp|csp)-[A-Za-z0-9_-]{20,}"
)
GENERIC_KEYS = r"(?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,}|(?:npm|gsk|csk|ntn)[-_][A-Za-z0-9_-]{16,}"
# Anyone who has the URL can post there.
WEBHOOKS = (
    r"hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/[A-Za-z0-9_/-]{10,}"
    r"|(?:canary\.|ptb\.)?discord(?:app)?\.com/api/(?:v[0-9]+/)?webhooks/[0-9]{5,}/[A-Za-z0-9_-]{10,}"
    r"|[A-Za-z0-9.-]{1,80}webhook\.office\.com/webhookb2/[A-Za-z0-9@/_-]{10,}"
    r"|outlook\.office(?:365)?\.com/webhook/[A-Za-z0-9@/_-]{10,}"
    r"|[A-Za-z0-9.:-]{1,80}(?:logic\.azure|powerplatform|api\.powerautomate)\.com(?::[0-9]+)?/[^\s‹›\"'<>]{1,400}sig=[A-Za-z0-9_%-]{10,}"
    r"|chat\.googleapis\.com/v1/spaces/[^\s‹›\"'<>]{1,200}(?:key|token)=[A-Za-z0-9_%&=-]{10,}"
    r"|hooks\.zapier\.com/hooks/catch/[0-9]+/[A-Za-z0-9]+|api\.telegram\.org/bot[0-9]{5,}:[A-Za-z0-9_-]{20,}"
)
BASE64 = r"[A-Za-z0-9+/=]"
LINE_BREAK = r"(?:\s|\\[nr])"
PEM = (
    rf"-----BEGIN [A-Z0-9 ]{{3,40}}-----{LINE_BREAK}*"
    rf"(?:[A-Za-z-]{{1,20}}: [^\n\\]{{1,80}}{LINE_BREAK}+)*"
    rf"(?:{BASE64}{{16,}}{LINE_BREAK}*)+{BASE64}*{LINE_BREAK}*"
    r"(?:-----END [A-Z0-9 ]{3,40}-----)?"
)
SECRET_NAMES = (
    r"(?:api|access|secret|private|client|auth|encryption|signing|webhook|master|refresh|session"
    r"|bearer|bot|id)?[_ -]?(?:key|token|secret|credentials?)"
)
# Before phone numbers, which may be part of a password.
URL_PASSWORD_DETECTORS = (
    make_detector(PiiKind.KEY, r"://([^\s/@:‹›]+:[^\s/@‹›]+)@", needs="@"),
)
KEY_DETECTORS = (
    make_detector(PiiKind.KEY, rf"(?:^|[^0-9A-Za-z])({ISSUED_KEYS})", needs="-_.:AIz"),
    make_detector(
        PiiKind.KEY, rf"(?:^|[^0-9A-Za-z])({GENERIC_KEYS})", validators.key_with_digit, "-_"
    ),
    make_detector(
        PiiKind.KEY,
        rf"(?i)(?:^|[^0-9A-Za-z.-])((?:https?://)?(?:{WEBHOOKS}))",
        words="hook logic.azure power chat.google telegram",
    ),
    make_detector(
        PiiKind.KEY,
        r"(?i)(?:AccountKey|SharedAccessKey|SharedAccessSignature)=([A-Za-z0-9+/=%&_.:-]{16,})",
        needs="=",
        words="accountkey sharedaccess",
    ),
    make_detector(
        PiiKind.KEY,
        r"(?:^|[^0-9A-Za-z])(eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*){0,2})",
        words="eyj",
    ),
    make_detector(
        PiiKind.KEY,
        r"(?i)\b(?:bearer|basic)\s{1,4}([A-Za-z0-9._~+/=-]{8,})",
        validators.credentials,
        words="bearer basic",
    ),
    make_detector(
        PiiKind.KEY,
        r"(?i)authorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:[a-z]{1,20}\s{1,4})?([^\s\"',;‹›]{8,})",
        validators.credentials,
        words="authorization",
    ),
    make_detector(PiiKind.KEY, rf"({PEM})", words="-----begin"),
    make_detector(
        PiiKind.KEY,
        rf"(?i)(?:^|[^A-Za-z0-9]){SECRET_NAMES}[\"']?\s{{0,3}}[:=]\s{{0,3}}[\"']?"
        r"([^\s\"',;&‹›]{16,})",
        validators.secret,
        ":=",
        words="key token secret credential",
    ),
    make_detector(
        PiiKind.KEY,
        r"(?i)(?:password|passwd|passcode|passphrase|\bpwd|パスワード|暗証番号)[\"']?[ \t]{0,3}"
        r"(?:[:=]|は|\bis\b)[ \t]{0,3}[\"'「]?([!#-&(-+\-./0-:<-~]{4,})",
        validators.password,
        words="passw passc passp pwd パスワード 暗証",
    ),
)
