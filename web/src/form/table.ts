// Lists as they are read: values in a line, objects as a table.
import { Exact, isObject, type Json, keys, stringify } from '../lib/json'

// Bounds of a line and a table. Anything else stays fields, or JSON text.
const longCell = 300
const mostColumns = 40
const mostRows = 5_000

const scalar = (value: Json) => value === null || typeof value !== 'object' || value instanceof Exact

// isLine reports whether a value is a list of short scalars.
export function isLine(value: Json): value is Json[] {
  return (
    Array.isArray(value) &&
    value.length > 0 &&
    value.length <= mostRows &&
    value.every((v) => scalar(v) && (typeof v !== 'string' || (v.length <= longCell && !v.includes('\n'))))
  )
}

// columnsOf returns the columns of a list of objects as a table: those that the schema names, in its order, before
// others; undefined where the list is no table.
export function columnsOf(value: Json, named: readonly string[]): string[] | undefined {
  if (!Array.isArray(value) || value.length < 2 || value.length > mostRows) return undefined
  const found = new Set<string>()
  for (const row of value) {
    if (!isObject(row)) return undefined
    for (const key of keys(row)) {
      found.add(key)
      if (found.size > mostColumns || !fits(row[key]!)) return undefined
    }
  }
  if (!found.size) return undefined
  return [...named.filter((name) => found.has(name)), ...[...found].filter((name) => !named.includes(name))]
}

function fits(value: Json): boolean {
  if (typeof value === 'string') return value.length <= longCell
  return scalar(value) || small(value, 12) >= 0
}

// small returns how much of a budget of parts is left of a value that has at most so many, and else a negative number.
function small(value: Json, left: number): number {
  if (scalar(value)) return left - 1 - (typeof value === 'string' ? Math.floor(value.length / 40) : 0)
  for (const part of Array.isArray(value) ? value : Object.values(value as Record<string, Json>)) {
    left = small(part, left)
    if (left < 0) return left
  }
  return left - 1
}

// Bounds of the parts of a table and a line that show before somebody opens them.
export const firstRows = 20
export const firstColumns = 6
export const firstValues = 30

// first returns the columns that are shown first: those that a call must have before others, in their order.
export function first(columns: readonly string[], required: readonly string[]): string[] {
  const chosen = [
    ...columns.filter((name) => required.includes(name)),
    ...columns.filter((name) => !required.includes(name)),
  ].slice(0, firstColumns)
  return columns.filter((name) => chosen.includes(name))
}

// cellText writes a value of a cell in one line.
export const cellText = (value: Json): string => (typeof value === 'string' ? value : stringify(value))
