// Asks Countersign to store a note, waits for what becomes of it, and prints
// that. api.d.ts is generated from the API's document.
import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

declare const process: { argv: string[]; env: Record<string, string | undefined>; exit(code: number): never };

const [title, body] = process.argv.slice(2);
if (title === undefined || body === undefined) {
  console.error("usage: node agent.js TITLE BODY");
  process.exit(1);
}

const countersign = createClient<paths>({
  baseUrl: process.env["COUNTERSIGN_URL"] ?? "http://127.0.0.1:8080",
  headers: { Authorization: `Bearer ${process.env["COUNTERSIGN_TOKEN"]}` },
});

const { data, error } = await countersign.POST("/api/v1/actions", {
  params: { query: { wait: process.env["AGENT_WAIT"] ?? "30s" } },
  body: {
    type: "mcp.exec",
    // Makes the proposal safe to send again: the same name with the same
    // content is the same action.
    external_id: `note ${title}`,
    tool: { source: "notes", name: "notes.create" },
    args: { title, body },
  },
});

if (error !== undefined) {
  if ("action" in error) {
    console.log("denied:", error.detail);
    process.exit(2);
  }
  console.error("error:", error.detail ?? error.title, error.errors ?? "");
  process.exit(1);
}
if (!("envelope" in data)) throw new Error("the answer is that of a dry run");
process.exit(report(data));

// report prints what became of an action and returns the exit code.
function report(action: components["schemas"]["Action"]): number {
  switch (action.phase) {
    case "completed":
      console.log("done:", JSON.stringify(action.envelope.result.output));
      return 0;
    case "pending":
      console.log("waits for a person:", action.envelope.action_id);
      return 3;
    case "denied":
      console.log("denied:", action.decision?.note);
      return 2;
    default:
      console.log("not done:", action.phase);
      return 1;
  }
}
