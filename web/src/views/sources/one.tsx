import { useMutation } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { Link, useLocation } from 'wouter'
import { type Problem, post, request } from '../../lib/client'
import { useCommands } from '../../lib/keys'
import { useMay } from '../../lib/me'
import { configChanged } from '../../lib/query'
import { shown } from '../../lib/text'
import { Ask, Button, Command, Empty, Icon, JsonText, Loading, ProblemNote, State, Time, toast } from '../../ui'
import { Logins } from '../settings/logins'
import { Form } from './form'
import { type Breaker, health, type Source } from './health'
import { sourceAPI, useBreakers, useSources } from './read'

export function OneSource({ id }: { id: string }) {
  // asked is when a listing was asked for: it has ended once the source was listed later.
  const [asked, setAsked] = useState('')
  const [listed, setListed] = useState('')
  const waits = asked !== '' && !(Date.parse(listed) > Date.parse(asked))
  const sources = useSources(waits)
  const breaker = useBreakers().get(id)
  const [, go] = useLocation()
  useCommands([{ id: 'back', run: () => go('/sources') }])
  const source = sources.data?.find((one) => one.source_id === id)
  if (source?.listed_at && source.listed_at !== listed) setListed(source.listed_at)
  if (!sources.data)
    return sources.error ? (
      <div className="page">
        <ProblemNote
          whole
          error={sources.error}
          what="The source was not loaded"
          onRetry={() => void sources.refetch()}
        />
      </div>
    ) : (
      <Loading what="the source" />
    )
  if (!source)
    return (
      <Empty whole title="Source not found">
        <p>
          <code>{shown(id)}</code> does not exist, or you have no access to it.
        </p>
        <Link href="/sources">All sources</Link>
      </Empty>
    )
  return <Loaded source={source} breaker={breaker} waits={waits} onAsked={setAsked} />
}

function Loaded({
  source,
  breaker,
  waits,
  onAsked,
}: {
  source: Source
  breaker: Breaker | undefined
  waits: boolean
  onAsked: (at: string) => void
}) {
  const may = useMay()
  const [, go] = useLocation()
  const [doing, setDoing] = useState<'change' | 'delete'>()
  const { source_id: id } = source
  const [state, word] = health(source, breaker)
  const refresh = useMutation<{ asked_at: string }, Problem>({
    mutationFn: () => post(`${sourceAPI(id)}/refresh`),
    onSuccess: ({ asked_at }) => {
      onAsked(asked_at)
      configChanged()
    },
  })
  return (
    <div className="page">
      <header className="stack">
        <p className="small">
          <Link href="/sources">Sources</Link>
        </p>
        <div className="page-head">
          <h1 className="title mono">{shown(id)}</h1>
          <State state={state} word={word} />
          <span className="muted grow">{source.kind}</span>
          <Button
            icon="refresh"
            busy={refresh.isPending || waits}
            whyNot={may('refreshSource') ?? (source.enabled ? undefined : 'The source is switched off.')}
            onClick={() => refresh.mutate()}
          >
            List its tools now
          </Button>
          <Button icon="pencil" whyNot={may('putSource')} onClick={() => setDoing('change')}>
            Change…
          </Button>
          <Button
            icon="cross"
            whyNot={
              may('deleteSource') ??
              (source.kind === 'builtin' ? 'The source of the tools that Countersign brings along stays.' : undefined)
            }
            onClick={() => setDoing('delete')}
          >
            Delete…
          </Button>
        </div>
        {refresh.error && <ProblemNote error={refresh.error} what="No listing was asked for" />}
      </header>
      <Acceptance source={source} />
      <Listing source={source} breaker={breaker} />
      <Logins only={id} />
      <section className="panel stack" aria-labelledby="configuration">
        <h2 id="configuration">Configuration</h2>
        <JsonText value={source.config} label="Configuration as JSON" />
        <Facts source={source} />
        <Command of="countersign source show ID" />
      </section>
      {doing === 'change' && <Form source={source} onClose={() => setDoing(undefined)} />}
      {doing === 'delete' && (
        <Ask
          title={`Delete ${shown(id)}?`}
          text={
            `Its ${source.tools} tools are removed with their settings, and its credentials and login are erased. ` +
            'Actions that name it stay on record; those that wait cannot be sent.'
          }
          label="Delete it"
          note="no"
          hint=""
          send={() => request('DELETE', sourceAPI(id), { ifMatch: `"${source.etag}"` })}
          onDone={() => {
            toast({ text: `${shown(id)} is deleted.` })
            configChanged()
            go('/sources')
          }}
          onClose={() => setDoing(undefined)}
        />
      )}
    </div>
  )
}

// Acceptance shows that nobody has accepted the address of a source, and accepts the one that is shown.
function Acceptance({ source }: { source: Source }) {
  const may = useMay()
  const accept = useMutation<unknown, Problem>({
    mutationFn: () => request('POST', `${sourceAPI(source.source_id)}/accept`, { ifMatch: `"${source.etag}"` }),
    onSuccess: () => {
      toast({ text: `The address of ${shown(source.source_id)} is accepted.` })
      configChanged()
    },
    onError: configChanged,
  })
  if (source.address_accepted && !source.quarantined) return null
  return (
    <section className="panel stack drift" aria-labelledby="acceptance">
      <h2 id="acceptance">{source.quarantined ? 'The source is in quarantine' : 'Its address is not accepted'}</h2>
      <p>
        {source.quarantined
          ? 'Somebody who may not change policy set where its calls go. Policy denies its tools until it is accepted.'
          : 'Its kind or configuration changed. A person approves each of its calls until it is accepted.'}
      </p>
      <p>Accept it if calls may go where this configuration leads:</p>
      <JsonText value={source.config} label="Configuration to accept" />
      {accept.error && <ProblemNote error={accept.error} what="Nothing was accepted" />}
      <p className="row">
        <Button
          kind="primary"
          icon="check"
          busy={accept.isPending}
          whyNot={may('acceptSource')}
          onClick={() => accept.mutate()}
        >
          Accept this configuration
        </Button>
      </p>
    </section>
  )
}

function Listing({ source, breaker }: { source: Source; breaker: Breaker | undefined }) {
  const { source_id: id, denied } = source
  const of = encodeURIComponent(id)
  return (
    <section className="panel stack" aria-labelledby="listing">
      <h2 id="listing">Tools</h2>
      <p>
        {source.listed_at ? (
          <>
            Last listing: <Time at={source.listed_at} as="both" />.{' '}
          </>
        ) : (
          'Not listed yet. '
        )}
        <Link href={`/tools?source=${of}`}>
          {String(source.tools)} {Number(source.tools) === 1 ? 'tool' : 'tools'}
        </Link>
        {Number(source.quarantined_tools) > 0 && (
          <>
            ,{' '}
            <Link href={`/tools?source=${of}&quarantined=true`}>{String(source.quarantined_tools)} in quarantine</Link>
          </>
        )}
        .
      </p>
      {source.list_error !== null && (
        <div className="problem" role="status">
          <Icon name="triangle" />
          <div>
            <strong>Its tools could not be listed</strong>
            <p className="lines">{shown(source.list_error, 'lines')}</p>
            <p className="muted">
              None of its tools is offered now. Listing is tried again by itself, at most every five minutes.
            </p>
          </div>
        </div>
      )}
      {breaker && breaker.state !== 'closed' && (
        <p>
          Calls wait, since the breaker opened <Time at={breaker.since} /> ({shown(breaker.cause)}), until{' '}
          <Time at={breaker.open_until} as="both" />.
        </p>
      )}
      {denied && (
        <p>
          {String(denied.count)} of them are denied and hidden from agents, because their risk is danger:{' '}
          <span className="mono">{shown(denied.tools.join(', '))}</span>
        </p>
      )}
      <Reasons title="Left out" of={source.left_out_tools.map((one) => [one.name, one.reason])} />
      <Reasons
        title="Regular expressions that are not checked"
        of={source.unchecked_tools.map((one) => [one.name, one.patterns.join(', ')])}
      />
    </section>
  )
}

function Reasons({ title, of }: { title: string; of: readonly (readonly [name: string, why: string])[] }) {
  if (of.length === 0) return null
  return (
    <details className="open">
      <summary>
        {title} ({of.length})
      </summary>
      <ul>
        {of.map(([name, why], i) => (
          <li key={i}>
            <code>{shown(name)}</code> {shown(why)}
          </li>
        ))}
      </ul>
    </details>
  )
}

function Facts({ source }: { source: Source }) {
  const facts: [name: string, value: ReactNode][] = [
    ['Credentials', source.has_credentials ? 'stored, never shown' : 'none'],
    ['Risk of tools that declare none', source.default_risk ?? 'the usual one'],
    ['Changes that need a person', source.drift_guard === 'full' ? 'any of a definition' : 'those of the interface'],
    ['Tools that appear later', source.quarantine ? 'wait until they are accepted' : 'may be used at once'],
    ['Calls while its login is lost', source.on_lost_login],
  ]
  return (
    <dl className="terms">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}
