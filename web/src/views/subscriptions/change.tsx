import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useLocation } from 'wouter'
import { Setting } from '../../form/setting'
import { useChange } from '../../lib/change'
import { request, type Schemas } from '../../lib/client'
import { useMay } from '../../lib/me'
import { whole } from '../../lib/pages'
import { shown } from '../../lib/text'
import { Field, toast } from '../../ui'
import { type Fields, fieldsOf, type Stored, type Subscription, stored } from './fields'

const to = '/api/v1/subscriptions'

// ChangeSubscription sets a subscription up, or changes one.
export function ChangeSubscription({
  one,
  taken,
  onClose,
}: {
  one?: Subscription
  taken: readonly Subscription[]
  onClose: () => void
}) {
  const may = useMay()
  const [, go] = useLocation()
  const [name, setName] = useState(one?.name ?? '')
  const [draft, setDraft] = useState<Fields>(() => fieldsOf(one))
  // The signing secret is sent by the write itself: compared, shown and kept values lack it.
  const [secret, setSecret] = useState('')
  const [fromNow, setFromNow] = useState(false)
  const sources = useQuery({
    queryKey: ['config', 'sources-of-subscriptions'],
    queryFn: ({ signal }) => whole<Schemas['Source']>('/api/v1/sources', {}, signal),
    enabled: may('listSources') === undefined,
  }).data?.items.filter((row) => row.kind === 'webhook' || row.kind === 'slack')
  const slack = sources?.find((row) => row.source_id === draft.source)?.kind === 'slack' || Boolean(draft.channel)
  const changing = useChange<Stored>({
    base: { value: one ? stored(fieldsOf(one)) : null, etag: one?.etag ?? '' },
    read: async () => {
      const now = (await whole<Subscription>(to)).items.find((row) => row.name === name)
      return { value: now ? stored(fieldsOf(now)) : null, etag: now?.etag ?? '' }
    },
    write: (value, ifMatch) =>
      request('PUT', `${to}/${encodeURIComponent(name)}`, {
        body: { ...value, ...(secret && { signing_secret: secret }), ...(fromNow && { from_now: true }) },
        ifMatch,
      }),
    onSaved: () => {
      toast({ text: `${shown(name)} is saved.` })
      if (one) onClose()
      else go(`/subscriptions/${encodeURIComponent(name)}`, { replace: true })
    },
  })
  const whyNot = !/^[a-z0-9][a-z0-9_.-]{0,62}$/.test(name)
    ? 'Enter a name of lower-case letters, digits, dots, dashes and underscores.'
    : !one && taken.some((row) => row.name === name)
      ? 'This name is taken.'
      : draft.source
        ? undefined
        : 'Choose the source.'
  const text = (of: 'tool' | 'channel' | 'link' | 'rate_bucket', label: string, hint: string) => (
    <Field label={label} hint={hint}>
      {(wiring) => (
        <input
          {...wiring}
          value={draft[of]}
          autoComplete="off"
          spellCheck={false}
          onChange={(event) => setDraft({ ...draft, [of]: event.target.value })}
        />
      )}
    </Field>
  )
  const tick = (label: string, checked: boolean, put: (to: boolean) => void) => (
    <label className="tick">
      <input type="checkbox" checked={checked} onChange={(event) => put(event.target.checked)} />
      {label}
    </label>
  )
  return (
    <Setting
      title={one ? `Change ${shown(one.name)}` : 'Add a subscription'}
      change={changing}
      value={stored(draft)}
      whyNot={whyNot}
      dirty={secret !== '' || fromNow}
      onTheirs={(theirs) => theirs && setDraft(fieldsOf(theirs))}
      command="countersign subscription set NAME --source SOURCE --kinds NAMES"
      onClose={onClose}
    >
      {!one && (
        <Field label="Name">
          {(wiring) => (
            <input
              {...wiring}
              value={name}
              maxLength={63}
              autoComplete="off"
              spellCheck={false}
              onChange={(event) => setName(event.target.value)}
            />
          )}
        </Field>
      )}
      <Field
        label="Source"
        hint={
          sources?.length === 0
            ? 'First set up a source of the kind webhook or slack: countersign source set.'
            : 'It delivers the messages.'
        }
      >
        {(wiring) => (
          <select
            {...wiring}
            value={draft.source}
            onChange={(event) => setDraft({ ...draft, source: event.target.value })}
          >
            <option value="">Choose…</option>
            {[...new Set([...(sources?.map((row) => row.source_id) ?? []), ...(one ? [one.source] : [])])].map((id) => (
              <option key={id} value={id}>
                {shown(id)}
              </option>
            ))}
          </select>
        )}
      </Field>
      <Field
        label="Events"
        hint="One a line, such as settled or decided. Empty: approvals and completions; for Slack approval requests."
      >
        {(wiring) => (
          <textarea
            {...wiring}
            className="mono"
            value={draft.kinds}
            spellCheck={false}
            onChange={(event) => setDraft({ ...draft, kinds: event.target.value })}
          />
        )}
      </Field>
      <div className="fields">
        {text('tool', 'Tools', 'As source:name; either may be a star.')}
        <Field label="Lowest risk">
          {(wiring) => (
            <select
              {...wiring}
              value={draft.min_risk}
              onChange={(event) => setDraft({ ...draft, min_risk: event.target.value })}
            >
              <option value="">any</option>
              <option>low</option>
              <option>medium</option>
              <option>high</option>
            </select>
          )}
        </Field>
        {text('rate_bucket', 'Bucket', 'The rate limit of the messages.')}
      </div>
      {slack && (
        <>
          <div className="fields">
            {text('channel', 'Channel', 'Its id in Slack, such as C024BE91L.')}
            {text('link', 'Link', 'The id of the action is appended.')}
          </div>
          <Field
            label="Signing secret"
            hint={
              one?.has_signing_secret ? 'One is stored. Empty: it stays.' : 'Of the Slack app, so that buttons count.'
            }
          >
            {(wiring) => (
              <input
                {...wiring}
                type="password"
                value={secret}
                maxLength={200}
                autoComplete="off"
                onChange={(event) => setSecret(event.target.value)}
              />
            )}
          </Field>
          {tick('Show sender and subject of mail in this channel', draft.show_mail, (to) =>
            setDraft({ ...draft, show_mail: to }),
          )}
        </>
      )}
      {tick('On. What waits to be delivered is dropped when it is switched off', draft.enabled, (to) =>
        setDraft({ ...draft, enabled: to }),
      )}
      {one && !one.enabled && tick('Leave out what happened while it was off', fromNow, setFromNow)}
    </Setting>
  )
}
