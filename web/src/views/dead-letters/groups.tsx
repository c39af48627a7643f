// Dead letters: how many of each tool and code, and the letters that a filter selects.
import { useQuery } from '@tanstack/react-query'
import { Link, useLocation, useSearch } from 'wouter'
import { get, type Problem, type Schemas } from '../../lib/client'
import { type Filter, query, set, writeFilter } from '../../lib/filter'
import { useMay } from '../../lib/me'
import { shown } from '../../lib/text'
import { Button, Empty, ProblemNote, State, Time } from '../../ui'
import { FilterBar, useFilter } from '../../ui/filter'
import { Listing } from '../actions/listing'
import { useRows } from '../actions/rows'
import { Discard } from './discard'
import { ReplayDrawer } from './drawer'
import { fields } from './fields'

type DeadLetter = Schemas['DeadLetter']

// Group is what the summary says of the letters of one tool and code.
export interface Group {
  source: string
  tool: string
  reason: string
  code: string
  count: number
  capped: boolean
  oldest: string
  newest: string
}

const to = '/api/v1/dead-letters'
const keyOf = (letter: DeadLetter) => letter.action_id

export const stateOf: Record<string, [state: string, word: string]> = {
  refused: ['failed', 'refused'],
  exhausted: ['failed', 'attempts used up'],
  unknown: ['unknown', 'unknown'],
}

export function Groups() {
  const filter = useFilter(fields)
  const asked = query(fields, filter.filter)
  const ok = filter.problems.length === 0
  const summary = useQuery<{ items: Group[] }, Problem>({
    queryKey: ['dead-letter-summary', asked],
    enabled: ok,
    queryFn: ({ signal }) => get<{ items: Group[] }>(`${to}/summary`, asked, signal),
  })
  const may = useMay()
  const { drawer } = filter.filter
  const open = (which: string) => filter.change(set(filter.filter, 'drawer', which))
  const groups = summary.data?.items
  const total = groups?.reduce((sum, g) => sum + Number(g.count), 0) ?? 0
  const words = groups ? `${groups.some((g) => g.capped) ? 'more than ' : ''}${total.toLocaleString('en')}` : ''
  const nothing = groups && total === 0 ? 'No dead letters match the filter.' : undefined
  return (
    <div className="page page-letters">
      <header className="page-head">
        <h1>Dead letters</h1>
        <span className="muted grow">{words && `${words} that failed or have an unknown outcome`}</span>
        <Button icon="refresh" whyNot={may('replayDeadLetters') ?? nothing} onClick={() => open('replay')}>
          Replay {words}…
        </Button>
        <Button icon="cross" whyNot={may('discardDeadLetters') ?? nothing} onClick={() => open('discard')}>
          Give up…
        </Button>
      </header>
      <FilterBar fields={fields} read={filter} onChange={filter.change} to={to} />
      {summary.error && (
        <ProblemNote error={summary.error} what="The groups were not loaded" onRetry={() => void summary.refetch()} />
      )}
      {ok && groups && groups.length > 0 && <GroupTable groups={groups} />}
      {ok && <Letters filter={filter.filter} onClear={() => filter.change({})} />}
      {ok && drawer === 'replay' && (
        <ReplayDrawer
          filter={conditionsOf(filter.filter)}
          onClose={() => filter.change(set(filter.filter, 'drawer', ''), { replace: true })}
        />
      )}
      {ok && drawer === 'discard' && (
        <Discard
          filter={conditionsOf(filter.filter)}
          onClose={() => filter.change(set(filter.filter, 'drawer', ''), { replace: true })}
        />
      )}
    </div>
  )
}

const conditionsOf = (filter: Filter): Filter => set(filter, 'drawer', '')

const toolOf = (group: Group) => (group.tool.includes(':') ? group.tool : `${group.source}:${group.tool}`)

function GroupTable({ groups }: { groups: readonly Group[] }) {
  const search = useSearch()
  const most = Math.max(...groups.map((g) => Number(g.count)))
  return (
    <div className="table-scroll" tabIndex={0} role="group" aria-label="Groups of dead letters">
      <table className="table">
        <caption className="unseen">Dead letters by tool and code</caption>
        <thead>
          <tr>
            <th scope="col">Tool</th>
            <th scope="col">Why</th>
            <th scope="col">Code</th>
            <th scope="col" className="number">
              Letters
            </th>
            <th scope="col" className="hide-narrow">
              Oldest
            </th>
            <th scope="col" className="hide-narrow">
              Newest
            </th>
          </tr>
        </thead>
        <tbody>
          {groups.map((group) => {
            const { reason, code, count, capped, oldest, newest } = group
            const [state, word] = stateOf[reason] ?? [reason, reason]
            const href = writeFilter(fields, {
              ...Object.fromEntries(new URLSearchParams(search)),
              tool: toolOf(group),
              reason,
              ...(code ? { code } : {}),
            })
            return (
              <tr key={`${toolOf(group)} ${reason} ${code}`}>
                <td className="mono">
                  <Link href={`/dead-letters?${href}`}>{shown(toolOf(group))}</Link>
                </td>
                <td>
                  <State state={state} word={word} />
                </td>
                <td className="mono">{shown(code)}</td>
                <td className="number">
                  <meter className="hide-narrow" min={0} max={most} value={Number(count)} aria-hidden="true" />{' '}
                  {Number(count).toLocaleString('en')}
                  {capped && '+'}
                </td>
                <td className="hide-narrow muted">
                  <Time at={oldest} />
                </td>
                <td className="hide-narrow muted">
                  <Time at={newest} />
                </td>
              </tr>
            )
          })}
        </tbody>
      </table>
    </div>
  )
}

function Letters({ filter, onClear }: { filter: Filter; onClear: () => void }) {
  const [, go] = useLocation()
  const asked = query(fields, filter)
  const rows = useRows<DeadLetter>({ name: 'dead-letters', to, query: asked, key: keyOf, enabled: true })
  return (
    <Listing
      of="dead letters"
      asked={asked}
      rows={rows}
      keyOf={keyOf}
      row={(letter) => <Row letter={letter} />}
      onOpen={(id) => go(`/dead-letters/${id}`)}
      onClear={onClear}
      nothing={<Nothing />}
    />
  )
}

function Row({ letter }: { letter: DeadLetter }) {
  const [state, word] = stateOf[letter.reason] ?? [letter.reason, letter.reason]
  return (
    <span className="letter-row">
      <State state={state} word={word} />
      <span className="mono cut">{shown(letter.tool)}</span>
      <span className="mono cut">{shown(letter.code ?? '')}</span>
      <bdi className="cut letter-message">{shown(letter.message ?? '')}</bdi>
      <span className="muted cut">{shown(letter.external_id ?? '')}</span>
      <span className="muted nowrap action-at">
        <Time at={letter.at} as="clock" />
      </span>
    </span>
  )
}

function Nothing() {
  return (
    <Empty title="No dead letters">
      <p>
        Actions that failed for good, or whose outcome is unknown, are listed here. Each stays until a person replays
        it, gives it up, or resolves it.
      </p>
    </Empty>
  )
}
