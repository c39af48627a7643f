import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Link } from 'wouter'
import { Setting } from '../../form/setting'
import { personOf } from '../../lib/actor'
import { useChange } from '../../lib/change'
import { type Problem, path, request } from '../../lib/client'
import { same } from '../../lib/json'
import { useMay } from '../../lib/me'
import { all as readAll } from '../../lib/pages'
import { useParams } from '../../lib/params'
import { shown } from '../../lib/text'
import { Button, Empty, Field, Loading, ProblemNote, Table, Time, toast } from '../../ui'
import { Export } from '../../ui/export'
import { Removed, type Sections, Simulation, useSimulation } from '../../ui/simulation'
import { spanProblem, toolProblem } from './expression'
import { Text } from './input'
import { OfTool, useTool } from './of-tool'
import type { Review } from './types'
import './rules.css'

const to = '/api/v1/reviews'

// Draft has the edited fields of a review rule.
type Draft = {
  tool: string
  risk: string
  approvals: number
  wait?: string
  warn?: string
  escalate?: string
  edits?: string
}

const blank: Draft = { tool: '', risk: 'low', approvals: 2 }

// draftOf returns the edited fields of a review rule, without empty values.
function draftOf({ tool, risk, approvals, wait, warn, escalate, edits }: Draft): Draft {
  const times = { ...(wait && { wait }), ...(warn && { warn }), ...(escalate && { escalate }) }
  return { tool, risk, approvals, ...times, ...(edits && { edits }) }
}

const versionOf = (of: Review | undefined) => ({ value: of ? draftOf(of) : null, etag: of?.etag ?? '' })

const keyOf = ({ tool, risk }: { tool: string; risk: string }) => `${risk} ${tool}`

const read = (signal?: AbortSignal) => readAll<Review>(to, signal)

const risks: Record<string, string> = { low: 'all', medium: 'medium and high', high: 'high' }

// Reviews lists who must agree to actions. The open one is in the address: review=RISK TOOL, or review= for a new one.
export function Reviews() {
  const [params, change, at] = useParams()
  const open = params.get('review')
  const may = useMay()
  const reviews = useQuery<Review[], Problem>({
    queryKey: ['config', 'reviews'],
    queryFn: ({ signal }) => read(signal),
  })
  const rows = useTool(reviews.data ?? [])
  if (reviews.isPending) return <Loading what="reviews" />
  if (reviews.isError) return <ProblemNote error={reviews.error} onRetry={() => void reviews.refetch()} />
  const found = reviews.data.find((one) => keyOf(one) === open)
  return (
    <div className="stack">
      <div className="row">
        <p className="grow muted">
          How many people must agree to actions that wait, and for how long they wait. Without a rule, one person
          decides.
        </p>
        <Export name="reviews" to={to} />
        <Button whyNot={may('putReview')} onClick={() => change({ review: '' })}>
          New review
        </Button>
      </div>
      <OfTool rows={reviews.data} />
      {reviews.data.length === 0 ? (
        <Empty title="No reviews">
          <p>
            <code>countersign review set 'mail:*' --approvals 2</code> makes one.
          </p>
        </Empty>
      ) : (
        rows.length > 0 && (
          <Table
            caption="Reviews"
            rows={rows}
            keyOf={keyOf}
            columns={[
              {
                name: 'Tools',
                cell: (one) => <Link href={at({ review: keyOf(one) })}>{shown(one.tool)}</Link>,
              },
              { name: 'Risk', cell: ({ risk }) => risks[risk] ?? shown(risk) },
              { name: 'People', cell: ({ approvals }) => approvals, number: true },
              { name: 'Waits', cell: ({ wait }) => wait ?? '–' },
              { name: 'Warning before the end', cell: ({ warn }) => warn ?? '–', hideNarrow: true },
              { name: 'Escalated after', cell: ({ escalate }) => escalate ?? '–', hideNarrow: true },
              {
                name: 'Editors',
                cell: ({ edits }) => (edits ? 'another person approves' : '–'),
                hideNarrow: true,
              },
              {
                name: 'Changed',
                cell: (one) => (
                  <>
                    <bdi>{shown(personOf(one.updated_by))}</bdi>, <Time at={one.updated_at} />
                  </>
                ),
                hideNarrow: true,
              },
            ]}
          />
        )
      )}
      {(open === '' || found) && (
        <Editor key={open} review={found} all={reviews.data} onClose={() => change({ review: undefined })} />
      )}
      {open && !found && <p role="status">The review {shown(open)} does not exist.</p>}
    </div>
  )
}

function Editor({ review, all, onClose }: { review: Review | undefined; all: readonly Review[]; onClose: () => void }) {
  const may = useMay()
  const [base] = useState(() => versionOf(review))
  const [draft, setDraft] = useState(base.value ?? blank)
  const set = (change: Partial<Draft>) => setDraft(draftOf({ ...draft, ...change }))
  const spans = [
    ['wait', 'How long a decision is waited for', 'Empty leaves it to other rules.'],
    ['warn', 'A warning, before the end', '0s is never.'],
    ['escalate', 'Escalated, after', '0s is never.'],
  ] as const
  const wrong =
    toolProblem(draft.tool) ??
    (!review && all.some((one) => keyOf(one) === keyOf(draft))
      ? 'There is a review for these tools and this risk.'
      : undefined) ??
    spans.map(([name]) => spanProblem(draft[name] ?? '')).find(Boolean)
  const others = all.filter((one) => one !== review).map(draftOf)
  const trial = useSimulation(
    wrong || same(draft, base.value ?? blank) ? undefined : ({ reviews: [...others, draft] } as Sections),
    { tool: draft.tool },
  )
  const of = path(`${to}/${encodeURIComponent(draft.tool)}`, { risk: draft.risk })
  const name = `the review of ${shown(draft.tool)}`
  const change = useChange<Draft>({
    base,
    read: async () => versionOf((await read()).find((one) => keyOf(one) === keyOf(draft))),
    write: (value, ifMatch) =>
      value === null
        ? request('DELETE', of, { ifMatch })
        : request('PUT', of, { body: { ...value, tool: undefined, risk: undefined }, ifMatch }),
    onSaved: (value) => {
      toast({ text: `${value === null ? 'Removed' : 'Saved'} ${name}.` })
      onClose()
    },
  })
  return (
    <Setting
      title={review ? `Review of ${shown(review.tool)}` : 'New review'}
      change={change}
      value={draft}
      whyNot={may('putReview') ?? wrong ?? trial.whyNot}
      onTheirs={(theirs) => (theirs ? setDraft(theirs) : onClose())}
      remove={{
        word: 'Remove',
        name,
        text: (
          <>
            <p>Other rules decide then how many people must agree; without any, one person does.</p>
            <Removed of={{ reviews: others } as Sections} />
          </>
        ),
        whyNot: may('deleteReview'),
      }}
      command={`countersign review set ${review ? shown(review.tool) : 'KEY'} --approvals ${draft.approvals}`}
      onClose={onClose}
    >
      {!review && (
        <div className="fields">
          <Field label="Tools" hint="mail:send, mail:*, *:send or *" error={draft.tool && toolProblem(draft.tool)}>
            {(wiring) => <Text {...wiring} value={draft.tool} most={301} onText={(tool) => set({ tool })} />}
          </Field>
          <Field label="Risk">
            {(wiring) => (
              <select {...wiring} value={draft.risk} onChange={(e) => set({ risk: e.target.value })}>
                {Object.entries(risks).map(([risk, words]) => (
                  <option key={risk} value={risk}>
                    {words}
                  </option>
                ))}
              </select>
            )}
          </Field>
        </div>
      )}
      <Field label="How many people must agree">
        {(wiring) => (
          <select {...wiring} value={draft.approvals} onChange={(e) => set({ approvals: Number(e.target.value) })}>
            {[1, 2, 3, 4, 5].map((n) => (
              <option key={n} value={n}>
                {n}
              </option>
            ))}
          </select>
        )}
      </Field>
      <div className="fields">
        {spans.map(([name, label, hint]) => (
          <Field
            key={name}
            label={label}
            hint={`Such as 30m, 8h or 2d. ${hint}`}
            error={spanProblem(draft[name] ?? '')}
          >
            {(wiring) => (
              <Text {...wiring} value={draft[name] ?? ''} most={40} onText={(text) => set({ [name]: text })} />
            )}
          </Field>
        ))}
      </div>
      <label className="row tick">
        <input
          type="checkbox"
          checked={draft.edits === 'another'}
          onChange={(e) => set({ edits: e.target.checked ? 'another' : '' })}
        />
        Who edits the arguments does not approve them
      </label>
      <p className="muted">The number of people is tried on past actions; the times are not.</p>
      <Simulation of={trial} />
    </Setting>
  )
}
