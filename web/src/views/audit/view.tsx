// The audit log: who did what to what, whether the record is as it was written, and its export.
import './audit.css'
import { useInfiniteQuery } from '@tanstack/react-query'
import { Link } from 'wouter'
import { personOf } from '../../lib/actor'
import { get, type Problem, type Schemas } from '../../lib/client'
import { type Field, query, set } from '../../lib/filter'
import { useCommands } from '../../lib/keys'
import { shown } from '../../lib/text'
import { Button, Empty, JsonText, Loading, ProblemNote, Tabs, Time } from '../../ui'
import { Command } from '../../ui/command'
import { FilterBar, useFilter } from '../../ui/filter'
import { Export } from './export'
import { Verify } from './verify-tab'

type Entry = Schemas['AuditEvent']

const to = '/api/v1/audit/log'
const fields: readonly Field[] = [
  { name: 'kind', label: 'Kind', kind: 'text', example: 'configured' },
  { name: 'actor', label: 'Actor', kind: 'text', example: 'Ana' },
  { name: 'subject', label: 'Subject', kind: 'text', example: 'bucket email.daily' },
  { name: 'action_id', label: 'Action', kind: 'id' },
  { name: 'since', label: 'Since', kind: 'time' },
  { name: 'until', label: 'Until', kind: 'time' },
  { name: 'tab', label: 'Tab', kind: 'choice', choices: ['verify', 'export'], view: true },
]
const tabs = [
  { key: 'log', label: 'Log' },
  { key: 'verify', label: 'Verify' },
  { key: 'export', label: 'Export' },
] as const
type Tab = (typeof tabs)[number]['key']

export default function View() {
  const filter = useFilter(fields)
  const tab = (filter.filter.tab as Tab | undefined) ?? 'log'
  return (
    <div className="page">
      <h1>Audit log</h1>
      <Tabs
        label="Parts of the audit log"
        tabs={tabs}
        chosen={tab}
        onChoose={(key) => filter.change(set(filter.filter, 'tab', key === 'log' ? '' : key))}
      >
        <div className="stack">
          {tab === 'verify' && <Verify />}
          {tab === 'export' && <Export />}
          {tab === 'log' && (
            <>
              <FilterBar fields={fields} read={filter} onChange={filter.change} to={to} />
              {filter.problems.length === 0 && <Log asked={query(fields, filter.filter)} />}
            </>
          )}
        </div>
      </Tabs>
    </div>
  )
}

// The list is not read again behind the reader's back: Refresh does so.
function Log({ asked }: { asked: Record<string, string> }) {
  const log = useInfiniteQuery<
    { items: Entry[]; next_cursor: string | null },
    Problem,
    Entry[],
    readonly unknown[],
    string
  >({
    queryKey: ['audit-log', asked],
    queryFn: ({ pageParam, signal }) => get(to, { ...asked, limit: 50, cursor: pageParam }, signal),
    initialPageParam: '',
    getNextPageParam: (page) => page.next_cursor,
    select: ({ pages }) => pages.flatMap((page) => page.items),
    staleTime: Infinity,
    gcTime: 0,
  })
  useCommands([{ id: 'refresh', run: () => void log.refetch() }])
  const { data, error } = log
  return (
    <>
      {error && <ProblemNote error={error} what="The events were not loaded" onRetry={() => void log.refetch()} />}
      {!data && !error && <Loading what="the events" />}
      {data && data.length === 0 && !log.hasNextPage && (
        <Empty title="No events match the filter">
          <p>Everything that people, policy and workers do is recorded here.</p>
        </Empty>
      )}
      {data && data.length > 0 && (
        <ol className="panel events" aria-label="Events, newest first">
          {data.map((entry) => (
            <li key={entry.position}>
              <Row entry={entry} />
            </li>
          ))}
        </ol>
      )}
      <div className="row">
        <Button command="refresh" icon="refresh" busy={log.isFetching} onClick={() => void log.refetch()}>
          Refresh
        </Button>
        {log.hasNextPage && (
          <Button busy={log.isFetchingNextPage} onClick={() => void log.fetchNextPage()}>
            Load older events
          </Button>
        )}
        {data && data.length === 0 && log.hasNextPage && <span className="muted">None in the newest events.</span>}
      </div>
      <Command of="countersign audit log" />
    </>
  )
}

interface Item {
  action_id?: string
  status?: string
  subject?: string
  note?: string
  code?: string
}

function Row({ entry }: { entry: Entry }) {
  const items = entry.items as Item[]
  const first = items[0] ?? {}
  const more = Number(entry.items_total) - 1
  return (
    <details className="event">
      <summary>
        <span className="muted nowrap">
          <Time at={entry.at} as="clock" />
        </span>
        <span className="nowrap">{shown(entry.kind.replaceAll('_', ' '))}</span>
        <bdi className="cut">{shown(personOf(entry.actor))}</bdi>
        <bdi className="cut event-what">
          {shown(first.subject ?? [first.status, first.code].filter(Boolean).join(', '))}
          {first.note && ` · ${shown(first.note)}`}
          {more > 0 && ` and ${more.toLocaleString('en')} more`}
        </bdi>
      </summary>
      <div className="stack event-body">
        <p className="row small muted">
          <code>{shown(entry.position)}</code>
          <bdi>{shown(entry.actor)}</bdi>
          {first.action_id && <Link href={`/actions/${encodeURIComponent(first.action_id)}`}>The action</Link>}
          {more >= items.length &&
            ` The first ${items.length} items of ${Number(entry.items_total).toLocaleString('en')}.`}
        </p>
        <JsonText value={items} label={`Items of event ${entry.position}`} />
      </div>
    </details>
  )
}
