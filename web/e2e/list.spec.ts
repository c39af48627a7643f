// The list of the inbox: marks by mouse and touch, rows that are left out of a batch, and the search by words.
import { violations } from './browser'
import { api, expect, give, hands, phase, type Recorder, test, url } from './recorder'

test('rows are marked by their boxes, also a range, and left out of the batch by hand', async ({
  operator: page,
  recorder,
}) => {
  const ids: string[] = []
  for (const word of ['one', 'two', 'three', 'four'])
    ids.push(await recorder.propose('boxed', `{"title":"Boxed ${word}"}`))
  await page.getByLabel('Filter').fill(recorder.tool('boxed'))
  await page.keyboard.press('Enter')
  const rows = page.locator('.list-row')
  await expect(rows).toHaveCount(4)
  const box = (row: number) => rows.nth(row).getByRole('checkbox', { name: 'Mark' })
  const target = await rows.nth(0).locator('.row-mark').boundingBox()
  expect(Math.min(target!.width, target!.height)).toBeGreaterThanOrEqual(44)

  await rows.nth(0).locator('.row-mark').click()
  await box(2).click({ modifiers: ['Shift'] })
  await expect(page.getByRole('region', { name: 'Marked' })).toContainText('3 marked')
  await expect(box(1)).toBeChecked()
  await expect(box(3)).not.toBeChecked()

  await page.getByRole('button', { name: 'Approve 3' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('checkbox', { name: /Boxed two/ }).click()
  await expect(dialog.getByRole('row', { name: /left out/ })).toHaveCount(1)
  await dialog.getByRole('button', { name: 'Approve 2' }).click()
  await expect(dialog.getByText('2 approved')).toBeVisible()
  await dialog.getByRole('button', { name: 'Close' }).last().click()
  await expect(page.getByRole('region', { name: 'Marked' })).toContainText('1 marked')
  await expect(box(1)).toBeChecked()
  await expect.poll(() => phase(ids[2]!)).toBe('completed')
  expect(await phase(ids[1]!)).toBe('pending')
})

test('words of the arguments find an action, on a phone too', async ({ operator: page, recorder }) => {
  const word = `needle${Date.now()}`
  await recorder.propose('boxed', `{"title":"Find ${word} Ünïted"}`)
  await page.setViewportSize({ width: 390, height: 844 })
  await page.goto(`${url()}/inbox`)
  const filter = page.getByLabel('Filter')
  await expect(async () => {
    await filter.fill(`${word} unit`)
    await page.keyboard.press('Enter')
    await page.reload()
    await expect(page.locator('.list-row')).toHaveCount(1, { timeout: 1_000 })
  }).toPass()
  await expect(filter).toHaveValue(`${word} unit`)
  await page.keyboard.press('Control+k')
  await page.getByRole('combobox', { name: 'Find anything' }).fill(word)
  await expect(page.getByRole('option', { name: new RegExp(word) })).toBeVisible()
})

// inSessions proposes actions, each of a session with a title.
async function inSessions(recorder: Recorder, name: 'grouped' | 'chosen', calls: string[][]): Promise<string[]> {
  const { items } = await api<{ items: { action_id: string }[] }>('admin', 'POST', '/api/v1/actions/batch', {
    items: calls.map(([session_id, title], n) => ({
      type: 'mcp.exec',
      external_id: `${name}-${n}-${session_id}`,
      session_id,
      tool: { source: recorder.source, name },
      args: { title },
    })),
  })
  return items.map((one) => one.action_id)
}

for (const hand of hands) {
  test(`the first item is open beside the list, and nothing else opens by itself, by ${hand}`, async ({
    operator: page,
    recorder,
  }) => {
    test.setTimeout(120_000)
    const session = `first ${hand} ${Date.now()}`
    const ids: string[] = []
    const make = async (title: string, risk: string) => {
      const { items } = await api<{ items: { action_id: string }[] }>('admin', 'POST', '/api/v1/actions/batch', {
        items: [
          {
            type: 'mcp.exec',
            external_id: `${title} ${session}`,
            session_id: session,
            tool: { source: recorder.source, name: 'grouped' },
            args: { title },
            risk,
          },
        ],
      })
      ids.push(items[0]!.action_id)
    }
    for (const title of ['First', 'Second']) await make(title, 'medium')
    const list = `${url()}/inbox?order=risk&session=${encodeURIComponent(session)}`
    const opened = (id: string) => expect(page).toHaveURL(new RegExp(`/inbox/${id}\\?`))
    const article = page.getByRole('article')
    const rows = page.locator('.list-row')
    const current = page.locator('.list-row[aria-current=true]')
    await page.goto(`${url()}/actions`)
    await page.goto(list)
    await opened(ids[0]!)
    await expect(article).toContainText('First')
    await expect(current).toContainText('First')
    await expect(current).toBeFocused()

    await make('Graver', 'high')
    await page.getByRole('button', { name: /^1 new/ }).click()
    await expect(rows.first()).toContainText('Graver')
    await opened(ids[0]!)
    await expect(article).toContainText('First')

    if (hand === 'pointer') await rows.nth(2).click()
    else {
      await rows.nth(1).focus()
      for (const key of ['j', 'k', 'j', 'Enter']) await page.keyboard.press(key)
    }
    await opened(ids[1]!)
    await expect(article).toContainText('Second')
    await page.goBack()
    await expect(page).toHaveURL(`${url()}/actions`)
    await page.goForward()
    await opened(ids[1]!)
    await expect(article).toContainText('Second')

    await page.keyboard.press('Escape')
    await expect(page.getByRole('heading', { name: 'Nothing is open' })).toBeVisible()
    await page.reload()
    await expect(rows).toHaveCount(3)
    await expect(article).toHaveCount(0)
    await page.getByRole('navigation').getByRole('link', { name: 'Inbox' }).first().click()
    await expect(article).toBeVisible()
    await page.setViewportSize({ width: 390, height: 844 })
    await page.goto(list)
    await expect(rows).toHaveCount(3)
    await expect(article).toHaveCount(0)
    await expect(page).not.toHaveURL(/inbox\//)
    for (const id of ids) expect(await phase(id)).toBe('pending')
    await api('operator', 'POST', '/api/v1/actions/deny', { ids })
  })

  test(`groups by session are closed, marked whole and decided one after the other, by ${hand}`, async ({
    operator: page,
    recorder,
  }) => {
    const about = `${hand}-${Date.now()}`
    const ids = await inSessions(
      recorder,
      'grouped',
      ['a one', 'b two', 'a three', 'b four', 'a five'].map((text) => {
        const [session, word] = text.split(' ')
        return [`${session} ${about}`, `Group ${word} ${about}`]
      }),
    )
    await page.goto(`${url()}/inbox?tool=${encodeURIComponent(recorder.tool('grouped'))}`)
    const rows = page.locator('.list-row')
    await expect(rows).toHaveCount(5)
    const order = page.getByLabel('Order', { exact: true })
    await order.focus()
    await order.selectOption('session')
    await expect(order).toBeFocused()
    await expect(page).toHaveURL(/order=session/)
    const head = (name: string) => page.locator('.list-head', { hasText: `${name} ${about}` })
    await expect(head('a').getByText('3 waiting')).toBeVisible()
    await expect(rows.nth(1)).toContainText(`Group three ${about}`)
    expect(await violations(page)).toEqual([])

    const fold = head('a').getByRole('button', { expanded: true })
    await rows.nth(1).click()
    if (hand === 'pointer') await fold.click()
    else await page.keyboard.press('z')
    await expect(rows).toHaveCount(2)
    // A link shows the same, and a group that is not there closes nothing.
    await page.goto(`${page.url()}&closed=gone&closed=`)
    await expect(head('a').getByRole('button', { expanded: false })).toBeVisible()
    await expect(rows).toHaveCount(2)
    await expect(page.getByRole('article')).toContainText(`Group three ${about}`)
    await head('a').getByRole('button', { expanded: false }).focus()
    await page.keyboard.press('Enter')
    await expect(rows).toHaveCount(5)
    await expect(page).not.toHaveURL(/closed=a/)

    await rows.nth(1).click()
    const title = page.getByRole('article').locator('.headline')
    await expect(title).toContainText('Group three')
    await give(page, hand, 'a', 'Approve')
    await expect(title).toContainText('Group five')
    await give(page, hand, 'a', 'Approve')
    await expect(title).toContainText('Group one')
    await expect(head('a').getByText('1 waiting')).toBeVisible()

    await rows.nth(3).click()
    if (hand === 'pointer') await page.getByRole('button', { name: `Mark all of b ${about}` }).click()
    else await page.keyboard.press('Shift+X')
    await expect(page.getByRole('region', { name: 'Marked' })).toContainText('2 marked')
    await page.getByRole('button', { name: 'Approve 2' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Approve 2' }).click()
    for (const id of [ids[1]!, ids[2]!, ids[3]!, ids[4]!]) await expect.poll(() => phase(id)).toBe('completed')
    expect(await phase(ids[0]!)).toBe('pending')
    await api('operator', 'POST', `/api/v1/actions/${ids[0]}/deny`, { note: 'the end' })
  })
}

test('filters are chosen with their counts, the focus stays, and one that the list does not have is an error', async ({
  operator: page,
  recorder,
}) => {
  const about = String(Date.now())
  await inSessions(
    recorder,
    'chosen',
    ['x', 'y', 'y'].map((session) => [`${session} ${about}`, `Chosen ${about}`]),
  )
  await page.goto(`${url()}/inbox?tool=${encodeURIComponent(recorder.tool('chosen'))}`)
  const rows = page.locator('.list-row')
  const session = page.getByLabel('Session', { exact: true })
  await expect(session.getByRole('option', { name: `y ${about} · 2` })).toBeAttached()
  await session.focus()
  await session.selectOption(`y ${about}`)
  await expect(rows).toHaveCount(2)
  await expect(session).toBeFocused()
  await expect(page.getByLabel('Filter', { exact: true })).toHaveValue(/session:"y/)
  await expect(session.getByRole('option', { name: `x ${about} · 1` })).toBeAttached()
  expect(await violations(page)).toEqual([])
  await page.getByRole('button', { name: 'Remove session' }).click()
  await expect(rows).toHaveCount(3)
  await expect(session).toBeFocused()

  await page.goto(`${url()}/inbox?sesion=x`)
  await expect(page.getByRole('alert')).toContainText('Unknown filter “sesion”')
  await expect(rows).toHaveCount(0)
  await page.getByRole('button', { name: 'Remove it' }).click()
  await expect(rows.first()).toBeVisible()
})

test('what is shown first is asked for once and early, and nothing moves meanwhile', async ({
  operator: page,
  recorder,
}) => {
  const id = await recorder.propose('boxed', '{"title":"Shown soon"}')
  const asked: string[] = []
  page.on('request', (one) => asked.push(one.url().slice(url().length)))
  // No event of another test moves anything.
  await page.route('**/api/v1/events*', () => undefined)
  await page.addInitScript(() => {
    const moved = { sum: 0 }
    Object.assign(window, { moved })
    new PerformanceObserver((list) => {
      for (const one of list.getEntries()) moved.sum += (one as PerformanceEntry & { value: number }).value
    }).observe({ type: 'layout-shift', buffered: true })
  })
  await page.setViewportSize({ width: 1350, height: 940 })
  await page.goto(`${url()}/inbox/${id}`)
  await expect(page.getByRole('article')).toContainText('Shown soon')
  await expect(page.getByRole('tab', { name: /^All \d/ })).toBeVisible()
  await expect.poll(() => asked).toContain('/api/v1/events')
  for (const path of ['/api/v1/me', '/api/v1/inbox?view=summary&limit=24']) {
    expect(asked.filter((one) => one === path)).toEqual([path])
    // It was sent before the page's scripts asked for anything.
    expect(asked.indexOf(path)).toBeLessThan(asked.indexOf('/api/v1/events'))
  }
  expect(await page.evaluate(() => (window as unknown as { moved: { sum: number } }).moved.sum)).toBeLessThan(0.01)
})
