// The agent editor: wires the form, its draft, the tabs, the tools and the test chat.

import { registerShortcut } from "../shortcuts.js";
import { startAutosave } from "./autosave.js";
import { startChecks } from "./checks.js";
import { startMarks } from "./marks.js";
import { startModels } from "./models.js";
import { startPrompt } from "./prompt.js";
import { startPublishing } from "./publishing.js";
import { startSchema } from "./schema.js";
import { startTabs } from "./tabs.js";
import { startTestChat } from "./test_chat.js";
import { startTools } from "./tools.js";

const page = document.querySelector("[data-editor]");
const form = document.getElementById("agent_form");
const state = JSON.parse(document.getElementById("draft-state").textContent);

// An installation can have hundreds of tools, and the server accepts 1,000 inputs.
form.addEventListener("formdata", ({ formData }) => {
  for (const [name, value] of [...formData]) if (name.startsWith("tool-") && value === "") formData.delete(name);
});

const tabs = startTabs(page);
const marks = startMarks(page, form, state, tabs);
const draft = startAutosave(page, form, state, marks);
startTools(page, form);
startModels(page, form);
startChecks(page, form);
startPrompt(page, form, draft);
startSchema(page, form);
startTestChat(page, form, marks);
const { openDialog } = startPublishing(page, form, draft, tabs);

registerShortcut("mod+s", () => void draft.saveNow());
registerShortcut("mod+shift+enter", () => void openDialog());
