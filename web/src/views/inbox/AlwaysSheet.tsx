// "Always allow": a grant for what is like this action, with the arguments that must stay the same marked beside them.
import { useState } from 'react'
import { Values } from '../../form/Form'
import { leaves, plan } from '../../form/plan'
import { useCommands } from '../../lib/keys'
import { useMay } from '../../lib/me'
import { shown } from '../../lib/text'
import { Button, Field, Sheet } from '../../ui'
import type { Always } from './decide'
import type { Looking } from './Detail'

type Scope = NonNullable<Always['scope']>

const spans = [['1h', '1 hour'], ['8h', '8 hours'], ['1d', '1 day'], ['7d', '7 days'], ['30d', '30 days'], ['90d', '90 days']] as const

interface Props {
  looking: Looking
  busy: boolean
  onClose: () => void
  onGrant: (always: Always) => void
}

export function AlwaysSheet({ looking, busy, onClose, onGrant }: Props) {
  const { action, args, schema, folds } = looking
  const may = useMay()
  const [scope, setScope] = useState<Scope>(action.envelope.session_id ? 'session' : 'tenant')
  const [span, setSpan] = useState('8h')
  const [held, setHeld] = useState<ReadonlySet<string>>(() => new Set(leaves(plan(schema, args)).filter((f) => f.value !== undefined && f.pointer !== '').map((f) => f.pointer)))
  const toggle = (pointer: string) => setHeld((was) => (was.has(pointer) ? new Set([...was].filter((one) => one !== pointer)) : new Set([...was, pointer])))
  const scopes: [Scope, string, boolean][] = [
    ['session', `this session, ${shown(action.envelope.session_id ?? '')}`, Boolean(action.envelope.session_id)],
    ['automation_id', `the automation ${shown(action.envelope.automation_id ?? '')}`, Boolean(action.envelope.automation_id)],
    ['employee', 'this employee', Boolean(action.envelope.employee_id)],
    ['tenant', 'everybody', true],
  ]
  const wide = scope !== 'session' || held.size === 0
  const several = (action.decision?.approvals_needed ?? 1) > 1
  const whyNot = several ? 'Several people must agree to this, so it cannot be allowed in advance.'
    : wide && may('makeGrant') ? 'Only an admin may allow more than one session, or without an argument that stays the same.'
      : held.size > 32 ? 'At most 32 arguments can be held.' : undefined
  const grant = () => onGrant({ scope, expires_in: span, pins: [...held] })
  useCommands([{ id: 'send', whyNot, run: grant }])
  return (
    <Sheet
      title="Always allow what is like this" onClose={onClose}
      actions={<><Button kind="primary" command="send" whyNot={whyNot} busy={busy} onClick={grant}>Approve, and allow</Button><Button onClick={onClose}>Cancel</Button></>}
    >
      <div className="stack">
        <p>This approves the action, and lets through without a person what has the same marked arguments. It never lets through what policy denies, or a tool that changed.</p>
        <Field label="For">
          {(wiring) => <select {...wiring} value={scope} onChange={(e) => setScope(e.target.value as Scope)}>{scopes.filter(([, , there]) => there).map(([key, words]) => <option key={key} value={key}>{words}</option>)}</select>}
        </Field>
        <Field label="For how long">
          {(wiring) => <select {...wiring} value={span} onChange={(e) => setSpan(e.target.value)}>{spans.map(([key, words]) => <option key={key} value={key}>{words}</option>)}</select>}
        </Field>
        <section aria-label="What must be the same">
          <h3>What must be the same</h3>
          <Values schema={schema} value={args} folds={folds} pins={{ held, toggle }} />
          <p className="faint small">{held.size === 0 ? 'Nothing is held: any arguments would pass.' : `Held: ${[...held].map((pointer) => shown(pointer)).join(', ')}`}</p>
        </section>
        {whyNot && <p className="banner tone-person">{whyNot}</p>}
      </div>
    </Sheet>
  )
}
