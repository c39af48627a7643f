// Sources: set up, listed, found unreachable with the reason, changed by two people, deleted.
import { violations } from './browser'
import { another, api, expect, login, tabTo, test, url } from './fixture'
import { type McpServer, serve } from './mcp'
import { quiet } from './quiet'

let server: McpServer

test.beforeAll(async () => {
  server = await serve([{ name: 'read', description: 'Reads.', inputSchema: { type: 'object' } }])
})

test.afterAll(async () => {
  await api('owner', 'DELETE', '/api/v1/sources/desk').catch(() => undefined)
  await server.stop()
})

test('a source is set up, fails with its reason, is changed by two people and deleted @check', async ({
  page,
  browser,
}) => {
  await login(page, 'admin', '/sources')
  await page.getByRole('button', { name: 'Set a source up…' }).click()
  const form = page.locator('dialog[open]')
  await expect(form.getByRole('button', { name: 'Save' })).toHaveAttribute('aria-disabled', 'true')
  await form.getByLabel('Id', { exact: true }).fill('desk')
  await form.getByLabel('URL').fill(server.url)
  await form.getByLabel('Credentials').fill('s3cret-without-a-name')
  await expect(form.getByText('Each line is NAME=VALUE.')).toBeVisible()
  await form.getByLabel('Credentials').fill('Authorization=Bearer s3cret')
  expect(await violations(page)).toEqual([])
  await form.getByRole('button', { name: 'Save' }).click()
  await expect(page).toHaveURL(`${url()}/sources/desk`)
  await expect(page.getByRole('link', { name: '1 tool', exact: true })).toBeVisible()
  await expect(page.getByText('stored, never shown')).toBeVisible()
  await expect(page.locator('main')).not.toContainText('s3cret')

  server.down = true
  await page.getByRole('button', { name: 'List its tools now' }).click()
  await expect(page.getByText('Its tools could not be listed')).toBeVisible()
  await expect(page.locator('main')).toContainText('503')
  await quiet(page)
  expect(await violations(page)).toEqual([])
  server.down = false
  await page.getByRole('button', { name: 'List its tools now' }).click()
  await expect(page.getByText('Its tools could not be listed')).toHaveCount(0)

  // Two people: the second one sees the other's change before it is replaced.
  await page.getByRole('button', { name: 'Change…' }).click()
  const other = await another(browser)
  await login(other, 'owner', '/sources/desk')
  await other.getByRole('button', { name: 'Change…' }).click()
  await other.locator('dialog[open]').getByLabel('Changes that need a person').selectOption('interface')
  await other.locator('dialog[open]').getByRole('button', { name: 'Save' }).click()
  await expect(other.getByText('desk is saved.')).toBeVisible()
  await other.context().close()
  await form.getByLabel('Risk of tools that declare none').selectOption('read')
  // A typed secret is not repeated outside its field.
  await form.getByRole('textbox', { name: 'Credentials' }).fill('Authorization=Bearer s3cret')
  await expect(form.getByRole('region', { name: 'Before and after' })).toContainText('/default_risk')
  await form.getByRole('button', { name: 'Save' }).click()
  await expect(form.getByText('Somebody else changed it.')).toBeVisible()
  await expect(form).not.toContainText('s3cret', { useInnerText: true })
  await form.getByRole('button', { name: 'Use theirs' }).click()
  await expect(form.getByLabel('Changes that need a person')).toHaveValue('interface')
  await form.getByRole('button', { name: 'Cancel' }).click()
  // The page behind shows the other's change at once: the person deletes the version that they see.
  await expect(page.locator('main')).toContainText('those of the interface')

  await page.getByRole('button', { name: 'Delete…' }).click()
  await expect(form).toContainText('Actions that name it stay on record')
  await form.getByRole('button', { name: 'Delete it' }).click()
  await expect(page).toHaveURL(`${url()}/sources`)
  await expect(page.getByRole('link', { name: 'desk' })).toHaveCount(0)
})

test('a source is opened and refreshed by keyboard alone', async ({ page }) => {
  await login(page, 'operator')
  await page.keyboard.press('g')
  await page.keyboard.press('o')
  await expect(page).toHaveURL(`${url()}/sources`)
  await tabTo(page, page.getByRole('link', { name: 'notes', exact: true }))
  await page.keyboard.press('Enter')
  await expect(page.getByRole('heading', { name: 'notes' })).toBeVisible()
  const refresh = page.getByRole('button', { name: 'List its tools now' })
  await tabTo(page, refresh)
  await page.keyboard.press('Enter')
  await expect(refresh).not.toHaveAttribute('aria-busy', 'true')
  // What the role may not do is shown, and off.
  for (const name of ['Change…', 'Delete…'])
    await expect(page.getByRole('button', { name })).toHaveAttribute('aria-disabled', 'true')
})

test('a source is accepted by whoever may change policy: in quarantine, and at an address nobody accepted', async ({
  page,
}) => {
  // This token may set a source up, and may not change policy.
  const { token } = await api<{ token: `cs_${string}` }>('owner', 'POST', '/api/v1/tokens', {
    name: 'installer',
    role: 'admin',
    scopes: ['catalog:read', 'catalog:write'],
  })
  const put = (more: string, as: 'owner' | `cs_${string}` = token) =>
    api(as, 'PUT', '/api/v1/sources/desk', {
      kind: 'mcp',
      config: { transport: 'http', url: `${server.url}${more}` },
    })
  await put('')
  await login(page, 'admin', '/sources/desk')
  const acceptance = page.getByRole('region', { name: 'The source is in quarantine' })
  await expect(acceptance).toContainText(server.url)
  await quiet(page)
  expect(await violations(page)).toEqual([])
  // The shown configuration is accepted. Another one that was stored meanwhile is refused, and shown.
  await page.keyboard.press('p')
  await put('?other=1')
  await acceptance.getByRole('button', { name: 'Accept this configuration' }).click()
  await expect(acceptance.getByText('Nothing was accepted')).toBeVisible()
  await expect(acceptance.getByLabel('Configuration to accept')).toContainText('other=1')
  await acceptance.getByRole('button', { name: 'Accept this configuration' }).click()
  await expect(page.getByText('The address of desk is accepted.')).toBeVisible()
  await expect(acceptance).toHaveCount(0)
  await page.keyboard.press('p')

  // By keyboard alone: another address of a source that was accepted.
  await put('?third=1', 'owner')
  const address = page.getByRole('region', { name: 'Its address is not accepted' })
  await expect(address.getByLabel('Configuration to accept')).toContainText('third=1')
  await tabTo(page, address.getByRole('button', { name: 'Accept this configuration' }))
  await page.keyboard.press('Enter')
  await expect(address).toHaveCount(0)
  const { items } = await api<{ items: { source_id: string; address_accepted: boolean }[] }>(
    'admin',
    'GET',
    '/api/v1/sources?limit=200',
  )
  expect(items.find((one) => one.source_id === 'desk')?.address_accepted).toBe(true)
})
