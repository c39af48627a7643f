import { Button, ProblemNote } from '../../ui'
import { most, type Rows } from './rows'

// End says how much of a list is loaded, and why it goes no further.
export function End({
  rows,
  count,
  of,
}: {
  rows: Pick<Rows<unknown>, 'ended' | 'more' | 'moreError'>
  count: number
  of: string
}) {
  if (rows.moreError)
    return <ProblemNote error={rows.moreError} what="The next page was not loaded" onRetry={rows.more} />
  if (rows.ended === 'most')
    return (
      <p className="list-end muted" role="status">
        The list ends here, at {most.toLocaleString('en')} {of}. A narrower filter finds the others.
      </p>
    )
  return (
    <p className="list-end muted row">
      {count.toLocaleString('en')} {rows.ended === 'end' ? 'in all' : 'so far'}
      {rows.ended === undefined && (
        <Button kind="quiet" onClick={rows.more}>
          Keep searching
        </Button>
      )}
    </p>
  )
}
