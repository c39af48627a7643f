// The form of a decision: its first screen, lists as tables, and variants, by pointer and by keyboard alone.
import type { Page } from '@playwright/test'
import { type JsonObject, parse, stringify } from '../src/lib/json'
import { expect, propose, tabTo, test, url } from './fixture'

const schema = `{"type":"object","required":["to"],"properties":{
  "to":{"type":"array","items":{"type":"string"}},
  "amount":{"type":"integer","description":"In cents."},"currency":{"type":"string"},
  "due":{"type":"string","format":"date"},"subject":{"type":"string","title":"Line above"},"body":{"type":"string"},
  "target":{"oneOf":[
    {"type":"object","title":"Card","additionalProperties":false,
      "properties":{"kind":{"const":"card"},"last4":{"type":"string"}}},
    {"type":"object","title":"Account","additionalProperties":false,
      "properties":{"kind":{"const":"account"},"iban":{"type":"string"}}}]},
  "ref":{"type":["string","integer"]},
  "items":{"type":"array","items":{"type":"object","required":["sku"],
    "properties":{"sku":{"type":"string"},"price":{"type":"number"}}}}}}`

const rows = (n: number) =>
  Array.from({ length: n }, (_, i) => `{"price":${i}.10,"sku":"sku-${i}","a":1,"b":2,"c":3,"d":4,"e":5}`).join(',')

const call = (n: number) =>
  `{"amount":12950,"body":"Dear Ana,\\nsee below.","currency":"EUR","due":"2026-12-24","items":[${rows(n)}],
    "ref":"9007199254740993","subject":"Refund","target":{"kind":"card","last4":"4242"},
    "to":["ana@example.org","bob@example.org"]}`

// show opens an action of a tool with the schema, whose arguments are others than it has.
async function show(page: Page, args: string) {
  const id = await propose({ title: 'For the form' })
  await page.route(`**/api/v1/actions/${id}`, async (route) => {
    const response = await route.fetch()
    const action = parse(await response.text()) as JsonObject & { envelope: JsonObject }
    action.envelope.args = parse(args)
    await route.fulfill({ response, body: stringify(action) })
  })
  await page.route('**/api/v1/tools/*', async (route) => {
    const response = await route.fetch()
    const tool = parse(await response.text()) as JsonObject
    tool.input_schema = parse(schema)
    await route.fulfill({ response, body: stringify(tool) })
  })
  await page.goto(`${url()}/inbox/${id}`)
  await expect(page.getByRole('article')).toBeVisible()
}

test('arguments are read in the order of their schema, with lists as lines and tables', async ({ operator: page }) => {
  await page.setViewportSize({ width: 1280, height: 720 })
  await show(page, call(1_000))
  const values = page.getByRole('region', { name: 'What will be sent' })
  await expect(values.locator('dl.values > div > dt > bdi')).toHaveText([
    'to',
    'amount',
    'currency',
    'due',
    'subject',
    'body',
    'target',
    'kind',
    'last4',
    'ref',
    'items',
  ])
  await expect(values.locator('[data-value="/to"] li')).toHaveText(['ana@example.org', 'bob@example.org'])
  await expect(values.locator('[data-value="/amount"]')).toContainText('12950')
  await expect(values.locator('[data-value="/amount"]')).toContainText('129.50 EUR, if 12950 are cents or the like')
  await expect(values.locator('[data-value="/due"]')).toContainText('Thu, 24 Dec 2026')
  const table = values.getByRole('region', { name: 'items, 1000 rows' })
  await expect(table.locator('thead th')).toHaveText(['#', 'sku', 'price', 'a', 'b', 'c', 'd'])
  await expect(table.locator('tbody tr')).toHaveCount(20)
  await expect(table.locator('tbody tr').nth(1).locator('td').nth(1)).toHaveText('1.10')
  await expect(page.getByRole('button', { name: /^Approve/ })).toHaveAttribute('aria-disabled', 'true')
  await tabTo(page, page.getByRole('button', { name: 'Show 980 more rows and 1 more columns' }))
  const began = Date.now()
  await page.keyboard.press('Enter')
  await expect(table.locator('tbody tr')).toHaveCount(1_000)
  test.info().annotations.push({ type: 'ms for 1,000 rows', description: String(Date.now() - began) })
  await expect(page.getByRole('button', { name: /^Approve/ })).not.toHaveAttribute('aria-disabled', 'true')
  await page.setViewportSize({ width: 390, height: 844 })
})

test('a variant is chosen by keyboard, and nothing is lost without a warning', async ({ operator: page }) => {
  await show(page, call(2))
  await page.keyboard.press('e')
  await expect(page.locator('.form').getByLabel('0', { exact: true }).first()).toBeFocused()
  const variant = page.getByLabel('Variant of target')
  await tabTo(page, variant)
  await page.keyboard.press('A')
  const warning = page.getByRole('alert').filter({ hasText: 'has no place for' })
  await expect(warning).toHaveText(/“Account” has no place for: last4/)
  await tabTo(page, page.getByRole('button', { name: 'Keep it' }))
  await page.keyboard.press('Enter')
  await expect(variant).toHaveValue('0')
  await expect(page.locator('.mine')).toContainText('Nothing yet')
  await tabTo(page, page.getByLabel('Variant of ref'))
  await page.keyboard.press('i')
  await expect(page.locator('.mine')).toContainText('9007199254740993')
  await expect(page.locator('.mine')).not.toContainText('9007199254740992')
})

test('a variant is chosen by pointer, and a text of several lines stays whole', async ({ operator: page }) => {
  await show(page, call(2))
  await page.getByRole('button', { name: /^Edit/ }).click()
  await page.getByLabel('Variant of target').selectOption('Account')
  await page.getByRole('button', { name: 'Change and lose it' }).click()
  await expect(page.locator('.mine')).toContainText('/target/last4')
  const subject = page.locator('.form .arg[data-pointer="/subject"]')
  await expect(subject.locator('input')).toHaveValue('Refund')
  await expect(page.locator('.form .arg[data-pointer="/body"] textarea')).toHaveCount(1)
  await subject.locator('input').evaluate((input: HTMLInputElement) => {
    input.focus()
    input.select()
    const data = new DataTransfer()
    data.setData('text/plain', 'one\r\ntwo')
    input.dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }))
  })
  await expect(subject.locator('textarea')).toHaveValue('one\ntwo')
})
