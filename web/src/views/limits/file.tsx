// All limits as one document.
import { useMutation, useQuery } from '@tanstack/react-query'
import { useEffect, useId, useState } from 'react'
import { Collision } from '../../form/collision'
import { useChange, type Version } from '../../lib/change'
import { type Problem, request, type Schemas } from '../../lib/client'
import { type JsonObject, parse, stringify } from '../../lib/json'
import { useMay } from '../../lib/me'
import { shown } from '../../lib/text'
import { Button, Chip, Command, Loading, ProblemNote, toast } from '../../ui'

interface Result {
  dry_run: boolean
  changes: Schemas['LimitChange'][]
}

const to = '/api/v1/limits'

async function load(signal?: AbortSignal): Promise<Version<JsonObject>> {
  const answer = await request<JsonObject>('GET', to, { signal })
  return { value: answer.body, etag: answer.etag.replaceAll('"', '') }
}

export function File() {
  const stored = useQuery<Version<JsonObject>, Problem>({
    queryKey: ['config', 'limits', 'file'],
    queryFn: ({ signal }) => load(signal),
  })
  // An applied document begins again with what is stored.
  const [applied, setApplied] = useState(0)
  return (
    <>
      <p className="muted">
        Everything but the do-not-contact list and pauses. A section that is left out stays as it is; what is missing
        from a section is removed.
      </p>
      {stored.isPending && <Loading what="the document" />}
      {stored.error && <ProblemNote error={stored.error} onRetry={() => void stored.refetch()} />}
      {stored.data && (
        <Editor
          key={applied}
          base={stored.data}
          takeFocus={applied > 0}
          onApplied={() => void stored.refetch().then(() => setApplied(applied + 1))}
        />
      )}
      <Command of="countersign limits apply --file FILE --apply" />
    </>
  )
}

interface EditorProps {
  base: Version<JsonObject>
  takeFocus: boolean
  onApplied: () => void
}

function Editor({ base, takeFocus, onApplied }: EditorProps) {
  const may = useMay()
  const [text, setText] = useState(() => stringify(base.value ?? {}, 2))
  const field = useId()
  useEffect(() => {
    if (takeFocus) document.getElementById(field)?.focus()
  }, [takeFocus, field])
  const [match] = useState(base.etag)
  const change = useChange<JsonObject>({
    base,
    read: () => load(),
    write: (body, ifMatch) => request('PUT', to, { body, ifMatch }),
    onSaved: () => {
      toast({ text: 'The limits are applied.' })
      onApplied()
    },
  })
  const dry = useMutation<Result, Problem, JsonObject>({
    mutationFn: (body) =>
      request<Result>('PUT', to, { body, ifMatch: `"${match}"`, query: { dry_run: 'true' } }).then((a) => a.body),
  })
  let value: JsonObject | undefined
  let wrong: string | undefined
  try {
    value = parse(text) as JsonObject
  } catch (error) {
    wrong = (error as Error).message
  }
  const edit = (next: string) => {
    setText(next)
    dry.reset()
  }
  const whyNot = may('putLimits') ?? (wrong && 'It is not valid JSON.') ?? change.whyNot
  const differs = dry.data?.changes.filter((one) => one.change !== 'unchanged')
  return (
    <div className="panel stack">
      <label htmlFor={field}>
        <strong>Document</strong>
      </label>
      <textarea
        id={field}
        className="mono"
        rows={20}
        value={text}
        spellCheck={false}
        readOnly={may('putLimits') !== undefined}
        aria-invalid={wrong ? true : undefined}
        onChange={(e) => edit(e.target.value)}
      />
      {wrong && (
        <p className="error" role="alert">
          {shown(wrong)}
        </p>
      )}
      {differs && (
        <section role="status" aria-label="What would change">
          {differs.length === 0 && <p>Nothing would change.</p>}
          <ul>
            {differs.map((one) => (
              <li key={`${one.section} ${one.name}`} className="row">
                <Chip tone={one.change === 'removed' ? 'bad' : one.change === 'added' ? 'good' : 'waits'}>
                  {one.change}
                </Chip>
                {one.section.replaceAll('_', ' ')} {shown(one.name ?? '')}
              </li>
            ))}
          </ul>
        </section>
      )}
      {change.collision && (
        <Collision of={change.collision} onKeep={change.keep} onDrop={() => edit(stringify(change.drop() ?? {}, 2))} />
      )}
      {dry.error && <ProblemNote error={dry.error} what="It would be refused" />}
      {change.error !== null && <ProblemNote error={change.error} what="Not applied" />}
      <p className="row">
        <Button whyNot={whyNot} busy={dry.isPending} onClick={() => value && dry.mutate(value)}>
          Check
        </Button>
        <Button
          kind="primary"
          whyNot={whyNot ?? (differs ? (differs.length > 0 ? undefined : 'Nothing would change.') : 'Check it first.')}
          busy={change.busy}
          onClick={() => value && change.save(value)}
        >
          Apply
        </Button>
      </p>
    </div>
  )
}
