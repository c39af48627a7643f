// Journeys of a program that is given only the URL of the MCP server.
import { createHash, randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { api, expect, login, test, token, url } from './fixture'

// listening is a program that waits for the browser on this machine.
async function listening() {
  const received: URLSearchParams[] = []
  const server = createServer((request, answer) => {
    received.push(new URL(request.url!, 'http://localhost').searchParams)
    answer.setHeader('Content-Type', 'text/html').end('<title>Connected</title>Close this window.')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const redirect = `http://localhost:${(server.address() as AddressInfo).port}/callback`
  const answer = await fetch(`${url()}/oauth/register`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ client_name: 'Note taker', redirect_uris: ['http://localhost/callback'] }),
  })
  const { client_id } = (await answer.json()) as { client_id: string }
  const verifier = randomBytes(32).toString('base64url')
  const query = new URLSearchParams({
    client_id,
    redirect_uri: redirect,
    response_type: 'code',
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
    state: 'from-the-program',
    resource: `${url()}/mcp`,
  })
  return {
    received,
    redirect,
    client_id,
    verifier,
    address: `${url()}/oauth/authorize?${query}`,
    stop: () => server.close(),
  }
}

test('a person connects a program that was given the URL alone @check', async ({ page }) => {
  const program = await listening()
  await page.goto(program.address)
  await page.getByLabel('Token or one-time code').fill(token('admin'))
  await page.keyboard.press('Enter')
  await expect(page.getByRole('heading', { name: 'Connect Note taker?' })).toBeVisible()
  expect(page.url()).toBe(`${url()}/connect`)
  await expect(page.getByText('your own computer')).toBeVisible()
  await expect(page.getByText('Anybody can use this name.')).toBeVisible()
  await page.getByLabel('Name of the agent').fill('note taker of Ana')
  await page.getByLabel(/All tools/).uncheck()
  await page.getByLabel('notes', { exact: true }).check()
  await page.getByRole('button', { name: 'Connect' }).click()
  await expect(page).toHaveTitle('Connected')
  const [answer] = program.received
  expect(answer!.get('state')).toBe('from-the-program')
  expect(answer!.get('iss')).toBe(url())
  const tokens = await fetch(`${url()}/oauth/token`, {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'authorization_code',
      code: answer!.get('code')!,
      client_id: program.client_id,
      redirect_uri: program.redirect,
      code_verifier: program.verifier,
    }),
  })
  const made = (await tokens.json()) as { access_token: string }
  const list = await fetch(`${url()}/mcp`, {
    method: 'POST',
    headers: {
      Authorization: `Bearer ${made.access_token}`,
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'initialize',
      params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'e2e', version: '1' } },
    }),
  })
  expect(list.status).toBe(200)
  program.stop()
})

test('nothing connects without a click, in a frame, or as an operator', async ({ page }) => {
  const program = await listening()
  await login(page, 'operator')
  await page.goto(program.address)
  await expect(page.getByRole('heading', { name: 'Connect Note taker?' })).toBeVisible()
  const connect = page.getByRole('button', { name: 'Connect' })
  await expect(connect).toHaveAttribute('aria-disabled', 'true')
  await connect.click({ force: true })
  await expect(page.getByRole('alert')).toContainText(/may not|administrator/i)
  expect(program.received).toHaveLength(0)
  await page.goto(`${url()}/connect?request=AAAA`)
  await expect(page.getByRole('heading', { name: 'Not connected' })).toBeVisible()
  const document = await fetch(`${url()}/connect`, { headers: { Accept: 'text/html' } })
  expect(document.headers.get('Content-Security-Policy')).toContain("frame-ancestors 'none'")
  program.stop()
})

test('a refusal goes back to the program', async ({ page }) => {
  const program = await listening()
  await login(page, 'admin')
  await page.goto(program.address)
  await page.getByRole('button', { name: 'Refuse' }).click()
  await expect(page).toHaveTitle('Connected')
  expect(program.received[0]!.get('error')).toBe('access_denied')
  expect(program.received[0]!.get('code')).toBeNull()
  program.stop()
})

test('a source logs in and out from the page @check', async ({ page }) => {
  const source = `self-${Date.now()}`
  await api('admin', 'PUT', `/api/v1/sources/${source}`, {
    kind: 'mcp',
    config: { transport: 'http', url: `${url()}/mcp` },
  })
  await login(page, 'admin', '/settings')
  const row = page.getByRole('region', { name: 'Logins of sources' }).getByRole('row').filter({ hasText: source })
  await expect(row).toContainText('none')
  await row.getByRole('button', { name: 'Log in' }).click()
  await page.getByLabel('Name of the agent').fill(`agent of ${source}`)
  await page.getByRole('button', { name: 'Connect' }).click()
  await expect(page).toHaveURL(`${url()}/settings`)
  await expect(page.getByText(`${source} is logged in.`)).toBeVisible()
  await expect(row).toContainText('logged in')
  await row.getByRole('button', { name: 'Log out' }).click()
  await expect(page.getByText('Its tokens are revoked.')).toBeVisible()
  await expect(row).toContainText('none')
})

test('an answer that another person began is not taken', async ({ page }) => {
  const source = `others-${Date.now()}`
  await api('admin', 'PUT', `/api/v1/sources/${source}`, {
    kind: 'mcp',
    config: { transport: 'http', url: `${url()}/mcp` },
  })
  const begun = await api<{ state: string }>('owner', 'POST', `/api/v1/sources/${source}/login`, { page: true })
  await login(page, 'admin', '/inbox')
  await page.goto(`${url()}/auth/source?${new URLSearchParams({ state: begun.state, code: 'x', iss: url() })}`)
  await expect(page).toHaveURL(`${url()}/settings`)
  await expect(page.getByRole('alert')).toContainText(`${source} is not logged in`)
})
