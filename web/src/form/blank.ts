// blank makes the value of a field that a person adds.
import type { Json } from '../lib/json'
import { shapeOf } from './schema'

// Blank is a value and the pointers into it that a person still has to fill in.
export interface Blank {
  value: Json
  open: string[]
}

// blank returns the emptiest value of a schema: a text, list or object is empty, a constant is itself, and anything
// else is to be filled in.
export function blank(schema: Json, root: Json): Blank {
  const shape = shapeOf(schema, root)
  const [only, second] = shape.options ?? []
  if (only && !second) return { value: only.value, open: [] }
  if (shape.opaque || shape.options || shape.types.length !== 1) return { value: null, open: [''] }
  switch (shape.types[0]) {
    case 'string':
      return { value: '', open: [] }
    case 'array':
      return { value: [], open: [] }
    case 'object':
      return { value: {}, open: [] }
    default:
      return { value: null, open: [''] }
  }
}
