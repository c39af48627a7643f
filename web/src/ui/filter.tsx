// The conditions of a list: one pill each, in the URL, with the query that the API is asked one click away.
import { type FormEvent, useRef, useState } from 'react'
import { useLocation } from 'wouter'
import { useSearch } from 'wouter/use-browser-location'
import { path } from '../lib/client'
import {
  check,
  conditions,
  type Field,
  type Filter,
  query,
  type ReadFilter,
  readFilter,
  set,
  writeFilter,
} from '../lib/filter'
import { useCommands } from '../lib/keys'
import { shown } from '../lib/text'
import { Button } from './button'
import { Chip } from './chip'
import { Export } from './export'
import { Icon } from './icon'
import { SavedViews } from './saved'
import { toast } from './toast'

// useFilter returns the filter that the URL has, and a function that puts another one there.
export function useFilter(
  fields: readonly Field[],
): ReadFilter & { change: (filter: Filter, how?: { replace?: boolean }) => void } {
  const search = useSearch()
  const [at, go] = useLocation()
  return {
    ...readFilter(fields, search),
    change: (filter, how) => {
      const text = writeFilter(fields, filter)
      go(text ? `${at}?${text}` : at, how)
    },
  }
}

export interface FilterBarProps {
  fields: readonly Field[]
  read: ReadFilter
  onChange: (filter: Filter) => void
  // to is the path that the API is asked at.
  to: string
}

export function FilterBar({ fields, read, onChange, to }: FilterBarProps) {
  const [raw, setRaw] = useState(false)
  const { filter, problems } = read
  const all = conditions(fields, filter)
  return (
    <section className="filter" aria-label="Filter">
      <div className="row">
        <AddCondition fields={fields} filter={filter} onChange={onChange} />
        {all.map(({ field, words }) => (
          <Chip
            key={field.name}
            onRemove={() => onChange(set(filter, field.name, ''))}
            removeLabel={`Remove ${field.label.toLowerCase()}`}
          >
            <span className="filter-name">{field.label}</span> <bdi className="cut">{shown(words)}</bdi>
          </Chip>
        ))}
        {all.length > 1 && (
          <Button kind="quiet" onClick={() => onChange(keepView(fields, filter))}>
            Clear all
          </Button>
        )}
        <Button kind="quiet" aria-expanded={raw} onClick={() => setRaw(!raw)}>
          {raw ? 'Hide the query' : 'As a query'}
        </Button>
        {problems.length === 0 && <Export name={to.split('/').at(-1)!} to={to} query={query(fields, filter)} />}
      </div>
      {problems.length === 0 && <SavedViews />}
      {problems.length > 0 && (
        <div className="problem" role="alert">
          <Icon name="triangle" />
          <div>
            <strong>This list was not loaded: the address has an invalid filter.</strong>
            <ul>
              {problems.map((problem) => (
                <li key={problem}>{shown(problem)}</li>
              ))}
            </ul>
            <p className="row">
              <Button onClick={() => onChange(filter)}>Remove it</Button>
            </p>
          </div>
        </div>
      )}
      {raw && (
        <RawQuery key={writeFilter(fields, filter)} fields={fields} filter={filter} onChange={onChange} to={to} />
      )}
    </section>
  )
}

// keepView returns what of a filter is the page's own.
const keepView = (fields: readonly Field[], filter: Filter): Filter =>
  Object.fromEntries(fields.filter((f) => f.view && filter[f.name] !== undefined).map((f) => [f.name, filter[f.name]!]))

function AddCondition({ fields, filter, onChange }: Omit<FilterBarProps, 'read' | 'to'> & { filter: Filter }) {
  const open = fields.filter((f) => !f.view)
  const [name, setName] = useState(open[0]!.name)
  const [value, setValue] = useState('')
  const chooser = useRef<HTMLSelectElement>(null)
  const field = open.find((f) => f.name === name) ?? open[0]!
  useCommands([{ id: 'filter', run: () => chooser.current?.focus() }])
  const put = (text: string) => {
    const trimmed = field.kind === 'time' ? timeOf(text) : text.trim()
    const wrong = check(field, trimmed)
    if (wrong) return toast({ text: wrong, tone: 'bad' })
    const before = filter[field.name]
    const next =
      field.kind === 'several'
        ? [...new Set([...(Array.isArray(before) ? (before as string[]) : []), trimmed])]
        : trimmed
    onChange(set(filter, field.name, next))
    setValue('')
  }
  const submit = (event: FormEvent) => {
    event.preventDefault()
    put(value)
  }
  return (
    <form className="filter-add" onSubmit={submit}>
      <label className="unseen" htmlFor="filter-name">
        Filter by
      </label>
      <select
        id="filter-name"
        ref={chooser}
        value={field.name}
        onChange={(e) => {
          setName(e.target.value)
          setValue('')
        }}
      >
        {open.map((f) => (
          <option key={f.name} value={f.name}>
            {f.label}
          </option>
        ))}
      </select>
      {field.choices ? (
        <select aria-label={field.label} value={value} onChange={(e) => put(e.target.value)}>
          <option value="">Choose…</option>
          {field.choices.map((choice) => (
            <option key={choice} value={choice}>
              {choice.replaceAll('_', ' ')}
            </option>
          ))}
        </select>
      ) : (
        <>
          <input
            aria-label={field.label}
            value={value}
            placeholder={field.example ?? ''}
            autoComplete="off"
            spellCheck={false}
            type={field.kind === 'time' ? 'datetime-local' : 'text'}
            step={field.kind === 'time' ? 1 : undefined}
            onChange={(e) => setValue(e.target.value)}
          />
          <Button type="submit" icon="filter">
            Filter
          </Button>
        </>
      )}
    </form>
  )
}

// timeOf returns a time of a field, which is local and has no zone, as the API writes it.
function timeOf(text: string): string {
  const at = new Date(text)
  return text === '' || Number.isNaN(at.getTime()) ? text : at.toISOString()
}

function RawQuery({ fields, filter, onChange, to }: Omit<FilterBarProps, 'read'> & { filter: Filter }) {
  const [text, setText] = useState(() => path(to, query(fields, filter)))
  const [wrong, setWrong] = useState<readonly string[]>([])
  const submit = (event: FormEvent) => {
    event.preventDefault()
    const [before, search = ''] = text.split('?', 2)
    const read = readFilter(
      fields.filter((f) => !f.view),
      search,
    )
    const problems = before === to ? read.problems : [`The path is ${to}.`]
    setWrong(problems)
    if (problems.length === 0) onChange({ ...keepView(fields, filter), ...read.filter })
  }
  return (
    <form className="filter-raw" onSubmit={submit}>
      <label className="unseen" htmlFor="filter-raw">
        API query
      </label>
      <input
        id="filter-raw"
        className="mono"
        value={text}
        spellCheck={false}
        autoComplete="off"
        aria-invalid={wrong.length > 0 || undefined}
        onChange={(e) => setText(e.target.value)}
      />
      <Button type="submit">Apply</Button>
      {wrong.length > 0 && (
        <p className="error" role="alert">
          {shown(wrong.join(' '))}
        </p>
      )}
    </form>
  )
}
