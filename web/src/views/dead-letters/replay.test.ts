import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type BulkResult, begin, body, freeze, limit, next, type Progress, paces, sentence } from './replay'

const asOf = '2026-01-02T10:00:00Z'
const answer = (given: Partial<BulkResult>): BulkResult => ({
  dry_run: false,
  action_ids: [],
  left: 0,
  left_out: 0,
  counts: [],
  as_of: asOf,
  ahead_ms: 0,
  ...given,
})

// The server's side of a replay: some letters, of which a request takes at most as many as it says, and a schedule.
function serve(count: number, perSecond: number | undefined) {
  let [left, ahead] = [count, 0]
  return {
    pass: (ms: number) => (ahead = Math.max(0, ahead - ms)),
    request: (most: number) => {
      const taken = Math.min(most, left)
      left -= taken
      if (perSecond !== undefined) ahead += (taken / perSecond) * 1_000
      return answer({ action_ids: Array.from({ length: taken }, (_, i) => String(i)), left, ahead_ms: ahead })
    },
    scheduled: () => (perSecond === undefined ? 0 : (ahead / 1_000) * perSecond),
  }
}

describe('a replay', () => {
  const pace = fc.constantFrom(...paces).map((perSecond) => ({ perSecond }))

  test('takes every letter of the filter once', () => {
    fc.assert(
      fc.property(fc.nat(3_000), pace, (count, at) => {
        const server = serve(count, at.perSecond)
        let progress = begin(freeze({}, answer({ left: count })))
        while (progress.state === 'running') {
          server.pass(progress.wait)
          progress = next(progress, server.request(limit(at)))
        }
        expect(progress).toMatchObject({ replayed: count, left: 0, state: 'done' })
      }),
    )
  })

  test('that is stopped has handed out no more than three seconds of its schedule, or two letters', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 3_000 }), pace, fc.nat(20), (count, at, requests) => {
        fc.pre(at.perSecond !== undefined)
        const server = serve(count, at.perSecond)
        let progress: Progress = begin(freeze({}, answer({ left: count })))
        for (let i = 0; i < requests && progress.state === 'running'; i++) {
          server.pass(progress.wait)
          progress = next(progress, server.request(limit(at)))
        }
        expect(server.scheduled()).toBeLessThanOrEqual(Math.max(2, at.perSecond! * 3) + 1e-6)
      }),
    )
  })

  test('ends where a request finds nothing to replay', () => {
    const progress = next({ replayed: 3, left: 7, state: 'running', wait: 0 }, answer({ left: 7 }))
    expect(progress).toEqual({ replayed: 3, left: 7, state: 'done', wait: 0 })
  })

  test('stays stopped when the last answer arrives', () => {
    expect(
      next({ replayed: 0, left: 10, state: 'stopped', wait: 0 }, answer({ action_ids: ['a'], left: 9 })).state,
    ).toBe('stopped')
  })

  test('asks for the filter of the list, with the time of the dry run as its end', () => {
    const frozen = freeze({ tool: 'mail:*', reason: 'exhausted' }, answer({ left: 412, left_out: 9 }))
    expect(frozen).toMatchObject({ count: 412, leftOut: 9, asOf })
    expect(body(frozen, { perSecond: 50 }, { note: 'SMTP is back' })).toEqual({
      filter: { tool: 'mail:*', reason: 'exhausted', until: asOf },
      limit: 100,
      per_second: 50,
      note: 'SMTP is back',
    })
    expect(body(frozen, { perSecond: undefined }, { allowDuplicates: true })).toEqual({
      filter: { tool: 'mail:*', reason: 'exhausted', until: asOf },
      limit: 500,
      allow_duplicates: true,
    })
  })

  test('keeps an end that the list has and that is earlier', () => {
    const until = '2026-01-01T00:00:00Z'
    expect(freeze({ until }, answer({})).asOf).toBe(until)
    expect(freeze({ until: '2027-01-01T00:00:00Z' }, answer({})).asOf).toBe(asOf)
  })
})

test('a filter in words has each of its conditions', () => {
  expect(sentence({})).toBe('all dead letters')
  expect(
    sentence({ tool: 'mail:*', source: 'mail', reason: 'exhausted', code: 'http_503', since: 'A', until: 'B' }),
  ).toBe(
    'dead letters of mail:*, of the source mail, whose attempts are used up, with the code http_503, ' +
      'made at A or later, made before B',
  )
})
