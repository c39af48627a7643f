import { expect, test } from 'vitest'
import {
  type Draft,
  draftOf,
  estimate,
  type Limits,
  limitsIn,
  limitsOf,
  milliseconds,
  type State,
  standing,
} from './bucket'

const now = Date.parse('2026-03-28T12:00:00Z')
const state = (more: Partial<State> = {}): State => ({
  name: 'mail',
  etag: 'abc',
  retired_at: null,
  permits: null,
  calendar_used: null,
  in_use: 0,
  opens_at: null,
  closed_until: null,
  paused: false,
  due: 0,
  waiting: 0,
  ...more,
})
const seconds = (of: State, limits: Limits) => (estimate(of, limits, now).last! - now) / 1_000

test('a rate lets one go each interval, after those that may go at once', () => {
  const rate = { limit: 30, per: '1m' }
  expect(seconds(state({ due: 1, permits: 1 }), { rate })).toBe(0)
  expect(seconds(state({ due: 1_204, permits: 1 }), { rate })).toBe(2_406)
  expect(seconds(state({ due: 10, waiting: 5, permits: 0 }), { rate })).toBe(30)
  expect(seconds(state({ due: 15 }), { rate: { ...rate, burst: 5 } })).toBe(20)
})

test('a calendar lets the rest go in later periods', () => {
  const calendar = { limit: 10, every: 'day' } as const
  expect(seconds(state({ due: 10 }), { calendar })).toBe(0)
  expect(seconds(state({ due: 11 }), { calendar })).toBe(86_400)
  expect(seconds(state({ due: 11, calendar, calendar_used: 10 }), { calendar })).toBe(2 * 86_400)
  expect(seconds(state({ due: 11, calendar: { limit: 1, every: 'hour' }, calendar_used: 1 }), { calendar })).toBe(
    86_400,
  )
  expect(seconds(state({ due: 13 }), { calendar, rate: { limit: 1, per: '1s' } })).toBe(86_402)
})

test('a hold of a provider comes first', () => {
  const closed_until = '2026-03-28T12:10:00Z'
  expect(seconds(state({ due: 3, permits: 0, closed_until }), { rate: { limit: 1, per: '1s', burst: 2 } })).toBe(601)
})

test('nothing is estimated without a limit that tells', () => {
  expect(estimate(state({ due: 3 }), {}, now)).toEqual({ count: 3, more: false, last: undefined })
  expect(estimate(state({ due: 3 }), { concurrency: 2 }, now).last).toBeUndefined()
  expect(estimate(state({ due: 3 }), { rate: { limit: 1, per: 'soon' } }, now).last).toBeUndefined()
  expect(estimate(state({ due: 100_000 }), { rate: { limit: 1, per: '1s' } }, now).more).toBe(true)
})

test.each([
  ['1m', 60_000],
  ['1h30m', 5_400_000],
  ['1.5s', 1_500],
  ['250ms', 250],
  ['2d', 172_800_000],
  ['', Number.NaN],
  ['1', Number.NaN],
  ['1m ', Number.NaN],
])('milliseconds(%j)', (text, want) => {
  expect(milliseconds(text)).toBe(want)
})

test('limits go into a draft and come back', () => {
  for (const limits of [
    {},
    { rate: { limit: 30, per: '1m', burst: 5 } },
    { calendar: { limit: 500, every: 'month', timezone: 'Europe/Berlin' }, concurrency: 4 },
  ] as Limits[]) {
    expect(limitsOf(draftOf(limits))).toEqual(limits)
    expect(limitsIn(state(limits))).toEqual(limits)
  }
})

test.each([
  [{ rate: '0' }, 'Rate must'],
  [{ rate: '1.5' }, 'Rate must'],
  [{ burst: '2' }, 'Burst needs'],
  [{ calendar: 'ten' }, 'Calendar must'],
  [{ concurrency: '-1' }, 'Concurrent calls must'],
  [{ rate: '12345678901' }, 'Rate must'],
] as [Partial<Draft>, string][])('a wrong draft %j', (draft, want) => {
  expect(() => limitsOf({ ...draftOf(null), ...draft })).toThrow(want)
})

test('the state of a bucket', () => {
  const later = '2026-03-28T12:10:00Z'
  expect(standing(state(), now)).toEqual(['completed', 'open'])
  expect(standing(state({ opens_at: later }), now)).toEqual(['waiting', 'used up'])
  expect(standing(state({ closed_until: later, closed_by: 'retry_after' }), now)[1]).toBe('closed by retry_after')
  expect(standing(state({ paused: true, opens_at: later }), now)[1]).toBe('paused')
  expect(standing(state({ retired_at: '2026-01-01T00:00:00Z', paused: true }), now)[1]).toBe('retired')
})
