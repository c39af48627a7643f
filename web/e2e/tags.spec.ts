// Action tags of mail in the settings, by keyboard alone.
import { violations } from './browser'
import { api, expect, login, test } from './fixture'
import { receipt } from './notice'
import { quiet } from './quiet'

interface Listed {
  items: { message_id: string; subject: string | null; action: string; state: string; problem: string }[]
}

test('an action tag is listed with its problem, and removed by keyboard', async ({ page }) => {
  test.setTimeout(240_000)
  const subject = await receipt(`tags-${Date.now()}.example`)
  const messages = await api<Listed>('admin', 'GET', '/api/v1/triage/messages?limit=50')
  const id = messages.items.find((one) => one.subject === subject)!.message_id
  const tags = async () => (await api<Listed>('admin', 'GET', `/api/v1/triage/tags?state=any&message_id=${id}`)).items
  await api('admin', 'PUT', `/api/v1/triage/messages/${id}/tags/create-reminder`)
  await api('admin', 'POST', '/api/v1/triage/accounts/sample/runs')
  await expect.poll(async () => (await tags())[0]?.problem, { timeout: 60_000 }).toBe('no tool dav:create-reminder')

  await login(page, 'admin', '/settings')
  await quiet(page)
  const section = page.getByRole('region', { name: 'Action tags' })
  const row = section.getByRole('row').filter({ hasText: subject })
  await expect(row).toContainText('create-reminder')
  await expect(row).toContainText('no tool dav:create-reminder')
  await expect(row.getByRole('button', { name: 'Retry' })).toHaveCount(0)
  expect(await violations(page)).toEqual([])

  const remove = row.getByRole('button', { name: 'Remove create-reminder' })
  for (let i = 0; i < 80 && !(await remove.evaluate((it) => it === document.activeElement)); i++)
    await page.keyboard.press('Tab')
  await expect(remove).toBeFocused()
  await page.keyboard.press('Enter')

  await expect(row).toHaveCount(0)
  expect((await tags()).map((one) => one.state)).toEqual(['gone'])
})
