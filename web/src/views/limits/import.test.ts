import { expect, test } from 'vitest'
import { csvOf, placeOf } from './import'

test.each([
  ['value,reason\na@b.org,x\n', 'value,reason\na@b.org,x\n', 0],
  ['\uFEFFkind, Value\r\nemail,a@b.org', 'kind, Value\r\nemail,a@b.org', 0],
  ['a@b.org\nb@c.org', 'value\na@b.org\nb@c.org', 1],
  ['', 'value\n', 1],
])('csvOf(%j)', (text, csv, added) => {
  expect(csvOf(text)).toEqual({ csv, added })
})

test('errors name the line of the text', () => {
  expect(placeOf('/lines/3/columns/1', 1)).toBe('Line 2, column 1')
  expect(placeOf('/lines/3/columns/7', 0)).toBe('Line 3, column 7')
  expect(placeOf('', 0)).toBe('')
})
