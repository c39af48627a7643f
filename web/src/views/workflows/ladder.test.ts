import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Schemas } from '../../lib/client'
import { answers, ladder } from './ladder'

type Step = Schemas['WorkflowStep']
const states: Step['state'][] = [
  'planned',
  'running',
  'done',
  'failed',
  'skipped',
  'kept',
  'reverting',
  'reverted',
  'revert_failed',
  'resolved',
]
const step = (n: number, state: Step['state']): Step => ({
  step: n,
  tool: 'crm:create',
  inputs: {},
  state,
  action_id: null,
  reversal: { tool: 'crm:delete', action_id: null },
})
const workflow = (state: Schemas['WorkflowState'], atomic: boolean, ...steps: Step['state'][]) => ({
  state,
  atomic,
  stopped_at: null,
  steps: steps.map((s, i) => step(i, s)),
})

describe('a ladder', () => {
  test('of a running workflow has no way up', () => {
    const rungs = ladder(workflow('running', true, 'done', 'running', 'planned'))
    expect(rungs.map((r) => [r.forward, r.back?.mark, r.here])).toEqual([
      ['done', undefined, undefined],
      ['running', undefined, 'down'],
      ['planned', undefined, undefined],
    ])
  })

  test('of a workflow that goes back shows what was reverted, what is, and what will be', () => {
    const rungs = ladder(workflow('reverting', true, 'done', 'kept', 'reverting', 'reverted', 'failed', 'planned'))
    expect(rungs.map((r) => [r.forward, r.back?.mark])).toEqual([
      ['done', 'planned'],
      ['done', 'kept'],
      ['done', 'running'],
      ['done', 'done'],
      ['failed', undefined],
      ['planned', undefined],
    ])
    expect(rungs.filter((r) => r.here).map((r) => [r.step.step, r.here])).toEqual([[2, 'up']])
  })

  test('of a failed workflow that is not atomic keeps what was done', () => {
    expect(ladder(workflow('failed', false, 'done', 'failed', 'planned')).some((r) => r.back)).toBe(false)
  })

  test('has a rung for each step, and a reversal only where the step was done', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom(...states)),
        fc.boolean(),
        fc.constantFrom<Schemas['WorkflowState'][]>('running', 'reverting', 'compensation_failed', 'reverted'),
        (all, atomic, state) => {
          const rungs = ladder(workflow(state, atomic, ...all))
          expect(rungs.map((r) => r.step.state)).toEqual(all)
          for (const r of rungs) if (r.back) expect(r.forward).toBe('done')
        },
      ),
    )
  })
})

test('what can be done about a workflow follows from its state', () => {
  expect(answers({ state: 'running' })).toEqual({ cancel: true, retry: false, resolve: false, abandon: false })
  expect(answers({ state: 'running', cancelled_by: 'Bo' }).cancel).toBe(false)
  expect(answers({ state: 'compensation_failed' })).toEqual({
    cancel: false,
    retry: true,
    resolve: true,
    abandon: true,
  })
  expect(answers({ state: 'stuck' })).toEqual({ cancel: false, retry: false, resolve: false, abandon: true })
  for (const state of ['completed', 'reverted', 'failed', 'cancelled', 'resolved', 'reverting'] as const) {
    expect(Object.values(answers({ state })).some(Boolean)).toBe(false)
  }
})
