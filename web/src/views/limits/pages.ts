import { useQuery } from '@tanstack/react-query'
import type { Problem } from '../../lib/client'
import { isPaused } from '../../lib/live'
import { all } from '../../lib/pages'

// usePages returns all rows of a list of settings. Rows that change without an event are read again each so many
// milliseconds.
export function usePages<T>(name: string, every?: number) {
  return useQuery<T[], Problem>({
    queryKey: ['config', 'limits', name],
    refetchInterval: () => every !== undefined && !isPaused() && every,
    queryFn: ({ signal }) => all<T>(`/api/v1/${name}`, signal),
  })
}
