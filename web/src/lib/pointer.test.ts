import fc from 'fast-check'
import { expect, test } from 'vitest'
import { anyText } from '../form/random'
import { type Json, parse, same, stringify } from './json'
import { diff, differing, get, join, remove, set, tokens } from './pointer'

const changed = (text: string, what: (value: Json) => Json) => stringify(what(parse(text)))

test('set keeps the place of a key, and a new one comes last', () => {
  expect(changed('{"b":1,"2":{"x":[1,2]},"a":3}', (v) => set(v, '/2/x/0', 9))).toBe('{"b":1,"2":{"x":[9,2]},"a":3}')
  expect(changed('{"b":1}', (v) => set(v, '/__proto__', { a: 1 }))).toBe('{"b":1,"__proto__":{"a":1}}')
  expect(changed('{"10":1}', (v) => set(v, '/2', 1))).toBe('{"10":1,"2":1}')
  expect(changed('{}', (v) => set(v, '/a~1b/c~0d', ''))).toBe('{"a/b":{"c~d":""}}')
  expect(changed('{"a":[1]}', (v) => set(v, '/a/-', 2))).toBe('{"a":[1,2]}')
  expect(changed('1', (v) => set(v, '', null))).toBe('null')
})

test('remove tells absent from null and from empty', () => {
  expect(changed('{"a":null,"b":""}', (v) => remove(v, '/a'))).toBe('{"b":""}')
  expect(changed('{"a":[1,2,3]}', (v) => remove(v, '/a/1'))).toBe('{"a":[1,3]}')
  expect(changed('{"a":1}', (v) => remove(v, '/toString'))).toBe('{"a":1}')
  expect(get(parse('{}'), '/__proto__')).toBeUndefined()
  expect(get(parse('{"a":[1]}'), '/a/length')).toBeUndefined()
})

test('diff names what differs and nothing else', () => {
  expect(diff(parse('{"a":1,"b":[1,2],"c":{"d":""}}'), parse('{"a":1.0,"b":[1],"c":{"d":null},"e":[]}'))).toEqual([
    { pointer: '/a', was: 1, now: parse('1.0') },
    { pointer: '/b/1', was: 2, now: undefined },
    { pointer: '/c/d', was: '', now: null },
    { pointer: '/e', was: undefined, now: [] },
  ])
  expect(differing([parse('{"to":"a","n":1}'), parse('{"to":"b","n":1}'), parse('{"to":"a","n":1}')])).toEqual(['/to'])
})

test('applying a diff to one value gives the other', () => {
  fc.assert(
    fc.property(anyText, anyText, (a, b) => {
      const [was, now] = [parse(a), parse(b)]
      // From the last to the first, so that what is removed from a list does not move what is still to be removed.
      const result = diff(was, now)
        .reverse()
        .reduce((v, c) => (c.now === undefined ? remove(v, c.pointer) : v), was)
      return same(
        diff(was, now).reduce((v, c) => (c.now === undefined ? v : set(v, c.pointer, c.now)), result),
        now,
      )
    }),
  )
})

test('what differs in a set is what differs between the first and each other', () => {
  fc.assert(
    fc.property(fc.array(anyText, { minLength: 1, maxLength: 5 }), (texts) => {
      const values = texts.map((text) => parse(text))
      const one = values.flatMap((value) => diff(values[0], value).map((change) => change.pointer))
      expect(new Set(differing(values))).toEqual(new Set(one))
      expect(differing(values)).toHaveLength(new Set(one).size)
    }),
  )
})

test('a pointer leads through the names it was made of', () => {
  fc.assert(
    fc.property(fc.array(fc.string()), (names) => {
      expect(tokens(names.reduce<string>(join, ''))).toEqual(names)
    }),
  )
})
