// The way of an action as a list: who did what and when, and what came of each attempt.
import { type ReactNode, useState } from 'react'
import { Link } from 'wouter'
import { WordDiff } from '../../form/text'
import { personOf } from '../../lib/actor'
import { type Json, stringify } from '../../lib/json'
import { diff } from '../../lib/pointer'
import { shown } from '../../lib/text'
import { duration } from '../../lib/time'
import { Button, Icon, type IconName, JsonText, Shown, State, Time } from '../../ui'
import type { Action, Execution } from './read'
import { fold, type Item } from './way'

type Snapshot = Execution['snapshots'][number]

const kinds: Record<string, [sign: IconName, words: string, tone: string]> = {
  proposed: ['dot', 'proposed', 'calm'],
  asked: ['quarter', 'approval requested', 'person'],
  voted: ['check', 'agreed', 'good'],
  edited: ['pencil', 'edited', 'person'],
  approved: ['check', 'approved', 'good'],
  denied: ['barred', 'denied', 'bad'],
  expiring: ['hourglass', 'expires soon', 'person'],
  escalated: ['up', 'escalated: more people were told', 'person'],
  expired: ['hourglass', 'expired: nobody decided in time', 'calm'],
  returned_to_approval: ['quarter', 'needs a person after all', 'person'],
  waits: ['clock', 'waits', 'waits'],
  ended: ['skip', 'ended', 'calm'],
  undone: ['undo', 'undone', 'calm'],
  killed: ['cross', 'ended by the kill switch', 'bad'],
  replayed: ['refresh', 'replayed', 'waits'],
  discarded: ['cross', 'given up', 'calm'],
  resolved: ['check', 'resolved', 'good'],
  reverted: ['undo', 'its reversal was proposed', 'calm'],
}

export interface WayProps {
  items: readonly Item[]
  action: Action
  snapshots: readonly Snapshot[]
}

// Way is the truth that the bar above only draws.
export function Way({ items, action, snapshots }: WayProps) {
  return (
    <ol className="way" aria-label="What happened, oldest first">
      {fold(items).map((folded, i) =>
        folded.items ? (
          <Folded key={i} items={folded.items} action={action} snapshots={snapshots} />
        ) : (
          <Entry key={i} item={folded.item} action={action} snapshots={snapshots} />
        ),
      )}
    </ol>
  )
}

function Folded({ items, action, snapshots }: { items: Item[]; action: Action; snapshots: readonly Snapshot[] }) {
  const [open, setOpen] = useState(false)
  const [first, last] = [items[0]!, items.at(-1)!]
  if (open) {
    return (
      <>
        <li className="way-fold">
          <Button kind="quiet" icon="up" onClick={() => setOpen(false)}>
            Fold these {items.length}
          </Button>
        </li>
        {items.map((item, i) => (
          <Entry key={i} item={item} action={action} snapshots={snapshots} />
        ))}
      </>
    )
  }
  const what =
    first.kind === 'attempt'
      ? `${first.attempt?.code} in attempts ${first.attempt?.attempt} to ${last.attempt?.attempt}`
      : `waited for ${first.detail?.waiting?.message ?? 'its turn'}`
  return (
    <Line
      at={first.at}
      sign={first.kind === 'attempt' ? 'cross' : 'clock'}
      tone={first.kind === 'attempt' ? 'bad' : 'waits'}
    >
      <Shown text={what} /> {items.length} ×, until <Time at={last.at} as="clock" />
      <Button kind="quiet" icon="down" onClick={() => setOpen(true)}>
        Show them
      </Button>
    </Line>
  )
}

function Line({ at, sign, tone, children }: { at: string; sign: IconName; tone: string; children: ReactNode }) {
  return (
    <li className="way-line">
      <span className="way-at mono muted">
        <Time at={at} as="clock" />
      </span>
      <span className={`way-sign tone-${tone}`}>
        <Icon name={sign} />
      </span>
      <div className="way-what">{children}</div>
    </li>
  )
}

function Entry({ item, action, snapshots }: { item: Item; action: Action; snapshots: readonly Snapshot[] }) {
  const [sign, words, tone] = kinds[item.kind] ?? ['dot', item.kind.replaceAll('_', ' '), 'calm']
  if (item.attempt && item.kind === 'attempt') return <Call item={item} snapshots={snapshots} />
  return (
    <Line at={item.at} sign={sign} tone={tone}>
      <div className="row">
        <span>
          {words}
          {item.kind === 'waits' && item.detail?.waiting ? ` for ${shown(item.detail.waiting.message)}` : ''}
        </span>
        {item.actor && (
          <span className="muted" title={shown(item.actor)}>
            by <Shown text={personOf(item.actor)} />
          </span>
        )}
        <Details item={item} />
      </div>
      {item.note && (
        <p className="way-note">
          “<Shown text={item.note} lines />”
        </p>
      )}
      {item.kind === 'edited' && <Edited item={item} action={action} />}
      {item.attempt && <Ended item={item} />}
    </Line>
  )
}

function Details({ item: { kind, detail } }: { item: Item }) {
  if (!detail) return null
  const { origin, approvals_needed, expires_at, waiting, reversal, source, mode } = detail
  return (
    <span className="row small muted">
      {origin && (
        <span title={origin.user_agent && shown(origin.user_agent)}>
          by {origin.via}
          {origin.ip && ` from ${origin.ip}`}
        </span>
      )}
      {kind === 'proposed' && mode && <span>policy: {mode.replaceAll('_', ' ')}</span>}
      {kind === 'denied' && source && <Shown text={source} />}
      {approvals_needed !== undefined && (
        <span>{Number(approvals_needed) === 1 ? 'one person' : `${approvals_needed} people`} must agree</span>
      )}
      {expires_at && (
        <span>
          until <Time at={expires_at} as="both" />
        </span>
      )}
      {waiting?.until && (
        <span>
          until <Time at={waiting.until} as="both" />
        </span>
      )}
      {reversal && <Link href={`/actions/${reversal.action_id}`}>see the reversal</Link>}
    </span>
  )
}

// Edited shows what people changed, by pointer: of the last edit with both texts, of those before by name alone.
function Edited({ item, action }: { item: Item; action: Action }) {
  const pointers = item.detail?.pointers ?? []
  const edits = action.decision?.edited?.edits ?? []
  const proposed = action.decision?.edited?.proposed_args
  const changes = proposed && edits.length === 1 ? diff(proposed as Json, action.envelope.args as Json) : []
  if (changes.length === 0)
    return (
      <p className="small">
        {pointers.map((p) => (
          <code key={p}>
            <Shown text={p || 'everything'} />{' '}
          </code>
        ))}
      </p>
    )
  return (
    <dl className="changes">
      {changes.map(({ pointer, was, now }) => (
        <div key={pointer}>
          <dt className="mono">
            <Shown text={pointer || 'everything'} />
          </dt>
          <dd>
            <WordDiff was={text(was)} now={text(now)} />
          </dd>
        </div>
      ))}
    </dl>
  )
}

const text = (value: Json | undefined) =>
  value === undefined ? '' : typeof value === 'string' ? value : stringify(value, 2)

function Ended({ item }: { item: Item }) {
  const { attempt } = item
  if (!attempt?.code && !attempt?.message) return null
  return (
    <p className="small">
      {attempt.code && <code>{attempt.code}</code>} {attempt.message && <Shown text={attempt.message} />}
    </p>
  )
}

// Call is one attempt: how it ended, who made it, how long it took, and what was answered.
function Call({ item, snapshots }: { item: Item; snapshots: readonly Snapshot[] }) {
  const attempt = item.attempt!
  const long = attempt.started_at ? Date.parse(attempt.finished_at) - Date.parse(attempt.started_at) : undefined
  const around = snapshots.filter((s) => Number(s.attempt) === Number(attempt.attempt))
  const good = attempt.status === 'sent' || attempt.status === 'conflict'
  const sign: IconName = good
    ? 'check'
    : attempt.status === 'unknown'
      ? 'diamond'
      : attempt.status === 'pending'
        ? 'refresh'
        : 'cross'
  return (
    <Line
      at={attempt.started_at ?? item.at}
      sign={sign}
      tone={good ? 'good' : attempt.status === 'unknown' ? 'unknown' : 'bad'}
    >
      <div className="row">
        <span>attempt {String(attempt.attempt)}</span>
        {attempt.status === 'pending' ? <span className="muted">to be retried</span> : <State state={attempt.status} />}
        {attempt.code && <code>{attempt.code}</code>}
        {attempt.provider_id && (
          <span className="muted small">
            provider’s id{' '}
            <code>
              <Shown text={attempt.provider_id} />
            </code>
          </span>
        )}
        <span className="muted small">
          {attempt.worker && <Shown text={attempt.worker} />}
          {long !== undefined && ` ${duration(Math.max(0, long))}`}
        </span>
      </div>
      {attempt.message && (
        <p className="small">
          <Shown text={attempt.message} />
        </p>
      )}
      {attempt.result !== undefined && (
        <Open summary="Answer">
          <JsonText value={attempt.result} label={`Answer of attempt ${attempt.attempt}`} />
        </Open>
      )}
      {around.length > 0 && (
        <Open summary="Before and after">
          {around.map((s, i) => (
            <div key={i}>
              <p className="small muted">
                {s.stage}, read by <Shown text={s.tool} /> at <Time at={s.at} as="clock" />{' '}
                {s.code && <code>{s.code}</code>}
              </p>
              {s.result !== undefined && <JsonText value={s.result} label={`${s.stage} attempt ${attempt.attempt}`} />}
            </div>
          ))}
        </Open>
      )}
    </Line>
  )
}

function Open({ summary, children }: { summary: string; children: ReactNode }) {
  return (
    <details className="open">
      <summary>{summary}</summary>
      {children}
    </details>
  )
}
