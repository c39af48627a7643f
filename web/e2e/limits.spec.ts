// The limits, against the real program: journey 15, two people at once, and a role that may not.
import { violations } from './browser'
import { api, expect, login, propose, test, url } from './fixture'
import { quiet } from './quiet'

let count = 0
const name = () => `e2e.${process.pid}-${Date.now()}-${++count}`

test('journey 15: a bucket is edited with the mouse, and an action waits for it', async ({ page }) => {
  const used = name()
  await api('owner', 'PUT', '/api/v1/policy/modes/notes:notes.list', { mode: 'allow' })
  await login(page, 'admin', '/limits')
  await page.getByRole('button', { name: 'New bucket…' }).click()
  const sheet = page.getByRole('dialog')
  await sheet.getByLabel('Name').fill(used)
  await sheet.getByLabel('Rate').fill('1')
  await sheet.getByLabel('Interval').fill('1h')
  await sheet.getByRole('button', { name: /^Save/ }).click()
  const card = page.getByRole('region', { name: `Bucket ${used}` })
  await expect(card).toContainText('1 per 1h')

  const ids: string[] = []
  for (let i = 0; i < 3; i++)
    ids.push(
      await propose(
        { title: undefined, body: undefined },
        { tool: { source: 'notes', name: 'notes.list' }, constraints: { rate_bucket: used } },
      ),
    )
  await expect(card).toContainText('2 for a turn')
  await card.getByRole('button', { name: 'Edit' }).click()
  await expect(sheet).toContainText('2 wait now; at these limits the last goes at about')
  await sheet.getByLabel('Calendar').fill('many')
  await expect(sheet.getByRole('alert')).toContainText('Calendar must be a whole number')
  await sheet.getByLabel('Calendar').fill('2')
  await expect(sheet.getByRole('region', { name: 'Before and after' })).toContainText('/calendar')
  await quiet(page)
  expect(await violations(page)).toEqual([])
  await sheet.getByRole('button', { name: /^Save/ }).click()
  await expect(card).toContainText('2 a day')

  await page.goto(`${url()}/actions?tool=notes%3Anotes.list&phase=approved`)
  await expect(page.locator('.waits', { hasText: 'its bucket has reached its limits' }).first()).toBeVisible()
})
