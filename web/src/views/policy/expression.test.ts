import { expect, test } from 'vitest'
import { idProblem, marked, rangeOf, spanProblem, toolProblem } from './expression'

const at = (line: number, column: number, length: number) => ({ line, column, length, message: 'wrong' })

test.each([
  ['args.m > 1', at(1, 5, 2), { before: 'args', wrong: '.m', after: ' > 1' }],
  ['true &&\n\tfoo', at(2, 2, 3), { before: ' ', wrong: 'foo', after: '' }],
  ["'ż🙂' == foo", at(1, 9, 3), { before: "'ż🙂' == ", wrong: 'foo', after: '' }],
  ['args.to ==\r\n', at(1, 11, 0), { before: 'args.to ==', wrong: ' ', after: '' }],
  [`${'x'.repeat(100)}!`, at(1, 101, 1), { before: `…${'x'.repeat(60)}`, wrong: '!', after: '' }],
  ['x', at(7, 1, 1), undefined],
  ['x', { length: 0, message: 'is empty' }, undefined],
])('the wrong part of %j', (text, mistake, want) => {
  expect(marked(text, mistake)).toEqual(want)
})

test.each([
  ["'ż🙂' == foo", at(1, 9, 3), 'foo'],
  ['a\r\n🙂🙂 b c', at(2, 4, 1), 'b'],
  ['args.to ==', at(1, 11, 0), ''],
  ['x', at(2, 1, 1), undefined],
])('the range in %j', (text, mistake, want) => {
  const range = rangeOf(text, mistake)
  expect(range && text.slice(...range)).toBe(want)
})

test('ids, patterns and durations', () => {
  expect([idProblem('large-refunds', []), toolProblem('*'), toolProblem('shop:*'), toolProblem('a:b:c')]).toEqual(
    Array(4).fill(undefined),
  )
  for (const text of ['', 'Großes', 'x'.repeat(101), 'a b']) expect(idProblem(text, [])).toBeDefined()
  expect(idProblem('a', ['a'])).toBe('There is a rule with this id.')
  for (const text of ['', 'shop', 'shop:', ':x', 's*p:x', '**']) expect(toolProblem(text)).toBeDefined()
  for (const text of ['', '0s', '8h', '1d12h']) expect(spanProblem(text)).toBeUndefined()
  for (const text of ['8', 'h', '1 h', '-1h']) expect(spanProblem(text)).toBeDefined()
})
