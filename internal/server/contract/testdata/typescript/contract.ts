// A small program made from the API's document alone. It compiles with strict
// types and without casts.
import createClient from "openapi-fetch";
import type { paths, components } from "./api.js";

declare const process: { env: Record<string, string | undefined> };

function client(token: string | undefined) {
  return createClient<paths>({ baseUrl: process.env["COUNTERSIGN_URL"] ?? "", headers: { Authorization: `Bearer ${token}` } });
}

const agent = client(process.env["COUNTERSIGN_TOKEN"]);
const operator = client(process.env["OPERATOR_TOKEN"]);

// ok returns the answer of a success, and fails on any other.
function ok<T>(answer: { data?: T; error?: unknown; response: Response }): T {
  if (answer.data === undefined) throw new Error(`${answer.response.url}: ${JSON.stringify(answer.error)}`);
  return answer.data;
}

function proposal(name: string): components["schemas"]["Proposal"] {
  return {
    type: "mcp.exec",
    external_id: name,
    tool: { source: "mail", name: "send_email" },
    args: { to: "ana@example.org", subject: "Welcome", tags: ["new", { priority: 1 }] },
  };
}

const proposed = ok(await agent.POST("/api/v1/actions", { body: proposal("welcome-1") }));
if (!("envelope" in proposed)) throw new Error("that was no dry run");
console.log("proposed:", proposed.phase);
const path = { id: proposed.envelope.action_id };

const waiting = await agent.GET("/api/v1/actions/{id}/wait", { params: { path, query: { wait: "10ms" } } });
console.log("still waiting:", ok(waiting).phase === "pending" && waiting.response.headers.get("Countersign-Pending") === "true");

const approved = ok(await operator.POST("/api/v1/actions/{id}/approve", { params: { path }, body: { note: "As agreed." } }));
console.log("approved:", approved.phase === "executing" || approved.phase === "completed" ? "approved" : approved.phase);

const ended = ok(await agent.GET("/api/v1/actions/{id}/wait", { params: { path, query: { wait: "60s" } } }));
console.log("ended:", ended.phase, ended.envelope.result.status);
console.log("arguments:", ended.envelope.args["to"]);

for (const name of ["welcome-2", "welcome-3"]) ok(await agent.POST("/api/v1/actions", { body: proposal(name) }));
let pages = 0;
let listed = 0;
for (let cursor: string | null | undefined; cursor !== null; pages++) {
  const page = ok(await agent.GET("/api/v1/actions", { params: { query: { limit: 1, ...(cursor && { cursor }) } } }));
  listed += page.items.length;
  cursor = page.next_cursor;
}
console.log("listed:", listed, "in", pages, "pages");

const called = ok(await agent.POST("/api/v1/tools/{tool}", {
  params: { path: { tool: "mail:read" } },
  body: { inputs: { folder: "inbox", limit: 3 }, external_id: "read-1" },
}));
console.log("called:", called.status);

// @ts-expect-error a proposal has a type
const refused = await agent.POST("/api/v1/actions", { body: { external_id: "x", tool: { source: "mail", name: "read" }, args: {} } });
console.log("refused:", refused.response.status, refused.error?.errors?.[0]?.pointer, refused.error?.errors?.[0]?.rule);

const denied = await agent.POST("/api/v1/tools/{tool}", {
  params: { path: { tool: "mail:delete_all" } },
  body: { external_id: "delete-1" },
});
const execution = denied.error && "execution" in denied.error ? denied.error.execution : undefined;
console.log("denied:", denied.response.status, execution?.status);
