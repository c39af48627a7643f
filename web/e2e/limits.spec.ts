// The limits, against the real program: journey 15, two people at once, and a role that may not.
import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { violations } from './browser'
import { api, expect, login, propose, tabTo, test, url } from './fixture'
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

interface Hours {
  scope: string
  subject?: string
  etag: string
  timezone: string
  windows: { days?: string[]; from: string; until: string }[]
}

const hoursOf = async (of: string) =>
  (await api<{ items: Hours[] }>('operator', 'GET', '/api/v1/quiet-hours?limit=200')).items.find(
    (one) => one.subject === of,
  )

test('journey 15: quiet hours are painted with the mouse, previewed and saved', async ({ page }) => {
  const used = name()
  await api('admin', 'PUT', `/api/v1/buckets/${used}`, {})
  await login(page, 'admin', `/limits/quiet-hours?scope=bucket&subject=${used}`)
  const editor = page.getByRole('region', { name: `Quiet hours: bucket ${used}` })
  const cell = (label: string) => editor.getByRole('gridcell', { name: label })
  await editor.getByLabel('Time zone').fill('Europe/Berlin')
  await cell('Monday 20:00').hover()
  await page.mouse.down()
  await cell('Friday 23:00').hover()
  await page.mouse.up()
  await expect(editor.getByLabel('Windows')).toHaveValue('mon-fri 20:00-24:00')
  await editor.getByLabel('Windows').fill('mon-fri 20:00-08:00+1\nsat,sun 00:00-24:00')
  await expect(cell('Saturday 03:00')).toHaveAttribute('aria-selected', 'true')
  await expect(cell('Monday 08:00')).toHaveAttribute('aria-selected', 'false')
  const next = editor.getByRole('region', { name: 'The next 14 days' })
  await expect(next).toContainText(/Fri \d+ \w+ 20:00 to Mon \d+ \w+ 00:00/)
  await expect(next).toContainText('No scheduled action is in these times.')
  await quiet(page)
  expect(await violations(page)).toEqual([])
  await editor.getByRole('button', { name: 'Save' }).click()
  await expect(page.getByText('The quiet hours are saved.')).toBeVisible()
  expect((await hoursOf(used))?.windows).toEqual([
    { days: ['mon', 'tue', 'wed', 'thu', 'fri'], from: '20:00', until: '08:00+1' },
    { days: ['sat', 'sun'], from: '00:00', until: '24:00' },
  ])
})

test('quiet hours by the keyboard alone, and two people at once', async ({ page }) => {
  const used = name()
  await api('admin', 'PUT', `/api/v1/buckets/${used}`, {})
  const path = `/api/v1/quiet-hours/bucket?subject=${used}`
  await api('admin', 'PUT', path, { timezone: 'UTC', windows: [{ from: '03:00', until: '04:00' }] })
  await login(page, 'admin')
  await page.keyboard.press('g')
  await page.keyboard.press('l')
  await tabTo(page, page.getByRole('tab', { name: 'Buckets' }))
  await page.keyboard.press('ArrowRight')
  await tabTo(page, page.getByRole('link', { name: `bucket ${used}` }))
  await page.keyboard.press('Enter')
  const editor = page.getByRole('region', { name: `Quiet hours: bucket ${used}` })
  await tabTo(page, editor.getByRole('gridcell', { name: 'Monday 00:00' }))
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Space')
  await page.keyboard.press('Shift+ArrowRight')
  await expect(editor.getByRole('gridcell', { name: 'Tuesday 01:00' })).toBeFocused()
  await expect(editor.getByLabel('Windows')).toHaveValue('mon,tue 01:00-02:00\n03:00-04:00')

  await api('owner', 'PUT', path, { timezone: 'UTC', windows: [{ from: '05:00', until: '06:00' }] })
  await tabTo(page, editor.getByRole('button', { name: 'Save' }))
  await page.keyboard.press('Enter')
  await expect(editor.getByRole('alert')).toContainText('Somebody else changed it.')
  expect((await hoursOf(used))?.windows).toEqual([{ from: '05:00', until: '06:00' }])
  await tabTo(page, editor.getByRole('button', { name: 'Keep mine' }))
  await page.keyboard.press('Enter')
  await tabTo(page, editor.getByRole('button', { name: 'Save' }))
  await page.keyboard.press('Enter')
  await expect(page.getByText('The quiet hours are saved.')).toBeVisible()
  await expect(editor.getByRole('button', { name: 'Save' })).toBeFocused()
  expect((await hoursOf(used))?.windows).toHaveLength(2)
})

test('the do-not-contact list is imported and checked; an operator may not, and changes no bucket', async ({
  page,
}) => {
  const at = `e2e-${Date.now()}.example`
  await login(page, 'admin', '/limits/do-not-contact')
  await page.getByRole('button', { name: 'Import…' }).click()
  const sheet = page.getByRole('dialog')
  await sheet.getByLabel('List').fill(`ana@${at}\nnobody@\n`)
  await sheet.getByRole('button', { name: 'Check' }).click()
  await expect(sheet.getByRole('alert')).toContainText('Line 2, column 1')
  await sheet.getByLabel('List').fill(`ana@${at}\n${at}\n`)
  await sheet.getByRole('button', { name: 'Check' }).click()
  await expect(sheet.getByRole('status')).toContainText('2 would be added')
  await sheet.getByRole('button', { name: 'Import', exact: true }).click()
  await expect(sheet).toHaveCount(0)
  await page.getByLabel('Check a recipient').getByRole('textbox').fill(`Bo <bo@mail.${at.toUpperCase()}>`)
  await page.getByRole('button', { name: 'Check' }).click()
  await expect(page.getByText('On the list: an action is not sent.')).toBeVisible()
  await quiet(page)
  expect(await violations(page)).toEqual([])

  await login(page, 'operator', '/limits')
  const edit = page.getByRole('button', { name: 'Edit… default' })
  await expect(edit).toHaveAttribute('aria-disabled', 'true')
  await expect(edit).toHaveAccessibleDescription(/Your role, operator, may not do this/)
  await page.goto(`${url()}/limits/quiet-hours`)
  await expect(page.getByRole('grid')).toHaveAttribute('aria-readonly', 'true')
  for (const tab of ['breakers', 'employees', 'file']) {
    await page.goto(`${url()}/limits/${tab}`)
    await quiet(page)
    expect(await violations(page), tab).toEqual([])
  }
})

test('a bucket that a provider closed is reopened, retired and used again', async ({ page }) => {
  const used = name()
  await api('admin', 'PUT', `/api/v1/buckets/${used}`, { concurrency: 2 })
  const close = `UPDATE countersign_data.buckets
    SET closed_until = now() + interval '1 hour', closed_by = 'retry_after' WHERE name = '${used}'`
  execFileSync('psql', ['-v', 'ON_ERROR_STOP=1', '-qc', close, process.env.E2E_DATABASE!])
  await login(page, 'admin', '/limits')
  const card = page.getByRole('region', { name: `Bucket ${used}` })
  await expect(card).toContainText('Opens')
  await card.getByRole('button', { name: 'Reopen' }).click()
  await expect(page.getByText(`${used} is open again.`)).toBeVisible()
  await expect(card.getByRole('button', { name: 'Reopen' })).toHaveCount(0)

  await card.getByRole('button', { name: 'Edit…' }).click()
  const sheet = page.getByRole('dialog').first()
  await sheet.getByRole('button', { name: 'Retire…' }).click()
  const question = page.getByRole('dialog').last()
  await expect(question).toContainText('New actions may no longer name it')
  await quiet(page)
  expect(await violations(page)).toEqual([])
  await question.getByRole('button', { name: 'Retire', exact: true }).click()
  await expect(page.getByText(`${used} is retired.`)).toBeVisible()
  // By keyboard alone it is used again.
  await tabTo(page, card.getByRole('button', { name: 'Use again…' }))
  await page.keyboard.press('Enter')
  await expect(sheet.getByRole('button', { name: 'Retire…' })).toHaveCount(0)
  await tabTo(page, sheet.getByLabel('Concurrent calls'))
  await page.keyboard.insertText('3')
  await page.keyboard.press('Control+Enter')
  await expect(card).toContainText('3')
  await expect(card.getByRole('button', { name: 'Edit…' })).toBeFocused()
})

test('an employee gets an entry, two people change it, and it is removed by keyboard', async ({ page }) => {
  const id = randomUUID()
  const path = `/api/v1/employees/${id}`
  await login(page, 'admin', '/limits/employees')
  await page.getByRole('button', { name: 'New entry…' }).click()
  const sheet = page.getByRole('dialog').first()
  const save = sheet.getByRole('button', { name: 'Save' })
  await sheet.getByLabel('Id', { exact: true }).fill('nobody')
  await expect(sheet.getByRole('alert')).toContainText('Id must be a UUID')
  await sheet.getByLabel('Id', { exact: true }).fill(id.toUpperCase())
  await sheet.getByLabel('Name').fill('\u202E失敗')
  await sheet.getByLabel('Scopes').fill('mail:send\ncontacts:*')
  await save.click()
  const row = page.getByRole('row').filter({ hasText: '失敗' }).filter({ hasText: id })
  await expect(row).toContainText('\\u{202E}失敗')
  await expect(row).toContainText('mail:send')

  await row.getByRole('button', { name: 'Edit…' }).click()
  await sheet.getByLabel('Trust').selectOption('high')
  await expect(sheet.getByRole('region', { name: 'Before and after' })).toContainText('/trust')
  await api('owner', 'PUT', path, { name: 'Theirs', trust: 'none' })
  await save.click()
  await expect(sheet.getByText('Somebody else changed it.')).toBeVisible()
  await quiet(page)
  expect(await violations(page)).toEqual([])
  await sheet.getByRole('button', { name: 'Keep mine' }).click()
  await save.click()
  await expect(row).toContainText('high')

  await tabTo(page, row.getByRole('button', { name: 'Edit…' }))
  await page.keyboard.press('Enter')
  await tabTo(page, sheet.getByRole('button', { name: 'Remove…' }))
  await page.keyboard.press('Enter')
  await tabTo(page, page.getByRole('dialog').last().getByRole('button', { name: 'Remove', exact: true }))
  await page.keyboard.press('Enter')
  await expect(row).toHaveCount(0)
})

test('a file with wrong lines is not imported; an entry is removed with its reason', async ({ page }) => {
  const at = `файл-${Date.now()}.example`
  await login(page, 'admin', '/limits/do-not-contact')
  await tabTo(page, page.getByRole('button', { name: 'Import…' }))
  await page.keyboard.press('Enter')
  const sheet = page.getByRole('dialog')
  const lines = [`kind,value,reason`, `domain,${at},=1+1`, 'pigeon,ana@example.org,', 'email,,', `phone,${at},`]
  await sheet.getByLabel('File').setInputFiles({
    name: 'list.csv',
    mimeType: 'text/csv',
    buffer: Buffer.from(lines.join('\n')),
  })
  await expect(sheet.getByLabel('List')).toHaveValue(lines.join('\n'))
  await tabTo(page, sheet.getByRole('button', { name: 'Check' }))
  await page.keyboard.press('Enter')
  const wrong = sheet.getByRole('alert')
  for (const line of [3, 4, 5]) await expect(wrong).toContainText(`Line ${line}`)
  await expect(sheet.getByRole('button', { name: 'Import', exact: true })).toHaveAttribute('aria-disabled', 'true')
  await quiet(page)
  expect(await violations(page)).toEqual([])
  await sheet.getByLabel('List').fill(lines.slice(0, 2).join('\n'))
  await tabTo(page, sheet.getByRole('button', { name: 'Check' }))
  await page.keyboard.press('Enter')
  await expect(sheet.getByRole('status')).toContainText('1 would be added')
  await tabTo(page, sheet.getByRole('button', { name: 'Import', exact: true }))
  await page.keyboard.press('Enter')
  await expect(sheet).toHaveCount(0)
  const row = page.getByRole('row').filter({ hasText: String(/\d+/.exec(at)) })
  await expect(row).toContainText('=1+1')

  // No spreadsheet runs an exported value.
  const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: 'Export' }).click()])
  expect(readFileSync(await file.path(), 'utf8')).toContain("'=1+1")

  await tabTo(page, row.getByRole('button', { name: 'Remove…' }))
  await page.keyboard.press('Enter')
  const note = `They asked again, ${at}`
  await tabTo(page, sheet.getByLabel('Note'))
  await page.keyboard.insertText(note)
  await page.keyboard.press('Control+Enter')
  await expect(page.getByText('The entry is removed.')).toBeVisible()
  await expect(row).toHaveCount(0)
  const log = await api<{ items: { items: { note?: string }[] }[] }>(
    'admin',
    'GET',
    '/api/v1/audit/log?kind=configured',
  )
  expect(log.items.flatMap(({ items }) => items.map((one) => one.note))).toContain(note)
})
