// JSON Pointers (RFC 6901) into values, without changing the values.
import { fromEntries, isObject, type Json, type JsonObject, keys, same } from './json'

// tokens returns the names that a pointer goes through.
export function tokens(pointer: string): string[] {
  if (pointer === '') return []
  return pointer
    .slice(1)
    .split('/')
    .map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'))
}

// join returns the pointer of a member or element.
export function join(pointer: string, name: string | number): string {
  return `${pointer}/${String(name).replaceAll('~', '~0').replaceAll('/', '~1')}`
}

// below reports whether a pointer is another one or leads into what is there.
export function below(pointer: string, root: string): boolean {
  return pointer === root || pointer.startsWith(`${root}/`)
}

function child(value: Json | undefined, token: string): Json | undefined {
  if (Array.isArray(value)) return /^(?:0|[1-9][0-9]*)$/.test(token) ? value[Number(token)] : undefined
  return isObject(value) && Object.hasOwn(value, token) ? value[token] : undefined
}

// get returns what is at a pointer, or undefined where nothing is.
export function get(value: Json | undefined, pointer: string): Json | undefined {
  return tokens(pointer).reduce<Json | undefined>(child, value)
}

// set returns value with another value at a pointer. A new key comes last, and a new element at the end of its list.
// Where the pointer leads through something that is not there, objects are made.
export function set(value: Json | undefined, pointer: string, to: Json): Json {
  return change(value, tokens(pointer), to)
}

// remove returns value without what is at a pointer. Later elements of a list move up.
export function remove(value: Json, pointer: string): Json {
  return get(value, pointer) === undefined ? value : change(value, tokens(pointer), undefined)
}

function change(value: Json | undefined, [token, ...rest]: string[], to: Json | undefined): Json {
  if (token === undefined) return to ?? null
  const next = rest.length || to !== undefined ? change(child(value, token), rest, to) : undefined
  if (Array.isArray(value)) {
    const at = token === '-' ? value.length : Number(token)
    return next === undefined ? value.toSpliced(at, 1) : at < value.length ? value.with(at, next) : [...value, next]
  }
  const object = isObject(value) ? value : {}
  const names = Object.hasOwn(object, token) ? keys(object) : [...keys(object), token]
  return fromEntries(
    names.flatMap((name) =>
      name !== token ? [[name, object[name]!] as const] : next === undefined ? [] : [[name, next] as const],
    ),
  )
}

// Change is one difference between two values.
export interface Change {
  pointer: string
  was: Json | undefined
  now: Json | undefined
}

// diff returns what is different, by pointer, as deep as both sides have the same kind of value.
export function diff(was: Json | undefined, now: Json | undefined, pointer = ''): Change[] {
  if (same(was, now)) return []
  if (isObject(was) && isObject(now)) {
    const names = [...keys(was), ...keys(now).filter((name) => !Object.hasOwn(was, name))]
    return names.flatMap((name) => diff(child(was, name), child(now, name), join(pointer, name)))
  }
  if (Array.isArray(was) && Array.isArray(now)) {
    return Array.from({ length: Math.max(was.length, now.length) }, (_, i) =>
      diff(was[i], now[i], join(pointer, i)),
    ).flat()
  }
  return [{ pointer, was, now }]
}

// Place is a place in the values of a set: differs where they are not all the same there.
interface Place {
  differs: boolean
  within: Map<string, Place>
}

const place = (): Place => ({ differs: false, within: new Map() })

// differing returns the pointers in which values of a set are not all the same: all of diff between the first and each
// other. Pointers are written once at the end, since a list compares a thousand.
export function differing([first, ...others]: readonly (Json | undefined)[]): string[] {
  const root = place()
  for (const other of others) compare(first, other, root)
  return pointers(root, '')
}

function compare(a: Json | undefined, b: Json | undefined, at: Place) {
  const lists = Array.isArray(a) && Array.isArray(b)
  if (lists || (isObject(a) && isObject(b))) {
    for (const name of names(a)) compare(member(a, name), member(b, name), inside(at, name))
    for (const name of names(b)) if (member(a, name) === undefined) inside(at, name).differs = true
  } else if (!at.differs && !same(a, b)) at.differs = true
}

const names = (value: Json[] | JsonObject) => (Array.isArray(value) ? Object.keys(value) : keys(value))

function inside({ within }: Place, name: string): Place {
  const known = within.get(name) ?? place()
  if (!within.has(name)) within.set(name, known)
  return known
}

function pointers({ differs, within }: Place, pointer: string): string[] {
  const deeper = [...within].flatMap(([name, one]) => pointers(one, join(pointer, name)))
  return differs ? [pointer, ...deeper] : deeper
}

function member(value: Json[] | JsonObject, name: string): Json | undefined {
  return Object.hasOwn(value, name) ? (value as JsonObject)[name] : undefined
}
