// Filters live in the URL, and the URL is the filter: what it has is what the API is asked, and what the page cannot
// understand in it is an error that is shown, never a condition that is left out.

// Field is one condition that a list can have, under its name in the URL and in the API's query.
export interface Field {
  name: string
  label: string
  // several are choices with commas between.
  kind: 'text' | 'choice' | 'several' | 'time' | 'id'
  choices?: readonly string[]
  // What a text may look like, for the hint in its field.
  example?: string
  // view fields are the page's own, such as an open drawer: they are not sent to the API.
  view?: boolean
}

export type Filter = Readonly<Record<string, string | readonly string[]>>

export interface ReadFilter {
  filter: Filter
  // What is wrong with the URL, in words; empty where it was understood whole.
  problems: readonly string[]
}

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/i

// readFilter reads the query of a URL.
export function readFilter(fields: readonly Field[], search: string): ReadFilter {
  const filter: Record<string, string | string[]> = Object.create(null) as Record<string, string | string[]>
  const problems: string[] = []
  for (const [name, value] of new URLSearchParams(search)) {
    const field = fields.find((f) => f.name === name)
    if (!field) {
      problems.push(`Unknown filter ${quote(name)}.`)
      continue
    }
    const values = field.kind === 'several' ? value.split(',') : [value]
    const wrong = values.map((one) => check(field, one)).find((text) => text !== '')
    const twice = values.find((one, i) => values.indexOf(one) !== i)
    if (wrong) problems.push(wrong)
    else if (name in filter) problems.push(`${quote(name)} is there twice.`)
    else if (twice !== undefined) problems.push(`${quote(name)} has ${quote(twice)} twice.`)
    else filter[name] = field.kind === 'several' ? values.toSorted((a, b) => order(field, a) - order(field, b)) : value
  }
  return { filter, problems }
}

// check says what is wrong with one value; '' where nothing is.
export function check(field: Field, value: string): string {
  if (value === '') return `${quote(field.name)} is empty. Leave it out, or give it a value.`
  const { choices } = field
  if (choices && !choices.includes(value))
    return `${quote(field.name)} cannot be ${quote(value)}. It can be ${choices.join(', ')}.`
  if (field.kind === 'id' && !uuid.test(value))
    return `${quote(field.name)} takes an id, such as 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b.`
  if (field.kind === 'time' && (!time.test(value) || Number.isNaN(Date.parse(value))))
    return `${quote(field.name)} takes a time with its zone, such as 2026-01-02T03:04:05Z.`
  return ''
}

const quote = (text: string) => `“${text}”`
const order = (field: Field, value: string) => field.choices?.indexOf(value) ?? 0

// writeFilter returns the query of a URL, without a question mark, in the order of the fields.
export function writeFilter(fields: readonly Field[], filter: Filter): string {
  const search = new URLSearchParams()
  for (const field of fields) {
    const { name } = field
    const value = filter[name]
    if (value === undefined || value === '') continue
    search.append(name, written(field, value))
  }
  return search.toString()
}

// written returns a value as the URL and the API have it: several with commas between, in the order of the choices.
const written = (field: Field, value: string | readonly string[]) =>
  typeof value === 'string' ? value : value.toSorted((a, b) => order(field, a) - order(field, b)).join(',')

// query returns what the API is asked.
export function query(fields: readonly Field[], filter: Filter): Record<string, string> {
  return Object.fromEntries(
    fields.filter((f) => !f.view && filter[f.name] !== undefined).map((f) => [f.name, written(f, filter[f.name]!)]),
  )
}

// set returns a filter with one condition set, or taken away where the value is '' or has nothing.
export function set(filter: Filter, name: string, value: string | readonly string[]): Filter {
  const { [name]: _, ...rest } = filter
  return value.length === 0 ? rest : { ...rest, [name]: value }
}

// conditions returns the conditions of a filter in words, in the order of the fields.
export function conditions(fields: readonly Field[], filter: Filter): { field: Field; words: string }[] {
  return fields
    .filter((f) => !f.view && filter[f.name] !== undefined)
    .map((field) => {
      const value = filter[field.name]!
      return { field, words: typeof value === 'string' ? value : value.join(' or ') }
    })
}
