// What the tests share: people who are logged in, the API beside the page, and a page that may not complain.
import {
  type Browser,
  type BrowserContextOptions,
  test as base,
  expect,
  type Locator,
  type Page,
} from '@playwright/test'

export { expect }
export type Role = 'agent' | 'operator' | 'admin' | 'owner'

export const url = () => process.env.E2E_URL!
// atInbox reports whether an address is the inbox, with or without an open item.
export const atInbox = (at: URL) => at.origin === url() && /^\/inbox(\/|$)/.test(at.pathname)

// token returns the token of a role in the tenant of the tests.
export function token(role: Role): string {
  const tokens = JSON.parse(process.env.E2E_TOKENS!) as Record<string, unknown>
  const found = JSON.stringify(tokens).match(new RegExp(`cs_${role}_[A-Za-z0-9_-]+`))
  if (!found) throw new Error(`there is no token of the role ${role}`)
  return found[0]
}

// api calls the API as a role, or with a token. It throws what the API refused.
export async function api<T = Record<string, unknown>>(
  as: Role | `cs_${string}`,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<T> {
  const answer = await fetch(url() + path, {
    method,
    headers: {
      Authorization: `Bearer ${as.startsWith('cs_') ? as : token(as as Role)}`,
      'Content-Type': 'application/json',
      ...headers,
    },
    body: body === undefined ? undefined : JSON.stringify(body),
  })
  const text = await answer.text()
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
  return (text ? JSON.parse(text) : {}) as T
}

export interface Proposed {
  action_id: string
}

let count = 0

// propose has the agent propose a note, which asks a person, and returns the action's id.
export async function propose(args: Record<string, unknown> = {}, more: Record<string, unknown> = {}): Promise<string> {
  const key = `e2e-${process.pid}-${Date.now()}-${++count}`
  const answer = await api<{ action_id?: string; envelope?: Proposed }>(
    'agent',
    'POST',
    '/api/v1/actions',
    {
      type: 'mcp.exec',
      tool: { source: 'notes', name: 'notes.create' },
      args: { title: `Note ${key}`, body: 'A note.', ...args },
      ...more,
    },
    { 'Idempotency-Key': key },
  )
  return (answer.action_id ?? answer.envelope?.action_id)!
}

// login opens the page at a path as a role, by a one-time code.
export async function login(page: Page, role: Exclude<Role, 'agent'> | `cs_${string}` = 'operator', to = '/inbox') {
  const { url: at } = await api<{ url: string }>(role, 'POST', '/api/v1/login-codes')
  await page.goto(`${url()}/login?to=${encodeURIComponent(to)}#${new URL(at).hash.slice(1)}`)
  await page.getByRole('button', { name: /^Log in as / }).click()
  await expect(page.locator('nav.rail')).toBeVisible()
}

// complaints collects what a browser complains of while a page is shown: errors of the console, uncaught errors, and
// reports of the Content-Security-Policy and of Trusted Types.
export function complaints(page: Page): string[] {
  const found: string[] = []
  page.on('pageerror', (error) => found.push(`uncaught: ${error.message}`))
  page.on('console', (message) => {
    // A status that is an error is an answer, which the page shows; the browser says so in the console as well.
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
      found.push(`console: ${message.text()}`)
  })
  return found
}

export interface Fixtures {
  // operator is a page of an operator, which fails the test if the browser complains.
  operator: Page
}

export const test = base.extend<Fixtures>({
  page: async ({ page }, use) => {
    const found = complaints(page)
    await use(page)
    // A handler of a route can still be reading an answer, which the end of the test would make an error.
    if (!page.isClosed()) await page.unrouteAll({ behavior: 'ignoreErrors' })
    expect(found).toEqual([])
  },
  operator: async ({ page }, use) => {
    await login(page, 'operator')
    await use(page)
  },
})

// another opens a browser of its own, as a second person has one.
export async function another(browser: Browser, options: BrowserContextOptions = {}): Promise<Page> {
  return (await browser.newContext(options)).newPage()
}

// tabTo moves the focus to an element by the Tab key alone, from wherever it is.
export async function tabTo(page: Page, to: Locator) {
  await expect(to).toBeVisible()
  const there = () => to.evaluate((element) => element === document.activeElement)
  for (let i = 0; i < 100 && !(await there()); i++) await page.keyboard.press('Tab')
  await expect(to).toBeFocused()
}
