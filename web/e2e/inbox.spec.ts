// Journeys through the inbox, each by pointing and by the keyboard alone.
import { violations } from './browser'
import {
  action,
  another,
  api,
  canonical,
  closeBreaker,
  expect,
  give,
  hands,
  login,
  look,
  numerals,
  person,
  phase,
  test,
  url,
} from './recorder'

for (const hand of hands) {
  test.describe(`by ${hand}`, () => {
    test('an action is approved, and its result appears without loading again', async ({
      operator: page,
      recorder,
    }) => {
      const id = await recorder.propose('keep', '{"title":"Approve me"}')
      await look(page, id)
      // The action is shown before the list, which has no row of an action that was decided by then.
      await expect(page.locator('.list-row', { hasText: 'Approve me' })).toBeVisible()
      await give(page, hand, 'a', 'Approve')
      await expect(page.getByText('Approved', { exact: false }).first()).toBeVisible()
      await expect.poll(() => phase(id)).toBe('completed')
      await expect(page.locator('.list-row', { hasText: 'Approve me' }).locator('.state')).toContainText(
        /approved by you|completed/,
      )
    })

    test('what the tool gets is what the page showed, digit for digit', async ({ operator: page, recorder }) => {
      const id = await recorder.propose(
        'keep',
        '{"title":"Exact","order":9007199254740993,"amount":12.5,"note":"",' +
          '"rows":[[1,2],[9007199254740995],[]],"who":{"kind":"group","size":3}}',
      )
      await look(page, id)
      await expect(page.locator('.headline')).toContainText('order 9007199254740993')
      const values = page.getByRole('region', { name: 'What will be sent' })
      await expect(values.getByText('9007199254740993')).toBeVisible()
      await expect(page.getByText('empty text')).toBeVisible()
      await expect(page.getByText('Not sent:')).toContainText('reply_to')
      await give(page, hand, 'e', 'Edit')
      await page.getByLabel('title', { exact: true }).fill(`Exactly by ${hand}`)
      await give(page, hand, 'Tab', 'Add reply_to')
      await expect(page.getByLabel('order', { exact: true })).toHaveValue('9007199254740993')
      await expect(page.getByRole('region', { name: 'What you change' })).toContainText('/reply_to')
      await page.getByRole('tab', { name: 'JSON' }).click()
      const shown = await page.getByRole('region', { name: 'What will be sent' }).locator('pre').textContent()
      await page.locator('h2.title').click()
      await give(page, hand, 'a', 'Approve as changed')
      await expect.poll(() => recorder.calls.filter((call) => call.args.includes(`Exactly by ${hand}`)).length).toBe(1)
      const { args: sent, raw } = recorder.calls.find((call) => call.args.includes(`Exactly by ${hand}`))!
      expect(canonical(sent)).toBe(canonical(shown!))
      expect(numerals(raw)).toEqual(numerals(shown!))
      expect(numerals(raw)).toEqual(['1', '12.5', '2', '3', '9007199254740993', '9007199254740995'])
      expect(canonical(sent)).toBe(
        '{"amount":12.5,"note":"","order":9007199254740993,"reply_to":"",' +
          `"rows":[[1,2],[9007199254740995],[]],"title":"Exactly by ${hand}","who":{"kind":"group","size":3}}`,
      )
    })

    test('the last character typed is sent, however soon the decision follows', async ({
      operator: page,
      recorder,
    }) => {
      const id = await recorder.propose('keep', '{"title":"Old"}')
      await look(page, id)
      await give(page, hand, 'e', 'Edit')
      const title = page.getByLabel('title', { exact: true })
      await title.fill(`Typed by ${hand}`)
      await title.press('End')
      if (hand === 'keyboard') {
        // Saving has no second try: were the character late, the saved arguments would be without it.
        await Promise.all([page.keyboard.press('!'), page.keyboard.press('Control+Enter')])
        await expect.poll(async () => (await action(id)).envelope.args).toEqual({ title: 'Typed by keyboard!' })
        await give(page, hand, 'a', 'Approve')
      } else {
        const button = page.getByRole('button', { name: 'Approve as changed' })
        await expect(button).not.toHaveAttribute('aria-disabled', 'true')
        const box = (await button.boundingBox())!
        const click = () => page.mouse.click(box.x + box.width / 2, box.y + box.height / 2)
        await Promise.all([page.keyboard.press('!'), click()])
        // A click before the value is drawn is refused.
        await expect(async () => {
          if ((await phase(id)) === 'pending') await click()
          expect(await phase(id)).toBe('completed')
        }).toPass()
      }
      await expect
        .poll(() => recorder.calls.map((call) => call.args).filter((args) => args.includes(`Typed by ${hand}`)))
        .toEqual([`{"title":"Typed by ${hand}!"}`])
    })

    test('two people agree; an edit makes both look again', async ({ browser, recorder }) => {
      await api('admin', 'PUT', `/api/v1/reviews/${encodeURIComponent(recorder.tool('pair'))}`, {
        approvals: 2,
        wait: '1h',
      })
      const [ana, bo] = [await person(`Ana ${hand} ${Date.now()}`), await person(`Bo ${hand} ${Date.now()}`)]
      const [anas, bos] = [await another(browser), await another(browser)]
      const id = await recorder.propose('pair', '{"title":"Two of us"}')
      await login(anas, ana, `/inbox/${id}`)
      await login(bos, bo, `/inbox/${id}`)
      await give(anas, hand, 'a', 'Approve')
      await expect.poll(async () => (await action(id)).decision!.approvals_given).toBe(1)
      await look(bos, id)
      await expect(bos.getByText('1 more must agree')).toBeVisible()
      await give(bos, hand, 'e', 'Edit')
      await bos.getByLabel('title', { exact: true }).fill(`Both of us, by ${hand}`)
      await give(bos, hand, 'Control+Enter', 'Save, keep waiting')
      await expect.poll(async () => (await action(id)).decision!.approvals_given).toBe(0)
      await expect(bos.getByText('Changed by Bo', { exact: false }).first()).toBeVisible()
      await give(bos, hand, 'a', 'Approve')
      await expect.poll(async () => (await action(id)).decision!.approvals_given).toBe(1)
      await look(anas, id)
      await expect(anas.getByLabel('Changed by people')).toContainText('/title')
      await give(anas, hand, 'a', 'Approve')
      await expect.poll(() => phase(id)).toBe('completed')
      expect(recorder.calls.filter((call) => call.args === `{"title":"Both of us, by ${hand}"}`)).toHaveLength(1)
      for (const page of [anas, bos]) await page.context().close()
    })

    test('what one proposes oneself, somebody else decides', async ({ browser, recorder }) => {
      const ana = await person(`Own ${hand} ${Date.now()}`)
      const { envelope } = await api<{ envelope: { action_id: string } }>(ana, 'POST', '/api/v1/actions', {
        type: 'mcp.exec',
        external_id: `own-${hand}-${Date.now()}`,
        tool: { source: recorder.source, name: 'keep' },
        args: { title: 'Mine' },
      })
      const page = await another(browser)
      await login(page, ana, `/inbox/${envelope.action_id}`)
      await expect(page.getByText('This is your own proposal', { exact: false }).first()).toBeVisible()
      await expect(page.getByRole('button', { name: 'Approve', exact: true })).toHaveAttribute('aria-disabled', 'true')
      await page.keyboard.press('a')
      expect(await phase(envelope.action_id)).toBe('pending')
      await page.context().close()
    })

    test('somebody edits while one looks: it says so, nothing is decided, and what was typed is kept', async ({
      operator: page,
      recorder,
    }) => {
      const id = await recorder.propose('keep', '{"title":"Old","note":"as it was"}')
      await look(page, id)
      await give(page, hand, 'e', 'Edit')
      await page.getByLabel('note', { exact: true }).fill('what I typed')
      await api(
        'admin',
        'POST',
        `/api/v1/actions/${id}/edit`,
        { args: { title: 'New', note: 'as it was' } },
        { 'If-Match': `"${(await action(id)).decision!.etag}"` },
      )
      await expect(page.getByRole('alert').filter({ hasText: 'Changed since' })).toContainText('/title')
      await page.locator('h2.title').click()
      await page.keyboard.press('a')
      await page.keyboard.press('Control+Enter')
      expect((await action(id)).phase).toBe('pending')
      await give(page, hand, 'Tab', 'I have reviewed it')
      await expect(page.getByLabel('note', { exact: true })).toHaveValue('what I typed')
      await expect(page.getByLabel('title', { exact: true })).toHaveValue('New')
      await page.locator('h2.title').click()
      await give(page, hand, 'a', 'Approve as changed')
      await expect.poll(() => phase(id)).toBe('completed')
      expect((await action(id)).envelope.args).toEqual({ title: 'New', note: 'what I typed' })
    })

    test('two people fill in the same form: the second sees both texts, and nothing typed is lost', async ({
      browser,
      recorder,
    }) => {
      await api('admin', 'PUT', `/api/v1/reviews/${encodeURIComponent(recorder.tool('pair'))}`, {
        approvals: 2,
        wait: '1h',
      })
      const [anas, bos] = [await another(browser), await another(browser)]
      const id = await recorder.propose('pair', '{"title":"Old","note":"as it was"}')
      for (const [page, name] of [
        [anas, 'Ana'],
        [bos, 'Bo'],
      ] as const) {
        await login(page, await person(`${name} types ${hand} ${Date.now()}`), `/inbox/${id}`)
        await give(page, hand, 'e', 'Edit')
        await page.getByLabel('title', { exact: true }).fill(`Title of ${name}`)
      }
      await bos.getByLabel('note', { exact: true }).fill('Note of Bo')
      await give(anas, hand, 'Control+Enter', 'Save, keep waiting')
      const alert = bos.getByRole('alert').filter({ hasText: 'Changed since' })
      await expect(alert).toContainText('Title of Ana')
      await expect(bos.getByLabel('title', { exact: true })).toHaveValue('Title of Bo')
      await bos.keyboard.press('Control+Enter')
      expect((await action(id)).envelope.args).toEqual({ title: 'Title of Ana', note: 'as it was' })
      await give(bos, hand, 'Tab', 'I have reviewed it')
      await expect(bos.getByLabel('title', { exact: true })).toHaveValue('Title of Bo')
      await expect(bos.getByLabel('note', { exact: true })).toHaveValue('Note of Bo')
      const changes = bos.getByRole('region', { name: 'What you change' })
      for (const text of [/title.*Ana.*Bo/, /note.*Note.*Bo/]) await expect(changes).toContainText(text)
      await give(bos, hand, 'Control+Enter', 'Save, keep waiting')
      await expect
        .poll(async () => (await action(id)).envelope.args)
        .toEqual({ title: 'Title of Bo', note: 'Note of Bo' })
      await expect(anas.getByText('Title of Bo').first()).toBeVisible()
      for (const page of [anas, bos]) await page.context().close()
    })

    test('the time to decide ends while a word to the agent is written', async ({ operator: page, recorder }) => {
      await api('admin', 'PUT', `/api/v1/reviews/${encodeURIComponent(recorder.tool('brief'))}`, { wait: '6s' })
      const id = await recorder.propose('brief', '{"title":"Too late"}')
      await look(page, id)
      await give(page, hand, 'd', 'Deny…')
      await page.getByLabel('What the agent should do instead').fill('Ask again tomorrow')
      await expect.poll(() => phase(id), { timeout: 20_000 }).toBe('expired')
      await expect(page.locator('.bar .state')).toContainText('expired')
      await expect(page.getByRole('button', { name: 'Deny', exact: true })).toHaveCount(0)
      expect(recorder.calls.some((call) => call.tool === 'brief')).toBe(false)
    })

    test('an action is denied with a word, which the agent reads', async ({ operator: page, recorder }) => {
      const id = await recorder.propose('keep', '{"title":"Deny me"}')
      await look(page, id)
      await give(page, hand, 'd', 'Deny…')
      await expect(page.getByLabel('What the agent should do instead')).toBeFocused()
      await page.keyboard.type('Use the other account, never mine.')
      await give(page, hand, 'Control+Enter', 'Deny')
      await expect.poll(() => phase(id)).toBe('denied')
      expect((await action(id, 'agent')).decision!.note).toBe('Use the other account, never mine.')
    })

    test('what is always allowed passes when it is alike, and asks when it is not', async ({
      operator: page,
      recorder,
    }) => {
      const title = `Always ${hand} ${Date.now()}`
      const id = await recorder.propose('like', `{"title":"${title}","note":"one"}`)
      await look(page, id)
      await give(page, hand, 'w', 'Always…')
      const any = page.getByRole('checkbox', { name: 'any /note' })
      await expect(any).not.toBeChecked()
      await expect(page.getByRole('dialog')).toContainText('Exactly these arguments.')
      if (hand === 'pointer') await any.click()
      else {
        await any.focus()
        await page.keyboard.press('Space')
      }
      await expect(any).toBeChecked()
      await expect(page.getByRole('dialog')).toContainText('These arguments, with any /note.')
      await give(page, hand, 'Control+Enter', 'Approve, and allow')
      await expect.poll(() => phase(id)).toBe('completed')
      const alike = await recorder.propose('like', `{"title":"${title}","note":"another"}`)
      await expect.poll(() => phase(alike)).toBe('completed')
      expect(await phase(await recorder.propose('like', `{"title":"${title}!","note":"one"}`))).toBe('pending')
      expect(await phase(await recorder.propose('like', `{"title":"${title}","note":"one","amount":99999}`))).toBe(
        'pending',
      )
    })

    test('an unknown outcome is resolved in three ways, each with how one knows', async ({
      operator: page,
      recorder,
    }) => {
      test.setTimeout(120_000)
      for (const [answer, ends] of [
        ['It happened', 'completed'],
        ['It did not: give up', 'failed'],
        ['It did not: run again', 'unknown'],
      ] as const) {
        await closeBreaker(recorder)
        const id = await recorder.propose('lose', `{"title":"Lost ${ends} ${hand} ${Date.now()}"}`)
        await api('operator', 'POST', `/api/v1/actions/${id}/approve`)
        await expect.poll(() => phase(id), { timeout: 30_000 }).toBe('unknown')
        const before = recorder.calls.length
        await look(page, id)
        await expect(page.getByText('nobody knows whether it happened', { exact: false })).toBeVisible()
        await expect(page.getByRole('button', { name: answer })).toHaveAttribute('aria-disabled', 'true')
        await page.getByLabel('How you know').fill('I looked at the other side.')
        await give(page, hand, 'Tab', answer)
        if (ends === 'unknown') await expect.poll(() => recorder.calls.length, { timeout: 30_000 }).toBe(before + 1)
        else await expect.poll(() => phase(id)).toBe(ends)
      }
    })

    test('a step that could not be reverted is settled in two ways, each with how one knows', async ({
      operator: page,
      recorder,
    }) => {
      test.setTimeout(120_000)
      // An atomic workflow takes only tools that have a reversal; here the one of each is the other, and one refuses.
      for (const [tool, other] of [
        ['step', 'refuse'],
        ['refuse', 'step'],
      ] as const) {
        await api('owner', 'PUT', `/api/v1/policy/modes/${encodeURIComponent(recorder.tool(tool))}`, { mode: 'allow' })
        await api('admin', 'PUT', `/api/v1/tools/${encodeURIComponent(recorder.tool(tool))}/description`, {
          reversal: { tool: recorder.tool(other), args: { title: '$inputs/title' } },
        })
      }
      for (const [answer, ends] of [
        ['I reverted it myself', 'reverted'],
        ['Leave it as it is', 'resolved'],
      ] as const) {
        const title = `${ends} ${hand} ${Date.now()}`
        const { workflow_id } = await api<{ workflow_id: string }>('admin', 'POST', '/api/v1/workflows', {
          external_id: title.replaceAll(' ', '-'),
          atomic: true,
          steps: [
            { tool: recorder.tool('step'), inputs: { title } },
            { tool: recorder.tool('refuse'), inputs: { title } },
          ],
        })
        const state = async () =>
          (await api<{ state: string }>('operator', 'GET', `/api/v1/workflows/${workflow_id}`)).state
        await expect.poll(state, { timeout: 30_000 }).toBe('compensation_failed')
        const { items } = await api<{ items: { action_id: string; workflow_id?: string }[] }>(
          'operator',
          'GET',
          '/api/v1/inbox?kind=compensation&limit=100',
        )
        const before = recorder.calls.length
        await look(page, items.find((item) => item.workflow_id === workflow_id)!.action_id)
        await expect(page.getByText('this one could not be reverted', { exact: false })).toBeVisible()
        await expect(page.getByRole('button', { name: answer })).toHaveAttribute('aria-disabled', 'true')
        await page.getByLabel('How you know').fill('I looked at the other side.')
        await give(page, hand, 'Tab', answer)
        await expect.poll(state).toBe(ends)
        // What a person has seen to is not tried again.
        expect(recorder.calls.length).toBe(before)
      }
    })

    test('an approval is taken back before it is sent', async ({ operator: page, recorder }) => {
      const later = new Date(Date.now() + 3_600_000).toISOString()
      const id = await recorder.propose('later', '{"title":"Not yet"}', `,"constraints":{"not_before":"${later}"}`)
      await look(page, id)
      await expect(page.getByRole('region', { name: 'If you approve now' })).toContainText('It goes out')
      await give(page, hand, 'a', 'Approve')
      await expect.poll(() => phase(id)).toBe('approved')
      await give(page, hand, 'u', 'Undo')
      await expect.poll(() => phase(id)).toBe('undone')
      expect(recorder.calls.some((call) => call.tool === 'later')).toBe(false)
    })
  })
}

test('two hundred are decided at once, and each that was refused says why', async ({ operator: page, recorder }) => {
  test.setTimeout(180_000)
  const ids: string[] = []
  for (let i = 0; i < 200; i++)
    ids.push(await recorder.propose('many', `{"title":"Batch ${String(i).padStart(3, '0')}"}`))
  await page.getByLabel('Filter').fill(recorder.tool('many'))
  await page.keyboard.press('Enter')
  await expect(page.locator('.list-row')).toHaveCount(200)
  await expect(page.locator('.list-row[aria-current=true]')).toHaveCount(1)
  await page.keyboard.press('x')
  for (let i = 1; i < 200; i++) await page.keyboard.press('Shift+J')
  await expect(page.getByText('200 marked')).toBeVisible()
  await page.keyboard.press('a')
  const dialog = page.getByRole('dialog')
  await expect(dialog).toContainText('they differ in /title')
  await expect(dialog.getByRole('button', { name: 'Approve 200' })).not.toHaveAttribute('aria-disabled', 'true')
  for (const id of ids.slice(0, 5)) await api('operator', 'POST', `/api/v1/actions/${id}/deny`)
  await page.keyboard.press('Control+Enter')
  await expect(dialog.getByText('195 approved')).toBeVisible({ timeout: 30_000 })
  await expect(dialog.locator('.results li')).toHaveCount(200)
  const refused = dialog.locator('.results li').filter({ hasText: 'refused' })
  await expect(refused).toHaveCount(5)
  for (const line of await refused.all()) await expect(line.locator('.why')).not.toBeEmpty()
  await expect.poll(() => recorder.calls.filter((call) => call.tool === 'many').length, { timeout: 60_000 }).toBe(195)
})

test('a held key decides about one, and about what is grave only after a moment', async ({
  operator: page,
  recorder,
}) => {
  const first = await recorder.propose('held', '{"title":"Held, first"}', ',"risk":"high"')
  const second = await recorder.propose('held', '{"title":"Held, second"}', ',"risk":"high"')
  await page.getByLabel('Filter').fill(recorder.tool('held'))
  await page.keyboard.press('Enter')
  await expect(page.locator('.list-row')).toHaveCount(2)
  await expect(page.locator('.list-row[aria-current=true]')).toHaveCount(1)
  await expect(page.getByRole('article')).toContainText('Held, first')
  await page.keyboard.press('a')
  await expect(page.getByText('Read it first', { exact: false }).first()).toBeVisible()
  await expect(page.getByRole('button', { name: 'Approve', exact: true })).not.toHaveAttribute('aria-disabled', 'true')
  for (let i = 0; i < 30; i++) await page.keyboard.down('a')
  await expect(page.getByRole('article')).toContainText('Held, second')
  await expect(page.getByRole('button', { name: 'Approve', exact: true })).not.toHaveAttribute('aria-disabled', 'true')
  for (let i = 0; i < 30; i++) await page.keyboard.down('a')
  await page.keyboard.up('a')
  await expect.poll(() => phase(first)).toBe('completed')
  expect(await phase(second)).toBe('pending')
})

test('always is this call alone unless it is loosened, and shows what would have passed', async ({
  operator: page,
  recorder,
}) => {
  const title = `Exactly ${Date.now()}`
  const args = `{"title":"${title}","rows":[[1,2]]}`
  const id = await recorder.propose('like', args)
  const waits = await recorder.propose('like', args)
  await look(page, id)
  await give(page, 'keyboard', 'w', 'Always…')
  const dialog = page.getByRole('dialog')
  await expect(dialog.getByRole('status')).toContainText(/^1 of \d+ calls (since|among)/)
  await expect(dialog.getByRole('region', { name: 'Calls that would have run' }).getByRole('link')).toHaveAttribute(
    'href',
    `/actions/${waits}`,
  )
  // The keys of the page rest: an approval without the grant would close the dialog.
  await dialog.getByRole('button', { name: 'Cancel' }).focus()
  for (const key of ['a', 'j', 'd']) await page.keyboard.press(key)
  await expect(dialog).toBeVisible()
  await expect(page.getByLabel('What the agent should do instead')).toHaveCount(0)
  await give(page, 'keyboard', 'Control+Enter', 'Approve, and allow')
  await expect.poll(() => phase(id)).toBe('completed')
  await expect
    .poll(async () => phase(await recorder.propose('like', `{"rows":[[1,2.0]],"title":"${title}"}`)))
    .not.toBe('pending')
  for (const other of [
    `{"title":"${title}","rows":[[1,2],[3]]}`,
    `{"title":"${title}","rows":[[1,2]],"note":"x"}`,
    `{"title":"${title}","rows":[[1,99999]]}`,
    `{"title":"${title}"}`,
  ]) {
    expect(await phase(await recorder.propose('like', other)), other).toBe('pending')
  }
})

test('many are approved once every difference can be seen', async ({ operator: page, recorder }) => {
  const long = (word: string) => `${word} ${'and so on '.repeat(300)}`
  for (const i of [1, 2])
    await recorder.propose(
      'wide',
      `{"title":"T${i}","order":${i},"amount":${i}.5,"note":"${long(`N${i}`)}","reply_to":"r${i}","urgent":${i === 1}}`,
    )
  await page.getByLabel('Filter').fill(recorder.tool('wide'))
  await page.keyboard.press('Enter')
  await expect(page.locator('.list-row')).toHaveCount(2)
  await expect(page.locator('.list-row[aria-current=true]')).toHaveCount(1)
  await page.keyboard.press('x')
  await page.keyboard.press('Shift+J')
  await page.keyboard.press('a')
  const dialog = page.getByRole('dialog')
  const approve = dialog.getByRole('button', { name: 'Approve 2' })
  for (const name of ['/title', '/order', '/amount', '/note', '/reply_to', '/urgent'])
    await expect(dialog.getByRole('columnheader', { name, exact: true })).toHaveCount(1)
  await expect(approve).toHaveAttribute('aria-description', /values are cut/)
  await page.keyboard.press('Control+Enter')
  await page.keyboard.press('f')
  await expect(approve).not.toHaveAttribute('aria-disabled', 'true')
  await expect(dialog.getByRole('table')).toContainText(long('N2').trim())
  await page.keyboard.press('Control+Enter')
  await expect(dialog.getByText('2 approved')).toBeVisible()
})

test('the forecast counts the people who must agree', async ({ operator: page, recorder }) => {
  await api('admin', 'PUT', `/api/v1/reviews/${encodeURIComponent(recorder.tool('brief'))}`, { approvals: 2 })
  const id = await recorder.propose('brief', '{"title":"Two must agree"}')
  await look(page, id)
  await expect(page.getByRole('region', { name: 'If you approve now' })).toContainText(
    '1 more must agree. It goes out after that',
  )
})

test('the next item begins as it comes: at its top, folded, as a form, and not yet seen', async ({
  operator: page,
  recorder,
}) => {
  const long = (word: string) => Array.from({ length: 300 }, (_, i) => `${word}${i}`).join(' ')
  const call = (n: number) => JSON.stringify({ title: `Long ${n}`, note: long(`word${n}-`), rows: [[n]] })
  const first = await recorder.propose('wide', call(1))
  await recorder.propose('wide', call(2))
  await page.goto(`${url()}/inbox/${first}?tool=${encodeURIComponent(recorder.tool('wide'))}&order=oldest`)
  const values = page.getByRole('region', { name: 'What will be sent' })
  const body = page.locator('.detail-body')
  const more = values.getByRole('button', { name: /^Show .* more characters/ })
  const approve = page.getByRole('button', { name: 'Approve', exact: true })
  // Everything of one item is moved, opened or chosen, in whatever way the next one could keep it.
  await more.first().click()
  await expect(more).toHaveCount(0)
  await expect(approve).not.toHaveAttribute('aria-disabled', 'true')
  await body.evaluate((it) => it.scrollTo(0, 10_000))
  await expect.poll(() => body.evaluate((it) => it.scrollTop)).toBeGreaterThan(0)
  await page.keyboard.press('n')
  await page.getByLabel('Note', { exact: true }).fill('of the first')
  await page.keyboard.press('Escape')
  await page.getByRole('button', { name: 'Next' }).click()
  await expect(values).toContainText('word2-0')
  await expect(values).not.toContainText('word1-0')
  await expect(more).toHaveCount(1)
  await expect(approve).toHaveAttribute('aria-description', 'Show /note in full first.')
  await expect(page.getByLabel('Note', { exact: true })).toHaveCount(0)
  expect(await body.evaluate((it) => it.scrollTop)).toBe(0)
  await page.getByRole('tab', { name: 'JSON' }).click()
  await page.getByRole('button', { name: 'Previous' }).click()
  await expect(page.getByRole('tab', { name: 'Form' })).toHaveAttribute('aria-selected', 'true')
  await expect(values).toContainText('word1-0')
  await expect(more).toHaveCount(1)
  await expect(page).toHaveURL(new RegExp(`/inbox/${first}`))
})

test('a look-alike is marked at its argument, in the form and in a batch', async ({ operator: page, recorder }) => {
  const call = (n: number) =>
    `{"title":"Pay ${n}","note":"bo@\u0430pple.com","rows":[],"reply_to":"ana@apple.com",` +
    '"who":{"kind":"person","name":"a@paypa1.com"}}'
  const id = await recorder.propose('wide', call(1))
  await recorder.propose('wide', call(2).replace('a@paypa1.com', 'a@paypal.com'))
  await page.goto(`${url()}/inbox/${id}?tool=${encodeURIComponent(recorder.tool('wide'))}`)
  const values = page.getByRole('region', { name: 'What will be sent' })
  const at = (pointer: string) => values.locator(`[data-value="${pointer}"] .chip`)
  await expect(at('/note')).toHaveText(/^bo@\u0430pple\.com looks like apple\.com, which is well known/)
  await expect(at('/who/name')).toHaveText(/^a@paypa1\.com looks like paypal\.com/)
  await expect(at('/reply_to')).toHaveCount(0)
  expect(await violations(page)).toEqual([])
  await page.keyboard.press('e')
  const field = page.getByLabel('note', { exact: true })
  await expect(field).toHaveAccessibleDescription(/looks like apple\.com/)
  await field.fill('bo@apple.com')
  await expect(field).not.toHaveAccessibleDescription(/looks like/)
  await page.getByRole('button', { name: 'Discard' }).click()
  await page.locator('.list-row[aria-current=true]').focus()
  await page.keyboard.press('x')
  await page.keyboard.press('Shift+J')
  await page.keyboard.press('a')
  const dialog = page.getByRole('dialog')
  await expect(dialog.getByRole('table').locator('.chip')).toHaveText([/^a@paypa1\.com looks like/])
  await expect(dialog.getByLabel('The first in full').locator('.chip').first()).toHaveText(/looks like apple/)
  expect(await violations(page)).toEqual([])
})
