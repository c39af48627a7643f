import { expect, test } from 'vitest'
import { parse, stringify } from './json'

test('numbers keep their digits', () => {
  for (const text of ['9007199254740993', '1.0', '1e400', '-0', '{"a":[12345678901234567890.5,1]}', '0.1']) {
    expect(stringify(parse(text))).toBe(text)
  }
})
