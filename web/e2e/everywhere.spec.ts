// What every list has: saved views, an export, a title that counts, and notifications.
import { readFileSync } from 'node:fs'
import { violations } from './browser'
import { another, api, expect, login, propose, tabTo, test, url } from './fixture'
import { quiet } from './quiet'

test('a view is saved by the keyboard alone, found in the palette, and is not another person’s', async ({
  page,
  browser,
}) => {
  await login(page, 'operator', '/actions?phase=denied')
  await tabTo(page, page.getByRole('button', { name: 'Save this view…' }))
  await page.keyboard.press('Enter')
  await page.keyboard.insertText('Denied \u202E失敗')
  await page.keyboard.press('Enter')
  const saved = page.getByRole('navigation', { name: 'Saved views' })
  await expect(saved.getByRole('link')).toHaveText('Denied \\u{202E}失敗')
  expect(await violations(page)).toEqual([])
  await page.keyboard.press('g')
  await page.keyboard.press('d')
  await expect(page).toHaveURL(`${url()}/dead-letters`)
  await expect(saved.getByRole('link')).toHaveCount(0)
  await page.keyboard.press('Control+k')
  await page.keyboard.insertText('失敗')
  await page.keyboard.press('Enter')
  await expect(page).toHaveURL(`${url()}/actions?phase=denied`)
  const second = await another(browser, { storageState: await page.context().storageState() })
  await second.context().clearCookies()
  await login(second, 'admin', '/actions')
  await quiet(second)
  await expect(second.getByRole('navigation', { name: 'Saved views' }).getByRole('link')).toHaveCount(0)
  await second.context().close()
  await saved.getByRole('button', { name: /^Remove the view/ }).click()
  await expect(saved.getByRole('link')).toHaveCount(0)
})

test('a list is exported with its filter, over pages, and an export is cancelled', async ({ page }) => {
  const session = `export-${Date.now()}`
  const items = Array.from({ length: 205 }, (_, i) => ({
    type: 'mcp.exec',
    external_id: `${session}-${i}`,
    session_id: session,
    tool: { source: 'notes', name: 'notes.create' },
    args: { title: i === 0 ? '=HYPERLINK("https://evil.example")' : `Title ${i}`, body: '+1' },
  }))
  await api('admin', 'POST', '/api/v1/actions/batch', { items })
  await login(page, 'operator', `/actions?session_id=${session}`)
  await page.getByRole('button', { name: 'Export…' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Format').selectOption('jsonl')
  expect(await violations(page)).toEqual([])
  const save = async () => {
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      dialog.getByRole('button', { name: 'Export' }).click(),
    ])
    return readFileSync(await file.path(), 'utf8')
  }
  const lines = (await save()).trimEnd().split('\n')
  expect(lines).toHaveLength(205)
  expect(
    lines.map((line) => (JSON.parse(line) as { envelope: { args: { title: string } } }).envelope.args.title),
  ).toContain('=HYPERLINK("https://evil.example")')
  await expect(dialog.getByRole('status')).toContainText('Saved: 205.')
  await dialog.getByLabel('Format').selectOption('csv')
  const text = await save()
  expect(text).toContain(`"'=HYPERLINK(""https://evil.example"")"`)
  expect(text).toContain(`"'+1"`)
  // A server that does not answer is not waited for.
  await page.route('**/api/v1/actions?*cursor=*', () => undefined)
  await dialog.getByRole('button', { name: 'Export' }).click()
  await expect(dialog.getByRole('status')).toContainText('200 so far')
  await dialog.getByRole('button', { name: 'Cancel' }).click()
  await expect(dialog.getByRole('status')).toContainText('Cancelled after 200. No file was saved.')
})

interface Retention {
  items: { kind: string; period: string; action: string }[]
}

test('two people set the retention: both versions are shown, and theirs is taken; an operator sets nothing', async ({
  page,
  browser,
}) => {
  const events = async () =>
    (await api<Retention>('admin', 'GET', '/api/v1/retention')).items.find(({ kind }) => kind === 'events')!
  const before = await events()
  await login(page, 'admin', '/settings')
  const part = page.getByRole('region', { name: 'Retention of events' })
  await part.getByLabel('Kept for').fill('800d')
  await expect(part.getByLabel('Changes of retention of events')).toContainText('800d')
  await api('admin', 'PUT', '/api/v1/retention/events', { period: '900d', action: before.action })
  await part.getByRole('button', { name: 'Save' }).click()
  await expect(part.getByLabel('Their change')).toContainText('900d')
  await expect(part.getByLabel('Yours, over theirs')).toContainText('800d')
  await page.evaluate(`document.getElementById('main').scrollTo(0, 0)`)
  expect(await violations(page)).toEqual([])
  await part.getByRole('button', { name: 'Use theirs' }).click()
  await expect(part.getByLabel('Kept for')).toHaveValue('900d')
  await part.getByLabel('Kept for').fill('a day')
  await part.getByRole('button', { name: 'Save' }).click()
  await expect(part.getByRole('alert')).toContainText('Not saved')
  await part.getByLabel('Kept for').fill('850d')
  await part.getByRole('button', { name: 'Save' }).click()
  await expect.poll(async () => (await events()).period).toBe('850d')
  await expect(part.getByRole('button', { name: 'Save' })).toHaveCount(0)
  const second = await another(browser)
  await login(second, 'operator', '/settings')
  const theirs = second.getByRole('region', { name: 'Retention of events' })
  await expect(theirs).toContainText('Your role, operator, may not do this.')
  await expect(theirs.getByLabel('Kept for')).toHaveAttribute('readonly', '')
  await second.context().close()
  await api('admin', 'PUT', '/api/v1/retention/events', { period: before.period, action: before.action })
})

test('the title counts what waits, and a notification has a number alone, after a person asked for it', async ({
  page,
}) => {
  await page.addInitScript(`
    window.shown = []
    window.Notification = class {
      static permission = 'default'
      static requestPermission = async () => (window.Notification.permission = window.answer)
      constructor(title, options) { window.shown.push(title + ': ' + options.body) }
      close() {}
    }`)
  const word = `secretword${Date.now()}`
  await login(page, 'operator', '/settings')
  await expect(page).toHaveTitle(/^\(\d+\) Settings · Countersign$/)
  const field = page.getByLabel('Notifications')
  await page.evaluate(`window.answer = 'denied'`)
  await field.selectOption('on')
  await expect(page.getByText('This browser blocks notifications')).toBeVisible()
  await expect(field).toHaveValue('off')
  await page.evaluate(`window.answer = 'granted'`)
  await field.selectOption('on')
  await expect(field).toHaveValue('on')
  const count = async () => Number(/^\((\d+)\)/.exec(await page.title())?.[1] ?? 0)
  const before = await count()
  await page.evaluate(`Object.defineProperty(document, 'hidden', { get: () => true, configurable: true })`)
  await propose({ title: word })
  await expect.poll(count, { timeout: 30_000 }).toBeGreaterThan(before)
  await expect.poll(() => page.evaluate<string[]>('window.shown')).not.toEqual([])
  const shown = (await page.evaluate<string[]>('window.shown')).join()
  expect(shown).toMatch(/^Countersign: (One action waits|[\d,]+ actions wait) for a person\./)
  expect(shown).not.toContain(word)
})
