// Pictures of every view in both themes, for docs/screens: SCREENS=1 npx playwright test screens.
import { mkdirSync, writeFileSync } from 'node:fs'
import type { Page } from '@playwright/test'
import { login, propose, test, url } from './fixture'
import { quiet } from './quiet'
import { seeded } from './seed'

const folder = '../docs/screens'

async function picture(page: Page, name: string) {
  const session = await page.context().newCDPSession(page)
  const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality: 75 })
  await session.detach()
  writeFileSync(`${folder}/${name}.webp`, Buffer.from(data, 'base64'))
}

test('pictures of every view', async ({ page }) => {
  test.skip(!process.env.SCREENS, 'pictures are made when SCREENS is set')
  test.setTimeout(240_000)
  mkdirSync(folder, { recursive: true })
  const { waiting, completed, denied, failed, workflow } = seeded()
  for (const title of [
    'Agenda for Monday',
    'Thank you, Norland',
    'What we learnt in October',
    'Shopping list, week 48',
  ])
    await propose({ title, body: 'Written by the agent, for you to read before it is kept.' })
  await page.goto(url() + '/login')
  await quiet(page)
  const views: Record<string, string> = {
    inbox: `/inbox/${waiting}`,
    actions: '/actions',
    action: `/actions/${completed}`,
    denied: `/actions/${denied}`,
    'dead-letters': '/dead-letters',
    'dead-letter': `/dead-letters/${failed}`,
    workflows: '/workflows',
    workflow: `/workflows/${workflow}`,
    policy: '/policy',
    rules: '/policy/rules',
    grants: '/policy/grants',
    limits: '/limits',
    people: '/people/sessions',
    subscriptions: '/subscriptions',
    fleet: '/fleet',
    audit: '/audit',
    sources: '/sources',
    tools: '/tools',
    tool: '/tools/notes:notes.create',
    settings: '/settings',
  }
  for (const theme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme: theme })
    await picture(page, `login-${theme}`)
  }
  await login(page)
  for (const theme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme: theme })
    await page.setViewportSize({ width: 1280, height: 800 })
    for (const [name, to] of Object.entries(views)) {
      await page.goto(url() + to)
      await quiet(page)
      await page.locator('[data-live=live]').waitFor()
      // An item has to be shown for a moment before it may be approved.
      if (name === 'inbox')
        await page
          .getByRole('button', { name: /^Approve/ })
          .and(page.locator(':not([aria-disabled])'))
          .waitFor()
      await picture(page, `${name}-${theme}`)
    }
    await page.keyboard.press('Control+k')
    await picture(page, `palette-${theme}`)
    await page.setViewportSize({ width: 390, height: 780 })
    await page.goto(url() + views.inbox)
    await quiet(page)
    await picture(page, `phone-${theme}`)
  }
})
