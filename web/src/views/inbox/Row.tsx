// One line of the inbox.

import { useQuery } from '@tanstack/react-query'
import { memo } from 'react'
import { shown } from '../../lib/text'
import { useNow } from '../../lib/time'
import { Risk, State, Time } from '../../ui'
import { actionQuery, type Item } from './items'
import { lookalike } from './Lookalikes'
import { mailLine } from './likeness'
import { useMemory } from './memory'
import { Person } from './Person'

interface Props {
  item: Item
  // gone says that the item no longer waits, by what the list says now.
  gone: boolean
  // ask says that what became of it may be asked of the server.
  ask: boolean
}

const kinds = {
  approval: undefined,
  question: undefined,
  review: undefined,
  notify: 'completed',
  unknown: 'unknown',
  compensation: 'failed',
} as const

// Row shows an item. What was decided stays in its place, greyed, with what became of it. It is drawn again where it
// changed alone: a list has a thousand.
export const Row = memo(function Row({ item, gone, ask }: Props) {
  const { outcome, draft, sent, refused } = useMemory(item.action_id)
  const kind = kinds[item.kind]
  const over = gone || outcome !== undefined
  return (
    <div className={over ? 'inbox-row over' : 'inbox-row'}>
      <span className="grow stack-tight">
        <span className="row-line">
          <strong className="cut">{shown(item.title || item.tool)}</strong>
          {item.title && <span className="faint cut">{shown(item.tool)}</span>}
        </span>
        <span className="row-line muted">
          <span className="cut">{item.mail ? <bdi>{shown(mailLine(item.mail))}</bdi> : shown(item.headline)}</span>
        </span>
        <span className="row-line faint small">
          <span className="cut">
            {item.proposed_by ? <Person actor={item.proposed_by} /> : 'Countersign'}
            {item.session_id && ` in ${shown(item.session_id)}`}
          </span>
        </span>
      </span>
      <span className="row-side">
        {sent ? (
          <State state="executing" word={`${sent.words}…`} />
        ) : over ? (
          <Became item={item} ask={ask} />
        ) : (
          <Facts item={item} kind={kind} changed={draft !== undefined} refused={refused?.words} />
        )}
      </span>
    </div>
  )
})

function Facts({
  item,
  kind,
  changed,
  refused,
}: {
  item: Item
  kind: string | undefined
  changed: boolean
  refused: string | undefined
}) {
  return (
    <>
      <span className="row-line">
        {refused && <State state="failed" word={refused} />}
        {kind && <State state={kind} word={item.kind === 'compensation' ? 'not reverted' : undefined} />}
        {item.drift && <State state="drift" />}
        {item.lookalikes && <State state="drift" word={shown(lookalike(item.lookalikes)!)} />}
        {changed && <span className="faint">draft</span>}
        {item.approvals_needed > 1 && (
          <span className="faint">
            {item.approvals_given} of {item.approvals_needed}
          </span>
        )}
        {item.escalated && <span className="escalated">waits long</span>}
        <Risk risk={item.risk} />
      </span>
      <span className="row-line faint small">
        {endsSoon(item.expires_at, useNow(60_000)) ? (
          <span className="escalated">
            ends <Time at={item.expires_at} />
          </span>
        ) : (
          <Time at={item.since} />
        )}
      </span>
    </>
  )
}

// nearEnd is how long before its end an item shows it, in milliseconds; before that it shows since when it waits.
const nearEnd = 60 * 60_000

const endsSoon = (at: string | null | undefined, now: number) => Boolean(at) && Date.parse(at!) - now < nearEnd

function Became({ item, ask }: { item: Item; ask: boolean }) {
  const { outcome } = useMemory(item.action_id)
  const action = useQuery({ ...actionQuery(item.action_id), enabled: ask && !outcome }).data
  if (outcome) return <State state={outcome.state} word={outcome.words} />
  if (!action) return <span className="faint">no longer waits</span>
  const by = action.decision?.by
  return (
    <>
      <State state={action.phase} />
      <span className="row-line faint small">
        {by && (
          <>
            by <Person actor={by} />,{' '}
          </>
        )}
        {action.decision?.at && <Time at={action.decision.at} />}
      </span>
    </>
  )
}
