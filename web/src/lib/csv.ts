// Rows of a list as files: JSON lines with the exact values, and CSV whose cells no spreadsheet runs.
import { Exact, isObject, type Json, type JsonObject, keys, stringify } from './json'

// guarded is where a spreadsheet would begin a formula: at the beginning of a cell, and behind what some spreadsheets
// take for the end of a cell or of a line.
const guarded = /(^|[;\t\r\n])(?=[=+\-@\t\r＝＋－＠])/g

// cell returns a value as a quoted cell. A number is no formula; an apostrophe is before each text that would be one.
export function cell(value: Json | undefined): string {
  if (value === undefined || value === null) return ''
  if (typeof value === 'number' || typeof value === 'boolean' || value instanceof Exact) return stringify(value)
  const text = typeof value === 'string' ? value : stringify(value)
  return `"${text.replace(guarded, "$1'").replaceAll('"', '""')}"`
}

// flat returns the values of a row by their paths: members of objects each, lists as JSON.
export function flat(row: Json): Map<string, Json> {
  const found = new Map<string, Json>()
  const walk = (value: Json, path: string) => {
    if (!isObject(value)) {
      found.set(path || 'value', value)
      return
    }
    const object: JsonObject = value
    for (const name of keys(object)) walk(object[name]!, path ? `${path}.${name}` : name)
  }
  walk(row, '')
  return found
}

// csv returns rows as RFC 4180 has them, with the mark by which spreadsheets know UTF-8. Its columns are those of all
// rows, in the order in which they come up.
export function csv(rows: readonly Json[]): string {
  const all = rows.map(flat)
  const columns = [...new Set(all.flatMap((row) => [...row.keys()]))]
  const lines = [columns.map(cell), ...all.map((row) => columns.map((name) => cell(row.get(name))))]
  return '\uFEFF' + lines.map((line) => line.join(',') + '\r\n').join('')
}

// jsonLines returns rows as one line of JSON each.
export const jsonLines = (rows: readonly Json[]): string => rows.map((row) => stringify(row) + '\n').join('')
