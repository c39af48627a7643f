// The cache of what the API answered. Live events find it by the first word of the keys.
import { MutationCache, QueryCache, QueryClient } from '@tanstack/react-query'
import { Problem } from './client'

// The first words of keys, and what is kept under them:
//   ['me'], ['inbox', filters], ['inbox-counts', filters], ['inbox-item', id], ['actions', filters], ['action', id],
//   ['history', id], ['forecast', id], ['workflows', filters], ['workflow', id], ['dead-letters', filters],
//   ['dead-letter', id], ['dead-letter-summary', filters], ['executions', filters], ['policy-usage'], ['config', ...]
const refusals = new Set<() => void>()

// onRefused calls heard whenever the server says that nobody is logged in.
export const onRefused = (heard: () => void) => void refusals.add(heard)

const onError = (error: unknown) => {
  if (!(error instanceof Problem)) return
  if (error.status === 401) for (const heard of refusals) heard()
  if (error.status === 412) configChanged()
}

export const queries = new QueryClient({
  queryCache: new QueryCache({ onError }),
  mutationCache: new MutationCache({ onError }),
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      gcTime: 10 * 60_000,
      refetchOnWindowFocus: false,
      refetchOnReconnect: false,
      // An answer that says no is not asked for again.
      retry: (count, error) => count < 2 && !(error instanceof Problem && error.status < 500 && error.status !== 429),
    },
    mutations: { retry: false },
  },
})

// configChanged reads the settings that are shown again, and marks the others stale. Events come to the same, a second
// later: too late for a person who was refused because of another's change.
export const configChanged = () => void queries.invalidateQueries({ queryKey: ['config'] })
