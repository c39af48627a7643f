// The list of the inbox: marks by mouse and touch, rows that are left out of a batch, and the search by words.
import { expect, phase, test } from './recorder'

test('rows are marked by their boxes, also a range, and left out of the batch by hand', async ({
  operator: page,
  recorder,
}) => {
  const ids: string[] = []
  for (const word of ['one', 'two', 'three', 'four'])
    ids.push(await recorder.propose('boxed', `{"title":"Boxed ${word}"}`))
  await page.getByLabel('Filter').fill(recorder.tool('boxed'))
  await page.keyboard.press('Enter')
  const rows = page.locator('.list-row')
  await expect(rows).toHaveCount(4)
  const box = (row: number) => rows.nth(row).getByRole('checkbox', { name: 'Mark' })
  const target = await rows.nth(0).locator('.row-mark').boundingBox()
  expect(Math.min(target!.width, target!.height)).toBeGreaterThanOrEqual(44)

  await rows.nth(0).locator('.row-mark').click()
  await box(2).click({ modifiers: ['Shift'] })
  await expect(page.getByRole('region', { name: 'Marked' })).toContainText('3 marked')
  await expect(box(1)).toBeChecked()
  await expect(box(3)).not.toBeChecked()

  await page.getByRole('button', { name: 'Approve 3' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('checkbox', { name: /Boxed two/ }).click()
  await expect(dialog.getByRole('row', { name: /left out/ })).toHaveCount(1)
  await dialog.getByRole('button', { name: 'Approve 2' }).click()
  await expect(dialog.getByText('2 approved')).toBeVisible()
  await dialog.getByRole('button', { name: 'Close' }).last().click()
  await expect(page.getByRole('region', { name: 'Marked' })).toContainText('1 marked')
  await expect(box(1)).toBeChecked()
  await expect.poll(() => phase(ids[2]!)).toBe('completed')
  expect(await phase(ids[1]!)).toBe('pending')
})

test('words of the arguments find an action, on a phone too', async ({ operator: page, recorder }) => {
  const word = `needle${Date.now()}`
  await recorder.propose('boxed', `{"title":"Find ${word} Ünïted"}`)
  await page.setViewportSize({ width: 390, height: 844 })
  const filter = page.getByLabel('Filter')
  await expect(async () => {
    await filter.fill(`${word} unit`)
    await page.keyboard.press('Enter')
    await page.reload()
    await expect(page.locator('.list-row')).toHaveCount(1, { timeout: 1_000 })
  }).toPass()
  await expect(filter).toHaveValue(`${word} unit`)
  await page.keyboard.press('Control+k')
  await page.getByRole('combobox', { name: 'Find anything' }).fill(word)
  await expect(page.getByRole('option', { name: new RegExp(word) })).toBeVisible()
})
