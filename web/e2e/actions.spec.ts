// Actions, workflows and dead letters, against the real program: journeys 11 and 12, and what their lists promise.
import type { Page, Request } from '@playwright/test'
import { api, expect, propose, test, url } from './fixture'

interface Action {
  phase: string
  envelope: { action_id: string; result: { attempts: number } }
}

const action = (id: string) => api<Action>('operator', 'GET', `/api/v1/actions/${id}`)

let count = 0
const name = (what: string) => `${what}-${process.pid}-${Date.now()}-${++count}`

// refusedCalls has an admin propose calls that the tool refuses for good, and waits until all of them are dead letters.
// Each test has a tool of its own: what is replayed is a dead letter again a moment later, and would be counted by
// another.
async function refusedCalls(
  how: number,
  tool: 'append' | 'read' | 'publish',
): Promise<{ automation: string; since: string }> {
  await api('owner', 'PUT', `/api/v1/policy/modes/notes:notes.${tool}`, { mode: 'allow' }).catch(() => undefined)
  const automation = name('refused')
  const since = new Date().toISOString()
  for (let from = 0; from < how; from += 500) {
    const items = Array.from({ length: Math.min(500, how - from) }, (_, i) => ({
      type: 'mcp.exec',
      external_id: `${automation}-${from + i}`,
      automation_id: automation,
      tool: { source: 'notes', name: `notes.${tool}` },
      args: { id: `no such note ${from + i}`, ...(tool === 'append' ? { text: 'More.' } : {}) },
    }))
    await api('admin', 'POST', '/api/v1/actions/batch', { items })
  }
  const filter = { tool: `notes:notes.${tool}`, since }
  await expect
    .poll(
      async () =>
        (await api<{ left: number }>('operator', 'POST', '/api/v1/dead-letters/replay', { filter, dry_run: true }))
          .left,
      { timeout: 60_000 },
    )
    .toBe(how)
  return { automation, since }
}

interface Replayed {
  sent: number
  requests: { filter: Record<string, string>; per_second?: number; dry_run?: boolean }[]
  ids: string[]
}

// recordReplays keeps what the page asks of the API for replays, and which letters the answers name.
function recordReplays(page: Page): Replayed {
  const found: Replayed = { sent: 0, requests: [], ids: [] }
  page.on('request', (request) => {
    if (request.url().endsWith('/api/v1/dead-letters/replay')) found.sent++
  })
  page.on('requestfinished', async (request: Request) => {
    if (!request.url().endsWith('/api/v1/dead-letters/replay')) return
    const body = request.postDataJSON() as Replayed['requests'][number]
    const answer = (await (await request.response())!.json()) as { action_ids: string[] }
    if (!body.dry_run) found.ids.push(...answer.action_ids)
    found.requests.push(body)
  })
  return found
}

test.describe('journey 11: dead letters are replayed at a pace, and stopped halfway', () => {
  test('a thousand, with the mouse', async ({ operator: page }) => {
    test.setTimeout(180_000)
    const { since } = await refusedCalls(1_000, 'append')
    const recorded = recordReplays(page)
    await page.goto(`${url()}/dead-letters?tool=notes%3Anotes.append&since=${encodeURIComponent(since)}`)
    await page.getByRole('button', { name: /^Replay/ }).click()
    const drawer = page.getByRole('dialog')
    await expect(drawer).toContainText('1,000 dead letters of notes:notes.append, made at')
    await drawer.getByLabel('Pace').fill('10')
    await expect(drawer).toContainText('200 a second: the last goes out in about 5.0 s')
    await drawer.getByRole('button', { name: 'Replay 1,000' }).click()
    await expect
      .poll(async () => Number(await drawer.getByRole('progressbar').getAttribute('value')), { intervals: [50] })
      .toBeGreaterThanOrEqual(400)
    await drawer.getByRole('button', { name: 'Stop' }).click()
    await expect(drawer).toContainText('Stopped.')
    const value = async () => Number(await drawer.getByRole('progressbar').getAttribute('value'))
    const left = async () => {
      const filter = recorded.requests.find((r) => !r.dry_run)!.filter
      const answer = await api<{ left: number }>('operator', 'POST', '/api/v1/dead-letters/replay', {
        filter,
        dry_run: true,
      })
      return answer.left
    }
    // A request that was on its way when it was stopped is counted when its answer is there.
    await expect.poll(() => recorded.sent - recorded.requests.length).toBe(0)
    await expect.poll(async () => (await value()) + (await left())).toBe(1_000)
    const replayed = await value()
    expect(replayed).toBeLessThan(1_000)
    // What was asked is the filter of the list, with the time of the dry run as its end, and each letter was taken
    // once.
    const asked = recorded.requests.filter((r) => !r.dry_run)
    expect(new Set(asked.map((r) => JSON.stringify(r.filter))).size).toBe(1)
    expect(asked[0]!.filter).toMatchObject({ tool: 'notes:notes.append', since })
    expect(recorded.ids).toHaveLength(replayed)
    expect(new Set(recorded.ids).size).toBe(replayed)
    // Nothing goes on behind the back of whoever stopped it.
    await drawer.getByRole('button', { name: 'Close' }).last().click()
    await expect(drawer).toHaveCount(0)
    expect(await left()).toBe(1_000 - replayed)
  })

  test('some, by keyboard alone', async ({ operator: page }) => {
    const { since } = await refusedCalls(40, 'read')
    await page.goto(`${url()}/dead-letters?tool=notes%3Anotes.read&since=${encodeURIComponent(since)}`)
    await page.getByRole('button', { name: /^Replay/ }).focus()
    await page.keyboard.press('Enter')
    const drawer = page.getByRole('dialog')
    await expect(drawer).toContainText('40 dead letters')
    await drawer.getByLabel('Pace').focus()
    for (let i = 0; i < 3; i++) await page.keyboard.press('ArrowLeft')
    await expect(drawer).toContainText('5 a second')
    await drawer.getByRole('button', { name: 'Replay 40' }).focus()
    await page.keyboard.press('Space')
    await expect(drawer).toContainText(/[1-9]\d* of 40 on the schedule again/)
    await drawer.getByRole('button', { name: 'Stop' }).focus()
    await page.keyboard.press('Enter')
    await expect(drawer).toContainText('Stopped.')
    expect(Number(await drawer.getByRole('progressbar').getAttribute('value'))).toBeLessThan(40)
    await page.keyboard.press('Escape')
    await expect(drawer).toHaveCount(0)
    await expect(page).toHaveURL(/dead-letters\?tool=[^&]*&since=[^&]*$/)
  })

  test('one is given up with a reason, and then is no dead letter', async ({ operator: page }) => {
    const { automation } = await refusedCalls(1, 'publish')
    const [found] = (await api<{ items: Action[] }>('operator', 'GET', `/api/v1/actions?automation_id=${automation}`))
      .items
    const id = found!.envelope.action_id
    await page.goto(`${url()}/dead-letters/${id}`)
    await page.getByRole('button', { name: 'Give up…' }).click()
    const dialog = page.getByRole('dialog')
    await expect(dialog.getByRole('button', { name: /^Give up/ })).toHaveAttribute('aria-disabled', 'true')
    await dialog.getByLabel('Note').fill('The note was never there.')
    await page.keyboard.press('Control+Enter')
    await expect(page).toHaveURL(`${url()}/actions/${id}`)
    await expect(page.getByRole('list', { name: 'What happened' })).toContainText('given up')
    await expect(page.getByRole('list', { name: 'What happened' })).toContainText('The note was never there.')
    await page.goto(`${url()}/dead-letters/${id}`)
    await expect(page.getByRole('heading', { name: 'Dead letter not found' })).toBeVisible()
  })
})

test.describe('journey 12: an action is undone before it is sent', () => {
  const waiting = async () => {
    const id = await propose({}, { constraints: { not_before: new Date(Date.now() + 3_600_000).toISOString() } })
    await api('admin', 'POST', `/api/v1/actions/${id}/approve`, {})
    return id
  }
  const nothingSent = async (page: Page, id: string) => {
    await expect(page.locator('.page-head')).toContainText('undone')
    await expect(page.getByRole('list', { name: 'What happened' })).toContainText('undone')
    const now = await action(id)
    expect([now.phase, now.envelope.result.attempts]).toEqual(['undone', 0])
  }

  test('with the mouse', async ({ operator: page }) => {
    const id = await waiting()
    await page.goto(`${url()}/actions/${id}`)
    await expect(page.locator('.page-head')).toContainText('approved, waits')
    await expect(page.locator('main')).toContainText('not before')
    await page.getByRole('button', { name: 'Undo' }).click()
    await nothingSent(page, id)
    await expect(page.getByRole('button', { name: 'Undo' })).toHaveAttribute('aria-disabled', 'true')
  })

  test('by keyboard alone, from the list', async ({ operator: page }) => {
    const id = await waiting()
    await page.keyboard.press('g')
    await page.keyboard.press('t')
    await expect(page.getByRole('heading', { name: 'Actions' })).toBeVisible()
    await expect(page.locator('.list-row').first()).toBeVisible()
    for (let i = 0; i < 50; i++) {
      await page.keyboard.press('j')
      const open = page.locator('.list-row[aria-current=true]')
      await expect(open).toBeInViewport()
      if ((await open.innerText()).includes('approved, waits')) break
    }
    await page.keyboard.press('Enter')
    await expect(page).toHaveURL(`${url()}/actions/${id}`)
    await expect(page.getByRole('button', { name: 'Undo' })).toBeVisible()
    await page.keyboard.press('u')
    await nothingSent(page, id)
  })
})

test('the list follows what happens in place, and puts nothing new under the hand', async ({ operator: page }) => {
  const session = name('session')
  const make = (more = {}) =>
    api<{ items: { action_id: string }[] }>('admin', 'POST', '/api/v1/actions/batch', {
      items: [
        {
          type: 'mcp.exec',
          external_id: name('listed'),
          session_id: session,
          tool: { source: 'notes', name: 'notes.create' },
          args: { title: name('Note'), body: 'A note.' },
          ...more,
        },
      ],
    }).then((answer) => answer.items[0]!.action_id)
  const first = await make()
  await page.goto(`${url()}/actions?session_id=${session}`)
  const rows = page.locator('.list-row')
  await expect(rows).toHaveCount(1)
  await expect(rows.first()).toContainText('needs a person')
  await make()
  await expect(page.getByRole('button', { name: '1 new' })).toBeVisible()
  await expect(rows).toHaveCount(1)
  await api('owner', 'POST', `/api/v1/actions/${first}/deny`, { note: 'no' })
  await expect(rows.first()).toContainText('denied')
  await page.keyboard.press('.')
  await expect(rows).toHaveCount(2)
  await expect(rows.first()).toContainText('needs a person')
})

test('the filter that is shown is the one that was applied: after back, forward and reload, and in the query', async ({
  operator: page,
}) => {
  await propose()
  const asked: string[] = []
  page.on(
    'request',
    (r) => r.url().includes('/api/v1/actions?') && asked.push(new URL(r.url()).searchParams.get('phase') ?? 'none'),
  )
  await page.goto(`${url()}/actions`)
  await page.getByRole('button', { name: 'Needs a person', exact: true }).click()
  await expect(page).toHaveURL(/phase=pending$/)
  await page.getByRole('button', { name: 'Did not happen' }).click()
  await expect(page).toHaveURL(/phase=denied%2Cfailed%2Cexpired%2Cskipped$/)
  await expect(page.locator('.filter .chip')).toHaveText(/denied or failed or expired or skipped/)
  await page.goBack()
  await expect(page.locator('.filter .chip')).toHaveText(/pending/)
  await page.reload()
  await expect(page.locator('.filter .chip')).toHaveText(/pending/)
  await expect.poll(() => asked.at(-1)).toBe('pending')
  await page.getByRole('button', { name: 'As a query' }).click()
  await expect(page.getByLabel('API query')).toHaveValue('/api/v1/actions?phase=pending')
  await page.getByLabel('API query').fill('/api/v1/actions?colour=red')
  await page.getByRole('button', { name: 'Apply' }).click()
  await expect(page.locator('.filter-raw')).toContainText('Unknown filter “colour”.')
})

test('an address that is not understood is an error, and no list', async ({ operator: page }) => {
  for (const search of ['colour=red', 'phase=pending&phase=failed', 'phase=over', 'since=yesterday']) {
    const asked: string[] = []
    const hear = (r: Request) => void (r.url().includes('/api/v1/actions?') && asked.push(r.url()))
    page.on('request', hear)
    await page.goto(`${url()}/actions?${search}`)
    await expect(page.getByRole('alert')).toContainText('This list was not loaded')
    await expect(page.locator('.list-row')).toHaveCount(0)
    expect(asked).toEqual([])
    page.off('request', hear)
  }
  await page.getByRole('button', { name: 'Remove it' }).click()
  await expect(page).toHaveURL(`${url()}/actions`)
  await expect(page.locator('.list-row').first()).toBeVisible()
})

test('a workflow that waits is a ladder, and is canceled by whoever may', async ({ operator: page }) => {
  const workflow = await api<{ workflow_id: string }>('agent', 'POST', '/api/v1/workflows', {
    external_id: name('workflow'),
    steps: [
      { tool: 'notes:notes.list' },
      { tool: 'notes:notes.create', inputs: { title: name('Note'), body: 'x' } },
      { tool: 'notes:notes.list' },
    ],
  })
  await page.goto(`${url()}/workflows/${workflow.workflow_id}`)
  const rungs = page.locator('.rung')
  await expect(rungs).toHaveCount(3)
  await expect(rungs.nth(0)).toContainText('done')
  await expect(rungs.nth(1)).toHaveAttribute('aria-current', 'step')
  await page.getByRole('button', { name: 'Cancel…' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()
  await expect(page.locator('.page-head')).toContainText('canceled')
  await expect(rungs.nth(2)).toContainText(/skipped|comes later/)
})
