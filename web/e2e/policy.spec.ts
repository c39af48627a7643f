// The view of policy: a mode is tried on the past before it holds, by pointer and by keyboard; and by whom it may be.
import type { Page } from '@playwright/test'
import { violations } from './browser'
import { tabTo } from './fixture'
import { quiet } from './quiet'
import { another, api, expect, login, test, url } from './recorder'

interface Mode {
  tool: string
  mode: string
}

async function modeOf(tool: string): Promise<string | undefined> {
  const { items } = await api<{ items: Mode[] }>('operator', 'GET', '/api/v1/policy/modes?limit=200')
  return items.find((one) => one.tool === tool)?.mode
}

const put = (tool: string, mode: string) => api('admin', 'PUT', `/api/v1/policy/modes/${tool}`, { mode })
const remove = (tool: string) => api('admin', 'DELETE', `/api/v1/policy/modes/${tool}`)
const cell = (page: Page, tool: string) => page.getByRole('button', { name: new RegExp(`^${tool}, Everybody`) })
const save = (page: Page) => page.getByRole('dialog').getByRole('button', { name: 'Save' })
const simulated = (page: Page) => page.getByRole('region', { name: 'Simulation' }).getByRole('status')

test('a mode is tried on the past and saved, by pointer', async ({ page, recorder }) => {
  const tool = recorder.tool('boxed')
  await recorder.propose('boxed', '{"title":"Tried"}')
  await login(page, 'admin', '/policy')
  await expect(cell(page, tool)).toHaveAccessibleName(`${tool}, Everybody: not set`)
  await quiet(page)
  expect(await violations(page)).toEqual([])

  await cell(page, tool).click()
  await expect(save(page)).toHaveAttribute('aria-description', 'Nothing is changed.')
  await page.getByRole('radio', { name: /^deny/ }).click()
  await expect(simulated(page)).toContainText(/would be decided differently/)
  await expect(
    page.getByRole('table', { name: /decided differently/ }).getByRole('link', { name: tool }),
  ).not.toHaveCount(0)
  await quiet(page)
  expect(await violations(page)).toEqual([])
  await save(page).click()

  await expect(page.getByRole('dialog')).toHaveCount(0)
  await expect(cell(page, tool)).toHaveAccessibleName(`${tool}, Everybody: deny`)
  await expect(cell(page, tool)).toBeFocused()
  expect(await modeOf(tool)).toBe('deny')

  await put(`${recorder.source}:*`, 'allow')
  await cell(page, tool).click()
  await page.getByRole('radio', { name: /^inherit/ }).click()
  await save(page).click()
  await expect(cell(page, tool)).toHaveAccessibleName(`${tool}, Everybody: allow from ${recorder.source}:*`)
  expect(await modeOf(tool)).toBeUndefined()
  await remove(`${recorder.source}:*`)
})

test('a mode is set by the keyboard alone', async ({ page, recorder }) => {
  const tool = recorder.tool('brief')
  await login(page, 'admin')
  await page.keyboard.press('g')
  await page.keyboard.press('p')
  await tabTo(page, page.getByRole('grid').locator('[tabindex="0"]'))
  await page.keyboard.press('Control+Home')
  await expect(page.getByRole('grid').getByText('All tools')).toBeVisible()
  await page.keyboard.press('ArrowRight')
  for (let i = 0; i < 100 && !(await focusedIs(page, tool)); i++) await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  await expect(page.getByRole('radio', { name: /^inherit/ })).toBeChecked()
  await tabTo(page, page.getByRole('radio', { name: /^inherit/ }))
  await page.keyboard.press('ArrowUp')
  await page.keyboard.press('ArrowUp')
  await expect(page.getByRole('radio', { name: /^ask/ })).toBeChecked()
  await expect(save(page)).not.toHaveAttribute('aria-disabled', 'true')
  await page.keyboard.press('Control+Enter')

  await expect(cell(page, tool)).toHaveAccessibleName(`${tool}, Everybody: ask`)
  await expect(cell(page, tool)).toBeFocused()
  expect(await modeOf(tool)).toBe('require_approval')
  await remove(tool)
})

const focusedIs = (page: Page, tool: string) =>
  page.evaluate((name) => document.activeElement?.getAttribute('aria-label')?.startsWith(`${name}, `), tool)

test('a matrix of many tools has the rows in view alone, and is walked to its end by keys', async ({
  page,
  recorder,
}) => {
  const items = Array.from({ length: 10_000 }, (_, i) => ({
    tool: `many:tool-${String(i).padStart(4, '0')}`,
    title: '',
    risk: 'write',
    mode: 'require_approval',
    mode_source: 'inferred_default',
    trace: [{ layer: 'inferred_default', said: 'require_approval' }],
    rules: 0,
    reviews: 0,
    grants: 0,
  }))
  const pageSize = 2_500
  let asked: number[] = []
  await page.route('**/api/v1/policy/matrix*', (route) => {
    const at = Number(new URL(route.request().url()).searchParams.get('cursor') ?? 0)
    asked.push(at / pageSize)
    const next = at + pageSize < items.length ? String(at + pageSize) : null
    return route.fulfill({ json: { items: items.slice(at, at + pageSize), next_cursor: next } })
  })
  await login(page, 'admin', '/policy')
  const grid = page.getByRole('grid', { name: 'Modes of tools' })
  await expect(cell(page, 'many:tool-0000')).toBeVisible()
  for (const rows of [5_000, 7_500, 10_000]) {
    await page.getByRole('button', { name: 'Show more tools' }).click()
    // At the end, the modes of no listed tool come too.
    await expect(grid).toHaveAttribute('aria-rowcount', new RegExp(`^${rows === 10_000 ? '10...' : rows + 3}$`))
  }
  await expect(page.getByRole('button', { name: 'Show more tools' })).toHaveCount(0)
  expect(await grid.getByRole('row').count()).toBeLessThan(120)
  await tabTo(page, grid.locator('tbody [tabindex="0"]'))
  await page.keyboard.press('Control+End')
  await page.keyboard.press('Home')
  await page.keyboard.press('ArrowRight')
  for (let i = 0; i < 30 && !(await focusedIs(page, 'many:tool-9980')); i++) await page.keyboard.press('ArrowUp')
  await expect(cell(page, 'many:tool-9980')).toBeFocused()
  await expect(cell(page, 'many:tool-9980')).toBeInViewport()
  // The focus stays at its cell while another part is in view.
  await grid.evaluate((it) => it.parentElement!.scrollTo(0, 0))
  await expect(cell(page, 'many:tool-0000')).toBeVisible()
  await expect(cell(page, 'many:tool-9980')).toBeFocused()
  await page.keyboard.press('ArrowDown')
  await expect(cell(page, 'many:tool-9981')).toBeInViewport()
  // A key within view changes the rows whose focus changes, and not all that are drawn.
  await quiet(page)
  await grid.evaluate((it) => {
    const rows = new Set<Element>()
    Object.assign(window, { drawn: rows })
    new MutationObserver((all) => {
      for (const { target } of all) rows.add((target as Element).closest('tr') ?? it)
    }).observe(it, { subtree: true, childList: true, attributes: true, characterData: true })
  })
  await page.keyboard.press('ArrowUp')
  await expect(cell(page, 'many:tool-9980')).toBeFocused()
  expect(await page.evaluate(() => (window as unknown as { drawn: Set<Element> }).drawn.size)).toBeLessThan(10)
  // A change of settings reads again what is seen, and the rest when it is seen.
  // The rows that are left out keep their room, so that the last ones are far below.
  expect(await grid.evaluate((it) => it.parentElement!.scrollTop)).toBeGreaterThan(320_000)
  asked = []
  await put(recorder.tool('like'), 'allow')
  await expect(() => expect(asked).toEqual([3])).toPass({ timeout: 10_000 })
  await grid.evaluate((it) => it.parentElement!.scrollTo(0, 0))
  await expect(() => expect(asked).toEqual([3, 0])).toPass({ timeout: 10_000 })
  await quiet(page)
  expect(await violations(page)).toEqual([])
})

test('a viewer sees the policy and changes nothing', async ({ page, recorder }) => {
  const { token } = await api<{ token: `cs_${string}` }>('owner', 'POST', '/api/v1/tokens', {
    name: 'v',
    role: 'viewer',
  })
  await login(page, token, '/policy')
  await cell(page, recorder.tool('wide')).click()
  await page.getByRole('radio', { name: /^deny/ }).click()
  await expect(save(page)).toHaveAttribute('aria-description', /role, viewer/)
  await page.goto(`${url()}/policy/file`)
  await expect(page.getByLabel('Policy', { exact: true })).not.toBeEditable()
  await expect(page.getByRole('button', { name: 'Save' })).toHaveAttribute('aria-description', /role, viewer/)
  await quiet(page)
  expect(await violations(page)).toEqual([])
})

test('two people who change one mode see both versions', async ({ page, browser, recorder }) => {
  const tool = recorder.tool('like')
  await put(tool, 'allow')
  const other = await another(browser)
  for (const one of [page, other]) {
    await login(one, 'admin', '/policy')
    await cell(one, tool).click()
  }
  await other.getByRole('radio', { name: /^ask/ }).click()
  await save(other).click()
  await expect(other.getByRole('dialog')).toHaveCount(0)
  await page.getByRole('radio', { name: /^deny/ }).click()
  await save(page).click()

  const collision = page.getByRole('dialog').getByRole('alert')
  await expect(collision).toContainText('Somebody else changed it.')
  expect(await modeOf(tool)).toBe('require_approval')
  await collision.getByRole('button', { name: 'Keep mine' }).click()
  await save(page).click()
  await expect(page.getByRole('dialog')).toHaveCount(0)
  expect(await modeOf(tool)).toBe('deny')
  await other.context().close()
  await remove(tool)
})

test('the policy is changed as a file', async ({ page, recorder }) => {
  const tool = recorder.tool('pair')
  await login(page, 'admin', '/policy/file')
  // Another test may change the policy meanwhile.
  await expect(async () => {
    await page.goto(`${url()}/policy/file`)
    const text = page.getByLabel('Policy', { exact: true })
    const policy = JSON.parse(await text.inputValue()) as { modes: Mode[] }
    await text.fill('{"modes": [')
    await expect(page.getByRole('alert')).toContainText('line 1')
    await text.fill(JSON.stringify({ modes: [...policy.modes, { tool, mode: 'maybe' }] }))
    await page.getByRole('button', { name: 'Check' }).click()
    await expect(page.getByRole('alert')).toContainText('/modes/')
    await text.fill(JSON.stringify({ modes: [...policy.modes, { tool, mode: 'deny' }] }))
    await page.getByRole('button', { name: 'Check' }).click()
    await expect(page.getByRole('region', { name: 'Changes' })).toContainText(tool, { timeout: 3_000 })
    await expect(page.getByRole('heading', { name: '1 change', exact: true })).toBeVisible()
    await page.getByRole('button', { name: 'Save' }).click()
    await expect(page.getByText('The policy is saved.')).toBeVisible({ timeout: 3_000 })
  }).toPass({ timeout: 40_000 })
  expect(await modeOf(tool)).toBe('deny')
  await page.getByRole('tab', { name: 'Matrix' }).click()
  await expect(cell(page, tool)).toHaveAccessibleName(`${tool}, Everybody: deny`)
  await remove(tool)
})
