// Random JSON texts and schemas, for tests only.
import fc from 'fast-check'
import { type Json, stringify } from '../lib/json'

const poison = [
  '\u202e',
  '\u200b',
  '\u{e0041}',
  '\ufeff',
  '\r\n',
  '\u0000',
  '__proto__',
  'constructor',
  '10',
  '2',
  '',
  'a/b',
  '~',
  '<img src=x onerror=alert(1)>',
  '[x](javascript:y)',
]
export const name = fc.oneof(
  fc.constantFrom('a', 'b', 'to', 'body', 'amount', ...poison),
  fc.string({ unit: 'binary', maxLength: 8 }),
)
export const word = fc.oneof(name, fc.string({ unit: 'binary', maxLength: 40 }), fc.constant('x'.repeat(3000)))
const number = fc.constantFrom(
  '0',
  '-0',
  '1',
  '1.0',
  '-12.50',
  '9007199254740993',
  '1e400',
  '1E+2',
  '123456789012345678901234567890.5',
)

const { value } = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    number,
    word.map((text) => stringify(text)),
    fc.constantFrom('null', 'true', 'false', '""', '[]', '{}'),
    fc.array(tie('value'), { maxLength: 4 }).map((items) => `[${items.join(',')}]`),
    fc.uniqueArray(fc.tuple(name, tie('value')), { maxLength: 5, selector: ([key]) => key }).map(members),
  ),
}))

function members(entries: [string, string][]): string {
  return `{${entries.map(([key, text]) => `${JSON.stringify(key)}:${text}`).join(',')}}`
}

// anyText is the text of any JSON value, as stringify writes values.
export const anyText = value

// anyArgs is the text of any JSON object.
export const anyArgs = fc.uniqueArray(fc.tuple(name, value), { maxLength: 6, selector: ([key]) => key }).map(members)

const leaf: fc.Arbitrary<Json> = fc.oneof(
  fc.record({ type: fc.constantFrom('string', 'number', 'integer', 'boolean', 'null', 'odd') }),
  fc.record({
    type: fc.constant('string'),
    format: fc.constantFrom('email', 'date-time', 'uri', 'x'),
    maxLength: fc.nat(5000),
    pattern: fc.constantFrom('^a', '(', '(a+)+$'),
  }),
  fc.record({ type: fc.array(fc.constantFrom('string', 'integer', 'null', 'object', 'array'), { maxLength: 3 }) }),
  fc.record({ enum: fc.array(fc.oneof(word, fc.constantFrom(1, null, true, 2.5)), { maxLength: 4 }) }),
  fc.record({ const: fc.oneof(word, fc.integer(), fc.constant(null)) }),
  fc.record({
    $ref: fc.constantFrom('#', '#/$defs/a', '#/$defs/b', '#/$defs/none', 'https://example.org/x', '#/properties/a'),
  }),
  fc.record({ default: word }),
  fc.constantFrom<Json>({}, true, false, null, 3, 'x', []),
)

const schemas = fc.letrec<{ schema: Json }>((tie) => {
  const schema = tie('schema')
  return {
    schema: fc.oneof(
      { depthSize: 'small' },
      leaf,
      fc.record(
        { type: fc.constant('array'), items: schema, prefixItems: fc.array(schema, { maxLength: 2 }) },
        { requiredKeys: ['type'] },
      ),
      fc.record({ oneOf: fc.array(schema, { maxLength: 3 }) }),
      fc.record({ anyOf: fc.array(schema, { maxLength: 3 }), title: word }),
      fc.record({ allOf: fc.array(schema, { maxLength: 3 }) }),
      fc.record(
        {
          type: fc.constantFrom<Json>('object', ['object', 'null']),
          properties: fc.dictionary(name, schema, { maxKeys: 5, noNullPrototype: true }) as fc.Arbitrary<Json>,
          required: fc.array(name, { maxLength: 3 }),
          additionalProperties: fc.oneof(schema, fc.boolean()),
          patternProperties: fc.constant({ '^x': { type: 'string' } }),
          $defs: fc.record({ a: schema, b: schema }),
        },
        { requiredKeys: [] },
      ),
    ) as fc.Arbitrary<Json>,
  }
})

// anySchema is a schema, or something that stands where a schema should.
export const anySchema = schemas.schema
