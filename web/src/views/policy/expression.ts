// Places in the text of an expression. The API counts columns in characters (code points), the browser in UTF-16 units.
export interface Mistake {
  line?: number
  column?: number
  length: number
  message: string
}

// Marked is a line with the wrong part of it.
export interface Marked {
  before: string
  wrong: string
  after: string
}

// around is how many characters of a long line are shown on either side of a mistake.
const around = 60

// marked returns the line of a mistake; undefined for a mistake of the whole expression, or of a line that was removed.
// At the end of a line the wrong part is a space.
export function marked(text: string, { line, column, length }: Mistake): Marked | undefined {
  if (!line || !column) return undefined
  const found = text.split('\n')[line - 1]
  if (found === undefined) return undefined
  const all = [...found.replace(/\r$/, '').replaceAll('\t', ' ')]
  const from = Math.min(column - 1, all.length)
  const start = Math.max(0, from - around)
  const end = Math.min(all.length, from + length)
  return {
    before: (start > 0 ? '…' : '') + all.slice(start, from).join(''),
    wrong: all.slice(from, end).join('') || ' ',
    after: all.slice(end, end + around).join('') + (end + around < all.length ? '…' : ''),
  }
}

// rangeOf returns the place of a mistake for a text field; undefined where it has none.
export function rangeOf(text: string, { line, column, length }: Mistake): [number, number] | undefined {
  if (!line || !column) return undefined
  const lines = text.split('\n')
  const found = lines[line - 1]
  if (found === undefined) return undefined
  const begin = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0)
  const all = [...found]
  const units = (to: number) => all.slice(0, to).join('').length
  return [begin + units(column - 1), begin + units(column - 1 + length)]
}

const id = /^[a-z0-9][a-z0-9_.-]{0,99}$/

// idProblem returns the problem of a new rule's id.
export function idProblem(text: string, taken: readonly string[]): string | undefined {
  if (!id.test(text)) return 'Use 1 to 100 small letters, digits, dots, dashes and underscores.'
  return taken.includes(text) ? 'There is a rule with this id.' : undefined
}

// toolProblem returns the problem of a pattern of tools.
export function toolProblem(text: string): string | undefined {
  if (text === '*') return undefined
  const [source, ...rest] = text.split(':')
  const part = (one: string) => one === '*' || (one !== '' && !one.includes('*'))
  return rest.length > 0 && part(source!) && part(rest.join(':'))
    ? undefined
    : 'Use source:tool, source:*, *:tool or *.'
}

const span = /^([0-9]{1,4}d)?([0-9]{1,6}(\.[0-9]{1,9})?(ms|s|m|h))*$/

// spanProblem returns the problem of a duration; an empty one has none.
export const spanProblem = (text: string): string | undefined =>
  text === '' || span.test(text) ? undefined : 'Use a number and a unit, such as 30m, 8h or 2d.'
