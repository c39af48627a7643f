import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  dateText,
  days,
  lengthText,
  move,
  paint,
  quietIn,
  read,
  timeText,
  type Week,
  weekOf,
  windowsOf,
  write,
} from './week'

const minute = fc.nat(7 * 1440 - 1)
const weeks = fc
  .array(fc.tuple(minute, fc.integer({ min: 1, max: 4_000 })), { maxLength: 6 })
  .map((spans): Week => {
    const week = new Uint8Array(7 * 1440)
    for (const [at, length] of spans) for (let i = 0; i < length; i++) week[(at + i) % week.length] = 1
    return week
  })
  .filter((week) => week.includes(0))

test('a week becomes windows and comes back, also through text', () => {
  fc.assert(
    fc.property(weeks, (week) => {
      const windows = windowsOf(week)
      expect(String(weekOf(windows)) === String(week)).toBe(true)
      if (windows.length > 0) expect(read(write(windows))).toEqual(windows)
    }),
    { numRuns: 50 },
  )
})

test.each([
  [[{ from: '20:00', until: '08:00+1' }], '20:00-08:00+1'],
  [[{ days: ['sun'], from: '22:00', until: '06:30+1' }], 'sun 22:00-06:30+1'],
  [[{ days: ['mon', 'tue', 'wed'], from: '00:00', until: '24:00' }], 'mon-wed 00:00-24:00'],
  [[{ days: ['sat', 'sun'], from: '12:00', until: '12:01' }], 'sat,sun 12:00-12:01'],
] as const)('windows %j are the text %s', (windows, text) => {
  const plain = windows.map((one) => ({ ...one })) as Parameters<typeof write>[0]
  expect(write(plain)).toBe(text)
  expect(read(text)).toEqual(plain)
  expect(windowsOf(weekOf(plain))).toEqual(plain)
})

test('a longer run has a window a day', () => {
  const week = weekOf(read('fri 18:00-24:00\nsat,sun 00:00-24:00\nmon 00:00-08:00'))
  expect(write(windowsOf(week))).toBe('mon 00:00-08:00\nfri 18:00-24:00\nsat,sun 00:00-24:00')
  expect(write(windowsOf(new Uint8Array(7 * 1440)))).toBe('')
  expect(write(windowsOf(new Uint8Array(7 * 1440).fill(1)))).toBe('00:00-24:00')
})

test('days may go past Sunday', () => {
  expect(read('sat-mon 01:00-02:00')[0]!.days).toEqual(['sat', 'sun', 'mon'])
})

test.each([
  ['', 'at least one'],
  ['\n \n', 'at least one'],
  ['20:00-08:00', 'Line 1: 20:00-08:00 ends before'],
  ['20:00-08:00+1\nwhenever', 'Line 2: Write days'],
  ['montag 20:00-21:00', 'Line 1: montag is not a day'],
  ['20:00-24:01', '24:01 is not a time'],
  ['20:00-20:01+1', 'longer than a day'],
  ['25:00-26:00', '25:00 is not a time'],
  ['٢٠:٠٠-٢١:٠٠', 'is not a time'],
])('%j is refused', (text, want) => {
  expect(() => read(text)).toThrow(want)
})

test('hours are painted between two corners, and a half hour is a part', () => {
  const empty = new Uint8Array(7 * 1440)
  const week = paint(empty, { day: 2, hour: 10 }, { day: 0, hour: 8 }, true)
  expect(write(windowsOf(week))).toBe('mon-wed 08:00-11:00')
  expect(write(windowsOf(paint(week, { day: 1, hour: 9 }, { day: 1, hour: 9 }, false)))).toBe(
    'mon,wed 08:00-11:00\ntue 08:00-09:00\ntue 10:00-11:00',
  )
  const night = weekOf(read('sun 23:30-00:30+1'))
  expect([quietIn(night, { day: 6, hour: 23 }), quietIn(night, { day: 0, hour: 0 })]).toEqual(['part', 'part'])
  expect(quietIn(week, { day: 0, hour: 8 })).toBe('all')
  expect(quietIn(week, { day: 0, hour: 7 })).toBe('none')
  expect(empty.includes(1)).toBe(false)
})

test('keys move within the grid', () => {
  expect(move({ day: 0, hour: 0 }, 'ArrowLeft')).toEqual({ day: 0, hour: 0 })
  expect(move({ day: 0, hour: 0 }, 'ArrowDown')).toEqual({ day: 0, hour: 1 })
  expect(move({ day: 3, hour: 20 }, 'PageDown')).toEqual({ day: 3, hour: 23 })
  expect(move({ day: 3, hour: 20 }, 'End')).toEqual({ day: 6, hour: 20 })
  expect(move({ day: 3, hour: 20 }, 'a')).toBeUndefined()
  expect(days).toHaveLength(7)
})

test('times are of their own zone', () => {
  expect(dateText('2026-03-29T07:00:00+02:00')).toBe('Sun 29 Mar')
  expect(timeText('2026-03-29T07:00:00+02:00')).toBe('07:00')
  expect(lengthText('2026-03-28T22:00:00+01:00', '2026-03-29T07:00:00+02:00')).toBe('8 h')
  expect(lengthText('2026-04-05T01:30:00+11:00', '2026-04-05T02:00:00+10:30')).toBe('1 h')
  expect(lengthText('2026-01-01T00:00:00Z', '2026-01-01T00:30:00Z')).toBe('30 min')
})
