// Saved views: names for addresses of this page, kept in this browser for one person.
import { useSyncExternalStore } from 'react'
import { type Me, useMe } from './me'
import { ownPath } from './session'

export interface Saved {
  name: string
  path: string
}

// mostSaved is how many views are kept, and longest how long a name is.
export const mostSaved = 20
export const longest = 60

// ofPerson returns the key under which a person's views are kept: another person at this browser has others.
const ofPerson = (me: Pick<Me, 'tenant_id' | 'operator_id' | 'name'>) =>
  `countersign.views ${me.tenant_id} ${me.operator_id ?? me.name}`

// readSaved reads stored text, and leaves out invalid views.
export function readSaved(text: string | null): readonly Saved[] {
  try {
    const stored: unknown = JSON.parse(text ?? '[]')
    if (!Array.isArray(stored)) return []
    return stored
      .filter(
        (one): one is Saved =>
          typeof one?.name === 'string' &&
          one.name !== '' &&
          one.name.length <= longest &&
          typeof one.path === 'string' &&
          ownPath(one.path) === one.path,
      )
      .map(({ name, path }) => ({ name, path }))
      .slice(0, mostSaved)
  } catch {
    return []
  }
}

// withView returns the views with one more, which replaces one of its name, or why there is no room for it.
export function withView(all: readonly Saved[], one: Saved): readonly Saved[] | string {
  const rest = all.filter((each) => each.name !== one.name)
  if (rest.length >= mostSaved) return `This browser keeps ${mostSaved} views. Remove one first.`
  return [...rest, one].toSorted((a, b) => a.name.localeCompare(b.name))
}

const listeners = new Set<() => void>()
const none: readonly Saved[] = []
const cache: { key: string; text: string | null; views: readonly Saved[] } = { key: '', text: null, views: none }

function stored(key: string): readonly Saved[] {
  try {
    const text = localStorage.getItem(key)
    if (cache.key !== key || cache.text !== text) Object.assign(cache, { key, text, views: readSaved(text) })
    return cache.views
  } catch {
    return none
  }
}

// useSaved returns the person's views, and a function that stores others.
export function useSaved(): [views: readonly Saved[], store: (views: readonly Saved[]) => void] {
  const me = useMe().data
  const key = me ? ofPerson(me) : ''
  const views = useSyncExternalStore(
    (heard) => {
      listeners.add(heard)
      addEventListener('storage', heard)
      return () => {
        listeners.delete(heard)
        removeEventListener('storage', heard)
      }
    },
    () => (key ? stored(key) : none),
  )
  return [
    views,
    (next) => {
      try {
        localStorage.setItem(key, JSON.stringify(next))
      } catch {
        // A browser that stores nothing has no saved views.
      }
      for (const heard of listeners) heard()
    },
  ]
}
