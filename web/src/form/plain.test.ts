import { expect, test } from 'vitest'
import type { JsonObject } from '../lib/json'
import { draftOf, type PlainField, valueFrom, withNone } from './plain'

const fields: readonly PlainField[] = [
  { pointer: '/risk', label: 'Risk', kind: 'choice', choices: ['read', 'write'] },
  { pointer: '/recipients', label: 'Recipients', kind: 'lines', none: 'Nobody' },
  { pointer: '/retry/base', label: 'First pause', kind: 'text' },
  { pointer: '/retry/max_attempts', label: 'Attempts', kind: 'number' },
  { pointer: '/args', label: 'Arguments', kind: 'json' },
  { pointer: '/required', label: 'Required', kind: 'check' },
]

test('a value that is not changed stays what it was', () => {
  const values: readonly JsonObject[] = [
    { required: false },
    { risk: 'read', required: true },
    {
      recipients: ['/to/*', '/cc'],
      retry: { base: '2s', max_attempts: 3 },
      args: { id: '$inputs/id' },
      required: false,
    },
    // An empty list is another thing than none.
    { recipients: [], required: false },
  ]
  for (const value of values) expect(valueFrom(fields, draftOf(fields, value))).toEqual({ value, problems: {} })
})

test('what is typed is checked', () => {
  const read = (typed: object) => valueFrom(fields, { ...draftOf(fields, {}), ...typed })
  expect(read({ '/retry/max_attempts': 'three' }).problems).toEqual({ '/retry/max_attempts': 'A number is expected.' })
  expect(Object.keys(read({ '/args': '{"a": }' }).problems)).toEqual(['/args'])
  expect(read({ '/recipients': '\n /to \n\n' }).value).toEqual({ recipients: [' /to '], required: false })
  expect(valueFrom([{ ...fields[0]!, required: true }], {}).problems).toEqual({ '/risk': 'Risk is required.' })
})

test('a list that is said to be empty is, whatever was typed before', () => {
  const draft = withNone(draftOf(fields, { recipients: ['/to'] }), '/recipients', true)
  expect(valueFrom(fields, draft).value.recipients).toEqual([])
  expect(valueFrom(fields, withNone(draft, '/recipients', false)).value.recipients).toEqual(['/to'])
})
