// The focus after every act, the way to a decision by Tab alone, and the messages of a screen reader.
import type { Page } from '@playwright/test'
import { api, expect, login, url } from './fixture'
import { listen } from './live'
import { quiet } from './quiet'
import { phase, test } from './recorder'

const focus = (page: Page) =>
  page.evaluate(() => {
    const element = document.activeElement
    if (!element || element === document.body) return 'nowhere'
    if (element.matches('.bar')) return 'bar'
    if (element.matches('.list-row')) return `row ${element.getAttribute('aria-posinset')}`
    return element.getAttribute('aria-label') ?? (element.textContent ?? '').trim()
  })

// alone returns actions of one session that wait, and the inbox with these alone.
async function alone(titles: readonly string[]) {
  const session = `focus-${Date.now()}-${Math.random().toString(36).slice(2)}`
  const { items } = await api<{ items: { action_id: string }[] }>('admin', 'POST', '/api/v1/actions/batch', {
    items: titles.map((title, i) => ({
      type: 'mcp.exec',
      external_id: `${session}-${i}`,
      session_id: session,
      tool: { source: 'notes', name: 'notes.create' },
      args: { title, body: 'A note.' },
    })),
  })
  const search = `?session=${session}`
  return {
    ids: items.map((item) => item.action_id),
    search,
    at: (id = '') => `${url()}/inbox${id && `/${id}`}${search}`,
  }
}

const ready = (page: Page) =>
  expect(page.getByRole('button', { name: 'Approve', exact: true })).not.toHaveAttribute('aria-disabled', 'true')

test('Tab leads to Approve in four steps, from a new page and from the list', async ({ operator: page }) => {
  const { ids, at } = await alone(['One', 'Two'])
  const steps = async (most: number) => {
    for (let tabs = 1; tabs <= most; tabs++) {
      await page.keyboard.press('Tab')
      const name = await focus(page)
      if (name.startsWith('Approve')) return tabs
      if (name.startsWith('Skip to')) await page.keyboard.press('Enter')
    }
    return Infinity
  }
  await page.goto(at(ids[0]))
  await quiet(page)
  await ready(page)
  expect(await steps(4)).toBeLessThanOrEqual(4)
  await page.goto(at())
  await quiet(page)
  await ready(page)
  expect(await focus(page)).toBe('row 1')
  expect(await steps(4)).toBeLessThanOrEqual(4)
})

test('the focus stays where the hand is', async ({ operator: page }) => {
  test.setTimeout(120_000)
  const { ids, at } = await alone(['One', 'Two', 'Three', 'Four', 'Five'])
  const button = (name: string) => page.getByRole('button', { name, exact: true })
  const press = async (name: string) => {
    await ready(page)
    await button(name).focus()
    await page.keyboard.press('Enter')
  }
  const after = (what: string, where: string) =>
    expect.poll(() => focus(page), { message: `after ${what}` }).toBe(where)
  await page.goto(at(ids[0]))
  await quiet(page)

  await page.keyboard.press('j')
  await page.keyboard.press('k')
  await after('j and k', 'row 1')
  await ready(page)
  await page.keyboard.press('a')
  await after('a in the list', 'row 2')
  await press('Approve')
  await after('Approve', 'bar')
  await expect(page).toHaveURL(new RegExp(ids[2]!))

  await press('Edit')
  await expect.poll(() => focus(page)).not.toBe('nowhere')
  await button('Discard').focus()
  await page.keyboard.press('Enter')
  await expect.poll(() => page.evaluate(() => document.activeElement?.closest('.bar') != null)).toBe(true)
  await press('Deny…')
  await after('Deny…', '')
  await expect(page.getByLabel('What the agent should do instead')).toBeFocused()
  await page.keyboard.press('Escape')
  await after('Escape', 'bar')

  await press('Always…')
  await expect(page.getByRole('dialog')).toBeVisible()
  await expect.poll(() => focus(page)).not.toMatch(/^(Close|nowhere)$/)
  await page.keyboard.press('Escape')
  await expect(button('Always…')).toBeFocused()
  await page.keyboard.press('j')
  await expect(page).toHaveURL(new RegExp(ids[3]!))
  await page.locator('.list-row[aria-current=true]').focus()
  await page.keyboard.press('Control+k')
  await after('the palette', 'Find anything, or run a command')
  await page.keyboard.press('Escape')
  await after('the palette is closed', 'row 4')
  await page.keyboard.press('?')
  await expect.poll(() => focus(page)).not.toMatch(/^(Close|nowhere)$/)
  await page.keyboard.press('Escape')
  await after('the help is closed', 'row 4')
})

test('a screen reader hears one message of each event', async ({ page, recorder }) => {
  test.setTimeout(120_000)
  const heard = await listen(page)
  const { ids, search } = await alone(['One', 'Two', 'Three', 'Four'])
  await login(page, 'operator', `/inbox/${ids[0]}${search}`)
  await quiet(page)
  const said = async (what: string, want: RegExp) => {
    await expect
      .poll(() => heard().then((more) => all.push(...more.filter((text) => !text.startsWith('Loading')))), {
        message: what,
      })
      .toBeGreaterThan(0)
    await page.waitForTimeout(500)
    all.push(...(await heard()).filter((text) => !text.startsWith('Loading')))
    expect(all.splice(0), what).toEqual([expect.stringMatching(want)])
  }
  const all: string[] = []
  await heard()

  await ready(page)
  await page.keyboard.press('a')
  await said('an approval', /^Approved: .*One/)
  await ready(page)
  await page.keyboard.press('d')
  await page.keyboard.type('No.')
  await page.keyboard.press('Control+Enter')
  await said('a denial', /^Denied: .*Two/)
  await ready(page)
  await page.keyboard.press('x')
  await said('a mark', /^1 marked/)
  await page.keyboard.press('x')

  await page.route('**/approve', (route) =>
    route.fulfill({
      status: 409,
      contentType: 'application/problem+json',
      body: '{"title":"Conflict","status":409,"detail":"it was sent; revert it instead (countersign revert x)"}',
    }),
  )
  await ready(page)
  await page.keyboard.press('a')
  await said('a refusal', /: not approved\. it was sent; revert it instead\. Your text is kept\./i)
  await page.unroute('**/approve')

  const id = await recorder.propose(
    'sent',
    '{"title":"Later"}',
    `,"constraints":{"not_before":"${new Date(Date.now() + 3_600_000).toISOString()}"}`,
  )
  await page.goto(`${url()}/inbox/${id}?tool=${encodeURIComponent(recorder.tool('sent'))}`)
  await quiet(page)
  await ready(page)
  await heard()
  await page.keyboard.press('a')
  await said('an approval of what goes out later', /^Approved: .*Later.*goes out/)
  await page.keyboard.press('u')
  await said('what was undone', /^Undone, and not sent: .*Later/)
  expect(await phase(id)).toBe('undone')
})
