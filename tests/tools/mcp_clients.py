"""The configuration of MCP clients, in the shape that each of them documents.

Each client has the text that people copy and the expected result: the servers' names with
their argv or URL, and the values that are missing.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Client:
    text: str
    servers: dict[str, str]
    missing: dict[str, list[str]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


CLIENTS = {
    "Claude Desktop": Client(
        """
        {
          "mcpServers": {
            "filesystem": {
              "command": "npx",
              "args": ["-y", "@modelcontextprotocol/server-filesystem", "/srv/notes"]
            },
            "weather": {
              "command": "uv",
              "args": ["--directory", "/srv/weather", "run", "weather.py"],
              "env": {"WEATHER_KEY": "<YOUR_API_KEY>"}
            }
          }
        }
        """,
        {
            "filesystem": "npx -y @modelcontextprotocol/server-filesystem /srv/notes",
            "weather": "uv --directory /srv/weather run weather.py",
        },
        {"weather": ["WEATHER_KEY"]},
    ),
    "Claude Code": Client(
        """
        {
          "mcpServers": {
            "api": {
              "type": "http",
              "url": "${API_BASE_URL:-https://api.example}/mcp",
              "headers": {"Authorization": "Bearer ${API_KEY}"},
              "headersHelper": "/opt/bin/headers"
            },
            "db": {
              "type": "stdio",
              "command": "npx",
              "args": ["-y", "@acme/db", "--dsn", "${DB_URL}"],
              "env": {"DB_URL": "postgres://db.example/app"}
            }
          }
        }
        """,
        {
            "api": "https://api.example/mcp",
            "db": "npx -y @acme/db --dsn postgres://db.example/app",
        },
        {"api": ["API_KEY"]},
        ("Skipped 'headersHelper'. Enter the values it would set.",),
    ),
    "Cursor": Client(
        """
        {
          "mcpServers": {
            "local": {
              "type": "stdio",
              "command": "python",
              "args": ["${workspaceFolder}/tools/server.py"],
              "env": {"API_KEY": "${env:API_KEY}"},
              "envFile": "${workspaceFolder}/.env"
            },
            "remote": {
              "url": "https://api.example.com/mcp",
              "auth": {"CLIENT_ID": "x"}
            }
          }
        }
        """,
        {
            "local": "python ${workspaceFolder}/tools/server.py",
            "remote": "https://api.example.com/mcp",
        },
        {"local": ["workspaceFolder", "API_KEY"]},
        (
            "Skipped 'envFile'. Enter the values it would set.",
            "Skipped 'auth', which isn't used here.",
        ),
    ),
    "VS Code": Client(
        """
        {
          // Asked for once, then stored by the editor.
          "inputs": [
            {
              "type": "promptString", "id": "perplexity-key",
              "description": "API key", "password": true
            },
            {"type": "pickString", "id": "region", "options": ["eu", "us"], "default": "eu"},
          ],
          "servers": {
            "perplexity": {
              "type": "stdio",
              "command": "docker",
              "args": ["run", "-i", "--rm", "-e", "PERPLEXITY_API_KEY", "mcp/perplexity-ask"],
              "env": {"PERPLEXITY_API_KEY": "${input:perplexity-key}"},
            },
            "search": {"type": "http", "url": "https://${input:region}.example.com/mcp"},
          },
        }
        """,
        {
            "perplexity": "docker run -i --rm -e PERPLEXITY_API_KEY mcp/perplexity-ask",
            "search": "https://${region}.example.com/mcp",
        },
        {"perplexity": ["perplexity-key"], "search": ["region"]},
    ),
    "VS Code settings": Client(
        """
        {
          "editor.fontSize": 13,
          "mcp": {"servers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}}
        }
        """,
        {"time": "uvx mcp-server-time"},
    ),
    "Windsurf": Client(
        """
        {
          "mcpServers": {
            "github": {
              "command": "npx",
              "args": ["-y", "@modelcontextprotocol/server-github"],
              "env": {"GITHUB_PERSONAL_ACCESS_TOKEN": "<YOUR_PERSONAL_ACCESS_TOKEN>"}
            },
            "figma": {
              "serverUrl": "https://figma.example/mcp",
              "disabledTools": ["delete_file"]
            }
          }
        }
        """,
        {
            "github": "npx -y @modelcontextprotocol/server-github",
            "figma": "https://figma.example/mcp",
        },
        {"github": ["GITHUB_PERSONAL_ACCESS_TOKEN"]},
        ("Skipped 'disabledTools'. Enable or disable each tool after the import.",),
    ),
    "Gemini CLI": Client(
        """
        {
          "mcp": {"allowed": ["tools"], "excluded": []},
          "mcpServers": {
            "tools": {
              "command": "python3",
              "args": ["-m", "my_tools", "--port", 8080],
              "cwd": "./server",
              "env": {"DATABASE_URL": "$DB_CONNECTION_STRING"},
              "timeout": 15000,
              "trust": true,
              "includeTools": ["safe"]
            },
            "remote": {
              "httpUrl": "https://api.example.com/mcp",
              "headers": {"Authorization": "Bearer your-api-token"},
              "timeout": 5000
            }
          }
        }
        """,
        {
            "tools": "python3 -m my_tools --port 8080",
            "remote": "https://api.example.com/mcp",
        },
        {"tools": ["DB_CONNECTION_STRING"], "remote": ["Authorization"]},
        (
            "Skipped 'cwd'. Every server runs in its own folder.",
            "Skipped 'trust'. Set approval for each tool after the import.",
            "Skipped 'includeTools'. Enable or disable each tool after the import.",
        ),
    ),
    "Codex": Client(
        """
        [mcp_servers.context7]
        command = "npx"
        args = ["-y", "@upstash/context7-mcp"]
        env_vars = ["CONTEXT7_API_KEY"]
        startup_timeout_sec = 20

        [mcp_servers.figma]
        url = "https://mcp.figma.example/mcp"
        bearer_token_env_var = "FIGMA_OAUTH_TOKEN"
        http_headers = { "X-Figma-Region" = "us-east-1" }
        """,
        {
            "context7": "npx -y @upstash/context7-mcp",
            "figma": "https://mcp.figma.example/mcp",
        },
        {"context7": ["CONTEXT7_API_KEY"], "figma": ["FIGMA_OAUTH_TOKEN"]},
    ),
    "Zed": Client(
        """
        {
          "theme": "One Dark",
          "context_servers": {
            "nested": {
              "command": {"path": "uvx", "args": ["mcp-server-git"], "env": {"TZ": "UTC"}},
              "settings": {"depth": 3}
            },
            "flat": {"source": "custom", "command": "npx", "args": ["-y", "@acme/x"]},
            "remote": {"url": "https://remote.example/mcp", "enabled": false}
          }
        }
        """,
        {
            "nested": "uvx mcp-server-git",
            "flat": "npx -y @acme/x",
            "remote": "https://remote.example/mcp",
        },
        {},
        (
            "Skipped 'settings', which isn't used here.",
            "Disabled in this configuration, so it's imported disabled.",
        ),
    ),
    "opencode": Client(
        """
        {
          "$schema": "https://opencode.ai/config.json",
          "mcp": {
            "everything": {
              "type": "local",
              "command": ["bun", "x", "my-mcp-command"],
              "enabled": true,
              "environment": {"MY_ENV_VAR": "some value"},
            },
            "jira": {
              "type": "remote",
              "url": "https://jira.example.com/mcp",
              "headers": {"Authorization": "Bearer {env:JIRA_KEY}"},
              "oauth": {},
            },
          },
        }
        """,
        {"everything": "bun x my-mcp-command", "jira": "https://jira.example.com/mcp"},
        {"jira": ["JIRA_KEY"]},
    ),
    "Cline": Client(
        """
        {
          "mcpServers": {
            "local": {
              "command": "node",
              "args": ["/srv/server.js"],
              "env": {"API_KEY": "your_api_key"},
              "alwaysAllow": ["tool1"],
              "disabled": false,
              "timeout": 60
            },
            "far": {
              "type": "streamableHttp",
              "url": "https://far.example/mcp",
              "autoApprove": [],
              "disabled": true
            }
          }
        }
        """,
        {"local": "node /srv/server.js", "far": "https://far.example/mcp"},
        {"local": ["API_KEY"]},
        (
            "Skipped 'alwaysAllow'. Set approval for each tool after the import.",
            "Disabled in this configuration, so it's imported disabled.",
        ),
    ),
    "Roo Code": Client(
        """
        {
          "mcpServers": {
            "puppeteer": {
              "command": "cmd",
              "args": ["/c", "npx", "-y", "@modelcontextprotocol/server-puppeteer"],
              "watchPaths": ["/srv/src"]
            }
          }
        }
        """,
        {"puppeteer": "npx -y @modelcontextprotocol/server-puppeteer"},
        {},
        (
            "Starts 'npx' directly instead of through 'cmd'.",
            "Skipped 'watchPaths', which isn't used here.",
        ),
    ),
    "LM Studio": Client(
        """
        {
          "mcpServers": {
            "hf-mcp-server": {
              "url": "https://huggingface.example/mcp",
              "headers": {"Authorization": "Bearer <YOUR_HF_TOKEN>"}
            }
          }
        }
        """,
        {"hf-mcp-server": "https://huggingface.example/mcp"},
        {"hf-mcp-server": ["Authorization"]},
    ),
    "Goose": Client(
        """
extensions:
  fetch:
    enabled: true
    type: stdio
    name: fetch
    cmd: uvx
    args: [mcp-server-fetch]
    envs: {}
    env_keys: [PROXY_TOKEN]
    timeout: 300
    bundled: null
  docs:
    enabled: true
    config:
      type: streamable_http
      uri: https://docs.example/mcp
      headers: {}
        """,
        {"fetch": "uvx mcp-server-fetch", "docs": "https://docs.example/mcp"},
        {"fetch": ["PROXY_TOKEN"]},
    ),
    "Continue": Client(
        """
name: My agent
version: 0.0.1
schema: v1
mcpServers:
  - name: SQLite MCP
    command: npx
    args:
      - "-y"
      - "mcp-sqlite"
      - "/srv/data/env"
    env:
      KEY: ${{ secrets.SQLITE_KEY }}
  - name: Linear
    type: sse
    url: https://mcp.linear.example/sse
    requestOptions:
      headers:
        X-Team: blue
        """,
        {
            "sqlite-mcp": "npx -y mcp-sqlite /srv/data/env",
            "linear": "https://mcp.linear.example/sse",
        },
        {"sqlite-mcp": ["SQLITE_KEY"]},
    ),
    "LibreChat": Client(
        """
mcpServers:
  everything:
    url: http://localhost:3001/sse
    timeout: 60000
    chatMenu: false
  composio:
    type: streamable-http
    url: https://composio.example/mcp
    headers:
      x-api-key: "{{COMPOSIO_KEY}}"
    serverInstructions: true
        """,
        {
            "everything": "http://localhost:3001/sse",
            "composio": "https://composio.example/mcp",
        },
        {"composio": ["COMPOSIO_KEY"]},
    ),
}
