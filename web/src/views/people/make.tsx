// The making of a token and of another secret for one.
import { useState } from 'react'
import { post, type Schemas } from '../../lib/client'
import { lines } from '../../lib/lines'
import { useMay, useMe } from '../../lib/me'
import { shown } from '../../lib/text'
import { Button, Command, Field, ProblemNote, Sending, Sheet } from '../../ui'
import { useOperators } from './operators'
import { type Role, roles, rolesOf, type Scope, scopesOf } from './scopes'
import { useUncached } from './secret'

type Issued = Schemas['IssuedToken']

const spans = [
  ['1d', '1 day'],
  ['30d', '30 days'],
  ['90d', '90 days'],
  ['365d', '1 year'],
  ['', 'until it is ended'],
] as const

export function MakeToken({ onDone, onClose }: { onDone: (token: Issued) => void; onClose: () => void }) {
  const me = useMe().data
  const may = useMay()
  const mine = rolesOf(me?.role ?? '')
  const people = useOperators().data?.items.filter((one) => !one.disabled) ?? []
  const [name, setName] = useState('')
  const [role, setRole] = useState<Role>('agent')
  const [person, setPerson] = useState('')
  const [session, setSession] = useState('')
  const [chosen, setChosen] = useState<ReadonlySet<Scope>>(new Set())
  const [tools, setTools] = useState('')
  const [automations, setAutomations] = useState('')
  const [span, setSpan] = useState('30d')
  const sending = useUncached(onDone)
  const offered = scopesOf(role)
  const scopes = offered.map((one) => one.scope).filter((scope) => chosen.has(scope))
  const whyNot = may('issueToken') ?? (name.trim() ? undefined : 'Enter the name.')
  const make = () =>
    sending.send(() =>
      post<Issued>('/api/v1/tokens', {
        name: name.trim(),
        role,
        operator_id: person || undefined,
        session_id: session.trim() || undefined,
        scopes: scopes.length ? scopes : undefined,
        tools: lines(tools).length ? lines(tools) : undefined,
        automations: lines(automations).length ? lines(automations) : undefined,
        expires_in: span || undefined,
      }),
    )
  const area = (label: string, hint: string, value: string, put: (text: string) => void) => (
    <Field label={label} hint={hint}>
      {(wiring) => (
        <textarea
          {...wiring}
          className="mono"
          value={value}
          spellCheck={false}
          onChange={(event) => put(event.target.value)}
        />
      )}
    </Field>
  )
  return (
    <Sheet
      title="Make a token"
      onClose={onClose}
      actions={
        <>
          <Button kind="primary" command="send" whyNot={whyNot} busy={sending.busy} onClick={make}>
            Make it
          </Button>
          <Button onClick={onClose}>Cancel</Button>
        </>
      }
    >
      <Sending run={make} whyNot={whyNot} />
      <div className="stack">
        <Field label="Name" hint="Who or what shows it. The audit log has this name.">
          {(wiring) => (
            <input
              {...wiring}
              value={name}
              maxLength={200}
              autoComplete="off"
              onChange={(event) => setName(event.target.value)}
            />
          )}
        </Field>
        <div className="fields">
          <Field label="Role">
            {(wiring) => (
              <select {...wiring} value={role} onChange={(event) => setRole(event.target.value as Role)}>
                {roles
                  .filter((one) => mine.includes(one))
                  .map((one) => (
                    <option key={one}>{one}</option>
                  ))}
              </select>
            )}
          </Field>
          <Field label="Valid for">
            {(wiring) => (
              <select {...wiring} value={span} onChange={(event) => setSpan(event.target.value)}>
                {spans.map(([value, label]) => (
                  <option key={value} value={value}>
                    {label}
                  </option>
                ))}
              </select>
            )}
          </Field>
        </div>
        <Field
          label="Person"
          hint="The token may never more than the person, who does not decide about what their own agents propose."
        >
          {(wiring) => (
            <select {...wiring} value={person} onChange={(event) => setPerson(event.target.value)}>
              <option value="">{role === 'agent' ? 'nobody' : 'you'}</option>
              {people.map((one) => (
                <option key={one.operator_id} value={one.operator_id}>
                  {shown(one.name)}
                </option>
              ))}
            </select>
          )}
        </Field>
        <fieldset className="scopes">
          <legend>Scopes{scopes.length === 0 && <span className="muted"> · none chosen: all of the role</span>}</legend>
          {offered.map(({ scope, text }) => (
            <label key={scope}>
              <input
                type="checkbox"
                checked={chosen.has(scope)}
                onChange={(event) => {
                  const next = new Set(chosen)
                  if (event.target.checked) next.add(scope)
                  else next.delete(scope)
                  setChosen(next)
                }}
              />
              <span>
                <code>{scope}</code> <span className="muted small">{text}</span>
              </span>
            </label>
          ))}
        </fieldset>
        {area('Tools', 'One pattern a line, such as mail:*. Empty: all tools.', tools, setTools)}
        {role !== 'viewer' &&
          area('Automations', 'That its proposals may name, one a line.', automations, setAutomations)}
        {role === 'agent' && (
          <Field label="Session" hint="Its proposals are in this session. Empty: a new one.">
            {(wiring) => (
              <input
                {...wiring}
                value={session}
                maxLength={200}
                autoComplete="off"
                spellCheck={false}
                onChange={(event) => setSession(event.target.value)}
              />
            )}
          </Field>
        )}
        {sending.error !== undefined && <ProblemNote error={sending.error} what="No token was made" />}
        <Command of="countersign token create --role ROLE --name NAME --scope SCOPE --tool PATTERN" />
      </div>
    </Sheet>
  )
}

const overlaps = [
  ['0s', 'at once'],
  ['1h', 'in 1 hour'],
  ['1d', 'in 1 day'],
  ['7d', 'in 7 days'],
] as const

// RotateToken gives a token another secret.
export function RotateToken({
  one,
  onDone,
  onClose,
}: {
  one: Schemas['Token']
  onDone: (token: Issued) => void
  onClose: () => void
}) {
  const [overlap, setOverlap] = useState('0s')
  const [span, setSpan] = useState('kept')
  const sending = useUncached(onDone)
  const rotate = () =>
    sending.send(() =>
      post<Issued>(`/api/v1/tokens/${one.token_id}/rotate`, {
        overlap,
        expires_in: span === 'kept' ? undefined : span,
      }),
    )
  return (
    <Sheet
      title={`Rotate the token of ${shown(one.name)}`}
      onClose={onClose}
      actions={
        <>
          <Button kind="primary" command="send" busy={sending.busy} onClick={rotate}>
            Rotate
          </Button>
          <Button onClick={onClose}>Cancel</Button>
        </>
      }
    >
      <Sending run={rotate} />
      <div className="stack">
        <p>It gets another secret. Its id, session and proposals stay.</p>
        <Field label="The old secret ends" hint="At once, if it leaked.">
          {(wiring) => (
            <select {...wiring} value={overlap} onChange={(event) => setOverlap(event.target.value)}>
              {overlaps.map(([value, label]) => (
                <option key={value} value={value}>
                  {label}
                </option>
              ))}
            </select>
          )}
        </Field>
        <Field label="The token ends">
          {(wiring) => (
            <select {...wiring} value={span} onChange={(event) => setSpan(event.target.value)}>
              <option value="kept">as before</option>
              {spans
                .filter(([value]) => value !== '')
                .map(([value, label]) => (
                  <option key={value} value={value}>
                    in {label}
                  </option>
                ))}
            </select>
          )}
        </Field>
        {sending.error !== undefined && <ProblemNote error={sending.error} what="Not rotated" />}
        <Command of="countersign token rotate TOKEN-ID --overlap DURATION" />
      </div>
    </Sheet>
  )
}
