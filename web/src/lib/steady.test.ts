import { expect, test } from 'vitest'
import { steady } from './steady'

const keyOf = (item: string) => item[0]!
const shown = (before: string[], now: string[], seen: string[] = []) =>
  steady(before, now, new Map(seen.map((item) => [keyOf(item), item])), keyOf)

test('what is new is counted, and rows keep their places', () => {
  expect(shown(['b', 'c'], ['a', 'b', 'c'])).toEqual({ rows: ['b', 'c'], fresh: 1 })
  expect(shown(['b', 'c'], ['c', 'b'])).toEqual({ rows: ['b', 'c'], fresh: 0 })
})

test('what has gone stays as it was seen last, and what changed is as it is now', () => {
  expect(shown(['b', 'c'], ['c2'], ['b1'])).toEqual({ rows: ['b1', 'c2'], fresh: 0 })
})

test('the next page is added at the end, after rows that have gone as well', () => {
  expect(shown(['a', 'b'], ['a', 'b', 'c'])).toEqual({ rows: ['a', 'b', 'c'], fresh: 0 })
  expect(shown(['a', 'b'], ['a', 'c'])).toEqual({ rows: ['a', 'b', 'c'], fresh: 0 })
})

test('an empty list shows the first items that come', () => {
  expect(shown([], ['a'])).toEqual({ rows: ['a'], fresh: 0 })
})
