import { expect, test } from 'vitest'
import { absolute, clock, duration, relative } from './time'

const now = Date.parse('2026-03-29T12:00:00Z')

test('times are told from now, in the largest unit', () => {
  const told = (at: string) => relative(at, now)
  expect(told('2026-03-29T12:00:03Z')).toBe('now')
  expect(told('2026-03-29T11:56:00Z')).toBe('4m ago')
  expect(told('2026-03-29T14:30:00Z')).toBe('in 2h')
  expect(told('2026-03-27T12:00:00Z')).toBe('2d ago')
  expect(told('no time')).toBe('')
})

test('absolute times are in the zone that was chosen', () => {
  expect(absolute('2026-03-29T23:05:09.5Z', 'UTC')).toBe('2026-03-29 23:05:09')
  expect(clock('2026-03-29T23:05:09Z', 'UTC', now)).toBe('23:05:09')
  expect(clock('2026-03-28T23:05:09Z', 'UTC', now)).toBe('2026-03-28 23:05:09')
  expect(absolute('nonsense', 'UTC')).toBe('')
})

test('lengths have at most two units', () => {
  expect([0, 142, 1500, 12_000, 250_000, 7_440_000, 262_800_000, 86_400_000].map(duration)).toEqual([
    '0 ms',
    '142 ms',
    '1.5 s',
    '12 s',
    '4 min 10 s',
    '2 h 4 min',
    '3 d 1 h',
    '1 d',
  ])
})
