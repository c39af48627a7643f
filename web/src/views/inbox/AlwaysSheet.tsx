// "Always allow": a grant for exactly this call, loosened argument by argument. The server computes what it holds, and
// which past calls it would have let through.
import { useQuery } from '@tanstack/react-query'
import { useMemo, useRef, useState } from 'react'
import { Link } from 'wouter'
import { fieldsOf } from '../../form/plan'
import { useUnseen } from '../../form/unseen'
import { Values, valuesOf } from '../../form/Values'
import type { Problem } from '../../lib/client'
import { type Json, stringify } from '../../lib/json'
import { below } from '../../lib/pointer'
import { shown } from '../../lib/text'
import { Button, Field, Loading, ProblemNote, Sending, Sheet, Time } from '../../ui'
import { type Always, type GrantPreview, previewAlways } from './decide'
import type { Looking } from './looking'

type Scope = NonNullable<Always['scope']>

const spans = [
  ['1h', '1 hour'],
  ['8h', '8 hours'],
  ['1d', '1 day'],
  ['7d', '7 days'],
  ['30d', '30 days'],
  ['90d', '90 days'],
] as const

interface Props {
  looking: Looking
  busy: boolean
  onClose: () => void
  onGrant: (always: Always) => void
}

export function AlwaysSheet({ looking, busy, onClose, onGrant }: Props) {
  const { id, action, args, etag, folds } = looking
  // Arguments that no schema describes are loosened one by one as well.
  const fields = useMemo(() => {
    const described = fieldsOf(looking.schema, args)
    return described.children.length ? described : fieldsOf({ type: 'object' }, args)
  }, [looking.schema, args])
  const [scope, setScope] = useState<Scope>(action.envelope.session_id ? 'session' : 'tenant')
  const [span, setSpan] = useState('8h')
  const [loose, setLoose] = useState<ReadonlySet<string>>(new Set())
  // Members of what is loose are not loosened once more.
  const toggle = (pointer: string) =>
    setLoose(
      (was) =>
        new Set(
          was.has(pointer)
            ? [...was].filter((one) => one !== pointer)
            : [...[...was].filter((one) => !below(one, pointer)), pointer],
        ),
    )
  const scopes: [Scope, string, boolean][] = [
    ['session', `this session, ${shown(action.envelope.session_id ?? '')}`, Boolean(action.envelope.session_id)],
    [
      'automation_id',
      `the automation ${shown(action.envelope.automation_id ?? '')}`,
      Boolean(action.envelope.automation_id),
    ],
    ['employee', 'this employee', Boolean(action.envelope.employee_id)],
    ['tenant', 'everybody', true],
  ]
  const always: Always = { scope, expires_in: span, loose: [...loose].sort() }
  const preview = useQuery<GrantPreview, Problem>({
    queryKey: ['always', id, etag, always],
    queryFn: ({ signal }) => previewAlways(id, etag, always, signal),
    retry: false,
    gcTime: 0,
    staleTime: Infinity,
  })
  const region = useRef<HTMLElement>(null)
  const unseen = useUnseen(
    region,
    useMemo(() => valuesOf(fields), [fields]),
  )
  const whyNot = preview.error
    ? preview.error.detail || preview.error.message
    : !preview.data
      ? 'Wait for the preview.'
      : unseen?.length === 0
        ? undefined
        : 'Some values do not fit here. Make the window larger.'
  const grant = () => onGrant(always)
  return (
    <Sheet
      title="Always allow this call"
      onClose={onClose}
      actions={
        <>
          <Button kind="primary" command="send" whyNot={whyNot} busy={busy} onClick={grant}>
            Approve, and allow
          </Button>
          <Button onClick={onClose}>Cancel</Button>
        </>
      }
    >
      <Sending run={grant} whyNot={whyNot} />
      <div className="stack">
        <p>
          This approves the action. Further calls of the tool with the same arguments then run without a person, unless
          policy denies them or the tool changes.
        </p>
        <Field label="For">
          {(wiring) => (
            <select {...wiring} value={scope} onChange={(e) => setScope(e.target.value as Scope)}>
              {scopes
                .filter(([, , there]) => there)
                .map(([key, words]) => (
                  <option key={key} value={key}>
                    {words}
                  </option>
                ))}
            </select>
          )}
        </Field>
        <Field label="For how long">
          {(wiring) => (
            <select {...wiring} value={span} onChange={(e) => setSpan(e.target.value)}>
              {spans.map(([key, words]) => (
                <option key={key} value={key}>
                  {words}
                </option>
              ))}
            </select>
          )}
        </Field>
        <section aria-label="Arguments of further calls" ref={region}>
          <h3>Arguments of further calls</h3>
          <p className="faint small">
            Mark “any” where a value may differ or be absent. Other arguments than these are not allowed, and lists must
            be the same.
          </p>
          <Values of={fields} folds={folds} loosening={{ loose, toggle }} />
        </section>
        {preview.error ? (
          <ProblemNote error={preview.error} what="This cannot be allowed" />
        ) : preview.data ? (
          <Preview of={preview.data} />
        ) : (
          <Loading what="the preview" />
        )}
      </div>
    </Sheet>
  )
}

// Preview shows what the grant holds, and the past calls that would have passed.
export function Preview({ of }: { of: GrantPreview }) {
  return (
    <section aria-label="Calls that would have run">
      <h3>Calls that would have run</h3>
      <p>
        {of.loose.length === 0 ? (
          'Exactly these arguments.'
        ) : (
          <>
            These arguments, with any{' '}
            {of.loose.map((pointer, i) => (
              <span key={pointer}>
                {i > 0 && ', '}
                <code>{shown(pointer || 'arguments')}</code>
              </span>
            ))}
            .
          </>
        )}
      </p>
      <p role="status">
        {of.count.toLocaleString('en')} of {of.compared.toLocaleString('en')} calls{' '}
        {of.complete ? (
          <>
            since <Time at={of.since} as="both" />
          </>
        ) : (
          <>among the last {of.examined.toLocaleString('en')} actions</>
        )}{' '}
        would have run without a person.
      </p>
      <ul className="results">
        {of.calls.map((call) => (
          <li key={call.action_id}>
            <Link href={`/actions/${call.action_id}`}>
              <Time at={call.proposed_at} as="both" />
            </Link>
            <code className="why">
              {call.args_cut
                ? `${shown(call.args_preview ?? '')}… (cut: open the action to see all of it)`
                : shown(stringify(call.args as Json))}
            </code>
          </li>
        ))}
      </ul>
      {of.count > of.calls.length && (
        <p className="faint">and {(of.count - of.calls.length).toLocaleString('en')} more</p>
      )}
    </section>
  )
}
