import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Link } from 'wouter'
import { HiddenMark, WordDiff } from '../../form/text'
import { get, Problem, post, request, type Schemas } from '../../lib/client'
import { type Json, stringify } from '../../lib/json'
import { useMay } from '../../lib/me'
import { configChanged } from '../../lib/query'
import { shown } from '../../lib/text'
import { Ask, Button, Command, Loading, ProblemNote, toast } from '../../ui'
import { type Diff, type Group, grouped, standing } from './drift'
import { toolAPI } from './names'

type Tool = Schemas['Tool']

// Drift shows what of a tool nobody has accepted, to accept or to refuse it.
export function Drift({ tool }: { tool: Tool }) {
  const stands = standing(tool)
  const key = ['config', 'tool-diff', tool.tool]
  const diff = useQuery<Diff, Problem>({
    queryKey: key,
    enabled: stands === 'new' || stands === 'changed',
    queryFn: ({ signal }) => get<Diff>(`${toolAPI(tool.tool)}/diff`, {}, signal),
  })
  if (stands === 'fine') return null
  const source = tool.tool.slice(0, tool.tool.indexOf(':'))
  return (
    <section className="panel stack drift" aria-labelledby="drift">
      <h2 id="drift">{titles[stands]}</h2>
      {stands === 'source' ? (
        <p>
          {tool.quarantined
            ? 'Policy denies its calls until an administrator accepts the source.'
            : 'Where its calls go is not the accepted address, so that a person approves each call.'}{' '}
          <Link href={`/sources/${source}`}>See the source {shown(source)}</Link>
        </p>
      ) : (
        <>
          <p>{consequences(tool)}</p>
          {diff.error && (
            <ProblemNote error={diff.error} what="The difference was not loaded" onRetry={() => void diff.refetch()} />
          )}
          {diff.isPending && <Loading what="the difference" />}
          {diff.data && (
            <Difference tool={tool} present={diff.data} reload={async () => (await diff.refetch()).data ?? undefined} />
          )}
        </>
      )}
    </section>
  )
}

const titles = {
  source: 'The source is not accepted',
  new: 'A new tool that nobody has accepted',
  changed: 'The definition changed since it was accepted',
}

function consequences(tool: Tool): string {
  if (tool.quarantined) return 'Policy denies its calls until an administrator accepts it.'
  if (tool.drifted) return 'Policy requires approval of each call, and grants do not hold, until it is accepted.'
  return 'By the guard of its source this change needs no approval. It can be accepted all the same.'
}

// Difference shows one difference until the person takes the next one: what is accepted is what was looked at.
function Difference({ tool, present, reload }: { tool: Tool; present: Diff; reload: () => Promise<Diff | undefined> }) {
  const may = useMay()
  const [looked, setLooked] = useState(present)
  const [replaced, setReplaced] = useState(false)
  const [refusing, setRefusing] = useState(false)
  const accept = useMutation<Tool | undefined, unknown>({
    mutationFn: async () => {
      try {
        return await post<Tool>(`${toolAPI(tool.tool)}/accept`, { digest: looked.digest })
      } catch (error) {
        if (!(error instanceof Problem) || error.status !== 409) throw error
        const next = await reload()
        if (next) setLooked(next)
        setReplaced(true)
        return undefined
      }
    },
    onSuccess: (done) => {
      if (!done) return
      toast({ text: `${shown(tool.tool)} is accepted as shown.` })
      configChanged()
    },
  })
  const stale = present.digest !== looked.digest
  const groups = grouped(looked.changes)
  return (
    <>
      {replaced && (
        <p className="banner" role="alert">
          <strong>Nothing was accepted.</strong> The definition changed again after it was shown. This is the difference
          now.
        </p>
      )}
      {stale && (
        <p className="banner row" role="status">
          <span className="grow">The definition changed again since you looked.</span>
          <Button
            icon="refresh"
            onClick={() => {
              setLooked(present)
              setReplaced(false)
            }}
          >
            Show the present difference
          </Button>
        </p>
      )}
      {!looked.accepted_known && (
        <p className="muted">No accepted definition is on record, so that all of the present one is shown as new.</p>
      )}
      {groups.map((group) => (
        <Changes key={group.strength} group={group} />
      ))}
      {groups.length === 0 && <p>Nothing of it differs from the accepted definition.</p>}
      <Waiting tool={tool.tool} />
      {accept.isError && <ProblemNote error={accept.error} what="The definition was not accepted" />}
      <div className="row">
        <Button
          kind="primary"
          icon="check"
          busy={accept.isPending}
          whyNot={
            may('acceptTool') ?? (stale ? 'The definition changed. Show the present difference first.' : undefined)
          }
          onClick={() => accept.mutate()}
        >
          Accept as shown
        </Button>
        <Button icon="barred" whyNot={may('putMode')} onClick={() => setRefusing(true)}>
          Refuse…
        </Button>
        <span className="muted mono cut" title={looked.digest}>
          digest {looked.digest}
        </span>
      </div>
      <Command of="countersign tools accept SOURCE:TOOL --digest DIGEST" />
      {refusing && <Refuse tool={tool.tool} onClose={() => setRefusing(false)} />}
    </>
  )
}

function Changes({ group }: { group: Group }) {
  return (
    <section aria-labelledby={`drift-${group.strength}`}>
      <h3 id={`drift-${group.strength}`}>{group.title}</h3>
      <ul className="diffs">
        {group.changes.map(({ pointer, was, now, hidden }) => (
          <li key={pointer}>
            <code className="pointer">
              <bdi>{shown(pointer || '(everything)')}</bdi>
            </code>{' '}
            {hidden && <HiddenMark />}
            <div>
              {typeof was === 'string' && typeof now === 'string' ? (
                <WordDiff was={was} now={now} />
              ) : (
                <span className="diff">
                  {was !== undefined && (
                    <del>
                      <span className="unseen">before: </span>
                      {written(was)}
                    </del>
                  )}{' '}
                  {now !== undefined && (
                    <ins>
                      <span className="unseen">now: </span>
                      {written(now)}
                    </ins>
                  )}
                </span>
              )}
            </div>
          </li>
        ))}
      </ul>
    </section>
  )
}

// The server writes characters that do not show as \u{200B}. JSON doubles the backslash in a text inside of a value.
const written = (value: Json) =>
  typeof value === 'string' ? shown(value, 'lines') : shown(stringify(value, 2), 'lines').replaceAll('\\\\u{', '\\u{')

const mostCounted = 100

// Waiting counts the actions that a decision about the tool is about.
function Waiting({ tool }: { tool: string }) {
  const phase = 'pending,approved'
  const waiting = useQuery<{ items: unknown[]; next_cursor: string | null }, Problem>({
    queryKey: ['actions', 'waiting', tool],
    queryFn: ({ signal }) => get('/api/v1/actions', { tool, phase, view: 'summary', limit: mostCounted }, signal),
  })
  if (!waiting.data) return null
  const count = waiting.data.items.length
  if (count === 0) return <p className="muted">No action waits on this.</p>
  const search = new URLSearchParams({ phase, tool }).toString()
  return (
    <p>
      <Link href={`/actions?${search}`}>
        {waiting.data.next_cursor ? `More than ${count}` : count} {count === 1 ? 'action waits' : 'actions wait'} on
        this
      </Link>
    </p>
  )
}

function Refuse({ tool, onClose }: { tool: string; onClose: () => void }) {
  return (
    <Ask
      title={`Refuse ${shown(tool)}?`}
      text={
        'The definition stays as it is, not accepted, and policy denies all calls of the tool, also those that wait, ' +
        'until somebody sets another mode for it.'
      }
      label="Deny its calls"
      note="no"
      hint=""
      send={() => request('PUT', `/api/v1/policy/modes/${encodeURIComponent(tool)}`, { body: { mode: 'deny' } })}
      onDone={() => {
        toast({ text: `Policy denies ${shown(tool)}.` })
        configChanged()
      }}
      onClose={onClose}
    />
  )
}
