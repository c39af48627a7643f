import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { Link, useLocation } from 'wouter'
import { post, request, type Schemas } from '../../lib/client'
import { useMay } from '../../lib/me'
import { useParams } from '../../lib/params'
import { queries } from '../../lib/query'
import { shown } from '../../lib/text'
import { Ask, Button, Command, ProblemNote, Shown, Time, toast } from '../../ui'
import { ChangeSubscription } from './change'
import { Deliveries } from './deliveries'
import { automationOf, type Subscription } from './fields'
import { behind, SubscriptionState } from './state'

// effect returns the effect of deleting a subscription, in words.
const effect = (one: Subscription) =>
  `${shown(one.source)} gets no more events. ${behind(one)} events were not told yet, and messages that wait are not ` +
  'delivered. Its deliveries stay in the log. A new subscription hears of what happens from then on.'

// One shows a subscription with its deliveries.
export function One({ one }: { one: Subscription }) {
  const may = useMay()
  const [, go] = useLocation()
  const [params, change] = useParams()
  const [deleting, setDeleting] = useState(false)
  const path = `/api/v1/subscriptions/${encodeURIComponent(one.name)}`
  const testing = useMutation({
    mutationFn: () => post<Schemas['Action']>(`${path}/test`),
    onSuccess: () => {
      toast({ text: 'A test message is on its way: see its delivery below.' })
      void queries.invalidateQueries({ queryKey: ['actions'] })
    },
  })
  const facts: [name: string, value: React.ReactNode][] = [
    ['Source', <Shown key="source" text={one.source} />],
    ['Events', shown(one.kinds.join(', '))],
    ['Tools', shown(one.tool)],
    ['Lowest risk', one.min_risk],
    ...(one.channel ? [['Channel', shown(one.channel)] as [string, string]] : []),
    ...(one.interactions
      ? [['Interactivity URL ends in', <code key="path">{shown(one.interactions)}</code>] as [string, React.ReactNode]]
      : []),
    ['Signed', one.has_signing_secret ? 'yes' : 'no'],
    ['Not told yet', behind(one)],
    ['Changed', <Time key="at" at={one.updated_at} as="both" />],
    ['Changed by', <Shown key="by" text={one.updated_by} />],
  ]
  return (
    <>
      <header className="stack">
        <p className="small">
          <Link href="/subscriptions">Subscriptions</Link>
        </p>
        <div className="page-head">
          <h1 className="title mono">
            <Shown text={one.name} />
          </h1>
          <SubscriptionState one={one} />
          <Button
            whyNot={may('testSubscription') ?? (one.enabled ? undefined : 'It is off.')}
            busy={testing.isPending}
            onClick={() => testing.mutate()}
          >
            Send a test
          </Button>
          <Button icon="pencil" whyNot={may('putSubscription')} onClick={() => change({ change: 'true' })}>
            Change
          </Button>
          <Button kind="danger" whyNot={may('deleteSubscription')} onClick={() => setDeleting(true)}>
            Delete…
          </Button>
        </div>
        {testing.error && <ProblemNote error={testing.error} what="No test was sent" />}
      </header>
      <section className="panel" aria-label="Settings">
        <dl className="terms">
          {facts.map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
        </dl>
      </section>
      <Deliveries automation={automationOf(one)} off={!one.enabled} />
      <Command of="countersign subscription test NAME" />
      {params.get('change') === 'true' && !may('putSubscription') && (
        <ChangeSubscription one={one} taken={[]} onClose={() => change({ change: undefined }, { replace: true })} />
      )}
      {deleting && (
        <Ask
          title={`Delete ${shown(one.name)}?`}
          text={effect(one)}
          label="Delete it"
          note="no"
          hint=""
          send={() => request('DELETE', path, { ifMatch: `"${one.etag}"` })}
          onDone={() => {
            toast({ text: `${shown(one.name)} is deleted.` })
            void queries.invalidateQueries({ queryKey: ['config', 'subscriptions'] })
            go('/subscriptions', { replace: true })
          }}
          onClose={() => setDeleting(false)}
        />
      )}
    </>
  )
}
