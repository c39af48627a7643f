// The fleet: journey 16, a pause, a kill and their end, by pointer and by keyboard alone.
import type { Page } from '@playwright/test'
import { violations } from './browser'
import { api, expect, login, propose, tabTo, test, token, url } from './fixture'
import { quiet } from './quiet'

// bucket makes a bucket of its own, so that no other test is stopped.
let count = 0
async function bucket(): Promise<string> {
  const name = `fleet-${process.pid}-${Date.now()}-${++count}`
  await api('owner', 'PUT', `/api/v1/buckets/${name}`, {})
  return name
}

const pausesOf = async (subject: string) =>
  (
    await api<{ items: { subject: string; kill: boolean; cancelled: number; lifted_at: string | null }[] }>(
      'operator',
      'GET',
      '/api/v1/pauses?limit=200',
    )
  ).items.filter((p) => p.subject === subject)

const row = (page: Page, name: string) => page.getByRole('group', { name: 'Pauses' }).getByRole('row', { name })

test('a bucket is paused, killed and resumed, with the mouse', async ({ operator: page }) => {
  const name = await bucket()
  const ids = await Promise.all([1, 2, 3].map(() => propose({}, { constraints: { rate_bucket: name } })))
  await page.goto(`${url()}/fleet`)
  await quiet(page)
  await expect(page.locator('.fleet-sentence')).toContainText(/due/)
  await page.getByRole('button', { name: 'Pause…' }).click()
  let drawer = page.getByRole('dialog')
  await drawer.getByLabel('Scope').selectOption('bucket')
  await drawer.getByLabel('Bucket').fill(name)
  await expect(drawer).toContainText('Holds 3 pending, 3 of them undecided; 0 in flight go on.')
  await expect(drawer.getByRole('button', { name: /^Pause/ })).toHaveAttribute('aria-disabled', 'true')
  await drawer.getByRole('textbox', { name: 'Reason' }).fill('The template is wrong')
  expect(await violations(page)).toEqual([])
  await drawer.getByRole('button', { name: /^Pause/ }).click()
  await expect(row(page, name)).toContainText('The template is wrong')
  await expect(page.locator('.fleet-sentence')).toContainText(`bucket ${name}: paused`)

  await page.getByRole('button', { name: 'Kill…' }).click()
  drawer = page.getByRole('dialog')
  await drawer.getByLabel('Scope').selectOption('bucket')
  await drawer.getByLabel('Bucket').fill(name)
  await expect(drawer).toContainText('Ends 3 pending')
  await drawer.getByRole('textbox', { name: 'Reason' }).fill('It is really wrong')
  await drawer.getByLabel(/^Type/).fill(name.slice(1))
  await expect(drawer.getByRole('button', { name: /^Kill/ })).toHaveAttribute('aria-disabled', 'true')
  await drawer.getByLabel(/^Type/).fill(name)
  await drawer.getByRole('button', { name: /^Kill/ }).click()
  await expect(row(page, name)).toContainText('killed, 3 ended')
  for (const id of ids)
    expect(await api('operator', 'GET', `/api/v1/actions/${id}`)).not.toMatchObject({ phase: 'pending' })

  await page.getByRole('button', { name: `Resume bucket ${name}` }).click()
  await page
    .getByRole('dialog')
    .getByRole('button', { name: /^Resume/ })
    .click()
  await expect(row(page, name)).toHaveCount(0)
  await page.getByLabel('Past ones').check()
  await expect(row(page, name)).toContainText('lifted')
  expect(await pausesOf(name)).toMatchObject([{ kill: true, cancelled: 3, lifted_at: expect.any(String) }])
})

test('a kill and its end by keyboard alone, and a chart that the keyboard reads', async ({ operator: page }) => {
  const name = await bucket()
  await page.keyboard.press('g')
  await page.keyboard.press('f')
  await expect(page).toHaveURL(`${url()}/fleet`)
  await quiet(page)
  expect(await violations(page)).toEqual([])
  await tabTo(page, page.getByRole('button', { name: 'Kill…' }))
  await page.keyboard.press('Enter')
  const drawer = page.getByRole('dialog')
  await expect(drawer.getByLabel('Scope')).toBeFocused()
  await page.keyboard.type('Buc')
  await page.keyboard.press('Tab')
  await page.keyboard.type(name)
  await expect(drawer).toContainText('Ends 0 pending')
  await tabTo(page, drawer.getByRole('textbox', { name: 'Reason' }))
  await page.keyboard.type('A test')
  await page.keyboard.press('Tab')
  await page.keyboard.type(name)
  await page.keyboard.press('Control+Enter')
  await expect(row(page, name)).toContainText('killed')
  await tabTo(page, page.getByRole('button', { name: `Resume bucket ${name}` }))
  await page.keyboard.press('Enter')
  await page.keyboard.press('Control+Enter')
  await expect(row(page, name)).toHaveCount(0)
  const cursor = page.getByRole('slider', { name: 'Workers: point in time' })
  await tabTo(page, cursor)
  await expect(cursor).toHaveAttribute('aria-valuetext', /working \d/)
  await page.keyboard.press('Home')
  await expect(cursor).toHaveValue('0')
  await page.getByRole('figure', { name: 'Workers' }).getByRole('button', { name: 'Show as table' }).focus()
  await page.keyboard.press('Enter')
  await expect(page.getByRole('group', { name: /^Workers, times in/ })).toBeVisible()
  await expect(page.getByRole('group', { name: 'Workers', exact: true })).toContainText('works')
})

test('a viewer sees the fleet and stops nothing', async ({ page }) => {
  const { token: viewer } = await api<{ token: `cs_${string}` }>('owner', 'POST', '/api/v1/tokens', {
    name: `viewer-${Date.now()}`,
    role: 'viewer',
  })
  await login(page, viewer, '/fleet?stop=kill')
  await quiet(page)
  const kill = page.getByRole('dialog').getByRole('button', { name: /^Kill/ })
  await expect(kill).toHaveAttribute('aria-disabled', 'true')
  await expect(kill).toHaveAttribute('title', /viewer/)
  await page.keyboard.press('Escape')
  await expect(page.getByRole('button', { name: 'Pause…' })).toHaveAttribute('aria-disabled', 'true')
  await expect(page.getByRole('region', { name: 'Workers' })).toContainText('Your role, viewer, may not do this.')
  await expect(api(viewer, 'POST', '/api/v1/pauses', { scope: 'tenant', reason: 'no' })).rejects.toThrow('403')
  expect(token('operator')).not.toBe(viewer)
})
