// A client of MCP as its users write one: it lists the tools or calls one, and
// writes a line of JSON for everything that it receives.
//
//   node probe.mjs v1|v2|v2-2026-07-28 list
//   node probe.mjs v1|v2|v2-2026-07-28 call NAME ARGUMENTS
//   node probe.mjs v1|v2|v2-2026-07-28 leave TIMES: connects and closes, so often
//
// The server's address and the token are in MCP_URL and MCP_TOKEN.
const [kind, what, name, args] = process.argv.slice(2)
const say = (line) => console.log(JSON.stringify(line))

const old = kind === 'v1'
const { Client } = await import(old ? '@modelcontextprotocol/sdk/client/index.js' : '@modelcontextprotocol/client')
const { StreamableHTTPClientTransport } = await import(
  old ? '@modelcontextprotocol/sdk/client/streamableHttp.js' : '@modelcontextprotocol/client')

const pin = kind.startsWith('v2-') ? { versionNegotiation: { mode: { pin: kind.slice(3) } } } : {}
const connect = async () => {
  const client = new Client({ name: 'probe', version: '1' }, pin)
  await client.connect(new StreamableHTTPClientTransport(new URL(process.env.MCP_URL), {
    requestInit: { headers: { Authorization: `Bearer ${process.env.MCP_TOKEN}` } },
  }))
  return client
}
let client
try {
  for (let left = what === 'leave' ? Number(name) : 0; left > 0; left--) {
    const leaving = await connect()
    await leaving.listTools()
    await leaving.close()
  }
  client = await connect()
  if (what !== 'call') {
    let cursor
    const tools = []
    do {
      const page = await client.listTools({ cursor })
      tools.push(...page.tools)
      cursor = page.nextCursor
    } while (cursor)
    say({ tools })
  } else {
    const options = { onprogress: (progress) => say({ progress }), resetTimeoutOnProgress: true }
    const params = { name, arguments: JSON.parse(args) }
    say({ result: await (old ? client.callTool(params, undefined, options) : client.callTool(params, options)) })
  }
} catch (error) {
  say({ error: String(error) })
  process.exitCode = 1
}
await client?.close()
