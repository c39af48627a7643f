// Walks over all views: what must hold wherever one is.
import { focused, sideways, violations } from './browser'
import { api, atInbox, complaints, expect, login, test, url } from './fixture'
import { quiet } from './quiet'
import { seeded as read, type Seeded } from './seed'

const views = (seeded: Seeded): Record<string, string> => ({
  'the inbox': '/inbox',
  'an item of the inbox': `/inbox/${seeded.waiting}`,
  'an item with text that means harm': `/inbox/${seeded.poisoned}`,
  'the actions': '/actions',
  'the actions of a filter': '/actions?phase=pending',
  'a filter that is none': '/actions?nonsense=1',
  'an action that ended': `/actions/${seeded.completed}`,
  'an action that was denied': `/actions/${seeded.denied}`,
  'an action that waits': `/actions/${seeded.poisoned}`,
  'an action that is not there': '/actions/019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b',
  'the workflows': '/workflows',
  'a workflow': `/workflows/${seeded.workflow}`,
  'the dead letters': '/dead-letters',
  'the policy': '/policy',
  'the rules of policy': '/policy/rules',
  'the reviews': '/policy/reviews',
  'the grants': '/policy/grants',
  'the limits': '/limits',
  'a bucket': '/limits/buckets?bucket=default',
  'the quiet hours': '/limits/quiet-hours',
  'the do-not-contact list': '/limits/do-not-contact',
  'the limits as a file': '/limits/file',
  'people and tokens': '/people',
  'the subscriptions': '/subscriptions',
  'the fleet': '/fleet',
  'the fleet, and a kill': '/fleet?stop=kill',
  'the audit log': '/audit',
  'the verification': '/audit?tab=verify',
  'the sources': '/sources',
  'a source': '/sources/notes',
  'a source that is not there': '/sources/none',
  'the tools': '/tools',
  'a tool': '/tools/notes:notes.create',
  'the settings of a tool': '/tools/notes:notes.create?tab=settings',
  'a call to try': '/tools/notes:notes.create?tab=try',
  'a tool that is not there': '/tools/none:none',
  'the settings': '/settings',
  'a view that is none': '/nothing',
})

let seeded: Seeded
test.beforeAll(() => {
  seeded = read()
})

for (const theme of ['light', 'dark'] as const) {
  for (const width of [1440, 390]) {
    const check = theme === 'light' && width === 1440 ? ' @check' : ''
    test(`no barriers and no complaints, ${theme}, ${width} px${check}`, async ({ page }) => {
      test.setTimeout(240_000)
      await page.emulateMedia({ colorScheme: theme })
      await page.setViewportSize({ width, height: 900 })
      await page.goto(url() + '/login')
      await quiet(page)
      expect(await violations(page), 'the login').toEqual([])
      await login(page)
      for (const [name, to] of Object.entries(views(seeded))) {
        await page.goto(url() + to)
        await quiet(page)
        expect.soft(await violations(page), name).toEqual([])
        expect.soft(await sideways(page), `${name}: sideways`).toEqual([])
      }
    })
  }
}

test('no sideways scrolling at 320 px and at 200 %, and with forced colours', async ({ page }) => {
  test.setTimeout(240_000)
  await login(page)
  for (const [width, forced] of [
    [320, false],
    [720, false],
    [1440, true],
  ] as const) {
    await page.setViewportSize({ width, height: forced ? 900 : 512 })
    await page.emulateMedia({ forcedColors: forced ? 'active' : 'none' })
    for (const [name, to] of Object.entries(views(seeded))) {
      await page.goto(url() + to)
      await quiet(page)
      expect.soft(await sideways(page), `${name}, ${width} px`).toEqual([])
      if (forced)
        expect
          .soft(
            (await violations(page)).filter((one) => !one.includes('contrast')),
            name,
          )
          .toEqual([])
    }
  }
})

test('a view that could not be loaded has a heading, its reason and a way on', async ({ operator: page }) => {
  const views = {
    [`/actions/${seeded.completed}`]: '**/api/v1/actions/*',
    [`/workflows/${seeded.workflow}`]: '**/api/v1/workflows/*',
    [`/dead-letters/${seeded.failed}`]: '**/api/v1/dead-letters/*',
    '/sources/notes': '**/api/v1/sources**',
    '/tools/notes:notes.create': '**/api/v1/tools/*',
  }
  for (const [view, asked] of Object.entries(views)) {
    await page.route(asked, (route) =>
      route.fulfill({
        status: 501,
        contentType: 'application/problem+json',
        body: '{"title":"Not today","status":501}',
      }),
    )
    await page.goto(url() + view)
    await expect(page.locator('main').getByRole('heading', { level: 1 }), view).toContainText('Not today')
    await expect(page.getByRole('button', { name: 'Try again' })).toBeVisible()
    expect(await violations(page), view).toEqual([])
    await page.unroute(asked)
  }
})

test('with a token that may little, each view ends loading, has a heading, and no barriers', async ({ page }) => {
  test.setTimeout(240_000)
  const { token } = await api<{ token: `cs_${string}` }>('owner', 'POST', '/api/v1/tokens', {
    name: 'reads policy alone',
    role: 'operator',
    scopes: ['policy:read'],
  })
  await login(page, token, '/settings')
  for (const [name, to] of Object.entries(views(seeded))) {
    await page.goto(url() + to)
    await quiet(page)
    await expect.soft(page.locator('main').getByRole('heading', { level: 1 }), name).toHaveCount(1)
    expect.soft(await violations(page), name).toEqual([])
  }
})

test('text that means harm is written out and does nothing @check', async ({ page }) => {
  test.setTimeout(120_000)
  await login(page)
  for (const to of [`/inbox/${seeded.poisoned}`, `/actions/${seeded.poisoned}`, '/inbox', '/actions']) {
    await page.goto(url() + to)
    await quiet(page)
    const shown = await page.locator('main').innerText()
    expect.soft(shown, `${to}: hidden characters`).not.toMatch(/[\u202E\u200B\u2066]/)
    expect.soft(await page.title(), `${to}: title`).not.toMatch(/[\u202E\u200B\u2066]/)
    expect
      .soft(
        await page.locator('main img, main script, main iframe, main a[href^="javascript:"]').count(),
        `${to}: markup`,
      )
      .toBe(0)
    expect.soft(await page.evaluate('window.hacked'), `${to}: script`).toBeUndefined()
    if (to.includes(seeded.poisoned)) expect.soft(shown, to).toContain('\\u{202E}evil\\u{200B}')
  }
})

test('the focus is somewhere visible after every navigation and dialog', async ({ page }) => {
  await login(page)
  const places = {
    t: '/actions',
    w: '/workflows',
    d: '/dead-letters',
    p: '/policy',
    l: '/limits',
    f: '/fleet',
    u: '/people',
    b: '/subscriptions',
    a: '/audit',
    o: '/sources',
    e: '/tools',
    s: '/settings',
    i: '/inbox',
  }
  for (const [letter, path] of Object.entries(places)) {
    await page.keyboard.press('g')
    await page.keyboard.press(letter)
    await expect(page).toHaveURL(path === '/inbox' ? atInbox : `${url()}${path}`)
    await quiet(page)
    expect.soft(await focused(page), `after g ${letter}`).toMatchObject({ shown: true })
    for (const open of ['?', 'Control+k']) {
      await page.keyboard.press(open)
      await expect(page.locator('dialog[open]')).toBeVisible()
      expect.soft(await focused(page), `in ${open}`).toMatchObject({ shown: true })
      await page.keyboard.press('Escape')
      await expect(page.locator('dialog[open]')).toHaveCount(0)
      expect.soft(await focused(page), `after ${open}`).toMatchObject({ shown: true })
    }
  }
})

test('the browser would complain of what the policy forbids @check', async ({ browser }) => {
  const page = await browser.newPage()
  const found = complaints(page)
  await page.goto(url() + '/login')
  await page.evaluate(`{ const s = document.createElement('style'); s.textContent = 'a{}'; document.head.append(s) }`)
  await expect.poll(() => found.join()).toContain('Content Security Policy')
  await page.evaluate(`{ try { document.body.innerHTML = '<b>' } catch (error) { console.error(String(error)) } }`)
  await expect.poll(() => found.join()).toMatch(/TrustedHTML/)
  await page.close()
})
