import { expect, test } from 'vitest'
import { type Json, parse } from '../lib/json'
import { fieldsOf } from './plan'
import { readable } from './readable'
import { converted } from './variant'

const now = Date.parse('2026-11-28T00:00:00Z')
const written = (name: string, value: string, beside = '{}', description?: string) =>
  readable({ name, value: parse(value), description }, parse(beside), 'UTC', now)

test('dates and times have their day and zone', () => {
  expect(written('at', '"2026-11-28T10:00:00+02:00"')).toBe('Sat, 28 Nov 2026, 08:00 UTC, in 8h')
  expect(written('at', '"2026-11-28T10:00:05Z"')).toBe('Sat, 28 Nov 2026, 10:00:05 UTC, in 10h')
  expect(written('at', '"2026-11-28T10:00"')).toBe('Sat, 28 Nov 2026, 10:00, no time zone given')
  expect(written('day', '"2026-02-28"')).toBe('Sat, 28 Feb 2026')
  expect(written('expires_at', '1796083200')).toBe('Tue, 1 Dec 2026, 00:00 UTC, in 3d, if seconds since 1970')
  expect(written('expiresAt', '1796083200000')).toBe('Tue, 1 Dec 2026, 00:00 UTC, in 3d, if milliseconds since 1970')
})

test('what is no date is not read as one', () => {
  expect(written('day', '"2026-02-30"')).toBe('not in the calendar')
  expect(written('at', '"2026-11-28T25:00:00Z"')).toBe('not in the calendar')
  for (const value of ['"2026-11-2"', '"28.11.2026"', '"2026-11-28 and later"', '1796083200', '""', 'null', '{}'])
    expect(written('id', value)).toBeUndefined()
})

test('amounts have grouped digits and their currency, and none is rounded', () => {
  expect(written('amount', '1234567.10', '{"currency":"eur"}')).toBe('1,234,567.10 EUR')
  expect(written('amount', '90071992547409931', '{"currency":"EUR"}')).toBe('90,071,992,547,409,931 EUR')
  expect(written('amount', '-0.10', '{"currency":"EUR"}')).toBe('-0.10 EUR')
  expect(written('amount', '12950', '{"currency":"EUR"}', 'in cents')).toBe(
    '129.50 EUR, if 12950 are cents or the like',
  )
  expect(written('amount', '5', '{"currency":"EUR"}', 'in cents')).toBe('0.05 EUR, if 5 are cents or the like')
  expect(written('amount', '12950', '{"currency":"JPY"}', 'in the smallest currency unit')).toBe('12,950 JPY')
  expect(written('price', '"12950.00"')).toBe('12,950.00')
  expect(written('total', '129.5')).toBeUndefined()
  expect(written('total', '1e400', '{"currency":"EUR"}')).toBeUndefined()
  expect(written('amount', '5', '{"currency":"EUR","settle_currency":"USD"}')).toBeUndefined()
  expect(written('amount', '5', '{"currency":"\\u202eRUE"}')).toBeUndefined()
})

const item = '{"properties":{"sku":{},"price":{},"n":{}},"required":["n"]}'
const kindsOf = (schema: string, value: string) =>
  fieldsOf(parse(schema), parse(value)).children.map((f) => [f.name, f.kind, f.columns, f.first])

test('lists are a line or a table, with the columns of the schema in its order', () => {
  const schema = `{"properties":{"to":{"type":"array"},"items":{"type":"array","items":${item}},
    "deep":{"type":"array"}}}`
  const value = '{"to":["a","b, c"],"items":[{"x":1,"n":1,"price":1.10},{"sku":"s","n":2}],"deep":[["a"],["b"]]}'
  expect(kindsOf(schema, value)).toEqual([
    ['to', 'line', [], []],
    ['items', 'table', ['sku', 'price', 'n', 'x'], ['sku', 'price', 'n', 'x']],
    ['deep', 'list', [], []],
  ])
})

test('a table of many columns shows the required ones first, and a thousand rows stay a table', () => {
  const row = `{${[...'abcdefghij'].map((c) => `"${c}":"${c}"`).join(',')}}`
  const value = `{"rows":[${Array.from({ length: 1000 }, () => row).join(',')}]}`
  const schema = '{"properties":{"rows":{"type":"array","items":{"required":["j"]}}}}'
  expect(kindsOf(schema, value)).toEqual([['rows', 'table', [...'abcdefghij'], [...'abcdej']]])
})

test('a long text or an element that is no object leaves a list as it is', () => {
  const schema = '{"properties":{"a":{"type":"array"},"b":{"type":"array"},"c":{"type":"array"}}}'
  const value = `{"a":[{"x":1},2],"b":[{"x":"${'x'.repeat(400)}"},{"x":""}],"c":["a\\nb"]}`
  expect(kindsOf(schema, value).map(([, kind]) => kind)).toEqual(['list', 'list', 'list'])
})

test('the order of a nested schema is the order of the fields', () => {
  const schema = `{"properties":{"who":{"type":"object","properties":{"name":{},"id":{},
    "at":{"$ref":"#/$defs/at"}}}},"$defs":{"at":{"type":"object","properties":{"z":{},"a":{}}}}}`
  const [who] = fieldsOf(parse(schema), parse('{"who":{"at":{"a":1,"z":2},"id":1,"name":"x"}}')).children
  expect(who!.children.map((f) => f.name)).toEqual(['name', 'id', 'at'])
  expect(who!.children[2]!.children.map((f) => f.name)).toEqual(['z', 'a'])
})

const to = (schema: string, value: string, tag?: { name: string; value: Json }) => {
  const {
    value: result,
    open,
    lost,
  } = converted(parse(value), { label: 'x', schema: parse(schema), ...(tag && { tag }) }, {})
  return [result, open, lost]
}

test('a value becomes another variant, digit for digit, and what is lost is named', () => {
  expect(to('{"type":"string"}', '9007199254740993')).toEqual(['9007199254740993', [], []])
  expect(to('{"type":"number"}', '"1.10"')).toEqual([parse('1.10'), [], []])
  expect(to('{"type":"integer"}', '"abc"')).toEqual([null, [''], ['abc']])
  expect(to('{"type":"boolean"}', '"true"')).toEqual([true, [], []])
  expect(to('{"type":"array","items":{"type":"string"}}', '"a@b"')).toEqual([['a@b'], [], []])
  expect(to('{"type":"string"}', '["a"]')).toEqual(['["a"]', [], []])
  expect(to('{"type":"object"}', '"{\\"a\\":1}"')).toEqual([{ a: 1 }, [], []])
  expect(to('{"type":"object"}', '"a"')).toEqual([{}, [], ['a']])
  expect(to('{"type":"integer"}', '""')).toEqual([null, [''], []])
})

test('members that another variant lacks are named', () => {
  const schema =
    '{"type":"object","properties":{"kind":{"const":"b"},"n":{"type":"integer"}},"additionalProperties":false}'
  expect(to(schema, '{"kind":"a","n":1.0,"name":"x"}', { name: 'kind', value: 'b' })).toEqual([
    { kind: 'b', n: parse('1.0') },
    [],
    ['name'],
  ])
  expect(to(schema, '{"n":"x"}', { name: 'kind', value: 'b' })).toEqual([{ kind: 'b' }, [], ['n']])
})
