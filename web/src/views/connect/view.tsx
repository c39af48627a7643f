import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Redirect } from 'wouter'
import { get, post, type Schemas } from '../../lib/client'
import { type Me, useMe } from '../../lib/me'
import { shown } from '../../lib/text'
import { Button, Field, Loading, ProblemNote } from '../../ui'

type ProgramRequest = Schemas['ProgramRequest']

const kept = 'connect'

// takeRequest moves the request from the address to the tab: the history keeps it otherwise, and the way to the login
// is too short for it.
function takeRequest(): string {
  const search = new URLSearchParams(location.search)
  const given = search.get('request')
  if (given) {
    sessionStorage.setItem(kept, given)
    history.replaceState(history.state, '', location.pathname)
  }
  return given ?? sessionStorage.getItem(kept) ?? ''
}

const lengths = [
  ['1d', 'One day'],
  ['7d', 'One week'],
  ['30d', 'Thirty days'],
  ['90d', 'Ninety days'],
  ['365d', 'One year'],
] as const

const rights: Record<string, string> = {
  'actions:propose': 'propose actions, which policy and people decide about',
  'actions:read': 'see the actions that it proposed',
  'catalog:read': 'see the tools that you choose below',
}

export default function Connect() {
  const [request] = useState(takeRequest)
  const me = useMe()
  const shownRequest = useQuery({
    queryKey: ['program', request],
    queryFn: () => post<ProgramRequest>('/auth/program', { request }),
    enabled: me.isSuccess && request !== '',
    retry: false,
    staleTime: Number.POSITIVE_INFINITY,
  })
  if (me.isPending) return <Loading what="the page" />
  if (me.error?.status === 401) return <Redirect to="/login?to=%2Fconnect" replace />
  return (
    <main className="login" id="main" tabIndex={-1}>
      {me.error ? (
        <ProblemNote error={me.error} onRetry={() => void me.refetch()} />
      ) : request === '' ? (
        <>
          <h1 className="title">Nothing to connect</h1>
          <p>Add the server’s URL to your program. It opens this page when it connects.</p>
        </>
      ) : shownRequest.isError ? (
        <>
          <h1 className="title">Not connected</h1>
          <ProblemNote error={shownRequest.error} />
        </>
      ) : shownRequest.data ? (
        <Consent request={request} asked={shownRequest.data} me={me.data} />
      ) : (
        <Loading what="the request" />
      )}
    </main>
  )
}

function Program({ asked }: { asked: ProgramRequest }) {
  return (
    <>
      <p>
        {asked.vouched_by ? (
          <>
            The program is published at <strong>{shown(asked.vouched_by)}</strong>.
          </>
        ) : (
          <>The program chose its name itself. Anybody can use this name.</>
        )}
      </p>
      <p>
        {asked.local ? (
          <>
            The answer goes to a program on <strong>your own computer</strong> ({shown(asked.redirect_host)}). Continue
            only if you started it there just now.
          </>
        ) : (
          <>
            The answer goes to <strong>{shown(asked.redirect_host)}</strong>. Continue only if you trust that site.
          </>
        )}
      </p>
    </>
  )
}

function Consent({ request, asked, me }: { request: string; asked: ProgramRequest; me: Me }) {
  const program = shown(asked.program) || 'A program without a name'
  const [name, setName] = useState(asked.program || 'agent')
  const [length, setLength] = useState('30d')
  const [all, setAll] = useState(true)
  const [chosen, setChosen] = useState<readonly string[]>([])
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState<unknown>()
  const answer = async (agree: boolean) => {
    setBusy(true)
    setProblem(undefined)
    try {
      const tools = all ? {} : { tools: chosen.map((source) => `${source}:*`) }
      const body = agree ? { request, agree, name: name.trim(), expires_in: length, ...tools } : { request, agree }
      const { location: to } = await post<Schemas['ConsentLocation']>('/auth/consent', body)
      sessionStorage.removeItem(kept)
      location.assign(to)
    } catch (error) {
      setProblem(error)
      setBusy(false)
    }
  }
  const missing = name.trim() === '' ? 'Name the agent first.' : !all && chosen.length === 0 ? 'Choose a source.' : ''
  const whyNot = asked.may_consent ? missing || undefined : asked.why_not
  return (
    <div className="stack">
      <h1 className="title">Connect {program}?</h1>
      <Program asked={asked} />
      <p>
        It becomes an agent of <strong>{shown(me.tenant)}</strong>, and may:
      </p>
      <ul>
        {asked.scopes.map((scope) => (
          <li key={scope}>{rights[scope] ?? scope}</li>
        ))}
      </ul>
      <p className="muted">
        You are logged in as {shown(me.name)}. The agent is listed with your tokens, where you can end it at any time.
      </p>
      <Field label="Name of the agent" hint="All its actions carry this name.">
        {(wiring) => (
          <input {...wiring} value={name} onChange={(event) => setName(event.target.value)} maxLength={100} />
        )}
      </Field>
      <Field label="It may act for">
        {(wiring) => (
          <select {...wiring} value={length} onChange={(event) => setLength(event.target.value)}>
            {lengths.map(([value, label]) => (
              <option key={value} value={value}>
                {label}
              </option>
            ))}
          </select>
        )}
      </Field>
      <Tools all={all} setAll={setAll} chosen={chosen} setChosen={setChosen} />
      {!asked.may_consent && <p role="alert">{asked.why_not || 'Only administrators and owners connect programs.'}</p>}
      {problem !== undefined && <ProblemNote error={problem} what="Not connected" />}
      <p className="row">
        <Button kind="primary" onClick={() => void answer(true)} busy={busy} whyNot={whyNot}>
          Connect
        </Button>
        {asked.may_consent && (
          <Button onClick={() => void answer(false)} busy={busy}>
            Refuse
          </Button>
        )}
      </p>
    </div>
  )
}

interface Choice {
  all: boolean
  setAll: (all: boolean) => void
  chosen: readonly string[]
  setChosen: (chosen: readonly string[]) => void
}

function Tools({ all, setAll, chosen, setChosen }: Choice) {
  const sources = useQuery({
    queryKey: ['sources'],
    queryFn: ({ signal }) => get<{ items: { source_id: string }[] }>('/api/v1/sources', {}, signal),
    enabled: !all,
  })
  return (
    <fieldset className="stack">
      <legend>Tools</legend>
      <label>
        <input type="checkbox" checked={all} onChange={(event) => setAll(event.target.checked)} /> All tools, including
        sources that are added later
      </label>
      {!all &&
        (sources.data?.items ?? []).map(({ source_id: id }) => (
          <label key={id}>
            <input
              type="checkbox"
              checked={chosen.includes(id)}
              onChange={(event) =>
                setChosen(event.target.checked ? [...chosen, id] : chosen.filter((one) => one !== id))
              }
            />{' '}
            {shown(id)}
          </label>
        ))}
      {!all && sources.isError && <ProblemNote error={sources.error} onRetry={() => void sources.refetch()} />}
    </fieldset>
  )
}
