// The audit log: its list, its export, and journey 17: the verification finds an event that was changed by the owner of
// the database.
import { execFileSync } from 'node:child_process'
import type { Page } from '@playwright/test'
import { violations } from './browser'
import { api, expect, login, tabTo, test, token, url } from './fixture'
import { quiet } from './quiet'
import { until } from './seed'

interface Entry {
  position: string
  actor: string
}

interface Exported extends Entry {
  checkpoint_no: number | null
}

const sql = (text: string) => execFileSync('psql', ['-v', 'ON_ERROR_STOP=1', '-qc', text, process.env.E2E_DATABASE!])

// covered returns the newest event that a checkpoint covers. One is made each minute.
async function covered(): Promise<Exported> {
  const find = async () => {
    const answer = await fetch(`${url()}/api/v1/audit/events`, {
      headers: { Authorization: `Bearer ${token('owner')}` },
    })
    const lines = (await answer.text()).trimEnd().split('\n')
    return lines.map((line) => JSON.parse(line) as Exported).findLast((event) => event.checkpoint_no)
  }
  let found = await find()
  for (let i = 0; i < 100 && !found; i++) {
    await new Promise((resolve) => setTimeout(resolve, 1_000))
    found = await find()
  }
  return found!
}

async function verify(page: Page, how: 'pointer' | 'keys') {
  const button = page.getByRole('button', { name: 'Verify', exact: true })
  if (how === 'pointer') await button.click()
  else {
    await tabTo(page, button)
    await page.keyboard.press('Enter')
  }
  return page.getByRole('group', { name: 'Result' })
}

test('a tampered chain is found, and an intact one sealed', async ({ operator: page, context }) => {
  test.setTimeout(180_000)
  const event = await covered()
  const [txid, id] = event.position.split('-')
  const where = `WHERE txid = '${txid}' AND event_id = ${id}`
  await page.goto(`${url()}/audit?tab=verify`)
  await quiet(page)
  const intact = await verify(page, 'pointer')
  await expect(intact).toContainText('Intact')
  const head = await intact.locator('.hash').innerText()
  await context.grantPermissions(['clipboard-read', 'clipboard-write'])
  await intact.getByRole('button', { name: 'Copy the head' }).click()
  expect(await page.evaluate('navigator.clipboard.readText()')).toBe(head)

  sql(`UPDATE countersign_data.events SET actor = 'Mallory' ${where}`)
  try {
    const found = await verify(page, 'pointer')
    await expect(found).toContainText('1 finding')
    const row = found.getByRole('row', { name: event.position })
    await expect(row).toContainText('changed')
    expect(await violations(page)).toEqual([])
    // By keyboard alone, from another view.
    await page.keyboard.press('g')
    await page.keyboard.press('a')
    await tabTo(page, page.getByRole('tab', { name: 'Log' }))
    await page.keyboard.press('ArrowRight')
    const again = await verify(page, 'keys')
    await expect(again.getByRole('row', { name: event.position })).toContainText('changed')
  } finally {
    sql(`UPDATE countersign_data.events SET actor = '${event.actor.replaceAll("'", "''")}' ${where}`)
  }
  // A checkpoint that does not follow the one before.
  const flip = `UPDATE countersign_data.checkpoints c SET hash = set_byte(hash, 0, 255 - get_byte(hash, 0))
    WHERE checkpoint_no = 1
      AND EXISTS (SELECT FROM countersign_data.events e WHERE e.tenant_id = c.tenant_id AND ${where.slice(6)})`
  sql(flip)
  try {
    const broken = await verify(page, 'pointer')
    await expect(broken).toContainText(/[1-9]\d* findings?/)
    await expect(broken.getByRole('table')).toContainText('checkpoint')
  } finally {
    sql(flip)
  }
  await page.getByLabel('A head that was noted').fill(head)
  await expect(await verify(page, 'pointer')).toContainText('Intact')
  await page.getByLabel('A head that was noted').fill('0'.repeat(63) + '1')
  await expect(await verify(page, 'pointer')).toContainText('no checkpoint has the known head')
})

test('a verification is canceled, and one that is refused shows why', async ({ operator: page }) => {
  await page.goto(`${url()}/audit?tab=verify`)
  await page.route('**/api/v1/audit/verify*', async (route) => {
    if (route.request().url().includes('after_checkpoint')) return
    await route.fulfill({
      json: {
        findings: [],
        findings_omitted: 0,
        checkpoints: 1,
        covered: 12_345,
        pruned: 0,
        uncovered: 0,
        head: { checkpoint_no: 1, hash: 'a'.repeat(64) },
        next_after: 1,
      },
    })
  })
  await page.getByRole('button', { name: 'Verify', exact: true }).click()
  await expect(page.getByRole('status').filter({ hasText: '12,345 events, through checkpoint 1' })).toBeVisible()
  await page.getByRole('button', { name: 'Cancel' }).click()
  await expect(page.getByText('Cancelled: the record was not verified')).toBeVisible()
  await page.unroute('**/api/v1/audit/verify*')
  await page.route('**/api/v1/audit/verify*', (route) => route.fulfill({ status: 503, json: { title: 'Overloaded' } }))
  await page.getByRole('button', { name: 'Verify', exact: true }).click()
  await expect(page.getByRole('alert').filter({ hasText: 'The record was not verified' })).toBeVisible()
})

test('the log is filtered in the address, read by keyboard, and exported', async ({ page }) => {
  const name = `log-${process.pid}-${Date.now()}`
  await api('owner', 'PUT', `/api/v1/buckets/${name}`, {})
  await until(
    () => api<{ items: Entry[] }>('owner', 'GET', `/api/v1/audit/log?subject=${name}`),
    ({ items }) => items.length === 1,
  )
  const { token: viewer } = await api<{ token: `cs_${string}` }>('owner', 'POST', '/api/v1/tokens', {
    name: `viewer-${name}`,
    role: 'viewer',
  })
  await login(page, viewer, `/audit?kind=configured&subject=${name}`)
  await quiet(page)
  const list = page.getByRole('list', { name: 'Events, newest first' })
  await expect(list.getByRole('listitem')).toHaveCount(1)
  const summary = list.locator('summary')
  await tabTo(page, summary)
  await page.keyboard.press('Enter')
  await expect(list.getByRole('region')).toContainText(`bucket ${name}`)
  expect(await violations(page)).toEqual([])
  await page.goto(`${url()}/audit?subject=nothing-like-this&nonsense=1`)
  await expect(page.getByRole('alert')).toContainText('Unknown filter “nonsense”')

  await page.goto(`${url()}/audit?tab=export`)
  await page.getByRole('button', { name: 'Export', exact: true }).click()
  const [file] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: 'Save audit.jsonl' }).click(),
  ])
  const chunks: Buffer[] = []
  for await (const chunk of await file.createReadStream()) chunks.push(chunk as Buffer)
  const lines = Buffer.concat(chunks).toString().trimEnd().split('\n')
  expect(lines.some((line) => line.includes(`bucket ${name}`))).toBe(true)
  expect(JSON.parse(lines.at(-1)!)).toMatchObject({ end: true })
})
