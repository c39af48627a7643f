import { describe, expect, test } from 'vitest'
import { problemOf, rowsOf } from './tags'

type Tags = Parameters<typeof rowsOf>[0]
type Tries = Parameters<typeof rowsOf>[1]

const tag = (message_id: string, action: string, problem?: string) => ({ message_id, action, problem })
const tried = (message_id: string, action: string, status: string, error?: string) => ({
  message_id,
  action,
  status,
  error,
})

describe('action tags', () => {
  const rows = rowsOf(
    [
      tag('1', 'add-contact'),
      tag('1', 'create-reminder'),
      tag('2', 'add-contact', 'no tool dav:add-contact'),
    ] as unknown as Tags,
    [
      tried('1', 'add-contact', 'failed', 'rejected'),
      tried('1', 'add-contact', 'failed', 'older'),
      tried('1', 'create-reminder', 'success', 'not shown'),
    ] as unknown as Tries,
  )
  test('have their own tries', () => expect(rows.map((one) => one.tries.length)).toEqual([2, 1, 0]))
  test('have the problem of the latest try, or of the tag', () =>
    expect(rows.map(problemOf)).toEqual(['rejected', '', 'no tool dav:add-contact']))
})
