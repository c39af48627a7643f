import { useQuery } from '@tanstack/react-query'
import { get, type Problem, type Schemas } from '../lib/client'
import { useMay } from '../lib/me'
import { Icon, Shown, Time } from '../ui'

// recoveryQuery reads the state of the database.
export const recoveryQuery = {
  queryKey: ['config', 'recovery'],
  queryFn: ({ signal }: { signal: AbortSignal }) => get<Schemas['Recovery']>('/api/v1/recovery', {}, signal),
  staleTime: Number.POSITIVE_INFINITY,
}

// Held stands over every view while the database is held. It is read once, and again when the stream brings an event of
// the configuration, as one that changes the state of the database is: its key begins with "config".
export function Held() {
  const refused = useMay()('getRecovery')
  const { data } = useQuery<Schemas['Recovery'], Problem>({ ...recoveryQuery, enabled: !refused })
  if (data?.state !== 'held') return null
  return (
    <div className="held tone-bad" role="status">
      <Icon name="barred" />
      <p>
        <strong>Nothing is sent: the database is held</strong>, since <Time at={data.since} as="both" />, because{' '}
        <Shown text={data.detail ?? data.reason ?? 'it may lack commits'} />. To continue, an administrator runs{' '}
        <code>countersign recover</code>.
      </p>
    </div>
  )
}
