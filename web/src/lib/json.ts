// JSON with numbers kept digit for digit: a number that JavaScript cannot hold exactly, or that it would write otherwise,
// is parsed as an Exact, which has the source text, and is written back as that text.

export class Exact {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

export type Json = null | boolean | number | string | Exact | Json[] | { [key: string]: Json }

type Reviver = (this: unknown, key: string, value: unknown, context: { source?: string }) => unknown
const native = JSON as unknown as { parse(text: string, reviver: Reviver): unknown; rawJSON(text: string): unknown }

// parse parses text. It throws SyntaxError as JSON.parse does.
export function parse(text: string): Json {
  return native.parse(text, (_key, value, context) =>
    typeof value === 'number' && context.source !== undefined && String(value) !== context.source ? new Exact(context.source) : value,
  ) as Json
}

// stringify writes a value, with Exact numbers as they were.
export function stringify(value: Json, indent?: number): string {
  return JSON.stringify(value, (_key, v: unknown) => (v instanceof Exact ? native.rawJSON(v.text) : v), indent)
}
