// The filter of the inbox, typed as words and kept in the URL.
import { useEffect, useRef, useState } from 'react'
import { useCommands } from '../../lib/keys'
import { shown } from '../../lib/text'
import { Icon } from '../../ui'
import { type Filters, typed, words } from './items'

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
