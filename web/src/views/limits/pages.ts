import { useQuery } from '@tanstack/react-query'
import { get, type Problem } from '../../lib/client'
import { isPaused } from '../../lib/live'

interface Page<T> {
  items: T[]
  next_cursor: string | null
}

// usePages returns all rows of a list of settings. Rows that change without an event are read again each so many
// milliseconds.
export function usePages<T>(name: string, every?: number) {
  return useQuery<T[], Problem>({
    queryKey: ['config', 'limits', name],
    refetchInterval: () => every !== undefined && !isPaused() && every,
    queryFn: async ({ signal }) => {
      const rows: T[] = []
      for (let cursor: string | null | undefined; cursor !== null; ) {
        const page: Page<T> = await get(`/api/v1/${name}`, { limit: 200, cursor }, signal)
        rows.push(...page.items)
        cursor = page.next_cursor
      }
      return rows
    },
  })
}
