// A grant as it is typed, and as the API takes it.
import { isObject, type Json, parse } from '../../lib/json'
import { spanProblem } from './expression'

export interface GrantDraft {
  tool: string
  session_id: string
  employee_id: string
  automation_id: string
  // pins is the JSON text of an object, and loose has a pointer in each line.
  pins: string
  loose: string
  expires_in: string
  reason: string
}

// pointersOf returns the pointers in the lines of a text; “all” is the empty one.
export const pointersOf = (text: string): string[] => [
  ...new Set(
    text
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => line !== '')
      .map((line) => (line === 'all' ? '' : line)),
  ),
]

const isPointer = (text: string) => text === '' || text.startsWith('/')

// pinsOf returns the pins of a text; undefined where it is not an object of pointers.
export function pinsOf(text: string): Json | undefined {
  try {
    const pins = parse(text.trim() || '{}')
    return isObject(pins) && Object.keys(pins).every(isPointer) ? pins : undefined
  } catch {
    return undefined
  }
}

const uuid = /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/i

// grantProblem returns the problem of a draft.
export function grantProblem({ tool, employee_id, pins, loose, expires_in }: GrantDraft): string | undefined {
  if (!/^[^:*]+:[^*]+$/.test(tool)) return 'Name one tool, as source:tool.'
  if (employee_id !== '' && !uuid.test(employee_id)) return 'The employee is an id of 36 characters.'
  if (pinsOf(pins) === undefined) return 'Fixed arguments are a JSON object whose names are pointers, such as /to.'
  if (!pointersOf(loose).every(isPointer)) return 'A pointer begins with a slash.'
  return expires_in === '' ? 'Enter how long the grant holds.' : spanProblem(expires_in)
}

// inputOf returns the body of a request; empty fields are left out.
export function inputOf({ pins, loose, ...texts }: GrantDraft): Json {
  const given = Object.entries(texts).filter(([, text]) => text !== '')
  return { ...Object.fromEntries(given), pins: pinsOf(pins) ?? {}, loose: pointersOf(loose) }
}

// stateOf returns whether a grant holds at a time, in ms.
export function stateOf(of: { expires_at: string; revoked_at?: string }, now: number): 'holds' | 'revoked' | 'expired' {
  if (of.revoked_at) return 'revoked'
  return Date.parse(of.expires_at) <= now ? 'expired' : 'holds'
}
