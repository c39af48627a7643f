import { expect, test } from 'vitest'
import { stringify } from '../../lib/json'
import { type GrantDraft, grantProblem, inputOf, pinsOf, pointersOf, stateOf } from './grant'

const draft: GrantDraft = {
  tool: 'mail:send',
  session_id: '',
  employee_id: '',
  automation_id: '',
  pins: '{"/n": 90071992547409931234}',
  loose: ' /to \n\n/to\nall',
  expires_in: '8h',
  reason: '',
}

test('a draft is sent without empty fields, and its numbers keep their digits', () => {
  expect(grantProblem(draft)).toBeUndefined()
  expect(stringify(inputOf(draft))).toBe(
    '{"tool":"mail:send","expires_in":"8h","pins":{"/n":90071992547409931234},"loose":["/to",""]}',
  )
})

test.each([
  { tool: 'mail:*' },
  { tool: 'mail' },
  { employee_id: 'ada' },
  { pins: '{"to": 1}' },
  { pins: '[1]' },
  { pins: '{' },
  { loose: 'to' },
  { expires_in: '' },
  { expires_in: 'soon' },
])('a draft with %j is not sent', (change) => {
  expect(grantProblem({ ...draft, ...change })).toBeDefined()
})

test('pointers and pins', () => {
  expect(pointersOf('')).toEqual([])
  expect(pinsOf('')).toEqual({})
})

test('a grant ends by time or by a person', () => {
  const expires_at = '2026-01-02T03:04:05Z'
  const at = Date.parse(expires_at)
  expect([stateOf({ expires_at }, at - 1), stateOf({ expires_at }, at)]).toEqual(['holds', 'expired'])
  expect(stateOf({ expires_at, revoked_at: expires_at }, at - 1)).toBe('revoked')
})
