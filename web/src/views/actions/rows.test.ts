import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { extended, joined, most, type Page } from './rows'

interface Row {
  id: string
  phase: string
}
const key = (r: Row) => r.id
const page = (next_cursor: string | null, ...ids: string[]): Page<Row> => ({
  items: ids.map((id) => ({ id, phase: 'pending' })),
  next_cursor,
})
const ids = (p: Page<Row>) => p.items.map(key).join(' ')

describe('the first page, read again,', () => {
  test('puts what is new before what was loaded', () => {
    const now = joined(page('x', 'f', 'e', 'd'), page('y', 'e', 'd', 'c', 'b'), key, 'newest')
    expect([ids(now), now.next_cursor]).toEqual(['f e d c b', 'y'])
  })

  test('takes out what does not pass the filter any more', () => {
    expect(ids(joined(page('x', 'f', 'd'), page('y', 'f', 'e', 'd', 'c'), key, 'newest'))).toBe('f d c')
    expect(ids(joined(page(null, 'f'), page(null, 'f', 'e'), key, 'newest'))).toBe('f')
  })

  test('begins anew behind a gap', () => {
    const now = joined(page('x', 'z', 'y'), page('w', 'd', 'c'), key, 'newest', 2)
    expect([ids(now), now.next_cursor]).toEqual(['z y', 'x'])
  })

  test('that is short because it went through many rows is no gap', () => {
    const loaded = page('w', 'd', 'c')
    expect(ids(joined(page('x', 'z'), loaded, key, 'newest', 2))).toBe('z d c')
    expect(joined(page('x'), loaded, key, 'newest', 2)).toBe(loaded)
  })

  test('gives the list as it is, however much of it was loaded and whatever came and went meanwhile', () => {
    const universe = fc.uniqueArray(fc.integer({ min: 100, max: 999 }).map(String), { minLength: 1, maxLength: 40 })
    fc.assert(
      fc.property(
        universe,
        universe,
        fc.integer({ min: 1, max: 10 }),
        fc.nat(4),
        fc.boolean(),
        (before, after, size, pages, newest) => {
          const sort = (all: string[]) => (newest ? all.toSorted().reverse() : all.toSorted())
          const read = (all: string[], from = 0) =>
            page(from + size < all.length ? String(from + size) : null, ...all.slice(from, from + size))
          const [old, now] = [sort(before), sort(after)]
          let loaded = read(old)
          for (let i = 0; i < pages && loaded.next_cursor; i++)
            loaded = extended(loaded, read(old, Number(loaded.next_cursor)), key)
          const first = read(now)
          const result = joined(first, loaded, key, newest ? 'newest' : 'oldest', size)
          const got = result.items.map(key)
          expect(got.slice(0, first.items.length)).toEqual(first.items.map(key))
          expect(got).toEqual(sort([...new Set(got)]))
        },
      ),
    )
  })
})

test('the next page is added once', () => {
  expect(ids(extended(page('x', 'c', 'b'), page(null, 'b', 'a'), key))).toBe('c b a')
})

test('a list that grows at its head keeps no more than the most, and reads nothing behind a gap', () => {
  const many = page('y', ...Array.from({ length: most }, (_, i) => String(200_000 - i)))
  const now = joined(page('x', '200002', '200001', '200000'), many, key, 'newest')
  expect([now.items.length, now.items[0]!.id, now.cut]).toEqual([most, '200002', true])
  // Some of its head goes again: it is shorter than the most, and still has a gap before its cursor.
  const shorter = joined(page('x', '200000'), now, key, 'newest')
  expect([shorter.items.length, shorter.cut]).toEqual([most - 2, true])
  expect(extended(page('y', '2'), page('x', '1'), key).cut).toBe(false)
})
