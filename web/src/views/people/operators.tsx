import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Setting } from '../../form/setting'
import { useChange } from '../../lib/change'
import { type Problem, post, request, type Schemas } from '../../lib/client'
import { useMay, useMe } from '../../lib/me'
import { type Whole, whole } from '../../lib/pages'
import { useParams } from '../../lib/params'
import { queries } from '../../lib/query'
import { shown } from '../../lib/text'
import {
  Button,
  Chip,
  Command,
  Empty,
  Field,
  Loading,
  ProblemNote,
  Sending,
  Sheet,
  Shown,
  Table,
  Time,
  toast,
} from '../../ui'
import { Export } from '../../ui/export'
import { personRolesOf, type Role, roles } from './scopes'

export type Operator = Schemas['Operator']

const to = '/api/v1/operators'
const key = ['config', 'operators']

// useOperators reads the people, where the caller may see them.
export function useOperators() {
  const may = useMay()
  return useQuery<Whole<Operator>, Problem>({
    queryKey: key,
    queryFn: ({ signal }) => whole<Operator>(to, {}, signal),
    enabled: may('listOperators') === undefined,
  })
}

// Person has the fields of a person that can be set. Missing names are not set.
type Person = {
  name: string
  email?: string
  role_set?: string
  issuer?: string
  subject?: string
  slack_team?: string
  slack_user?: string
  disabled: boolean
}

const texts = ['email', 'issuer', 'subject', 'slack_team', 'slack_user'] as const

const personOf = (one: Operator): Person => ({
  name: one.name,
  ...(one.role_set && { role_set: one.role_set }),
  ...Object.fromEntries(texts.flatMap((name) => (one[name] ? [[name, one[name]]] : []))),
  disabled: one.disabled,
})

// rank orders roles; a person without one is below all.
const rank = (role: string | undefined) => roles.indexOf(role as Role)

export function Operators() {
  const may = useMay()
  const me = useMe().data
  const [params, change] = useParams()
  const people = useOperators()
  const rows = people.data?.items
  const opened = params.get('person')
  const one = rows?.find((row) => row.operator_id === opened)
  const close = () => change({ person: undefined }, { replace: true })
  // Administrators change people below them.
  const whyNot = (row: Operator) =>
    may('putOperator') ??
    (me?.role !== 'owner' && rank(row.role ?? row.role_set) >= rank('admin')
      ? 'Only owners change administrators and owners.'
      : undefined)
  return (
    <>
      <div className="row">
        <p className="grow muted">
          People who log in are added by themselves. Nobody is deleted: a person is disabled, with all credentials.
        </p>
        {rows && <Export name="people" to={to} />}
        <Button kind="primary" whyNot={may('createOperator')} onClick={() => change({ person: 'new' })}>
          Add a person
        </Button>
      </div>
      {people.isPending && <Loading what="people" />}
      {people.error && (
        <ProblemNote error={people.error} what="The people were not loaded" onRetry={() => void people.refetch()} />
      )}
      {rows?.length === 0 && (
        <Empty title="No people yet">
          <p>Who logs in at an identity provider is listed here. To add one before that:</p>
          <pre className="json" tabIndex={0}>
            countersign operator add --name "Ana Lima" --role operator
          </pre>
        </Empty>
      )}
      {rows && rows.length > 0 && (
        <div className="panel">
          <Table
            caption="People"
            rows={rows}
            keyOf={(row) => row.operator_id}
            columns={[
              { name: 'Name', cell: (row) => <Shown text={row.name} /> },
              {
                name: 'Role',
                cell: (row) => (
                  <>
                    {row.role ?? row.role_set ?? 'none'}
                    {row.role_set && <span className="muted"> by hand</span>}
                  </>
                ),
              },
              { name: 'State', cell: (row) => <State one={row} /> },
              { name: 'Mail', cell: (row) => row.email && <Shown text={row.email} />, hideNarrow: true },
              {
                name: 'Logs in at',
                cell: (row) => (row.issuer ? <Shown text={row.issuer} /> : row.slack_user ? 'Slack' : ''),
                hideNarrow: true,
              },
              { name: 'Seen', cell: (row) => <Time at={row.last_seen_at} />, hideNarrow: true },
              {
                name: 'Change',
                unnamed: true,
                cell: (row) => (
                  <Button whyNot={whyNot(row)} onClick={() => change({ person: row.operator_id })}>
                    Change<span className="unseen"> {shown(row.name)}</span>
                  </Button>
                ),
              },
            ]}
          />
        </div>
      )}
      {people.data?.cut && <p className="muted">Not all people are listed: the export has them.</p>}
      <Command of="countersign operator list" />
      {opened === 'new' && <AddPerson onClose={close} />}
      {one && !whyNot(one) && <ChangePerson key={one.operator_id} one={one} onClose={close} />}
    </>
  )
}

function State({ one }: { one: Operator }) {
  return one.disabled ? <Chip tone="bad">disabled</Chip> : <Chip tone="good">active</Chip>
}

const changed = () => void queries.invalidateQueries({ queryKey: key })

function AddPerson({ onClose }: { onClose: () => void }) {
  const [draft, setDraft] = useState<Person>({ name: '', disabled: false })
  const adding = useMutation<Operator, Problem>({
    mutationFn: () => post<Operator>(to, draft),
    onSuccess: (one) => {
      toast({ text: `${shown(one.name)} is added.` })
      changed()
      onClose()
    },
  })
  const whyNot = missing(draft)
  const save = () => adding.mutate()
  return (
    <Sheet
      title="Add a person"
      onClose={onClose}
      actions={
        <>
          <Button kind="primary" command="send" whyNot={whyNot} busy={adding.isPending} onClick={save}>
            Add
          </Button>
          <Button onClick={onClose}>Cancel</Button>
        </>
      }
    >
      <Sending run={save} whyNot={whyNot} />
      <div className="stack">
        <Fields draft={draft} onChange={setDraft} />
        {adding.error && <ProblemNote error={adding.error} what="Nobody was added" />}
        <Command of="countersign operator add --name NAME --role ROLE" />
      </div>
    </Sheet>
  )
}

function ChangePerson({ one, onClose }: { one: Operator; onClose: () => void }) {
  const [draft, setDraft] = useState(() => personOf(one))
  const at = `${to}/${one.operator_id}`
  const changing = useChange<Person>({
    base: { value: personOf(one), etag: one.etag ?? '' },
    read: async () => {
      const now = (await whole<Operator>(to)).items.find((row) => row.operator_id === one.operator_id)
      return { value: now ? personOf(now) : null, etag: now?.etag ?? '' }
    },
    write: (value, ifMatch) => request('PUT', at, { body: value, ifMatch }),
    onSaved: () => {
      toast({ text: `${shown(draft.name)} is changed.` })
      onClose()
    },
  })
  return (
    <Setting
      title={`Change ${shown(one.name)}`}
      change={changing}
      value={draft}
      whyNot={missing(draft)}
      onTheirs={(theirs) => setDraft(theirs ?? draft)}
      command="countersign operator set PERSON-ID --role ROLE"
      onClose={onClose}
    >
      <Fields draft={draft} onChange={setDraft} own={one.role} />
      <label className="tick">
        <input
          type="checkbox"
          checked={draft.disabled}
          onChange={(event) => setDraft({ ...draft, disabled: event.target.checked })}
        />
        Disabled: logins, tokens and clicks in Slack are refused within ten seconds
      </label>
    </Setting>
  )
}

// missing returns the sentence about a field that a draft lacks.
function missing(draft: Person): string | undefined {
  if (!draft.name.trim()) return 'Enter the name.'
  if (!draft.issuer !== !draft.subject) return 'Enter issuer and subject together.'
  if (!draft.slack_team !== !draft.slack_user) return 'Enter team and user of Slack together.'
  return undefined
}

function Fields({
  draft,
  onChange,
  own,
}: {
  draft: Person
  onChange: (draft: Person) => void
  own?: string | undefined
}) {
  const me = useMe().data
  const given = personRolesOf(me?.role ?? '')
  const put = (name: keyof Person, value: string) => {
    const { [name]: _, ...rest } = draft
    onChange((value === '' && name !== 'name' ? rest : { ...rest, [name]: value }) as Person)
  }
  const text = (name: 'name' | (typeof texts)[number], label: string, hint?: string) => (
    <Field label={label} hint={hint}>
      {(wiring) => (
        <input
          {...wiring}
          value={draft[name] ?? ''}
          maxLength={name === 'name' ? 200 : 500}
          autoComplete="off"
          spellCheck={false}
          onChange={(event) => put(name, event.target.value)}
        />
      )}
    </Field>
  )
  return (
    <>
      {text('name', 'Name')}
      <Field label="Role" hint="A role by hand counts before the one of the login.">
        {(wiring) => (
          <select {...wiring} value={draft.role_set ?? ''} onChange={(event) => put('role_set', event.target.value)}>
            <option value="">as the login decides{own ? `: ${own}` : ''}</option>
            {given.map((role) => (
              <option key={role}>{role}</option>
            ))}
          </select>
        )}
      </Field>
      {text('email', 'Mail', 'For people to read; nobody is known by it.')}
      <div className="fields">
        {text('issuer', 'Issuer')}
        {text('subject', 'Subject')}
        {text('slack_team', 'Slack team')}
        {text('slack_user', 'Slack user')}
      </div>
    </>
  )
}
