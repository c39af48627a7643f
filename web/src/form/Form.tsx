// The form: fields of a draft to change. Nothing is filled in, left out or written otherwise unless a person does it.
import { useId, useMemo, useState } from 'react'
import type { Json } from '../lib/json'
import { join } from '../lib/pointer'
import { shown } from '../lib/text'
import { add, type Draft, put, take } from './draft'
import { Editor } from './Editor'
import { type Complaint, Complaints, type Editing, nameOf } from './editing'
import { MarksAt } from './marks'
import { type Chosen, type Field, plan } from './plan'
import { VariantChoice } from './VariantChoice'

// The form comes with advice on the typed text, when a person begins to edit.
export { advisor } from './advice'

// Form shows the fields of a draft to change.
export function Form({
  schema,
  draft,
  onDraft,
  complaints,
}: {
  schema: Json | undefined
  draft: Draft
  onDraft: (draft: Draft) => void
  complaints: readonly Complaint[]
}) {
  const id = useId()
  const [asText, setAsText] = useState<ReadonlySet<string>>(new Set())
  const [chosen, setChosen] = useState<Chosen>(new Map())
  const root = useMemo(() => plan(schema, draft.args, chosen), [schema, draft.args, chosen])
  const choose = (pointer: string, variant: number) => setChosen((was) => new Map(was).set(pointer, variant))
  const toggle = (pointer: string) =>
    setAsText((was) =>
      was.has(pointer) ? new Set([...was].filter((at) => at !== pointer)) : new Set([...was, pointer]),
    )
  const editing: Editing = { schema: schema ?? {}, draft, onDraft, complaints, asText, toggle, choose }
  return (
    <div className="form">
      <Branch field={root} id={id} editing={editing} />
    </div>
  )
}

function Branch(props: { field: Field; id: string; editing: Editing }) {
  const { field, id, editing } = props
  if (field.variants.length < 2 || field.value === undefined || editing.asText.has(field.pointer))
    return <Fields {...props} />
  return (
    <>
      <VariantChoice field={field} id={`${id}-v`} editing={editing} />
      <Fields {...props} />
    </>
  )
}

function Fields({ field, id, editing }: { field: Field; id: string; editing: Editing }) {
  const text = editing.asText.has(field.pointer)
  if (text || (field.kind !== 'object' && field.kind !== 'list'))
    return <Editor field={text ? { ...field, kind: 'json', children: [] } : field} id={id} editing={editing} />
  const fields = field.children.map((child, i) => (
    <Branch key={child.pointer} field={child} id={`${id}-${i}`} editing={editing} />
  ))
  if (field.value === undefined) return <Editor field={field} id={id} editing={editing} />
  if (field.pointer === '')
    return (
      <>
        {fields}
        <Tools field={field} editing={editing} />
      </>
    )
  return (
    <fieldset data-pointer={field.pointer}>
      <legend>
        <bdi>{shown(nameOf(field))}</bdi> <MarksAt of={field.pointer} inside={false} />
      </legend>
      {field.description && <p className="faint">{shown(field.description)}</p>}
      {fields.length ? fields : <p className="blank">{field.kind === 'list' ? 'empty list' : 'empty object'}</p>}
      <Complaints of={field.pointer} id={`${id}-c`} complaints={editing.complaints} />
      <Tools field={field} editing={editing} />
    </fieldset>
  )
}

// Tools are what can be done with a list or an object as a whole.
function Tools({ field, editing }: { field: Field; editing: Editing }) {
  const { draft, onDraft, schema } = editing
  const name = shown(field.name)
  return (
    <p className="tools">
      {field.kind === 'list' && field.open && (
        <button type="button" className="link" onClick={() => onDraft(addElement(draft, field, schema))}>
          Add entry<span className="unseen"> to {name}</span>
        </button>
      )}
      <button type="button" className="link" onClick={() => editing.toggle(field.pointer)}>
        As JSON<span className="unseen"> {name}</span>
      </button>
      {field.nullable && (
        <button type="button" className="link" onClick={() => onDraft(put(draft, field.pointer, null))}>
          Set to null<span className="unseen"> {name}</span>
        </button>
      )}
      {field.pointer !== '' && (
        <button type="button" className="link" onClick={() => onDraft(take(draft, field.pointer))}>
          Remove<span className="unseen"> {name}</span>
        </button>
      )}
    </p>
  )
}

function addElement(draft: Draft, field: Field, root: Json): Draft {
  const pointer = join(field.pointer, (field.value as Json[]).length)
  return add(draft, { pointer, kind: 'json', schema: field.item ?? {}, options: [] }, root)
}
