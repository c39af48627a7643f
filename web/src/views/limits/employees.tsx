// Employees: the highest risk that each runs without a person, and the scopes that tools ask for.
import { useState } from 'react'
import { useLocation, useSearch } from 'wouter'
import { parsed, Setting } from '../../form/setting'
import { useChange } from '../../lib/change'
import { request, type Schemas } from '../../lib/client'
import type { JsonObject } from '../../lib/json'
import { useMay } from '../../lib/me'
import { all } from '../../lib/pages'
import { shown } from '../../lib/text'
import { Button, Command, Empty, Field, Loading, ProblemNote, Table, toast } from '../../ui'
import { Export } from '../../ui/export'
import { usePages } from './pages'
import { Wrong } from './wrong'

type Employee = Schemas['StoredEmployee']

const to = '/limits/employees'
const list = 'employees'
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
const path = (id: string) => `/api/v1/employees/${encodeURIComponent(id)}`

interface Draft {
  id: string
  name: string
  trust: string
  scopes: string
}

const entryOf = ({ name, trust, scopes }: Employee) =>
  ({ ...(name && { name }), trust, ...(scopes?.length && { scopes }) }) as JsonObject

function draftOf(value: JsonObject | null): Draft {
  const employee = value as unknown as Employee | null
  return {
    id: '',
    name: employee?.name ?? '',
    trust: employee?.trust ?? 'low',
    scopes: employee?.scopes?.join('\n') ?? '',
  }
}

const parse = ({ name, trust, scopes }: Draft): JsonObject => {
  const each = scopes.split(/\s+/).filter(Boolean)
  return { ...(name && { name }), trust, ...(each.length > 0 && { scopes: each }) }
}

export function Employees() {
  const may = useMay()
  const employees = usePages<Employee>(list)
  const [, go] = useLocation()
  const asked = new URLSearchParams(useSearch())
  const rows = employees.data
  const id = asked.get('employee')
  const open = rows?.find((one) => one.employee_id === id)
  const close = () => go(to, { replace: true })
  return (
    <>
      <div className="row">
        <p className="muted grow">
          A risk above the trust needs a person; a tool whose scopes are missing is denied. The entry default is for all
          without their own.
        </p>
        <Export name="employees" to="/api/v1/employees" />
        <Button whyNot={may('putEmployee')} onClick={() => go(`${to}?new=1`)}>
          New entry…
        </Button>
      </div>
      {employees.isPending && <Loading what="employees" />}
      {employees.error && <ProblemNote error={employees.error} onRetry={() => void employees.refetch()} />}
      {rows?.length === 0 && (
        <Empty title="No employee has an entry">
          <p>Without an entry, trust and scopes limit nobody.</p>
        </Empty>
      )}
      {rows && rows.length > 0 && (
        <Table
          caption="Employees"
          rows={rows}
          keyOf={(one) => one.employee_id}
          columns={[
            { name: 'Name', cell: (one) => shown(one.name || (one.employee_id === 'default' ? 'default' : '–')) },
            { name: 'Id', cell: (one) => <span className="mono">{one.employee_id}</span>, hideNarrow: true },
            { name: 'Trust', cell: (one) => one.trust },
            { name: 'Scopes', cell: (one) => <span className="value">{shown(one.scopes?.join(' ') ?? '')}</span> },
            {
              name: 'Edit',
              unnamed: true,
              cell: (one) => (
                <Button whyNot={may('putEmployee')} onClick={() => go(`${to}?employee=${one.employee_id}`)}>
                  Edit…<span className="unseen"> {shown(one.name || one.employee_id)}</span>
                </Button>
              ),
            },
          ]}
        />
      )}
      <Command of="countersign employee set ID --trust TRUST --scope SCOPE" />
      {open && <Edit key={open.employee_id} employee={open} onClose={close} />}
      {asked.has('new') && rows && <Edit taken={rows} onClose={close} />}
    </>
  )
}

async function read(id: string) {
  const found = (await all<Employee>('/api/v1/employees')).find((one) => one.employee_id === id)
  return found ? { value: entryOf(found), etag: found.etag } : { value: null, etag: '' }
}

// Edit edits an entry, or a new one where employee is left out.
function Edit({ employee, taken, onClose }: { employee?: Employee; taken?: readonly Employee[]; onClose: () => void }) {
  const may = useMay()
  const [base] = useState(() =>
    employee ? { value: entryOf(employee), etag: employee.etag } : { value: null, etag: '' },
  )
  const [draft, setDraft] = useState(() => draftOf(base.value))
  const id = employee?.employee_id ?? draft.id.trim().toLowerCase()
  const name = shown(employee?.name || id)
  const change = useChange<JsonObject>({
    base,
    read: () => read(id),
    write: (body, ifMatch) =>
      body === null ? request('DELETE', path(id), { ifMatch }) : request('PUT', path(id), { body, ifMatch }),
    onSaved: (value) => {
      toast({ text: `${name} is ${value === null ? 'removed' : 'saved'}.` })
      onClose()
    },
  })
  const { value, wrong } = parsed(() => {
    if (id !== 'default' && !uuid.test(id)) throw new RangeError('Id must be a UUID, or the word default.')
    if (taken?.some((one) => one.employee_id === id)) throw new RangeError('This id has an entry.')
    return parse(draft)
  })
  const set = (part: Partial<Draft>) => setDraft({ ...draft, ...part })
  return (
    <Setting
      title={employee ? `Employee ${name}` : 'New entry'}
      change={change}
      value={value}
      whyNot={may('putEmployee') ?? wrong}
      onTheirs={(theirs) => setDraft({ ...draftOf(theirs), id: draft.id })}
      remove={{
        word: 'Remove',
        name,
        text: (
          <p>
            {id === 'default'
              ? 'Without an entry of their own, trust and scopes limit nobody then.'
              : 'The entry default holds then; without one, trust and scopes do not limit this employee.'}
          </p>
        ),
        whyNot: may('deleteEmployee'),
      }}
      onClose={onClose}
    >
      {!employee && (
        <Field label="Id" hint="A UUID, or the word default.">
          {(wiring) => (
            <input {...wiring} value={draft.id} maxLength={40} onChange={(e) => set({ id: e.target.value })} />
          )}
        </Field>
      )}
      <Field label="Name">
        {(wiring) => (
          <input {...wiring} value={draft.name} maxLength={200} onChange={(e) => set({ name: e.target.value })} />
        )}
      </Field>
      <Field label="Trust" hint="The highest risk that runs without a person.">
        {(wiring) => (
          <select {...wiring} value={draft.trust} onChange={(e) => set({ trust: e.target.value })}>
            {['none', 'low', 'medium', 'high'].map((trust) => (
              <option key={trust}>{trust}</option>
            ))}
          </select>
        )}
      </Field>
      <Field label="Scopes" hint="One a line, such as contacts:* or mail:send.">
        {(wiring) => (
          <textarea
            {...wiring}
            className="mono"
            value={draft.scopes}
            spellCheck={false}
            onChange={(e) => set({ scopes: e.target.value })}
          />
        )}
      </Field>
      <Wrong of={draft.id || employee ? wrong : undefined} />
    </Setting>
  )
}
