// Every key that the help of the inbox lists does what the help says.
import type { Page } from '@playwright/test'
import { type CommandID, commandIDs, table } from '../src/lib/keys'
import { api, expect, login, propose, test, url } from './fixture'
import { notices } from './notice'
import { quiet } from './quiet'
import { phase, type Recorder, test as recorded } from './recorder'

const at = (path: string) => async (page: Page) => expect(page).toHaveURL(new RegExp(`^${url()}${path}`))
const opens = (what: string) => async (page: Page) => expect(page.locator(what).first()).toBeVisible()

// does says what one sees after each command. One that the help lists and this table does not fails the test.
const does: Record<string, { keys: string; sees: (page: Page) => Promise<void> }> = {
  palette: { keys: 'Control+k', sees: opens('dialog.palette') },
  help: { keys: '?', sees: opens('dialog .help') },
  refresh: { keys: 'r', sees: opens('.list-row') },
  pause: { keys: 'p', sees: opens('[data-live=paused]') },
  copy_link: { keys: 'y', sees: opens('.toast') },
  go_inbox: { keys: 'g i', sees: opens('.list-row[aria-current=true][aria-posinset="1"]') },
  go_actions: { keys: 'g t', sees: at('/actions') },
  go_workflows: { keys: 'g w', sees: at('/workflows') },
  go_audit: { keys: 'g a', sees: at('/audit') },
  go_fleet: { keys: 'g f', sees: at('/fleet') },
  go_dead_letters: { keys: 'g d', sees: at('/dead-letters') },
  go_policy: { keys: 'g p', sees: at('/policy') },
  go_limits: { keys: 'g l', sees: at('/limits') },
  go_people: { keys: 'g u', sees: at('/people') },
  go_subscriptions: { keys: 'g b', sees: at('/subscriptions') },
  go_sources: { keys: 'g o', sees: at('/sources') },
  go_tools: { keys: 'g e', sees: at('/tools') },
  go_settings: { keys: 'g s', sees: at('/settings') },
}

test('every key of the shell does what the help says', async ({ page }) => {
  test.setTimeout(120_000)
  const id = await propose({ title: 'For the keys' })
  await login(page, 'operator', `/inbox/${id}`)
  await quiet(page)
  await page.keyboard.press('?')
  const listed = page
    .locator('.help section')
    .filter({ has: page.getByRole('heading', { name: /Everywhere|Go to/ }) })
    .locator('[data-command]')
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
  await expect(current).toHaveCount(1)
  const first = await current.innerText()
  await page.keyboard.press('j')
  await expect(current).not.toHaveText(first)
  await page.keyboard.press('K')
  await expect.poll(() => current.innerText()).toBe(first)
})

// Case is one press of a key: where, and what one sees afterwards.
interface Case {
  page: Page
  recorder: Recorder
  // rows are three actions that wait, in the order of the list.
  rows: readonly string[]
  // at opens one of the list, or the list alone.
  at: (id?: string, more?: string) => Promise<void>
  // fresh proposes one more, opens it, and returns its id once it can be approved.
  fresh: (more?: string) => Promise<string>
  press: () => Promise<void>
}

const marked = (page: Page, how: number) =>
  expect(page.getByRole('region', { name: 'Marked' })).toContainText(`${how} marked`)
const opened = (page: Page, id: string) => expect(page).toHaveURL(new RegExp(`/inbox/${id}`))

// cases walks what each command of the groups Lists and Decide does. A command of the table that is not here fails the
// test.
const cases: Partial<Record<CommandID, (given: Case) => Promise<void>>> = {
  next: async ({ page, rows, at, press }) => {
    await at(rows[0])
    await press()
    await opened(page, rows[1]!)
  },
  previous: async ({ page, rows, at, press }) => {
    await at(rows[1])
    await press()
    await opened(page, rows[0]!)
  },
  open: async ({ page, recorder, rows, press }) => {
    await page.goto(`${url()}/actions?tool=${encodeURIComponent(recorder.tool('keys'))}&phase=pending`)
    await quiet(page)
    await page.keyboard.press('j')
    await expect(page.locator('.list-row[aria-current=true]')).toHaveCount(1)
    await press()
    await expect(page).toHaveURL(new RegExp(`/actions/(${rows.join('|')})$`))
  },
  back: async ({ page, rows, at, press }) => {
    await at(rows[0])
    await press()
    await expect(page).toHaveURL(/\/inbox\?/)
  },
  mark: async ({ page, rows, at, press }) => {
    await at(rows[0])
    await press()
    await marked(page, 1)
    await press()
    await expect(page.getByRole('region', { name: 'Marked' })).toHaveCount(0)
  },
  extend_down: async ({ page, rows, at, press }) => {
    await at(rows[0])
    await press()
    await marked(page, 2)
    await opened(page, rows[1]!)
  },
  extend_up: async ({ page, rows, at, press }) => {
    await at(rows[2])
    await press()
    await marked(page, 2)
    await opened(page, rows[1]!)
  },
  mark_group: async ({ page, rows, at, press }) => {
    await at(rows[0], '&order=tool')
    await press()
    await marked(page, rows.length)
  },
  fold_group: async ({ page, rows, at, press }) => {
    await at(rows[0], '&order=tool')
    await press()
    await expect(page.locator('.list-row')).toHaveCount(0)
  },
  show_new: async ({ page, recorder, rows, at, press }) => {
    // What is new comes below the oldest, where it moves nothing, and above the newest.
    await at()
    await page.getByLabel('Order', { exact: true }).selectOption('newest')
    await expect(page).toHaveURL(/order=newest/)
    await quiet(page)
    await expect(page.locator('[data-live]')).toHaveAttribute('data-live', 'live')
    await recorder.propose('keys', '{"title":"New below"}')
    await expect(page.getByRole('button', { name: /^1 new/ })).toBeVisible()
    await press()
    await expect(page.locator('.list-row')).toHaveCount(rows.length + 1)
  },
  filter: async ({ page, at, press }) => {
    await at()
    await press()
    await expect(page.getByLabel('Filter')).toBeFocused()
    await expect(page.getByLabel('Filter')).not.toHaveValue(/\/$/)
  },
  approve: async ({ fresh, press }) => {
    const id = await fresh()
    await press()
    await expect.poll(() => phase(id)).toBe('completed')
  },
  deny: async ({ page, fresh, press }) => {
    await fresh()
    await press()
    await expect(page.getByLabel('What the agent should do instead')).toBeFocused()
  },
  edit: async ({ page, fresh, press }) => {
    await fresh()
    await press()
    await expect(page.getByLabel('title', { exact: true })).toBeEditable()
  },
  always: async ({ page, fresh, press }) => {
    await fresh()
    await press()
    await expect(page.getByRole('dialog').getByRole('button', { name: 'Approve, and allow' })).toBeVisible()
  },
  acknowledge: async ({ page, press }) => {
    const [id] = await notices(1)
    await page.goto(`${url()}/inbox/${id}?kind=notify`)
    await quiet(page)
    await expect(page.getByRole('button', { name: 'Acknowledge' })).not.toHaveAttribute('aria-disabled', 'true')
    await press()
    await expect
      .poll(async () =>
        (await api<{ items: { action_id: string }[] }>('operator', 'GET', '/api/v1/inbox?kind=notify')).items.map(
          (item) => item.action_id,
        ),
      )
      .not.toContain(id)
  },
  undo: async ({ page, fresh, press }) => {
    const id = await fresh(`,"constraints":{"not_before":"${new Date(Date.now() + 3_600_000).toISOString()}"}`)
    await page.keyboard.press('a')
    await expect.poll(() => phase(id)).toBe('approved')
    await press()
    await expect.poll(() => phase(id)).toBe('undone')
  },
  whole: async ({ page, recorder, at, press }) => {
    const id = await recorder.propose('keys', `{"title":"To read","note":"${'long '.repeat(300)}"}`)
    await at(id)
    const approve = page.getByRole('button', { name: 'Approve', exact: true })
    await expect(approve).toHaveAttribute('aria-description', 'Show /note in full first.')
    await press()
    await expect(approve).not.toHaveAttribute('aria-disabled', 'true')
  },
  note: async ({ page, fresh, press }) => {
    await fresh()
    await press()
    await expect(page.getByLabel('Note', { exact: true })).toBeFocused()
  },
  send: async ({ page, fresh, press }) => {
    const id = await fresh()
    await page.keyboard.press('d')
    await page.keyboard.type('Not this one.')
    await press()
    await expect.poll(() => phase(id)).toBe('denied')
  },
}

// waiting returns three actions of the tool that wait, oldest first: what else waits is denied, and what is missing
// proposed.
async function waiting(recorder: Recorder): Promise<string[]> {
  const ids = async () =>
    (
      await api<{ items: { action_id: string }[] }>(
        'operator',
        'GET',
        `/api/v1/inbox?limit=100&tool=${encodeURIComponent(recorder.tool('keys'))}`,
      )
    ).items.map((item) => item.action_id)
  for (const id of (await ids()).slice(3)) await api('operator', 'POST', `/api/v1/actions/${id}/deny`)
  for (let i = (await ids()).length; i < 3; i++) await recorder.propose('keys', `{"title":"Row ${i}"}`)
  return ids()
}

recorded('every key of the lists and of decisions does what the help says', async ({ operator: page, recorder }) => {
  recorded.setTimeout(180_000)
  const commands = commandIDs.filter((id) => ['Lists', 'Decide'].includes(table[id].group) && table[id].keys.length > 0)
  expect(Object.keys(cases).toSorted()).toEqual(commands.toSorted())
  const search = `?tool=${encodeURIComponent(recorder.tool('keys'))}`
  const at = async (id?: string, more = '') => {
    await page.goto(`${url()}/inbox${id ? `/${id}` : ''}${search}${more}`)
    await quiet(page)
  }
  const fresh = async (more = '') => {
    const id = await recorder.propose('keys', '{"title":"To decide"}', more)
    await at(id)
    await expect(page.getByRole('button', { name: 'Approve', exact: true })).not.toHaveAttribute(
      'aria-disabled',
      'true',
    )
    return id
  }
  for (const id of commands) {
    for (const key of table[id].keys) {
      await recorded.step(`${id} by ${key}`, async () => {
        const rows = await waiting(recorder)
        await cases[id]!({
          page,
          recorder,
          rows,
          at,
          fresh,
          press: () => page.keyboard.press(key.replace('Mod', 'Control')),
        })
      })
    }
  }
})
