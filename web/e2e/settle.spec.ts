// What only a person can settle: unknown outcomes from the dead letters, and reversals that somebody proposed.
import { another, api, closeBreaker, expect, give, hands, login, look, person, phase, test, url } from './recorder'

for (const hand of hands) {
  test.describe(`by ${hand}`, () => {
    test('an unknown outcome is resolved from its dead letter in three ways, each with how one knows', async ({
      operator: page,
      recorder,
    }) => {
      test.setTimeout(180_000)
      for (const [answer, ends] of [
        ['It happened', 'completed'],
        ['It did not: give up', 'failed'],
        ['It did not: run again', 'unknown'],
      ] as const) {
        await closeBreaker(recorder)
        const id = await recorder.propose('lose', `{"title":"Letter ${ends} ${hand} ${Date.now()}"}`)
        await api('operator', 'POST', `/api/v1/actions/${id}/approve`)
        await expect.poll(() => phase(id), { timeout: 30_000 }).toBe('unknown')
        const before = recorder.calls.length
        await page.goto(`${url()}/dead-letters/${id}`)
        await give(page, hand, 'Tab', `${answer}…`)
        const dialog = page.getByRole('dialog')
        const button = dialog.getByRole('button', { name: new RegExp(`^${answer}`) })
        await expect(button).toHaveAttribute('aria-disabled', 'true')
        await page.keyboard.press('Control+Enter')
        expect(await phase(id)).toBe('unknown')
        await dialog.getByLabel('Note').focus()
        await page.keyboard.type('I looked at the other side.')
        if (hand === 'pointer') await button.click()
        else await page.keyboard.press('Control+Enter')
        await expect(page).toHaveURL(`${url()}/actions/${id}`)
        if (ends === 'unknown') await expect.poll(() => recorder.calls.length, { timeout: 30_000 }).toBe(before + 1)
        else await expect.poll(() => phase(id)).toBe(ends)
        await expect(page.getByRole('list', { name: 'What happened' })).toContainText('I looked at the other side.')
      }
    })

    test('an unknown outcome whose answer fails comes back with how one knows', async ({
      operator: page,
      recorder,
    }) => {
      test.setTimeout(120_000)
      await closeBreaker(recorder)
      const id = await recorder.propose('lose', `{"title":"Answer fails ${hand} ${Date.now()}"}`)
      await api('operator', 'POST', `/api/v1/actions/${id}/approve`)
      await expect.poll(() => phase(id), { timeout: 30_000 }).toBe('unknown')
      await look(page, id)
      await page.getByLabel('How you know').fill('The other side has it.')
      await page.route(`**/api/v1/dead-letters/${id}/resolve`, (route) =>
        route.fulfill({
          status: 503,
          contentType: 'application/problem+json',
          body: '{"title":"Service Unavailable","status":503,"detail":"The database is away."}',
        }),
      )
      await give(page, hand, 'Tab', 'It happened')
      await expect(page.locator('.toast').filter({ hasText: 'not recorded' })).toContainText('The database is away.')
      await page.unroute(`**/api/v1/dead-letters/${id}/resolve`)
      await page.locator('.toast').filter({ hasText: 'not recorded' }).getByRole('button', { name: 'Look' }).click()
      await expect(page).toHaveURL(new RegExp(`/inbox/${id}`))
      await expect(page.getByLabel('How you know')).toHaveValue('The other side has it.')
      expect(await phase(id)).toBe('unknown')
      await give(page, hand, 'Tab', 'It happened')
      await expect.poll(() => phase(id)).toBe('completed')
    })

    test('a reversal that somebody proposed waits in the inbox, and somebody else approves it', async ({
      operator: page,
      browser,
      recorder,
    }) => {
      test.setTimeout(120_000)
      await api('admin', 'PUT', `/api/v1/tools/${encodeURIComponent(recorder.tool('make'))}/description`, {
        reversal: { tool: recorder.tool('unmake'), args: { title: '$inputs/title' } },
      })
      const title = `Made ${hand} ${Date.now()}`
      const id = await recorder.propose('make', JSON.stringify({ title }))
      await api('owner', 'POST', `/api/v1/actions/${id}/approve`)
      await expect.poll(() => phase(id), { timeout: 30_000 }).toBe('completed')
      await page.goto(`${url()}/actions/${id}`)
      await give(page, hand, 'Tab', 'Revert…')
      await expect(page.getByRole('dialog').locator('[data-value]')).toContainText(title)
      await give(page, hand, 'Tab', 'Propose the reversal')
      await expect(page).not.toHaveURL(`${url()}/actions/${id}`)
      const reversal = page.url().split('/').at(-1)!
      await expect(page.locator('.page-head')).toContainText('needs a person')
      // Whoever proposed it does not decide about it.
      await look(page, reversal)
      await expect(page.getByRole('button', { name: 'Approve', exact: true })).toHaveAttribute(
        'aria-description',
        /your own proposal/,
      )
      const other = await another(browser)
      await login(
        other,
        await person(`Reverter ${hand} ${Date.now()}`),
        `/inbox?tool=${encodeURIComponent(recorder.tool('unmake'))}`,
      )
      const row = other.locator('.list-row').filter({ hasText: title })
      await expect(row).toBeVisible()
      if (hand === 'pointer') await row.click()
      else for (let i = 0; i < 20 && !other.url().includes(reversal); i++) await other.keyboard.press('j')
      await expect(other).toHaveURL(new RegExp(`/inbox/${reversal}`))
      await expect(other.getByRole('article')).toContainText(title)
      await expect(other.getByRole('article').getByRole('link', { name: id })).toBeVisible()
      await give(other, hand, 'a', 'Approve')
      await expect.poll(() => phase(reversal), { timeout: 30_000 }).toBe('completed')
      expect(
        recorder.calls.filter((call) => call.tool === 'unmake' && call.args === JSON.stringify({ title })),
      ).toHaveLength(1)
      await other.context().close()
    })
  })
}
