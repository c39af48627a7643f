// Journeys against a program of their own: the login at an issuer, and a restart of the API.
import type { Page } from '@playwright/test'
import { client, test } from './alone'
import { sideways, violations } from './browser'
import { api, atInbox, expect, login, propose, tabTo, url } from './fixture'
import { quiet } from './quiet'

test.describe.configure({ mode: 'serial' })

interface Me {
  name: string
  role: string
  operator_id?: string
}

const me = (page: Page) => page.evaluate<Me>(`fetch('/api/v1/me').then((answer) => answer.json())`)

// atIssuer names the organisation in the form to log in, and follows the link to its issuer.
async function atIssuer(page: Page) {
  await page.getByLabel('Organisation').fill('demo')
  await page.getByRole('button', { name: 'Continue' }).click()
  await page.getByRole('link', { name: 'Log in with Example' }).click()
}

// answerForm logs in at the issuer by the keyboard alone.
async function answerForm(page: Page, name: string) {
  await expect(page.getByRole('heading', { name: 'The issuer' })).toBeVisible()
  await page.getByLabel('Name').fill(name)
  await page.keyboard.press('Enter')
}

// keysDraft does the same by the keyboard alone.
async function keysDraft(page: Page, id: string, title: string) {
  await page.goto(`${url()}/inbox/${id}`)
  await quiet(page)
  await page.keyboard.press('e')
  await tabTo(page, page.getByLabel('title', { exact: true }))
  await page.keyboard.press('Control+a')
  await page.keyboard.insertText(title)
}

// typeDraft changes the title of an action that waits, and sends nothing.
async function typeDraft(page: Page, id: string, title: string) {
  await page.goto(`${url()}/inbox/${id}`)
  await page.getByRole('button', { name: 'Edit', exact: true }).click()
  await page.getByLabel('title', { exact: true }).fill(title)
}

const titleOf = async (id: string) =>
  (await api<{ envelope: { args: { title: string } } }>('operator', 'GET', `/api/v1/actions/${id}`)).envelope.args.title

test('people log in at their organisation’s issuer, and come to where they wanted', async ({ page, alone }) => {
  await api('owner', 'PUT', '/api/v1/identity-providers/example', {
    issuer: alone.issuer.url,
    label: 'Example',
    role_claim: 'roles',
    roles: { deciders: 'operator' },
    web_client_id: client,
  })
  await page.goto(`${url()}/actions?phase=pending`)
  await expect(page).toHaveURL(/\/login\?to=/)
  await atIssuer(page)
  await answerForm(page, 'ana')
  await expect(page).toHaveURL(`${url()}/actions?phase=pending`)
  expect(await me(page)).toMatchObject({ name: 'Ana Lima', role: 'operator' })
  expect(
    await page.evaluate('document.cookie + JSON.stringify(localStorage) + JSON.stringify(sessionStorage)'),
  ).not.toMatch(/eyJ|code/)
  await page.goto(`${url()}/settings`)
  await quiet(page)
  await page.keyboard.press('Control+k')
  await page.keyboard.type('log out')
  await page.keyboard.press('Enter')
  await expect(page).toHaveURL(`${url()}/login`)
})

test('the link leads to the issuer by the keyboard alone', async ({ page }) => {
  await page.goto(`${url()}/login`)
  await page.getByLabel('Organisation').focus()
  await page.keyboard.type('demo')
  await page.keyboard.press('Enter')
  const link = page.getByRole('link', { name: 'Log in with Example' })
  await expect(link).toBeVisible()
  await link.focus()
  await page.keyboard.press('Enter')
  await answerForm(page, 'ana')
  await expect(page).toHaveURL(atInbox)
})

test('whoever has no access, is disabled, or goes back, reads so', async ({ page }) => {
  const said = page.getByRole('alert')
  const begin = async () => {
    await page.goto(`${url()}/login`)
    await atIssuer(page)
  }
  await begin()
  await answerForm(page, 'eve')
  await expect(page).toHaveURL(`${url()}/login?problem=no_role`)
  await expect(said).toContainText('You have no access here')
  expect((await page.request.get(`${url()}/api/v1/me`)).status()).toBe(401)
  await page.context().clearCookies()
  await begin()
  await page.getByRole('button', { name: 'Go back' }).click()
  await expect(page).toHaveURL(`${url()}/login?problem=login_refused`)
  await expect(said).toContainText('The login was refused')
  // From the page itself: a link from elsewhere begins no login.
  await page.evaluate(() => location.assign('/auth/login?provider=nobody'))
  await expect(said).toContainText('Unknown login')
  const { items } = await api<{ items: { operator_id: string; name: string; issuer: string; subject: string }[] }>(
    'owner',
    'GET',
    '/api/v1/operators?limit=100',
  )
  const { operator_id, name, issuer, subject } = items.find((one) => one.name === 'Ana Lima')!
  const disable = (disabled: boolean) =>
    api('owner', 'PUT', `/api/v1/operators/${operator_id}`, { name, issuer, subject, disabled })
  await disable(true)
  await begin()
  await answerForm(page, 'ana')
  await expect(said).toContainText('Your account is disabled here')
  await disable(false)
})

test('a draft survives the end of the session, and a new login at the issuer', async ({ page, context }) => {
  await page.goto(`${url()}/login`)
  await atIssuer(page)
  await answerForm(page, 'ana')
  await expect(page).toHaveURL(atInbox)
  const id = await propose({ title: 'As proposed' })
  await typeDraft(page, id, 'Typed before the end')
  await page.evaluate(
    `fetch('/api/v1/me/sessions').then((answer) => answer.json()).then(({ items }) =>
      fetch('/api/v1/me/sessions/' + items.find((one) => one.current).session_id, { method: 'DELETE' }))`,
  )
  const ended = page.getByRole('heading', { name: 'Your session ended' })
  await expect(ended).toBeVisible({ timeout: 45_000 })
  const [tab] = await Promise.all([context.waitForEvent('page'), atIssuer(page)])
  // The issuer remembers who logged in there.
  await expect(tab.getByRole('heading', { name: 'You are logged in' })).toBeVisible()
  await expect(ended).toBeHidden()
  await tab.close()
  await expect(page.getByLabel('title', { exact: true })).toHaveValue('Typed before the end')
  await page.getByRole('button', { name: 'Approve as changed' }).click()
  await expect.poll(() => titleOf(id)).toBe('Typed before the end')
})

test('the API is restarted while the page is open: nothing is lost or doubled, and drafts stay', async ({
  page,
  context,
  alone,
}) => {
  test.setTimeout(120_000)
  const session = `restart-${Date.now()}`
  let count = 0
  const make = async () =>
    (
      await api<{ items: { action_id: string }[] }>('admin', 'POST', '/api/v1/actions/batch', {
        items: [
          {
            type: 'mcp.exec',
            external_id: `${session}-${++count}`,
            session_id: session,
            tool: { source: 'notes', name: 'notes.create' },
            args: { title: `Restart ${count}`, body: 'A note.' },
          },
        ],
      })
    ).items[0]!.action_id
  const first = await make()
  await login(page, 'operator', `/actions?session_id=${session}`)
  const rows = page.locator('.list-row')
  await expect(rows).toHaveCount(1)
  await expect(page.locator('[data-live]')).toHaveAttribute('data-live', 'live')
  const draft = await propose({ title: 'Before the restart' })
  const other = await context.newPage()
  await keysDraft(other, draft, 'Typed before the restart')
  await alone.program.restart(async () => {
    await expect(page.locator('[data-live]')).toHaveAttribute('data-live', 'lost', { timeout: 30_000 })
    await expect(rows).toHaveCount(1)
  })
  // What happens before the stream is back is heard when it is.
  await make()
  await api('owner', 'POST', `/api/v1/actions/${first}/deny`, { note: 'no' })
  await expect(page.locator('[data-live]')).toHaveAttribute('data-live', 'live', { timeout: 30_000 })
  await expect(rows.first()).toContainText('denied')
  await expect(page.getByRole('button', { name: '1 new' })).toBeVisible()
  await make()
  await expect(page.getByRole('button', { name: '2 new' })).toBeVisible()
  await expect(rows).toHaveCount(1)
  await page.keyboard.press('.')
  await expect(rows).toHaveCount(3)
  await expect(rows.filter({ hasText: 'needs a person' })).toHaveCount(2)
  await expect(other.getByLabel('title', { exact: true })).toHaveValue('Typed before the restart')
  expect(await titleOf(draft)).toBe('Before the restart')
  // What was typed is decided about, by the keyboard alone, once the server is there again.
  await expect(other.locator('[data-live]')).toHaveAttribute('data-live', 'live', { timeout: 30_000 })
  await tabTo(other, other.getByRole('button', { name: 'Approve as changed' }))
  await other.keyboard.press('Enter')
  await expect.poll(() => titleOf(draft)).toBe('Typed before the restart')
})

test('every view shows that the database is held, until it is recovered', async ({ page, alone }) => {
  test.setTimeout(120_000)
  await login(page)
  await expect(page.locator('[data-live]')).toHaveAttribute('data-live', 'live')
  const banner = page.getByRole('status').filter({ hasText: 'Nothing is sent: the database is held' })
  await expect(banner).toHaveCount(0)
  alone.program.recover('--hold')
  await expect(banner).toContainText(/since .*now.* because Ana .*holds it for a move.* countersign recover\./)
  for (const theme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme: theme })
    for (const [view, width] of [
      ['/inbox', 1440],
      ['/actions', 1440],
      ['/workflows', 320],
      ['/dead-letters', 390],
      ['/settings', 1440],
    ] as const) {
      await page.setViewportSize({ width, height: 900 })
      await page.goto(url() + view)
      await quiet(page)
      await expect(banner).toBeVisible()
      expect.soft(await violations(page), `${view}, ${theme}`).toEqual([])
      expect.soft(await sideways(page), `${view}: sideways`).toEqual([])
    }
  }
  await expect(page.locator('[data-live]')).toHaveAttribute('data-live', 'live')
  alone.program.recover('--database', '--apply')
  await expect(banner).toHaveCount(0)
})
