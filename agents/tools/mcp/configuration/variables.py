"""Environment variables of MCP servers: what they can't be given, and what they inherit.

What they can't be given decides which program, library or package runs, so the argv would no
longer say it. For whole families of such names, only known harmless ones are accepted.

What they inherit is how this machine reaches the network and its package indexes. Whoever
starts the product sets it, like PATH; without it, no launcher can download a server behind a
company's proxy.
"""

import os
import re
from urllib.parse import unquote

from agents.engine.sentences import Sentence as _

RUNS_PROGRAMS = _("the environment variable %(name)s could make it run other programs")
RESERVED = _("the environment variable %(name)s is set automatically")

RESERVED_VARIABLES = {"PATH", "HOME", "TMPDIR", "PWD"}
FORBIDDEN_VARIABLES = re.compile(
    r"PATH|PATHEXT|CDPATH|FPATH|MANPATH|IFS|ENV|BASH_ENV|SHELLOPTS|BASHOPTS|PS4|PROMPT_COMMAND"
    r"|SHELL|EDITOR|VISUAL|PAGER|BROWSER|ZDOTDIR|COMSPEC"
    r"|GCONV_PATH|LOCPATH|NLSPATH|GLIBC_TUNABLES|MALLOC_.*|HOSTALIASES|RES_OPTIONS"
    r"|OPENSSL_(?:CONF|ENGINES|MODULES)|SSLKEYLOGFILE"
    r"|NODE_(?:OPTIONS|PATH|REPL_.*)|PERL5?(?:LIB|OPT|DB)|PERL5.*|RUBY(?:OPT|LIB)|GEM_.*|BUNDLE_.*"
    r"|LUA_C?PATH.*|LUA_INIT.*|PHPRC|PHP_INI_SCAN_DIR|R_(?:PROFILE|ENVIRON).*|JULIA_.*"
    r"|_?JAVA_.*OPTIONS|JDK_JAVA_OPTIONS|CLASSPATH|JAVA_HOME|GROOVY_.*"
    r"|SSH_ASKPASS|SUDO_ASKPASS|DENO_(?:DIR|CERT|AUTH_TOKENS)|BUN_(?:INSTALL|CONFIG).*"
    r"|CONTAINER_(?:HOST|SSHKEY|PROXY)|CONTAINERS_.*|VIRTUAL_ENV|CONDA_.*|XDG_(?:CONFIG|DATA)_(?:HOME|DIRS)|COREPACK_.*"
)
# Families, with their harmless members.
VARIABLE_FAMILIES = {
    "LD_": re.compile(r"(?!)"),
    "DYLD_": re.compile(r"(?!)"),
    "PYTHON": re.compile(
        r"PYTHON(?:UNBUFFERED|UTF8|IOENCODING|DONTWRITEBYTECODE|HASHSEED|FAULTHANDLER"
        r"|ASYNCIODEBUG|TRACEMALLOC|NODEBUGRANGES|SAFEPATH|NOUSERSITE)"
    ),
    "GIT_": re.compile(r"GIT_(?:(?:AUTHOR|COMMITTER)_(?:NAME|EMAIL|DATE)|.*TOKEN|USERNAME)"),
    "NPM_CONFIG_": re.compile(
        r"NPM_CONFIG_(?:LOGLEVEL|UPDATE_NOTIFIER|FUND|AUDIT|PROGRESS|YES|OFFLINE|COLOR"
        r"|PREFER_OFFLINE|FETCH_TIMEOUT|FETCH_RETRIES|IGNORE_SCRIPTS)"
    ),
    "UV_": re.compile(r"UV_(?:OFFLINE|NO_PROGRESS|HTTP_TIMEOUT|NATIVE_TLS|NO_CONFIG|NO_BUILD)"),
    "PIP_": re.compile(r"PIP_(?:NO_INPUT|DISABLE_PIP_VERSION_CHECK|TIMEOUT|QUIET|NO_COLOR)"),
    "PIPX_": re.compile(r"(?!)"),
    "YARN_": re.compile(r"(?!)"),
    "PNPM_": re.compile(r"(?!)"),
    "DOCKER_": re.compile(r"DOCKER_CLI_HINTS|DOCKER_.*TOKEN"),
}

CERTIFICATE_VARIABLES = (
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "NPM_CONFIG_CAFILE",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
)
INHERITED_VARIABLES = re.compile(
    r"(?:HTTP|HTTPS|ALL|NO)_PROXY|NODE_USE_(?:ENV_PROXY|SYSTEM_CA)"
    r"|PIP_(?:(?:EXTRA_)?INDEX_URL|TRUSTED_HOST|PROXY)|(?:UV|NPM_CONFIG)_.+"
    f"|{'|'.join(CERTIFICATE_VARIABLES)}"
)
# Folders and files of the account that runs the product, its sign-ins for publishing, and
# programs that npm would run: none of it is about downloading a package.
NOT_INHERITED = re.compile(
    r"UV_(?:.*_DIR|.*_DIRECTORY|.*_FILE|.*ENVIRONMENT|PROJECT|PYTHON|PUBLISH_.*|INTERNAL_.*)"
    r"|NPM_CONFIG_(?:CACHE|.*PREFIX|.*CONFIG|INIT_.*|LOGS_DIR|OTP|EDITOR|.*SHELL|NODE_OPTIONS)"
)
CREDENTIAL_NAMES = re.compile(r"(?i)passw(?:or)?d|token|_auth")
URL_LOGIN = re.compile(r"//([^/\s]+)@")


def inherited_variables() -> dict[str, str]:
    """Return the variables for proxies, certificates and package indexes of this machine."""
    return {
        name: value
        for name, value in os.environ.items()
        if INHERITED_VARIABLES.fullmatch(name.upper())
        and not NOT_INHERITED.fullmatch(name.upper())
    }


def inherited_credentials() -> list[str]:
    """Return the passwords in inherited variables, to mask in what a server says."""
    credentials = []
    for name, value in inherited_variables().items():
        if CREDENTIAL_NAMES.search(name):
            credentials.append(value)
        for login in URL_LOGIN.findall(value):
            password = login.partition(":")[2] or login
            credentials += [password, unquote(password)]
    return credentials


def certificate_paths() -> list[str]:
    """Return the files and folders that inherited variables name, which a sandbox must show."""
    inherited = inherited_variables().items()
    return [value for name, value in inherited if name.upper() in CERTIFICATE_VARIABLES]


def variable_problem(name: str) -> str:
    """Return why a server can't be given this variable, or an empty string."""
    upper = name.upper()
    if upper in RESERVED_VARIABLES:
        return RESERVED.fill(name=repr(name))
    if FORBIDDEN_VARIABLES.fullmatch(upper):
        return RUNS_PROGRAMS.fill(name=repr(name))
    for family, harmless in VARIABLE_FAMILIES.items():
        if upper.startswith(family) and not harmless.fullmatch(upper):
            return RUNS_PROGRAMS.fill(name=repr(name))
    return ""
