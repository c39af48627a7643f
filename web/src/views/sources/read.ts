import { useQuery } from '@tanstack/react-query'
import type { Problem } from '../../lib/client'
import { useMay } from '../../lib/me'
import { all } from '../../lib/pages'
import type { Breaker, Source } from './health'

export const readSources = (signal?: AbortSignal) => all<Source>('/api/v1/sources', signal)

// While a source is not listed yet, or was asked to be, it is looked at again soon: a listing that finds nothing new
// has no event.
export const useSources = (soon: boolean) =>
  useQuery<Source[], Problem>({
    queryKey: ['config', 'all-sources'],
    queryFn: ({ signal }) => readSources(signal),
    refetchInterval: ({ state: { data } }) =>
      soon || data?.some((one) => one.enabled && one.listed_at === null) ? 1_000 : 30_000,
  })

// useBreakers returns the breakers by source. Without the right to read them there are none.
export function useBreakers(): ReadonlyMap<string, Breaker> {
  const may = useMay()
  const read = useQuery<Breaker[], Problem>({
    queryKey: ['config', 'breakers'],
    enabled: may('listBreakers') === undefined,
    queryFn: ({ signal }) => all<Breaker>('/api/v1/breakers', signal),
    refetchInterval: 30_000,
  })
  return new Map(read.data?.map((one) => [one.source, one]))
}

export const sourceAPI = (id: string) => `/api/v1/sources/${encodeURIComponent(id)}`
