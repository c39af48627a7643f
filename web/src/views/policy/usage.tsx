import { useQuery } from '@tanstack/react-query'
import { get, type Schemas } from '../../lib/client'
import { Time } from '../../ui'

// useUsage returns the heading of a column, and its cell: the past actions that a rule applied to, or that a grant
// allowed.
export function useUsage(kind: 'rules' | 'grants') {
  const { data, isError } = useQuery({
    // Changes of settings do not change it, and the query reads up to 100,000 actions.
    queryKey: ['policy-usage'],
    staleTime: 60_000,
    queryFn: ({ signal }) => get<Schemas['PolicyUsage']>('/api/v1/policy/usage', {}, signal),
  })
  const counts = new Map(data?.[kind].map((one) => [one.id, one]))
  return {
    name: data && !data.complete ? `Latest ${data.examined.toLocaleString('en')} actions` : 'Last 7 days',
    cell: (id: string) => {
      const used = counts.get(id)
      if (!used) return data ? 'no action' : isError ? 'unknown' : '…'
      return (
        <>
          {used.count.toLocaleString('en')}, last <Time at={used.last_at} />
        </>
      )
    },
  }
}
