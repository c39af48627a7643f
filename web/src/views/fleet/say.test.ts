import { describe, expect, test } from 'vitest'
import { confirmed, effect, type Overview, reasonOf, sentence } from './say'

const calm: Overview = {
  at: '2026-11-20T09:30:00Z',
  estimated: false,
  due: 0,
  scheduled: 0,
  in_flight: 0,
  leases_overdue: 0,
  oldest_due_seconds: 0,
  waiting: [],
  buckets: [],
  breakers: [],
  pauses: [],
  approvals: { waiting: 0, oldest_at: null },
  dead_letters: [],
  throughput: { covers_seconds: 300, ended: [] },
}
const at = () => '10:12:00'

describe('sentence', () => {
  test('names what holds actions back', () => {
    expect(sentence(calm, at)).toBe('Nothing is due; nothing held back.')
    const held: Overview = {
      ...calm,
      due: 1_041,
      oldest_due_seconds: 0.8,
      in_flight: 4,
      breakers: [
        { source: 'mail', state: 'open', cause: 'x', since: calm.at, open_until: calm.at, openings: 1 },
        { source: 'crm', state: 'closed', cause: 'x', since: calm.at, open_until: calm.at, openings: 1 },
      ],
      pauses: [{ scope: 'tenant', subject: '', kill: true, reason: 'x', by: 'Ana', at: calm.at }],
      waiting: [{ reason: 'login_lost', actions: 3, oldest_due_seconds: 1, next_in_seconds: null }],
    }
    expect(sentence(held, at)).toBe(
      '1,041 due, oldest 800 ms; 4 in flight; ' +
        'nothing held back but tenant: killed; mail: breaker open until 10:12:00; 3 for a login.',
    )
    const many = { ...calm, pauses: Array.from({ length: 9 }, () => held.pauses[0]!) }
    expect(sentence(many, at)).toContain('6 more')
  })
})

test('a reason that the page does not know is held', () => {
  expect(reasonOf('a_new_gate')).toMatchObject({ word: 'a new gate', held: true })
})

test('the effect of a pause and of a kill', () => {
  const forecast = { pending: 300, undecided: 12, in_flight: 4, at_least: false }
  expect(effect(forecast, true)).toBe('Ends 312 pending, 12 of them undecided; 4 in flight go on.')
  expect(effect({ ...forecast, undecided: 0, at_least: true }, false)).toBe(
    'Holds at least 300 pending; at least 4 in flight go on.',
  )
})

test('a kill takes the name of its target, letter for letter', () => {
  const tool = { scope: 'tool', subject: 'mail:send' }
  expect(confirmed(' mail:send ', tool, 'demo')).toBe(true)
  for (const typed of ['', 'mail:Send', 'tool', 'demo']) expect(confirmed(typed, tool, 'demo')).toBe(false)
  expect(confirmed('demo', { scope: 'tenant' }, 'demo')).toBe(true)
  expect(confirmed('', { scope: 'tenant' }, '')).toBe(false)
})
