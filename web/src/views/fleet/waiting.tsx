import { shown } from '../../lib/text'
import { duration } from '../../lib/time'
import { Empty, Table } from '../../ui'
import { Command } from '../../ui/command'
import { type Overview, reasonOf } from './say'

// tones are the colours of the bar; the table beside it has the words.
const tones = ['waits', 'person', 'good', 'unknown', 'drift', 'bad', 'calm']

// Waiting is the backlog by reason, as one bar and its legend.
export function Waiting({ overview }: { overview: Overview }) {
  const all = overview.waiting.map((w, i) => ({ ...w, actions: Number(w.actions), tone: tones[i % tones.length]! }))
  const total = all.reduce((sum, w) => sum + w.actions, 0)
  let from = 0
  return (
    <section className="panel stack" aria-labelledby="waiting">
      <h2 id="waiting">Waiting</h2>
      {total === 0 ? (
        <Empty title="Nothing waits" />
      ) : (
        <>
          <svg className="stacked" viewBox="0 0 1000 1" preserveAspectRatio="none" aria-hidden="true" focusable="false">
            {all.map((w) => {
              const x = from
              from += (1000 * w.actions) / total
              return <rect key={w.reason} className={`fill-${w.tone}`} x={x} width={from - x} y="0" height="1" />
            })}
          </svg>
          <Table
            caption="Waiting actions by reason"
            rows={all}
            keyOf={(w) => w.reason}
            columns={[
              {
                name: 'Wait for',
                cell: (w) => (
                  <span className="row nowrap">
                    <Swatch tone={w.tone} />
                    {shown(reasonOf(w.reason).word)}
                  </span>
                ),
              },
              {
                name: overview.estimated ? 'Actions, about' : 'Actions',
                number: true,
                cell: (w) => w.actions.toLocaleString('en'),
              },
              { name: 'Ended by', cell: (w) => shown(reasonOf(w.reason).ends) },
              {
                name: 'First in',
                number: true,
                hideNarrow: true,
                cell: (w) => w.next_in_seconds !== null && duration(Number(w.next_in_seconds) * 1_000),
              },
              {
                name: 'Due since',
                number: true,
                hideNarrow: true,
                cell: (w) => Number(w.oldest_due_seconds) > 0 && duration(Number(w.oldest_due_seconds) * 1_000),
              },
            ]}
          />
        </>
      )}
      <Command of="countersign top" />
    </section>
  )
}

// Swatch shows the colour of a part.
export function Swatch({ tone }: { tone: string }) {
  return (
    <svg className="swatch" width="12" height="12" viewBox="0 0 12 12" aria-hidden="true" focusable="false">
      <rect className={`fill-${tone}`} width="12" height="12" rx="2" />
    </svg>
  )
}
