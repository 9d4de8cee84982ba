// Languages of code in an answer: their names, and the names of files with it.

export const LANGUAGE_NAMES = {
  bash: "Bash", c: "C", "c++": "C++", "c#": "C#", cpp: "C++", cs: "C#", csharp: "C#", css: "CSS", csv: "CSV", go: "Go",
  html: "HTML", java: "Java", javascript: "JavaScript", js: "JavaScript", json: "JSON", jsx: "JSX", kotlin: "Kotlin",
  latex: "LaTeX", markdown: "Markdown", md: "Markdown", mermaid: "Mermaid", php: "PHP", powershell: "PowerShell",
  py: "Python", python: "Python", r: "R", rb: "Ruby", rs: "Rust", ruby: "Ruby", rust: "Rust", sh: "Shell", shell: "Shell",
  sql: "SQL", svg: "SVG", swift: "Swift", tex: "TeX", toml: "TOML", ts: "TypeScript", tsx: "TSX", typescript: "TypeScript",
  xml: "XML", yaml: "YAML", yml: "YAML",
};
const EXTENSIONS = {
  bash: "sh", "c++": "cpp", "c#": "cs", csharp: "cs", console: "txt", elixir: "ex", golang: "go", haskell: "hs",
  javascript: "js", kotlin: "kt", latex: "tex", markdown: "md", mermaid: "mmd", perl: "pl", powershell: "ps1",
  python: "py", python3: "py", ruby: "rb", rust: "rs", shell: "sh", typescript: "ts", yaml: "yml", zsh: "sh",
};
const FILE_NAMES = { docker: "Dockerfile", dockerfile: "Dockerfile", make: "Makefile", makefile: "Makefile", nginx: "nginx.conf" };
const NAME_COMMENT = /^\s*(?:#|\/\/|--|;|%|<!--|\/\*)\s*(?:file(?:name)?:\s*)?(?:[\w.-]+\/)*([\w-][\w.-]{0,60}\.\w{1,8})\s*(?:-->|\*\/)?\s*$/i;

// The name that a comment in the first line says, or one that fits the language.
export function fileName(text, language) {
  const namedInComment = NAME_COMMENT.exec(text.split("\n", 1)[0])?.[1];
  const extension = EXTENSIONS[language] ?? (/^[a-z0-9]{1,12}$/.test(language) ? language : "txt");
  return namedInComment ?? FILE_NAMES[language] ?? `snippet.${extension}`;
}
