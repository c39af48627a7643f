// plan makes fields of a schema and a value. Every part of the value is in exactly one field, as it is: what a schema
// does not describe, or describes otherwise, is a field of JSON text.

import { Exact, isObject, type Json, type JsonObject, keys, same, stringify } from '../lib/json'
import { join } from '../lib/pointer'
import { hides } from '../lib/text'
import { list, member, type Option, type Shape, shapeOf, takes, text, typeOf, type Variant, variantOf } from './schema'
import { columnsOf, first, isLine } from './table'

export type Kind =
  | 'text'
  | 'escaped'
  | 'number'
  | 'boolean'
  | 'choice'
  | 'const'
  | 'null'
  | 'object'
  | 'list'
  | 'json'
  | 'line'
  | 'table'

// Field is one place of a value. A field without a value is not sent.
export interface Field {
  pointer: string
  name: string
  kind: Kind
  // writes is the kind of field in which a new value is written.
  writes: Kind
  value: Json | undefined
  title: string | undefined
  description: string | undefined
  hints: string[]
  required: boolean
  nullable: boolean
  // known says that the schema names the field. What it does not name can be removed, but has no description.
  known: boolean
  options: Option[]
  variants: Variant[]
  variant: number | undefined
  // schema is what a new value is made of, and item that of a new element.
  schema: Json
  item: Json | undefined
  open: boolean
  // long says that the text of the field is one that is written in several lines.
  long: boolean
  children: Field[]
  // columns are those of a table.
  columns: string[]
  first: string[]
}

const maxDepth = 6
const maxFields = 200

interface Place {
  pointer: string
  name: string
  required: boolean
  known: boolean
}

interface Work {
  root: Json
  left: number
  // reading makes lines and tables of lists.
  reading: boolean
  chosen: Chosen
}

// Chosen are the variants that a person chose for values that are still open, by pointer.
export type Chosen = ReadonlyMap<string, number>
const none: Chosen = new Map()

// plan returns the field of a whole value, to change.
export function plan(schema: Json | undefined, value: Json, chosen = none): Field {
  return whole(schema ?? {}, value, false, chosen)
}

// planned has the fields of the values that are read: several parts of the page show the same one.
const planned = new WeakMap<object, { schema: Json | undefined; field: Field }>()

// fieldsOf returns the field of a whole value, to read: a list is a line or a table where it can be.
export function fieldsOf(schema: Json | undefined, value: Json): Field {
  if (value === null || typeof value !== 'object') return whole(schema ?? {}, value, true, none)
  const known = planned.get(value)
  if (known && known.schema === schema) return known.field
  const field = whole(schema ?? {}, value, true, none)
  planned.set(value, { schema, field })
  return field
}

function whole(root: Json, value: Json, reading: boolean, chosen: Chosen): Field {
  const place = { pointer: '', name: '', required: true, known: true }
  return field(root, value, place, 0, { root, left: maxFields, reading, chosen })
}

// leaves returns the fields without fields inside, in their order.
export function leaves(of: Field): Field[] {
  return of.children.length ? of.children.flatMap(leaves) : [of]
}

function field(schema: Json, value: Json | undefined, place: Place, depth: number, work: Work): Field {
  const { root } = work
  work.left--
  const outer = shapeOf(schema, root)
  const variants = outer.variants ?? []
  const variant =
    value === undefined
      ? undefined
      : (variantOf(variants, value, root) ?? (value === null ? work.chosen.get(place.pointer) : undefined))
  const inner = variant === undefined ? outer : shapeOf(variants[variant]!.schema, root)
  const shape = { ...inner, nullable: inner.nullable || outer.nullable }
  const undecided = variants.length > 0 && variant === undefined
  const plain: Field = {
    ...place,
    kind: kindOf(shape, value, undecided),
    writes: kindOf(shape, undefined, undecided),
    value,
    title: text(outer.schema, 'title') ?? text(shape.schema, 'title'),
    description: text(outer.schema, 'description') ?? text(shape.schema, 'description'),
    hints: hintsOf(shape),
    nullable: shape.nullable,
    options: shape.options ?? [],
    variants,
    variant,
    schema,
    item: undefined,
    open: false,
    long: longIn(shape, place.name),
    children: [],
    columns: [],
    first: [],
  }
  if (value === undefined || (plain.kind !== 'object' && plain.kind !== 'list')) return plain
  if (work.reading && plain.kind === 'list') {
    if (isLine(value)) return { ...plain, kind: 'line' }
    const rows = rowsOf(shape, value, root)
    if (rows) return { ...plain, kind: 'table', ...rows }
  }
  if (depth >= maxDepth || size(value, work.reading) > work.left) return { ...plain, kind: 'json' }
  const child = (name: string | number, s: Json, v: Json | undefined, required: boolean, known: boolean) =>
    field(s, v, { pointer: join(plain.pointer, name), name: String(name), required, known }, depth + 1, work)
  return Array.isArray(value) ? elements(plain, shape, value, child) : members(plain, shape, value as JsonObject, child)
}

type Child = (name: string | number, schema: Json, value: Json | undefined, required: boolean, known: boolean) => Field

function elements(plain: Field, shape: Shape, value: Json[], child: Child): Field {
  const first = list(shape.schema, 'prefixItems')
  const item = member(shape.schema, 'items') ?? {}
  const children = value.map((v, i) => child(i, first[i] ?? item, v, i < first.length, true))
  return { ...plain, children, item: first[value.length] ?? item, open: item !== false || first.length > value.length }
}

function members(plain: Field, shape: Shape, value: JsonObject, child: Child): Field {
  const properties = isObject(shape.schema.properties) ? shape.schema.properties : {}
  const required = list(shape.schema, 'required')
  const further = member(shape.schema, 'additionalProperties')
  // A pattern may describe a key of which properties says nothing, so that what describes it is not known here.
  const rest = isObject(further) && member(shape.schema, 'patternProperties') === undefined ? further : {}
  const named = keys(properties).map((name) =>
    child(name, properties[name]!, member(value, name), required.includes(name), true),
  )
  const others = keys(value)
    .filter((name) => !Object.hasOwn(properties, name))
    .map((name) => child(name, rest, member(value, name), required.includes(name), false))
  return { ...plain, children: [...named, ...others], item: rest, open: further !== false }
}

function kindOf(shape: Shape, value: Json | undefined, undecided: boolean): Kind {
  if (shape.opaque || undecided) return 'json'
  if (value === undefined) return shape.options ? (shape.options.length === 1 ? 'const' : 'choice') : blankKind(shape)
  if (shape.options?.some((option) => same(option.value, value))) return shape.options.length === 1 ? 'const' : 'choice'
  if (value === null) return shape.nullable ? 'null' : 'json'
  if (shape.types.length !== 1 || !takes(shape, value)) return 'json'
  if (typeof value === 'string') return hides(value, 'lines') ? 'escaped' : 'text'
  return blankKind(shape)
}

function blankKind(shape: Shape): Kind {
  if (shape.types.length !== 1) return 'json'
  switch (shape.types[0]!) {
    case 'string':
      return 'text'
    case 'number':
    case 'integer':
      return 'number'
    case 'boolean':
      return 'boolean'
    case 'array':
      return 'list'
    case 'object':
      return 'object'
    case 'null':
      return 'null'
  }
}

// rowsOf returns the columns of a list of objects, in the order of its schema, and those that come first.
function rowsOf(shape: Shape, value: Json, root: Json): Pick<Field, 'columns' | 'first'> | undefined {
  const { schema } = shapeOf(member(shape.schema, 'items') ?? {}, root)
  const properties = member(schema, 'properties')
  const columns = columnsOf(value, isObject(properties) ? keys(properties) : [])
  const required = list(schema, 'required').filter((name) => typeof name === 'string')
  return columns && { columns, first: first(columns, required) }
}

const longNames = new RegExp(
  '(?:^|[_-]|[a-z](?=[A-Z]))' +
    '(?:body|text|message|description|content|comments?|notes?|html|markdown|script|code|query|prompt)$',
  'i',
)

// longIn reports whether texts of a shape are written in several lines, as far as its name and its schema show.
function longIn(shape: Shape, name: string): boolean {
  const most = member(shape.schema, 'maxLength')
  if (text(shape.schema, 'format') || (typeof most === 'number' && most <= 120)) return false
  return longNames.test(name) || (typeof most === 'number' && most > 500)
}

// size counts the parts of a value, up to the bound of a form. A line and a table are one part.
function size(value: Json, reading: boolean): number {
  if (value === null || typeof value !== 'object' || value instanceof Exact) return 1
  if (reading && (isLine(value) || columnsOf(value, []))) return 1
  const parts: Json[] = Array.isArray(value) ? value : Object.values(value)
  let sum = 1
  for (const part of parts) {
    sum += size(part, reading)
    if (sum > maxFields) return sum
  }
  return sum
}

// hintsOf says in words what a schema asks, for people to know; the server decides.
function hintsOf(shape: Shape): string[] {
  const s = shape.schema
  const limit = (name: string, words: (n: string) => string) => {
    const n = member(s, name)
    return typeof n === 'number' || n instanceof Exact ? [words(stringify(n))] : []
  }
  const word = (name: string, words: string) => (text(s, name) === undefined ? [] : [`${words} ${text(s, name)}`])
  return [
    ...(shape.types.length || shape.options ? [] : ['JSON']),
    ...word('format', 'format'),
    ...word('pattern', 'pattern'),
    ...limit('minLength', (n) => `${n} characters or more`),
    ...limit('maxLength', (n) => `${n} characters at most`),
    ...limit('minimum', (n) => `${n} or more`),
    ...limit('exclusiveMinimum', (n) => `more than ${n}`),
    ...limit('maximum', (n) => `${n} or less`),
    ...limit('exclusiveMaximum', (n) => `less than ${n}`),
    ...limit('multipleOf', (n) => `a multiple of ${n}`),
    ...limit('minItems', (n) => `${n} entries or more`),
    ...limit('maxItems', (n) => `${n} entries at most`),
  ]
}

// face returns the text that a field without fields inside shows of its value.
export function face(of: Field): string {
  if (of.value === undefined) return ''
  if (of.kind === 'text') return of.value as string
  if (of.kind === 'escaped') return escaped(of.value as string)
  return stringify(of.value, of.kind === 'json' ? 2 : 0)
}

// read returns the value that a text of a field means, or what is wrong with the text.
export function read(kind: Kind, typed: string, parse: (text: string) => Json): { value: Json } | { problem: string } {
  if (kind === 'text') return { value: typed }
  try {
    if (kind === 'escaped') return { value: parse(`"${typed.replaceAll('\n', '\\n').replaceAll('\t', '\\t')}"`) }
    const value = parse(typed)
    return kind === 'number' && typeOf(value) !== 'number' ? { problem: 'is not a number' } : { value }
  } catch (error) {
    if (kind === 'number') return { problem: typed.trim() === '' ? 'needs a number' : 'is not a number' }
    if (kind === 'escaped') return { problem: 'has a quote or a backslash that is not escaped; write \\" and \\\\' }
    return { problem: `is not JSON: ${error instanceof Error ? error.message : ''}` }
  }
}

// escaped writes a text as the inside of a JSON text, where every character that does not show is an escape. Line
// breaks and tabs stay.
export function escaped(value: string): string {
  const inside = JSON.stringify(value)
    .slice(1, -1)
    .replaceAll(/\\(?:n|t|.)/g, (e) => (e === '\\n' ? '\n' : e === '\\t' ? '\t' : e))
  return [...inside]
    .map((c) =>
      hides(c, 'lines')
        ? [...Array(c.length).keys()].map((i) => `\\u${c.charCodeAt(i).toString(16).padStart(4, '0')}`).join('')
        : c,
    )
    .join('')
}
