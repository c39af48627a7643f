// An authorization server for a source on this machine, and the source's metadata:
// oidc-provider as it comes, with registration, devices and tokens for one resource.
// It writes its address as a line of JSON.
import http from 'node:http'
import { Provider } from 'oidc-provider'

const server = http.createServer()
await new Promise((listening) => server.listen(0, '127.0.0.1', listening))
const issuer = `http://127.0.0.1:${server.address().port}`
const resource = `${issuer}/mcp`

const provider = new Provider(issuer, {
  scopes: ['openid', 'offline_access', 'tools'],
  cookies: { keys: ['only for tests'] },
  features: {
    devInteractions: { enabled: true },
    registration: { enabled: true },
    revocation: { enabled: true },
    introspection: { enabled: true },
    deviceFlow: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => resource,
      useGrantedResource: () => true,
      getResourceServerInfo: () => ({ scope: 'tools', audience: resource, accessTokenTTL: 3600, accessTokenFormat: 'opaque' }),
    },
  },
  pkce: { required: () => true },
  rotateRefreshToken: true,
  issueRefreshToken: async (_, client) => client.grantTypeAllowed('refresh_token'),
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
})
const answer = provider.callback()
server.on('request', async (req, res) => {
  if (req.url === '/.well-known/oauth-protected-resource/mcp') {
    res.setHeader('Content-Type', 'application/json')
    res.end(JSON.stringify({ resource, authorization_servers: [issuer], scopes_supported: ['tools'] }))
    return
  }
  if (req.url !== '/mcp') {
    answer(req, res)
    return
  }
  // The source answers who sent a token that is for it.
  const token = await provider.AccessToken.find((req.headers.authorization ?? '').replace(/^Bearer /, ''))
  res.statusCode = token && token.aud === resource && !token.isExpired ? 200 : 401
  res.end(token?.accountId ?? '')
})
console.log(JSON.stringify({ issuer }))

// It ends when whoever started it does.
process.stdin.resume().on('end', () => process.exit(0))
