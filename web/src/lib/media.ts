import { useSyncExternalStore } from 'react'

// useNarrow says whether the page has the width of a phone.
export function useNarrow(): boolean {
  return useSyncExternalStore(subscribe, () => narrow.matches)
}

const narrow = matchMedia('(max-width: 760px)')

function subscribe(heard: () => void) {
  narrow.addEventListener('change', heard)
  return () => narrow.removeEventListener('change', heard)
}
