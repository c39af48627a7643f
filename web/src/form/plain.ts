// Settings as a form of few fields: texts that a person types, and the value that they make.
import { isObject, type Json, type JsonObject, numeral, parse, stringify } from '../lib/json'
import { get, set } from '../lib/pointer'

export interface PlainField {
  // pointer is where in the value the field is.
  pointer: string
  label: string
  // lines are a list of texts, one a line. check writes true or false, any other field nothing where it is empty.
  kind: 'text' | 'number' | 'choice' | 'check' | 'lines' | 'json'
  choices?: readonly string[]
  hint?: string
  // absent is the label of the choice that writes nothing. With it, a check that is not ticked writes nothing too.
  absent?: string
  // none is the label of a check that writes an empty list, which differs from an absent one.
  none?: string
  required?: boolean
  // secret values are not repeated outside the field.
  secret?: boolean
}

// Draft has the typed texts, by pointer.
export type Draft = Readonly<Record<string, string>>

const noneOf = (pointer: string) => `${pointer} none`

// saysNone reports whether a draft writes an empty list.
export const saysNone = (draft: Draft, pointer: string) => draft[noneOf(pointer)] === 'true'

// withNone returns a draft in which a list is empty, or is not.
export const withNone = (draft: Draft, pointer: string, none: boolean): Draft => ({
  ...draft,
  [noneOf(pointer)]: none ? 'true' : '',
})

// draftOf returns the draft of a value.
export function draftOf(fields: readonly PlainField[], value: Json): Draft {
  const draft: Record<string, string> = {}
  for (const { pointer, kind } of fields) {
    const found = get(value, pointer)
    if (found === undefined) draft[pointer] = ''
    else if (kind === 'lines' && Array.isArray(found)) {
      draft[pointer] = found.join('\n')
      if (found.length === 0) draft[noneOf(pointer)] = 'true'
    } else draft[pointer] = kind === 'json' || typeof found !== 'string' ? stringify(found, 2) : found
  }
  return draft
}

// valueFrom returns the value that a draft makes, and its problems, by pointer.
export function valueFrom(
  fields: readonly PlainField[],
  draft: Draft,
): { value: JsonObject; problems: Readonly<Record<string, string>> } {
  let value: Json = {}
  const problems: Record<string, string> = {}
  for (const field of fields) {
    try {
      const made = writtenBy(field, draft)
      if (made !== undefined) value = set(value, field.pointer, made)
      else if (field.required) problems[field.pointer] = `${field.label} is required.`
    } catch (error) {
      problems[field.pointer] = error instanceof Error ? error.message : String(error)
    }
  }
  return { value: isObject(value) ? value : {}, problems }
}

function writtenBy({ kind, pointer, none, absent }: PlainField, draft: Draft): Json | undefined {
  const typed = draft[pointer] ?? ''
  const text = typed.trim()
  if (kind === 'check') return typed === 'true' || (absent === undefined ? false : undefined)
  if (kind === 'lines') {
    if (none && saysNone(draft, pointer)) return []
    const lines = typed.split('\n').filter((line) => line.trim() !== '')
    return lines.length > 0 ? lines : undefined
  }
  if (text === '') return undefined
  if (kind === 'json') return parse(text)
  if (kind !== 'number') return text
  const number = numeral(text)
  if (number === undefined) throw new Error('A number is expected.')
  return number
}
