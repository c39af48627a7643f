// Preferences of this browser: kept in localStorage, the same in all tabs.
import { useSyncExternalStore } from 'react'

export interface Preferences {
  theme: 'system' | 'light' | 'dark'
  zone: 'local' | 'UTC'
  letters: 'on' | 'off'
  // notices are the browser's notifications of what waits.
  notices: 'on' | 'off'
}

const initial: Preferences = { theme: 'system', zone: 'local', letters: 'on', notices: 'off' }
const key = 'countersign.preferences'
const listeners = new Set<() => void>()
let current = read()

function read(): Preferences {
  try {
    return { ...initial, ...(JSON.parse(localStorage.getItem(key) ?? '{}') as Partial<Preferences>) }
  } catch {
    return initial
  }
}

function apply() {
  const { dataset } = document.documentElement
  if (current.theme === 'system') delete dataset.theme
  else dataset.theme = current.theme
  for (const heard of listeners) heard()
}

export const preferences = (): Preferences => current

export function setPreferences(change: Partial<Preferences>) {
  current = { ...current, ...change }
  try {
    localStorage.setItem(key, JSON.stringify(current))
  } catch {
    // A browser that stores nothing keeps them until the page is closed.
  }
  apply()
}

export function usePreferences(): Preferences {
  return useSyncExternalStore(
    (heard) => {
      listeners.add(heard)
      return () => listeners.delete(heard)
    },
    preferences,
    preferences,
  )
}

// startPreferences puts the theme on the document, and follows other tabs.
export function startPreferences() {
  apply()
  addEventListener('storage', (event) => {
    if (event.key !== key) return
    current = read()
    apply()
  })
}
