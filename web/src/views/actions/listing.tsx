// What the lists of actions, workflows and dead letters share: what is new, what went wrong, nothing, the rows, and
// their end.
import { type ReactNode, useState } from 'react'
import { useCommands } from '../../lib/keys'
import { useNarrow } from '../../lib/media'
import { useSteady } from '../../lib/steady'
import { Button, Empty, List, Loading, ProblemNote } from '../../ui'
import { End } from './end'
import type { Rows } from './rows'

interface Props<T> {
  // of is what is listed, in the plural: dead letters.
  of: string
  // asked is what the API was asked, in which nothing is where there is no filter.
  asked: Record<string, string>
  rows: Rows<T>
  keyOf: (row: T) => string
  row: (row: T) => ReactNode
  onOpen: (key: string) => void
  onClear: () => void
  // nothing is shown where there is none at all.
  nothing: ReactNode
}

export function Listing<T>({ of, asked, rows, keyOf, row, onOpen, onClear, nothing }: Props<T>) {
  const { rows: items, fresh, showNew } = useSteady(JSON.stringify(asked), rows.items, keyOf)
  const [selected, setSelected] = useState<string>()
  const narrow = useNarrow()
  useCommands([{ id: 'show_new', whyNot: fresh === 0 ? 'No new items.' : undefined, run: showNew }])
  const filtered = Object.keys(asked).length > 0
  return (
    <>
      {fresh > 0 && (
        <Button className="fresh-button" icon="up" command="show_new" onClick={showNew}>
          {fresh} new
        </Button>
      )}
      {rows.error && <ProblemNote error={rows.error} what={`The ${of} were not loaded`} onRetry={rows.again} />}
      {rows.loading && !rows.error && <Loading what={of} />}
      {rows.items &&
        (items.length > 0 || rows.ended !== 'end' ? (
          <div className="panel list-panel">
            <List
              label={of[0]!.toUpperCase() + of.slice(1)}
              items={items}
              keyOf={keyOf}
              selected={selected}
              onSelect={setSelected}
              rowHeight={narrow ? 76 : 40}
              onOpen={onOpen}
              onEnd={rows.more}
              row={row}
            />
            <End rows={rows} count={items.length} of={of} />
          </div>
        ) : filtered ? (
          <Empty title={`No ${of} match the filter`}>
            <p>Change or clear the filter to see more.</p>
            <Button onClick={onClear}>Clear the filter</Button>
          </Empty>
        ) : (
          nothing
        ))}
    </>
  )
}
