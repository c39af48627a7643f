import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { get, post, request, type Schemas } from '../../lib/client'
import { useMay } from '../../lib/me'
import { configChanged } from '../../lib/query'
import { shown } from '../../lib/text'
import { Ask, Button, Chip, Loading, ProblemNote, Table, Time, toast } from '../../ui'

type Pause = Schemas['Pause']

// An automation is triage, triage of one mail account, or a program that is paused.
interface Automation {
  name: string
  pause: Pause | undefined
}

// automationsOf lists triage with its accounts, and whatever else is paused.
export function automationsOf(accounts: readonly string[], pauses: readonly Pause[]): Automation[] {
  const paused = new Map(pauses.filter((one) => one.scope === 'automation').map((one) => [one.subject ?? '', one]))
  const triage = accounts.length > 0 ? ['triage', ...accounts.map((name) => `triage/${name}`)] : []
  const names = new Set([...triage, ...paused.keys()])
  return [...names].map((name) => ({ name, pause: paused.get(name) }))
}

type Change = 'pause' | 'kill' | 'resume'

const questions: Record<Change, { label: string; text: string; done: string }> = {
  pause: { label: 'Pause', text: 'Its actions wait until somebody resumes it.', done: 'is paused.' },
  kill: {
    label: 'Kill',
    text: 'Its pending actions end without being sent, and it is paused. A resume does not bring them back.',
    done: 'is killed.',
  },
  resume: { label: 'Resume', text: 'Its actions that waited are sent.', done: 'goes on.' },
}

// Automations lists what can be paused on its own, and pauses, kills and resumes it.
export function Automations() {
  const may = useMay()
  const [asked, setAsked] = useState<{ change: Change; one: Automation }>()
  const readable = may('listPauses') === undefined
  const pauses = useQuery({
    queryKey: ['config', 'pauses'],
    queryFn: ({ signal }) => get<{ items: Pause[] }>('/api/v1/pauses', { active: true, limit: 200 }, signal),
    enabled: readable,
  })
  const accounts = useQuery({
    queryKey: ['config', 'triage-status'],
    queryFn: ({ signal }) => get<{ items: Schemas['TriageStatus'][] }>('/api/v1/triage/status', {}, signal),
    enabled: may('getTriageStatus') === undefined,
  })
  if (!readable) return null
  const names = accounts.data?.items.map((one) => one.account) ?? []
  const rows = automationsOf(names, pauses.data?.items ?? [])
  const send = (note: string) => {
    const { change, one } = asked ?? { change: 'pause', one: { name: '', pause: undefined } }
    if (change === 'resume')
      return request('DELETE', `/api/v1/pauses/${one.pause?.pause_id}`, { query: { reason: note } })
    return post('/api/v1/pauses', {
      scope: 'automation',
      subject: one.name,
      reason: note,
      ...(change === 'kill' && { kill: true }),
    })
  }
  const button = (change: Change, one: Automation) => (
    <Button onClick={() => setAsked({ change, one })} whyNot={may(change === 'resume' ? 'resume' : 'pause')}>
      {questions[change].label}
      <span className="unseen"> {shown(one.name)}</span>
    </Button>
  )
  return (
    <section className="panel stack" aria-labelledby="settings-automations">
      <h2 id="settings-automations">Automations</h2>
      {pauses.isPending && <Loading what="pauses" />}
      {pauses.isError && <ProblemNote error={pauses.error} onRetry={() => void pauses.refetch()} />}
      {accounts.isError && <ProblemNote error={accounts.error} onRetry={() => void accounts.refetch()} />}
      {pauses.data && rows.length === 0 && <p className="muted">No automation is paused, and triage reads no mail.</p>}
      {rows.length > 0 && (
        <Table
          caption="Automations"
          rows={rows}
          keyOf={(one) => one.name}
          columns={[
            { name: 'Automation', cell: (one) => shown(one.name) },
            { name: 'State', cell: (one) => <State pause={one.pause} /> },
            { name: 'Since', cell: (one) => one.pause && <Time at={one.pause.at} />, hideNarrow: true },
            {
              name: 'Change',
              unnamed: true,
              cell: (one) => (
                <span className="row">
                  {(!one.pause || one.pause.travelling) && button('pause', one)}
                  {!one.pause?.kill && button('kill', one)}
                  {one.pause && button('resume', one)}
                </span>
              ),
            },
          ]}
        />
      )}
      <p className="muted">
        On the command line: <code>countersign pause --automation NAME</code>
      </p>
      {asked && (
        <Ask
          title={`${questions[asked.change].label} ${shown(asked.one.name)}?`}
          text={questions[asked.change].text}
          label={questions[asked.change].label}
          note={asked.change === 'resume' ? 'may' : 'must'}
          hint="The reason, for the audit log."
          send={send}
          onDone={() => {
            toast({ text: `${shown(asked.one.name)} ${questions[asked.change].done}` })
            configChanged()
          }}
          onClose={() => setAsked(undefined)}
        />
      )}
    </section>
  )
}

function State({ pause }: { pause: Pause | undefined }) {
  if (!pause) return <Chip tone="good">runs</Chip>
  const [tone, word] = pause.kill
    ? (['bad', 'killed'] as const)
    : pause.travelling
      ? (['waits', 'travelling'] as const)
      : (['waits', 'paused'] as const)
  return (
    <>
      <Chip tone={tone}>{word}</Chip> {shown(pause.reason)}
    </>
  )
}
