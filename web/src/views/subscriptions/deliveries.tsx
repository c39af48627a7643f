// The deliveries of a subscription: each is an action, with its attempts, their answers, and the time of the next one.
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Link } from 'wouter'
import { get, type Problem, post, type Schemas } from '../../lib/client'
import { useMay } from '../../lib/me'
import { whole } from '../../lib/pages'
import { useParams } from '../../lib/params'
import { queries } from '../../lib/query'
import { shown } from '../../lib/text'
import { Ask, Button, Dialog, JsonText, Loading, ProblemNote, Sheet, Shown, State, Table, Time, toast } from '../../ui'
import { Export } from '../../ui/export'
import { type Again, againOf, mayBeDead } from './fields'

type Action = Schemas['Action']

const to = '/api/v1/actions'
const shownDeliveries = 50

// again has, for each way to send a delivery again, the text and the request.
const again = {
  once: {
    label: 'Replay',
    text: 'It goes on the schedule again, under its old id and with all of its attempts again.',
    send: (id: string, note: string) => replay({ action_ids: [id], ...(note && { note }) }),
  },
  twice: {
    label: 'Replay',
    text: 'Nobody knows whether it arrived. It is sent under its old id, by which a receiver can tell.',
    send: (id: string, note: string) => replay({ action_ids: [id], allow_duplicates: true, ...(note && { note }) }),
  },
  resend: {
    label: 'Send again',
    text:
      'It ended already, and keeps its state. The same message goes out once more under its old id: a receiver that ' +
      'drops messages which it has drops this one.',
    send: async (id: string, note: string) => {
      await post<Action>(`${to}/${encodeURIComponent(id)}/resend`, note ? { note } : {})
      return { action_ids: [id] }
    },
  },
} satisfies Record<
  Again,
  { label: string; text: string; send: (id: string, note: string) => Promise<{ action_ids: string[] }> }
>

const replay = (body: object) => post<{ action_ids: string[] }>('/api/v1/dead-letters/replay', body)

export function Deliveries({ automation, off }: { automation: string; off: boolean }) {
  const may = useMay()
  const [params, change] = useParams()
  const [sent, setSent] = useState<Action>()
  const query = { automation_id: automation }
  const deliveries = useQuery<{ items: Action[]; next_cursor: string | null }, Problem>({
    queryKey: ['actions', 'of', automation],
    queryFn: ({ signal }) => get(to, { ...query, view: 'summary', limit: shownDeliveries }, signal),
  })
  const rows = deliveries.data?.items
  const opened = params.get('delivery')
  const whyNot = (row: Action, gone = false) => {
    const way = againOf(row, gone)
    if (!way)
      return row.envelope.tool.name === 'deliver' ? 'It has not ended.' : 'Messages in Slack are not sent again.'
    if (way === 'resend') return may('resendDelivery') ?? (off ? 'The subscription is off.' : undefined)
    return may('replayDeadLetters')
  }
  return (
    <section className="panel stack" aria-labelledby="deliveries">
      <div className="row">
        <h2 id="deliveries" className="grow">
          Deliveries
        </h2>
        {rows && <Export name="deliveries" to={to} query={query} />}
      </div>
      {deliveries.isPending && <Loading what="deliveries" />}
      {deliveries.error && (
        <ProblemNote
          error={deliveries.error}
          what="The deliveries were not loaded"
          onRetry={() => void deliveries.refetch()}
        />
      )}
      {rows?.length === 0 && <p className="muted">Nothing was delivered yet. Send a test to see one.</p>}
      {rows && rows.length > 0 && (
        <Table
          caption="Deliveries"
          rows={rows}
          keyOf={(row) => row.envelope.action_id}
          columns={[
            { name: 'State', cell: (row) => <State state={row.phase} /> },
            {
              name: 'Message',
              cell: (row) => (
                <>
                  <Shown text={row.headline ?? row.envelope.tool.name} />
                  {row.resends && <span className="small muted"> sent again</span>}
                </>
              ),
              hideNarrow: true,
            },
            { name: 'Attempts', number: true, cell: (row) => String(row.envelope.result.attempts) },
            {
              name: 'Answer',
              cell: (row) => (
                <span className="small">
                  <Shown text={row.envelope.result.error?.message ?? row.envelope.result.provider_id ?? ''} />
                </span>
              ),
              hideNarrow: true,
            },
            { name: 'Next try', cell: (row) => <Time at={row.waiting?.until} /> },
            { name: 'Made', cell: (row) => <Time at={row.envelope.timestamps.created_at} />, hideNarrow: true },
            {
              name: 'Change',
              unnamed: true,
              cell: (row) => (
                <span className="row nowrap">
                  <Button onClick={() => change({ delivery: row.envelope.action_id })}>Attempts</Button>
                  <Button whyNot={whyNot(row)} onClick={() => setSent(row)}>
                    Send again…
                  </Button>
                </span>
              ),
            },
          ]}
        />
      )}
      {deliveries.data?.next_cursor && (
        <p className="muted">
          These are the newest.{' '}
          <Link href={`/actions?automation_id=${encodeURIComponent(automation)}`}>All deliveries</Link>
        </p>
      )}
      {opened && <Attempts id={opened} onClose={() => change({ delivery: undefined }, { replace: true })} />}
      {sent && <SendAgain row={sent} whyNot={(gone) => whyNot(sent, gone)} onClose={() => setSent(undefined)} />}
    </section>
  )
}

// SendAgain offers what is possible for a delivery, which depends on whether its dead letter is still there.
function SendAgain({
  row,
  whyNot,
  onClose,
}: {
  row: Action
  whyNot: (gone: boolean) => string | undefined
  onClose: () => void
}) {
  const id = row.envelope.action_id
  const letter = useQuery<unknown, Problem>({
    queryKey: ['dead-letters', 'of', id],
    queryFn: ({ signal }) => get(`/api/v1/dead-letters/${encodeURIComponent(id)}`, {}, signal),
    enabled: mayBeDead(row),
    gcTime: 0,
  })
  const gone = letter.error?.status === 404
  const way = againOf(row, gone)
  const why = whyNot(gone)
  const open = way && !why && !letter.isLoading && (gone || !letter.error)
  if (open)
    return (
      <Ask
        title="Deliver it again?"
        text={gone ? `Its dead letter was discarded or replayed. ${again[way].text}` : again[way].text}
        label={again[way].label}
        note="may"
        hint="Reason, for the audit log."
        send={(note) => again[way].send(id, note)}
        onDone={({ action_ids }) => {
          toast({
            text: action_ids.length
              ? 'It is on the schedule again.'
              : 'It was not sent: somebody replayed or discarded it before you.',
          })
          for (const word of ['actions', 'history', 'dead-letters', 'dead-letter-summary'])
            void queries.invalidateQueries({ queryKey: [word] })
        }}
        onClose={onClose}
      />
    )
  return (
    <Dialog title="Deliver it again?" onClose={onClose} actions={<Button onClick={onClose}>Close</Button>}>
      {letter.isLoading && <Loading what="dead letter" />}
      {letter.error && !gone && (
        <ProblemNote error={letter.error} what="Its dead letter was not loaded" onRetry={() => void letter.refetch()} />
      )}
      {why && !letter.isLoading && (
        <p>
          {gone && 'Its dead letter was discarded or replayed. '}
          {why}
        </p>
      )}
    </Dialog>
  )
}

function Attempts({ id, onClose }: { id: string; onClose: () => void }) {
  const attempts = useQuery({
    queryKey: ['history', id, 'attempts'],
    queryFn: ({ signal }) => whole<Schemas['Attempt']>(`${to}/${encodeURIComponent(id)}/attempts`, {}, signal),
  })
  const related = useQuery({
    queryKey: ['history', id, 'related'],
    queryFn: ({ signal }) =>
      get<Schemas['ExecutionDetail']>(`/api/v1/executions/${encodeURIComponent(id)}`, {}, signal),
  })
  const resends = related.data?.related?.filter(({ relation }) => relation === 'resend' || relation === 'resends')
  return (
    <Sheet title="Attempts" onClose={onClose}>
      <div className="stack">
        {attempts.isPending && <Loading what="attempts" />}
        {attempts.error && <ProblemNote error={attempts.error} onRetry={() => void attempts.refetch()} />}
        {attempts.data?.items.length === 0 && <p className="muted">No attempt yet.</p>}
        <ol className="stack">
          {attempts.data?.items.map((one, at) => (
            <li key={at} className="stack">
              <p className="row">
                <State state={one.status} /> <span>attempt {String(one.attempt)}</span>{' '}
                <Time at={one.finished_at} as="clock" />
                {one.code && <code>{shown(one.code)}</code>}
              </p>
              {one.message && (
                <p>
                  <Shown text={one.message} />
                </p>
              )}
              {one.result !== undefined && <JsonText value={one.result} label={`Answer of attempt ${one.attempt}`} />}
            </li>
          ))}
        </ol>
        {related.error && <ProblemNote error={related.error} what="Its resends were not loaded" />}
        {resends && resends.length > 0 && (
          <section className="stack" aria-labelledby="resends">
            <h3 id="resends">Same message</h3>
            <ul className="stack">
              {resends.map((one) => (
                <li key={one.execution_id} className="row">
                  <Link href={`/actions/${encodeURIComponent(one.execution_id)}`}>
                    {one.relation === 'resend' ? 'Sent again' : 'The first delivery'}
                  </Link>
                  <Time at={one.proposed_at} as="clock" />
                </li>
              ))}
            </ul>
          </section>
        )}
        <p>
          <Link href={`/actions/${encodeURIComponent(id)}`}>The whole action</Link>
        </p>
      </div>
    </Sheet>
  )
}
