// What an editor does, with the protocol's SDK: asks once, approves calls, and prints what it was told.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import { client, methods, ndJsonStream, PROTOCOL_VERSION } from "@agentclientprotocol/sdk";

const server = JSON.parse(process.env.AGENT_SERVER);
const child = spawn(server.command, server.args, {
  env: { ...process.env, ...server.env },
  stdio: ["pipe", "pipe", "inherit"],
});
const seen = { answer: "", updates: [], requests: [] };
const editor = client({ name: "compat" })
  .onNotification(methods.client.session.update, ({ params: { update } }) => {
    seen.updates.push(update.sessionUpdate);
    if (update.sessionUpdate === "agent_message_chunk") seen.answer += update.content.text;
  })
  .onRequest(methods.client.session.requestPermission, ({ params }) => {
    seen.requests.push(params.toolCall.title);
    const { optionId } = params.options.find((option) => option.kind === "allow_once");
    return { outcome: { outcome: "selected", optionId } };
  });
const pipes = ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
await editor.connectWith(pipes, async (agent) => {
  await agent.request(methods.agent.initialize, {
    protocolVersion: PROTOCOL_VERSION,
    clientCapabilities: {},
  });
  const session = { cwd: process.cwd(), mcpServers: [] };
  const { sessionId, modes } = await agent.request(methods.agent.session.new, session);
  seen.agent = modes.currentModeId;
  const prompt = [{ type: "text", text: "What is 6 * 7?" }];
  const { stopReason } = await agent.request(methods.agent.session.prompt, { sessionId, prompt });
  seen.stopReason = stopReason;
});
child.kill();
console.log(JSON.stringify(seen));
