// The agent editor: wires the form, its draft, the tabs, the tools and the test chat.

import { register } from "../shortcuts.js";
import { start as autosave } from "./autosave.js";
import { start as checks } from "./checks.js";
import { start as models } from "./models.js";
import { start as prompt } from "./prompt.js";
import { start as publishing } from "./publishing.js";
import { start as schema } from "./schema.js";
import { start as marks } from "./marks.js";
import { start as tabs } from "./tabs.js";
import { start as testChat } from "./test_chat.js";
import { start as tools } from "./tools.js";

const page = document.querySelector("[data-editor]");
const form = document.getElementById("agent_form");
const state = JSON.parse(document.getElementById("draft-state").textContent);

// An installation can have hundreds of tools, and the server accepts 1,000 inputs.
form.addEventListener("formdata", ({ formData }) => {
  for (const [name, value] of [...formData]) if (name.startsWith("tool-") && value === "") formData.delete(name);
});

const shown = tabs(page);
const marked = marks(page, form, state, shown);
const draft = autosave(page, form, state, marked);
tools(page, form);
models(page, form);
checks(page, form);
prompt(page, form, draft);
schema(page, form);
testChat(page, form, marked);
const { open } = publishing(page, form, draft, shown);

register("mod+s", () => void draft.saveNow());
register("mod+shift+enter", () => void open());
