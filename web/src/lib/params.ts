// What a view keeps in the query of its address: filters, and the drawer that is open.
import { useLocation, useSearch } from 'wouter'

// useParams returns the query of the address, and a function that changes some of it; undefined removes a name.
export function useParams(): [
  params: URLSearchParams,
  change: (names: Record<string, string | undefined>, how?: { replace?: boolean }) => void,
] {
  const search = useSearch()
  const [at, go] = useLocation()
  const params = new URLSearchParams(search)
  return [
    params,
    (names, how) => {
      for (const [name, value] of Object.entries(names)) {
        if (value === undefined) params.delete(name)
        else params.set(name, value)
      }
      const text = params.toString()
      go(text ? `${at}?${text}` : at, how)
    },
  ]
}
