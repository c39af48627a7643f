import fc from 'fast-check'
import { expect, test } from 'vitest'
import { fromEntries, isObject, type Json, keys, parse, stringify } from '../lib/json'
import { below, diff, get } from '../lib/pointer'
import { advisor } from './advice'
import { add, draftOf, put, take, type } from './draft'
import { type Field, face, fieldsOf, leaves, plan, read } from './plan'
import { anyArgs, anySchema } from './random'
import { words } from './text'

// rebuilt puts a value together from nothing but what the fields show.
function rebuilt(of: Field): Json {
  const sent = of.children.filter((child) => child.value !== undefined)
  if (Array.isArray(of.value) && of.kind === 'list') return sent.map(rebuilt)
  if (isObject(of.value) && of.kind === 'object')
    return fromEntries(keys(of.value).map((key) => [key, rebuilt(sent.find((child) => child.name === key)!)] as const))
  const result = read(of.kind === 'choice' || of.kind === 'const' ? 'json' : of.kind, face(of), parse)
  if ('problem' in result) throw new Error(`${of.pointer} ${result.problem}`)
  return result.value
}

const schemaOf = (text: string) => parse(text)
const kinds = (schema: string, value: string) =>
  Object.fromEntries(
    leaves(plan(schemaOf(schema), parse(value))).map((f) => [
      f.pointer,
      f.value === undefined ? `${f.kind}, not sent` : f.kind,
    ]),
  )

test('what the fields show is all of the value, digit for digit, whatever the schema says', () => {
  fc.assert(
    fc.property(anySchema, anyArgs, (schema, args) => {
      expect(stringify(rebuilt(plan(schema, parse(args))))).toBe(args)
    }),
    { numRuns: 200 },
  )
})

test('lines and tables are all of a list', () => {
  fc.assert(
    fc.property(anySchema, anyArgs, (schema, args) => {
      expect(stringify(rebuilt(fieldsOf(schema, parse(args))))).toBe(args)
    }),
    { numRuns: 150 },
  )
})

test('writing into a field what it shows changes nothing', () => {
  fc.assert(
    fc.property(anySchema, anyArgs, (schema, args) => {
      for (const leaf of leaves(plan(schema, parse(args)))) {
        if (leaf.value === undefined || leaf.kind === 'choice' || leaf.kind === 'const') continue
        const draft = type(draftOf(parse(args)), leaf.pointer, leaf.kind, face(leaf))
        expect(draft.typed).toEqual({})
        expect(stringify(draft.args)).toBe(args)
      }
    }),
    { numRuns: 150 },
  )
})

test('a change of one field changes its place and nothing else', () => {
  fc.assert(
    fc.property(anySchema, anyArgs, fc.nat(), (schema, args, at) => {
      const was = parse(args)
      const fields = leaves(plan(schema, was))
      const leaf = fields[at % fields.length]!
      if (leaf.pointer === '') return
      const next =
        leaf.value === undefined ? add(draftOf(was), leaf, schema) : put(draftOf(was), leaf.pointer, 'changed')
      expect(diff(was, next.args).filter((change) => !below(change.pointer, leaf.pointer))).toEqual([])
      if (leaf.value === undefined) expect(stringify(take(next, leaf.pointer).args)).toBe(args)
    }),
    { numRuns: 200 },
  )
})

test('advice never throws', () => {
  fc.assert(
    fc.property(anySchema, anyArgs, (schema, args) => void advisor(schema)(parse(args))),
    { numRuns: 200 },
  )
})

test('absent, empty, null and [] are four fields', () => {
  const schema = `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":["string","null"]},
    "c":{"type":"array","items":{"type":"string"}},"d":{"type":"string"},"e":{"type":"integer"},
    "f":{"type":"boolean"}}}`
  expect(kinds(schema, '{"b":null,"c":[],"d":"","e":9007199254740993,"x":1}')).toEqual({
    '/a': 'text, not sent',
    '/b': 'null',
    '/c': 'list',
    '/d': 'text',
    '/e': 'number',
    '/f': 'boolean, not sent',
    '/x': 'json',
  })
})

test('what a schema describes otherwise is JSON text', () => {
  const schema = `{"type":"object","properties":{"n":{"type":"integer"},"s":{"type":"string"},
    "o":{"type":"object"},"u":{"type":["string","integer"]},"r":{"$ref":"#/nowhere"}}}`
  expect(kinds(schema, '{"n":"5","s":5,"o":[],"u":"5","r":"x"}')).toEqual({
    '/n': 'json',
    '/s': 'json',
    '/o': 'json',
    '/u': 'text',
    '/r': 'json',
  })
  expect(kinds('null', '{"a":1}')).toEqual({ '': 'json' })
})

test('references, allOf, nullable and unions are told apart', () => {
  const schema = `{"type":"object","$defs":{"mail":{"type":"string","title":"Mail","format":"email"},
      "tree":{"type":"object","properties":{"next":{"$ref":"#/$defs/tree"},"v":{"type":"integer"}}}},
    "properties":{"to":{"$ref":"#/$defs/mail"},
    "both":{"allOf":[{"type":"object","properties":{"a":{"type":"string"}}},{"properties":{"b":{"type":"integer"}}}]},
    "maybe":{"anyOf":[{"type":"string"},{"type":"null"}]},"how":{"oneOf":[{"const":"a","title":"First"},{"const":"b"}]},
    "fixed":{"const":"v1"},"pick":{"enum":["x",1]},
    "who":{"oneOf":[
      {"type":"object","title":"Person","properties":{"kind":{"const":"person"},"name":{"type":"string"}}},
      {"type":"object","properties":{"kind":{"const":"group"},"size":{"type":"integer"}}}]},
    "any":{"oneOf":[{"type":"object","properties":{"a":{"type":"string"}}},
      {"type":"object","properties":{"b":{"type":"string"}}}]},"tree":{"$ref":"#/$defs/tree"}}}`
  const value = `{"to":"a@b","both":{"a":"","b":1},"maybe":null,"how":"b","fixed":"v1","pick":1,
    "who":{"kind":"group","size":3},"any":{"a":"x"},
    "tree":{"next":{"next":{"next":{"next":{"next":{"next":{"next":{"v":1}}}}}}}}}`
  const found = kinds(schema, value)
  expect(found).toMatchObject({
    '/to': 'text',
    '/both/a': 'text',
    '/both/b': 'number',
    '/maybe': 'null',
    '/how': 'choice',
    '/fixed': 'const',
    '/pick': 'choice',
    '/who/kind': 'const',
    '/who/size': 'number',
    '/any/a': 'text',
  })
  expect(found['/tree/next/next/next/next/next']).toBe('json')
  const fields = plan(schemaOf(schema), parse(value)).children
  expect(fields.find((f) => f.name === 'to')).toMatchObject({ title: 'Mail', hints: ['format email'] })
  expect(fields.find((f) => f.name === 'how')!.options).toEqual([
    { value: 'a', label: 'First' },
    { value: 'b', label: undefined },
  ])
  expect(fields.find((f) => f.name === 'who')).toMatchObject({ variant: 1 })
})

test('a value of more than 200 parts is JSON text', () => {
  const value = `{"a":[${Array.from({ length: 300 }, (_, i) => i).join(',')}],"b":"x"}`
  const schema =
    '{"type":"object","properties":{"a":{"type":"array","items":{"type":"integer"}},"b":{"type":"string"}}}'
  expect(kinds(schema, value)).toEqual({ '': 'json' })
})

test('characters that do not show are edited as escapes', () => {
  const text = 'Invoice\u202e 117\r\nline \\n "x"\ttab \u{e0041}'
  const leaf = leaves(plan({ type: 'object', properties: { s: { type: 'string' } } }, { s: text }))[0]!
  expect(leaf.kind).toBe('escaped')
  expect(face(leaf)).toBe('Invoice\\u202e 117\\r\nline \\\\n \\"x\\"\ttab \\udb40\\udc41')
  expect(read('escaped', face(leaf), parse)).toEqual({ value: text })
  expect(read('escaped', 'a " b', parse)).toHaveProperty('problem')
})

test('a text that is no value yet is kept, and the value stays', () => {
  const was = draftOf(parse('{"n":9007199254740993,"l":[1,2,3]}'))
  const broken = type(type(was, '/n', 'number', '12.'), '/l/2', 'number', 'x')
  expect(stringify(broken.args)).toBe('{"n":9007199254740993,"l":[1,2,3]}')
  expect(broken.typed).toEqual({
    '/n': { text: '12.', problem: 'is not a number' },
    '/l/2': { text: 'x', problem: 'is not a number' },
  })
  expect(Object.keys(take(broken, '/l/0').typed)).toEqual(['/n', '/l/1'])
  expect(type(broken, '/n', 'number', '12.50')).toMatchObject({ args: { n: { text: '12.50' } } })
  expect(Object.keys(take(broken, '/l').typed)).toEqual(['/n'])
})

test('what is added is empty, and what a person must choose is open', () => {
  const schema = schemaOf(
    `{"type":"object","properties":{"s":{"type":"string"},"n":{"type":"integer"},"c":{"enum":["a","b"]},
      "k":{"const":"v"},"l":{"type":"array"},"d":{"type":"string","default":"x"}}}`,
  )
  const fields = plan(schema, {}).children
  const all = fields.reduce((draft, field) => add(draft, field, schema), draftOf({}))
  expect(stringify(all.args)).toBe('{"s":"","n":null,"c":null,"k":"v","l":[],"d":""}')
  expect(Object.keys(all.typed)).toEqual(['/n', '/c'])
  expect(get(put(all, '/c', 'b').args, '/c')).toBe('b')
})

test('advice names the place and is no stricter than the server', () => {
  const schema = schemaOf(
    `{"type":"object","required":["to"],"additionalProperties":false,"properties":{
      "to":{"type":"array","items":{"type":"string","format":"email","maxLength":5}},
      "n":{"type":"integer","maximum":9007199254740992},"p":{"type":"string","pattern":"^(a+)+$"},
      "not":{"not":{"pattern":"x"}},"one":{"oneOf":[{"format":"date"},{"format":"time"}]}}}`,
  )
  const advise = (value: string) => advisor(schema)(parse(value)).map((a) => a.pointer)
  expect(advise('{"to":["abcdef",1],"x":1}')).toEqual(['/to/0', '/to/1', '/x'])
  expect(advise('{}')).toEqual([''])
  expect(advise(`{"to":[],"n":9007199254740993,"p":"${'a'.repeat(60)}b","not":"y","one":"z"}`)).toEqual([])
  expect(advise('{"to":[],"n":1.50}')).toEqual(['/n'])
  expect(advisor({ $ref: 'https://example.org/other' })({})).toEqual([])
})

test('the parts of two texts are the texts, and a change in a long one is found', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'grapheme' }), (was, now) => {
      const parts = words(was, now)
      const side = (other: 'was' | 'now') =>
        parts
          .filter((part) => part.side !== other)
          .map((part) => part.text)
          .join('')
      expect([side('now'), side('was')]).toEqual([was, now])
    }),
  )
  const long = 'All of it. '.repeat(20_000)
  expect(
    words(long, `${long.slice(0, 99_004)}new ${long.slice(99_004)}`).filter((part) => part.side !== 'same'),
  ).toEqual([{ text: 'new ', side: 'now' }])
})
