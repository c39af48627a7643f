// Subscriptions: webhooks and Slack channels that receive events, and their deliveries.
import { useQuery } from '@tanstack/react-query'
import { Link } from 'wouter'
import type { Problem } from '../../lib/client'
import { useMay } from '../../lib/me'
import { type Whole, whole } from '../../lib/pages'
import { useParams } from '../../lib/params'
import { shown } from '../../lib/text'
import { Button, Command, Empty, Loading, ProblemNote, Shown, Table, Time } from '../../ui'
import { Export } from '../../ui/export'
import { SavedViews } from '../../ui/saved'
import '../../form/form.css'
import '../people/people.css'
import { ChangeSubscription } from './change'
import type { Subscription } from './fields'
import { One } from './one'
import { behind, SubscriptionState } from './state'

const to = '/api/v1/subscriptions'

export default function View({ id }: { id?: string }) {
  const may = useMay()
  const subscriptions = useQuery<Whole<Subscription>, Problem>({
    queryKey: ['config', 'subscriptions'],
    queryFn: ({ signal }) => whole<Subscription>(to, {}, signal),
    enabled: may('listSubscriptions') === undefined,
  })
  const { data, error } = subscriptions
  const one = data?.items.find((row) => row.name === id)
  const whyNot = may('listSubscriptions')
  return (
    <div className="page">
      {!data && <h1>Subscriptions</h1>}
      {whyNot && <p role="status">{whyNot}</p>}
      {!whyNot && subscriptions.isPending && <Loading what="subscriptions" />}
      {error && (
        <ProblemNote
          error={error}
          what="The subscriptions were not loaded"
          onRetry={() => void subscriptions.refetch()}
        />
      )}
      {data && id === undefined && <All rows={data.items} />}
      {one && <One key={one.subscription_id} one={one} />}
      {data && id !== undefined && !one && (
        <Empty whole title="Subscription not found">
          <p>
            It may have been deleted. <Link href="/subscriptions">All subscriptions</Link>
          </p>
        </Empty>
      )}
    </div>
  )
}

function All({ rows }: { rows: readonly Subscription[] }) {
  const may = useMay()
  const [params, change] = useParams()
  return (
    <>
      <header className="page-head">
        <h1 className="grow">Subscriptions</h1>
        <Export name="subscriptions" to={to} />
        <Button kind="primary" whyNot={may('putSubscription')} onClick={() => change({ change: 'true' })}>
          Add a subscription
        </Button>
      </header>
      <SavedViews />
      {rows.length === 0 ? (
        <Empty title="No subscriptions">
          <p>A webhook or a channel of Slack receives events. Set up a source of the kind webhook, then:</p>
          <pre className="json" tabIndex={0}>
            countersign subscription set hooks --source hooks --kinds settled,decided
          </pre>
        </Empty>
      ) : (
        <div className="panel">
          <Table
            caption="Subscriptions"
            rows={rows}
            keyOf={(row) => row.subscription_id}
            columns={[
              {
                name: 'Name',
                cell: (row) => <Link href={`/subscriptions/${encodeURIComponent(row.name)}`}>{shown(row.name)}</Link>,
              },
              { name: 'State', cell: (row) => <SubscriptionState one={row} /> },
              { name: 'Source', cell: (row) => <Shown text={row.source} />, hideNarrow: true },
              { name: 'Events', cell: (row) => shown(row.kinds.join(', ')), hideNarrow: true },
              { name: 'Tools', cell: (row) => shown(row.tool), hideNarrow: true },
              { name: 'Not told yet', number: true, cell: (row) => behind(row) },
              { name: 'Changed', cell: (row) => <Time at={row.updated_at} />, hideNarrow: true },
            ]}
          />
        </div>
      )}
      <Command of="countersign subscription list" />
      {params.get('change') === 'true' && !may('putSubscription') && (
        <ChangeSubscription taken={rows} onClose={() => change({ change: undefined }, { replace: true })} />
      )}
    </>
  )
}
