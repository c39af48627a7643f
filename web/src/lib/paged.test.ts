import { expect, test } from 'vitest'
import { cursorsOf } from './paged'

test('the cursors of pages are those that the pages before have', () => {
  const stored: Record<string, string | null> = { '': 'b', b: 'c', c: null }
  const read = (cursor: string) => (cursor in stored ? { items: [], next_cursor: stored[cursor]! } : undefined)
  expect(cursorsOf(1, read)).toEqual([''])
  expect(cursorsOf(2, read)).toEqual(['', 'b'])
  expect(cursorsOf(9, read)).toEqual(['', 'b', 'c'])
  // A page that is not read yet has none after it.
  stored.b = 'x'
  expect(cursorsOf(9, read)).toEqual(['', 'b', 'x'])
  // A cursor that leads back ends the list.
  stored.x = 'b'
  expect(cursorsOf(9, read)).toEqual(['', 'b', 'x'])
  expect(cursorsOf(9, () => undefined)).toEqual([''])
})
