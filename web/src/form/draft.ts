// A draft is what a person is changing: a value, and the texts in fields that are no value yet.

import { type Json, parse } from '../lib/json'
import { below, get, join, remove, set, tokens } from '../lib/pointer'
import { blank } from './blank'
import { type Field, type Kind, read } from './plan'

export interface Typed {
  text: string
  problem: string
}

export interface Draft {
  args: Json
  typed: Readonly<Record<string, Typed>>
}

export function draftOf(args: Json): Draft {
  return { args, typed: {} }
}

// put sets a value. Texts inside what it replaces are gone.
export function put(draft: Draft, pointer: string, value: Json): Draft {
  return {
    args: set(draft.args, pointer, value),
    typed: keep(draft.typed, (at) => (below(at, pointer) ? undefined : at)),
  }
}

// take removes what is at a pointer: it is then not sent.
export function take(draft: Draft, pointer: string): Draft {
  const parent = pointer.slice(0, pointer.lastIndexOf('/'))
  const list = Array.isArray(get(draft.args, parent))
  const index = Number(tokens(pointer).at(-1))
  const moved = (at: string) => {
    if (below(at, pointer)) return undefined
    if (!list || !at.startsWith(`${parent}/`)) return at
    const [first, ...rest] = at.slice(parent.length + 1).split('/')
    return Number(first) < index ? at : [join(parent, Number(first) - 1), ...rest].join('/')
  }
  return { args: remove(draft.args, pointer), typed: keep(draft.typed, moved) }
}

function keep(typed: Draft['typed'], moved: (pointer: string) => string | undefined): Draft['typed'] {
  return Object.fromEntries(
    Object.entries(typed).flatMap(([at, text]) => {
      const to = moved(at)
      return to === undefined ? [] : [[to, text]]
    }),
  )
}

// type takes the text of a field. A text that is no value is kept as it is typed, and the value stays as it was.
export function type(draft: Draft, pointer: string, kind: Kind, text: string): Draft {
  const result = read(kind, text, parse)
  if ('value' in result) return put(draft, pointer, result.value)
  return { args: draft.args, typed: { ...draft.typed, [pointer]: { text, problem: result.problem } } }
}

// add sends a field that was not sent. Nothing is filled in that a person would have to choose: such a field is empty,
// and the draft does not fit until somebody writes there.
export function add(draft: Draft, field: Pick<Field, 'pointer' | 'kind' | 'schema' | 'options'>, root: Json): Draft {
  const made = blank(field.schema, root)
  const next = put(draft, field.pointer, made.value)
  const typed = Object.fromEntries(made.open.map((at) => [field.pointer + at, { text: '', problem: 'needs a value' }]))
  return { args: next.args, typed: { ...next.typed, ...typed } }
}
