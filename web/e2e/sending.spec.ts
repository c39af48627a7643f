// Decisions are shown before the server has answered, and come back where it refuses.
import type { Page, Route } from '@playwright/test'
import { quiet } from './quiet'
import { action, api, canonical, expect, give, hands, phase, type Recorder, test, url } from './recorder'

const rows = (page: Page) => page.locator('.list-row')
const row = (page: Page, title: string) => rows(page).filter({ hasText: title })
const opened = (page: Page, id: string) => expect(page).toHaveURL(new RegExp(`/inbox/${id}`))
const ready = (page: Page, name = 'Approve') =>
  expect(page.getByRole('button', { name, exact: true })).not.toHaveAttribute('aria-disabled', 'true')
const note = (page: Page, text: string) => page.locator('.toast').filter({ hasText: text })

// proposed has an admin propose as many as there are titles, in a session of their own.
async function proposed(
  recorder: Recorder,
  name: 'sent' | 'long',
  titles: readonly string[],
  more: Record<string, unknown> = {},
) {
  const session = `${name}-${process.pid}-${Date.now()}`
  const { items } = await api<{ items: { action_id: string }[] }>('admin', 'POST', '/api/v1/actions/batch', {
    items: titles.map((title, n) => ({
      type: 'mcp.exec',
      external_id: `${session}-${n}`,
      session_id: session,
      tool: { source: recorder.source, name },
      args: { title },
      ...more,
    })),
  })
  return { session, ids: items.map((one) => one.action_id) }
}

// several opens the first of some that wait, in a list of these alone, and returns their ids.
async function several(
  page: Page,
  recorder: Recorder,
  titles: readonly string[],
  more: Record<string, unknown> = {},
): Promise<string[]> {
  const { session, ids } = await proposed(recorder, 'sent', titles, more)
  await page.goto(`${url()}/inbox/${ids[0]}?session=${session}`)
  await expect(rows(page)).toHaveCount(titles.length)
  await quiet(page)
  await ready(page)
  return ids
}

interface Held {
  // arrived resolves when as many decisions have come, and answer answers all of them.
  arrived: (count: number) => Promise<void>
  answer: (how: (route: Route) => Promise<void>) => Promise<void>
}

// hold keeps decisions from the server until they are answered. Others that come later go through.
async function hold(page: Page): Promise<Held> {
  const held: Route[] = []
  const which = /\/api\/v1\/(actions|dead-letters)\/[^/]+\/(approve|deny|resolve)$/
  let through = false
  await page.route(which, (route) => (through ? route.continue() : void held.push(route)))
  return {
    arrived: (count) => expect.poll(() => held.length).toBe(count),
    answer: async (how) => {
      through = true
      for (const route of held.splice(0)) await how(route)
    },
  }
}

const failing = (route: Route) =>
  route.fulfill({
    status: 503,
    contentType: 'application/problem+json',
    body: JSON.stringify({
      type: 'about:blank',
      title: 'Service Unavailable',
      status: 503,
      detail: 'The database is away.',
    }),
  })

for (const hand of hands) {
  test(`the next action is shown before the answer; a failed decision returns with what was typed, by ${hand}`, async ({
    operator: page,
    recorder,
  }) => {
    const [first, second] = await several(page, recorder, ['Sent one', 'Sent two', 'Sent three'])
    await give(page, hand, 'e', 'Edit')
    await page
      .getByLabel('note', { exact: true })
      .or(page.getByRole('button', { name: 'Add note' }))
      .first()
      .click()
    await page.getByLabel('note', { exact: true }).fill('typed by a person')
    await page.locator('h2.title').click()
    const held = await hold(page)
    await give(page, hand, 'a', 'Approve as changed')
    await held.arrived(1)
    await opened(page, second!)
    await expect(page.getByRole('article')).toContainText('Sent two')
    await expect(row(page, 'Sent one')).toContainText('approving…')
    await expect(page.locator('.list-row[aria-current=true]')).toContainText('Sent two')
    await held.answer(failing)
    await expect(row(page, 'Sent one')).toContainText('not approved')
    await expect(page.getByRole('alert').filter({ hasText: 'not approved' })).toContainText('The database is away.')
    // Nothing moves: the other action is open, and the rows are in their places.
    await opened(page, second!)
    await expect(rows(page)).toHaveText([/Sent one/, /Sent two/, /Sent three/])
    expect(await phase(first!)).toBe('pending')
    if (hand === 'pointer') await note(page, 'not approved').getByRole('button', { name: 'Look' }).click()
    else await page.keyboard.press('k')
    await opened(page, first!)
    await expect(page.locator('.bar')).toContainText('The database is away.')
    await expect(page.getByLabel('note', { exact: true })).toHaveValue('typed by a person')
    await page.locator('h2.title').click()
    await give(page, hand, 'a', 'Approve as changed')
    await expect.poll(() => phase(first!)).toBe('completed')
    expect(canonical(JSON.stringify((await action(first!)).envelope.args))).toBe(
      '{"note":"typed by a person","title":"Sent one"}',
    )
    await expect(row(page, 'Sent one')).not.toContainText('not approved')
  })

  test(`a denial that fails comes back with its word to the agent, by ${hand}`, async ({
    operator: page,
    recorder,
  }) => {
    const [first, second] = await several(page, recorder, ['Denied one', 'Denied two'])
    await give(page, hand, 'd', 'Deny…')
    await page.getByLabel('What the agent should do instead').fill('Ask Ana first.')
    const held = await hold(page)
    await give(page, hand, 'Control+Enter', 'Deny')
    await held.arrived(1)
    await opened(page, second!)
    await expect(row(page, 'Denied one')).toContainText('denying…')
    await held.answer((route) => route.abort('connectionreset'))
    await expect(row(page, 'Denied one')).toContainText('not denied')
    await expect(note(page, 'not denied')).toContainText('the decision may or may not be recorded')
    await row(page, 'Denied one').click()
    await opened(page, first!)
    await expect(page.getByLabel('What the agent should do instead')).toHaveValue('Ask Ana first.')
    await give(page, hand, 'Control+Enter', 'Deny')
    await expect.poll(() => phase(first!)).toBe('denied')
    expect((await action(first!)).decision!.note).toBe('Ask Ana first.')
  })
}

test('what somebody changed meanwhile is not approved, and is looked at again', async ({
  operator: page,
  recorder,
}) => {
  const [first] = await several(page, recorder, ['Stale one', 'Stale two'])
  // A page that is paused does not hear of the change.
  await page.keyboard.press('p')
  await expect(page.locator('[data-live]')).toHaveAttribute('data-live', 'paused')
  await api(
    'owner',
    'POST',
    `/api/v1/actions/${first}/edit`,
    { args: { title: 'Stale one, changed' } },
    { 'If-Match': `"${(await action(first!)).decision!.etag}"` },
  )
  await page.keyboard.press('a')
  await expect(row(page, 'Stale one')).toContainText('not approved')
  await expect(note(page, 'not approved')).toContainText('It changed since you loaded it')
  expect(await phase(first!)).toBe('pending')
  await row(page, 'Stale one').click()
  await expect(page.getByRole('article').getByRole('alert').filter({ hasText: 'Changed since' })).toContainText(
    '/title',
  )
  await expect(page.getByRole('button', { name: 'Approve', exact: true })).toHaveAttribute('aria-disabled', 'true')
})

test('a decision that was made though its answer was lost is shown as it is', async ({ operator: page, recorder }) => {
  const [first, second] = await several(page, recorder, ['Lost one', 'Lost two'])
  const held = await hold(page)
  await page.keyboard.press('a')
  await held.arrived(1)
  await held.answer(async (route) => {
    await route.fetch()
    await route.abort('connectionreset')
  })
  await expect(note(page, 'not approved')).toContainText('the decision may or may not be recorded')
  await expect.poll(() => phase(first!)).toBe('completed')
  await expect(row(page, 'Lost one')).toContainText('completed')
  await opened(page, second!)
})

test('the focus is on the next row, and what became of a decision is said', async ({ operator: page, recorder }) => {
  const [, second, third] = await several(page, recorder, ['Said one', 'Said two', 'Said three'])
  const held = await hold(page)
  await page.keyboard.press('a')
  await held.arrived(1)
  await opened(page, second!)
  await expect(page.locator('.list-row[aria-current=true]')).toBeFocused()
  await held.answer((route) => route.continue())
  await expect(page.getByRole('status').filter({ has: page.locator('.toast') })).toContainText(
    'Approved: Recorder sent · title “Said one”',
  )
  // Where the decision was made by its button, the focus is at the bar of the next action.
  await ready(page)
  await page.getByRole('button', { name: 'Approve', exact: true }).focus()
  await page.keyboard.press('Enter')
  await opened(page, third!)
  await expect(page.locator('.inbox-detail .bar')).toBeFocused()
})

test('leaving the page while a decision is sent asks first; its refusal is heard elsewhere in the page', async ({
  operator: page,
  recorder,
}) => {
  const [first] = await several(page, recorder, ['Left one', 'Left two'])
  const held = await hold(page)
  await page.keyboard.press('a')
  await held.arrived(1)
  const asked = page.waitForEvent('dialog')
  await page.evaluate('setTimeout(() => location.reload())')
  const dialog = await asked
  expect(dialog.type()).toBe('beforeunload')
  await dialog.dismiss()
  await expect(row(page, 'Left one')).toContainText('approving…')
  await page.keyboard.press('g')
  await page.keyboard.press('t')
  await expect(page.getByRole('heading', { name: 'Actions' })).toBeVisible()
  await held.answer(failing)
  await note(page, 'not approved').getByRole('button', { name: 'Look' }).click()
  await opened(page, first!)
  await expect(page.locator('.bar')).toContainText('The database is away.')
  // Nothing is on its way, so nobody is asked.
  const others: string[] = []
  page.on('dialog', (other) => {
    others.push(other.type())
    void other.accept()
  })
  await page.reload()
  await opened(page, first!)
  expect(others).toEqual([])
})

test('an approval that is not answered yet is taken back once it is', async ({ operator: page, recorder }) => {
  const [first, second] = await several(page, recorder, ['Back one', 'Back two'], {
    constraints: { not_before: new Date(Date.now() + 3_600_000).toISOString() },
  })
  await page.keyboard.press('a')
  await expect.poll(() => phase(first!)).toBe('approved')
  await opened(page, second!)
  await ready(page)
  const held = await hold(page)
  await page.keyboard.press('a')
  await held.arrived(1)
  await page.keyboard.press('u')
  await held.answer((route) => route.continue())
  await expect.poll(() => phase(second!)).toBe('undone')
  // The one before stays as it was decided.
  expect(await phase(first!)).toBe('approved')
})

test('of a decision nothing is read twice, and the lists at most once a second', async ({
  operator: page,
  recorder,
}) => {
  // Once the events have come, the page reads again what it may have missed.
  const behindEvents = page.waitForResponse(/\/api\/v1\/inbox\?.*limit=200/)
  const ids = await several(page, recorder, ['Read one', 'Read two', 'Read three', 'Read four'])
  await behindEvents
  const from = await page.evaluate(() => performance.now())
  for (const id of ids.slice(0, 3)) {
    await opened(page, id)
    await ready(page)
    await page.keyboard.press('a')
  }
  await opened(page, ids[3]!)
  await ready(page)
  for (const id of ids.slice(0, 3)) await expect.poll(() => phase(id)).toBe('completed')
  const asked: { path: string; at: number }[] = await page.evaluate(
    (from) =>
      performance
        .getEntriesByType('resource')
        .filter((one) => one.startTime >= from && new URL(one.name).pathname.startsWith('/api/v1/'))
        .map((one) => ({ path: one.name.slice(`${location.origin}/api/v1/`.length), at: one.startTime })),
    from,
  )
  const count = (which: RegExp) => asked.filter(({ path }) => which.test(path)).length
  expect(count(/\/approve$/)).toBe(3)
  expect(count(/^inbox\?/)).toBeGreaterThan(0)
  // What was read is fresh for five seconds, whatever the list reads meanwhile. Another test may change settings: then
  // the page reads who it is again too.
  const fresh = (path: string) => (/^inbox/.test(path) ? 900 : /\/approve$/.test(path) ? Infinity : 4_900)
  const early = asked.filter(({ path, at }) =>
    asked.some((b) => b.path === path && b.at < at && at - b.at < fresh(path)),
  )
  expect(early.filter(({ at }) => !asked.some((b) => b.path === 'me' && Math.abs(b.at - at) < 5_000))).toEqual([])
  const kinds = /^(actions\/[^/]+(\/approve|\/forecast)?|tools\/[^/]+|inbox\?.*|inbox\/counts.*|me|recovery)$/
  expect(asked.filter(({ path }) => !kinds.test(path))).toEqual([])
})

test('no more than four decisions are on their way at once', async ({ operator: page, recorder }) => {
  const titles = ['one', 'two', 'three', 'four', 'five'].map((n) => `Queue ${n}`)
  const ids = await several(page, recorder, titles)
  const held = await hold(page)
  for (let n = 0; n < 4; n++) {
    await opened(page, ids[n]!)
    await ready(page)
    await page.keyboard.press('a')
    await held.arrived(n + 1)
  }
  await opened(page, ids[4]!)
  await expect(page.getByRole('button', { name: 'Approve', exact: true })).toHaveAttribute(
    'aria-description',
    /not answered the last 4/,
  )
  await page.keyboard.press('a')
  await held.answer((route) => route.continue())
  for (const id of ids.slice(0, 4)) await expect.poll(() => phase(id)).toBe('completed')
  expect(await phase(ids[4]!)).toBe('pending')
  await ready(page)
  await page.keyboard.press('a')
  await expect.poll(() => phase(ids[4]!)).toBe('completed')
})

test('of a long list the rows around what is shown are in the document, and the keys go through all of it', async ({
  operator: page,
  recorder,
}) => {
  test.setTimeout(120_000)
  const { session, ids } = await proposed(
    recorder,
    'long',
    Array.from({ length: 450 }, (_, n) => `Row ${String(n).padStart(3, '0')}`),
  )
  await page.goto(`${url()}/inbox?session=${session}`)
  await expect(rows(page)).toHaveCount(200)
  // The list is read on, and stays where it was scrolled to when it grows beyond what is in the document.
  await page.locator('.list').evaluate((list) => {
    list.scrollTop = list.scrollHeight
  })
  await expect(row(page, 'Row 199')).toBeInViewport()
  await expect(rows(page).first()).toHaveAttribute('aria-setsize', '400')
  await expect(row(page, 'Row 199')).toBeInViewport()
  expect(await rows(page).count()).toBeLessThan(100)
  await row(page, 'Row 199').click()
  await opened(page, ids[199]!)
  for (let n = 200; n <= 205; n++) await page.keyboard.press('j')
  await opened(page, ids[205]!)
  const current = page.locator('.list-row[aria-current=true]')
  await expect(current).toContainText('Row 205')
  await expect(current).toBeFocused()
  await expect(current).toBeInViewport()
  // The row with the focus stays in the document wherever the list is scrolled to, and comes back into view with the
  // next key.
  await page.locator('.list').evaluate((list) => {
    list.scrollTop = 0
  })
  await expect(row(page, 'Row 000')).toBeInViewport()
  await expect(current).toBeFocused()
  await quiet(page)
  await ready(page)
  await page.keyboard.press('a')
  await opened(page, ids[206]!)
  await expect(current).toContainText('Row 206')
  await expect(current).toBeFocused()
  await expect(current).toBeInViewport()
  await expect(row(page, 'Row 205')).toContainText('approved by you')
  // What somebody else decides of a later page is seen, though one page is read again at a time.
  await api('operator', 'POST', `/api/v1/actions/${ids[207]}/deny`)
  await expect(row(page, 'Row 207')).toContainText('denied')
  // Other tests look at what waits.
  await api('operator', 'POST', '/api/v1/actions/deny', { ids: ids.slice(208) })
  await api('operator', 'POST', '/api/v1/actions/deny', { ids: ids.slice(0, 205) })
})

test('what is opened by its address is known also where the list has not come to it', async ({
  operator: page,
  recorder,
}) => {
  test.setTimeout(120_000)
  const many = await proposed(
    recorder,
    'long',
    Array.from({ length: 210 }, (_, n) => `Before ${n}`),
  )
  const mine = await api<{ envelope: { action_id: string } }>('operator', 'POST', '/api/v1/actions', {
    type: 'mcp.exec',
    external_id: `beyond-${many.session}`,
    tool: { source: recorder.source, name: 'sent' },
    args: { title: 'Beyond the first page' },
  })
  await page.goto(`${url()}/inbox/${mine.envelope.action_id}`)
  await expect(page.getByRole('button', { name: 'Approve', exact: true })).toHaveAttribute(
    'aria-description',
    /your own proposal/,
  )
  await expect(row(page, 'Beyond the first page')).toHaveCount(0)
  await api('admin', 'POST', `/api/v1/actions/${mine.envelope.action_id}/deny`)
  await api('operator', 'POST', '/api/v1/actions/deny', { ids: many.ids })
})

test('where a later part of many fails, what was answered before is shown, and the rest stays marked', async ({
  operator: page,
  recorder,
}) => {
  test.setTimeout(180_000)
  const { session, ids } = await proposed(
    recorder,
    'sent',
    Array.from({ length: 500 }, (_, n) => `Part ${String(n).padStart(3, '0')}`),
  )
  await api('admin', 'POST', '/api/v1/actions/batch', {
    items: [500, 501, 502].map((n) => ({
      type: 'mcp.exec',
      external_id: `${session}-${n}`,
      session_id: session,
      tool: { source: recorder.source, name: 'sent' },
      args: { title: `Part ${n}` },
    })),
  })
  await page.goto(`${url()}/inbox/${ids[0]}?session=${session}`)
  const list = page.locator('.list')
  await expect(rows(page).first()).toBeVisible()
  await expect(async () => {
    await list.evaluate((one) => {
      one.scrollTop = one.scrollHeight
    })
    await expect(rows(page).first()).toHaveAttribute('aria-setsize', '503', { timeout: 1_000 })
  }).toPass()
  await page.getByRole('button', { name: 'Mark them' }).click()
  await expect(page.getByText('503 marked')).toBeVisible()
  await page.keyboard.press('d')
  let parts = 0
  await page.route('**/api/v1/actions/deny', (route) => (++parts === 1 ? route.continue() : failing(route)))
  const dialog = page.getByRole('dialog')
  await expect(dialog).toContainText('Deny 503?')
  await page.keyboard.press('Control+Enter')
  await expect(dialog.getByText('500 denied')).toBeVisible({ timeout: 30_000 })
  await expect(dialog.getByRole('alert')).toContainText('3 were not answered. They stay marked')
  await expect(dialog.getByRole('alert')).toContainText('The database is away.')
  await expect(dialog.locator('.results li')).toHaveCount(500)
  await page.keyboard.press('Escape')
  await expect(page.getByRole('region', { name: 'Marked' })).toContainText('3 marked')
  await page.unroute('**/api/v1/actions/deny')
  await page.keyboard.press('d')
  await page.keyboard.press('Control+Enter')
  await expect(dialog.getByText('3 denied')).toBeVisible({ timeout: 30_000 })
})
