// Rules, reviews and grants of policy, as an administrator and a viewer see them.
import { readFileSync } from 'node:fs'
import type { Page } from '@playwright/test'
import { sideways, violations } from './browser'
import { api, expect, login, propose, tabTo, test, url } from './fixture'
import { quiet } from './quiet'

const tool = 'notes:notes.create'
const rule = (id: string) => `/api/v1/policy/rules/${id}`

// barriers is violations, several times in one document.
const barriers = async (page: Page) => {
  await page.evaluate('delete window.axe')
  return violations(page)
}

let count = 0
const fresh = (name: string) => `${name}-${process.pid}-${++count}`

interface Rule {
  rule_id: string
  expression: string
  reason?: string
  enabled: boolean
}

const stored = async (id: string) =>
  (await api<{ items: Rule[] }>('admin', 'GET', '/api/v1/policy/rules?limit=200')).items.find(
    (one) => one.rule_id === id,
  )

const sheet = (page: Page) => page.getByRole('dialog').first()
const save = (page: Page) => sheet(page).getByRole('button', { name: /^Save/ })

test('a rule with a mistake is mended, simulated and saved; two administrators meet', async ({ page }) => {
  test.setTimeout(240_000)
  const id = fresh('moon')
  const title = `To the moon ${id}`
  const action = await propose({ title })
  await login(page, 'admin', '/policy/rules')
  await page.getByRole('button', { name: 'New rule' }).click()
  await sheet(page).getByLabel('Id', { exact: true }).fill(id)
  await sheet(page).getByLabel('Tools').fill(tool)
  const expression = sheet(page).getByRole('textbox', { name: 'Expression' })

  await expression.fill(`envelope.risk != "🙂" && args.titel == "${title}"`)
  const mistakes = sheet(page).getByRole('alert', { name: 'Mistakes' })
  await expect(mistakes).toContainText('Line 1, column 29')
  await expect(mistakes.locator('mark')).toHaveText('.titel')
  await expect(save(page)).toHaveAttribute('aria-disabled', 'true')
  expect(await barriers(page)).toEqual([])
  await mistakes.getByRole('button').click()
  expect(
    await expression.evaluate((it: HTMLTextAreaElement) => it.value.slice(it.selectionStart, it.selectionEnd)),
  ).toBe('.titel')

  await expression.fill('')
  await sheet(page).getByRole('button', { name: 'args.title' }).click()
  await expression.press('End')
  await expression.pressSequentially(` == "${title}"`)
  await expect(sheet(page).getByRole('region', { name: 'The past' })).toContainText(/True for 1 of \d/)
  await expect(sheet(page).getByRole('region', { name: 'The past' }).getByRole('link').first()).toHaveAttribute(
    'href',
    `/actions/${action}`,
  )
  await sheet(page).getByLabel('When it is true').selectOption('deny')
  const simulation = sheet(page).getByRole('region', { name: 'Simulation' })
  await expect(simulation.getByRole('status')).toContainText('1 of')
  await expect(save(page)).not.toHaveAttribute('aria-disabled', 'true')
  expect(await barriers(page)).toEqual([])
  await save(page).click()
  await expect(page.getByRole('row').filter({ hasText: id })).toContainText('deny')
  expect((await stored(id))?.expression).toBe(`args.title == "${title}"`)

  // Another administrator changes it while the first one edits.
  await page.getByRole('link', { name: id }).click()
  await sheet(page).getByLabel('Reason').fill('Mine')
  await api('admin', 'PUT', rule(id), { tool, expression: 'false', mode: 'deny', reason: 'Theirs' })
  await expect(save(page)).not.toHaveAttribute('aria-disabled', 'true')
  await save(page).click()
  const collision = sheet(page).getByRole('alert').filter({ hasText: 'Somebody else changed it.' })
  await expect(collision).toContainText('Theirs')
  await expect(collision).toContainText('Mine')
  expect(await barriers(page)).toEqual([])
  expect((await stored(id))?.reason).toBe('Theirs')
  await collision.getByRole('button', { name: 'Keep mine' }).click()
  await expect(save(page)).not.toHaveAttribute('aria-disabled', 'true')
  await save(page).click()
  await expect(sheet(page)).toHaveCount(0)
  expect((await stored(id))?.reason).toBe('Mine')

  await page.getByRole('link', { name: id }).click()
  await sheet(page).getByRole('button', { name: 'Remove…' }).click()
  await page.getByRole('dialog').last().getByRole('button', { name: 'Remove', exact: true }).click()
  await expect(page.getByRole('link', { name: id })).toHaveCount(0)
  expect(await stored(id)).toBeUndefined()
})

test('a rule is switched off by keyboard alone', async ({ page }) => {
  test.setTimeout(240_000)
  const id = fresh('keys')
  await api('admin', 'PUT', rule(id), { tool, expression: 'args.title == "never"', mode: 'deny', reason: '=1+1' })
  await login(page, 'admin', '/policy/rules')
  await quiet(page)
  // The list is exported, and no spreadsheet runs it.
  await tabTo(page, page.getByRole('button', { name: 'Export…' }))
  await page.keyboard.press('Enter')
  const [file] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('dialog').getByRole('button', { name: 'Export', exact: true }).press('Enter'),
  ])
  expect(readFileSync(await file.path(), 'utf8')).toContain("'=1+1")
  await page.keyboard.press('Escape')
  await tabTo(page, page.getByRole('link', { name: id }))
  await page.keyboard.press('Enter')
  await expect(sheet(page)).toBeVisible()
  await tabTo(page, sheet(page).getByRole('textbox', { name: 'Expression' }))
  await page.keyboard.press('Control+End')
  await page.keyboard.type(' || args.title == "nor this"')
  await tabTo(page, sheet(page).getByLabel('The rule is on'))
  await page.keyboard.press('Space')
  await expect(save(page)).not.toHaveAttribute('aria-disabled', 'true')
  await page.keyboard.press('Control+Enter')
  await expect(sheet(page)).toHaveCount(0)
  await expect(page.getByRole('row').filter({ hasText: id })).toContainText('off')
  expect(await stored(id)).toMatchObject({
    enabled: false,
    expression: 'args.title == "never" || args.title == "nor this"',
  })
  await api('admin', 'DELETE', rule(id))
})

test('a review is set, and a grant is previewed, made and revoked', async ({ page }) => {
  test.setTimeout(240_000)
  const session = fresh('s')
  const reviewed = `nothing-${session}:*`
  await propose({ title: session })
  await login(page, 'admin', '/policy/reviews')
  await page.getByRole('button', { name: 'New review' }).click()
  await sheet(page).getByLabel('Tools').fill(reviewed)
  await sheet(page).getByLabel('How many people must agree').selectOption('3')
  await sheet(page).getByLabel('How long a decision is waited for').fill('2d')
  const simulation = sheet(page).getByRole('region', { name: 'Simulation' })
  await expect(simulation.getByRole('status')).toContainText('0 of 0 actions')
  expect(await barriers(page)).toEqual([])
  await save(page).click()
  const row = page.getByRole('row').filter({ hasText: reviewed })
  await expect(row).toContainText('2d')
  expect(await barriers(page)).toEqual([])
  await row.getByRole('link').click()
  await sheet(page).getByRole('button', { name: 'Remove…' }).click()
  await page.getByRole('dialog').last().getByRole('button', { name: 'Remove', exact: true }).click()
  await expect(row).toHaveCount(0)

  // What more people would have to agree to is tried over the past, as long as the person chooses.
  await page.getByRole('button', { name: 'New review' }).click()
  await sheet(page).getByLabel('Tools').fill(tool)
  await sheet(page).getByLabel('How many people must agree').selectOption('3')
  await expect(simulation.getByRole('table', { name: 'Counts' })).toContainText('ask 3 people')
  await expect(
    simulation
      .getByRole('table', { name: /decided differently/ })
      .getByRole('link')
      .first(),
  ).toHaveText(tool)
  const asked = page.waitForRequest('**/api/v1/policy/simulate')
  await simulation.getByLabel('Over the last').selectOption('90 days')
  const { since } = (await asked).postDataJSON() as { since: string }
  expect(Math.round((Date.now() - Date.parse(since)) / 86_400_000)).toBe(90)
  await expect(simulation.getByRole('status')).toContainText('would be decided differently')
  expect(await barriers(page)).toEqual([])
  await page.keyboard.press('Escape')

  // The links of the matrix lead to the settings of one tool.
  const elsewhere = fresh('elsewhere')
  for (const of of [tool, `${elsewhere}:*`])
    await api('admin', 'PUT', `/api/v1/reviews/${of}?risk=high`, { approvals: 2 })
  await page.goto(`${url()}/policy/reviews?tool=${tool}`)
  const only = page.getByRole('status').filter({ hasText: 'can apply to' })
  await expect(only).toContainText(`can apply to ${tool}`)
  await expect(page.getByRole('link', { name: tool }).first()).toBeVisible()
  await expect(page.getByRole('link', { name: elsewhere })).toHaveCount(0)
  await only.getByRole('button', { name: 'Show all' }).click()
  await expect(page.getByRole('link', { name: elsewhere })).toBeVisible()
  for (const of of [tool, `${elsewhere}:*`]) await api('admin', 'DELETE', `/api/v1/reviews/${of}?risk=high`)

  await api('admin', 'PUT', `/api/v1/preferences/nothing:*`, {})
  await api('admin', 'PUT', `/api/v1/policy/sessions/${session}/nothing:*`, { mode: 'deny', expires_in: '1h' })
  await page.goto(`${url()}/policy/grants?grant=`)
  await sheet(page).getByLabel('Tool', { exact: true }).fill(tool)
  await sheet(page).getByLabel('Session').fill(session)
  await sheet(page).getByLabel('Fixed arguments').fill(`{"/title": "${session}"}`)
  await sheet(page).getByLabel('Arguments that may differ').fill('/body')
  const make = sheet(page).getByRole('button', { name: /^Make the grant/ })
  await expect(make).toHaveAttribute('aria-disabled', 'true')
  await sheet(page).getByRole('button', { name: 'Preview' }).click()
  await expect(sheet(page).getByRole('region', { name: 'Calls that would have run' })).toContainText('calls')
  expect(await barriers(page)).toEqual([])
  await make.click()
  const grant = page
    .getByRole('region', { name: 'Grants' })
    .getByRole('row')
    .filter({ hasText: `session ${session}` })
  await expect(grant).toContainText('1 may differ')
  expect(await barriers(page)).toEqual([])
  await grant.getByRole('button', { name: 'Revoke…' }).click()
  await sheet(page)
    .getByRole('button', { name: /^Revoke/ })
    .click()
  await expect(grant).toHaveCount(0)
  await page.getByLabel('Ended ones too').check()
  await expect(grant).toContainText('revoked')
  await page.getByRole('button', { name: `Remove nothing:* of session ${session}` }).click()
  await expect(page.getByText('No session is narrowed.')).toBeVisible()
  // By keyboard alone: rules that are switched off, and a grant again.
  await tabTo(page, page.getByRole('button', { name: 'Remove nothing:*', exact: true }))
  await page.keyboard.press('Enter')
  await expect(page.getByText('No tool is switched off.')).toBeVisible()
})

test('a viewer sees the policy and cannot change it', async ({ page }) => {
  test.setTimeout(240_000)
  const id = fresh('seen')
  await api('admin', 'PUT', rule(id), { tool, expression: 'args.title == "never"', mode: 'deny' })
  const { token } = await api<{ token: `cs_${string}` }>('admin', 'POST', '/api/v1/tokens', {
    name: id,
    role: 'viewer',
    expires_in: '1h',
  })
  await login(page, token, `/policy/rules?rule=${id}`)
  await expect(sheet(page).getByRole('region', { name: 'The past' })).toContainText('True for 0')
  await expect(save(page)).toHaveAttribute('title', 'Your role, viewer, may not do this.')
  await expect(sheet(page).getByRole('button', { name: 'Remove…' })).toHaveAttribute('aria-disabled', 'true')
  await page.keyboard.press('Escape')
  await expect(page.getByRole('button', { name: 'New rule' })).toHaveAttribute('aria-disabled', 'true')
  for (const width of [1280, 390]) {
    await page.setViewportSize({ width, height: 800 })
    for (const tab of ['rules', 'reviews', 'grants']) {
      await page.goto(`${url()}/policy/${tab}`)
      await quiet(page)
      expect.soft(await barriers(page), tab).toEqual([])
      expect.soft(await sideways(page), tab).toEqual([])
    }
    await page.goto(`${url()}/policy/rules?rule=${id}`)
    await expect(sheet(page)).toBeVisible()
    expect.soft(await sideways(page)).toEqual([])
  }
  await api('admin', 'DELETE', rule(id))
})
