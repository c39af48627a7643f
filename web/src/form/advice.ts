// Advice on whether a value fits a schema, before the server says so. It must never be stricter than the server: what
// the browser would judge otherwise (formats, patterns, numbers that are not exact here) is not asked.
import { type Schema, type SchemaDraft, Validator } from '@cfworker/json-schema'
import { Exact, fromEntries, isObject, type Json, type JsonObject, keys } from '../lib/json'
import { join } from '../lib/pointer'
import { text } from './schema'

// Advice is what does not fit, by the pointer of the place.
export interface Advice {
  pointer: string
  detail: string
}

const drafts: [string, SchemaDraft][] = [
  ['draft-04', '4'],
  ['draft-06', '7'],
  ['draft-07', '7'],
  ['2019-09', '2019-09'],
]

// advisor returns the function that advises on values of a schema, and one without any advice where the schema cannot
// be used here.
export function advisor(schema: Json | undefined): (value: Json) => Advice[] {
  try {
    const { schema: loose } = loosen(schema ?? {})
    const named = isObject(schema) ? (text(schema, '$schema') ?? '') : ''
    const draft = drafts.find(([part]) => named.includes(part))?.[1] ?? '2020-12'
    const validator = new Validator(inexact(loose) as Schema | boolean, draft, false)
    return (value) => advise(validator, value)
  } catch {
    return () => []
  }
}

// outer are keywords that only repeat what is said of a place inside.
const outer = new Set([
  'properties',
  'items',
  'prefixItems',
  'additionalItems',
  '$ref',
  '$dynamicRef',
  'allOf',
  'if',
  'then',
  'else',
  'dependentSchemas',
  'patternProperties',
  'propertyNames',
  'contains',
])

function advise(validator: Validator, value: Json): Advice[] {
  try {
    const exact = inexactPlaces(value, '')
    const errors = validator.validate(inexact(value)).errors
    const places = errors.map((error) => ({ ...error, pointer: decodeURI(error.instanceLocation.replace(/^#/, '')) }))
    const said = places.filter((e) => {
      const inside = places.some((other) => other.pointer.startsWith(`${e.pointer}/`))
      if (outer.has(e.keyword) || /\/(?:any|one)Of\//.test(e.keywordLocation)) return false
      if (/^(?:additional|unevaluated)/.test(e.keyword)) return !inside
      return e.keyword === 'type' || !exact.has(e.pointer)
    })
    const known = new Set<string>()
    return said
      .map(({ pointer, error, keyword }) => ({
        pointer,
        detail: keyword === 'false' ? 'is not an argument of the tool' : error,
      }))
      .filter(({ pointer, detail }) => !known.has(pointer + detail) && known.add(pointer + detail))
  } catch {
    return []
  }
}

// inexact returns a value with JavaScript's numbers. `__proto__` is left out, which the library would assign.
function inexact(value: Json): unknown {
  if (value instanceof Exact) return Number(value.text)
  if (Array.isArray(value)) return value.map(inexact)
  if (!isObject(value)) return value
  return Object.fromEntries(
    keys(value)
      .filter((key) => key !== '__proto__')
      .map((key) => [key, inexact(value[key]!)]),
  )
}

// inexactPlaces returns the pointers of all that has numbers which are not exact here.
function inexactPlaces(value: Json, pointer: string): Set<string> {
  if (value instanceof Exact) return new Set([pointer])
  const parts: [string | number, Json][] = Array.isArray(value)
    ? [...value.entries()]
    : isObject(value)
      ? keys(value).map((key) => [key, value[key]!])
      : []
  const places = new Set(parts.flatMap(([name, part]) => [...inexactPlaces(part, join(pointer, name))]))
  return places.size ? places.add(pointer) : places
}

interface Loose {
  schema: Json
  // less says that the schema takes more than it did.
  less: boolean
}

const dropped = new Set([
  'format',
  'pattern',
  'patternProperties',
  'multipleOf',
  'contentMediaType',
  'contentEncoding',
  'contentSchema',
  '$id',
  'id',
])
const one = new Set([
  'items',
  'additionalItems',
  'additionalProperties',
  'unevaluatedItems',
  'unevaluatedProperties',
  'propertyNames',
  'contains',
  'then',
  'else',
  'not',
  'if',
])
const many = new Set(['allOf', 'anyOf', 'oneOf', 'prefixItems', 'items'])
const named = new Set(['properties', '$defs', 'definitions', 'dependentSchemas'])

// loosen leaves out what is not asked here. Where taking more inside would mean taking less outside, the keyword around
// it goes too.
function loosen(schema: Json): Loose {
  if (!isObject(schema)) return { schema, less: false }
  const entries: [string, Json][] = []
  let less = false
  const inside = (part: Json) => {
    const loose = loosen(part)
    less ||= loose.less
    return loose
  }
  for (const key of keys(schema)) {
    const value = schema[key]!
    if (dropped.has(key)) less = true
    else if (many.has(key) && Array.isArray(value)) {
      const parts = value.map(inside)
      entries.push([
        key === 'oneOf' && parts.some((part) => part.less) ? 'anyOf' : key,
        parts.map((part) => part.schema),
      ])
    } else if (named.has(key) && isObject(value)) {
      entries.push([key, fromEntries(keys(value).map((name) => [name, inside(value[name]!).schema] as const))])
    } else if (one.has(key)) {
      const part = inside(value)
      if (!(part.less && (key === 'not' || key === 'if'))) entries.push([key, part.schema])
    } else if (!((key === 'const' || key === 'enum') && inexactPlaces(value, '').size)) entries.push([key, value])
    else less = true
  }
  return { schema: fromEntries(consistent(entries, schema)), less: less || Object.hasOwn(schema, '$ref') }
}

// consistent leaves out keywords that mean something else without those beside them that were dropped, and the second
// of two unions under one name.
function consistent(entries: [string, Json][], schema: JsonObject): [string, Json][] {
  const names = new Set(entries.map(([key]) => key))
  const seen = new Set<string>()
  return entries.filter(([key]) => {
    if (seen.has(key)) return false
    seen.add(key)
    if (/^(?:additional|unevaluated)Properties$/.test(key)) return !Object.hasOwn(schema, 'patternProperties')
    if (key === 'unevaluatedItems') return !Object.hasOwn(schema, 'contains')
    return (key !== 'then' && key !== 'else') || names.has('if')
  })
}
