// Subscriptions: set up, tested, a delivery that failed and is replayed, and deleted.
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { sideways, violations } from './browser'
import { api, expect, login, tabTo, test, url } from './fixture'
import { quiet } from './quiet'
import { until } from './seed'

const stamp = () => `${Date.now()}${Math.random().toString(36).slice(2, 6)}`

// A receiver that answers as the test sets it, and keeps the ids of the messages.
let receiver: Server
let answer = 200
let heard: string[] = []
const source = `hooks-${stamp()}`

test.beforeAll(async () => {
  receiver = createServer((asked, reply) => {
    asked.resume()
    asked.on('end', () => {
      heard.push(String(asked.headers['webhook-id']))
      reply.writeHead(answer).end('<b>no</b>')
    })
  })
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
  await api('owner', 'PUT', `/api/v1/sources/${source}`, {
    kind: 'webhook',
    config: { url: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/in`, networks: ['127.0.0.0/8'] },
    credentials: { values: { signing_secret: `whsec_${Buffer.from('k'.repeat(32)).toString('base64')}` } },
  })
  await until(
    () => api<{ items: { tool: string }[] }>('owner', 'GET', `/api/v1/tools?source=${source}`),
    ({ items }) => items.length > 0,
  )
})
test.afterAll(() => receiver.close())

const add = (name: string, more: object = {}) =>
  api('admin', 'PUT', `/api/v1/subscriptions/${name}`, { source, kinds: ['pruned'], ...more })

test('a webhook is set up and tested, a delivery that failed is replayed, and it is deleted', async ({ page }) => {
  test.setTimeout(120_000)
  const name = `out-${stamp()}`
  await login(page, 'admin', '/subscriptions')
  await page.getByRole('button', { name: 'Add a subscription' }).click()
  const sheet = page.getByRole('dialog', { name: 'Add a subscription' })
  await sheet.getByLabel('Name', { exact: true }).fill(name)
  await sheet.getByLabel('Source', { exact: true }).selectOption(source)
  await sheet.getByLabel('Events', { exact: true }).fill('pruned')
  expect(await violations(page)).toEqual([])
  await sheet.getByRole('button', { name: 'Save' }).click()
  await expect(page).toHaveURL(`${url()}/subscriptions/${name}`)

  answer = 400
  heard = []
  await page.getByRole('button', { name: 'Send a test' }).click()
  const row = page.getByRole('table', { name: 'Deliveries' }).locator('tbody tr')
  await expect(row).toContainText('failed', { timeout: 30_000 })
  await row.getByRole('button', { name: 'Attempts' }).click()
  await expect(page.getByRole('dialog', { name: 'Attempts' })).toContainText('attempt 1')
  await expect(page).toHaveURL(/delivery=/)
  expect(await violations(page)).toEqual([])
  await page.keyboard.press('Escape')
  await expect(page).toHaveURL(`${url()}/subscriptions/${name}`)

  answer = 200
  await row.getByRole('button', { name: 'Send again…' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Replay' }).click()
  await expect(row).toContainText('completed', { timeout: 30_000 })
  // It is the same message to the receiver.
  expect(new Set(heard).size).toBe(1)
  expect(heard.length).toBeGreaterThan(1)

  // One that arrived is sent again, by an action of its own that fails: it stays completed.
  answer = 400
  await row.getByRole('button', { name: 'Send again…' }).click()
  await expect(page.getByRole('dialog')).toContainText('keeps its state')
  await page.getByRole('dialog').getByRole('button', { name: 'Send again' }).click()
  await expect(row).toHaveCount(2)
  await expect(row.first()).toContainText('failed', { timeout: 30_000 })
  await expect(row.last()).toContainText('completed')
  expect(new Set(heard).size).toBe(1)
  await row.last().getByRole('button', { name: 'Attempts' }).click()
  await expect(page.getByRole('dialog', { name: 'Attempts' })).toContainText('Sent again')
  expect(await violations(page)).toEqual([])
  await page.keyboard.press('Escape')

  // A dead letter that somebody discarded is not replayed: its message is sent by another action.
  const { items } = await api<{ items: { action_id: string }[] }>(
    'operator',
    'GET',
    `/api/v1/dead-letters?source=${source}`,
  )
  await api('operator', 'POST', '/api/v1/dead-letters/discard', {
    action_ids: items.map(({ action_id }) => action_id),
    reason: 'old',
  })
  answer = 200
  await row.first().getByRole('button', { name: 'Send again…' }).click()
  await expect(page.getByRole('dialog')).toContainText('discarded')
  await page.getByRole('dialog').getByRole('button', { name: 'Send again' }).click()
  await expect(row).toHaveCount(3)
  await expect(row.first()).toContainText('completed', { timeout: 30_000 })

  // The buttons of a row stand side by side.
  await page.setViewportSize({ width: 1280, height: 900 })
  const [left, right] = await Promise.all(
    ['Attempts', 'Send again…'].map((name) => row.first().getByRole('button', { name }).boundingBox()),
  )
  expect(left?.y).toBe(right?.y)
  await page.setViewportSize({ width: 390, height: 844 })
  await quiet(page)
  expect(await sideways(page)).toEqual([])

  await page.getByRole('button', { name: 'Delete…' }).click()
  await expect(page.getByRole('dialog')).toContainText('messages that wait are not delivered')
  await page.getByRole('button', { name: 'Delete it' }).click()
  await expect(page).toHaveURL(`${url()}/subscriptions`)
  await expect(page.getByRole('link', { name })).toHaveCount(0)
})

test('a subscription is switched off by the keyboard alone, and two people meet at it', async ({ page }) => {
  const name = `keys-${stamp()}`
  await add(name)
  await login(page, 'admin', `/subscriptions/${name}`)
  await tabTo(page, page.getByRole('button', { name: 'Change', exact: true }))
  await page.keyboard.press('Enter')
  const sheet = page.getByRole('dialog', { name: `Change ${name}` })
  await tabTo(page, sheet.getByRole('checkbox', { name: /^On\./ }))
  await page.keyboard.press('Space')
  await add(name, { tool: 'notes:*' })
  await page.keyboard.press('Control+Enter')
  await expect(sheet.getByLabel('Their change')).toContainText('notes:*')
  await expect(sheet.getByLabel('Yours, over theirs')).toContainText('/enabled')
  await tabTo(page, sheet.getByRole('button', { name: 'Use theirs' }))
  await page.keyboard.press('Enter')
  await expect(sheet.getByLabel('Tools', { exact: true })).toHaveValue('notes:*')
  await tabTo(page, sheet.getByRole('checkbox', { name: /^On\./ }))
  await page.keyboard.press('Space')
  await page.keyboard.press('Control+Enter')
  await expect(sheet).toHaveCount(0)
  await expect(page.getByRole('main')).toContainText('off')
  await api('admin', 'DELETE', `/api/v1/subscriptions/${name}`)
})

test('an operator changes nothing, and an unknown name is not found', async ({ page }) => {
  const name = `seen-${stamp()}`
  await add(name)
  await login(page, 'operator', `/subscriptions/${name}?change=true`)
  for (const button of ['Change', 'Delete…', 'Send a test'])
    await expect(page.getByRole('button', { name: button, exact: true })).toHaveAttribute('aria-disabled', 'true')
  await expect(page.getByRole('dialog')).toHaveCount(0)
  await page.goto(`${url()}/subscriptions/${encodeURIComponent('no<b>such')}`)
  await expect(page.getByRole('heading', { name: 'Subscription not found' })).toBeVisible()
  await api('admin', 'DELETE', `/api/v1/subscriptions/${name}`)
})
