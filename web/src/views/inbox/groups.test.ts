import { expect, test } from 'vitest'
import { byGroup, byteOrder, following, groupsOf } from './groups'
import type { Item } from './items'

const item = (action_id: string, session_id: string | undefined, tool = 'mail:send') =>
  ({ action_id, session_id, tool }) as Item

test('texts are compared as UTF-8 bytes, not as units of UTF-16', () => {
  const texts = ['', 'B', 'a', 'a b', 'a-b', 'ß', 'ä', '日本', '\uffee', '😀', '\u{10fffd}']
  const encoder = new TextEncoder()
  for (const a of texts)
    for (const b of texts) {
      const [left, right] = [[...encoder.encode(a)], [...encoder.encode(b)]]
      const at = left.findIndex((byte, i) => byte !== right[i])
      const want = at < 0 ? left.length - right.length : left[at]! - (right[at] ?? -1)
      expect(Math.sign(byteOrder(a, b)), `${a} ${b}`).toBe(Math.sign(want))
    }
})

test('those without a session are last, and a source is compared before the names of tools', () => {
  expect(byGroup('session', item('1', undefined), item('2', '\u{10fffd}'))).toBeGreaterThan(0)
  expect(byGroup('session', item('1', undefined), item('2', undefined))).toBe(0)
  expect(byGroup('tool', item('1', 's', 'a:z'), item('2', 's', 'a-b:a'))).toBeLessThan(0)
  expect(byGroup('tool', item('1', 's', 'a:z'), item('2', 's', 'a:b:c'))).toBeGreaterThan(0)
})

test('groups hold all their items, and the last is not whole before the list has ended', () => {
  const rows = [item('1', 'a'), item('2', 'a'), item('3', 'b'), item('4', undefined), item('0', 'a')]
  const groups = groupsOf('session', rows, false)
  expect(groups.map((group) => [group.key, group.items.map((one) => one.action_id).join(''), group.whole])).toEqual([
    ['a', '120', true],
    ['b', '3', true],
    ['', '4', false],
  ])
  expect(groupsOf('session', rows, true).every((group) => group.whole)).toBe(true)
  expect(groupsOf('tool', [], false)).toEqual([])
})

test('after a decision the rest of the group comes first, also what is before it', () => {
  const rows = [item('1', 'a'), item('2', 'a'), item('3', 'a'), item('4', 'b'), item('5', 'c')]
  const gone = new Set<string>()
  const next = (at: number, grouped = true) =>
    following(grouped ? 'session' : undefined, rows, at, (one) => !gone.has(one.action_id))?.action_id
  expect(next(1)).toBe('3')
  expect(next(2)).toBe('1')
  expect(next(2, false)).toBe('4')
  gone.add('1').add('2').add('3')
  expect(next(2)).toBe('4')
  gone.add('5')
  expect(next(3)).toBeUndefined()
  gone.clear()
  expect(next(-1)).toBe('1')
})
