// Arguments as one line of a list.
import { isObject, keys, stringify } from './json'

// oneLine returns the values of arguments in their order, cut to a length: what one recognizes an action by in a list.
// It is text from outside, which shown() writes out.
export function oneLine(args: unknown, most = 160): string {
  if (!isObject(args)) return ''
  let line = ''
  for (const name of keys(args)) {
    const value = args[name]
    if (value === undefined || value === null || value === '') continue
    const text = typeof value === 'string' ? value : stringify(value)
    line += (line && ' · ') + text.slice(0, most)
    if (line.length >= most) return line.slice(0, most) + '…'
  }
  return line
}
