// The form: a lens on a value. Nothing is filled in, left out or written otherwise unless a person does it.
import { useEffect, useId, useMemo, useRef, useState } from 'react'
import type { Json } from '../lib/json'
import { join } from '../lib/pointer'
import { shown } from '../lib/text'
import { add, type Draft, put, take } from './draft'
import { Editor } from './Editor'
import { type Complaint, Complaints, type Editing, nameOf } from './editing'
import { type Field, face, leaves, plan } from './plan'
import { type Folds, Long } from './text'

// Loosening is what a grant leaves open: any argument, and members of objects, but nothing inside of lists.
export interface Loosening {
  loose: ReadonlySet<string>
  toggle: (pointer: string) => void
}

// Values shows the fields of a value to read.
export function Values({
  schema,
  value,
  folds,
  loosening,
}: {
  schema: Json | undefined
  value: Json
  folds: Folds
  loosening?: Loosening
}) {
  const root = useMemo(() => plan(schema, value), [schema, value])
  const sent = root.children.some((child) => child.value !== undefined)
  return (
    <>
      {!sent && (
        <div data-value="">
          {root.kind === 'object' ? <p className="muted">No arguments.</p> : <Value field={root} folds={folds} />}
        </div>
      )}
      {root.children.length > 0 && <Members of={root} folds={folds} loosening={loosening} />}
    </>
  )
}

// valuesOf returns the names of the values that Values shows, as they are in data-value.
export function valuesOf(schema: Json | undefined, value: Json): string[] {
  const shown = leaves(plan(schema, value))
    .filter((field) => field.value !== undefined)
    .map((field) => field.pointer)
  return shown.length ? shown : ['']
}

interface Reading {
  folds: Folds
  loosening: Loosening | undefined
}

function Members({ of, folds, loosening }: { of: Field } & Reading) {
  const sent = of.children.filter((child) => child.value !== undefined)
  const absent = of.children.filter((child) => child.value === undefined)
  return (
    <>
      <dl className="values">
        {sent.map((child) => (
          <div key={child.pointer} data-pointer={child.pointer}>
            <dt>
              <bdi>{shown(child.name)}</bdi>
              {!child.known && <span className="faint"> not in the schema</span>}
              {loosening && <Loosen loosening={loosening} field={child} />}
            </dt>
            {child.children.length ? (
              <dd>
                <Members
                  of={child}
                  folds={folds}
                  loosening={child.kind === 'list' || loosening?.loose.has(child.pointer) ? undefined : loosening}
                />
              </dd>
            ) : (
              <dd data-value={child.pointer}>
                <Value field={child} folds={folds} />
              </dd>
            )}
          </div>
        ))}
      </dl>
      {absent.length > 0 && (
        <p className="faint absent">
          Not sent:{' '}
          {absent.map((child, i) => (
            <span key={child.pointer}>
              {i > 0 && ', '}
              <bdi>{shown(child.name)}</bdi>
            </span>
          ))}
        </p>
      )}
    </>
  )
}

function Loosen({ loosening: { loose, toggle }, field }: { loosening: Loosening; field: Field }) {
  return (
    <label className="loosen">
      <input type="checkbox" checked={loose.has(field.pointer)} onChange={() => toggle(field.pointer)} />
      any<span className="unseen"> {shown(field.pointer)}</span>
    </label>
  )
}

// Value shows a field without fields inside. What is empty says how it is empty.
function Value({ field, folds }: { field: Field; folds: Folds }) {
  const value = field.value
  if (value === '') return <span className="blank">empty text</span>
  if (value === null) return <span className="blank">null</span>
  if (Array.isArray(value) && !value.length) return <span className="blank">empty list</span>
  if (field.kind === 'object') return <span className="blank">empty object</span>
  if (typeof value === 'string' && field.kind !== 'json')
    return <Long text={value} pointer={field.pointer} folds={folds} />
  const text = face(field)
  return (
    <code className={text.includes('\n') ? 'block' : undefined}>
      <Long text={text} pointer={field.pointer} folds={folds} />
    </code>
  )
}

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
  const root = useMemo(() => plan(schema, draft.args), [schema, draft.args])
  const toggle = (pointer: string) =>
    setAsText((was) =>
      was.has(pointer) ? new Set([...was].filter((at) => at !== pointer)) : new Set([...was, pointer]),
    )
  const editing: Editing = { schema: schema ?? {}, draft, onDraft, complaints, asText, toggle }
  return (
    <div className="form">
      <Branch field={root} id={id} editing={editing} />
    </div>
  )
}

function Branch({ field, id, editing }: { field: Field; id: string; editing: Editing }) {
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
        <bdi>{shown(nameOf(field))}</bdi>
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

// ComplaintSummary lists what the server refused, and takes the focus when it comes.
export function ComplaintSummary({ title, complaints }: { title: string; complaints: readonly Complaint[] }) {
  const ref = useRef<HTMLDivElement>(null)
  useEffect(() => ref.current?.focus(), [complaints])
  return (
    <div ref={ref} tabIndex={-1} role="alert" className="banner bad">
      <strong>{shown(title)}</strong>
      <ul>
        {complaints.map((c, i) => (
          <li key={i}>
            <code>{shown(c.pointer || '/')}</code> {shown(c.detail)}
          </li>
        ))}
      </ul>
    </div>
  )
}
