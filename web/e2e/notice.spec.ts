// What triage did without a person, until somebody acknowledges it.
import { violations } from './browser'
import { api, expect, test, url } from './fixture'
import { notices } from './notice'
import { quiet } from './quiet'
import { give, hands } from './recorder'

const counted = async () =>
  (await api<{ by_kind: { notify: number } }>('operator', 'GET', '/api/v1/inbox/counts')).by_kind.notify

for (const hand of hands) {
  test(`by ${hand}, notices are counted and acknowledged, one by one and together`, async ({ operator: page }) => {
    test.setTimeout(180_000)
    const [first, second, third] = await notices(3)
    const before = await counted()
    await page.goto(`${url()}/inbox/${first}?kind=notify`)
    await quiet(page)
    await expect(page.getByRole('tab', { name: `Done ${before}` })).toHaveAttribute('aria-selected', 'true')
    await expect(page.getByRole('button', { name: 'Approve', exact: true })).toHaveCount(0)
    expect(await violations(page)).toEqual([])
    const refused = '**/api/v1/inbox/acknowledge'
    await page.route(refused, (route) =>
      route.fulfill({
        status: 503,
        contentType: 'application/problem+json',
        body: '{"title":"Service Unavailable","status":503,"detail":"The database is away."}',
      }),
    )
    await give(page, hand, 'c', 'Acknowledge')
    await expect(page.locator('.toast').filter({ hasText: 'not acknowledged' })).toContainText('The database is away.')
    expect(await counted()).toBe(before)
    await page.unroute(refused)
    await page.goto(`${url()}/inbox/${first}?kind=notify`)
    await quiet(page)
    await give(page, hand, 'c', 'Acknowledge')
    await expect.poll(counted).toBe(before - 1)
    await expect(page.getByRole('tab', { name: `Done ${before - 1}` })).toBeVisible()

    // Neighbours in the list, whose order is by age.
    expect(second! < third!).toBe(true)
    await page.goto(`${url()}/inbox/${third}?kind=notify`)
    await quiet(page)
    await page.keyboard.press('x')
    await page.keyboard.press('Shift+k')
    const marked = page.getByRole('region', { name: 'Marked' })
    await expect(marked).toContainText('2 marked')
    await give(page, hand, 'c', 'Acknowledge 2')
    await expect.poll(counted).toBe(before - 3)
    await expect(marked).toHaveCount(0)
  })
}
