// An issuer of OpenID Connect on this machine: oidc-provider as it comes, with
// one public client, a person for every name, and the pages of its own that
// ask who one is. It writes its address as a line of JSON.
import http from 'node:http'
import { Provider } from 'oidc-provider'

const server = http.createServer()
await new Promise((listening) => server.listen(0, '127.0.0.1', listening))
const issuer = `http://127.0.0.1:${server.address().port}`

const provider = new Provider(issuer, {
  clients: [{
    client_id: 'cli',
    application_type: 'native',
    token_endpoint_auth_method: 'none',
    redirect_uris: ['http://127.0.0.1/callback'],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
  }],
  claims: { openid: ['sub', 'groups'], email: ['email', 'email_verified'], profile: ['name'] },
  conformIdTokenClaims: false,
  cookies: { keys: ['only for tests'] },
  features: { revocation: { enabled: true }, devInteractions: { enabled: true } },
  pkce: { required: () => true },
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({ sub: id, name: `${id} by name`, email: `${id}@acme.com`, email_verified: id !== 'eve', groups: ['ops'] }),
  }),
})
server.on('request', provider.callback())
console.log(JSON.stringify({ issuer }))

// It ends when whoever started it does.
process.stdin.resume().on('end', () => process.exit(0))
