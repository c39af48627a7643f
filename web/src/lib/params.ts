// What a view keeps in the query of its address: filters, and the drawer that is open.
import { useLocation, useSearch } from 'wouter'

// useParams returns the query of the address, a function that changes some of it, and one that returns the address with
// the change; undefined removes a name.
export function useParams(): [
  params: URLSearchParams,
  change: (names: Record<string, string | undefined>, how?: { replace?: boolean }) => void,
  changed: (names: Record<string, string | undefined>) => string,
] {
  const search = useSearch()
  const [at, go] = useLocation()
  const params = new URLSearchParams(search)
  const changed = (names: Record<string, string | undefined>) => {
    const next = new URLSearchParams(search)
    for (const [name, value] of Object.entries(names)) {
      if (value === undefined) next.delete(name)
      else next.set(name, value)
    }
    const text = next.toString()
    return text ? `${at}?${text}` : at
  }
  return [params, (names, how) => go(changed(names), how), changed]
}
