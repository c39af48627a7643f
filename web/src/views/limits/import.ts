// A list that a person pastes or chooses, as the CSV that the server reads.

export interface Table {
  csv: string
  // added is the number of lines before the person's first one.
  added: number
}

// csvOf returns text as CSV with a line of names. A text without one is a value a line.
export function csvOf(text: string): Table {
  const plain = text.replace(/^\uFEFF/, '')
  const names = (plain.split(/\r?\n/, 1)[0] ?? '').split(',').map((name) => name.trim().toLowerCase())
  if (names.includes('value') || names.includes('"value"')) return { csv: plain, added: 0 }
  return { csv: `value\n${plain}`, added: 1 }
}

// placeOf returns the line of the person's text that a pointer of an error names.
export function placeOf(pointer: string, added: number): string {
  const [, line, column] = /^\/lines\/(\d+)\/columns\/(\d+)$/.exec(pointer) ?? []
  return line ? `Line ${Number(line) - added}, column ${column}` : ''
}
