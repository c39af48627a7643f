// Conversion of a value to another variant of a union: it keeps all that the variant can hold, and names the rest.
import { fromEntries, isObject, type Json, keys, numeral, parse, stringify } from '../lib/json'
import { blank } from './blank'
import { member, shapeOf, takes, typeOf, type Variant } from './schema'

export interface Converted {
  value: Json
  // open are the pointers into the value that a person still has to fill in.
  open: string[]
  // lost names the parts that the value no longer has.
  lost: string[]
}

// converted returns a value as another variant of a union.
export function converted(value: Json, to: Variant, root: Json): Converted {
  const shape = shapeOf(to.schema, root)
  const empty = blank(to.schema, root)
  if (shape.options) {
    const same = shape.options.find((o) => stringify(o.value) === stringify(value) || o.value === value)
    return same ? { value: same.value, open: [], lost: [] } : { ...empty, lost: whole(value) }
  }
  if (isObject(value) && shape.types.includes('object')) return members(value, to, root)
  if (takes(shape, value)) return { value, open: [], lost: [] }
  const kept = scalar(value, shape.types, to, root)
  return kept === undefined ? { ...empty, lost: whole(value) } : { value: kept, open: [], lost: [] }
}

// whole names all of a value that is lost; nothing where the value is empty.
function whole(value: Json): string[] {
  const text = typeof value === 'string' ? value : stringify(value)
  return value === null || text === '' || text === '{}' || text === '[]' ? [] : [text.slice(0, 100)]
}

function scalar(value: Json, types: readonly string[], to: Variant, root: Json): Json | undefined {
  const type = typeOf(value)
  if (types.includes('string') && value !== null) return typeof value === 'string' ? value : stringify(value)
  if (types.includes('array') && value !== null) {
    const items = member(shapeOf(to.schema, root).schema, 'items') ?? {}
    const item = shapeOf(items, root)
    if (item.opaque || !item.types.length || takes(item, value)) return [value]
  }
  if (type === 'array' && (value as Json[]).length === 1) {
    const only = (value as Json[])[0]!
    const shape = shapeOf(to.schema, root)
    return takes(shape, only) ? only : undefined
  }
  if (typeof value !== 'string') return undefined
  const text = value.trim()
  if (types.includes('number') || types.includes('integer')) {
    const found = numeral(text)
    if (found !== undefined) return found
  }
  if (types.includes('boolean') && (text === 'true' || text === 'false')) return text === 'true'
  if (!types.includes('object') && !types.includes('array')) return undefined
  try {
    const parsed = parse(text)
    return takes(shapeOf(to.schema, root), parsed) ? parsed : undefined
  } catch {
    return undefined
  }
}

// members keeps the members that the variant takes, and sets the one by which variants are told apart.
function members(value: { [key: string]: Json }, to: Variant, root: Json): Converted {
  const { schema } = shapeOf(to.schema, root)
  const properties = member(schema, 'properties')
  const named = isObject(properties) ? properties : {}
  const further = member(schema, 'additionalProperties') !== false
  const lost: string[] = []
  const kept: [string, Json][] = []
  for (const name of keys(value)) {
    if (name === to.tag?.name) {
      kept.push([name, to.tag.value])
      continue
    }
    const shape = Object.hasOwn(named, name) ? shapeOf(named[name], root) : undefined
    if (shape ? shape.opaque || !shape.types.length || takes(shape, value[name]!) : further)
      kept.push([name, value[name]!])
    else lost.push(name)
  }
  if (to.tag && !Object.hasOwn(value, to.tag.name)) kept.unshift([to.tag.name, to.tag.value])
  return { value: fromEntries(kept), open: [], lost }
}
