import { expect, test } from 'vitest'
import { againOf } from './fields'

const delivery = (phase: string, name = 'deliver') =>
  ({ phase, waiting: null, envelope: { tool: { source: 'hooks', name } } }) as Parameters<typeof againOf>[0]

test.each([
  ['failed', 'once', 'resend'],
  ['unknown', 'twice', 'resend'],
  ['completed', 'resend', 'resend'],
  ['expired', 'resend', 'resend'],
  ['executing', undefined, undefined],
])('a delivery that is %s is sent again by %s, and without its dead letter by %s', (phase, dead, gone) => {
  expect(againOf(delivery(phase))).toBe(dead)
  expect(againOf(delivery(phase), true)).toBe(gone)
})

test('a message in Slack is replayed while it is a dead letter, and never sent by another action', () => {
  expect(againOf(delivery('failed', 'post'))).toBe('once')
  expect(againOf(delivery('failed', 'post'), true)).toBeUndefined()
  expect(againOf(delivery('completed', 'post'))).toBeUndefined()
})
