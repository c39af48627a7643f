import { describe, expect, test } from 'vitest'
import type { Schemas } from '../../lib/client'
import { automationsOf } from './automations'

const paused = (scope: string, subject: string) => ({ scope, subject }) as Schemas['Pause']

describe('automations', () => {
  test('are triage with its accounts, and what else is paused', () => {
    const pauses = [paused('automation', 'nightly'), paused('automation', 'triage/work'), paused('source', 'mail')]

    const all = automationsOf(['home', 'work'], pauses)

    expect(all.map((one) => `${one.name} ${one.pause?.subject ?? '-'}`)).toEqual([
      'triage -',
      'triage/home -',
      'triage/work triage/work',
      'nightly nightly',
    ])
  })
  test('are none without accounts and pauses', () => {
    expect(automationsOf([], [paused('tenant', '')])).toEqual([])
  })
})
