// The drawer that pauses or kills a target. Its count is read anew while the drawer is open.
import { useMutation, useQuery } from '@tanstack/react-query'
import { useDeferredValue, useState } from 'react'
import { get, type Problem, post, type Schemas } from '../../lib/client'
import { useMay, useMe } from '../../lib/me'
import { configChanged } from '../../lib/query'
import { shown } from '../../lib/text'
import { Button, Field, Loading, ProblemNote, Sheet, toast } from '../../ui'
import { Sending } from '../../ui/ask'
import { Command } from '../../ui/command'
import { confirmed, effect, type Forecast, nameOf } from './say'

const scopes = {
  tool: ['Tool', 'mail:send_email', '/api/v1/tools'],
  source: ['Source', 'mail', '/api/v1/sources'],
  bucket: ['Bucket', 'email.daily', '/api/v1/buckets'],
  employee: ['Employee', 'the id of an employee', '/api/v1/employees'],
  automation: ['Automation', 'triage, triage/account, or an automation_id', ''],
  tenant: ['All actions of the tenant', '', ''],
} as const
type Scope = keyof typeof scopes

export function Stop({ kill, onClose }: { kill: boolean; onClose: () => void }) {
  const [scope, setScope] = useState<Scope>('tool')
  const [subject, setSubject] = useState('')
  const [reason, setReason] = useState('')
  const [typed, setTyped] = useState('')
  const tenant = useMe().data?.tenant ?? ''
  const may = useMay()
  const of = scope === 'tenant' ? { scope } : { scope, subject: subject.trim() }
  const asked = useDeferredValue(JSON.stringify(of))
  const forecast = useQuery<Forecast, Problem>({
    queryKey: ['config', 'pause-forecast', asked],
    enabled: scope === 'tenant' || subject.trim() !== '',
    queryFn: ({ signal }) =>
      get<Forecast>('/api/v1/pauses/forecast', JSON.parse(asked) as Record<string, string>, signal),
    refetchInterval: 5_000,
    gcTime: 0,
  })
  const sending = useMutation<Schemas['Pause'], Problem>({
    mutationFn: () => post('/api/v1/pauses', { ...of, kill, reason: reason.trim() }),
    onSuccess: () => {
      onClose()
      toast({ text: `${kill ? 'Killed' : 'Paused'}: ${nameOf(of)}` })
      configChanged()
    },
  })
  const name = scope === 'tenant' ? tenant : subject.trim()
  const whyNot =
    may('pause') ??
    (name === '' ? 'Name what to stop.' : undefined) ??
    (forecast.error ? 'Unknown target: choose one from the list.' : undefined) ??
    (reason.trim() === '' ? 'Enter a reason.' : undefined) ??
    (kill && !confirmed(typed, of, tenant) ? `Type ${name} to confirm.` : undefined)
  const submit = () => !whyNot && !sending.isPending && sending.mutate()
  const verb = kill ? 'Kill' : 'Pause'
  return (
    <Sheet
      title={verb}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Not now</Button>
          <Button
            kind={kill ? 'danger' : 'primary'}
            command="send"
            whyNot={whyNot}
            busy={sending.isPending}
            onClick={submit}
          >
            {verb}
          </Button>
        </>
      }
    >
      <div className="stack">
        <Sending run={submit} whyNot={whyNot} />
        <p>
          {kill
            ? 'Nothing that it covers is sent, and waiting actions end. Resuming does not bring them back.'
            : 'Nothing that it covers is sent until somebody resumes. Calls that were started end.'}
        </p>
        <Field label="Scope">
          {(wiring) => (
            <select
              {...wiring}
              value={scope}
              onChange={(e) => {
                setScope(e.target.value as Scope)
                setSubject('')
                setTyped('')
              }}
            >
              {Object.entries(scopes).map(([value, [label]]) => (
                <option key={value} value={value}>
                  {label}
                </option>
              ))}
            </select>
          )}
        </Field>
        {scope !== 'tenant' && <Subject scope={scope} value={subject} onChange={setSubject} />}
        {forecast.error ? (
          <ProblemNote error={forecast.error} what="Not counted" />
        ) : forecast.data ? (
          <p className="panel" role="status">
            {effect(forecast.data, kill)}
          </p>
        ) : (
          forecast.isFetching && <Loading what="the count" />
        )}
        <Field label="Reason" hint="For people who find it stopped, and for the audit log.">
          {(wiring) => (
            <textarea {...wiring} value={reason} maxLength={500} required onChange={(e) => setReason(e.target.value)} />
          )}
        </Field>
        {kill && name !== '' && (
          <Field
            label={
              <>
                Type <bdi className="mono">{shown(name)}</bdi> to confirm
              </>
            }
          >
            {(wiring) => (
              <input
                {...wiring}
                value={typed}
                autoComplete="off"
                spellCheck={false}
                onChange={(e) => setTyped(e.target.value)}
              />
            )}
          </Field>
        )}
        {sending.error && <ProblemNote error={sending.error} />}
        {kill ? (
          <Command of="countersign kill --tool TOOL --reason REASON" />
        ) : (
          <Command of="countersign pause --tool TOOL --reason REASON" />
        )}
      </div>
    </Sheet>
  )
}

// Named is an entry of one of the lists that have subjects.
interface Named {
  tool?: string
  source_id?: string
  id?: string
  name?: string
  employee_id?: string
}

// Subject takes the name of a target, and offers those that there are.
function Subject({ scope, value, onChange }: { scope: Scope; value: string; onChange: (value: string) => void }) {
  const [label, example, list] = scopes[scope]
  const offered = useQuery<{ items: Named[] }, Problem>({
    queryKey: ['config', 'subjects', list],
    enabled: list !== '',
    queryFn: ({ signal }) => get<{ items: Named[] }>(list, { limit: 200 }, signal),
    staleTime: 60_000,
  })
  return (
    <Field label={label} hint={`Such as ${example}.`}>
      {(wiring) => (
        <>
          <input
            {...wiring}
            list={`${wiring.id}-offered`}
            className="mono"
            value={value}
            maxLength={400}
            required
            autoComplete="off"
            spellCheck={false}
            onChange={(e) => onChange(e.target.value)}
          />
          <datalist id={`${wiring.id}-offered`}>
            {offered.data?.items.map((one) => {
              const name = one.tool ?? one.source_id ?? one.employee_id ?? one.id ?? one.name ?? ''
              return <option key={name} value={name} />
            })}
          </datalist>
        </>
      )}
    </Field>
  )
}
