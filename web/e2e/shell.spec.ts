// Journeys through the shell: login, logout, roles, the stream, the keys.
import { readFileSync } from 'node:fs'
import { another, api, atInbox, expect, login, propose, tabTo, test, token, url } from './fixture'
import { quiet } from './quiet'

test('a one-time code logs in once, and leaves no trace in the address @check', async ({ page, browser }) => {
  const { url: at } = await api<{ url: string }>('operator', 'POST', '/api/v1/login-codes')
  await page.goto(url() + '/login' + new URL(at).hash)
  await page.getByRole('button', { name: /^Log in as / }).click()
  await expect(page).toHaveURL(atInbox)
  await page.goBack()
  expect(page.url()).not.toContain('code')
  const second = await another(browser)
  await second.goto(url() + '/login' + new URL(at).hash)
  await expect(second.getByRole('alert')).toContainText('did not log you in')
  await expect(second.getByLabel('Token or one-time code')).toBeVisible()
  await second.context().close()
})

test('a phone can keep the page on its screen', async ({ page }) => {
  await page.goto(url() + '/login')
  const session = await page.context().newCDPSession(page)
  const { errors, url: at, data } = await session.send('Page.getAppManifest')
  expect({ errors, at }).toEqual({ errors: [], at: expect.stringMatching(/\/-\/[\w-]+\/manifest\.webmanifest$/) })
  for (const { src, sizes } of JSON.parse(data!).icons as { src: string; sizes: string }[]) {
    const size = await page.evaluate(async (src) => {
      const image = new Image()
      image.src = src
      await image.decode()
      return image.naturalWidth
    }, new URL(src, at).href)
    expect(size, src).toBeGreaterThanOrEqual(sizes === 'any' ? 1 : Number(sizes.split('x')[0]))
  }
})

test('a token logs in by the keyboard alone, and the way leads on; an agent’s is refused', async ({ page }) => {
  await page.goto(`${url()}/settings`)
  await expect(page).toHaveURL(/\/login\?to=/)
  const field = page.getByLabel('Token or one-time code')
  await field.focus()
  await page.keyboard.insertText(token('agent'))
  await page.keyboard.press('Enter')
  await expect(page.getByRole('alert')).toContainText('Not logged in')
  await field.focus()
  await page.keyboard.insertText(token('operator'))
  await page.keyboard.press('Enter')
  await expect(page).toHaveURL(url() + '/settings')
  expect(await page.evaluate('document.cookie + JSON.stringify(localStorage)')).not.toContain('cs_operator')
})

test('a login that failed says why in words, and what to do', async ({ page }) => {
  // The description of the server's answer names the codes.
  const described = readFileSync('src/api.d.ts', 'utf8').split('or another code')[0]!.split('\n').slice(-1)[0]!
  const codes = [...described.matchAll(/`(\w+)`/g)].map(([, code]) => code!)
  expect(codes.length).toBeGreaterThan(5)
  const said = page.getByRole('alert')
  await page.goto(`${url()}/login?problem=${'<b>no such problem</b>'.repeat(3)}`)
  await expect(said).toContainText('You were not logged in')
  const other = await said.innerText()
  expect(other).not.toContain('such problem')
  for (const code of codes) {
    await page.goto(`${url()}/login?problem=${code}`)
    await expect(said).toHaveCount(1)
    expect.soft(await said.innerText(), code).not.toBe(other)
  }
  await page.goto(`${url()}/auth/callback?code=x&state=never-begun`)
  await expect(page).toHaveURL(`${url()}/login?problem=login_expired`)
  await expect(said).toContainText('The login took too long')
  await page.getByLabel('Token or one-time code').fill(token('operator'))
  await page.keyboard.press('Enter')
  await expect(page).toHaveURL(atInbox)
})

test('login leads to no other site', async ({ page }) => {
  await login(page, 'operator', '//evil.example/')
  await expect(page).toHaveURL(atInbox)
})

test('logout ends the other tabs @check', async ({ operator: page }) => {
  const other = await page.context().newPage()
  await other.goto(url() + '/settings')
  await quiet(other)
  await page.keyboard.press('Control+k')
  await page.keyboard.type('log out')
  await page.keyboard.press('Enter')
  await expect(page).toHaveURL(url() + '/login')
  await expect(other).toHaveURL(url() + '/login')
})

test('a session that was ended elsewhere asks to log in over the page, and goes on there', async ({
  operator: page,
  browser,
}) => {
  await page.goto(url() + '/settings')
  const second = await another(browser)
  await login(second, 'operator', '/settings')
  // Other tests log in as the same operator at the same time.
  const own = await page.evaluate<string>(
    `fetch('/api/v1/me/sessions?limit=100').then((answer) => answer.json())
      .then(({ items }) => items.find((one) => one.current).session_id)`,
  )
  await api('operator', 'DELETE', `/api/v1/me/sessions/${own}`)
  await expect(page.getByRole('heading', { name: 'Your session ended' })).toBeVisible({ timeout: 45_000 })
  await page.keyboard.press('Escape')
  await expect(page.getByRole('heading', { name: 'Your session ended' })).toBeVisible()
  await page.getByLabel('Token or one-time code').fill(token('operator'))
  await page.keyboard.press('Enter')
  await expect(page.getByRole('heading', { name: 'Your session ended' })).toBeHidden()
  await expect(page).toHaveURL(url() + '/settings')
  await second.context().close()
})

test('a token that is revoked ends its tab', async ({ page }) => {
  const made = await api<{ token: `cs_${string}`; token_id?: string; id?: string }>('owner', 'POST', '/api/v1/tokens', {
    name: 'for a tab',
    role: 'operator',
  })
  await login(page, made.token)
  await api('owner', 'DELETE', `/api/v1/tokens/${made.token_id ?? made.id}`)
  await expect(page.getByRole('heading', { name: 'Your session ended' })).toBeVisible({ timeout: 45_000 })
})

test('a token that is revoked ends its tab, and another one goes on there, by the keyboard alone', async ({ page }) => {
  const { operator_id } = await api<{ operator_id: string }>('owner', 'POST', '/api/v1/operators', {
    name: `Keys ${Date.now()}`,
    role_set: 'operator',
  })
  const issue = () =>
    api<{ token: `cs_${string}`; token_id: string }>('owner', 'POST', '/api/v1/tokens', {
      name: 'for the keyboard',
      role: 'operator',
      operator_id,
    })
  const [made, other] = [await issue(), await issue()]
  const field = page.getByLabel('Token or one-time code')
  await page.goto(`${url()}/login`)
  await tabTo(page, field)
  await page.keyboard.insertText(made.token)
  await page.keyboard.press('Enter')
  await expect(page).toHaveURL(atInbox)
  await expect(page.locator('nav.rail')).toBeVisible()
  await page.keyboard.press('g')
  await page.keyboard.press('s')
  await expect(page).toHaveURL(`${url()}/settings`)
  // What a browser was shown once is not shown again.
  await expect(page.locator('body')).not.toContainText(made.token)
  await api('owner', 'DELETE', `/api/v1/tokens/${made.token_id}`)
  const ended = page.getByRole('heading', { name: 'Your session ended' })
  await expect(ended).toBeVisible({ timeout: 45_000 })
  await page.keyboard.press('g')
  await page.keyboard.press('i')
  await expect(page).toHaveURL(`${url()}/settings`)
  await tabTo(page, field)
  await page.keyboard.press('Control+a')
  await page.keyboard.insertText(made.token)
  await page.keyboard.press('Enter')
  await expect(page.getByRole('dialog').getByRole('alert')).toBeVisible()
  await tabTo(page, field)
  await page.keyboard.press('Control+a')
  await page.keyboard.insertText(other.token)
  await page.keyboard.press('Enter')
  await expect(ended).toBeHidden()
  await page.keyboard.press('g')
  await page.keyboard.press('i')
  await expect(page).toHaveURL(atInbox)
})

test('a stream that is cut is resumed, and what came meanwhile is found by the keyboard alone', async ({
  operator: page,
  context,
}) => {
  const session = `cut-${process.pid}-${Date.now()}`
  const make = async (n: number) =>
    (
      await api<{ items: { action_id: string }[] }>('admin', 'POST', '/api/v1/actions/batch', {
        items: [
          {
            type: 'mcp.exec',
            external_id: `${session}-${n}`,
            session_id: session,
            tool: { source: 'notes', name: 'notes.create' },
            args: { title: `Cut ${n}`, body: 'A note.' },
          },
        ],
      })
    ).items[0]!.action_id
  const first = await make(1)
  await quiet(page)
  await page.keyboard.press('/')
  await page.keyboard.type(`session:${session}`)
  await page.keyboard.press('Enter')
  const rows = page.locator('.list-row')
  await expect(rows).toHaveCount(1)
  await tabTo(page, page.getByLabel('Order', { exact: true }))
  await page.keyboard.press('n')
  await expect(page).toHaveURL(/order=newest/)
  await page.keyboard.press('Escape')
  const state = page.locator('[data-live]')
  await expect(state).toHaveAttribute('data-live', 'live')
  await context.setOffline(true)
  await expect(state).toHaveAttribute('data-live', 'lost', { timeout: 45_000 })
  const second = await make(2)
  await api('owner', 'POST', `/api/v1/actions/${first}/deny`, { note: 'no' })
  await context.setOffline(false)
  await expect(state).toHaveAttribute('data-live', 'live', { timeout: 30_000 })
  await expect(rows.first()).toContainText('denied')
  await expect(rows).toHaveCount(1)
  await expect(page.getByRole('button', { name: /^1 new/ })).toBeVisible()
  await tabTo(page, page.getByRole('button', { name: /^1 new/ }))
  await page.keyboard.press('.')
  await expect(rows).toHaveCount(1)
  await expect(rows.first()).toContainText('Cut 2')
  await page.keyboard.press('j')
  await expect(page).toHaveURL(new RegExp(`/inbox/${second}`))
  await expect(page.getByRole('article')).toContainText('Cut 2')
})

test('a stream that is cut is resumed, and nothing is lost', async ({ operator: page, context }) => {
  await page.goto(url() + '/actions')
  const state = page.locator('[data-live]')
  await expect(state).toHaveAttribute('data-live', 'live')
  await context.setOffline(true)
  await expect(state).toHaveAttribute('data-live', 'lost', { timeout: 45_000 })
  const missed = await propose({ title: 'Proposed while the line was cut' })
  await context.setOffline(false)
  await expect(state).toHaveAttribute('data-live', 'live', { timeout: 30_000 })
  await page.goto(url() + `/actions/${missed}`)
  await expect(page.getByText('Proposed while the line was cut').first()).toBeVisible()
})

test('one tab reads the stream for all, and the next takes over when it is closed', async ({
  operator: page,
  context,
}) => {
  await expect(page.locator('[data-live]')).toHaveAttribute('data-live', 'live')
  let streams = 0
  context.on('request', (request) => {
    if (request.url().includes('/api/v1/events')) streams++
  })
  const others = [await context.newPage(), await context.newPage()]
  for (const other of others) {
    await other.goto(url() + '/actions')
    await expect(other.locator('[data-live]')).toHaveAttribute('data-live', 'live')
  }
  expect(streams).toBe(0)
  await page.close()
  await expect.poll(() => streams).toBe(1)
  const id = await propose({ title: 'Heard by both' })
  for (const other of others) {
    await other.goto(url() + `/actions/${id}`)
    await expect(other.locator('[data-live]')).toHaveAttribute('data-live', 'live')
    await expect(other.locator('.state').first()).toContainText('needs a person')
  }
  await api('operator', 'POST', `/api/v1/actions/${id}/deny`, { note: 'no' })
  for (const other of others) await expect(other.locator('.state').first()).toContainText('denied')
})

test('a pause keeps the page as it is until it is resumed', async ({ operator: page }) => {
  const id = await propose({ title: 'Changes while paused' })
  await page.goto(url() + `/actions/${id}`)
  await expect(page.locator('[data-live]')).toHaveAttribute('data-live', 'live')
  await expect(page.locator('.state').first()).toContainText('needs a person')
  await quiet(page)
  await page.keyboard.press('p')
  await expect(page.locator('[data-live]')).toHaveAttribute('data-live', 'paused')
  await api('operator', 'POST', `/api/v1/actions/${id}/deny`, { note: 'no' })
  await expect(page.locator('[data-live]')).toContainText('since')
  await expect(page.locator('.state').first()).toContainText('needs a person')
  await page.keyboard.press('p')
  await expect(page.locator('.state').first()).toContainText('denied')
})

for (const role of ['viewer', 'operator', 'admin', 'owner'] as const) {
  test(`what is offered to the role ${role} is what it may`, async ({ page }) => {
    const made = await api<{ token: `cs_${string}` }>('owner', 'POST', '/api/v1/tokens', { name: `a ${role}`, role })
    await login(page, made.token, `/inbox/${await propose()}`)
    await quiet(page)
    const me = await api<{ operations: string[] }>(made.token as `cs_${string}`, 'GET', '/api/v1/me')
    for (const [operation, name] of [
      ['approveAction', /^Approve/],
      ['denyAction', /^Deny/],
    ] as const) {
      const button = page.getByRole('button', { name }).first()
      if (me.operations.includes(operation)) await expect(button).not.toHaveAttribute('aria-description', /role/)
      else await expect(button).toHaveAttribute('aria-description', /role/)
    }
  })
}

test('a token that may only read actions sees what waits, and the page does not ask again and again', async ({
  page,
}) => {
  const made = await api<{ token: `cs_${string}` }>('owner', 'POST', '/api/v1/tokens', {
    name: 'reads actions alone',
    role: 'operator',
    scopes: ['actions:read'],
  })
  const id = await propose({ title: 'Read with one scope' })
  let asked = 0
  page.on('request', (request) => {
    if (request.url().includes('/api/v1/tools/')) asked++
  })
  await login(page, made.token, `/inbox/${id}`)
  await expect(page.getByRole('article')).toContainText('Read with one scope')
  await page.keyboard.press('p')
  await expect(page.locator('[data-live]')).toHaveAttribute('data-live', 'paused')
  await quiet(page)
  await expect(page.getByRole('article')).toContainText('Read with one scope')
  // Each change of a setting by another test reads it again; the loop asked hundreds of times.
  expect(asked).toBeLessThan(10)
})

test('every command that the palette offers is in the help, with its key', async ({ operator: page }) => {
  await quiet(page)
  await page.keyboard.press('?')
  const helped = await page
    .locator('.help [data-command]')
    .evaluateAll((all) => all.map((one) => one.getAttribute('data-command')))
  expect(helped).toEqual(
    expect.arrayContaining([
      'palette',
      'help',
      'refresh',
      'pause',
      'copy_link',
      'go_inbox',
      'go_actions',
      'go_workflows',
      'go_dead_letters',
      'go_policy',
      'go_settings',
      'next',
      'previous',
    ]),
  )
  await page.keyboard.press('Escape')
})

test('single letters can be switched off, and never act in a field', async ({ operator: page }) => {
  await page.goto(url() + '/settings')
  await page.getByLabel('Single-letter keys').selectOption('off')
  await page.locator('h1').click()
  await page.keyboard.press('?')
  await expect(page.locator('dialog[open]')).toHaveCount(0)
  await page.keyboard.press('Control+k')
  await page.keyboard.type('p?')
  await expect(page.getByRole('combobox', { name: 'Find anything' })).toHaveValue('p?')
  await page.keyboard.press('Escape')
  await expect(page.locator('[data-live=paused]')).toHaveCount(0)
})

test('the palette finds an action by the beginning of its external id, and opens it by the keyboard alone', async ({
  operator: page,
}) => {
  const external = `invoice-${process.pid}-${Date.now()}`
  const { items } = await api<{ items: { action_id: string }[] }>('admin', 'POST', '/api/v1/actions/batch', {
    items: ['a', 'b'].map((end) => ({
      type: 'mcp.exec',
      external_id: `${external}-${end}`,
      tool: { source: 'notes', name: 'notes.create' },
      args: { title: `Found ${end}`, body: 'A note.' },
    })),
  })
  await quiet(page)
  await page.keyboard.press('Control+k')
  await page.keyboard.type(external)
  const options = page.getByRole('dialog').getByRole('option')
  await expect(options).toHaveCount(2)
  await page.keyboard.type('-b')
  await expect(options).toHaveText([new RegExp(`${external}-b.*action`)])
  await expect(options).toHaveAttribute('aria-selected', 'true')
  await page.keyboard.press('Enter')
  await expect(page).toHaveURL(`${url()}/actions/${items[1]!.action_id}`)
  await expect(page.getByText('Found b').first()).toBeVisible()
})
