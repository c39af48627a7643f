// The accessibility trees of the views and the messages of their live regions, held by golden files. To write them
// again: GOLDEN=update npx playwright test golden
import type { Page } from '@playwright/test'
import { test as alone } from './alone'
import { api, expect, login, url } from './fixture'
import { messages, tree } from './golden'
import { listen } from './live'
import { quiet } from './quiet'

// The tests have a worker and a program of their own: what others leave would be in the trees.
const test = alone.extend<object, { own: null }>({ own: [null, { scope: 'worker', option: true }] })

const propose = async (title: string) =>
  (
    await api<{ items: { action_id: string }[] }>('admin', 'POST', '/api/v1/actions/batch', {
      items: [
        {
          type: 'mcp.exec',
          external_id: `golden-${title}`,
          session_id: 'golden',
          tool: { source: 'notes', name: 'notes.create' },
          args: { title, body: 'A note.' },
        },
      ],
    })
  ).items[0]!.action_id

const ready = (page: Page) =>
  expect(page.getByRole('button', { name: 'Approve', exact: true })).not.toHaveAttribute('aria-disabled', 'true')

// counted waits until the counts have come as well.
const counted = async (page: Page, waiting: number) => {
  await quiet(page)
  await expect(page.getByRole('region', { name: 'What waits', exact: true })).toContainText(`${waiting} waiting`)
}

test('the trees and messages of the views are the golden ones', async ({ page }) => {
  test.setTimeout(180_000)
  const heard = await listen(page)
  const said: string[] = []
  const note = async (what: string) => {
    await page.waitForTimeout(500)
    for (const text of await heard()) if (!text.startsWith('Loading')) said.push(`${what}: ${text}`)
  }
  await login(page, 'operator', '/inbox?session=golden')
  await counted(page, 0)
  await tree(page, 'inbox-empty')
  const first = await propose('First')
  await page.goto(`${url()}/inbox?session=golden`)
  await counted(page, 1)
  await ready(page)
  await tree(page, 'inbox-one')
  await propose('Second')
  await propose('Third')
  await propose('Fourth')
  await page.goto(`${url()}/inbox/${first}?session=golden`)
  await counted(page, 4)
  await ready(page)
  await tree(page, 'inbox-many')
  await heard()

  await page.keyboard.press('e')
  await expect(page.getByLabel('title', { exact: true })).toBeVisible()
  await tree(page, 'editing', '.inbox-detail')
  await page.getByRole('button', { name: 'Discard' }).click()
  await note('edited and discarded')
  await page.keyboard.press('d')
  await tree(page, 'denying', '.inbox-detail .bar')
  await page.keyboard.press('Escape')
  await note('not denied')
  await ready(page)
  await page.keyboard.press('a')
  await expect(page.locator('.toast')).toBeVisible()
  await tree(page, 'decided', '.toasts')
  await note('approved')
  await expect
    .poll(async () => (await api<{ phase: string }>('operator', 'GET', `/api/v1/actions/${first}`)).phase)
    .toBe('completed')
  await ready(page)
  await page.keyboard.press('x')
  await page.keyboard.press('Shift+J')
  await note('marked two')
  await page.keyboard.press('a')
  await expect(page.locator('dialog[open]')).toBeVisible()
  await quiet(page)
  await tree(page, 'batch', 'dialog[open]')
  await note('opened the batch')
  await page.keyboard.press('Escape')
  await page.keyboard.press('Control+k')
  await page.keyboard.type('settings')
  await page.waitForTimeout(500)
  await tree(page, 'palette', 'dialog[open]')
  await note('opened the palette')
  await page.keyboard.press('Escape')

  await page.goto(`${url()}/actions/${first}`)
  await quiet(page)
  await tree(page, 'history')
  await page.goto(`${url()}/settings`)
  await quiet(page)
  await tree(page, 'settings')
  await note('settings')
  messages('messages', said)
})
