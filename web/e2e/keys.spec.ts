// Every key that the help of the inbox lists does what the help says.
import type { Page } from '@playwright/test'
import { expect, login, propose, test, url } from './fixture'
import { quiet } from './quiet'

const at = (path: string) => async (page: Page) => expect(page).toHaveURL(new RegExp(`^${url()}${path}`))
const opens = (what: string) => async (page: Page) => expect(page.locator(what).first()).toBeVisible()

// does says what one sees after each command. One that the help lists and this table does not fails the test.
const does: Record<string, { keys: string; sees: (page: Page) => Promise<void> }> = {
  palette: { keys: 'Control+k', sees: opens('dialog.palette') },
  help: { keys: '?', sees: opens('dialog .help') },
  refresh: { keys: 'r', sees: opens('.list-row') },
  pause: { keys: 'p', sees: opens('[data-live=paused]') },
  copy_link: { keys: 'y', sees: opens('.toast') },
  go_inbox: { keys: 'g i', sees: at('/inbox$') },
  go_actions: { keys: 'g t', sees: at('/actions') },
  go_workflows: { keys: 'g b', sees: at('/workflows') },
  go_dead_letters: { keys: 'g d', sees: at('/dead-letters') },
  go_settings: { keys: 'g s', sees: at('/settings') },
}

test('every key of the shell does what the help says', async ({ page }) => {
  test.setTimeout(120_000)
  const id = await propose({ title: 'For the keys' })
  await login(page, 'operator', `/inbox/${id}`)
  await quiet(page)
  await page.keyboard.press('?')
  const listed = page.locator('.help section').filter({ has: page.getByRole('heading', { name: /Everywhere|Go to/ }) }).locator('[data-command]')
  const ids = await listed.evaluateAll((all) => all.map((one) => one.getAttribute('data-command')!))
  expect(ids.toSorted()).toEqual(Object.keys(does).toSorted())
  for (const [name, { keys, sees }] of Object.entries(does)) {
    await page.goto(url() + `/inbox/${id}`)
    await quiet(page)
    for (const key of keys.split(' ')) await page.keyboard.press(key)
    await test.step(name, () => sees(page))
  }
})

test('the keys of the list move, and a held key moves on', async ({ page }) => {
  await propose({ title: 'First for the list' })
  await propose({ title: 'Second for the list' })
  await login(page, 'operator', '/inbox')
  await quiet(page)
  const current = page.locator('.list-row[aria-current=true]')
  await page.keyboard.press('j')
  await expect(current).toHaveCount(1)
  const first = await current.innerText()
  await page.keyboard.press('j')
  await expect(current).not.toHaveText(first)
  await page.keyboard.press('K')
  await expect.poll(() => current.innerText()).toBe(first)
})
