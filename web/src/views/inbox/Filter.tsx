// The filter of the inbox, typed as words and kept in the URL.
import { useEffect, useRef, useState } from 'react'
import { useCommands } from '../../lib/keys'
import { shown } from '../../lib/text'
import { Button, Icon } from '../../ui'
import { type Counts, complaints, type Filters, known, typed, useCounts, words } from './items'

const orders = [
  ['oldest', 'oldest first'],
  ['newest', 'newest first'],
  ['expiry', 'ending first'],
  ['risk', 'riskiest first'],
  ['session', 'by session'],
  ['tool', 'by tool'],
] as const

export function Filter({ filters, onChange }: { filters: Filters; onChange: (filters: Filters) => void }) {
  const current = words(filters)
  const [text, setText] = useState(current)
  const [problem, setProblem] = useState('')
  const ref = useRef<HTMLInputElement>(null)
  useEffect(() => {
    setText(current)
    setProblem('')
  }, [current])
  useCommands([{ id: 'filter', run: () => ref.current?.focus() }])
  const apply = () => {
    const result = typed(text)
    if ('problem' in result) return setProblem(result.problem)
    setProblem('')
    onChange(result.filters)
    // The keys of the list count from here on.
    ref.current?.blur()
  }
  return (
    <form
      className="inbox-filter"
      role="search"
      onSubmit={(event) => {
        event.preventDefault()
        apply()
      }}
    >
      <Icon name="filter" />
      <input
        ref={ref}
        type="text"
        aria-label="Filter"
        placeholder="Words, source:…, session:…, risk:high"
        value={text}
        spellCheck={false}
        autoComplete="off"
        aria-invalid={problem ? true : undefined}
        aria-describedby={problem ? 'filter-problem' : undefined}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === 'Escape') {
            setText(current)
            ref.current?.blur()
            event.preventDefault()
          }
        }}
      />
      <select
        aria-label="Order"
        value={filters.order?.[0] ?? 'oldest'}
        onChange={(event) => onChange({ order: event.target.value === 'oldest' ? [] : [event.target.value] })}
      >
        {orders.map(([key, label]) => (
          <option key={key} value={key}>
            {label}
          </option>
        ))}
      </select>
      {text !== current && !problem && <p className="faint small">Press Enter to apply the filter.</p>}
      {problem && (
        <p className="complaint" id="filter-problem" role="alert">
          {shown(problem)}
        </p>
      )}
    </form>
  )
}

interface Choice {
  value: string
  label: string
  count?: number
}

const facets: readonly {
  name: 'session' | 'tool' | 'person' | 'risk'
  label: string
  of: (counts: Counts) => Choice[]
}[] = [
  {
    name: 'session',
    label: 'Session',
    of: ({ sessions }) => sessions.map(({ session_id, count }) => ({ value: session_id, label: session_id, count })),
  },
  {
    name: 'tool',
    label: 'Tool',
    of: ({ tools }) => tools.map(({ tool, count }) => ({ value: tool, label: tool, count })),
  },
  {
    name: 'person',
    label: 'Proposed by',
    of: ({ people }) =>
      people.map(({ person_id, name, count }) => ({ value: person_id, label: name || person_id, count })),
  },
  { name: 'risk', label: 'Risk', of: () => ['high', 'medium', 'low'].map((value) => ({ value, label: value })) },
]

// Facets are the filters that can be chosen, with how much waits of each value.
export function Facets({ filters, onChange }: { filters: Filters; onChange: (filters: Filters) => void }) {
  return (
    <div className="facets row" role="group" aria-label="Narrow by">
      {facets.map((facet) => (
        <Facet key={facet.name} facet={facet} filters={filters} onChange={onChange} />
      ))}
    </div>
  )
}

function Facet({
  facet: { name, label, of },
  filters,
  onChange,
}: {
  facet: (typeof facets)[number]
  filters: Filters
  onChange: (filters: Filters) => void
}) {
  const ref = useRef<HTMLSelectElement>(null)
  // What can be chosen instead of a value is asked for when somebody comes to choose.
  const [asked, setAsked] = useState(false)
  const set = filters[name]
  const value = set?.join(',') ?? ''
  const counts = useCounts(filters).data
  const others = useCounts({ ...filters, [name]: undefined }, asked && value !== '').data
  const from = (value && others) || counts
  const choices = from ? of(from) : []
  if (value && !choices.some((choice) => choice.value === value)) choices.unshift({ value, label: value })
  return (
    <span className={value ? 'facet set' : 'facet'}>
      <select
        ref={ref}
        aria-label={label}
        value={value}
        onFocus={() => setAsked(true)}
        onChange={(event) => onChange({ [name]: event.target.value ? [event.target.value] : [] })}
      >
        <option value="">{value ? `${label}: any` : label}</option>
        {choices.map((choice) => (
          <option key={choice.value} value={choice.value}>
            {shown(choice.label)}
            {choice.count !== undefined && ` · ${choice.count.toLocaleString('en')}`}
          </option>
        ))}
      </select>
      {value && (
        <button
          type="button"
          className="chip-remove"
          aria-label={`Remove ${label.toLowerCase()}`}
          onClick={() => {
            onChange({ [name]: [] })
            ref.current?.focus()
          }}
        >
          <Icon name="cross" />
        </button>
      )}
    </span>
  )
}

// Misread shows unknown filters of the address. The list is not shown without them.
export function Misread({ search, onMend }: { search: string; onMend: (search: string) => void }) {
  return (
    <div className="problem" role="alert">
      <Icon name="triangle" />
      <div>
        <strong>This list was not loaded: the address has an invalid filter.</strong>
        <ul>
          {complaints(search).map((problem) => (
            <li key={problem}>{shown(problem)}</li>
          ))}
        </ul>
        <p className="row">
          <Button onClick={() => onMend(known(search))}>Remove it</Button>
        </p>
      </div>
    </div>
  )
}
