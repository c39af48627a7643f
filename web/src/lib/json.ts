// JSON as the server means it: numbers keep their digits, keys keep their order, a key that occurs twice is an error,
// and `__proto__` is a key like any other. JSON.parse does none of these.

// Exact is a number that JavaScript cannot hold exactly, or that it would write otherwise.
export class Exact {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

export type Json = null | boolean | number | string | Exact | Json[] | JsonObject
export interface JsonObject {
  [key: string]: Json
}

// orders has the order of keys for objects in which JavaScript would move some to the front, such as "10".
const orders = new WeakMap<object, readonly string[]>()
const moves = /^(?:0|[1-9][0-9]*)$/

// fromEntries returns an object whose keys are in the order of entries.
export function fromEntries(entries: readonly (readonly [string, Json])[]): JsonObject {
  const object = Object.fromEntries(entries) as JsonObject
  if (entries.some(([key]) => moves.test(key)))
    orders.set(
      object,
      entries.map(([key]) => key),
    )
  return object
}

// keys returns the keys of an object in the order in which they were written.
export function keys(object: JsonObject): readonly string[] {
  return orders.get(object) ?? Object.keys(object)
}

// isObject reports whether a value is a JSON object.
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Exact)
}

// numeral returns the value of a number's text, or undefined where the text is no JSON number.
export function numeral(text: string): number | Exact | undefined {
  const match = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$/.exec(text)
  if (!match) return undefined
  const value = Number(text)
  return String(value) === text ? value : new Exact(text)
}

// parse parses text. It throws a SyntaxError that names line and column.
export function parse(text: string): Json {
  const scanner = new Scanner(text)
  const value = scanner.value(0)
  scanner.end()
  return value
}

// parseAnswer parses the text of a server. JSON.parse is several times as fast as parse, and exact where its value is
// written as the same text again: no digit, key or order was lost.
export function parseAnswer(text: string): Json {
  try {
    const value = JSON.parse(text) as Json
    if (shallow(value, depth) && JSON.stringify(value) === text.trimEnd()) return value
  } catch {
    // parse names the place.
  }
  return parse(text)
}

// shallow reports whether a value has at most so many levels.
const shallow = (value: Json, levels: number): boolean =>
  typeof value !== 'object' ||
  value === null ||
  (levels > 0 && Object.values(value).every((v) => shallow(v, levels - 1)))

// depth bounds nesting. The server takes 32 levels of arguments, and schemas go deeper.
const depth = 500

// special are the characters that JSON.parse reads, or refuses, in a text.
const special = /[\\\u0000-\u001f]/

class Scanner {
  private at = 0
  private readonly number = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y

  constructor(private readonly text: string) {}

  value(level: number): Json {
    if (level > depth) this.fail('nested too deeply')
    this.space()
    switch (this.text[this.at]) {
      case '{':
        return this.object(level)
      case '[':
        return this.array(level)
      case '"':
        return this.string()
      case 't':
        return this.word('true', true)
      case 'f':
        return this.word('false', false)
      case 'n':
        return this.word('null', null)
      default:
        return this.numeral()
    }
  }

  end() {
    this.space()
    if (this.at < this.text.length) this.fail('more text after the value')
  }

  private object(level: number): JsonObject {
    const members = new Map<string, Json>()
    this.at++
    for (let more = !this.is('}'); more; more = this.more('}')) {
      this.space()
      if (this.text[this.at] !== '"') this.fail('a key in double quotes is expected')
      const start = this.at
      const key = this.string()
      if (members.has(key)) {
        this.at = start
        this.fail(`the key ${JSON.stringify(key)} occurs twice`)
      }
      if (!this.is(':')) this.fail('a colon is expected')
      members.set(key, this.value(level + 1))
    }
    return fromEntries([...members])
  }

  private array(level: number): Json[] {
    const items: Json[] = []
    this.at++
    for (let more = !this.is(']'); more; more = this.more(']')) items.push(this.value(level + 1))
    return items
  }

  private more(closing: string): boolean {
    if (this.is(',')) return true
    if (!this.is(closing)) this.fail(`a comma or ${closing} is expected`)
    return false
  }

  private string(): string {
    const end = this.text.indexOf('"', this.at + 1)
    const plain = this.text.slice(this.at + 1, Math.max(end, 0))
    if (end > 0 && !special.test(plain)) {
      this.at = end + 1
      return plain
    }
    let to = this.at + 1
    while (to < this.text.length && this.text[to] !== '"') to += this.text[to] === '\\' ? 2 : 1
    if (to >= this.text.length) this.fail('a text has no closing quote')
    try {
      const value = JSON.parse(this.text.slice(this.at, to + 1)) as string
      this.at = to + 1
      return value
    } catch {
      return this.fail('a text has an unknown escape, or a line break that is not written as \\n')
    }
  }

  private numeral(): number | Exact {
    this.number.lastIndex = this.at
    const match = this.number.exec(this.text)
    if (!match) return this.fail(this.at < this.text.length ? 'a JSON value is expected here' : 'a value is missing')
    this.at += match[0].length
    return numeral(match[0])!
  }

  private word<T>(word: string, value: T): T {
    if (!this.text.startsWith(word, this.at)) this.fail('a JSON value is expected here')
    this.at += word.length
    return value
  }

  private is(char: string): boolean {
    this.space()
    if (this.text[this.at] !== char) return false
    this.at++
    return true
  }

  private space() {
    for (;;) {
      const c = this.text.charCodeAt(this.at)
      if (c !== 32 && c !== 10 && c !== 13 && c !== 9) return
      this.at++
    }
  }

  private fail(what: string): never {
    const before = this.text.slice(0, this.at).split('\n')
    throw new SyntaxError(`line ${before.length}, column ${before.at(-1)!.length + 1}: ${what}`)
  }
}

// stringify writes a value. What is undefined is left out, as JSON.stringify leaves it out.
export function stringify(value: Json | undefined, indent = 0): string {
  return write(value ?? null, indent, '')
}

function write(value: Json, indent: number, margin: string): string {
  if (value instanceof Exact) return value.text
  const inner = margin + ' '.repeat(indent)
  const list = (open: string, parts: string[], close: string) => {
    if (!parts.length) return open + close
    return indent ? `${open}\n${inner}${parts.join(`,\n${inner}`)}\n${margin}${close}` : open + parts.join(',') + close
  }
  if (Array.isArray(value))
    return list(
      '[',
      value.map((v) => write(v ?? null, indent, inner)),
      ']',
    )
  if (!isObject(value)) return JSON.stringify(value)
  const present = keys(value).filter((key) => value[key] !== undefined)
  return list(
    '{',
    present.map((key) => `${JSON.stringify(key)}:${indent ? ' ' : ''}${write(value[key]!, indent, inner)}`),
    '}',
  )
}

// same reports whether two values are the same. The order of keys does not matter; the digits of a number do.
export function same(a: Json | undefined, b: Json | undefined): boolean {
  if (a === b) return !Object.is(a, -0) === !Object.is(b, -0)
  if (a instanceof Exact && b instanceof Exact) return a.text === b.text
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((v, i) => same(v, b[i]))
  if (!isObject(a) || !isObject(b)) return false
  const names = Object.keys(a)
  return names.length === Object.keys(b).length && names.every((key) => Object.hasOwn(b, key) && same(a[key], b[key]))
}
