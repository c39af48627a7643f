// What LangGraph's Agent Inbox documents of its interrupts and responses, as types: the answers of the API are
// interrupts, and its requests are responses, without casts.
import createClient from "openapi-fetch";
import type { paths } from "./api.js";

declare const process: { env: Record<string, string | undefined> };

// The documented shape of an interrupt.
type Flag = "allow_ignore" | "allow_respond" | "allow_edit" | "allow_accept";
type Requested = { action: string; args: Record<string, unknown> };
type Interrupt = { action_request: Requested; config: Record<Flag, boolean>; description?: string };

// The documented shape of a response, of which Agent Inbox sends a list of one.
type HumanResponse = { type: "accept" | "ignore" | "response" | "edit"; args: null | string | Requested };

function client(token: string | undefined) {
  return createClient<paths>({ baseUrl: process.env["COUNTERSIGN_URL"] ?? "", headers: { Authorization: `Bearer ${token}` } });
}

const agent = client(process.env["COUNTERSIGN_TOKEN"]);
const operator = client(process.env["OPERATOR_TOKEN"]);

function ok<T>(answer: { data?: T; error?: unknown; response: Response }): T {
  if (answer.data === undefined) throw new Error(`${answer.response.url}: ${JSON.stringify(answer.error)}`);
  return answer.data;
}

// asTexts returns a request as Agent Inbox does: the values that are not texts are their JSON.
function asTexts({ action, args }: Requested, change: Record<string, string> = {}): Requested {
  const texts = Object.entries(args).map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)]);
  return { action, args: { ...Object.fromEntries(texts), ...change } };
}

async function respond(name: string, of: (request: Requested) => HumanResponse): Promise<void> {
  ok(await agent.POST("/api/v1/actions", {
    body: {
      type: "mcp.exec", external_id: name, tool: { source: "mail", name: "send_email" },
      args: { to: "ana@example.org", subject: "Welcome", tags: ["new", { priority: 1 }] },
    },
  }));
  const page = ok(await operator.GET("/api/v1/inbox/interrupts"));
  const interrupts: Interrupt[] = page.items;
  const [interrupt, item] = [interrupts[0], page.items[0]];
  if (!interrupt || !item) throw new Error("nothing waits");
  const sent: HumanResponse = of(interrupt.action_request);
  const done = ok(await operator.POST("/api/v1/actions/{id}/respond", {
    params: { path: { id: item.action_id }, header: { "If-Match": `"${item.etag}"` } },
    body: [sent],
  }));
  console.log(name, done.phase === "denied" ? "denied" : "approved", done.decision?.note, JSON.stringify(done.envelope.args));
}

await respond("accept", (request) => ({ type: "accept", args: request }));
await respond("accept as texts", (request) => ({ type: "accept", args: asTexts(request) }));
await respond("edit", (request) => ({ type: "edit", args: asTexts(request, { tags: '["new",{"priority":2}]' }) }));
await respond("response", () => ({ type: "response", args: "Write to Bob." }));
await respond("ignore", () => ({ type: "ignore", args: null }));
