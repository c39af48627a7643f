// Journey 18 and its neighbours: people and tokens.
import { readFileSync } from 'node:fs'
import type { Page } from '@playwright/test'
import { sideways, violations } from './browser'
import { another, api, atInbox, expect, login, tabTo, test, url } from './fixture'
import { quiet } from './quiet'

const stamp = () => `${Date.now()}-${Math.random().toString(36).slice(2, 8)}`

interface Person {
  operator_id: string
  name: string
  email?: string
  role_set?: string
}

const addPerson = (name: string) => api<Person>('owner', 'POST', '/api/v1/operators', { name, role_set: 'viewer' })

async function person(id: string): Promise<Person> {
  const { items } = await api<{ items: Person[] }>('owner', 'GET', '/api/v1/operators?limit=200')
  return items.find((one) => one.operator_id === id)!
}

// kept is all that a browser keeps of a page beyond what it shows.
const kept = (page: Page) =>
  page.evaluate<string>(
    `location.href + JSON.stringify(history.state) + document.cookie + JSON.stringify(localStorage) +
      JSON.stringify(sessionStorage)`,
  )

test('a token is made, shown once and ended, and its tab ends within 15 s', async ({ page, browser }) => {
  const name = `Desk ${stamp()}`
  const said: string[] = []
  page.on('console', (message) => said.push(message.text()))
  await login(page, 'owner', '/people/tokens')
  await page.getByRole('button', { name: 'Make a token' }).click()
  const sheet = page.getByRole('dialog', { name: 'Make a token' })
  await sheet.getByLabel('Name', { exact: true }).fill('Desk \u202Ekrad')
  await sheet.getByRole('button', { name: 'Make it' }).click()
  await expect(sheet.getByRole('alert')).toContainText('/name')
  await sheet.getByLabel('Name', { exact: true }).fill(name)
  await sheet.getByLabel('Role', { exact: true }).selectOption('operator')
  await sheet.getByRole('checkbox', { name: /^actions:read/ }).check()
  await sheet.getByLabel('Tools', { exact: true }).fill('notes:*\n\nnotes:*')
  expect(await violations(page)).toEqual([])
  await sheet.getByRole('button', { name: 'Make it' }).click()
  const dialog = page.getByRole('dialog', { name: /^The token of/ })
  const secret = (await dialog.getByLabel('Token').innerText()).trim()
  expect(secret).toMatch(/^cs_operator_/)
  expect(await violations(page)).toEqual([])
  // Neither Escape nor a click beside it closes what is shown once.
  await page.keyboard.press('Escape')
  await page.mouse.click(2, 2)
  await expect(dialog).toBeVisible()
  await dialog.getByRole('button', { name: 'I have stored it' }).click()
  await expect(page.locator('body')).not.toContainText(secret)
  expect((await kept(page)) + said.join()).not.toContain(secret)
  const row = page.getByRole('row').filter({ hasText: name })
  await expect(row).toContainText('scopes actions:read · tools notes:*')
  await page.reload()
  await expect(row).toContainText('valid')
  await expect(page.locator('body')).not.toContainText(secret)

  const second = await another(browser)
  await second.goto(`${url()}/login`)
  await second.getByLabel('Token or one-time code').fill(secret)
  await second.keyboard.press('Enter')
  await expect(second).toHaveURL(atInbox)
  await quiet(second)
  await row.getByRole('button', { name: 'Narrow' }).click()
  const narrowing = page.getByRole('dialog', { name: `Narrow the token of ${name}` })
  await expect(narrowing.getByRole('checkbox')).toHaveCount(1)
  await narrowing.getByLabel('Tools that it keeps', { exact: true }).fill('*')
  await narrowing.getByRole('button', { name: 'Narrow it' }).click()
  await expect(narrowing.getByRole('alert')).toContainText('/tools/0')
  expect(await violations(page)).toEqual([])
  await narrowing.getByLabel('Tools that it keeps', { exact: true }).fill('notes:notes.list')
  await narrowing.getByLabel('The token ends', { exact: true }).selectOption('1h')
  await narrowing.getByRole('button', { name: 'Narrow it' }).click()
  await expect(narrowing).toHaveCount(0)
  await expect(row).toContainText('tools notes:notes.list')
  await row.getByRole('button', { name: 'End' }).click()
  await page.getByRole('button', { name: 'End it' }).click()
  await expect(row).toHaveCount(0)
  await expect(second.getByRole('heading', { name: 'Your session ended' })).toBeVisible({ timeout: 15_000 })
  await second.context().close()
  await page.getByLabel('Also revoked and expired ones').check()
  await expect(row).toContainText('revoked')
  await expect(page).toHaveURL(/all=true/)
})

test('a person is added and made an operator by the keyboard alone', async ({ page }) => {
  const name = `Keys ${stamp()}`
  await login(page, 'owner')
  await page.keyboard.press('g')
  await page.keyboard.press('u')
  await expect(page).toHaveURL(`${url()}/people`)
  await tabTo(page, page.getByRole('button', { name: 'Add a person' }))
  await page.keyboard.press('Enter')
  await page.keyboard.insertText(name)
  await page.keyboard.press('Tab')
  await page.keyboard.type('view')
  await page.keyboard.press('Control+Enter')
  const row = page.getByRole('row').filter({ hasText: name })
  await expect(row).toContainText('viewer by hand')
  await tabTo(page, row.getByRole('button', { name: 'Change' }))
  await page.keyboard.press('Enter')
  const sheet = page.getByRole('dialog', { name: `Change ${name}` })
  await tabTo(page, sheet.getByLabel('Role', { exact: true }))
  await page.keyboard.type('oper')
  await page.keyboard.press('Control+Enter')
  await expect(row).toContainText('operator by hand')
  await expect(sheet).toHaveCount(0)
})

test('an administrator ends the session of another browser, and not that of an owner', async ({ page, browser }) => {
  const name = `Seat ${stamp()}`
  const { token } = await api<{ token: `cs_${string}` }>('owner', 'POST', '/api/v1/tokens', {
    name,
    role: 'viewer',
    expires_in: '1h',
  })
  const second = await another(browser)
  await login(second, token)
  await login(page, 'admin', '/people/sessions')
  const region = page.getByRole('region', { name: 'Everybody’s sessions' })
  const row = region.getByRole('row').filter({ hasText: name })
  await expect(row).toContainText('viewer')
  expect(await violations(page)).toEqual([])
  await row.getByRole('button', { name: 'End' }).click()
  await page.getByRole('button', { name: 'End it' }).click()
  await expect(row).toHaveCount(0)
  await expect(second.getByRole('heading', { name: 'Your session ended' })).toBeVisible({ timeout: 15_000 })
  await second.context().close()
  await page.setViewportSize({ width: 390, height: 844 })
  await quiet(page)
  expect(await sideways(page)).toEqual([])
})

test('two people change one person: both versions are shown, and mine is saved over theirs', async ({ page }) => {
  const { operator_id, name } = await addPerson(`Both ${stamp()}`)
  await login(page, 'owner', `/people?person=${operator_id}`)
  const sheet = page.getByRole('dialog', { name: `Change ${name}` })
  await sheet.getByLabel('Role', { exact: true }).selectOption('admin')
  await api('owner', 'PUT', `/api/v1/operators/${operator_id}`, { name, role_set: 'viewer', email: 'new@example.com' })
  await sheet.getByRole('button', { name: 'Save' }).click()
  await expect(sheet.getByLabel('Their change', { exact: true })).toContainText('new@example.com')
  await expect(sheet.getByLabel('Yours, over theirs', { exact: true })).toContainText('admin')
  expect((await person(operator_id)).role_set).toBe('viewer')
  expect(await violations(page)).toEqual([])
  await sheet.getByRole('button', { name: 'Keep mine' }).click()
  await sheet.getByRole('button', { name: 'Save' }).click()
  await expect(sheet).toHaveCount(0)
  expect((await person(operator_id)).role_set).toBe('admin')
})

test('a viewer sees nobody, and an administrator changes no owner', async ({ page, browser }) => {
  const { token } = await api<{ token: `cs_${string}` }>('owner', 'POST', '/api/v1/tokens', {
    name: 'viewer',
    role: 'viewer',
    expires_in: '1h',
  })
  await login(page, token, '/people/tokens?make=true')
  await expect(page.getByRole('main')).toContainText('Your role, viewer, may not do this.')
  await expect(page.getByRole('dialog')).toHaveCount(0)
  await page.getByRole('tab', { name: 'Sessions' }).click()
  await expect(page.getByRole('region', { name: 'Your sessions' })).toContainText('this one')
  await expect(page.getByRole('region', { name: 'Everybody’s sessions' })).toHaveCount(0)
  const owner = await api<Person>('owner', 'POST', '/api/v1/operators', { name: `Own ${stamp()}`, role_set: 'owner' })
  const second = await another(browser)
  await login(second, 'admin', `/people?person=${owner.operator_id}`)
  const row = second.getByRole('row').filter({ hasText: owner.name })
  await expect(row.getByRole('button', { name: 'Change' })).toHaveAttribute('aria-disabled', 'true')
  await expect(second.getByRole('dialog')).toHaveCount(0)
  await second.getByRole('tab', { name: 'Login' }).click()
  await expect(second.getByRole('button', { name: 'Add a provider' })).toHaveAttribute('aria-disabled', 'true')
  await second.context().close()
})

test('a provider is set up, its secret is not shown again, and people are exported', async ({ page }) => {
  const id = `e2e-${stamp()}`
  await login(page, 'owner', '/people/login?provider=*')
  const sheet = page.getByRole('dialog')
  await sheet.getByLabel('Id', { exact: true }).fill(id)
  await sheet.getByLabel('Issuer', { exact: true }).fill('https://login.example.com')
  await sheet.getByLabel('Claim of the role', { exact: true }).fill('groups')
  await sheet.getByLabel('Roles', { exact: true }).fill('ops = chief')
  await expect(sheet.getByRole('alert')).toContainText('ops = chief')
  await sheet.getByLabel('Roles', { exact: true }).fill('ops = operator')
  await sheet.getByLabel('Client for the browser', { exact: true }).fill('web')
  await sheet.getByLabel('Secret of that client', { exact: true }).fill('hush-hush-hush')
  await sheet.getByRole('button', { name: 'Save' }).click()
  const row = page.getByRole('row').filter({ hasText: id })
  await expect(row).toContainText('with a secret')
  await row.getByRole('button', { name: 'Change' }).click()
  await expect(sheet.getByLabel('Secret of that client', { exact: true })).toHaveValue('')
  expect((await page.content()) + (await kept(page))).not.toContain('hush-hush')
  await sheet.getByLabel('Label', { exact: true }).fill('Example')
  await sheet.getByRole('button', { name: 'Save' }).click()
  await expect(sheet).toHaveCount(0)
  await expect(page.getByRole('row').filter({ hasText: 'Example' })).toContainText('with a secret')
  expect(await violations(page)).toEqual([])
  await api('owner', 'DELETE', `/api/v1/identity-providers/${id}`)

  await addPerson(`=cmd ${stamp()}`)
  await page.getByRole('tab', { name: 'People' }).click()
  await page.setViewportSize({ width: 390, height: 844 })
  await quiet(page)
  expect(await sideways(page)).toEqual([])
  await page.getByRole('button', { name: 'Export…' }).click()
  const [file] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Export', exact: true }).click(),
  ])
  expect(file.suggestedFilename()).toMatch(/^countersign-people-[\d-]+\.csv$/)
  const text = readFileSync(await file.path(), 'utf8')
  expect(text).toContain(`"'=cmd `)
  expect(text).not.toContain('"=cmd')
})
