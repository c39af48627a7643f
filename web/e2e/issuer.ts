// An issuer of OpenID Connect on this machine, by oidc-provider: a login form, a consent that is always given, and a
// page that says no.
import { generateKeyPairSync } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import Provider, { type Configuration } from 'oidc-provider'

export interface Issuer {
  url: string
  close: () => void
}

// people are the accounts of the issuer, and what it says of them.
const people: Record<string, { name: string; roles: string[] }> = {
  ana: { name: 'Ana Lima', roles: ['deciders'] },
  eve: { name: 'Eve', roles: ['visitors'] },
}

const form = `<!doctype html><html lang="en"><title>The issuer</title><h1>The issuer</h1>
<form method="post"><label>Name <input name="login" autofocus></label>
<button>Log in</button><button name="no" value="1">Go back</button></form>`

const configuration = (client: string, redirect: string): Configuration => ({
  clients: [
    {
      client_id: client,
      redirect_uris: [redirect],
      response_types: ['code'],
      grant_types: ['authorization_code'],
      token_endpoint_auth_method: 'none',
      id_token_signed_response_alg: 'RS256',
    },
  ],
  claims: { openid: ['sub', 'roles'], profile: ['name'] },
  conformIdTokenClaims: false,
  cookies: { keys: ['a key of the tests'] },
  jwks: { keys: [generateKeyPairSync('rsa', { modulusLength: 2_048 }).privateKey.export({ format: 'jwk' })] },
  ttl: { AccessToken: 600, Grant: 600, IdToken: 600, Interaction: 600, Session: 600 },
  features: { devInteractions: { enabled: false } },
  pkce: { required: () => true },
  findAccount: (_, id) => (people[id] ? { accountId: id, claims: () => ({ sub: id, ...people[id] }) } : undefined),
  interactions: { url: (_, { uid }) => `/interaction/${uid}` },
  loadExistingGrant: async (ctx) => {
    const grant = new ctx.oidc.provider.Grant({
      accountId: ctx.oidc.session!.accountId!,
      clientId: ctx.oidc.client!.clientId,
    })
    grant.addOIDCScope('openid email profile')
    await grant.save()
    return grant
  },
})

async function bodyOf(request: IncomingMessage): Promise<URLSearchParams> {
  const pieces: Buffer[] = []
  for await (const piece of request) pieces.push(piece as Buffer)
  return new URLSearchParams(Buffer.concat(pieces).toString('utf8'))
}

// interact shows the form, and ends the login as the person answered.
async function interact(provider: Provider, request: IncomingMessage, response: ServerResponse) {
  if (request.method !== 'POST') return void response.writeHead(200, { 'Content-Type': 'text/html' }).end(form)
  const said = await bodyOf(request)
  const result = said.has('no')
    ? { error: 'access_denied', error_description: 'the person went back' }
    : { login: { accountId: said.get('login') ?? '' } }
  await provider.interactionFinished(request, response, result)
}

// issue starts an issuer with one public client.
export async function issue(client: string, redirect: string): Promise<Issuer> {
  const server: Server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const provider = new Provider(url, configuration(client, redirect))
  const answer = provider.callback()
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    if (!request.url?.startsWith('/interaction/')) return void answer(request, response)
    interact(provider, request, response).catch((error: unknown) => response.writeHead(500).end(String(error)))
  })
  return {
    url,
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}
