// A client of MCP that is given only the URL: it registers, has a person consent, lists
// and calls, renews an expired secret, and is refused when its login was ended.
//
//   node login.mjs v1|v2 URL TOOL
//
// It writes "open ADDRESS", "expire" and "end" for whoever runs it, who answers each
// with a line.
import { createInterface } from 'node:readline'

const [kind, url, tool] = process.argv.slice(2)
const old = kind === 'v1'
const { Client } = await import(old ? '@modelcontextprotocol/sdk/client/index.js' : '@modelcontextprotocol/client')
const { StreamableHTTPClientTransport } = await import(
  old ? '@modelcontextprotocol/sdk/client/streamableHttp.js' : '@modelcontextprotocol/client')

const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
const ask = async (line) => {
  console.log(line)
  return (await answers.next()).value
}

const kept = {}
const provider = {
  redirectUrl: 'http://localhost:9999/oauth/callback',
  clientMetadata: {
    client_name: 'probe', redirect_uris: ['http://localhost:9999/oauth/callback'], grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'], token_endpoint_auth_method: 'none',
  },
  state: () => 'state-1',
  clientInformation: () => kept.client,
  saveClientInformation: (client) => void (kept.client = client),
  tokens: () => kept.tokens,
  saveTokens: (tokens) => void (kept.tokens = tokens),
  saveCodeVerifier: (verifier) => void (kept.verifier = verifier),
  codeVerifier: () => kept.verifier,
  redirectToAuthorization: async (to) => {
    if (kept.over) throw new Error('a person is asked again')
    kept.answer = new URL(await ask(`open ${to}`)).searchParams
  },
  saveDiscoveryState: (state) => void (kept.discovery = state),
  discoveryState: () => kept.discovery,
}
const transport = () => new StreamableHTTPClientTransport(new URL(url), { authProvider: provider })
const connect = async () => {
  const client = new Client({ name: 'probe', version: '1' })
  await client.connect(transport())
  return client
}

const first = transport()
await new Client({ name: 'probe', version: '1' }).connect(first).then(
  () => { throw new Error('connected without a login') },
  async (error) => {
    if (!kept.answer) throw error
    await (old ? first.finishAuth(kept.answer.get('code')) : first.finishAuth(kept.answer))
  })
let client = await connect()
const { tools } = await client.listTools()
console.log('tools', tools.some(({ name }) => name === tool))
if (!(await client.callTool({ name: tool, arguments: {} })).isError) console.log('called')
await ask('expire')
const before = kept.tokens.access_token
if (!(await client.callTool({ name: tool, arguments: {} })).isError && kept.tokens.access_token !== before) console.log('called after expiry')
await ask('end')
kept.over = true
await client.callTool({ name: tool, arguments: {} }).then(
  () => console.log('called after the end'),
  () => console.log('refused after the end'))
process.exit(0)
