import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Changes, compareIDs, type Event, patch, patchAll, type Row } from './reduce'

const actions = ['a', 'b', 'c', 'd']

const row = (id: string): Row => ({
  phase: 'pending',
  waiting: { for: 'approval', message: "a person's decision", until: null },
  envelope: {
    action_id: id,
    tenant_id: 't',
    type: 'mcp.exec',
    tool: { name: 'send', source: 'mail' },
    args: {},
    risk: 'low',
    approval: 'required',
    constraints: {},
    result: { status: 'pending', provider_id: null, error: null, attempts: 0 },
    timestamps: { created_at: '2026-01-02T03:04:05Z', sent_at: null, completed_at: null },
  },
})

const event = fc.record({
  action_id: fc.constantFrom(...actions, 'elsewhere'),
  kind: fc.constantFrom('decided', 'settled', 'undone', 'replayed', 'resolved'),
  phase: fc.option(fc.constantFrom('approved', 'executing', 'completed', 'failed', 'unknown', 'denied'), {
    nil: undefined,
  }),
  status: fc.option(fc.constantFrom('pending', 'sending', 'sent', 'failed', 'unknown'), { nil: undefined }),
  attempt: fc.option(fc.integer({ min: 0, max: 5 }), { nil: undefined }),
  actor: fc.constant('worker/a1'),
  at: fc.constant('2026-01-02T03:04:05Z'),
}) as fc.Arbitrary<Event>

// A stream in the order of commits, and the same events as they may arrive: in another order, and some of them twice.
const arrivals = fc.array(event, { maxLength: 20 }).chain((events) => {
  const stream = events.map((e, i) => ({ id: `${9 + Math.floor(i / 2)}-${95 + i}-0`, event: e }))
  const repeated = stream.length === 0 ? fc.constant([]) : fc.array(fc.constantFrom(...stream), { maxLength: 20 })
  return fc.tuple(
    fc.constant(stream),
    repeated.chain((more) => fc.shuffledSubarray([...stream, ...more], { minLength: stream.length + more.length })),
  )
})

const apply = (all: readonly { id: string; event: Event }[], rows: readonly Row[]) => {
  const changes = new Changes()
  let now = rows
  for (const { id, event } of all) {
    changes.hear(id, event)
    now = patchAll(now, changes)
  }
  return now
}

describe('events', () => {
  test('give the same rows in any order and however often they arrive', () => {
    fc.assert(
      fc.property(arrivals, ([stream, arrived]) => {
        // An event that says no more than how many attempts there were is passed over with those before it, so that
        // rows are compared by what the last event of each says.
        const last = (rows: readonly Row[]) => rows.map((r) => r.phase)
        expect(last(apply(arrived, actions.map(row)))).toEqual(last(apply(stream, actions.map(row))))
      }),
    )
  })

  test('leave each row in the phase of its last event', () => {
    fc.assert(
      fc.property(arrivals, ([stream, arrived]) => {
        const rows = apply(arrived, actions.map(row))
        for (const r of rows) {
          const last = stream.findLast((s) => s.event.action_id === r.envelope.action_id && s.event.phase !== undefined)
          expect(r.phase).toBe(last?.event.phase ?? 'pending')
        }
      }),
    )
  })

  test('of actions that are not listed change nothing', () => {
    const rows = actions.map(row)
    const changes = new Changes()
    changes.hear('1-1-0', { action_id: 'elsewhere', kind: 'settled', phase: 'completed', actor: 'w', at: '' })
    expect(patchAll(rows, changes)).toBe(rows)
  })

  test('that were heard before a read was sent do not undo its answer', () => {
    const changes = new Changes()
    changes.hear('1-1-0', {
      action_id: 'a',
      kind: 'decided',
      phase: 'approved',
      status: 'pending',
      actor: 'Bo',
      at: '',
    })
    const mark = changes.mark()
    const answer = [{ ...row('a'), phase: 'completed' as const }]
    expect(patchAll(answer, changes, mark)[0]!.phase).toBe('completed')
    changes.hear('1-2-0', { action_id: 'a', kind: 'undone', phase: 'undone', status: 'skipped', actor: 'Bo', at: '' })
    expect(patchAll(answer, changes, mark)[0]!.phase).toBe('undone')
  })

  test('take what an action waited for from it when its phase changes', () => {
    const now = patch(row('a'), {
      action_id: 'a',
      kind: 'decided',
      phase: 'approved',
      status: 'pending',
      approval: 'granted',
      actor: 'Bo',
      at: '',
    })
    expect(now).toMatchObject({ phase: 'approved', waiting: null, envelope: { approval: 'granted' } })
    expect(
      patch(now, {
        action_id: 'a',
        kind: 'decided',
        phase: 'approved',
        status: 'pending',
        approval: 'granted',
        actor: 'Bo',
        at: '',
      }),
    ).toBe(now)
  })

  test('are kept for a bounded number of actions', () => {
    const changes = new Changes(2)
    for (const [i, id] of ['a', 'b', 'c'].entries())
      changes.hear(`1-${i}-0`, { action_id: id, kind: 'settled', phase: 'completed', actor: 'w', at: '' })
    expect(['a', 'b', 'c'].map((id) => changes.event(id)?.phase)).toEqual([undefined, 'completed', 'completed'])
  })
})

test('ids are compared as numbers', () => {
  expect(compareIDs('9-1-0', '10-1-0')).toBe(-1)
  expect(compareIDs('18446744073709551615-2-0', '18446744073709551614-3-0')).toBe(1)
  expect(compareIDs('1-2-3', '1-2-3')).toBe(0)
  expect(compareIDs('', '0-0-0')).toBe(-1)
})
