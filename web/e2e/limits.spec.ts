// The limits, against the real program: journey 15, two people at once, and a role that may not.
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
