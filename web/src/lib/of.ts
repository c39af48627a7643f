// State of an item, in a component that shows one item after another.
import { type UIEvent, useLayoutEffect, useRef, useState } from 'react'

// useStateOf is useState for an item: another item begins with its own state. The component and its elements stay, so
// that the browser draws again where the next item differs alone.
export function useStateOf<T>(item: string, initial: () => T): [T, (next: T) => void] {
  const [held, setHeld] = useState(() => ({ item, value: initial() }))
  let { value } = held
  if (held.item !== item) {
    value = initial()
    setHeld({ item, value })
  }
  return [value, (next) => setHeld((was) => (was.item === item ? { item, value: next } : was))]
}

// useScrollsBack returns a handler of scroll events. Elements that were scrolled return to their top left corner when
// another item is shown.
export function useScrollsBack(item: string): (event: UIEvent) => void {
  const scrolled = useRef(new Set<Element>())
  useLayoutEffect(() => {
    for (const element of scrolled.current) element.scrollTo(0, 0)
    scrolled.current.clear()
  }, [item])
  return ({ target }) => void scrolled.current.add(target as Element)
}
