// What a JSON Schema says about one place of a value, as far as a form can show it. A schema comes from outside: it may
// be wrong, refer to itself or contradict itself. Nothing here changes a value.

import { Exact, fromEntries, isObject, type Json, type JsonObject, keys, same } from '../lib/json'
import { get } from '../lib/pointer'

export type Type = 'string' | 'number' | 'integer' | 'boolean' | 'null' | 'array' | 'object'

// Shape is a schema without references, allOf and nullable unions. It is opaque where these cannot be put together, and
// where nothing is known.
export interface Shape {
  schema: JsonObject
  types: Type[]
  nullable: boolean
  opaque: boolean
  options?: Option[]
  variants?: Variant[]
}

export interface Option {
  value: Json
  label: string | undefined
}

// Variant is one of the schemas of oneOf or anyOf.
export interface Variant {
  label: string
  schema: Json
  tag?: { name: string; value: Json }
}

const typeNames: readonly string[] = ['string', 'number', 'integer', 'boolean', 'null', 'array', 'object']
const unknown: Shape = { schema: {}, types: [], nullable: false, opaque: true }

// typeOf returns the type of a value. A number is never an integer here: shapes that take an integer take numbers in
// forms.
export function typeOf(value: Json): Type {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  if (value instanceof Exact || typeof value === 'number') return 'number'
  if (typeof value === 'object') return 'object'
  return typeof value as 'string' | 'boolean'
}

// text returns a member of a schema that should be a text.
export function text(schema: JsonObject, name: string): string | undefined {
  const value = member(schema, name)
  return typeof value === 'string' ? value : undefined
}

// member returns a member of an object, and undefined where it has none of that name.
export function member(object: JsonObject, name: string): Json | undefined {
  return Object.hasOwn(object, name) ? object[name] : undefined
}

// list returns a member of a schema that should be a list.
export function list(schema: JsonObject, name: string): Json[] {
  const value = member(schema, name)
  return Array.isArray(value) ? value : []
}

// Work bounds what is looked at for one shape: a schema may lead to itself, and more than once at each step.
interface Work {
  root: Json
  left: number
}

// shapeOf returns what a schema says, with references looked up in root.
export function shapeOf(schema: Json | undefined, root: Json): Shape {
  return shape(schema, { root, left: 500 })
}

function shape(schema: Json | undefined, work: Work): Shape {
  const merged = merge(schema, work)
  if (!merged) return unknown
  const types = typesOf(merged)
  const nullable = types.includes('null')
  const plain: Shape = { schema: merged, types: types.filter((type) => type !== 'null'), nullable, opaque: false }
  const choices = member(merged, 'const') !== undefined ? [merged.const!] : list(merged, 'enum')
  if (choices.length) {
    const scalars = choices.every((v) => v === null || typeof v !== 'object' || v instanceof Exact)
    return {
      ...plain,
      nullable: nullable || choices.includes(null),
      opaque: !scalars,
      options: choices.map((value) => ({ value, label: undefined })),
    }
  }
  const union = [...list(merged, 'oneOf'), ...list(merged, 'anyOf')]
  if (union.length) return unite(plain, union, work)
  if (plain.types.length < 2) return plain
  return { ...plain, variants: plain.types.map((type) => ({ label: type, schema: { ...merged, type } })) }
}

function typesOf(schema: JsonObject): Type[] {
  const type = member(schema, 'type')
  const given = (Array.isArray(type) ? type : [type]).filter(
    (t): t is Type => typeof t === 'string' && typeNames.includes(t),
  )
  if (type !== undefined) return given.includes('number') ? given.filter((t) => t !== 'integer') : given
  if (isObject(member(schema, 'properties'))) return ['object']
  return member(schema, 'items') !== undefined || member(schema, 'prefixItems') !== undefined ? ['array'] : []
}

// merge returns a schema with $ref and allOf put together, or undefined where that is not plain.
function merge(schema: Json | undefined, work: Work): JsonObject | undefined {
  if (schema === true) return {}
  if (!isObject(schema) || work.left-- <= 0) return undefined
  const reference = member(schema, '$ref') ?? member(schema, '$dynamicRef')
  const parts: (Json | undefined)[] = [...list(schema, 'allOf')]
  if (reference !== undefined) parts.push(refer(reference, work.root))
  const own = without(schema, ['$ref', '$dynamicRef', 'allOf'])
  let result: JsonObject | undefined = own
  for (const part of parts) {
    const other = merge(part, work)
    result = result && other && both(result, other)
  }
  return result
}

function refer(reference: Json, root: Json): Json | undefined {
  if (typeof reference !== 'string' || !/^#(?:\/|$)/.test(reference)) return undefined
  try {
    return get(root, decodeURIComponent(reference.slice(1)))
  } catch {
    return undefined
  }
}

export function without(object: JsonObject, names: readonly string[]): JsonObject {
  return fromEntries(
    keys(object)
      .filter((key) => !names.includes(key))
      .map((key) => [key, object[key]!] as const),
  )
}

// describing are the keywords of which the outer one counts, because they bind nothing.
const describing = [
  'title',
  'description',
  '$schema',
  '$id',
  '$defs',
  'definitions',
  'examples',
  'default',
  '$comment',
  'deprecated',
]

// both returns what two schemas say together, or undefined where they say different things of one keyword.
function both(a: JsonObject, b: JsonObject): JsonObject | undefined {
  const entries = new Map(keys(a).map((key) => [key, a[key]!]))
  for (const key of keys(b)) {
    const [mine, other] = [entries.get(key), b[key]!]
    if (mine === undefined) entries.set(key, other)
    else if (key === 'properties' && isObject(mine) && isObject(other)) entries.set(key, properties(mine, other))
    else if (key === 'required' && Array.isArray(mine) && Array.isArray(other)) entries.set(key, [...mine, ...other])
    else if (!describing.includes(key) && !same(mine, other)) return undefined
  }
  return fromEntries([...entries])
}

function properties(a: JsonObject, b: JsonObject): JsonObject {
  const names = [...keys(a), ...keys(b).filter((name) => !Object.hasOwn(a, name))]
  const one = (name: string): Json => {
    const [mine, other] = [member(a, name), member(b, name)]
    return mine === undefined ? other! : other === undefined ? mine : { allOf: [mine, other] }
  }
  return fromEntries(names.map((name) => [name, one(name)] as const))
}

// unite puts a union on a shape: a choice where every variant is a constant, nothing more than nullable where one is
// null, and else variants.
function unite(plain: Shape, union: Json[], work: Work): Shape {
  const outer = without(plain.schema, ['oneOf', 'anyOf'])
  const merged = union.map((variant) => merge(variant, work)).map((variant) => variant && both(outer, variant))
  if (merged.some((variant) => variant === undefined)) return { ...plain, opaque: true }
  const rest = (merged as JsonObject[]).filter(
    (variant) => text(variant, 'type') !== 'null' && member(variant, 'const') !== null,
  )
  const nullable = plain.nullable || rest.length < merged.length
  if (rest.length === 1) {
    const only = shape(rest[0], work)
    return { ...only, nullable: only.nullable || nullable }
  }
  const constants = rest.filter((variant) => member(variant, 'const') !== undefined)
  if (rest.length && constants.length === rest.length) {
    return {
      ...plain,
      nullable,
      options: rest.map((variant) => ({ value: variant.const!, label: text(variant, 'title') })),
    }
  }
  return { ...plain, nullable, variants: tagged(rest, work) }
}

// tagged names variants: by a property that is another constant in each of them, or by title.
function tagged(variants: JsonObject[], work: Work): Variant[] {
  const constant = (variant: JsonObject, name: string) => {
    const schema = isObject(member(variant, 'properties'))
      ? merge(member(variant.properties as JsonObject, name), work)
      : undefined
    const options = schema && (member(schema, 'const') !== undefined ? [schema.const!] : list(schema, 'enum'))
    return options?.length === 1 && (options[0] === null || typeof options[0] !== 'object') ? options[0] : undefined
  }
  const candidates = isObject(variants[0] && member(variants[0], 'properties'))
    ? keys(variants[0]!.properties as JsonObject)
    : []
  const name = candidates.find((n) => {
    const values = variants.map((variant) => constant(variant, n))
    return values.every((v, i) => v !== undefined && values.indexOf(v) === i)
  })
  return variants.map((schema, i) => {
    const value = name === undefined ? undefined : constant(schema, name)
    const label =
      text(schema, 'title') ?? (value === undefined ? (text(schema, 'type') ?? `variant ${i + 1}`) : String(value))
    return value === undefined || name === undefined ? { label, schema } : { label, schema, tag: { name, value } }
  })
}

// variantOf returns the index of the variant that a value is, or undefined where that cannot be told.
export function variantOf(variants: readonly Variant[], value: Json, root: Json): number | undefined {
  const fitting = variants.flatMap((variant, i) => {
    if (variant.tag) return isObject(value) && same(member(value, variant.tag.name), variant.tag.value) ? [i] : []
    const shape = shapeOf(variant.schema, root)
    return !shape.types.length || takes(shape, value) || shape.opaque ? [i] : []
  })
  if (fitting.length < 2 || !isObject(value)) return fitting.length === 1 ? fitting[0] : undefined
  const named = fitting.filter((i) => names(shapeOf(variants[i]!.schema, root), value))
  return named.length === 1 ? named[0] : undefined
}

// names reports whether a shape names all members of an object, and requires no other.
function names({ schema, opaque }: Shape, value: JsonObject): boolean {
  const properties = member(schema, 'properties')
  if (opaque || !isObject(properties)) return false
  const required = list(schema, 'required').every((name) => typeof name === 'string' && Object.hasOwn(value, name))
  return required && keys(value).every((name) => Object.hasOwn(properties, name))
}

// takes reports whether a shape has the type of a value.
export function takes(shape: Shape, value: Json): boolean {
  const type = typeOf(value)
  if (type === 'null') return shape.nullable
  return shape.types.includes(type) || (type === 'number' && shape.types.includes('integer'))
}
