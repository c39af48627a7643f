import fc from 'fast-check'
import { expect, test } from 'vitest'
import { anyText } from '../form/random'
import { Exact, keys, parse, parseAnswer, same, stringify } from './json'

test('numbers keep their digits', () => {
  for (const text of ['9007199254740993', '1.0', '1e400', '-0', '{"a":[12345678901234567890.5,1]}', '0.1']) {
    expect(stringify(parse(text))).toBe(text)
  }
})

test('keys keep their order and __proto__ is a key', () => {
  const text = '{"b":1,"10":2,"2":3,"__proto__":{"a":1},"a":{"1":0,"0":1}}'
  const value = parse(text)
  expect(stringify(value)).toBe(text)
  expect(keys(value as never)).toEqual(['b', '10', '2', '__proto__', 'a'])
  expect(({} as Record<string, unknown>).a).toBeUndefined()
})

test('what the server refuses is refused, with its place', () => {
  for (const [text, message] of [
    ['{"a":1,"a":2}', 'line 1, column 8: the key "a" occurs twice'],
    ['{"__proto__":1,\n"__proto__":2}', 'line 2, column 1: the key "__proto__" occurs twice'],
    ['{"a":1', 'line 1, column 7: a comma or } is expected'],
    ['[01]', 'line 1, column 3: a comma or ] is expected'],
    ['[1,]', 'line 1, column 4: a JSON value is expected here'],
    ['"a\nb"', 'line 1, column 1: a text has an unknown escape, or a line break that is not written as \\n'],
    ['', 'line 1, column 1: a value is missing'],
    ['1 2', 'line 1, column 3: more text after the value'],
    ['tru', 'line 1, column 1: a JSON value is expected here'],
    ["{'a':1}", 'line 1, column 2: a key in double quotes is expected'],
    ['[NaN]', 'line 1, column 2: a JSON value is expected here'],
    ['['.repeat(600), 'line 1, column 502: nested too deeply'],
  ] as const) {
    expect(() => parse(text), text).toThrow(new SyntaxError(message))
  }
})

test('any text reads back as it was written', () => {
  fc.assert(
    fc.property(
      anyText,
      (text) => stringify(parse(text)) === text && stringify(parse(stringify(parse(text), 2))) === text,
    ),
  )
})

test('an answer is parsed as any text is', () => {
  const read = (by: typeof parse, text: string) => {
    try {
      return stringify(by(text))
    } catch (error) {
      return String(error)
    }
  }
  const texts = [
    '-0',
    '1.0',
    '1e400',
    '9007199254740993',
    '{"b":1,"10":2,"2":3}',
    '{"a":1,"a":2}',
    '[1,]',
    '',
    '"\\u003c"',
  ]
  const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)
  for (const text of [...texts, '{"__proto__":{"a":1}}\n', nested(500), nested(600), nested(100_000)])
    expect(read(parseAnswer, text)).toBe(read(parse, text))
  fc.assert(
    fc.property(anyText, (text) => {
      expect(read(parseAnswer, text)).toBe(read(parse, text))
    }),
  )
})

test('parse agrees with JSON.parse where both take a text', () => {
  fc.assert(
    fc.property(fc.json(), (text) => {
      expect(JSON.parse(stringify(parse(text)))).toEqual(JSON.parse(text))
    }),
  )
})

test('parse takes no text that JSON.parse refuses', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...'{}[]":,0123456789.eE+-\\u tfnrulase\n') }), (text) => {
      try {
        parse(text)
      } catch {
        return
      }
      JSON.parse(text)
    }),
    { numRuns: 2000 },
  )
})

test('same tells values apart by what is written, not by the order of keys', () => {
  expect(same(parse('{"a":1,"b":[2,null]}'), parse('{"b":[2,null],"a":1}'))).toBe(true)
  for (const [a, b] of [
    ['1', '1.0'],
    ['9007199254740993', '9007199254740992'],
    ['""', 'null'],
    ['[]', '{}'],
    ['{"a":null}', '{"b":null}'],
    ['{"__proto__":null}', '{}'],
    ['[1]', '[1,1]'],
    ['0', '-0'],
  ]) {
    expect(same(parse(a!), parse(b!)), `${a} and ${b}`).toBe(false)
  }
  expect(same(new Exact('1e400'), new Exact('1e400'))).toBe(true)
})
