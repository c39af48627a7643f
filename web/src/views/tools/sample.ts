// Arguments that fit a schema well enough to begin with.
import { isObject, type Json, type JsonObject, parse } from '../../lib/json'

const deepest = 4

// sample returns a value of a schema: its example, default, constant or first choice, or else an empty value of its
// type. Of an object it has the required members, of all objects where none is required the first eight.
export function sample(schema: Json | undefined, depth = 0): Json {
  if (!isObject(schema)) return null
  const { examples, enum: choices, type } = schema
  for (const given of [Array.isArray(examples) ? examples[0] : undefined, schema.default, schema.const])
    if (given !== undefined) return given
  if (Array.isArray(choices) && choices[0] !== undefined) return choices[0]
  switch (Array.isArray(type) ? type[0] : (type ?? (schema.properties && 'object'))) {
    case 'string':
      return ''
    case 'integer':
    case 'number':
      return 0
    case 'boolean':
      return false
    case 'array':
      return []
    case 'object':
      return depth < deepest ? members(schema, depth) : {}
    default:
      return depth === 0 ? {} : null
  }
}

function members(schema: JsonObject, depth: number): Json {
  const properties = isObject(schema.properties) ? schema.properties : {}
  const required = Array.isArray(schema.required) ? schema.required : []
  const names = Object.keys(properties)
  const chosen = required.length > 0 ? names.filter((name) => required.includes(name)) : names.slice(0, 8)
  return Object.fromEntries(chosen.map((name) => [name, sample(properties[name], depth + 1)]))
}

// argumentsOf returns the arguments that a text has, or the reason why it has none.
export function argumentsOf(text: string): { args: Json } | { problem: string } {
  try {
    const args = parse(text)
    return isObject(args) ? { args } : { problem: 'Arguments are a JSON object, such as {"to": "ana@example.org"}.' }
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) }
  }
}
