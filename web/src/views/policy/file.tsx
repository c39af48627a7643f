import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Collision } from '../../form/collision'
import { Changes } from '../../form/text'
import { useChange, type Version } from '../../lib/change'
import { type Problem, request, type Schemas } from '../../lib/client'
import { copy } from '../../lib/copy'
import { type Json, type JsonObject, parse, same, stringify } from '../../lib/json'
import { useMay } from '../../lib/me'
import { diff } from '../../lib/pointer'
import { shown } from '../../lib/text'
import { Button, Chip, Command, Field, Loading, ProblemNote, toast } from '../../ui'
import { type Sections, Simulation, useSimulation } from '../../ui/simulation'

type Change = Schemas['PolicyChange']

const to = '/api/v1/policy'
const readPolicy = async (signal?: AbortSignal): Promise<Version<JsonObject>> => {
  const { body, etag } = await request<JsonObject>('GET', to, { signal })
  return { value: body, etag: etag.replaceAll('"', '') }
}

// File shows the policy as one document, and replaces it after a check and a simulation.
export function File() {
  const policy = useQuery<Version<JsonObject>, Problem>({
    queryKey: ['config', 'policy'],
    queryFn: ({ signal }) => readPolicy(signal),
  })
  // A draft keeps the version that it began with.
  const [kept, setKept] = useState<Version<JsonObject>>()
  const version = kept ?? policy.data
  if (!version) {
    if (policy.error) return <ProblemNote error={policy.error} onRetry={() => void policy.refetch()} />
    return <Loading what="the policy" />
  }
  return (
    <div className="stack">
      <Draft key={version.etag} version={version} onDraft={(begun) => setKept(begun ? version : undefined)} />
      <Command of="countersign policy show" />
      <Command of="countersign policy apply --file FILE --apply" />
    </div>
  )
}

interface Checked {
  text: string
  sections: Sections
  changes: Change[]
}

function Draft({ version, onDraft }: { version: Version<JsonObject>; onDraft: (begun: boolean) => void }) {
  const may = useMay()
  const [text, setText] = useState(() => stringify(version.value, 2))
  const [checked, setChecked] = useState<Checked>()
  const draft = read(text)
  const write = (next: string) => {
    setText(next)
    onDraft(next !== stringify(version.value, 2))
  }
  const checking = useMutation<Checked, Problem, JsonObject>({
    mutationFn: async (body) => {
      const done = await request<{ changes: Change[] }>('PUT', to, { query: { dry_run: true }, body })
      const changes = done.body.changes.filter(({ change }) => change !== 'unchanged')
      return { text, sections: body as unknown as Sections, changes }
    },
    onSuccess: setChecked,
  })
  const change = useChange<JsonObject>({
    base: version,
    read: () => readPolicy(),
    write: (body, ifMatch) => request('PUT', to, { body, ifMatch }),
    onSaved: () => {
      toast({ text: 'The policy is saved.' })
      onDraft(false)
    },
  })
  const current = checked?.text === text ? checked : undefined
  const trial = useSimulation(current?.changes.length ? current.sections : undefined)
  const unchanged = draft.value && same(draft.value, change.base) ? 'Nothing is changed.' : undefined
  const mayNot = may('putPolicy')
  const whyNotCheck = mayNot ?? (draft.error || unchanged)
  const whyNot = whyNotCheck ?? change.whyNot ?? (current ? trial.whyNot : 'Check it first: the changes are shown.')
  return (
    <div className="stack">
      <Field
        label="Policy"
        hint="JSON. A section that is left out stays; a section that is here replaces all entries of it."
        error={draft.error}
      >
        {(wiring) => (
          <textarea
            {...wiring}
            className="mono policy-text"
            spellCheck={false}
            rows={20}
            readOnly={mayNot !== undefined}
            value={text}
            onChange={(event) => write(event.target.value)}
          />
        )}
      </Field>
      <p className="row">
        <Button
          whyNot={whyNotCheck}
          busy={checking.isPending}
          onClick={() => draft.value && checking.mutate(draft.value)}
        >
          Check
        </Button>
        <Button
          kind="primary"
          whyNot={whyNot}
          busy={change.busy}
          onClick={() => draft.value && change.save(draft.value)}
        >
          Save
        </Button>
        <Button
          whyNot={unchanged}
          onClick={() => {
            write(stringify(change.base, 2))
            setChecked(undefined)
          }}
        >
          Discard
        </Button>
        <Button kind="quiet" icon="copy" onClick={() => void copy(text)}>
          Copy
        </Button>
      </p>
      {checking.isError && <ProblemNote error={checking.error} what="Not valid" />}
      {change.collision && (
        <Collision
          of={change.collision}
          onKeep={() => {
            setChecked(undefined)
            change.keep()
          }}
          onDrop={() => write(stringify(change.drop(), 2))}
        />
      )}
      {change.error !== null && <ProblemNote error={change.error} what="Not saved" />}
      {current && (
        <section className="stack" aria-label="Changes">
          <h2>{counted(current.changes.length)}</h2>
          <ul className="stack">
            {current.changes.map((one) => (
              <Changed key={`${one.section} ${one.name}`} of={one} />
            ))}
          </ul>
          <Simulation of={trial} />
        </section>
      )}
    </div>
  )
}

const counted = (count: number) => (count === 0 ? 'No changes' : count === 1 ? '1 change' : `${count} changes`)

const tones = { added: 'good', changed: 'waits', removed: 'bad', unchanged: 'calm' } as const

function Changed({ of: { change, section, name, was, is } }: { of: Change }) {
  return (
    <li className="row">
      <Chip tone={tones[change]}>{change}</Chip>
      <span>
        {section} <bdi className="mono">{shown(name ?? '')}</bdi>
      </span>
      <Changes changes={diff(was as Json | undefined, is as Json | undefined)} />
    </li>
  )
}

// read returns the document of a text, or why it is none.
function read(text: string): { value?: JsonObject; error?: string } {
  try {
    const value = parse(text)
    if (typeof value !== 'object' || value === null || Array.isArray(value) || !Object.keys(value).length)
      return { error: 'The policy must be an object with sections such as modes and rules.' }
    return { value: value as JsonObject }
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) }
  }
}
