// Identity providers: the issuers whose logins are accepted. Their secrets are written, and never read.
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Setting } from '../../form/setting'
import { useChange } from '../../lib/change'
import { type Problem, request, type Schemas } from '../../lib/client'
import { useMay } from '../../lib/me'
import { type Whole, whole } from '../../lib/pages'
import { useParams } from '../../lib/params'
import { queries } from '../../lib/query'
import { shown } from '../../lib/text'
import { Ask, Button, Chip, Command, Empty, Field, Loading, ProblemNote, Shown, Table, toast } from '../../ui'
import { Export } from '../../ui/export'
import { type Fields, fieldsOf, pairs, stored } from './provider'

type Provider = Schemas['IdentityProvider']

const to = '/api/v1/identity-providers'
const key = ['config', 'providers']
const changed = () => void queries.invalidateQueries({ queryKey: key })

export function Providers() {
  const may = useMay()
  const [params, change] = useParams()
  const providers = useQuery<Whole<Provider>, Problem>({
    queryKey: key,
    queryFn: ({ signal }) => whole<Provider>(to, {}, signal),
  })
  const [removing, setRemoving] = useState<Provider>()
  const rows = providers.data?.items
  const opened = params.get('provider')
  const one = rows?.find((row) => row.provider_id === opened)
  const close = () => change({ provider: undefined }, { replace: true })
  return (
    <>
      <div className="row">
        <p className="grow muted">Issuers of OpenID Connect whose people log in. An issuer decides who people are.</p>
        {rows && <Export name="identity-providers" to={to} />}
        <Button kind="primary" whyNot={may('putProvider')} onClick={() => change({ provider: '*' })}>
          Add a provider
        </Button>
      </div>
      {providers.isPending && <Loading what="providers" />}
      {providers.error && (
        <ProblemNote
          error={providers.error}
          what="The providers were not loaded"
          onRetry={() => void providers.refetch()}
        />
      )}
      {rows?.length === 0 && (
        <Empty title="No identity providers">
          <p>People log in with tokens and one-time codes. To accept the logins of your organisation:</p>
          <pre className="json" tabIndex={0}>
            countersign provider set acme --issuer https://login.acme.com --default-role viewer
          </pre>
        </Empty>
      )}
      {rows && rows.length > 0 && (
        <div className="panel">
          <Table
            caption="Identity providers"
            rows={rows}
            keyOf={(row) => row.provider_id}
            columns={[
              { name: 'Provider', cell: (row) => <Shown text={row.label ?? row.provider_id} /> },
              { name: 'Issuer', cell: (row) => <Shown text={row.issuer} />, hideNarrow: true },
              {
                name: 'Roles',
                cell: (row) => (
                  <span className="small">
                    <Shown
                      text={
                        [
                          ...Object.entries(row.roles ?? {}).map(([value, role]) => `${value} = ${role}`),
                          ...(row.default_role ? [`others = ${row.default_role}`] : []),
                        ].join(' · ') || 'nobody'
                      }
                    />
                  </span>
                ),
                hideNarrow: true,
              },
              {
                name: 'In a browser',
                cell: (row) =>
                  row.web_client_id ? (
                    <Chip tone="good">{row.has_web_client_secret ? 'with a secret' : 'yes'}</Chip>
                  ) : (
                    <Chip>no</Chip>
                  ),
              },
              {
                name: 'Change',
                unnamed: true,
                cell: (row) => (
                  <span className="row nowrap">
                    <Button whyNot={may('putProvider')} onClick={() => change({ provider: row.provider_id })}>
                      Change<span className="unseen"> {shown(row.provider_id)}</span>
                    </Button>
                    <Button whyNot={may('deleteProvider')} onClick={() => setRemoving(row)}>
                      Remove<span className="unseen"> {shown(row.provider_id)}</span>
                    </Button>
                  </span>
                ),
              },
            ]}
          />
        </div>
      )}
      <p className="muted">
        To log in in another browser, run <code>countersign ui</code>: a browser’s session makes no login codes.
      </p>
      <Command of="countersign provider list" />
      {!may('putProvider') && (opened === '*' || one) && (
        <ChangeProvider key={opened} one={one} taken={rows ?? []} onClose={close} />
      )}
      {removing && (
        <Ask
          title={`Remove ${shown(removing.provider_id)}?`}
          text="Its logins are refused within ten seconds. The people and their tokens of here stay."
          label="Remove it"
          note="no"
          hint=""
          send={() =>
            request('DELETE', `${to}/${encodeURIComponent(removing.provider_id)}`, {
              ifMatch: removing.etag && `"${removing.etag}"`,
            })
          }
          onDone={() => {
            toast({ text: `${shown(removing.provider_id)} is removed.` })
            changed()
          }}
          onClose={() => setRemoving(undefined)}
        />
      )}
    </>
  )
}

function ChangeProvider({
  one,
  taken,
  onClose,
}: {
  one: Provider | undefined
  taken: readonly Provider[]
  onClose: () => void
}) {
  const [id, setID] = useState(one?.provider_id ?? '')
  const [draft, setDraft] = useState<Fields>(() => fieldsOf(one))
  // The secret is sent by the write itself: compared, shown and kept values lack it.
  const [secret, setSecret] = useState('')
  const [forget, setForget] = useState(false)
  const pairing = pairs(draft.roles)
  const value = stored(draft)
  const read = async () => {
    const now = (await whole<Provider>(to)).items.find((row) => row.provider_id === id)
    return { value: now ? stored(fieldsOf(now)) : null, etag: now?.etag ?? '' }
  }
  const changing = useChange<typeof value>({
    base: { value: one ? stored(fieldsOf(one)) : null, etag: one?.etag ?? '' },
    read,
    write: (value, ifMatch) =>
      request('PUT', `${to}/${encodeURIComponent(id)}`, {
        body: { ...value, web_client_secret: forget ? '' : secret || undefined },
        ifMatch,
      }),
    onSaved: () => {
      toast({ text: `${shown(id)} is saved.` })
      onClose()
    },
  })
  const whyNot = !/^[a-z0-9][a-z0-9_.-]{0,99}$/.test(id)
    ? 'Enter an id of lower-case letters, digits, dots, dashes and underscores.'
    : !one && taken.some((row) => row.provider_id === id)
      ? 'This id is taken.'
      : !draft.issuer.trim()
        ? 'Enter the issuer.'
        : pairing.problem
  const text = (name: keyof Fields, label: string, hint?: string, rows?: 'lines') => (
    <Field label={label} hint={hint} error={name === 'roles' ? pairing.problem : undefined}>
      {(wiring) => {
        const wired = {
          ...wiring,
          value: draft[name],
          spellCheck: false,
          autoComplete: 'off',
          onChange: (event: { target: { value: string } }) => setDraft({ ...draft, [name]: event.target.value }),
        }
        return rows ? <textarea {...wired} /> : <input {...wired} maxLength={500} />
      }}
    </Field>
  )
  return (
    <Setting
      title={one ? `Change ${shown(one.provider_id)}` : 'Add a provider'}
      change={changing}
      value={value}
      whyNot={whyNot}
      dirty={secret !== '' || forget}
      onTheirs={(theirs) => theirs && setDraft(fieldsOf(theirs))}
      command="countersign provider set PROVIDER --issuer ADDRESS"
      onClose={onClose}
    >
      {!one && (
        <Field label="Id">
          {(wiring) => (
            <input
              {...wiring}
              value={id}
              maxLength={100}
              autoComplete="off"
              spellCheck={false}
              onChange={(event) => setID(event.target.value)}
            />
          )}
        </Field>
      )}
      {text('issuer', 'Issuer', 'Its address, exactly as its tokens have it.')}
      {text('audience', 'Audience', 'Empty: countersign- and the id of the organisation.')}
      {text('label', 'Label', 'On the button of the login.')}
      {text('role_claim', 'Claim of the role', 'A name, or a JSON Pointer such as /realm_access/roles.')}
      {text('roles', 'Roles', 'One a line: the claim’s value = viewer, operator, admin or owner.', 'lines')}
      <Field label="Role of everybody else">
        {(wiring) => (
          <select
            {...wiring}
            value={draft.default_role}
            onChange={(event) => setDraft({ ...draft, default_role: event.target.value })}
          >
            <option value="">none: they are refused</option>
            <option>viewer</option>
            <option>operator</option>
          </select>
        )}
      </Field>
      {text('allowed_domains', 'Domains of mail', 'One a line. If given, nobody else is let in.', 'lines')}
      {text('clients', 'Further clients', 'One a line: clients to which a token may have been issued.', 'lines')}
      {text('web_client_id', 'Client for the browser', 'Empty: nobody logs in here in a browser.')}
      <Field
        label="Secret of that client"
        hint={one?.has_web_client_secret ? 'One is stored. Empty: it stays.' : 'Stored sealed, and never shown.'}
      >
        {(wiring) => (
          <input
            {...wiring}
            type="password"
            value={secret}
            maxLength={1000}
            autoComplete="off"
            onChange={(event) => setSecret(event.target.value)}
          />
        )}
      </Field>
      {one?.has_web_client_secret && (
        <label className="tick">
          <input type="checkbox" checked={forget} onChange={(event) => setForget(event.target.checked)} />
          Remove the stored secret
        </label>
      )}
    </Setting>
  )
}
