// Every value of every call has a visible box that one can scroll to, at every width, before it can be approved. Where
// the values are is measured by the browser: their texts, and what is on top at that place.
import type { Page } from '@playwright/test'
import { Exact, isObject, type Json, type JsonObject, keys, numeral, parse, stringify } from '../src/lib/json'
import { expect, propose, test, url } from './fixture'

const widths = [320, 640, 1024, 1280, 1440, 1600] as const

// random returns numbers from 0 to below n, the same ones for the same seed.
function random(seed: number): (n: number) => number {
  let state = seed
  return (n) => {
    state = (state * 1_664_525 + 1_013_904_223) % 4_294_967_296
    return Math.floor((state / 4_294_967_296) * n)
  }
}

// call returns random arguments. Each text and number in it occurs once.
function call(seed: number, levels: number): JsonObject {
  const below = random(seed)
  let count = 0
  const mark = () => `q${seed}x${++count}z`
  const scalar = (): Json => {
    switch (below(9)) {
      case 0:
        return null
      case 1:
        return ''
      case 2:
        return below(2) === 0
      case 3:
        return numeral(`9${String(++count).padStart(4, '0')}${'7'.repeat(60)}.5`)!
      case 4:
        return numeral(`-${seed}${String(++count).padStart(5, '0')}`)!
      case 5:
        return `${mark()}${'W'.repeat(2_000)}${mark()}`
      case 6:
        return `${mark()} ${'several words\n'.repeat(60)}${mark()}`
      default:
        return mark()
    }
  }
  const value = (depth: number): Json => {
    if (depth === 0) return scalar()
    const kind = below(4)
    if (kind === 0) return Array.from({ length: below(4) }, () => value(depth - 1))
    if (kind < 3)
      return Object.fromEntries(
        Array.from({ length: 1 + below(3) }, (_, i) => [
          `${['name', 'address', 'k'.repeat(150), 'geo', 'lon'][below(5)]} ${i}`,
          value(depth - 1),
        ]),
      )
    return scalar()
  }
  let deep: Json = mark()
  for (let i = 0; i < levels; i++) deep = i % 3 === 0 ? [deep] : { [`level${i}`]: deep, [`beside${i}`]: scalar() }
  return {
    changes: { address: { geo: { lon: mark() } } },
    deep,
    rows: [[numeral(`8${seed}1`)!, [mark(), []]], [{}]],
    ...Object.fromEntries(Array.from({ length: 3 }, (_, i) => [`any ${i}`, value(4)])),
  }
}

// texts returns what has to be seen of a value: the beginning and the end of texts, and numbers.
function texts(of: Json): string[] {
  if (Array.isArray(of)) return of.flatMap(texts)
  if (of instanceof Exact || typeof of === 'number') return [stringify(of)]
  if (isObject(of)) return keys(of).flatMap((key) => texts(of[key]!))
  return typeof of === 'string' ? [...new Set(of.match(/q\d+x\d+z/g) ?? [])] : []
}

// words returns how many values are shown in words, by the word.
function words(of: Json, counts: Record<string, number> = {}): Record<string, number> {
  const word = of === null ? 'null' : of === '' ? 'empty text' : typeof of === 'boolean' ? String(of) : undefined
  if (word) counts[word] = (counts[word] ?? 0) + 1
  if (Array.isArray(of)) for (const one of of) words(one, counts)
  else if (isObject(of)) for (const key of keys(of)) words(of[key]!, counts)
  return counts
}

// schemaOf returns a schema that describes a value member by member, so that each is a field of its own.
function schemaOf(of: Json): JsonObject {
  if (of === null) return { type: ['null', 'string'] }
  if (Array.isArray(of)) return { type: 'array', prefixItems: of.map(schemaOf) }
  if (isObject(of))
    return { type: 'object', properties: Object.fromEntries(keys(of).map((key) => [key, schemaOf(of[key]!)])) }
  return { type: of instanceof Exact ? 'number' : typeof of }
}

// show opens an action whose arguments are others than it has, of a tool that describes them or not.
async function show(page: Page, args: JsonObject, described: boolean) {
  await page.unrouteAll({ behavior: 'ignoreErrors' })
  const id = await propose()
  await page.route(`**/api/v1/actions/${id}`, async (route) => {
    const response = await route.fetch()
    const action = parse(await response.text()) as { envelope: JsonObject }
    action.envelope.args = args
    await route.fulfill({ response, body: stringify(action as unknown as Json) })
  })
  await page.route('**/api/v1/tools/*', async (route) => {
    const response = await route.fetch()
    const tool = parse(await response.text()) as JsonObject
    tool.input_schema = described ? schemaOf(args) : {}
    await route.fulfill({ response, body: stringify(tool) })
  })
  await page.goto(`${url()}/inbox/${id}`)
  await expect(page.getByRole('article')).toBeVisible()
}

// missing returns those of some texts that cannot be brought into view, each with the reason.
const missing = (page: Page, wanted: string[]) =>
  page.evaluate((wanted) => {
    const region = document.querySelector('.detail section[aria-label="What will be sent"]')!
    const body = document.querySelector('.detail-body')!
    const places = new Map<string, [Text, number]>()
    const walker = document.createTreeWalker(region, NodeFilter.SHOW_TEXT)
    for (let node = walker.nextNode() as Text | null; node; node = walker.nextNode() as Text | null) {
      for (const text of wanted)
        if (!places.has(text) && node.data.includes(text)) places.set(text, [node, node.data.indexOf(text)])
    }
    return wanted.flatMap((text) => {
      const place = places.get(text)
      if (!place) return [`${text}: not in the document`]
      const range = document.createRange()
      // Each character has a box: the first, one in the middle, and the last.
      for (const at of new Set([0, Math.floor(text.length / 2), text.length - 1])) {
        range.setStart(place[0], place[1] + at)
        range.setEnd(place[0], place[1] + at + 1)
        body.scrollTop += range.getBoundingClientRect().top - body.getBoundingClientRect().top - body.clientHeight / 2
        const box = range.getBoundingClientRect()
        const view = body.getBoundingClientRect()
        const [x, y] = [box.left + box.width / 2, box.top + box.height / 2]
        if (box.width < 2 || box.height < 4) return [`${text}: its box is ${box.width} × ${box.height}`]
        if (
          box.left < view.left ||
          box.right > view.right ||
          box.top < view.top ||
          box.bottom > view.bottom ||
          box.right > innerWidth
        )
          return [`${text}: it is at ${Math.round(x)}, ${Math.round(y)}, outside of what one can scroll to`]
        const top = document.elementFromPoint(x, y)
        if (!top || !(place[0].parentElement === top || top.contains(place[0])))
          return [`${text}: ${top?.className} covers it`]
      }
      return []
    })
  }, wanted)

const approve = (page: Page) => page.getByRole('button', { name: 'Approve', exact: true })

async function measure(page: Page, args: JsonObject, at: readonly number[], described: boolean) {
  await page.setViewportSize({ width: at[0]!, height: 900 })
  await show(page, args, described)
  if (stringify(args).includes('WWWW')) await expect(approve(page)).toHaveAttribute('aria-description', /in full first/)
  // The tool may be read after the action, and the values then be others.
  await expect(async () => {
    await page.keyboard.press('f')
    await expect(approve(page)).not.toHaveAttribute('aria-disabled', 'true', { timeout: 1_500 })
  }).toPass()
  for (const width of at) {
    await page.setViewportSize({ width, height: 900 })
    await expect(approve(page)).not.toHaveAttribute('aria-disabled', 'true')
    expect.soft(await missing(page, texts(args)), `${width} px`).toEqual([])
    const region = await page.locator('.detail section[aria-label="What will be sent"]').innerText()
    for (const [word, least] of Object.entries(words(args))) {
      const pattern = word === 'empty text' ? /empty text|""/g : new RegExp(`\\b${word}\\b`, 'g')
      expect.soft(region.match(pattern)?.length ?? 0, `${word} at ${width} px`).toBeGreaterThanOrEqual(least)
    }
  }
}

test('every value of a deep call is visible @check', async ({ operator: page }) => {
  await measure(page, call(1, 40), [320, 1280, 1440], true)
})

test('every value of random calls is visible at every width', async ({ operator: page }) => {
  test.setTimeout(300_000)
  for (const [seed, levels] of [
    [2, 3],
    [3, 6],
    [4, 9],
    [5, 12],
    [6, 30],
    [7, 40],
  ] as const)
    await measure(page, call(seed, levels), widths, seed !== 5)
})

test('what cannot be seen cannot be approved', async ({ operator: page }) => {
  await show(page, { title: 'Minutes', to: { address: { name: 'q1x1z' } } }, true)
  await expect(approve(page)).not.toHaveAttribute('aria-disabled', 'true')
  for (const style of [
    'width: 0; overflow: hidden',
    'display: none',
    'visibility: hidden',
    'opacity: 0',
    'width: 20px',
    'margin-left: 5000px',
    'height: 0; overflow: hidden',
  ]) {
    await page.evaluate((style) => {
      document.querySelector<HTMLElement>('[data-value="/to/address/name"]')!.style.cssText = style
      dispatchEvent(new Event('resize'))
    }, style)
    await expect(approve(page), style).toHaveAttribute('aria-description', /do not fit here: \/to\/address\/name/)
    await page.keyboard.press('a')
    await page.evaluate(() => {
      document.querySelector<HTMLElement>('[data-value="/to/address/name"]')!.style.cssText = ''
      dispatchEvent(new Event('resize'))
    })
    await expect(approve(page)).not.toHaveAttribute('aria-disabled', 'true')
  }
})
