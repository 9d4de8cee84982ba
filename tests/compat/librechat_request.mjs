// What LibreChat does with its configuration: it checks it, lists the models, and asks one.
import { readFileSync } from "node:fs";
import { HumanMessage } from "@langchain/core/messages";
import { ChatModelStreamHandler, GraphEvents, Providers, Run } from "@librechat/agents";
import { load } from "js-yaml";
import { configSchema } from "librechat-data-provider";

const text = readFileSync(new URL("librechat.yaml", import.meta.url), "utf8");
const [endpoint] = configSchema.strict().parse(load(text)).endpoints.custom;
const apiKey = process.env[endpoint.apiKey.slice(2, -1)]; // ${NAME}
const headers = { Authorization: `Bearer ${apiKey}` };
const listed = await (await fetch(`${endpoint.baseURL}/models`, { headers })).json();

let pieces = 0;
const run = await Run.create({
  runId: "1",
  graphConfig: {
    type: "standard",
    llmConfig: {
      provider: Providers.OPENAI,
      model: endpoint.models.default[0],
      apiKey,
      streaming: true,
      streamUsage: true,
      configuration: { baseURL: endpoint.baseURL },
    },
  },
  returnContent: true,
  customHandlers: {
    [GraphEvents.CHAT_MODEL_STREAM]: new ChatModelStreamHandler(),
    [GraphEvents.ON_MESSAGE_DELTA]: { handle: () => (pieces += 1) },
  },
});
const options = {
  configurable: { thread_id: "1", user_id: "1" },
  version: "v2",
  streamMode: "values",
};
const messages = [new HumanMessage("What is 6 * 7?")];
const [{ text: answer }] = await run.processStream({ messages }, options);
console.log(JSON.stringify({ models: listed.data.map((model) => model.id), pieces, answer }));
